/** Declared fields of a JSON object: which of them are at fault, in what order, and in which words. */
import { limits } from '../limits.js';
import { extraForbidden, missing, type Issue, type Loc } from './issues.js';

export type JsonObject = Readonly<Record<string, unknown>>;

export interface Field {
  readonly name: string;
  readonly required: boolean;
  /** typia's decision, by the same type as that of the whole body. */
  readonly accepts: (value: unknown) => boolean;
  /** Items of a value that is not accepted. */
  readonly issues: (loc: Loc, value: unknown) => readonly Issue[];
}

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Items of the declared fields of an object; `null` for a field marks that it passed its type check. */
export const fieldIssues = (
  fields: readonly Field[],
  object: JsonObject,
  loc: Loc,
): (readonly Issue[] | null)[] =>
  fields.map((field) => {
    const fieldLoc = [...loc, field.name];
    if (!Object.hasOwn(object, field.name)) return field.required ? [missing(fieldLoc, object)] : null;
    const value = object[field.name];
    return field.accepts(value) ? null : field.issues(fieldLoc, value);
  });

/** An item for each key that is not declared, in the order sent. */
export const extraIssues = (fields: readonly Field[], object: JsonObject, loc: Loc): Issue[] => {
  const issues: Issue[] = [];
  for (const key of Object.keys(object)) {
    if (fields.some(({ name }) => name === key)) continue;
    issues.push(extraForbidden([...loc, key], object[key]));
    if (issues.length >= limits.validationItemsMax) break;
  }
  return issues;
};
