/**
 * The frames that a client sends over a WebSocket. The one discriminator key of a frame says its kind. typia turns the
 * types below into checks at compile time.
 */
import typia, { type IValidation } from 'typia';
import { parseJson } from './body.js';
import { DEFAULT_SOCKET_ENCODING, resolveFormat, type AudioFormat } from './formats.js';
import { isObject, issuesOf, locOf, type Issue, type JsonObject } from './issues.js';
import { Quotes } from './quoted.js';
import { scanJson, textOf, type JsonScan } from './json.js';
import { formatIssues, type ResponseFormatBody } from './speech-request.js';
import type { AskedSettings, Temperature } from './speech-settings.js';
import type { RefusalReason } from '../refusals.js';
import type { MarkedText } from '../text/replacements.js';
import type { Bounds } from '../limits.js';

/** `null` counts as absent: the client names no context. */
type Id = string | null;

interface SocketFormatBody extends ResponseFormatBody {
  encoding: string;
}

interface StartContextBody {
  voice_id: string;
  model_id: 'default';
  timestamps?: boolean;
  temperature?: Temperature | null;
  /** `pcm` by default. */
  response_format?: SocketFormatBody;
}

interface StartContextFrame {
  start_context: StartContextBody;
  context_id?: Id;
}

interface SendTextFrame {
  send_text: string;
  context_id?: Id;
}

interface FlushFrame {
  flush: true;
  context_id?: Id;
  flush_id?: Id;
}

interface CloseContextFrame {
  close_context: true;
  context_id?: Id;
}

interface CancelContextFrame {
  cancel_context: true;
  context_id?: Id;
}

/** What a frame asks of its context. */
type Act =
  | {
      readonly type: 'start';
      readonly settings: AskedSettings;
      readonly timestamps: boolean;
      readonly format: AudioFormat;
    }
  | { readonly type: 'text'; readonly text: string; readonly pieces?: readonly MarkedText[] }
  | { readonly type: 'flush'; readonly flushId: string | null }
  | { readonly type: 'close' }
  | { readonly type: 'cancel' };

/** A validated frame. Whether the voice and the context exist is not checked yet. */
export type ClientFrame = { readonly contextId: string | null } & Act;

/** A message that is not valid: it gets this error and changes nothing else. */
export interface RefusedFrame {
  readonly type: 'refused';
  readonly reason: RefusalReason;
  /** What is wrong, with the field's name. */
  readonly text: string;
  /** The message's ids, if they are readable. */
  readonly contextId: string | null;
  readonly flushId: string | null;
}

/** Faults that one `error` frame lists. */
const FAULTS_SHOWN_MAX = 5;

/** The first faults of a frame, each with the path of its field, in one line. */
export const wordIssues = (issues: readonly Issue[], bounds: Bounds): string => {
  const quotes = new Quotes(bounds);
  return issues
    .slice(0, FAULTS_SHOWN_MAX)
    .map((issue) => `${locOf(issue, quotes).join('.')}: ${issue.msg}`)
    .join('; ');
};

const textTooLong = (textName: string, { socketTextBytesMax }: Bounds): string =>
  `${textName}: String should have at most ${socketTextBytesMax} bytes`;

/** @returns which bound the frame exceeds, apart from its types */
const boundFault = (
  object: JsonObject,
  textName: string,
  isTextTooLong: boolean,
  bounds: Bounds,
): string | null => {
  const { socketIdMax, socketTextBytesMax } = bounds;
  for (const name of ['context_id', 'flush_id']) {
    const id = object[name];
    if (typeof id === 'string' && id.length > socketIdMax)
      return `${name}: String should have at most ${socketIdMax} characters`;
  }
  const text = object[textName];
  if (isTextTooLong || (typeof text === 'string' && Buffer.byteLength(text) > socketTextBytesMax))
    return textTooLong(textName, bounds);
  return null;
};

/** @returns why the bytes must not be parsed */
const scanFault = (
  { excess }: JsonScan,
  textName: string,
  { socketFrameBytesMax, socketFrameDepthMax, socketFrameTokensMax }: Bounds,
): string | null => {
  switch (excess) {
    case null:
      return null;
    case 'depth':
      return `nested deeper than ${socketFrameDepthMax} levels`;
    case 'tokens':
      return `more than ${socketFrameTokensMax} names and values`;
    case 'bytes':
      return `more than ${socketFrameBytesMax} bytes besides the text of ${textName}`;
  }
};

