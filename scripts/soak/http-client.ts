/** A client over HTTP: one request after the other, each as it was drawn, every record of its answer looked at. */
import { Agent, request, type ClientRequest, type IncomingMessage } from 'node:http';
import { createAudioCheck } from '../load/audio-check.js';
import { ContextCheck } from '../load/context-check.js';
import type { WordTimes } from '../load/server-frame.js';
import type { LoopClock } from './loop-clock.js';
import { wordMarginMs } from './plausible.js';
import { Player, judgeDry } from './player.js';
import { drawHttp, type HttpPlan } from './population.js';
import type { Target } from './protocol.js';
import type { Tally } from './tally.js';

/** A whole text of some sentences takes a second or two. */
const answerMsMax = 30_000;

export interface HttpParts {
  readonly seed: number;
  readonly client: number;
  readonly key: string;
  readonly target: Target;
  readonly clock: LoopClock;
  readonly tally: Tally;
}

type StreamRecord =
  { readonly type: 'audio'; readonly audio_chunk: string } | ({ readonly type: 'timestamps' } & WordTimes);

const paths = {
  stream: '/v1/tts/stream',
  whole: '/v1/tts',
  webhook: '/v1/tts/integrations/voiceplatform',
} as const;

/** What a request that is wrong must be answered with. */
const refusals = { voice: 422, body: 422, key: 401 } as const;

const bodyOf = (plan: HttpPlan, voice: string): object => {
  const { format, text, timestamps } = plan;
  const spoken = plan.wrong === 'body' ? 7 : text;
  if (plan.route === 'webhook')
    return { message: { type: 'voice-request', text: spoken, sampleRate: format.sampleRateHz } };
  return {
    text: spoken,
    voice,
    timestamps,
    response_format: {
      encoding: format.encoding,
      sample_rate: format.sampleRateHz,
      ...('bitrateKbps' in format && { bitrate: format.bitrateKbps }),
    },
  };
};

export class HttpClient {
  readonly #parts: HttpParts;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  #state: 'resting' | 'waiting' | 'gone' = 'resting';
  #sinceMs: number;
  #request = -1;
  #plan: HttpPlan;
  #call: ClientRequest | null = null;
  /** What comes of an earlier request is of no interest any more. */
  #generation = 0;
  #isStopping = false;

  constructor(parts: HttpParts, nowMs: number) {
    this.#parts = parts;
    this.#plan = drawHttp(parts.seed, parts.client, 0);
    this.#sinceMs = nowMs;
  }

  get isGone(): boolean {
    return this.#state === 'gone';
  }

  stop(): void {
    this.#isStopping = true;
  }

  tick(nowMs: number): void {
    if (this.#state === 'resting') {
      if (this.#isStopping) {
        this.#state = 'gone';
        this.#agent.destroy();
      } else if (nowMs - this.#sinceMs >= this.#plan.pauseMs) this.#ask(nowMs);
      return;
    }
    if (this.#state === 'gone') return;
    const { abortAfterMs } = this.#plan;
    const waitedMs = nowMs - this.#sinceMs;
    if (abortAfterMs !== null && waitedMs >= abortAfterMs) this.#end();
    else if (waitedMs > answerMsMax) {
      this.#parts.tally.fault('answers', this.#name, 'a request is not answered');
      this.#end();
    }
  }

  get #name(): string {
    return `http ${String(this.#parts.client)}.${String(this.#request)}`;
  }

  #ask(nowMs: number): void {
    const { client, key, seed, tally, target } = this.#parts;
    this.#plan = drawHttp(seed, client, ++this.#request);
    // A tidy client's key is charged to the character, see `isTidy`.
    if (client % 2 === 0) this.#plan = { ...this.#plan, abortAfterMs: null };
    const plan = this.#plan;
    this.#state = 'waiting';
    this.#sinceMs = nowMs;
    tally.requests++;
    if (plan.wrong === null) {
      tally.streams++;
      tally.sent(key, plan.text.length);
    }
    const voice = plan.wrong === 'voice' ? 'nobody' : target.voices[plan.voice % target.voices.length]!;
    const query = plan.route === 'webhook' ? `?voice=${voice}` : '';
    this.#send(Buffer.from(JSON.stringify(bodyOf(plan, voice))), `${paths[plan.route]}${query}`);
  }

  #send(body: Buffer, path: string): void {
    const { key, target } = this.#parts;
    const generation = ++this.#generation;
    const isCurrent = () => generation === this.#generation;
    const call = request({
      host: target.host,
      port: target.port,
      method: 'POST',
      path,
      agent: this.#agent,
      headers: {
        'x-api-key': this.#plan.wrong === 'key' ? `${key}0` : key,
        'content-type': 'application/json',
        'content-length': body.length,
      },
    });
    this.#call = call;
    call.on('response', (response) => {
      if (isCurrent()) this.#onResponse(response, isCurrent);
    });
    call.on('error', (error: NodeJS.ErrnoException) => {
      if (!isCurrent()) return;
      // A kept connection that idled is closed by the service, as it says: asked anew, on a new one.
      if (call.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE'))
        this.#send(body, path);
      else {
        this.#parts.tally.fault('statuses', this.#name, error.message);
        this.#end();
      }
    });
    call.end(body);
  }

