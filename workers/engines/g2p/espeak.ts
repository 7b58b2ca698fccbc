/**
 * espeak-ng in WebAssembly, as a function from text to phonemes. A thread has one; its only state is the voice it was
 * set to. A change of voice reads and indexes a dictionary, which takes .2 ms. The dictionary of Russian has 8.5 MB and takes
 * 10 ms, so Russian has a module of its own (3 MB).
 */
import { strict as assert } from 'node:assert';
import initialise, {
  type CreateDataFile,
  type Module,
  type Pointer,
  type Worker,
} from '@echogarden/espeak-ng-emscripten';
import type { Bounds } from '../../../src/limits.js';
import { aside } from '../../../src/threads/effort.js';
import { sharedEspeakData } from '../../../src/threads/espeak-data.js';
import { defaultVoice } from './languages.js';

/** Files that describe espeak-ng's voices. It would read all of them when it starts, which takes most of that time. */
const description = /^\/usr\/share\/espeak-ng-data\/(?:voices|lang)\/((?:.*\/)?([^/]*))$/;

/** A description that is not in the module yet. */
interface Description {
  /** espeak-ng finds a file that came later only by its path. */
  readonly path: string;
  readonly create: () => void;
}

/**
 * Keeps the descriptions of voices out of the module until they are used.
 *
 * @param shared the module's data, instead of a copy of its own
 */
const trimmed = (withheld: Map<string, Description>, shared?: SharedArrayBuffer): Partial<Module> => {
  let create: CreateDataFile = () => undefined;
  return {
    // The module accepts no shared memory, so it gets an empty buffer: untouched pages take no memory. The offset of
    // each view says where its file lies in the shared data.
    ...(shared !== undefined && { getPreloadedPackage: () => new ArrayBuffer(shared.byteLength) }),
    get FS_createDataFile() {
      return create;
    },
    set FS_createDataFile(original: CreateDataFile) {
      create = (path, name, view, ...modes) => {
        const data = shared === undefined ? view : new Uint8Array(shared, view.byteOffset, view.length);
        withhold(path, name, data, ...modes);
      };
      const withhold: CreateDataFile = (path, ...more) => {
        const [, file, name = ''] = description.exec(path) ?? [];
        const voice = name.toLowerCase();
        if (file === undefined || voice === defaultVoice) original(path, ...more);
        else {
          // espeak-ng asks for paths in lower case.
          const late = path.replace(name, voice);
          withheld.set(voice, {
            path: file.toLowerCase(),
            create: () => {
              original(late, ...more);
            },
          });
        }
      };
    },
  };
};

const decoder = new TextDecoder();

type EspeakBounds = Pick<Bounds, 'phonemeTextMax'>;

/** Russian and its variants have a module of their own. */
const isLarge = (voice: string): boolean => /^ru(?:-|$)/.test(voice);

let loaded: Promise<Espeak> | undefined;

export class Espeak {
  readonly #module: Module;
  readonly #worker: Worker;
  readonly #textMax: number;
  readonly #withheld: Map<string, Description>;
  /** Paths of the voices that were used. */
  readonly #paths = new Map<string, string>();
  readonly #large: Espeak | null;
  #voice = '';

  private constructor(
    module: Module,
    withheld: Map<string, Description>,
    textMax: number,
    large: Espeak | null,
  ) {
    this.#module = module;
    this.#large = large;
    this.#withheld = withheld;
    this.#worker = new module.eSpeakNGWorker();
    this.#textMax = textMax;
  }

  /** @returns the thread's only instance, shared by all engines */
  static load({ phonemeTextMax }: EspeakBounds): Promise<Espeak> {
    const make = async (large: Espeak | null) => {
      const withheld = new Map<string, Description>();
      const module = await initialise(trimmed(withheld, sharedEspeakData()));
      return new Espeak(module, withheld, phonemeTextMax, large);
    };
    loaded ??= make(null)
      .then(make)
      .catch((error: unknown) => {
        loaded = undefined;
        throw error;
      });
    return loaded;
  }

  /**
   * @param text at most `bounds.phonemeTextMax` UTF-16 units, without markup or control characters
   * @param voice the name of an espeak-ng voice (`languages.ts`)
   * @returns groups of IPA, one for each word as espeak-ng sees words: `h_ə_l_ˈoʊ`
   */
  groups(text: string, voice: string): string[] {
    assert(text.length <= this.#textMax, 'text for espeak-ng is over its bound');
    if (this.#large !== null && isLarge(voice)) return this.#large.groups(text, voice);
    if (voice !== this.#voice) aside(() => this.#setVoice(voice));
    const ipa = this.#take(this.#worker.convert_to_phonemes(text, true));
    // Clause marks are dropped: pauses follow the punctuation of the text, not espeak-ng's reading of it.
    return ipa.split(/[\s|]+/).filter((group) => group !== '' && !/^_+$/.test(group));
  }

  #setVoice(voice: string): void {
    const description = this.#withheld.get(voice);
    if (description !== undefined) {
      description.create();
      this.#paths.set(voice, description.path);
      this.#withheld.delete(voice);
    }
    const name = this.#paths.get(voice) ?? voice;
    assert.equal(this.#worker.set_voice(name), 0, `espeak-ng has no voice "${voice}"`);
    this.#voice = voice;
  }

  #take(pointer: Pointer): string {
    const { ptr } = pointer;
    // Read `HEAPU8` each time: the memory may have grown during the call.
    const heap = this.#module.HEAPU8;
    const text = decoder.decode(heap.subarray(ptr, heap.indexOf(0, ptr)));
    this.#module.destroy(pointer);
    return text;
  }
}
