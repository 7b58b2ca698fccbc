/**
 * Words what is wrong with a speech request: 422 items, depth-first in the order in which the fields are declared,
 * then further keys in the order sent (`JSON.parse` moves keys that look like array indices to the front).
 *
 * Whether a field is at fault is typia's decision, by the same types as the whole body's; only the wording is here.
 */
import typia from 'typia';
import { extraIssues, fieldIssues, isObject, type Field } from './fields.js';
import { resolveFormat, type FormatFields } from './formats.js';
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
  type Loc,
} from './issues.js';
import type { ResponseFormatBody, SpeechRequestBody } from './speech-request.js';

const temperatureIssue = (loc: Loc, value: unknown): Issue => {
  if (typeof value !== 'number') return notANumber(loc, value);
  return value < 0.5 ? tooSmall(loc, value, 0.5) : tooLarge(loc, value, 3);
};

const formatFields: readonly Field[] = [
  {
    name: 'encoding',
    required: false,
    accepts: typia.createIs<ResponseFormatBody['encoding']>(),
    issues: (loc, value) => [notAString(loc, value)],
  },
  {
    name: 'sample_rate',
    required: false,
    accepts: typia.createIs<ResponseFormatBody['sample_rate']>(),
    issues: (loc, value) => [notAnInteger(loc, value)],
  },
  {
    name: 'bitrate',
    required: false,
    accepts: typia.createIs<ResponseFormatBody['bitrate']>(),
    // A union has an item for each of its members.
    issues: (loc, value) => [notAString([...loc, 'str'], value), notAnInteger([...loc, 'int'], value)],
  },
];

/** The table's rules for fields that passed their type checks. */
const ruleIssues = (fields: FormatFields, loc: Loc): Map<string, Issue> => {
  const resolved = resolveFormat(fields);
  const faults = resolved.ok ? [] : resolved.faults;
  return new Map(
    faults.map(({ field, message, value }) => [field, valueError([...loc, field], value, message)]),
  );
};

const formatIssues = (loc: Loc, value: unknown): readonly Issue[] => {
  if (typeof value === 'string') return [...ruleIssues({ encoding: value }, loc).values()];
  if (!isObject(value)) return [notAnObject(loc, value)];
  const typeIssues = fieldIssues(formatFields, value, loc);
  // Whether an encoding is known needs no other field; the rules of rate and bitrate need all of them.
  const typed = typeIssues.every((issues) => issues === null);
  const encoding = value['encoding'];
  const rules = typed
    ? ruleIssues(value, loc)
    : ruleIssues({ encoding: typeof encoding === 'string' ? encoding : undefined }, loc);
  const items = formatFields.flatMap((field, index) => {
    const rule = rules.get(field.name);
    return typeIssues[index] ?? (rule === undefined ? [] : [rule]);
  });
  return [...items, ...extraIssues(formatFields, value, loc)];
};

const bodyFields: readonly Field[] = [
  {
    name: 'text',
    required: true,
    accepts: typia.createIs<SpeechRequestBody['text']>(),
    issues: (loc, value) => [notAString(loc, value)],
  },
  {
    name: 'voice',
    required: true,
    accepts: typia.createIs<SpeechRequestBody['voice']>(),
    issues: (loc, value) => [notAString(loc, value)],
  },
  {
    name: 'response_format',
    required: false,
    // Its own fields are looked at, whatever it is: the table of formats may refuse what the types accept.
    accepts: () => false,
    issues: formatIssues,
  },
  {
    name: 'timestamps',
    required: false,
    accepts: typia.createIs<SpeechRequestBody['timestamps']>(),
    issues: (loc, value) => [notABoolean(loc, value)],
  },
  {
    name: 'temperature',
    required: false,
    accepts: typia.createIs<SpeechRequestBody['temperature']>(),
    issues: (loc, value) => [temperatureIssue(loc, value)],
  },
  {
    name: 'normalize_text',
    required: false,
    accepts: typia.createIs<SpeechRequestBody['normalize_text']>(),
    issues: (loc, value) => [notABoolean(loc, value)],
  },
];

/** @param body a JSON value that is not a valid speech request @returns at least one item */
export const speechIssues = (body: unknown): readonly Issue[] => {
  if (!isObject(body)) return [notAnObject(['body'], body)];
  const items = [
    ...fieldIssues(bodyFields, body, ['body']).flatMap((issues) => issues ?? []),
    ...extraIssues(bodyFields, body, ['body']),
  ];
  if (items.length === 0) throw new Error('a body was refused for which there is no item');
  return items;
};