const startFrame = (frame: StartContextFrame, bounds: Bounds): Act | readonly Issue[] => {
  const { voice_id, timestamps, temperature, response_format } = frame.start_context;
  const wanted = response_format ?? { encoding: DEFAULT_SOCKET_ENCODING };
  const resolved = resolveFormat(wanted, bounds);
  if (!resolved.ok) return formatIssues(wanted, ['start_context', 'response_format'], bounds);
  return {
    type: 'start',
    settings: { voiceId: voice_id, temperature },
    timestamps: timestamps ?? false,
    format: resolved.format,
  };
};

type FrameReader = (object: JsonObject, bounds: Bounds) => ClientFrame | readonly Issue[];

const reader =
  <Frame extends { context_id?: Id }>(
    validate: (object: unknown) => IValidation<Frame>,
    toAct: (frame: Frame, bounds: Bounds) => Act | readonly Issue[],
  ): FrameReader =>
  (object, bounds) => {
    const checked = validate(object);
    if (!checked.success) return issuesOf(checked.errors, object, [], bounds);
    const act = toAct(checked.data, bounds);
    return 'type' in act ? { ...act, contextId: checked.data.context_id ?? null } : act;
  };

/** By the discriminator. */
const readers: Readonly<Record<string, FrameReader>> = {
  start_context: reader(typia.createValidateEquals<StartContextFrame>(), startFrame),
  send_text: reader(typia.createValidateEquals<SendTextFrame>(), ({ send_text: text }) => ({
    type: 'text',
    text,
  })),
  flush: reader(typia.createValidateEquals<FlushFrame>(), ({ flush_id: flushId = null }) => ({
    type: 'flush',
    flushId,
  })),
  close_context: reader(typia.createValidateEquals<CloseContextFrame>(), () => ({ type: 'close' })),
  cancel_context: reader(typia.createValidateEquals<CancelContextFrame>(), () => ({ type: 'cancel' })),
};
const discriminators = Object.keys(readers);

/** @param object `null` if the message has none */
export const refusedFrame = (
  object: JsonObject | null,
  text: string,
  { socketIdMax }: Bounds,
): RefusedFrame => {
  const idIn = (name: string): string | null => {
    const value = object?.[name];
    return typeof value === 'string' && value.length <= socketIdMax ? value : null;
  };
  const ids = { contextId: idIn('context_id'), flushId: idIn('flush_id') };
  return { type: 'refused', reason: 'frameInvalid', text, ...ids };
};

/**
 * Reads a frame of any protocol. A scan decides before anything is parsed; a text beyond its bound is not parsed either.
 *
 * @param bytes a whole text message, at most `socketMessageBytesMax` long; uWebSockets.js has checked that it is UTF-8
 * @param textName the member that may be long
 * @returns the object, and which bound it exceeds apart from its types; or why there is no object
 */
export const readFrame = (
  bytes: Buffer,
  textName: string,
  bounds: Bounds,
):
  | { readonly object: JsonObject; readonly fault: string | null }
  | { readonly object: null; readonly fault: string } => {
  const refuse = (fault: string) => ({ object: null, fault });
  const scan = scanJson(
    bytes,
    { depthMax: bounds.socketFrameDepthMax, tokensMax: bounds.socketFrameTokensMax },
    { name: textName, otherBytesMax: bounds.socketFrameBytesMax },
  );
  const excess = scanFault(scan, textName, bounds);
  if (excess !== null) return refuse(excess);
  const { longText } = scan;
  const isTextTooLong = longText !== null && longText.bytesMin > bounds.socketTextBytesMax;
  const json = parseJson(
    isTextTooLong
      ? `${textOf(bytes.subarray(0, longText.start))}""${textOf(bytes.subarray(longText.end))}`
      : textOf(bytes),
  );
  if (!('value' in json))
    return refuse(isTextTooLong ? textTooLong(textName, bounds) : `JSON decode error: ${json.fault}`);
  if (!isObject(json.value)) return refuse('a frame is a JSON object');
  return { object: json.value, fault: boundFault(json.value, textName, isTextTooLong, bounds) };
};

/** @param bytes a whole text message */
export const parseClientFrame = (bytes: Buffer, bounds: Bounds): ClientFrame | RefusedFrame => {
  const { object, fault } = readFrame(bytes, 'send_text', bounds);
  const refuse = (text: string): RefusedFrame => refusedFrame(object, text, bounds);
  if (object === null) return refuse(fault);
  const found = discriminators.filter((name) => Object.hasOwn(object, name));
  const [kind] = found;
  const read = kind === undefined ? undefined : readers[kind];
  if (read === undefined) return refuse(`a frame has one of ${discriminators.join(', ')}`);
  if (found.length > 1) return refuse(`a frame has only one of ${found.join(', ')}`);
  if (fault !== null) return refuse(fault);
  const frame = read(object, bounds);
  return 'type' in frame ? frame : refuse(wordIssues(frame, bounds));
};
