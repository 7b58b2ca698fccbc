/** What the speech routes make of a context's frames: a stream of records, raw samples, or one JSON object. */
import type { Frame, Framing } from '../threads/messages.js';
import { FirstAudio } from '../speech/first-audio.js';
import type { Exchange } from './exchange.js';
import { ResponseSender, type ResponseHead } from './response-sender.js';
import type { Responder } from './speech-route.js';
import { WholeResult } from './whole-result.js';

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
      exchange.fail(frame.reason);
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

/** Frames are ready to send: complete records, or samples. */
const streaming = (framing: Framing, head: Pick<ResponseHead, 'contentType' | 'unitBytes'>): Responder => ({
  framing,
  begin(exchange, { format }, onHanded) {
    const firstAudio = exchange.expectAudio(format.encoding);
    const { clock } = exchange.services;
    // Proxies must neither keep nor collect what a client plays while it arrives.
    const headers = [noStore, ['x-accel-buffering', 'no'] as const];
    const sender = new ResponseSender(exchange, { status: 200, headers, ...head });
    const handlers: FrameHandlers = {
      audio(frame) {
        sender.write(frame.bytes, () => {
          firstAudio.handed(clock(), frame);
          onHanded(frame);
        });
      },
      timestamps: (frame) => sender.write(frame.bytes),
      closed: () => sender.end(),
    };
    return (frame) => dispatch(exchange, frame, handlers);
  },
});

/** `POST /v1/tts/stream` */
export const streamResponder = streaming('stream', { contentType: 'text/plain; charset=utf-8' });

/** The webhook. Samples have 16 bits, and a client that plays each chunk as it comes must never get half a sample. */
export const rawResponder = streaming('raw', { contentType: 'application/octet-stream', unitBytes: 2 });

/** `POST /v1/tts`. Frames are base64 text that concatenates. */
export const wholeResponder = (spoolFolder: string): Responder => ({
  framing: 'whole',
  begin(exchange, { format, timestamps }, onHanded) {
    const { clock } = exchange.services;
    const firstAudio = exchange.expectAudio(format.encoding);
    /** Of the file, from its start. */
    const inFile = new FirstAudio(0, 0);
    const result = new WholeResult(exchange.services, {
      spoolFolder,
      timestamps,
      onFault: (error) => exchange.fail(error),
    });
    exchange.onOver(() => {
      result.close();
      // A client can decode the answer when it has all of its JSON.
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
          const head = { status: 200, contentType: 'application/json', headers: [noStore], onBegun };
          new ResponseSender(exchange, head, source);
        });
      },
    };
    return (frame) => dispatch(exchange, frame, handlers);
  },
});
