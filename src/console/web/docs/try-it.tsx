/** Sends an operation as the account's hidden key, and shows the answer. */
import { useEffect, useState } from 'preact/hooks';
import { jsonBody, request } from '../call.js';
import { formatBytes, formatMs } from '../format.js';
import { Field, Form, TextField, textOf } from '../parts/form.js';
import { decodeBase64 } from '../playground/wire.js';
import type { Described } from './document.js';

/** Characters of an answer that are shown. */
const SHOWN_MAX = 4_000;
/** A base64 text in an answer is shown so far. */
const BASE64_SHOWN = 60;
const RATE_DEFAULT_HZ = 24_000;

interface Answered {
  readonly status: string;
  readonly ms: number;
  readonly requestId: string;
  readonly text: string;
  readonly bytes: number;
  /** Audio that a browser plays; `null`: none. */
  readonly audio: Blob | null;
}

/** Samples with a header, which a browser needs to play them. Numbers are little-endian, as browsers write them. */
const wavOf = (samples: ArrayBuffer, rateHz: number): Blob => {
  const numbers = (...values: readonly number[]) => Uint32Array.from(values);
  // 16 bits a sample, 2 bytes a frame; PCM with one channel.
  const format = numbers(16, 0x1_0001, rateHz, rateHz * 2, 0x10_0002);
  const size = samples.byteLength;
  const parts = ['RIFF', numbers(36 + size), 'WAVEfmt ', format, 'data', numbers(size), samples];
  return new Blob(parts, { type: 'audio/wav' });
};

const rateIn = (body: string): number => {
  const rate = /"sample_?[rR]ate"\s*:\s*(\d+)/.exec(body)?.[1];
  return rate === undefined ? RATE_DEFAULT_HZ : Number(rate);
};

/** The audio of a file or of a stream's records. Formats without a header are not played. */
const audioIn = (text: string, body: string): Blob | null => {
  const found = text.matchAll(/"audio(?:_chunk)?":"([A-Za-z0-9+/]+=*)"/g);
  const pieces = [...found].map(([, base64 = '']) => decodeBase64(base64));
  const headerless =
    /"(?:pcm|pcm_s16le|raw|mulaw|mu-law|ulaw|u-law|μ-law|alaw|a-law|linear16|linear.pcm)"/i.test(body);
  return pieces.length === 0 || headerless ? null : new Blob(pieces);
};

const shown = (text: string): string => {
  const short = text.replaceAll(/"[A-Za-z0-9+/=]{120,}"/g, (base64) => `"${base64.slice(1, BASE64_SHOWN)}…"`);
  return short.length > SHOWN_MAX ? `${short.slice(0, SHOWN_MAX)}\n…` : short;
};

const send = async (path: string, method: string, body: string | null): Promise<Answered> => {
  const startMs = performance.now();
  const response = await request(path, body === null ? { method: method.toUpperCase() } : jsonBody(body));
  const buffer = await response.arrayBuffer();
  const type = response.headers.get('content-type') ?? '';
  const isSamples = type.startsWith('application/octet-stream');
  const text = isSamples ? '' : new TextDecoder().decode(buffer);
  return {
    status: `${response.status} ${response.statusText}`.trim(),
    ms: Math.round(performance.now() - startMs),
    requestId: response.headers.get('x-request-id') ?? '',
    text: isSamples ? 'Samples, 16 bits, without a header.' : shown(text),
    bytes: buffer.byteLength,
    audio: body === null ? null : isSamples ? wavOf(buffer, rateIn(body)) : audioIn(text, body),
  };
};

const Player = ({ audio }: { readonly audio: Blob }) => {
  const [url, setUrl] = useState<string>();
  useEffect(() => {
    const made = URL.createObjectURL(audio);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [audio]);
  return <audio controls src={url} aria-label="The audio of the answer" />;
};

const AnswerView = ({ of }: { readonly of: Answered }) => (
  <div class="stack" role="status">
    <p class="row">
      <strong class={`badge ${of.status.startsWith('2') ? 'good' : 'bad'}`}>{of.status}</strong>
      <span class="hint">
        {formatMs(of.ms)}, {formatBytes(of.bytes)}
        {of.requestId !== '' && `, x-request-id ${of.requestId}`}
      </span>
    </p>
    {of.audio !== null && <Player audio={of.audio} />}
    <pre class="docs-text" tabIndex={0} aria-label="The body of the answer">
      {of.text}
    </pre>
  </div>
);

export const TryIt = ({ accountId, of }: { readonly accountId: number; readonly of: Described }) => {
  const { method, operation, path } = of;
  const { parameters = [], requestBody } = operation;
  const examples = Object.values(requestBody?.content['application/json']?.examples ?? {});
  const example = requestBody === undefined ? null : JSON.stringify(examples[0]?.value ?? {}, null, 2);
  const [answered, setAnswered] = useState<Answered | null>(null);
  return (
    <>
      <Form
        submit="Send"
        onSubmit={async (values) => {
          const query = new URLSearchParams({ accountId: String(accountId) });
          for (const { name } of parameters) query.set(name, textOf(values, name));
          setAnswered(null);
          setAnswered(
            await send(`/api${path}?${query}`, method, example === null ? null : textOf(values, 'body')),
          );
        }}
      >
        {parameters.map(({ name, description, example: value }) => (
          <Field key={name} name={name} label={name} hint={description} defaultValue={value ?? ''} />
        ))}
        {example !== null && (
          <TextField
            name="body"
            label="Body"
            class="docs-body"
            rows={example.split('\n').length + 1}
            spellcheck={false}
            defaultValue={example}
          />
        )}
      </Form>
      {answered !== null && <AnswerView of={answered} />}
    </>
  );
};
