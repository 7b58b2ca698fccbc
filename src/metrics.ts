/**
 * What the service counts, for Prometheus. A registry of its own, no global state: a test can have several.
 */
import { Gauge, Registry } from 'prom-client';

export class Metrics {
  readonly #registry = new Registry();

  /** @param isReady asked at each scrape */
  constructor(isReady: () => boolean) {
    new Gauge({
      name: 'syrinx_ready',
      help: '1 while speech may be sent here, as /readyz says',
      registers: [this.#registry],
      collect() {
        this.set(isReady() ? 1 : 0);
      },
    });
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** Everything, in the text format of Prometheus. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }
}
