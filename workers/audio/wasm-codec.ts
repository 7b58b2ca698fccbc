/** Codecs as WebAssembly, which `scripts` builds from their sources. */
import { readFile } from 'node:fs/promises';

/** @param name of a file of this folder, which is found from `dist`, too */
export const compileWasm = async (name: string): Promise<WebAssembly.Module> =>
  WebAssembly.compile(
    await readFile(new URL(`workers/audio/${name}`, import.meta.resolve('syrinx/package.json'))),
  );

/**
 * Makes an instance with a memory of its own.
 * @param answer to all system calls: a codec has no use for any
 */
export const instanceOf = (module: WebAssembly.Module, answer: number): unknown => {
  const imports = Object.fromEntries(
    WebAssembly.Module.imports(module).map(({ name }) => [name, () => answer]),
  );
  const instance = new WebAssembly.Instance(module, { wasi_snapshot_preview1: imports });
  (instance.exports as { readonly _initialize: () => void })._initialize();
  return instance.exports;
};
