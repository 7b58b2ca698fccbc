/**
 * The items of a 422 body, `{"detail":[item, ...]}`: one function for each kind of fault, the declared fields of an
 * object, and the body itself, with a bound on what it echoes.
 */
import type { Bounds } from '../limits.js';
import { Quotes } from './quoted.js';

/** The bounds of what a client may send in a body or a frame, and of how it is refused. */
export type ApiBounds = Pick<
  Bounds,
  | 'bodyDepthMax'
  | 'bodyTokensMax'
  | 'validationItemsMax'
  | 'quotedBytesMax'
  | 'socketIdMax'
  | 'socketTextBytesMax'
  | 'socketFrameDepthMax'
  | 'socketFrameTokensMax'
  | 'socketFrameBytesMax'
>;

export type Loc = readonly (string | number)[];

export interface Issue {
  readonly type: string;
  readonly loc: Loc;
  readonly msg: string;
  /** The value sent. */
  readonly input: unknown;
  readonly ctx?: Readonly<Record<string, unknown>>;
}

export const missing = (loc: Loc, whole: unknown): Issue => ({
  type: 'missing',
  loc,
  msg: 'Field required',
  input: whole,
});

const EXTRA = 'extra_forbidden';

export const extraForbidden = (loc: Loc, input: unknown): Issue => ({
  type: EXTRA,
  loc,
  msg: 'Extra inputs are not permitted',
  input,
});

export const notAnObject = (loc: Loc, input: unknown): Issue => ({
  type: 'model_attributes_type',
  loc,
  msg: 'Input should be a valid dictionary or object to extract fields from',
  input,
});

export const notAString = (loc: Loc, input: unknown): Issue => ({
  type: 'string_type',
  loc,
  msg: 'Input should be a valid string',
  input,
});

export const notABoolean = (loc: Loc, input: unknown): Issue =>
  typeof input === 'string' || Number.isInteger(input)
    ? {
        type: 'bool_parsing',
        loc,
        msg: 'Input should be a valid boolean, unable to interpret input',
        input,
      }
    : { type: 'bool_type', loc, msg: 'Input should be a valid boolean', input };

export const notANumber = (loc: Loc, input: unknown): Issue =>
  typeof input === 'string'
    ? {
        type: 'float_parsing',
        loc,
        msg: 'Input should be a valid number, unable to parse string as a number',
        input,
      }
    : { type: 'float_type', loc, msg: 'Input should be a valid number', input };

export const notAnInteger = (loc: Loc, input: unknown): Issue => {
  const msg = 'Input should be a valid integer';
  if (typeof input === 'number')
    return { type: 'int_from_float', loc, msg: `${msg}, got a number with a fractional part`, input };
  if (typeof input === 'string')
    return { type: 'int_parsing', loc, msg: `${msg}, unable to parse string as an integer`, input };
  return { type: 'int_type', loc, msg, input };
};

export const tooSmall = (loc: Loc, input: unknown, ge: number): Issue => ({
  type: 'greater_than_equal',
  loc,
  msg: `Input should be greater than or equal to ${ge}`,
  input,
  ctx: { ge },
});

export const tooLarge = (loc: Loc, input: unknown, le: number): Issue => ({
  type: 'less_than_equal',
  loc,
  msg: `Input should be less than or equal to ${le}`,
  input,
  ctx: { le },
});

export const valueError = (loc: Loc, input: unknown, message: string): Issue => ({
  type: 'value_error',
  loc,
  msg: `Value error, ${message}`,
  input,
  ctx: { error: {} },
});

/** @param position in UTF-16 units from the start of the body; `null` if the parser names none */
export const jsonInvalid = (position: number | null, error: string): Issue => ({
  type: 'json_invalid',
  loc: position === null ? ['body'] : ['body', position],
  msg: 'JSON decode error',
  input: {},
  ctx: { error },
});

/** A literal of the WebSocket's frames. */
export const notTheLiteral = (loc: Loc, input: unknown, expected: string): Issue => ({
  type: 'literal_error',
  loc,
  msg: `Input should be ${expected}`,
  input,
});

export type JsonObject = Readonly<Record<string, unknown>>;

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A declared field of an object. typia decides with the same types whether the whole body is valid. */
export interface Field {
  readonly name: string;
  readonly required: boolean;
  readonly accepts: (value: unknown) => boolean;
  /** Items of a value that is not accepted. */
  readonly issues: (loc: Loc, value: unknown, bounds: ApiBounds) => readonly Issue[];
}

/** Items of the declared fields of an object, field by field; `null` if the field passed its type check. */
export const fieldIssues = (
  fields: readonly Field[],
  object: JsonObject,
  loc: Loc,
  bounds: ApiBounds,
): (readonly Issue[] | null)[] =>
  fields.map((field) => {
    const fieldLoc = [...loc, field.name];
    if (!Object.hasOwn(object, field.name)) return field.required ? [missing(fieldLoc, object)] : null;
    const value = object[field.name];
    return field.accepts(value) ? null : field.issues(fieldLoc, value, bounds);
  });

/** An item for each key that is not declared, in the order sent. */
export const extraIssues = (
  fields: readonly Field[],
  object: JsonObject,
  loc: Loc,
  { validationItemsMax }: ApiBounds,
): Issue[] => {
  const issues: Issue[] = [];
  for (const key of Object.keys(object)) {
    if (fields.some(({ name }) => name === key)) continue;
    issues.push(extraForbidden([...loc, key], object[key]));
    if (issues.length >= validationItemsMax) break;
  }
  return issues;
};

/** Items of a value that should be an object with these fields and no others. */
export const objectIssues = (
  fields: readonly Field[],
  value: unknown,
  loc: Loc,
  bounds: ApiBounds,
): readonly Issue[] =>
  isObject(value)
    ? [
        ...fieldIssues(fields, value, loc, bounds).flatMap((issues) => issues ?? []),
        ...extraIssues(fields, value, loc, bounds),
      ]
    : [notAnObject(loc, value)];

/** The path to a fault. The name of a key that is not declared is the client's. */
export const locOf = ({ loc, type }: Issue, quotes: Quotes): Loc =>
  type === EXTRA ? [...loc.slice(0, -1), quotes.name(String(loc.at(-1)))] : loc;

const serialise = (issue: Issue, loc: Loc, quotes: Quotes): string => {
  const members = [
    `"type":${JSON.stringify(issue.type)}`,
    `"loc":${JSON.stringify(loc)}`,
    `"msg":${JSON.stringify(issue.msg)}`,
  ];
  const input = quotes.value(issue.input);
  if (input !== null) members.push(`"input":${input}`);
  if (issue.ctx !== undefined) members.push(`"ctx":${JSON.stringify(issue.ctx)}`);
  return `{${members.join(',')}}`;
};

/**
 * @returns the JSON of a 422 body, with item keys in the order type, loc, msg, input, ctx. It has at most
 * `validationItemsMax` items, and leaves out an `input` beyond `quotedBytesMax`, so it stays small whatever the client sent.
 */
export const validationBody = (issues: readonly Issue[], bounds: ApiBounds): string => {
  const quotes = new Quotes(bounds);
  const shown = issues.slice(0, bounds.validationItemsMax);
  // Names come before values: without its name, an unknown key cannot be found.
  const locs = shown.map((issue) => locOf(issue, quotes));
  const items = shown.map((issue, at) => serialise(issue, locs[at] ?? [], quotes));
  return `{"detail":[${items.join(',')}]}`;
};
