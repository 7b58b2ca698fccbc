/** espeak-ng in WebAssembly, as a function from text to phonemes. One a thread; it keeps a voice, nothing else. */
import { strict as assert } from 'node:assert';
import initialise, {
  type CreateDataFile,
  type Module,
  type Pointer,
  type Worker,
} from '@echogarden/espeak-ng-emscripten';
import { limits } from '../../src/limits.js';
import { allVoices } from './languages.js';

/** Descriptions of espeak-ng's voices: it reads all that are there when it starts, which takes as long as all the rest. */
const description = /^\/usr\/share\/espeak-ng-data\/(?:voices|lang)\/(?:.*\/)?([^/]*)$/;
const wanted: ReadonlySet<string> = new Set(allVoices.map((voice) => voice.toLowerCase()));

/** A module to be, that gets no description of a voice which nobody uses. */
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

export class Espeak {
  readonly #module: Module;
  readonly #worker: Worker;
  #voice = '';

  private constructor(module: Module) {
    this.#module = module;
    this.#worker = new module.eSpeakNGWorker();
  }

  static async load(): Promise<Espeak> {
    return new Espeak(await initialise(trimmed()));
  }

  /**
   * @param text at most `limits.phonemeTextMax` UTF-16 units, without markup or control characters
   * @param voice a name that espeak-ng has (`languages.ts`)
   * @returns groups of IPA, one for each word as espeak-ng sees words: `h_ə_l_ˈoʊ`
   */
  groups(text: string, voice: string): string[] {
    assert(text.length <= limits.phonemeTextMax, 'text for espeak-ng is over its bound');
    if (voice !== this.#voice) {
      assert.equal(this.#worker.set_voice(voice), 0, `espeak-ng has no voice "${voice}"`);
      this.#voice = voice;
    }
    const ipa = this.#take(this.#worker.convert_to_phonemes(text, true));
    // Clause marks are dropped: pauses follow the punctuation that the caller saw, not espeak-ng's reading of it.
    return ipa.split(/[\s|]+/).filter((group) => group !== '' && !/^_+$/.test(group));
  }
  #take(pointer: Pointer): string {
    const { ptr } = pointer;
    // Read from the module each time: the memory may have grown during the call.
    const heap = this.#module.HEAPU8;
    const text = decoder.decode(heap.subarray(ptr, heap.indexOf(0, ptr)));
    this.#module.destroy(pointer);
    return text;
  }
}
