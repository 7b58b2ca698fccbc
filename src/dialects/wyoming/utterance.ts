/**
 * One text that the service speaks for a connection: whole, or in pieces as they arrive.
 *
 *   open --text*--> --end--> ending --(socket has the last event)--> over
 *   open, ending --(refused, fault)--> over   error;  any --(client gone, dropped)--> over   nothing
 */
import { randomUUID } from 'node:crypto';
import type { Admission } from '../../accounts/admission.js';
import type { SpeechSettings } from '../../api/speech-settings.js';
import { errors, type ErrorCode, type ErrorRow } from '../../errors.js';
import { describeFault } from '../../fault.js';
import type { KeyUse } from '../../front/keys-in-use.js';
import { endRequest } from '../../front/request-end.js';
import type { InFlight, Services } from '../../front/services.js';
import { SocketLease, type LeaseShare } from '../../front/ws/socket-lease.js';
import { refusalOf, type RefusalReason } from '../../metrics.js';
import { FirstAudio } from '../../speech/first-audio.js';
import type { Speech, SpeechContext } from '../../speech/speech.js';
import type { ActiveKey } from '../../store/store.js';
import { codePointCount } from '../../text/code-points.js';
import type { Frame } from '../../threads/messages.js';
import { encodeEvent } from './events.js';

/** How it ended, for the log. */
export type UtteranceOutcome =
  | 'complete'
  | 'aborted'
  | 'failed'
  | 'reader-stalled'
  | 'silent'
  | 'flooded'
  | 'refused';

export interface UtteranceParts {
  readonly services: Services;
  readonly speech: Speech;
  readonly admission: Pick<Admission, 'admit'>;
  readonly key: ActiveKey;
  /** The client's: its slots are its own. */
  readonly address: string;
  readonly route: string;
  /** Its voice exists. */
  readonly settings: SpeechSettings;
  /** The client sent `synthesize-start`: it waits for `synthesize-stopped`. */
  readonly isStreamed: boolean;
  /** @param onHanded called when the socket has all of it */
  readonly send: (bytes: Buffer, onHanded: () => void) => void;
  /** Bytes that wait for the socket. */
  readonly queuedBytes: () => number;
  /** It was refused or failed. The connection must end, because a client that waits for audio reads no other event. */
  readonly onFailed: () => void;
  readonly onOver: () => void;
}

const BYTES_A_SAMPLE = 2;
/** The answer to blank text is this much silence, as on the other ports: players refuse a file without a sample. */
const SILENCE_MS = 100;

type Refused = Exclude<ErrorCode, 'internal'>;

export class Utterance implements InFlight {
  readonly route: string;
  readonly sender: { readonly queuedBytes: number };
  readonly #parts: UtteranceParts;
  readonly #id = randomUUID();
  readonly #startMs: number;
  readonly #sampleRateHz: number;
  readonly #share: LeaseShare;
  readonly #lease: SocketLease;
  readonly #use: KeyUse;
  #context: SpeechContext | null = null;
  #firstAudio: FirstAudio | undefined;
  #characters = 0;
  #hasAudio = false;
  #isEnding = false;
  #isOver = false;

