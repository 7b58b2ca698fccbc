/** What the speech routes make of a context's frames: a stream of records, raw samples, or one JSON object. */
import type { AudioFormat } from '../api/formats.js';
import type { Frame, Framing } from '../threads/messages.js';
import { FirstAudio } from '../speech/first-audio.js';
import { refusalOf } from '../metrics.js';
import type { Exchange } from './exchange.js';
import { replyError } from './reply.js';
import { ResponseSender, type ResponseHead } from './response-sender.js';
import type { Responder } from './speech-route.js';
import { jsonParts, WholeResult, type JoinedTimings, type Parts } from './whole-result.js';

/** Frames of a framing, without those that only WebSockets have. */
interface FrameHandlers {
  head?(bytes: Uint8Array): void;
  audio(frame: Extract<Frame, { type: 'audio' }>): void;
  timestamps(frame: Extract<Frame, { type: 'timestamps' }>): void;
  closed(): void;
}

const dispatch = (exchange: Exchange, frame: Frame, handlers: FrameHandlers): void => {
  switch (frame.type) {
    case 'audio':
      handlers.audio(frame);
      break;
    case 'timestamps':
      handlers.timestamps(frame);
      break;
    case 'closed':
      handlers.closed();
      break;
    case 'failed':
      if (frame.code === undefined) exchange.fail(frame.reason);
      else if (!exchange.hasBegun) replyError(exchange, frame.code);
      else {
        exchange.noteRefusal(refusalOf(frame.code));
        exchange.drop('failed');
      }
      break;
    case 'head':
      if (handlers.head === undefined) throw new Error('a stream has no head frame');
      handlers.head(frame.bytes);
      break;
    case 'flushed':
    case 'spoken':
      break;
  }
};

const noStore = ['cache-control', 'no-store'] as const;

/**
 * Frames are ready to send: complete records, or samples.
 *
 * @param last what comes after all frames
 */
export const streamingResponder = (
  framing: Framing,
  headOf: (format: AudioFormat) => Pick<ResponseHead, 'contentType' | 'unitBytes'>,
  last?: (exchange: Exchange) => string,
): Responder => ({
  framing,
  begin(exchange, { format }, onHanded) {
    const firstAudio = exchange.expectAudio(format.encoding);
    const { clock } = exchange.services;
    // Proxies must neither keep nor collect what a client plays while it arrives.
    const headers = [noStore, ['x-accel-buffering', 'no'] as const];
    const sender = new ResponseSender(exchange, { status: 200, headers, ...headOf(format) });
    const handlers: FrameHandlers = {
      audio(frame) {
        sender.write(frame.bytes, () => {
          firstAudio.handed(clock(), frame);
          onHanded(frame);
        });
      },
      timestamps: (frame) => sender.write(frame.bytes),
      closed() {
        if (last !== undefined) sender.write(Buffer.from(last(exchange)));
        sender.end();
      },
    };
    return (frame) => dispatch(exchange, frame, handlers);
  },
});

/** `POST /v1/tts/stream` */
export const streamResponder = streamingResponder('stream', () => ({
  contentType: 'text/plain; charset=utf-8',
}));

/** Lines of JSON with audio and the times of characters. */
export const lineResponder = streamingResponder('elevenlabs-lines', () => ({
  contentType: 'application/json',
}));

/**
 * Bare audio as it is made. Samples of pcm have 16 bits, and a client that plays each chunk as it comes must never get half
 * a sample.
 */
export const audioResponder = (contentTypeOf: (format: AudioFormat) => string): Responder =>
  streamingResponder('raw', (format) => ({
    contentType: contentTypeOf(format),
    unitBytes: format.encoding === 'pcm' ? 2 : 1,
  }));

/** The webhook. */
export const rawResponder = audioResponder(() => 'application/octet-stream');

/** What a whole result is: JSON with these members, or a file. */
export interface WholeShape {
  readonly framing: 'whole' | 'file' | 'elevenlabs-whole';
  readonly contentType: string;
  /** `null`: the result is the audio itself. */
  readonly audioName: 'audio' | 'audio_base64' | null;
  /** The members with the times, for a request that asks for them. */
  timestamps(timings: JoinedTimings): Parts;
}

const specificationShape: WholeShape = {
  framing: 'whole',
  contentType: 'application/json',
  audioName: 'audio',
  timestamps: ({ words, starts, ends }) =>
    jsonParts`"timestamps":{"words":${words},"start_seconds":${starts},"end_seconds":${ends}}`,
};

/** `POST /v1/tts`, by default. Frames are pieces that concatenate: base64 text, or bytes of a file. */
export const wholeResponder = (spoolFolder: string, shape = specificationShape): Responder => ({
  framing: shape.framing,
  begin(exchange, { format, timestamps }, onHanded) {
    const { clock } = exchange.services;
    const firstAudio = exchange.expectAudio(format.encoding);
    /** Of the file, from its start. */
    const inFile = new FirstAudio(0, 0);
    const result = new WholeResult(exchange.services, {
      account: exchange.key?.accountId ?? '',
      spoolFolder,
      audioName: shape.audioName,
      timestamps: timestamps ? (timings) => shape.timestamps(timings) : null,
      onFault: (error) => exchange.fail(error),
    });
    exchange.onOver(() => {
      result.close();
      // A client can decode the answer when it has all of it.
      if (exchange.outcome === 'complete') firstAudio.handedWhole(clock(), inFile);
    });
    const handlers: FrameHandlers = {
      head: (bytes) => result.setHead(bytes),
      audio(frame) {
        inFile.handed(0, frame);
        result.add(frame.bytes, () => onHanded(frame));
      },
      timestamps: (frame) => result.addTimings(frame.timings),
      closed() {
        result.seal((source) => {
          const onBegun = () => firstAudio.reached('byte', clock());
          const head = { status: 200, contentType: shape.contentType, headers: [noStore], onBegun };
          new ResponseSender(exchange, head, source);
        });
      },
    };
    return (frame) => dispatch(exchange, frame, handlers);
  },
});
