/**
 * A sentence in each voice, for the gallery of voices. The first request makes it. It is kept until the voices
 * change, and costs no credit. Listeners come first: a sample uses only spare capacity.
 */
import { defaultCodecFormat } from '../api/formats.js';
import { settingsOf } from '../api/speech-settings.js';
import type { Lease } from '../accounts/lease.js';
import type { Handler } from '../front/routes.js';
import { Query } from '../front/query.js';
import { Latest } from '../latest.js';
import type { Bounds } from '../limits.js';
import type { Speech } from '../speech/speech.js';
import type { Door } from './dispatch.js';
import { ConsoleRefusal } from './refusal.js';

const format = defaultCodecFormat('mp3');

/** Charges nothing, and has no slot. */
const freeLease: Lease = {
  account: '',
  settle: () => undefined,
  delivered: () => undefined,
  close: () => undefined,
  void: () => undefined,
};

export interface SamplesParts {
  readonly speech: Speech;
  /** What a voice that speaks now says; `undefined`: there is no such voice. */
  readonly textFor: (voiceId: string) => string | undefined;
  readonly bounds: Pick<Bounds, 'consoleSamplesMax' | 'consoleSamplesAtOnceMax'>;
}

const busy = (): ConsoleRefusal =>
  new ConsoleRefusal('unavailable', 'The service is too busy to make a sample now. Try again in a moment.');

export class Samples {
  readonly #parts: SamplesParts;
  /** Made, or being made. */
  #samples: Latest<string, Promise<Buffer>>;
  /** What the samples were made with. */
  #catalogue: Speech['voices'];
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(parts: SamplesParts) {
    this.#parts = parts;
    this.#catalogue = parts.speech.voices;
    this.#samples = new Latest(parts.bounds.consoleSamplesMax);
  }

  /** A whole mp3 file. @throws {ConsoleRefusal} there is no such voice, or no spare capacity now */
  of(voiceId: string): Promise<Buffer> {
    const { bounds, speech, textFor } = this.#parts;
    if (this.#catalogue !== speech.voices) {
      this.#catalogue = speech.voices;
      this.#samples = new Latest(bounds.consoleSamplesMax);
    }
    const text = textFor(voiceId);
    if (text === undefined) return Promise.reject(new ConsoleRefusal('notFound', 'There is no such voice.'));
    const samples = this.#samples;
    const known = samples.get(voiceId);
    if (known !== undefined) return known;
    const made = this.#inTurn(() => this.#make(voiceId, text));
    samples.add(voiceId, made);
    made.catch(() => samples.delete(voiceId));
    return made;
  }

  /** The queue has at most one entry for each voice. */
  async #inTurn(make: () => Promise<Buffer>): Promise<Buffer> {
    while (this.#running >= this.#parts.bounds.consoleSamplesAtOnceMax)
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#running++;
    try {
      return await make();
    } finally {
      this.#running--;
      this.#waiting.shift()?.();
    }
  }

  #make(voiceId: string, text: string): Promise<Buffer> {
    const { speech } = this.#parts;
    const settings = settingsOf({ voiceId, normalizeText: true });
    return new Promise((resolve, reject) => {
      if (!speech.admits({ lease: freeLease, settings, format, framing: 'whole', pieces: [{ text }] })) {
        reject(busy());
        return;
      }
      let head: Uint8Array = new Uint8Array(0);
      const pieces: Uint8Array[] = [];
      const options = { lease: freeLease, settings, format, framing: 'whole', timestamps: false } as const;
      const context = speech.open(options, (frame) => {
        if (frame.type === 'head') head = frame.bytes;
        if (typeof context === 'string') return;
        if (frame.type === 'audio') {
          pieces.push(Buffer.from(frame.bytes));
          context.handed(frame);
        }
        if (frame.type !== 'closed' && frame.type !== 'failed') return;
        context.release();
        // Its frames are pieces of one base64 text.
        if (frame.type === 'closed')
          resolve(Buffer.from(Buffer.concat([head, ...pieces]).toString('latin1'), 'base64'));
        else reject(new Error(frame.reason));
      });
      if (typeof context === 'string') {
        reject(busy());
        return;
      }
      context.append(text);
      context.end();
    });
  }
}

/** `GET /api/sample?voice` */
export const sampleRoute = (door: Door, samples: Samples): Handler =>
  door.forSession(async ({ query }) => {
    const body = await samples.of(new Query(query).get('voice') ?? '');
    return { status: 200, contentType: 'audio/mpeg', body };
  });
