/** Checks one response over HTTP as it comes: records, raw samples, or a whole result. */
import { createAudioCheck, createFileCheck } from '../rig/audio-check.js';
import { ContextCheck } from '../rig/context-check.js';
import type { WordTimes } from '../rig/socket.js';
import { Playback } from '../rig/playback.js';
import type { LoopClock, Meter } from './meter.js';
import { endTrailMs, httpMsPerCharacter, judgeDry, wordMarginMs } from './plausible.js';
import type { HttpPlan } from './population.js';

export interface AnswerParts {
  readonly key: string;
  readonly clock: LoopClock;
  readonly meter: Meter;
}

type StreamRecord =
  { readonly type: 'audio'; readonly audio_chunk: string } | ({ readonly type: 'timestamps' } & WordTimes);

interface WholeResult {
  readonly audio: string;
  readonly timestamps?: WordTimes | null;
}

const flushId = 'end';

export class HttpAnswer {
  readonly #parts: AnswerParts;
  readonly #plan: HttpPlan;
  readonly #name: string;
  readonly #askedMs: number;
  readonly #check: ContextCheck;
  readonly #playback = new Playback();
  #rest: Buffer = Buffer.alloc(0);
  #heardAny = false;

  constructor(parts: AnswerParts, plan: HttpPlan, name: string, askedMs: number) {
    this.#parts = parts;
    this.#plan = plan;
    this.#name = name;
    this.#askedMs = askedMs;
    const { format, route, timestamps } = plan;
    this.#check = new ContextCheck({
      id: name,
      audio: route === 'whole' ? createFileCheck(format) : createAudioCheck(format),
      timestamps,
      trailMs: endTrailMs,
      wordMarginMs: route === 'stream' ? wordMarginMs(format) : null,
      msPerCharacter: httpMsPerCharacter,
      onFault: (kind, what) => parts.meter.fault(kind, name, what),
    });
    this.#check.onFrame({ context_started: {} });
    this.#check.text(plan.text);
    this.#check.flush(flushId);
    this.#playback.begin(askedMs);
  }

  records(bytes: Buffer): void {
    const text = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    let from = 0;
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n', from)) {
      this.#record(text.toString('utf8', from, end));
      from = end + 2;
    }
    this.#rest = text.subarray(from);
  }

  samples(bytes: Buffer): void {
    // The last byte of a part may be half a sample.
    const all = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    const whole = all.length - (all.length % 2);
    this.#rest = all.subarray(whole);
    if (whole > 0) this.#audio(all.toString('base64', 0, whole));
  }

  whole(body: Buffer): void {
    const result = this.#parsed(body.toString('utf8')) as WholeResult | null;
    if (result === null) return;
    const { audio, timestamps = null } = result;
    if (timestamps !== null) this.#check.onFrame({ timestamps });
    this.#check.onFrame({ audio_chunk: audio });
    this.#parts.meter.audioMs += this.#check.durationMs;
  }

  /** The body has ended. */
  end(): void {
    if (this.#rest.length > 0) this.#fault('the body ends within a record');
    this.#check.onFrame({ flush_completed: true, flush_id: flushId });
    this.#check.ended();
    this.#parts.meter.spoken(this.#parts.key, this.#plan.text.length);
  }

  #record(text: string): void {
    this.#parts.meter.frames++;
    const prefix = 'data: ';
    if (!text.startsWith(prefix)) {
      this.#fault(`no record: ${text.slice(0, 100)}`);
      return;
    }
    const record = this.#parsed(text.slice(prefix.length)) as StreamRecord | null;
    if (record === null) return;
    if (record.type === 'audio') this.#audio(record.audio_chunk);
    else this.#check.onFrame({ timestamps: record });
  }

  #audio(base64: string): void {
    const { clock, meter } = this.#parts;
    const nowMs = performance.now();
    const beforeMs = this.#check.durationMs;
    this.#check.onFrame({ audio_chunk: base64 });
    const { durationMs } = this.#check;
    meter.audioMs += durationMs - beforeMs;
    if (!this.#heardAny) meter.heardFirst(nowMs - this.#askedMs);
    this.#heardAny = true;
    const arrival = this.#playback.audio(durationMs, nowMs);
    if (arrival?.kind !== 'dry') return;
    const { sinceMs } = arrival;
    const clientLateMs = clock.latenessMs(sinceMs, nowMs);
    const textCompleteMs = this.#askedMs;
    meter.dry(this.#name, judgeDry({ sinceMs, untilMs: nowMs, textCompleteMs, clientLateMs }));
  }

  #parsed(json: string): unknown {
    try {
      return JSON.parse(json);
    } catch {
      this.#fault(`no JSON: ${json.slice(0, 100)}`);
      return null;
    }
  }

  #fault(what: string): void {
    this.#parts.meter.fault('frames', this.#name, what);
  }
}
