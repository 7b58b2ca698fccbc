/** `POST /v1/tts/stream`: records as they are made. Frames of this framing are complete records, ready to send. */
import type { FrameSink } from '../dispatch/speech.js';
import type { Responder } from './speech-route.js';
import { StreamSender } from './sender.js';

const head = {
  contentType: 'text/plain; charset=utf-8',
  // Proxies in between must neither keep nor collect what is played while it arrives.
  headers: [
    ['cache-control', 'no-store'],
    ['x-accel-buffering', 'no'],
  ],
} as const;

export const streamResponder: Responder = {
  framing: 'stream',
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
          break;
        case 'head':
          throw new Error('a stream has no head frame');
      }
    };
  },
};
