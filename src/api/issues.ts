/**
 * The items of a 422 body, `{"detail":[item, ...]}`: one function for each kind of fault, the declared fields of an
 * object, and the body itself, with a bound on what it echoes.
 */
import type { Bounds } from '../limits.js';

/** The bounds of what a client may send in a body or a frame, and of how it is refused. */
export type ApiBounds = Pick<
  Bounds,
  | 'bodyDepthMax'
  | 'bodyTokensMax'
  | 'validationItemsMax'
  | 'validationEchoBytesMax'
  | 'validationNameMax'
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

export const extraForbidden = (loc: Loc, input: unknown): Issue => ({
  type: 'extra_forbidden',
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

/** @param position in UTF-16 units from the start of the body */
export const jsonInvalid = (position: number, error: string): Issue => ({
  type: 'json_invalid',
  loc: ['body', position],
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

/** Cuts a name that a client chose before a message or `loc` shows it. */
export const cutName = (name: string, { validationNameMax }: Pick<ApiBounds, 'validationNameMax'>): string =>
  name.length > validationNameMax ? `${name.slice(0, validationNameMax)}…` : name;

/** UTF-16 units of all names and strings in a value: its JSON is at least as long. */
const unitsOf = (value: unknown): number => {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 0;
  const members: readonly unknown[] = Object.values(value);
  const names = Array.isArray(value) ? [] : Object.keys(value);
  return [...names, ...members].reduce((units: number, part) => units + unitsOf(part), 0);
};

/**
 * Serialises values until their bytes are spent. It remembers the last value, because each missing field echoes the
 * whole body.
 */
class Echo {
  #bytesLeft: number;
  #last: { readonly value: unknown; readonly text: string } | undefined;

  constructor(bytesMax: number) {
    this.#bytesLeft = bytesMax;
  }

  /** @returns JSON text, or `null` if the value does not fit in what is left */
  take(value: unknown): string | null {
    // The largest inputs are refused without a copy.
    if (unitsOf(value) > this.#bytesLeft) return null;
    if (this.#last === undefined || this.#last.value !== value)
      this.#last = { value, text: JSON.stringify(value) };
    const text = this.#last.text;
    const bytes = text.length > this.#bytesLeft ? Infinity : Buffer.byteLength(text);
    if (bytes > this.#bytesLeft) return null;
    this.#bytesLeft -= bytes;
    return text;
  }
}

const serialise = (issue: Issue, echo: Echo, bounds: ApiBounds): string => {
  const loc = issue.loc.map((part) => (typeof part === 'string' ? cutName(part, bounds) : part));
  const members = [
    `"type":${JSON.stringify(issue.type)}`,
    `"loc":${JSON.stringify(loc)}`,
    `"msg":${JSON.stringify(issue.msg)}`,
  ];
  const input = echo.take(issue.input);
  if (input !== null) members.push(`"input":${input}`);
  if (issue.ctx !== undefined) members.push(`"ctx":${JSON.stringify(issue.ctx)}`);
  return `{${members.join(',')}}`;
};

/**
 * @returns the JSON of a 422 body, with item keys in the order type, loc, msg, input, ctx. It has at most
 * `validationItemsMax` items, and leaves out an `input` beyond `validationEchoBytesMax`, so it stays small whatever the
 * client sent.
 */
export const validationBody = (issues: readonly Issue[], bounds: ApiBounds): string => {
  const echo = new Echo(bounds.validationEchoBytesMax);
  const items = issues.slice(0, bounds.validationItemsMax).map((issue) => serialise(issue, echo, bounds));
  return `{"detail":[${items.join(',')}]}`;
};
