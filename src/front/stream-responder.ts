/**
 * Responses that go out as they are made. Frames of these framings are ready to send: complete records for
 * `POST /v1/tts/stream`, samples for the webhook.
 */
import type { Framing } from '../threads/messages.js';
import type { FrameSink } from '../speech/speech.js';
import type { Responder } from './speech-route.js';
import { StreamSender, type StreamHead } from './sender.js';

// Proxies in between must neither keep nor collect what is played while it arrives.
const headers = [
  ['cache-control', 'no-store'],
  ['x-accel-buffering', 'no'],
] as const;

const streaming = (framing: Framing, head: StreamHead): Responder => ({
  framing,
  begin(exchange, _request, onHanded): FrameSink {
    const sender = new StreamSender(exchange, head, onHanded);
    return (frame) => {
      switch (frame.type) {
        case 'audio':
          sender.send(frame.bytes, frame);
          break;
        case 'timestamps':
          sender.send(frame.bytes, null);
          break;
        case 'closed':
          sender.end();
          break;
        case 'failed':
          exchange.fail(frame.reason);
          break;
        case 'flushed':
        case 'spoken':
          break;
        case 'head':
          throw new Error('a stream has no head frame');
      }
    };
  },
});

export const streamResponder = streaming('stream', {
  contentType: 'text/plain; charset=utf-8',
  headers,
  unitBytes: 1,
});

/** 16-bit samples: a client that plays each piece as it comes must never get half of one. */
export const rawResponder = streaming('raw', {
  contentType: 'application/octet-stream',
  headers,
  unitBytes: 2,
});
