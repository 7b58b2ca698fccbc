/**
 * A client over HTTP, of the service or of OpenAI's API: one request after the other, each as drawn, with every record of the
 * response checked. It hears each stream to its end before the next request; a whole result is a file, which nobody hears.
 */
import { CheckedAnswer } from '../rig/checked-answer.js';
import { encodeRequest, HttpConnection, responseFormat } from '../rig/http.js';
import { Playback } from '../rig/playback.js';
import { SoakClient, type ClientParts } from './client.js';
import { plausible } from './plausible.js';
import { drawHttp, drawOpenAi, isTidy, type HttpPlan } from './population.js';

/** In an overload, a whole result waits for listeners: as long as the contract tells clients to wait. */
const wholeMsMax = 180_000;

export interface HttpClientParts extends ClientParts {
  /** Of OpenAI's API; `null`: it uses that of the service. */
  readonly openAiPort: number | null;
}

const paths = {
  stream: '/v1/tts/stream',
  whole: '/v1/tts',
  webhook: '/v1/tts/integrations/voiceplatform',
  openai: '/v1/audio/speech',
  'openai-events': '/v1/audio/speech',
} as const;

const kinds = {
  stream: 'records',
  whole: 'whole',
  webhook: 'samples',
  openai: 'samples',
  'openai-events': 'events',
} as const;

const isOpenAi = ({ route }: HttpPlan): boolean => route.startsWith('openai');

/** The status for what is wrong with a request. */
const refusalOf = (plan: HttpPlan): number => {
  if (plan.wrong === 'key') return 401;
  return isOpenAi(plan) ? 400 : 422;
};

const bodyOf = (plan: HttpPlan, voice: string): object => {
  const { format, text, timestamps } = plan;
  const spoken = plan.wrong === 'body' ? 7 : text;
  if (isOpenAi(plan))
    return {
      ...{ model: 'tts-1', voice, input: spoken, response_format: format.encoding },
      ...(plan.route === 'openai-events' && { stream_format: 'sse' }),
    };
  if (plan.route === 'webhook')
    return { message: { type: 'voice-request', text: spoken, sampleRate: format.sampleRateHz } };
  return { text: spoken, voice, timestamps, response_format: responseFormat(format) };
};

export class HttpClient extends SoakClient<HttpClientParts> {
  readonly #draw: typeof drawHttp;
  #sinceMs = 0;
  #request = -1;
  #plan: HttpPlan;
  #playback = new Playback();
  /** Kept between requests. */
  #connection: HttpConnection | null = null;

  constructor(parts: HttpClientParts) {
    super(parts);
    this.#draw = parts.openAiPort === null ? drawHttp : drawOpenAi;
    this.#plan = this.#draw(parts.seed, parts.client, 0);
  }

  protected override left(): void {
    this.#disconnect();
  }

  protected override act(nowMs: number): void {
    const { abortAfterMs } = this.#plan;
    const waitedMs = nowMs - this.#sinceMs;
    if (abortAfterMs !== null && waitedMs >= abortAfterMs) this.#abort();
    else if (waitedMs > this.#answerMsMax) {
      this.fault('answers', 'a request is not answered');
      this.#abort();
    }
  }

  get #answerMsMax(): number {
    const { route, text } = this.#plan;
    // At capacity a stream comes as fast as it is played.
    const answerMsMax = 2 * this.parts.answerMsMax;
    if (!this.parts.mayRefuse) return answerMsMax;
    const { httpMsPerCharacter } = plausible(this.parts.target);
    return route === 'whole' ? wholeMsMax : answerMsMax + text.length * httpMsPerCharacter.max;
  }

  protected override get name(): string {
    return `http ${this.parts.client}.${this.#request}`;
  }

  protected override begin(nowMs: number): void {
    const { client, key, meter, seed, target } = this.parts;
    this.#plan = this.#draw(seed, client, ++this.#request);
    // The key of a tidy client is charged to the character.
    if (isTidy(client)) this.#plan = { ...this.#plan, abortAfterMs: null };
    const plan = this.#plan;
    this.#sinceMs = nowMs;
    this.#playback = new Playback();
    meter.requests++;
    if (plan.wrong === null) {
      meter.streams++;
      meter.sent(key, plan.text.length);
    }
    const voice = plan.wrong === 'voice' ? 'nobody' : target.voices[plan.voice % target.voices.length]!;
    const query = plan.route === 'webhook' ? `?voice=${voice}` : '';
    const request = encodeRequest({
      path: `${paths[plan.route]}${query}`,
      key: plan.wrong === 'key' ? `${key}0` : key,
      body: bodyOf(plan, voice),
    });
    this.#send(request, plan.wrong === null ? this.#answer(nowMs) : null);
  }

  #answer(askedMs: number): CheckedAnswer {
    const { meter, target } = this.parts;
    const { format, route, text, timestamps } = this.#plan;
    const { endTrailMs, wordMarginMs, httpMsPerCharacter } = plausible(target);
    const name = this.name;
    const playback = this.#playback;
    playback.begin(askedMs);
    const reply = { isSpoilt: false };
    let heardMs = 0;
    return new CheckedAnswer({
      id: name,
      kind: kinds[route],
      format,
      text,
      timestamps,
      trailMs: endTrailMs,
      wordMarginMs: route === 'stream' ? wordMarginMs(format) : null,
      msPerCharacter: httpMsPerCharacter,
      onFault: (kind, what) => meter.fault(kind, name, what),
      onAudio: (durationMs) => {
        const nowMs = performance.now();
        meter.audioMs += durationMs - heardMs;
        heardMs = durationMs;
        const arrival = route === 'whole' ? null : playback.audio(durationMs, nowMs);
        this.hear(arrival, nowMs, askedMs, reply);
      },
    });
  }

  /** @param answer `null` for a request that the service must refuse */
  #send(request: Buffer, answer: CheckedAnswer | null): void {
    const { text, wrong } = this.#plan;
    const { key, mayFail, mayRefuse, meter, openAiPort, target } = this.parts;
    const expected = wrong === null ? 200 : refusalOf(this.#plan);
    let isSpoken = false;
    this.#connection ??= new HttpConnection({ ...target, port: openAiPort ?? target.port });
    this.#connection.request(request, {
      onHead: (status, headers) => {
        isSpoken = status === 200;
        if (mayRefuse && answer !== null && status === 503) this.#onRefused(headers);
        else if (mayFail && status >= 500) meter.failures++;
        else if (status !== expected) this.fault('statuses', `${status} instead of ${expected}`);
      },
      onBody: (bytes) => {
        if (isSpoken) answer?.push(bytes);
      },
      onEnd: () => {
        if (isSpoken && answer !== null) {
          answer.end();
          meter.frames += answer.records;
          meter.spoken(key, text.length);
        }
        this.#end(this.#playback.aheadMs(performance.now()));
      },
      onError: (error) => {
        if (mayFail && isSpoken) meter.failures++;
        else this.fault('statuses', error.message);
        this.#abort();
      },
    });
  }

  #onRefused(headers: ReadonlyMap<string, string>): void {
    const { key, meter } = this.parts;
    meter.refusals++;
    meter.unsent(key, this.#plan.text.length);
    if (!headers.has('retry-after')) this.fault('statuses', 'a 503 has no Retry-After');
  }

  #abort(): void {
    this.#disconnect();
    this.#end();
  }

  #disconnect(): void {
    this.#connection?.close();
    this.#connection = null;
  }

  #end(unheardMs = 0): void {
    if (this.#plan.wrong === null) this.parts.meter.streams--;
    this.rest(unheardMs + this.#plan.pauseMs);
  }
}
