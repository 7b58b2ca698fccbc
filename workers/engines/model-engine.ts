/** What the engines of all formats have in common: a pack whose graphs are loaded, and warmed up by speaking. */
import type { SegmentRequest } from '../../src/threads/messages.js';
import { type Voice, type VoicePack, VoicePackError } from '../../src/threads/voices.js';
import type { Engine, SegmentSynthesis } from './engine.js';
import { firstLine } from './entries.js';
import type { Sessions } from './onnx.js';
import { chunksOf } from './steps.js';

/** @typeParam Measured what the warm-up finds out */
export abstract class ModelEngine<Measured = true> implements Engine {
  voices: readonly Voice[];
  readonly executionProvider: Engine['executionProvider'];
  readonly batches: Engine['batches'];
  readonly release: Engine['release'];
  measured: Measured | undefined;
  /** The warm-up has run every window of every graph: a GPU runs no other. */
  protected readonly settle: () => void;
  readonly #doubt: Sessions['doubt'];

  constructor({ voices }: VoicePack, sessions: Omit<Sessions, 'run'>) {
    this.voices = voices;
    this.executionProvider = sessions.executionProvider;
    this.batches = sessions.batches;
    this.release = sessions.release;
    this.settle = sessions.settle;
    this.#doubt = sessions.doubt;
  }

  abstract open(request: SegmentRequest): SegmentSynthesis;

  /** Speaks, because the first runs take many times as long. */
  protected abstract warmUp(): Promise<Measured>;

  /**
   * Warms up, unless an earlier load did.
   * @param fault the file that is at fault if that fails, and how
   * @throws {VoicePackError}
   */
  async ready(measured: unknown, fault: string): Promise<this> {
    this.measured = measured as Measured | undefined;
    if (measured !== undefined) return this;
    try {
      this.measured = await this.warmUp();
      this.settle();
    } catch (error) {
      await this.release();
      await this.#doubt?.();
      throw new VoicePackError(`${fault}: ${firstLine(error)}`);
    }
    return this;
  }

  /** @returns the place of the voice in the pack @throws {RangeError} if it has no such voice */
  protected placeOf({ settings: { voiceId } }: SegmentRequest): number {
    const place = this.voices.findIndex(({ id }) => id === voiceId);
    if (place < 0) throw new RangeError(`unknown voice "${voiceId}"`);
    return place;
  }

  /** Speaks to the end. @returns the loudest sample */
  protected async loudestOf(request: SegmentRequest): Promise<number> {
    let loudest = 0;
    for await (const { pcm } of chunksOf(this.open(request)))
      for (const sample of pcm) loudest = Math.max(loudest, Math.abs(sample));
    return loudest;
  }
}
