/** A client of the service's streaming route, as any user could write it. */

/** What went wrong, in words for a terminal. */
export class SayError extends Error {
  override readonly name = 'SayError';
}

export interface Speech {
  readonly text: string;
  readonly voice: string;
  readonly encoding: string;
}

/** One record of the stream: encoded audio, or the number of words that it has times for. */
export type SpeechRecord =
  | { readonly type: 'audio'; readonly bytes: Buffer }
  | { readonly type: 'timestamps'; readonly words: number };

const field = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
};

/** Messages that help the user, whichever transport reports the fault. */
export const messages = {
  unknownKey:
    'The service does not know this key (or it was revoked, has expired or is suspended). Make one with `npm run keys -- create`.',
  noCredit: 'This key, or its account, has no credit left.',
  noSlot: 'This key has all its requests in flight already. Try again in a moment.',
  brokenOff: 'The service broke off before the speech was complete.',
  untrusted: (url: string) =>
    `The certificate of ${url} is not trusted here. If it is yours, name its file (or its root's): NODE_EXTRA_CA_CERTS=cert.pem`,
  otherService: (url: string) =>
    `What answers at ${url} is not the speech service: give the address that the start shows beside "Speech".`,
  noService: (url: string) => `No service answers at ${url}. Start it with \`npm start\`, or give its --url.`,
} as const;

/** The service's answer to a request that it did not serve, as one readable message. */
const refusal = (status: number, body: string): string => {
  const json = parseJson(body);
  const error = field(json, 'error');
  if (status === 401) {
    return error === 'INVALID_API_KEY'
      ? messages.unknownKey
      : 'This is not a key of the service: keys begin with svc_sk_. Give one with --key or SYRINX_KEY.';
  }
  if (status === 402) return messages.noCredit;
  if (status === 429) return messages.noSlot;
  const message = field(json, 'message');
  if (typeof message === 'string') return message;
  const detail = field(json, 'detail');
  if (Array.isArray(detail)) {
    return detail
      .map((item: unknown) => {
        const loc = field(item, 'loc');
        return `${Array.isArray(loc) ? loc.slice(1).join('.') : ''}: ${String(field(item, 'msg'))}`;
      })
      .join('\n');
  }
  return `The service answered ${String(status)}: ${body.slice(0, 300)}`;
};

/** OpenSSL's codes for an untrusted chain of certificates. */
const untrustedCodes: ReadonlySet<string> = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
]);

const causeCode = (error: unknown): string | undefined => {
  const code = field(field(error, 'cause'), 'code');
  return typeof code === 'string' ? code : undefined;
};

export class Service {
  readonly #url: string;
  readonly #key: string;

  constructor(url: string, key: string) {
    this.#url = url.replace(/\/+$/, '');
    this.#key = key;
  }

  /** @throws {SayError} */
  async #fetch(path: string, init: { method?: string; body?: string }): Promise<Response> {
    let response;
    try {
      const headers = { 'x-api-key': this.#key, 'content-type': 'application/json' };
      response = await fetch(`${this.#url}${path}`, { ...init, headers });
    } catch (error) {
      const code = causeCode(error);
      if (code === 'ECONNREFUSED') {
        throw new SayError(messages.noService(this.#url));
      }
      if (code !== undefined && untrustedCodes.has(code)) throw new SayError(messages.untrusted(this.#url));
      throw new SayError(
        `${this.#url} cannot be reached: ${code ?? String(field(field(error, 'cause'), 'message') ?? error)}`,
      );
    }
    if (response.status !== 200) throw new SayError(refusal(response.status, await response.text()));
    return response;
  }

  /** The voices, the default first. @throws {SayError} */
  async voices(): Promise<string[]> {
    const response = await this.#fetch('/v1/tts/speakers', {});
    const ids = field(parseJson(await response.text()), 'speaker_ids');
    if (!Array.isArray(ids)) throw new SayError(messages.otherService(this.#url));
    return ids.map(String);
  }

  /** The records of one utterance, as they arrive. @throws {SayError} */
  async *speak({ text, voice, encoding }: Speech): AsyncGenerator<SpeechRecord, void, void> {
    const response = await this.#fetch('/v1/tts/stream', {
      method: 'POST',
      body: JSON.stringify({ text, voice, timestamps: true, response_format: { encoding } }),
    });
    let pending = '';
    const decoder = new TextDecoder();
    try {
      for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
        pending += decoder.decode(chunk, { stream: true });
        const records = pending.split('\n\n');
        pending = records.pop() ?? '';
        for (const record of records) {
          const json = parseJson(record.replace(/^data: /, ''));
          const audio = field(json, 'audio_chunk');
          const words = field(json, 'words');
          if (typeof audio === 'string') yield { type: 'audio', bytes: Buffer.from(audio, 'base64') };
          else if (Array.isArray(words)) yield { type: 'timestamps', words: words.length };
        }
      }
    } catch {
      throw new SayError(messages.brokenOff);
    }
    if (pending !== '') throw new SayError(messages.brokenOff);
  }
}
