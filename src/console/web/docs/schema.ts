/** JSON schemas as rows of a table: a row for each field, with its path. */
import { formatNumber } from '../format.js';

export interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly oneOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
}

export type Schemas = Readonly<Record<string, Schema>>;

export interface FieldRow {
  readonly path: string;
  readonly type: string;
  readonly isRequired: boolean;
  readonly text: string;
}

/** Schemas that contain themselves would have no end. */
const DEPTH_MAX = 4;

export const nameIn = (ref: string): string => ref.slice(ref.lastIndexOf('/') + 1);

const resolved = (schema: Schema, schemas: Schemas): Schema =>
  schema.$ref === undefined ? schema : { ...schemas[nameIn(schema.$ref)], ...without(schema) };

/** What stands beside a reference describes its place. */
const without = ({ $ref: _, ...beside }: Schema): Schema => beside;

const boundsOf = ({ minimum, maximum }: Schema): string => {
  const to = maximum === undefined ? '' : ` ${minimum === undefined ? 'up ' : ''}to ${formatNumber(maximum)}`;
  return minimum === undefined ? to : ` from ${formatNumber(minimum)}${to}`;
};

export const typeOf = (given: Schema, schemas: Schemas): string => {
  const schema = resolved(given, schemas);
  if (schema.oneOf !== undefined)
    return [...new Set(schema.oneOf.map((one) => typeOf(one, schemas)))].join(' or ');
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(' or ');
  if (schema.items !== undefined) return `list of ${typeOf(schema.items, schemas)}`;
  return `${schema.type ?? 'any'}${boundsOf(schema)}`;
};

/** The rows of an object, and of the objects in it. */
export const fieldsOf = (given: Schema, schemas: Schemas, before = '', depth = 0): readonly FieldRow[] => {
  const schema = resolved(given, schemas);
  if (depth > DEPTH_MAX) return [];
  const inner = [...(schema.oneOf ?? []), ...(schema.items === undefined ? [] : [schema.items])];
  const dot = before === '' ? '' : `${before}.`;
  const own = Object.entries(schema.properties ?? {}).flatMap(([name, property]) => [
    {
      path: `${dot}${name}`,
      type: typeOf(property, schemas),
      isRequired: schema.required?.includes(name) === true,
      text: resolved(property, schemas).description ?? '',
    },
    ...fieldsOf(property, schemas, `${dot}${name}`, depth + 1),
  ]);
  const rows = [...own, ...inner.flatMap((one) => fieldsOf(one, schemas, before, depth + 1))];
  // Alternatives share fields.
  return rows.filter(({ path, type }, index) =>
    rows.slice(0, index).every((other) => other.path !== path || other.type !== type),
  );
};
