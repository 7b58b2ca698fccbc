/** What is used of espeak-ng, compiled to WebAssembly (it has no types of its own). */
declare module '@echogarden/espeak-ng-emscripten' {
  export interface Worker {
    /** 0 when the voice exists. */
    set_voice(name: string): number;
    /** @returns a string that ends in NUL, for the caller to destroy */
    convert_to_phonemes(text: string, ipa: boolean): Pointer;
  }

  /** Into `HEAPU8`. */
  export interface Pointer {
    readonly ptr: number;
  }

  export interface Module {
    /** Replaced whenever the memory grows. */
    readonly HEAPU8: Uint8Array;
    readonly eSpeakNGWorker: new () => Worker;
    /** Frees what it points at; without, it and a wrapper of its own stay for ever. */
    destroy(pointer: Pointer): void;
    /** Makes a file of espeak-ng's data. */
    FS_createDataFile?: CreateDataFile;
  }

  export type CreateDataFile = (
    path: string,
    name: null,
    data: Uint8Array,
    canRead: boolean,
    canWrite: boolean,
    canOwn: boolean,
  ) => void;

  /** @param module is filled in: its setters see what is put there */
  const initialise: (module?: Partial<Module>) => Promise<Module>;
  export { initialise as default };
}
