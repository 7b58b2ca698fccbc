/**
 * espeak-ng in WebAssembly, as a function from text to phonemes. A thread has one; its only state is the voice it was
 * set to.
 */
import { strict as assert } from 'node:assert';
import initialise, {
  type CreateDataFile,
  type Module,
  type Pointer,
  type Worker,
} from '@echogarden/espeak-ng-emscripten';
import type { Bounds } from '../../../src/limits.js';
import { allVoices } from './languages.js';

/**
 * Files that describe espeak-ng's voices. It reads all of them when it starts, which takes as long as everything
 * else.
 */
const description = /^\/usr\/share\/espeak-ng-data\/(?:voices|lang)\/(?:.*\/)?([^/]*)$/;
const wanted: ReadonlySet<string> = new Set(allVoices.map((voice) => voice.toLowerCase()));

/** Keeps the descriptions of voices that nothing uses out of the module. */
const trimmed = (): Partial<Module> => {
  let create: CreateDataFile = () => undefined;
  return {
    get FS_createDataFile() {
      return create;
    },
    set FS_createDataFile(original: CreateDataFile) {
      create = (path, ...more) => {
        const voice = description.exec(path)?.[1];
        if (voice === undefined || wanted.has(voice.toLowerCase())) original(path, ...more);
      };
    },
  };
};

const decoder = new TextDecoder();

type EspeakBounds = Pick<Bounds, 'phonemeTextMax'>;

let loaded: Promise<Espeak> | undefined;

export class Espeak {
  readonly #module: Module;
  readonly #worker: Worker;
  readonly #textMax: number;
  #voice = '';

  private constructor(module: Module, textMax: number) {
    this.#module = module;
    this.#worker = new module.eSpeakNGWorker();
    this.#textMax = textMax;
  }

  /** @returns the thread's only instance, shared by all engines */
  static load({ phonemeTextMax }: EspeakBounds): Promise<Espeak> {
    const make = async () => new Espeak(await initialise(trimmed()), phonemeTextMax);
    loaded ??= make().catch((error: unknown) => {
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
    if (voice !== this.#voice) {
      assert.equal(this.#worker.set_voice(voice), 0, `espeak-ng has no voice "${voice}"`);
      this.#voice = voice;
    }
    const ipa = this.#take(this.#worker.convert_to_phonemes(text, true));
    // Clause marks are dropped: pauses follow the punctuation of the text, not espeak-ng's reading of it.
    return ipa.split(/[\s|]+/).filter((group) => group !== '' && !/^_+$/.test(group));
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
