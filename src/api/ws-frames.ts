/**
 * The frames that a client sends over a WebSocket. A frame's kind is the one discriminator key that it has; typia, at
 * compile time, turns the types below into the checks, and the fields' tables word what they refuse.
 */
import typia from 'typia';
import { limits } from '../limits.js';
import { extraIssues, fieldIssues, isObject, type Field, type JsonObject } from './fields.js';
import { resolveFormat, type AudioFormat } from './formats.js';
import {
  notABoolean,
  notAnInteger,
  notAnObject,
  notANumber,
  notAString,
  tooLarge,
  tooSmall,
  valueError,
  type Issue,
} from './issues.js';
import { findJsonFault } from './json-fault.js';
import type { WholeNumber } from './speech-request.js';
import { DEFAULT_TEMPERATURE, type SpeechSettings, type Temperature } from './speech-settings.js';

/** `null` and absent alike: the client names no context. */
type Id = string | null;

interface SocketFormatBody {
  encoding: string;
  sample_rate?: WholeNumber | null;
  bitrate?: string | WholeNumber | null;
}

interface StartContextBody {
  voice_id: string;
  model_id: 'default';
  timestamps?: boolean;
  temperature?: Temperature | null;
  /** By default pcm. */
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

/** A validated frame. Whether the voice and the context exist is still to be asked. */
export type ClientFrame = { readonly contextId: string | null } & (
  | {
      readonly type: 'start';
      readonly settings: SpeechSettings;
      readonly timestamps: boolean;
      readonly format: AudioFormat;
    }
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'flush'; readonly flushId: string | null }
  | { readonly type: 'close' }
  | { readonly type: 'cancel' }
);

export type ClientFrameResult =
  | { readonly ok: true; readonly frame: ClientFrame }
  | {
      readonly ok: false;
      /** What is wrong, naming the field. */
      readonly reason: string;
      /** Of the frame, as far as they could be read. */
      readonly contextId: string | null;
      readonly flushId: string | null;
    };

const DEFAULT_FORMAT = { encoding: 'pcm' } as const;
/** Faults that one `error` frame lists. */
const FAULTS_TOLD_MAX = 5;

const isStart = typia.createEquals<StartContextFrame>();
const isText = typia.createEquals<SendTextFrame>();
const isFlush = typia.createEquals<FlushFrame>();
const isClose = typia.createEquals<CloseContextFrame>();
const isCancel = typia.createEquals<CancelContextFrame>();

const literal = (loc: Issue['loc'], input: unknown, expected: string): Issue => ({
  type: 'literal_error',
  loc,
  msg: `Input should be ${expected}`,
  input,
});

const isTrue = typia.createIs<true>();
const isIdType = typia.createIs<Id | undefined>();

const idField = (name: string): Field => ({
  name,
  required: false,
  accepts: isIdType,
  issues: (loc, value) => [notAString(loc, value)],
});

const trueField = (name: string): Field => ({
  name,
  required: true,
  accepts: isTrue,
  issues: (loc, value) => [literal(loc, value, 'true')],
});

const formatFields: readonly Field[] = [
  {
    name: 'encoding',
    required: true,
    accepts: typia.createIs<SocketFormatBody['encoding']>(),
    issues: (loc, value) => [notAString(loc, value)],
  },
  {
    name: 'sample_rate',
    required: false,
    accepts: typia.createIs<SocketFormatBody['sample_rate']>(),
    issues: (loc, value) => [notAnInteger(loc, value)],
  },
  {
    name: 'bitrate',
    required: false,
    accepts: typia.createIs<SocketFormatBody['bitrate']>(),
    issues: (loc, value) => [typeof value === 'number' ? notAnInteger(loc, value) : notAString(loc, value)],
  },
];

const issuesOf = (fields: readonly Field[], value: unknown, loc: Issue['loc']): Issue[] =>
  isObject(value)
    ? [
        ...fieldIssues(fields, value, loc).flatMap((issues) => issues ?? []),
        ...extraIssues(fields, value, loc),
      ]
    : [notAnObject(loc, value)];

const startFields: readonly Field[] = [
  {
    name: 'voice_id',
    required: true,
    accepts: typia.createIs<StartContextBody['voice_id']>(),
    issues: (loc, value) => [notAString(loc, value)],
  },
  {
    name: 'model_id',
    required: true,
    accepts: typia.createIs<StartContextBody['model_id']>(),
    issues: (loc, value) => [literal(loc, value, "'default'")],
  },
  {
    name: 'timestamps',
    required: false,
    accepts: typia.createIs<StartContextBody['timestamps']>(),
    issues: (loc, value) => [notABoolean(loc, value)],
  },
  {
    name: 'temperature',
    required: false,
    accepts: typia.createIs<StartContextBody['temperature']>(),
    issues: (loc, value) => {
      if (typeof value !== 'number') return [notANumber(loc, value)];
      return [value < 0.5 ? tooSmall(loc, value, 0.5) : tooLarge(loc, value, 3)];
    },
  },
  {
    name: 'response_format',
    required: false,
    accepts: typia.createEquals<StartContextBody['response_format']>(),
    issues: (loc, value) => issuesOf(formatFields, value, loc),
  },
];

