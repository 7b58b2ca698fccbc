/** The service's frames on a WebSocket, except audio and timestamps, whose bytes the actor makes. */
import { formatEcho } from '../../api/formats.js';
import type { SpeechRequest } from '../../api/speech-request.js';

/** @param clientContextId `null` if the client gave none: then no frame has the key */
const frame = (fields: Readonly<Record<string, unknown>>, clientContextId: string | null): string =>
  JSON.stringify(clientContextId === null ? fields : { ...fields, context_id: clientContextId });

export const contextStarted = (
  started: Pick<SpeechRequest, 'settings' | 'timestamps' | 'format'>,
  clientContextId: string | null,
): string =>
  frame(
    {
      context_started: {
        voice_id: started.settings.voiceId,
        model_id: 'default',
        timestamps: started.timestamps,
        response_format: formatEcho(started.format),
      },
    },
    clientContextId,
  );

export const flushCompleted = (flushId: string, clientContextId: string | null): string =>
  frame({ flush_completed: true, flush_id: flushId }, clientContextId);

export const contextClosed = (clientContextId: string | null): string =>
  frame({ context_closed: true }, clientContextId);

/** @param flushId `null` if the client's frame had none */
export const errorFrame = (
  text: string,
  clientContextId: string | null,
  flushId: string | null = null,
): string => {
  const fields = { error: text, ...(clientContextId !== null && { context_id: clientContextId }) };
  return JSON.stringify(flushId === null ? fields : { ...fields, flush_id: flushId });
};
