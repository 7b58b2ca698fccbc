/** `POST /v1/tts`: one JSON object when all is made. Frames of this framing are base64 text that concatenates. */
import type { FrameSink } from '../speech/speech.js';
import { LengthSender } from './length-sender.js';
import type { Responder } from './speech-route.js';
import { WholeResult } from './whole-result.js';

const head = {
  status: 200,
  contentType: 'application/json',
  headers: [['cache-control', 'no-store']],
} as const;

export const wholeResponder = (spoolFolder: string): Responder => ({
  framing: 'whole',
  begin(exchange, { timestamps }, onHanded): FrameSink {
    const result = new WholeResult(exchange.services, {
      spoolFolder,
      timestamps,
      onFault: (error) => exchange.fail(error),
    });
    exchange.onOver(() => result.close());
    return (frame) => {
      switch (frame.type) {
        case 'head':
          result.setHead(frame.bytes);
          break;
        case 'audio':
          result.add(frame.bytes, () => onHanded(frame));
          break;
        case 'timestamps':
          result.addTimings(frame.timings);
          break;
        case 'closed':
          result.seal((source) => {
            exchange.noteAudio();
            new LengthSender(exchange, head, source).start();
          });
          break;
        case 'failed':
          exchange.fail(frame.reason);
          break;
        case 'flushed':
        case 'spoken':
          break;
      }
    };
  },
});
