/** A client over HTTP: one request after the other, each as it was drawn, every record of its answer looked at. */
import { Agent, request, type ClientRequest, type IncomingMessage } from 'node:http';
import { HttpAnswer } from './http-answer.js';
import type { LoopClock } from './loop-clock.js';
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

  /** Its next request goes out then. */
  resume(beginMs: number): void {
    this.#isStopping = false;
    if (this.#state !== 'gone') return;
    this.#state = 'resting';
    this.#sinceMs = beginMs - this.#plan.pauseMs;
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
    const answer = new HttpAnswer(this.#parts, this.#plan, this.#name, this.#sinceMs);
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