/** Each kind of frame, by its discriminator: its fields, in the order in which what is wrong is told. */
const kinds: Readonly<Record<string, readonly Field[]>> = {
  start_context: [
    {
      name: 'start_context',
      required: true,
      accepts: typia.createEquals<StartContextBody>(),
      issues: (loc, value) => issuesOf(startFields, value, loc),
    },
    idField('context_id'),
  ],
  send_text: [
    {
      name: 'send_text',
      required: true,
      accepts: typia.createIs<string>(),
      issues: (loc, value) => [notAString(loc, value)],
    },
    idField('context_id'),
  ],
  flush: [trueField('flush'), idField('context_id'), idField('flush_id')],
  close_context: [trueField('close_context'), idField('context_id')],
  cancel_context: [trueField('cancel_context'), idField('context_id')],
};
const discriminators = Object.keys(kinds);

const idOf = (value: unknown): string | null =>
  typeof value === 'string' && value.length <= limits.socketIdMax ? value : null;

const cut = (part: string | number): string => {
  const text = String(part);
  return text.length > limits.validationNameMax ? `${text.slice(0, limits.validationNameMax)}…` : text;
};

const word = (issues: readonly Issue[]): string =>
  issues
    .slice(0, FAULTS_TOLD_MAX)
    .map(({ loc, msg }) => `${loc.map(cut).join('.')}: ${msg}`)
    .join('; ');

/** Bounds that are no matter of types. */
const boundFault = (object: JsonObject): string | null => {
  for (const name of ['context_id', 'flush_id']) {
    const id = object[name];
    if (typeof id === 'string' && id.length > limits.socketIdMax)
      return `${name}: String should have at most ${limits.socketIdMax} characters`;
  }
  const text = object['send_text'];
  if (typeof text === 'string' && Buffer.byteLength(text) > limits.socketTextBytesMax)
    return `send_text: String should have at most ${limits.socketTextBytesMax} bytes`;
  return null;
};

const startFrame = (frame: StartContextFrame): ClientFrame | readonly Issue[] => {
  const { voice_id, timestamps, temperature, response_format } = frame.start_context;
  const resolved = resolveFormat(response_format ?? DEFAULT_FORMAT);
  if (!resolved.ok)
    return resolved.faults.map(({ field, message, value }) =>
      valueError(['start_context', 'response_format', field], value, message),
    );
  return {
    type: 'start',
    contextId: frame.context_id ?? null,
    settings: {
      voiceId: voice_id,
      temperature: temperature ?? DEFAULT_TEMPERATURE,
      normalizeText: false,
    },
    timestamps: timestamps ?? false,
    format: resolved.format,
  };
};

/** @returns the frame, or what is wrong with it; `null` when its fields' tables have to say */
const toFrame = (object: unknown): ClientFrame | readonly Issue[] | null => {
  if (isText(object)) return { type: 'text', contextId: object.context_id ?? null, text: object.send_text };
  if (isFlush(object))
    return { type: 'flush', contextId: object.context_id ?? null, flushId: object.flush_id ?? null };
  if (isStart(object)) return startFrame(object);
  if (isClose(object)) return { type: 'close', contextId: object.context_id ?? null };
  if (isCancel(object)) return { type: 'cancel', contextId: object.context_id ?? null };
  return null;
};

const refuse = (object: JsonObject, reason: string): ClientFrameResult => ({
  ok: false,
  reason,
  contextId: idOf(object['context_id']),
  flushId: idOf(object['flush_id']),
});

const parseJson = (text: string): { readonly value: unknown } | { readonly fault: string } => {
  try {
    return { value: JSON.parse(text) };
  } catch {
    const fault = findJsonFault(text) ?? { position: 0, message: 'Expecting value' };
    return { fault: `JSON decode error at ${fault.position}: ${fault.message}` };
  }
};

/** @param text a whole text message, at most `limits.socketMessageBytesMax` long */
export const parseClientFrame = (text: string): ClientFrameResult => {
  const json = parseJson(text);
  if ('fault' in json) return refuse({}, json.fault);
  const object = json.value;
  if (!isObject(object)) return refuse({}, 'a frame is a JSON object');
  const found = discriminators.filter((name) => Object.hasOwn(object, name));
  const [kind] = found;
  if (kind === undefined) return refuse(object, `a frame has one of ${discriminators.join(', ')}`);
  if (found.length > 1) return refuse(object, `a frame has only one of ${found.join(', ')}`);
  const bound = boundFault(object);
  if (bound !== null) return refuse(object, bound);
  const frame = toFrame(object);
  if (frame !== null && 'type' in frame) return { ok: true, frame };
  return refuse(object, word(frame ?? issuesOf(kinds[kind] ?? [], object, [])));
};
