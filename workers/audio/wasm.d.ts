/** The package has no types. These are the used parts of its Emscripten module. Pointers are byte offsets. */
declare module '@echogarden/speex-resampler-wasm/simd' {
  export interface SpeexResamplerModule {
    readonly HEAP16: Int16Array;
    readonly HEAPU32: Uint32Array;
    _malloc(bytes: number): number;
    /** @returns the state, or 0 when `errorPointer` holds a code */
    _speex_resampler_init(
      channels: number,
      fromHz: number,
      toHz: number,
      quality: number,
      errorPointer: number,
    ): number;
    _speex_resampler_skip_zeros(state: number): number;
    _speex_resampler_get_input_latency(state: number): number;
    /** Rounds and clips. Counts are read as what is offered and written as what was used. */
    _speex_resampler_process_int(
      state: number,
      channel: number,
      inputPointer: number,
      inputCountPointer: number,
      outputPointer: number,
      outputCountPointer: number,
    ): number;
    _speex_resampler_destroy(state: number): void;
  }
  export default function createModule(): Promise<SpeexResamplerModule>;
}

/** TypeScript's ES2024 library lacks WebAssembly, which Node has. These are the used parts. */
declare namespace WebAssembly {
  class Module {
    readonly [Symbol.toStringTag]: 'WebAssembly.Module';
    static imports(module: Module): { readonly name: string }[];
  }
  interface Memory {
    readonly buffer: ArrayBuffer;
  }
  class Instance {
    readonly exports: Readonly<Record<string, unknown>>;
    constructor(module: Module, imports: Readonly<Record<string, Readonly<Record<string, unknown>>>>);
  }
  function compile(bytes: Uint8Array): Promise<Module>;
}
