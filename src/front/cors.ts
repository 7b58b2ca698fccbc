/**
 * Which pages of other origins may call the service from a browser (the CORS protocol of the Fetch standard).
 *
 * All headers come from the configuration. A client's origin is looked up and never sent back, because the library does
 * not filter line breaks.
 */

export type Header = readonly [name: string, value: string];

/** Seconds that a browser may remember the answer to a preflight; Chromium takes no more. */
const PREFLIGHT_SECONDS = 7_200;

/** Headers that pages of allowed origins may use, separated by commas. */
export interface CorsHeaders {
  /** They may send these. */
  readonly request: string;
  /** They may read these in responses, beside those that every page may read. */
  readonly response: string;
}

const publicHeaders: CorsHeaders = {
  request: 'x-api-key, content-type, traceparent',
  response: 'x-request-id, retry-after, traceparent',
};
/** Responses differ by origin. Caches must know that, even when a request has no origin. */
const VARY: Header = ['vary', 'origin'];

/** What browsers get from a listener, by the origin of the page that asks. */
export interface OriginPolicy {
  /** Headers that its pages may send, separated by commas. */
  readonly requestHeaders: string;
  /** @param origin of the request, empty if it has none */
  allows(origin: string): boolean;
  /** Headers of every response to a request of this origin, whatever its status. */
  headersFor(origin: string): readonly Header[];
}

export class Cors implements OriginPolicy {
  readonly requestHeaders: string;
  readonly #byOrigin: ReadonlyMap<string, readonly Header[]>;
  readonly #ofAny: readonly Header[] | undefined;
  readonly #ofOthers: readonly Header[];

  /** @param origins as browsers send them; `*` stands for all of them; an empty list switches CORS off */
  constructor(origins: readonly string[], headers = publicHeaders) {
    this.requestHeaders = headers.request;
    const allowing = (origin: string): readonly Header[] => [
      ['access-control-allow-origin', origin],
      ['access-control-expose-headers', headers.response],
      VARY,
    ];
    this.#byOrigin = new Map(origins.map((origin) => [origin, allowing(origin)]));
    this.#ofAny = this.#byOrigin.get('*');
    this.#ofOthers = origins.length > 0 ? [VARY] : [];
  }

  allows(origin: string): boolean {
    return origin !== '' && (this.#ofAny !== undefined || this.#byOrigin.has(origin));
  }

  headersFor(origin: string): readonly Header[] {
    if (!this.allows(origin)) return this.#ofOthers;
    return this.#ofAny ?? this.#byOrigin.get(origin) ?? this.#ofOthers;
  }
}

/**
 * Further headers of the answer to a preflight.
 * @param methods the route's, separated by commas
 * @param requestHeaders the policy's
 */
export const preflightHeaders = (methods: string, requestHeaders: string): readonly Header[] => [
  ['access-control-allow-methods', methods],
  ['access-control-allow-headers', requestHeaders],
  ['access-control-max-age', String(PREFLIGHT_SECONDS)],
];
