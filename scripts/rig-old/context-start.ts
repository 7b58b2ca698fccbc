/** How the WebSocket is found, and a context of it begun. */
import type { AudioFormat } from '../../src/api/formats.js';
import { encodeMessage } from './socket-connection.js';

export const socketPath = '/v1/tts/ws';

export interface ContextVoice {
  readonly voice: string;
  readonly format: AudioFormat;
}

/** @param fields of the `start_context` object besides voice, model, encoding and rate */
export const encodeStart = (
  { voice, format }: ContextVoice,
  contextId?: string,
  fields: object = {},
): Buffer =>
  encodeMessage({
    start_context: {
      voice_id: voice,
      model_id: 'default',
      response_format: { encoding: format.encoding, sample_rate: format.sampleRateHz },
      ...fields,
    },
    ...(contextId !== undefined && { context_id: contextId }),
  });
