/**
 * Which pages of other origins may call the service from a browser (the CORS protocol of the Fetch standard).
 *
 * All headers come from the configuration. A client's origin is looked up and never sent back, because the library does
 * not filter line breaks.
 */

export type Header = readonly [name: string, value: string];

/** Seconds that a browser may remember the answer to a preflight; Chromium takes no more. */
const PREFLIGHT_SECONDS = 7_200;

const EXPOSED: Header = ['access-control-expose-headers', 'x-request-id, retry-after, traceparent'];
/** Responses differ by origin, and caches must know it, also for a request without one. */
const VARY: Header = ['vary', 'origin'];

/** What browsers get from a listener, by the origin of the page that asks. */
export interface OriginPolicy {
  /** @param origin of the request, empty if it has none */
  allows(origin: string): boolean;
  /** Headers of every response to a request of this origin, whatever its status. */
  headersFor(origin: string): readonly Header[];
}

const allowing = (origin: string): readonly Header[] => [
  ['access-control-allow-origin', origin],
  EXPOSED,
  VARY,
];

export class Cors implements OriginPolicy {
  readonly #byOrigin: ReadonlyMap<string, readonly Header[]>;
  readonly #ofAny: readonly Header[] | undefined;
  readonly #ofOthers: readonly Header[];

  /** @param origins as browsers send them; `*` stands for all of them; an empty list switches CORS off */
  constructor(origins: readonly string[]) {
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
 */
export const preflightHeaders = (methods: string): readonly Header[] => [
  ['access-control-allow-methods', methods],
  ['access-control-allow-headers', 'x-api-key, content-type, traceparent'],
  ['access-control-max-age', String(PREFLIGHT_SECONDS)],
];
