/**
 * The WebSockets of the ElevenLabs API: what its clients' messages ask for, and how its answers are worded.
 *
 * - `stream-input`: one context without an id. An empty text is its end, and then the socket's.
 * - `multi-stream-input`: contexts by id. A context begins with its first text, and ends with `close_context`: what was flushed
 *   is spoken to its end, what was not is dropped. A second `close_context` (Pipecat) or an empty flush (LiveKit) after it is
 *   an interruption, and drops that too. An empty text keeps it alive.
 *
 * `isFinal` comes once for each context, and only when it is over: clients stop listening at it.
 */
import typia from 'typia';
import type { AudioFormat } from '../../api/formats.js';
import { issuesOf } from '../../api/issues.js';
import { readFrame, refusedFrame, wordIssues, type ClientFrame } from '../../api/ws-frames.js';
import type { OpenContexts, SocketAct, SocketErrorReason, SocketProtocol } from '../../front/ws/protocol.js';
import type { Bounds } from '../../limits.js';
import type { SocketFraming } from '../../threads/messages.js';
import type { MarkedText } from '../../text/replacements.js';
import { isBlank } from '../../text/words.js';
import { wordsOf } from './errors.js';
import { settingsIn, type VoiceSettings } from './request.js';
import { TagReader } from './tags.js';

/** Further members are accepted and do nothing: generation_config, try_trigger_generation, dictionaries ... */
interface ClientMessage {
  text?: string | null;
  context_id?: string | null;
  flush?: boolean | null;
  close_context?: boolean | null;
  close_socket?: boolean | null;
  voice_settings?: VoiceSettings | null;
}

const validate = typia.createValidate<ClientMessage>();

