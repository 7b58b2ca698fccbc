/** Holds responses and requests against an OpenAPI document, by a JSON schema validator that is not ours. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import { header, type RawResponse } from './raw-client.js';

interface MediaType {
  readonly schema?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}
type Content = Readonly<Record<string, MediaType>>;
interface DescribedHeader {
  readonly $ref?: string;
  readonly required?: boolean;
}
interface DescribedResponse {
  readonly $ref?: string;
  readonly headers?: Readonly<Record<string, DescribedHeader>>;
  readonly content?: Content;
}
export interface Operation {
  readonly operationId: string;
  readonly security?: readonly unknown[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, DescribedResponse>>;
}
export interface OpenApi {
  readonly openapi: string;
  readonly info: { readonly version: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<
      Record<string, { readonly description?: string; readonly properties?: object }>
    >;
    readonly responses: Readonly<Record<string, DescribedResponse>>;
    readonly headers: Readonly<Record<string, DescribedHeader>>;
  };
}

const pointer = (...keys: readonly string[]): string =>
  keys.map((key) => `/${encodeURIComponent(key.replaceAll('~', '~0').replaceAll('/', '~1'))}`).join('');

const lastOf = (reference: string): string => reference.replace(/^.*\//, '');

export class Description {
  readonly document: OpenApi;
  readonly #ajv = new Ajv2020({ strict: false, validateFormats: false });

  constructor(document: unknown) {
    this.document = document as OpenApi;
    this.#ajv.addSchema(document as object, 'openapi');
  }

  get operations(): { path: string; method: string; operation: Operation }[] {
    return Object.entries(this.document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
    );
  }

  /** @returns what is wrong with a value for a component's schema, or `null` */
  valueFault(component: string, value: unknown): string | null {
    return this.#fault(pointer('components', 'schemas', component), value);
  }

  /** Every example that the document gives, with what is wrong with it. */
  examples(): { name: string; value: unknown; fault: string | null }[] {
    const found: { name: string; value: unknown; fault: string | null }[] = [];
    const look = (content: Content, at: string): void => {
      for (const [type, media] of Object.entries(content))
        for (const [name, { value }] of Object.entries(media.examples ?? {})) {
          const schema = `${at}${pointer('content', type, 'schema')}`;
          found.push({ name: `${at} ${name}`, value, fault: this.#fault(schema, value) });
        }
    };
    for (const { path, method, operation } of this.operations) {
      const at = pointer('paths', path, method);
      if (operation.requestBody) look(operation.requestBody.content, `${at}/requestBody`);
      for (const [status, response] of Object.entries(operation.responses))
        if (response.content) look(response.content, `${at}/responses/${status}`);
    }
    for (const [name, response] of Object.entries(this.document.components.responses))
      if (response.content) look(response.content, pointer('components', 'responses', name));
    return found;
  }

  /** @returns what the document does not say about a response, or `null` */
  responseFault(method: string, target: string, response: RawResponse): string | null {
    const isHead = method === 'HEAD';
    const methods = this.document.paths[target.replace(/\?.*$/, '')];
    // What has no operation of its own is described by any other: 404 of paths, 405 of methods.
    const operations = Object.entries(methods ?? this.document.paths['/openapi.json'] ?? {});
    const wanted = isHead ? 'get' : method.toLowerCase();
    const [known, operation] = operations.find(([name]) => name === wanted) ?? operations[0]!;
    const path = methods === undefined ? '/openapi.json' : target.replace(/\?.*$/, '');
    // A fault of the head is found before path and method are looked at.
    const isOfHead = response.status === 411;
    if (methods === undefined && response.status !== 404 && !isOfHead) return 'the path is not described';
    if (known !== wanted && methods !== undefined && response.status !== 405 && !isOfHead)
      return `the method is not described, and answered ${response.status}`;
    const status = String(response.status);
    const named = operation.responses[status];
    if (named === undefined) return `status ${status} is not described`;
    const at = named.$ref?.slice(1) ?? pointer('paths', path, known, 'responses', status);
    const described =
      named.$ref === undefined ? named : (this.document.components.responses[lastOf(named.$ref)] ?? {});
    for (const [name, given] of Object.entries(described.headers ?? {})) {
      const known = given.$ref === undefined ? given : this.document.components.headers[lastOf(given.$ref)];
      if (known?.required === true && header(response, name) === undefined) return `it has no ${name}`;
    }
    const type = header(response, 'content-type');
    if (type === undefined) return response.body.length === 0 ? null : 'it has no content type';
    const media = described.content?.[type];
    if (media === undefined) return `${type} is not described`;
    if (isHead || media.schema === undefined) return null;
    const text = response.body.toString();
    const value: unknown = type === 'application/json' ? JSON.parse(text) : text;
    return this.#fault(`${at}${pointer('content', type, 'schema')}`, value);
  }

  #fault(at: string, value: unknown): string | null {
    const validate = this.#ajv.getSchema(`openapi#${at}`);
    if (validate === undefined) throw new Error(`the document has nothing at ${at}`);
    return validate(value) === true ? null : this.#ajv.errorsText(validate.errors);
  }
}
