/**
 * The protocol between a WebSocket's client and the service: how messages are read, and how answers are worded. Sessions
 * and contexts know only acts. The specification's protocol is here; a dialect brings its own.
 */
import { formatEcho } from '../../api/formats.js';
import type { SpeechRequest } from '../../api/speech-request.js';
import { parseClientFrame, type ClientFrame, type RefusedFrame } from '../../api/ws-frames.js';
import type { SocketErrorCode } from '../../errors.js';
import type { RefusalReason } from '../../metrics.js';
import type { SocketFraming } from '../../threads/messages.js';
import type { Bounds } from '../../limits.js';

export type SocketErrorReason = RefusalReason | SocketErrorCode;

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

/** @param contextId `null` if the client gave none: then no frame has the key */
const frame = (fields: Readonly<Record<string, unknown>>, contextId: string | null): string =>
  JSON.stringify(contextId === null ? fields : { ...fields, context_id: contextId });

export const specificationProtocol = (bounds: Bounds): SocketProtocol => {
  const flushed = (flushId: string, contextId: string | null): string =>
    frame({ flush_completed: true, flush_id: flushId }, contextId);
  const cancelled = (contextId: string | null): string => frame({ context_closed: true }, contextId);
  return {
    framing: 'socket',
    refusalEnds: false,
    contextIdleMsMax: null,
    read(message) {
      const act = parseClientFrame(message, bounds);
      return [act.type === 'refused' ? { ...act, text: `invalid frame: ${act.text}` } : act];
    },
    started: ({ settings, timestamps, format }, contextId) => {
      const response_format = formatEcho(format);
      const { voiceId: voice_id } = settings;
      return frame(
        { context_started: { voice_id, model_id: 'default', timestamps, response_format } },
        contextId,
      );
    },
    flushed,
    closed: (contextId) => [flushed(`${contextId ?? ''}:close`, contextId), cancelled(contextId)],
    cancelled,
    error(_reason, text, contextId, flushId = null) {
      const fields = { error: text, ...(contextId !== null && { context_id: contextId }) };
      return JSON.stringify(flushId === null ? fields : { ...fields, flush_id: flushId });
    },
  };
};
