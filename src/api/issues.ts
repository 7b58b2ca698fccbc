/**
 * The 422 body: `{"detail":[item, ...]}`. Items are built by the functions below, one a kind of fault, so that type,
 * message and context are worded in one place; `validationBody` bounds what is echoed.
 */
import { limits } from '../limits.js';

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

/**
 * Serialises values for echoing until their bytes are spent. The last value is remembered: the whole body is echoed
 * once for each missing field.
 */
class Echo {
  #budgetBytes: number = limits.validationEchoBytesMax;
  #last: { readonly value: unknown; readonly text: string } | undefined;

  /** @returns JSON text, or `null` when the value does not fit in what is left */
  take(value: unknown): string | null {
    // A string's JSON is at least as long as the string, so that the largest inputs are refused without a copy.
    if (typeof value === 'string' && value.length > this.#budgetBytes) return null;
    if (this.#last === undefined || this.#last.value !== value)
      this.#last = { value, text: JSON.stringify(value) };
    const text = this.#last.text;
    const bytes = text.length > this.#budgetBytes ? Infinity : Buffer.byteLength(text);
    if (bytes > this.#budgetBytes) return null;
    this.#budgetBytes -= bytes;
    return text;
  }
}

const cut = (part: string | number): string | number =>
  typeof part === 'string' && part.length > limits.validationNameMax
    ? `${part.slice(0, limits.validationNameMax)}…`
    : part;

const serialise = (issue: Issue, echo: Echo): string => {
  const members = [
    `"type":${JSON.stringify(issue.type)}`,
    `"loc":${JSON.stringify(issue.loc.map(cut))}`,
    `"msg":${JSON.stringify(issue.msg)}`,
  ];
  const input = echo.take(issue.input);
  if (input !== null) members.push(`"input":${input}`);
  if (issue.ctx !== undefined) members.push(`"ctx":${JSON.stringify(issue.ctx)}`);
  return `{${members.join(',')}}`;
};

/**
 * @returns the JSON of a 422 body; item keys in the order type, loc, msg, input, ctx. At most
 * `limits.validationItemsMax` items, and an `input` is left out where echoing it would pass
 * `limits.validationEchoBytesMax`: the body stays small whatever was sent.
 */
export const validationBody = (issues: readonly Issue[]): string => {
  const echo = new Echo();
  const items = issues.slice(0, limits.validationItemsMax).map((issue) => serialise(issue, echo));
  return `{"detail":[${items.join(',')}]}`;
};
