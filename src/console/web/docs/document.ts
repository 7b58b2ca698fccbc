/** An OpenAPI document, as far as this page reads it. */
import type { Schema, Schemas } from './schema.js';

export interface Content {
  readonly schema?: Schema;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}

export interface Answer {
  readonly $ref?: string;
  readonly description?: string;
  readonly content?: Readonly<Record<string, Content>>;
}

export interface Parameter {
  readonly name: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly example?: string;
}

export interface Operation {
  readonly operationId: string;
  readonly summary?: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, Content>> };
  readonly responses: Readonly<Record<string, Answer>>;
}

export interface ApiDocument {
  readonly info: { readonly description: string };
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Schemas;
    readonly responses?: Readonly<Record<string, Answer>>;
  };
}

export interface Described {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

export const operationsOf = ({ paths }: ApiDocument): readonly Described[] =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
  );
