/** The part of espeak-ng (compiled to WebAssembly, without types of its own) that the engines use. */
declare module '@echogarden/espeak-ng-emscripten' {
  export interface Worker {
    /** @returns 0 if the voice exists */
    set_voice(name: string): number;
    /** @returns a string that ends in NUL; the caller destroys it */
    convert_to_phonemes(text: string, ipa: boolean): Pointer;
  }

  /** Offset in `HEAPU8`. */
  export interface Pointer {
    readonly ptr: number;
  }

  export interface Module {
    /** Replaced whenever the memory grows. */
    readonly HEAPU8: Uint8Array;
    readonly eSpeakNGWorker: new () => Worker;
    /** Frees what the pointer points at, and its wrapper; nothing else does. */
    destroy(pointer: Pointer): void;
    /** Returns the bytes of all data files of espeak-ng. Without it the module reads them from its own file. */
    getPreloadedPackage?: () => ArrayBuffer;
    /** Creates a data file of espeak-ng. The file keeps `data` itself, not a copy. */
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

  /** @param module receives the members of the module, through its setters if it has any */
  const initialise: (module?: Partial<Module>) => Promise<Module>;
  export { initialise as default };
}
