/**
 * Which pages of other origins may call the service from a browser (the CORS protocol of the Fetch standard).
 *
 * Headers are made of the configuration alone, once: what a client sends is looked up, never repeated, because the
 * library would let line breaks in it through.
 */

export type Header = readonly [name: string, value: string];

/** Seconds that a browser may remember the answer to a preflight; Chromium takes no more. */
const PREFLIGHT_SECONDS = 7_200;

const EXPOSED: Header = ['access-control-expose-headers', 'x-request-id'];
/** Responses differ by the origin that asks, and caches must know, also from those without one. */
const VARY: Header = ['vary', 'origin'];

const allowing = (origin: string): readonly Header[] => [
  ['access-control-allow-origin', origin],
  EXPOSED,
  VARY,
];

export class Cors {
  readonly #byOrigin: ReadonlyMap<string, readonly Header[]>;
  readonly #ofAny: readonly Header[] | undefined;
  readonly #ofOthers: readonly Header[];

  /** @param origins as browsers send them; `*` among them stands for every one; none switches all of this off */
  constructor(origins: readonly string[]) {
    this.#byOrigin = new Map(origins.map((origin) => [origin, allowing(origin)]));
    this.#ofAny = this.#byOrigin.get('*');
    this.#ofOthers = origins.length > 0 ? [VARY] : [];
  }

  /** @param origin of the request, empty when it names none */
  allows(origin: string): boolean {
    return origin !== '' && (this.#ofAny !== undefined || this.#byOrigin.has(origin));
  }

  /** What every response to a request of this origin carries, whatever its status. */
  headersFor(origin: string): readonly Header[] {
    if (!this.allows(origin)) return this.#ofOthers;
    return this.#ofAny ?? this.#byOrigin.get(origin) ?? this.#ofOthers;
  }
}

/**
 * What the answer to a preflight carries besides.
 * @param methods of the route, separated by commas
 */
export const preflightHeaders = (methods: string): readonly Header[] => [
  ['access-control-allow-methods', methods],
  ['access-control-allow-headers', 'x-api-key, content-type'],
  ['access-control-max-age', String(PREFLIGHT_SECONDS)],
];
