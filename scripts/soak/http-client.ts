/**
 * A client over HTTP, of the service or of OpenAI's API: one request after the other, each as drawn, with every record of the
 * response checked. It hears each stream to its end before the next request; a whole result is a file, which nobody hears.
 */
import type { CheckedAnswer } from '../rig/checked-answer.js';
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

const routes = {
  stream: { path: '/v1/tts/stream', kind: 'records' },
  whole: { path: '/v1/tts', kind: 'whole' },
  webhook: { path: '/v1/tts/integrations/voiceplatform', kind: 'samples' },
  openai: { path: '/v1/audio/speech', kind: 'samples' },
  'openai-events': { path: '/v1/audio/speech', kind: 'events' },
} as const;

const isOpenAi = ({ route }: HttpPlan): boolean => route.startsWith('openai');

/** The status for what is wrong with a request. */
const statusOf = (plan: HttpPlan): number => {
  if (plan.wrong === null) return 200;
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
  #request = -1;
  /** Kept between requests. */
  #connection: HttpConnection | null = null;

  protected override get name(): string {
    return `http ${this.parts.client}.${this.#request}`;
  }

  protected override disconnect(): void {
    this.#connection?.close();
    this.#connection = null;
  }

  protected override async act(): Promise<number> {
    const { client, key, meter, openAiPort, seed } = this.parts;
    const draw = openAiPort === null ? drawHttp : drawOpenAi;
    const plan = draw(seed, client, ++this.#request);
    const playback = new Playback();
    const nowMs = performance.now();
    meter.requests++;
    let answer: CheckedAnswer | null = null;
    if (plan.wrong === null) {
      meter.streams++;
      meter.sent(key, plan.text.length);
      playback.begin(nowMs);
      const { format, route, text, timestamps } = plan;
      const reply = { where: this.name, completeMs: nowMs, isSpoilt: false };
      answer = this.answerTo(reply, playback, { kind: routes[route].kind, format, text, timestamps });
    }
    let isOver = false;
    this.#send(plan, answer, () => (isOver = true));
    // The key of a tidy client is charged to the character.
    const abortAfterMs = isTidy(client) ? null : plan.abortAfterMs;
    const isAnswered = await this.until(() => isOver, abortAfterMs ?? this.#answerMsMaxOf(plan));
    if (!isAnswered && abortAfterMs === null) this.fault('answers', 'a request is not answered');
    if (!isAnswered) this.disconnect();
    if (plan.wrong === null) meter.streams--;
    return plan.pauseMs + (isAnswered ? playback.aheadMs(performance.now()) : 0);
  }

  #answerMsMaxOf({ route, text }: HttpPlan): number {
    // At capacity a stream comes as fast as it is played.
    const answerMsMax = 2 * this.parts.answerMsMax;
    if (!this.parts.mayRefuse) return answerMsMax;
    const { httpMsPerCharacter } = plausible(this.parts.target);
    return route === 'whole' ? wholeMsMax : answerMsMax + text.length * httpMsPerCharacter.max;
  }

  /** @param answer `null` for a request that the service must refuse */
  #send(plan: HttpPlan, answer: CheckedAnswer | null, onOver: () => void): void {
    const { key, mayFail, mayRefuse, meter, openAiPort, target } = this.parts;
    const voice = plan.wrong === 'voice' ? 'nobody' : target.voices[plan.voice % target.voices.length]!;
    const query = plan.route === 'webhook' ? `?voice=${voice}` : '';
    const request = encodeRequest({
      path: `${routes[plan.route].path}${query}`,
      key: plan.wrong === 'key' ? `${key}0` : key,
      body: bodyOf(plan, voice),
    });
    const expected = statusOf(plan);
    let isSpoken = false;
    this.#connection ??= new HttpConnection({ ...target, port: openAiPort ?? target.port });
    this.#connection.request(request, {
      onHead: (status, headers) => {
        isSpoken = status === 200;
        if (mayRefuse && answer !== null && status === 503) {
          meter.refusals++;
          meter.unsent(key, plan.text.length);
          if (!headers.has('retry-after')) this.fault('statuses', 'a 503 has no Retry-After');
        } else if (mayFail && status >= 500) meter.failures++;
        else if (status !== expected) this.fault('statuses', `${status} instead of ${expected}`);
      },
      onBody: (bytes) => {
        if (isSpoken) answer?.push(bytes);
      },
      onEnd: () => {
        if (isSpoken && answer !== null) {
          answer.end();
          meter.frames += answer.records;
          meter.spoken(key, plan.text.length);
        }
        onOver();
      },
      onError: (error) => {
        if (mayFail && isSpoken) meter.failures++;
        else this.fault('statuses', error.message);
        this.disconnect();
        onOver();
      },
    });
  }
}
