/**
 * Has the service collect the garbage of all its threads, by Node's inspector: so that what its memory is told by is
 * what it keeps, and not how long ago V8 last collected. And asks what that is.
 */
import { Inspector } from './inspector.js';

/** Of all threads. */
export interface KeptByScript {
  /** Objects in V8's heaps. */
  readonly heapBytes: number;
  /** What they hold outside of these: buffers, and the memory of WebAssembly by its address space. */
  readonly externalBytes: number;
}

const usage = { expression: 'process.memoryUsage()', returnByValue: true };
interface UsageAnswer {
  readonly result: { readonly value: NodeJS.MemoryUsage };
}

export class Collector {
  readonly #url: string;
  /**
   * Kept from look to look: Node lets go of a thread's session but for some 9 kB, so that a collector who connects for
   * every look is the growth that it looks for (measured with Node 22: 100 looks at an idle service, 3.6 MB).
   */
  #inspector: Promise<Inspector> | null = null;

  /** @param url of the inspector of the service's process, as it tells on its standard error */
  constructor(url: string) {
    this.#url = url;
  }

  /** @throws when the inspector does not answer; the next call tries anew */
  async collect(): Promise<KeptByScript> {
    try {
      const inspector = await (this.#inspector ??= Inspector.connect(this.#url));
      let [heapBytes, externalBytes] = [0, 0];
      for (const thread of inspector.threads) {
        await inspector.call(thread, 'HeapProfiler.collectGarbage');
        const { result } = (await inspector.call(thread, 'Runtime.evaluate', usage)) as UsageAnswer;
        heapBytes += result.value.heapUsed;
        externalBytes += result.value.external;
      }
      return { heapBytes, externalBytes };
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** Idempotent. */
  close(): void {
    void this.#inspector?.then((inspector) => inspector.close()).catch(() => undefined);
    this.#inspector = null;
  }
}
