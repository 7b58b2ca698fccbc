/**
 * The items of a 422 body, `{"detail":[item, ...]}`: one function for each kind of fault, the words for what typia finds, and the
 * body itself, with a bound on what it echoes.
 */
import type { IValidation } from 'typia';
import type { Bounds } from '../limits.js';
import { Quotes } from './quoted.js';

export type Loc = readonly (string | number)[];

export interface Issue {
  readonly type: string;
  readonly loc: Loc;
  readonly msg: string;
  /** The value sent. */
  readonly input: unknown;
  readonly ctx?: Readonly<Record<string, unknown>>;
}

/** @returns what makes an item of a kind */
const kind =
  (type: string, msg: string) =>
  (loc: Loc, input: unknown): Issue => ({ type, loc, msg, input });

export const missing = kind('missing', 'Field required');

const EXTRA = 'extra_forbidden';
const extraForbidden = kind(EXTRA, 'Extra inputs are not permitted');

export const notAnObject = kind(
  'model_attributes_type',
  'Input should be a valid dictionary or object to extract fields from',
);

export const notAString = kind('string_type', 'Input should be a valid string');

const unreadBoolean = kind('bool_parsing', 'Input should be a valid boolean, unable to interpret input');
const noBoolean = kind('bool_type', 'Input should be a valid boolean');
const notABoolean = (loc: Loc, input: unknown): Issue =>
  (typeof input === 'string' || Number.isInteger(input) ? unreadBoolean : noBoolean)(loc, input);

const unreadNumber = kind(
  'float_parsing',
  'Input should be a valid number, unable to parse string as a number',
);
const noNumber = kind('float_type', 'Input should be a valid number');
const notANumber = (loc: Loc, input: unknown): Issue =>
  (typeof input === 'string' ? unreadNumber : noNumber)(loc, input);

const INTEGER = 'Input should be a valid integer';
const fraction = kind('int_from_float', `${INTEGER}, got a number with a fractional part`);
const unreadInteger = kind('int_parsing', `${INTEGER}, unable to parse string as an integer`);
const noInteger = kind('int_type', INTEGER);
export const notAnInteger = (loc: Loc, input: unknown): Issue => {
  if (typeof input === 'number') return fraction(loc, input);
  return (typeof input === 'string' ? unreadInteger : noInteger)(loc, input);
};

const tooSmall = (loc: Loc, input: unknown, ge: number): Issue => ({
  ...kind('greater_than_equal', `Input should be greater than or equal to ${ge}`)(loc, input),
  ctx: { ge },
});

export const tooLarge = (loc: Loc, input: unknown, le: number): Issue => ({
  ...kind('less_than_equal', `Input should be less than or equal to ${le}`)(loc, input),
  ctx: { le },
});

export const valueError = (loc: Loc, input: unknown, message: string): Issue => ({
  ...kind('value_error', `Value error, ${message}`)(loc, input),
  ctx: { error: {} },
});

/** @param position in UTF-16 units from the start of the body; `null` if the parser names none */
export const jsonInvalid = (position: number | null, error: string): Issue => ({
  ...kind('json_invalid', 'JSON decode error')(position === null ? ['body'] : ['body', position], {}),
  ctx: { error },
});

export type JsonObject = Readonly<Record<string, unknown>>;

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A step of typia's paths: `.name`, or `["any name"]`. */
const step = /\.([^.[]+)|\[("(?:[^"\\]|\\.)*")\]/g;

const locIn = (path: string): string[] =>
  [...path.matchAll(step)].map(([, name, text = '']) => name ?? (JSON.parse(text) as string));

/** Words a value that is not of the type, by typia's name of the type, such as `((number & Minimum<0.5>) | null | undefined)`. */
const wrongType = (loc: Loc, value: unknown, expected: string): Issue => {
  const [, side, bound] = /^number & (Minimum|Maximum)<([\d.]+)>$/.exec(expected) ?? [];
  if (side === 'Minimum') return tooSmall(loc, value, Number(bound));
  if (side === 'Maximum') return tooLarge(loc, value, Number(bound));
  const members = expected.replaceAll(/[()]/g, '').split(' | ');
  const has = (type: RegExp): boolean => members.some((member) => type.test(member));
  if (has(/^(?:[A-Z]|__type)/)) return notAnObject(loc, value);
  if (has(/^string\b/)) return notAString(loc, value);
  if (has(/^boolean$/)) return notABoolean(loc, value);
  if (has(/\bMultipleOf<1>/)) return notAnInteger(loc, value);
  if (has(/^number\b/)) return notANumber(loc, value);
  const names = members
    .filter((name) => !/^(?:null|undefined)$/.test(name))
    .map((name) => name.replaceAll('"', "'"));
  // Of the WebSocket's frames.
  return kind('literal_error', `Input should be ${names.join(' or ')}`)(loc, value);
};

/**
 * @param errors of typia, about the fields in the order in which they are declared and then about further keys. They are
 *   taken out: typia keeps the errors of its last check, with what the caller sent
 * @param whole the value that typia checked
 * @param loc of that value
 */
export const issuesOf = (
  errors: IValidation.IError[],
  whole: unknown,
  loc: Loc,
  { validationItemsMax }: Bounds,
): Issue[] => {
  const issues: Issue[] = [];
  const arrays = new Set<unknown>();
  for (const { path, expected, value } of errors.splice(0).slice(0, validationItemsMax)) {
    const names = locIn(path);
    const parent = names.slice(0, -1).reduce((object: unknown, name) => (object as JsonObject)[name], whole);
    const valueLoc = [...loc, ...names];
    // typia looks for the fields of an array, too.
    if (names.length > 0 && Array.isArray(parent)) {
      if (!arrays.has(parent)) issues.push(notAnObject(valueLoc.slice(0, -1), parent));
      arrays.add(parent);
    } else if (expected === 'undefined') issues.push(extraForbidden(valueLoc, value));
    else if (value === undefined) issues.push(missing(valueLoc, parent));
    else issues.push(wrongType(valueLoc, value, expected));
  }
  return issues;
};

/** An item for each key of an object that is not declared, in the order sent. typia misses some where a field is missing. */
export const extraIssues = (
  value: unknown,
  fields: readonly string[],
  loc: Loc,
  { validationItemsMax }: Bounds,
): Issue[] =>
  isObject(value)
    ? Object.keys(value)
        .filter((key) => !fields.includes(key))
        .slice(0, validationItemsMax)
        .map((key) => extraForbidden([...loc, key], value[key]))
    : [];

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
export const validationBody = (issues: readonly Issue[], bounds: Bounds): string => {
  const quotes = new Quotes(bounds);
  const shown = issues.slice(0, bounds.validationItemsMax);
  // Names come before values: without its name, an unknown key cannot be found.
  const locs = shown.map((issue) => locOf(issue, quotes));
  const items = shown.map((issue, at) => serialise(issue, locs[at] ?? [], quotes));
  return `{"detail":[${items.join(',')}]}`;
};
