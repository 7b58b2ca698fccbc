/** The package has no types. These are the used parts of its Emscripten module. Pointers are byte offsets. */
declare module '@echogarden/speex-resampler-wasm/simd' {
  export interface SpeexResamplerModule {
    readonly HEAPF32: Float32Array;
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
    /** Counts are read as what is offered and written as what was used. */
    _speex_resampler_process_float(
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
  interface Module {
    readonly [Symbol.toStringTag]: 'WebAssembly.Module';
  }
  function compile(bytes: Uint8Array): Promise<Module>;
}
