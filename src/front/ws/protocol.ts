/**
 * The protocol between a WebSocket's client and the service: how messages are read, and how answers are worded. Sessions
 * and contexts know only acts. The specification's protocol is here; a dialect brings its own.
 */
import { formatEcho } from '../../api/formats.js';
import type { ApiBounds } from '../../api/issues.js';
import type { SpeechRequest } from '../../api/speech-request.js';
import { parseClientFrame, type ClientFrame } from '../../api/ws-frames.js';
import type { SocketErrorCode } from '../../errors.js';
import type { RefusalReason } from '../../metrics.js';
import type { SocketFraming } from '../../threads/messages.js';

export type SocketErrorReason = RefusalReason | SocketErrorCode;

/** A message that is not valid: it gets this error and changes nothing else. */
export interface RefusedFrame {
  readonly type: 'refused';
  readonly reason: RefusalReason;
  readonly text: string;
  readonly contextId: string | null;
  readonly flushId: string | null;
}

/** What a client asks for. */
export type SocketAct =
  | ClientFrame
  | RefusedFrame
  /** The context ends after what was flushed: later text is dropped. Without a flush it ends at once. */
  | { readonly type: 'finish'; readonly contextId: string | null }
  /** The client has nothing to say, and keeps the context. */
  | { readonly type: 'keep'; readonly contextId: string | null }
  /** The socket ends when no context is left. */
  | { readonly type: 'end' };

/** What a protocol sees of the contexts of its socket. */
export type OpenContexts = ReadonlyMap<
  string | null,
  {
    /** It takes text; otherwise only a cancel. */
    readonly isOpen: boolean;
    /** It has words that no flush has followed. */
    readonly isMidUtterance: boolean;
  }
>;

/** Sockets share one, unless it keeps the state of a socket, as that of a dialect may. */
export interface SocketProtocol {
  /** How actors build the messages with audio. */
  readonly framing: SocketFraming;
  /** A refused text ends its context. Otherwise the context refuses text up to its next flush. */
  readonly refusalEnds: boolean;
  /** A context without a message and without speech for so long is finished. `null`: it may rest for ever. */
  readonly contextIdleMsMax: number | null;
  /** @returns what a whole text message asks for, in order. After a refused act the rest is not done */
  read(message: Buffer, contexts: OpenContexts): readonly SocketAct[];
  /** `null`: there is no answer. */
  started(
    started: Pick<SpeechRequest, 'settings' | 'timestamps' | 'format'>,
    contextId: string | null,
  ): string | null;
  /** `null`: flushes have no answer. One that is too many joins the next. */
  readonly flushed: ((flushId: string, contextId: string | null) => string) | null;
  /** All of the context was spoken. */
  closed(contextId: string | null): readonly string[];
  cancelled(contextId: string | null): string;
  /** @param text as the specification words it @param flushId `null` if the client's frame had none */
  error(reason: SocketErrorReason, text: string, contextId: string | null, flushId?: string | null): string;
}

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

export const specificationProtocol = (bounds: ApiBounds): SocketProtocol => ({
  framing: 'socket',
  refusalEnds: false,
  contextIdleMsMax: null,
  read(message) {
    const parsed = parseClientFrame(message, bounds);
    if (parsed.ok) return [parsed.frame];
    const { contextId, flushId, reason } = parsed;
    return [
      { type: 'refused', reason: 'frameInvalid', text: `invalid frame: ${reason}`, contextId, flushId },
    ];
  },
  started: contextStarted,
  flushed: flushCompleted,
  closed: (contextId) => [flushCompleted(`${contextId ?? ''}:close`, contextId), contextClosed(contextId)],
  cancelled: contextClosed,
  error: (_reason, text, contextId, flushId) => errorFrame(text, contextId, flushId),
});
