/** What is said in one response over HTTP, looked at as it comes: records, samples, or a whole result. */
import { createAudioCheck, createFileCheck } from '../rig-old/audio-check.js';
import { ContextCheck } from '../rig-old/context-check.js';
import type { WordTimes } from '../rig-old/server-frame.js';
import type { LoopClock } from './loop-clock.js';
import { endTrailMs, httpMsPerCharacter, wordMarginMs } from './plausible.js';
import { Player, judgeDry } from './player.js';
import type { HttpPlan } from './population.js';
import type { Tally } from './tally.js';

export interface AnswerParts {
  readonly key: string;
  readonly clock: LoopClock;
  readonly tally: Tally;
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
  readonly #player = new Player();
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
      onFault: (kind, what) => parts.tally.fault(kind, name, what),
    });
    this.#check.onFrame({ context_started: {} });
    this.#check.text(plan.text);
    this.#check.flush(flushId);
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
    // Only whole samples are looked at; the last byte of a part may be half of one.
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
    this.#parts.tally.audioMs += this.#check.durationMs;
  }

  /** The body is at its end. */
  end(): void {
    if (this.#rest.length > 0) this.#fault('the body ends within a record');
    this.#check.onFrame({ flush_completed: true, flush_id: flushId });
    this.#check.ended();
    this.#parts.tally.spoken(this.#parts.key, this.#plan.text.length);
  }

  #record(text: string): void {
    this.#parts.tally.frames++;
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
    const { clock, tally } = this.#parts;
    const nowMs = performance.now();
    const beforeMs = this.#check.durationMs;
    this.#check.onFrame({ audio_chunk: base64 });
    const { durationMs } = this.#check;
    tally.audioMs += durationMs - beforeMs;
    if (!this.#heardAny) tally.heardFirst(nowMs - this.#askedMs);
    this.#heardAny = true;
    const sinceMs = this.#player.onAudio(durationMs, nowMs);
    if (sinceMs === null) return;
    const clientLateMs = clock.latenessMs(sinceMs, nowMs);
    const textCompleteMs = this.#askedMs;
    tally.dry(this.#name, judgeDry({ sinceMs, untilMs: nowMs, textCompleteMs, clientLateMs }));
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
    this.#parts.tally.fault('frames', this.#name, what);
  }
}