  constructor(parts: UtteranceParts) {
    const { admission, address, key, services, settings, speech } = parts;
    const { bounds, clock, keys, registry, textBudget } = services;
    this.#parts = parts;
    this.route = parts.route;
    this.#startMs = clock();
    this.sender = {
      get queuedBytes() {
        return parts.queuedBytes();
      },
    };
    this.#sampleRateHz = speech.voices.sampleRateHz(settings.voiceId);
    this.#lease = new SocketLease({
      admission: { admit: (payer, characters, id) => admission.admit(payer, characters, id, address) },
      key,
      requestId: this.#id,
      charactersMax: bounds.bodyBytesMax,
      textBudget: textBudget.of(key.accountId),
      onHeld: () => undefined,
    });
    this.#share = this.#lease.share();
    this.#use = keys.use(key, (now) => {
      if (now === null && !this.#isOver) this.#refuse('keyUnknown');
    });
    registry.add(this);
  }

  /** Call it once, before the other methods. It may refuse the text. */
  begin(): void {
    const { settings, speech } = this.#parts;
    const opened = speech.open(
      {
        lease: this.#share,
        settings,
        format: { encoding: 'pcm', sampleRateHz: this.#sampleRateHz },
        framing: 'raw-pieces',
        timestamps: false,
      },
      (frame) => this.#onFrame(frame),
    );
    if (typeof opened === 'string') this.#refuse('unavailable', opened);
    else this.#context = opened;
  }

  get hasContext(): boolean {
    return this.#context !== null;
  }

  /** Its text is complete. */
  get isEnding(): boolean {
    return this.#isEnding;
  }

  text(text: string): void {
    const context = this.#context;
    if (this.#isOver || context === null || text === '') return;
    const { clock, metrics } = this.#parts.services;
    const characters = codePointCount(text);
    this.#firstAudio ??= new FirstAudio(clock(), 0, (figure, ms) =>
      metrics.firstAudio(figure, this.route, 'pcm', ms),
    );
    const refusal = this.#share.add(characters, true);
    if (refusal !== null) this.#refuse(refusal);
    else if (context.admits(text)) {
      this.#characters += characters;
      context.append(text);
    } else this.#refuse('overloaded');
  }

  /** No text follows. */
  end(): void {
    this.#isEnding = true;
    if (!this.#isOver) this.#context?.end();
  }

  /** The client is gone, or the service drops it: nothing more is sent. Idempotent. */
  abandon(outcome: Exclude<UtteranceOutcome, 'complete' | 'refused'>): void {
    this.#over(outcome, undefined);
  }

  /** The service ends it. */
  drop(outcome: 'failed'): void {
    this.abandon(outcome);
    this.#parts.onFailed();
  }

  /** @param cause for the log; it must not quote the client */
  fail(cause: Readonly<Record<string, unknown>>): void {
    if (this.#isOver) return;
    const { log, metrics } = this.#parts.services;
    log.error({ requestId: this.#id, route: this.route, ...cause }, 'request failed');
    metrics.failed(this.route);
    this.#sendError('internal', 'internal');
    this.#over('failed', errors.internal.status);
    this.#parts.onFailed();
  }

  #onFrame(frame: Frame): void {
    try {
      if (!this.#isOver) this.#take(frame);
    } catch (error) {
      this.fail(describeFault(error));
    }
  }

  #take(frame: Frame): void {
    switch (frame.type) {
      case 'audio':
        this.#sendAudio(frame.bytes, () => {
          this.#firstAudio?.handed(this.#parts.services.clock(), frame);
          this.#context?.handed(frame);
        });
        return;
      case 'closed':
        this.#finish();
        return;
      case 'failed':
        if (frame.code === undefined) this.fail({ reason: frame.reason });
        else this.#refuse(frame.code);
        return;
      case 'spoken':
      case 'flushed':
        return;
      case 'timestamps':
      case 'head':
        throw new Error(`bare audio has no ${frame.type}`);
    }
  }

  #sendAudio(samples: Uint8Array, onHanded: () => void = () => undefined): void {
    const format = { rate: this.#sampleRateHz, width: BYTES_A_SAMPLE, channels: 1 };
    if (!this.#hasAudio) this.#send(encodeEvent('audio-start', format));
    this.#hasAudio = true;
    this.#send(encodeEvent('audio-chunk', format, samples), onHanded);
  }

  #finish(): void {
    if (!this.#hasAudio)
      this.#sendAudio(new Uint8Array((this.#sampleRateHz * BYTES_A_SAMPLE * SILENCE_MS) / 1_000));
    const ends = ['audio-stop', ...(this.#parts.isStreamed ? ['synthesize-stopped'] : [])];
    this.#send(Buffer.concat(ends.map((type) => encodeEvent(type))), () => this.#over('complete', 200));
  }

  #send(bytes: Buffer, onHanded: () => void = () => undefined): void {
    this.#parts.send(bytes, () => {
      if (!this.#isOver) onHanded();
    });
  }

  #refuse(code: Refused, reason: RefusalReason = refusalOf(code)): void {
    const { services } = this.#parts;
    services.metrics.refused(reason);
    this.#sendError(code, reason);
    this.#over('refused', errors[code].status, reason);
    this.#parts.onFailed();
  }

  #sendError(code: ErrorCode, name: string): void {
    const row: ErrorRow = errors[code];
    this.#parts.send(encodeEvent('error', { text: row.socketText ?? code, code: name }), () => undefined);
  }

  #over(outcome: UtteranceOutcome, status: number | undefined, refusal?: RefusalReason): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#isEnding = true;
    const { key, services, settings } = this.#parts;
    this.#context?.release();
    this.#share.close();
    this.#lease.giveBack();
    this.#use.end();
    services.registry.delete(this);
    endRequest(services, {
      ...{ requestId: this.#id, key, route: this.route, status, outcome, refusal },
      voice: settings.voiceId,
      characters: this.#characters,
      startMs: this.#startMs,
      firstAudio: this.#firstAudio,
    });
    this.#parts.onOver();
  }
}