/** The end of a sentence. Clients that send whole sentences put no space after it, so the next would continue its last word. */
const endsSentence = /[.!?…,;:]["'”’)\]]*$/u;

/** What the handshake has decided for all contexts of a socket. */
export interface SocketSettings {
  readonly voiceId: () => string;
  readonly format: AudioFormat;
  /** `apply_text_normalization`. */
  readonly normalization: string | null;
  readonly isMulti: boolean;
  /** The texts are sentences. */
  readonly isAuto: boolean;
  /** Times count from the start of the context. */
  readonly isSync: boolean;
  /** `null`: contexts may rest for ever. */
  readonly idleMsMax: number | null;
}

/** The key in the first message, for clients that send no header. */
export const keyInMessage = (message: Buffer, bounds: Bounds): string => {
  const { object } = readFrame(message, 'text', bounds);
  const keyOf = (name: string): string => {
    const value = object?.[name];
    return typeof value === 'string' ? value : '';
  };
  return keyOf('xi_api_key') || keyOf('xi-api-key') || keyOf('authorization');
};

/** The `code` of every error message of this API. */
const ERROR_CODE = 1008;

/** One act: credit is asked for the text, not for each of thousands of pieces. */
const textActs = (contextId: string | null, pieces: readonly MarkedText[]): SocketAct[] =>
  pieces.length === 0
    ? []
    : [{ type: 'text', contextId, text: pieces.map(({ text }) => text).join(''), pieces }];

export class ElevenLabsProtocol implements SocketProtocol {
  readonly refusalEnds = true;
  readonly flushed = null;
  readonly contextIdleMsMax: number | null;
  readonly framing: SocketFraming;
  readonly #settings: SocketSettings;
  readonly #bounds: Bounds;
  /** Contexts that ended with an error. Texts that were under way to them must not open them again. */
  readonly #failed = new Set<string | null>();
  /** Of open contexts, and of a few that ended. A tag may be split over messages. */
  readonly #tags = new Map<string | null, TagReader>();

  constructor(settings: SocketSettings, bounds: Bounds) {
    this.framing = settings.isSync ? 'elevenlabs-sync' : 'elevenlabs';
    this.contextIdleMsMax = settings.idleMsMax;
    this.#settings = settings;
    this.#bounds = bounds;
  }

  read(message: Buffer, contexts: OpenContexts): readonly SocketAct[] {
    const { object, fault } = readFrame(message, 'text', this.#bounds);
    if (object === null || fault !== null) return [refusedFrame(object, fault ?? '', this.#bounds)];
    const checked = validate(object);
    if (!checked.success) {
      const text = wordIssues(issuesOf(checked.errors, object, [], this.#bounds), this.#bounds);
      return [refusedFrame(object, text, this.#bounds)];
    }
    return this.#settings.isMulti
      ? this.#readMulti(checked.data, contexts)
      : this.#readSingle(checked.data, contexts);
  }

  started(): null {
    return null;
  }

  closed(contextId: string | null): readonly string[] {
    return [this.cancelled(contextId)];
  }

  cancelled(contextId: string | null): string {
    this.#tags.delete(contextId);
    return JSON.stringify({ audio: null, isFinal: true, ...this.#named(contextId) });
  }

  error(reason: SocketErrorReason, text: string, contextId: string | null): string {
    const { message, status } = wordsOf(reason);
    const isOfMessage = reason === 'frameInvalid' || reason === 'contextUnknown';
    if (!isOfMessage) this.#noteFailed(contextId);
    // These texts say which message or voice is wrong.
    const said = reason === 'frameInvalid' || reason === 'voiceUnknown' ? text : message;
    return JSON.stringify({ message: said, error: status, code: ERROR_CODE, ...this.#named(contextId) });
  }

  #noteFailed(contextId: string | null): void {
    this.#tags.delete(contextId);
    this.#failed.add(contextId);
    const [oldest = null] = this.#failed;
    if (this.#failed.size > this.#bounds.contextsPerSocketMax) this.#failed.delete(oldest);
  }

  #named(contextId: string | null) {
    return contextId === null ? {} : { contextId };
  }

  #readMulti(message: ClientMessage, contexts: OpenContexts): readonly SocketAct[] {
    const contextId = message.context_id ?? null;
    if (message.close_socket === true) {
      const finishes = [...contexts].flatMap(([id, { isOpen }]) =>
        isOpen ? [{ type: 'finish', contextId: id } as const] : [],
      );
      return [...finishes, { type: 'end' }];
    }
    const context = contexts.get(contextId);
    if (message.close_context === true) {
      if (this.#failed.delete(contextId) || context === undefined) return [];
      return [{ type: context.isOpen ? 'finish' : 'cancel', contextId }];
    }
    return this.#readText(message, contextId, contexts);
  }

  #readSingle(message: ClientMessage, contexts: OpenContexts): readonly SocketAct[] {
    const context = contexts.get(null);
    if (message.text === '' || message.close_socket === true)
      return context?.isOpen === true
        ? [...this.#rest(null), { type: 'close', contextId: null }, { type: 'end' }]
        : [{ type: 'end' }];
    // Some clients send a text after the end, to keep the socket alive.
    return context?.isOpen === false ? [] : this.#readText(message, null, contexts);
  }

  #readText(message: ClientMessage, contextId: string | null, contexts: OpenContexts): readonly SocketAct[] {
    const context = contexts.get(contextId);
    const text = message.text ?? '';
    if (this.#failed.has(contextId)) return [];
    // LiveKit Agents flushes before it closes; only an interrupted stream does so afterwards.
    if (context?.isOpen === false && message.text === '' && message.flush === true)
      return [{ type: 'cancel', contextId }];
    // Clients also keep closed contexts alive.
    if (context?.isOpen !== true && (text === '' || (context !== undefined && isBlank(text)))) return [];
    const acts: SocketAct[] = [
      context === undefined ? this.#start(message, contextId) : { type: 'keep', contextId },
    ];
    // White space only keeps the context alive, unless it comes after a word.
    const tags = this.#tagsOf(contextId, contexts);
    const isWord = !isBlank(text) || tags.isWaiting;
    if (isWord || (context?.isMidUtterance === true && text !== ''))
      acts.push(...textActs(contextId, tags.push(this.#spaced(text))));
    if (message.flush === true)
      acts.push(...this.#rest(contextId), { type: 'flush', contextId, flushId: null });
    return acts;
  }

  #tagsOf(contextId: string | null, contexts: OpenContexts): TagReader {
    const tags = this.#tags.get(contextId) ?? new TagReader();
    this.#tags.set(contextId, tags);
    // A start that was refused leaves one without a context.
    if (this.#tags.size > this.#bounds.contextsPerSocketMax)
      for (const id of this.#tags.keys()) if (id !== contextId && !contexts.has(id)) this.#tags.delete(id);
    return tags;
  }

  /** The text that may have been a tag. */
  #rest(contextId: string | null): readonly SocketAct[] {
    return textActs(contextId, this.#tags.get(contextId)?.end() ?? []);
  }

  #spaced(text: string): string {
    return this.#settings.isAuto && endsSentence.test(text) ? `${text} ` : text;
  }

  #start({ voice_settings }: ClientMessage, contextId: string | null): ClientFrame {
    const { format, normalization, voiceId } = this.#settings;
    return {
      type: 'start',
      contextId,
      settings: settingsIn(voiceId(), normalization, voice_settings),
      timestamps: true,
      format,
    };
  }
}
