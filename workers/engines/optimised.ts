/**
 * Copies of graphs as onnxruntime runs them on this machine: optimised, with the weights in the order that its kernels
 * want, in files that all threads map. A copy loads in a third of the time, and no session has weights of its own.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdtemp, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { cpus } from 'node:os';
import { dirname, join } from 'node:path';
import { env, InferenceSession } from 'onnxruntime-node';
import type { NativeGuard } from '../../src/threads/vitals.js';
import { alignWeights } from './graph/aligned.js';
import { checkRoom } from './graph/room.js';
import { externalBytesMin } from './graph/write.js';
import type { HeldFile } from './pack.js';

type Graphs<Name extends string> = Readonly<Record<Name, HeldFile>>;

/** Without warnings: that a copy is for this machine only, or that the CPU runs some nodes of a graph. */
export const errorsOnly = 3;

/** Change it when the copies change. */
const version = 2;

/** Everything that the order of the weights depends on. */
const surroundings = (): string => {
  let features = '';
  try {
    features = /^(?:flags|Features)\s*:.*$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[0] ?? '';
  } catch {
    // Another system: the name of the processor has to do.
  }
  return [version, env.versions.node, process.platform, process.arch, cpus()[0]?.model, features].join('\n');
};

const copiesName = `optimised-${createHash('sha256').update(surroundings()).digest('hex').slice(0, 16)}`;

/** A copy has weights and packed weights. */
const copyFactor = 3;

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );

/** onnxruntime does not wait for the disk. */
const syncFiles = async (folder: string): Promise<void> => {
  for (const name of await readdir(folder)) {
    const file = await open(join(folder, name), 'r');
    await file.sync().finally(() => file.close());
  }
};

/** @param copiesIn a folder of derived files: the copies are removed together with it */
export const copiesFolder = (copiesIn: string): string => join(copiesIn, copiesName);

/**
 * Makes the copies, unless they exist. Several threads or processes may make them at the same time.
 *
 * @param copiesIn as above
 * @param options of the sessions of the graphs
 * @throws if onnxruntime does not load a graph, if the folder cannot be written, or if the disk has no room
 */
export const optimisedCopies = async <Name extends string>(
  graphs: Graphs<Name>,
  copiesIn: string,
  options: InferenceSession.SessionOptions,
  native: NativeGuard,
): Promise<Graphs<Name>> => {
  const folder = copiesFolder(copiesIn);
  if (!(await exists(folder))) {
    const bytes = Object.values<HeldFile>(graphs).reduce((sum, graph) => sum + graph.bytes, 0);
    await checkRoom(copiesIn, copyFactor * bytes);
    const unfinished = await mkdtemp(join(dirname(dirname(folder)), '.new-'));
    try {
      for (const [name, { openPath }] of Object.entries<HeldFile>(graphs)) {
        const session = await native(() =>
          InferenceSession.create(openPath, {
            ...options,
            logSeverityLevel: errorsOnly,
            optimizedModelFilePath: join(unfinished, `${name}.onnx`),
            extra: {
              session: {
                save_external_prepacked_constant_initializers: '1',
                optimized_model_external_initializers_file_name: `${name}.bin`,
                optimized_model_external_initializers_min_size_in_bytes: String(externalBytesMin),
              },
            },
          }),
        );
        await native(() => session.release());
        await alignWeights(unfinished, name);
      }
      await syncFiles(unfinished);
      await rename(unfinished, folder);
    } catch (error) {
      await rm(unfinished, { recursive: true, force: true });
      // Another thread or process was faster.
      const { code } = error as NodeJS.ErrnoException;
      if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error;
    }
  }
  return Object.fromEntries(
    Object.entries<HeldFile>(graphs).map(([name, file]) => [
      name,
      { ...file, openPath: join(folder, `${name}.onnx`) },
    ]),
  ) as Record<Name, HeldFile>;
};