  #onResponse(response: IncomingMessage, isCurrent: () => boolean): void {
    const { tally } = this.#parts;
    const { wrong, route } = this.#plan;
    const status = response.statusCode ?? 0;
    const expected = wrong === null ? 200 : refusals[wrong];
    if (status !== expected)
      tally.fault('statuses', this.#name, `${String(status)} where ${String(expected)} must be`);
    response.on('error', () => {
      if (!isCurrent()) return;
      tally.fault('statuses', this.#name, 'the response broke off');
      this.#end();
    });
    if (status !== 200 || wrong !== null) {
      response.resume().on('end', () => isCurrent() && this.#end());
      return;
    }
    const answer = new Answer(this.#parts, this.#plan, this.#name, this.#sinceMs);
    const parts: Buffer[] = [];
    response.on('data', (bytes: Buffer) => {
      if (!isCurrent()) return;
      if (route === 'stream') answer.records(bytes);
      else if (route === 'webhook') answer.samples(bytes);
      else parts.push(bytes);
    });
    response.on('end', () => {
      if (!isCurrent()) return;
      if (route === 'whole') answer.whole(Buffer.concat(parts));
      answer.end();
      this.#end();
    });
  }

  #end(): void {
    if (this.#state !== 'waiting') return;
    this.#generation++;
    // After its end this does nothing.
    this.#call?.destroy();
    this.#call = null;
    if (this.#plan.wrong === null) this.#parts.tally.streams--;
    this.#state = 'resting';
    this.#sinceMs = performance.now();
  }
}

/** What is said in one response. */
class Answer {
  readonly #parts: HttpParts;
  readonly #plan: HttpPlan;
  readonly #name: string;
  readonly #askedMs: number;
  readonly #check: ContextCheck;
  readonly #player = new Player();
  #rest: Buffer = Buffer.alloc(0);
  #heardAny = false;

  constructor(parts: HttpParts, plan: HttpPlan, name: string, askedMs: number) {
    this.#parts = parts;
    this.#plan = plan;
    this.#name = name;
    this.#askedMs = askedMs;
    const isFile = plan.route === 'whole' && plan.format.encoding !== 'linear16';
    this.#check = new ContextCheck({
      id: name,
      audio: createAudioCheck(plan.format),
      timestamps: plan.timestamps,
      trailMs: null,
      wordMarginMs: plan.route === 'stream' ? wordMarginMs(plan.format) : null,
      msPerCharacter: isFile ? null : { min: 25, max: 250 },
      onFault: (kind, what) => parts.tally.fault(kind, name, what),
    });
    this.#check.onFrame({ context_started: {} });
    this.#check.text(plan.text);
    this.#check.flush('end');
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
    const { audio, timestamps } = JSON.parse(body.toString('utf8')) as {
      audio: string;
      timestamps?: WordTimes | null;
    };
    if (timestamps !== undefined && timestamps !== null) this.#check.onFrame({ timestamps });
    const bytes = Buffer.from(audio, 'base64');
    const { format, text } = this.#plan;
    // Its head is that of a file, which no stream has; so its length alone is looked at.
    const bitsPerSecond =
      'bitrateKbps' in format
        ? format.bitrateKbps * 1000
        : format.sampleRateHz * (/law$/.test(format.encoding) ? 8 : 16);
    const msPerCharacter = (bytes.length * 8_000) / bitsPerSecond / text.length;
    if (!(msPerCharacter >= 15 && msPerCharacter <= 300))
      this.#fault(`${String(bytes.length)} bytes of audio for ${String(text.length)} characters`);
    this.#parts.tally.audioMs += (bytes.length * 8_000) / bitsPerSecond;
  }

  end(): void {
    if (this.#rest.length > 0) this.#fault('the body ends within a record');
    if (this.#plan.route !== 'whole') this.#check.onFrame({ flush_completed: true, flush_id: 'end' });
    this.#parts.tally.spoken(this.#parts.key, this.#plan.text.length);
  }

  #record(text: string): void {
    this.#parts.tally.frames++;
    if (!text.startsWith('data: ')) {
      this.#fault(`no record: ${text.slice(0, 100)}`);
      return;
    }
    const record = JSON.parse(text.slice('data: '.length)) as StreamRecord;
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

  #fault(what: string): void {
    this.#parts.tally.fault('frames', this.#name, what);
  }
}
