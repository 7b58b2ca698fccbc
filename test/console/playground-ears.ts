/** What one hears at the playground: samples as they are scheduled, words as they light up, silence after a stop. */
import type { Page } from 'playwright-core';

/** Runs in the page before its own scripts. It changes no sound. */
const script = `
  const sources = [];
  const lit = [];
  const meters = [];
  let context = null;
  const start = AudioBufferSourceNode.prototype.start;
  AudioBufferSourceNode.prototype.start = function (when) {
    context = this.context;
    sources.push({ when, rate: this.buffer.sampleRate, samples: this.buffer.getChannelData(0).slice() });
    return start.apply(this, arguments);
  };
  const connect = AudioNode.prototype.connect;
  AudioNode.prototype.connect = function (target, ...rest) {
    if (target instanceof AudioDestinationNode) {
      const meter = this.context.createAnalyser();
      meter.fftSize = 256;
      connect.call(this, meter);
      meters.push(meter);
    }
    return connect.call(this, target, ...rest);
  };
  new MutationObserver((changes) => {
    for (const { target } of changes)
      if (target.matches('.pg-word[aria-current]'))
        lit.push({ word: target.textContent, at: context.currentTime - context.outputLatency });
  }).observe(document, { subtree: true, attributes: true, attributeFilter: ['aria-current'] });
  const fetch = window.fetch;
  let answer = null;
  window.fetch = async (...asked) => {
    const response = await fetch(...asked);
    if (response.url.endsWith('/api/speak')) answer = response.clone().text();
    return response;
  };
  const isLoud = () =>
    meters.some((meter) => {
      const samples = new Float32Array(meter.fftSize);
      meter.getFloatTimeDomainData(samples);
      return samples.some((sample) => sample !== 0);
    });
  window.ears = {
    forget: () => { sources.length = lit.length = meters.length = 0; },
    isLoud,
    answer: () => answer,
    heard: () => ({
      rate: sources[0]?.rate ?? 0,
      starts: sources.map(({ when }) => when),
      lengths: sources.map(({ samples }) => samples.length),
      pcm: btoa(sources.map(({ samples }) =>
        [...samples].map((sample) => {
          const value = Math.round(sample * 32768) & 0xffff;
          return String.fromCharCode(value & 0xff, value >> 8);
        }).join('')).join('')),
      lit,
    }),
    silentAfter: async (selector) => {
      const button = [...document.querySelectorAll('button')].find(
        (element) => element.checkVisibility() && element.textContent.trim() === selector);
      const startMs = performance.now();
      button.click();
      let lastLoudMs = 0;
      while (performance.now() - startMs < 500) {
        if (isLoud()) lastLoudMs = performance.now() - startMs;
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
      return lastLoudMs;
    },
  };
`;

export interface Heard {
  readonly rate: number;
  /** Seconds of the context, one for each source. */
  readonly starts: readonly number[];
  /** Samples of each source. */
  readonly lengths: readonly number[];
  /** All samples in their order, signed 16-bit little-endian. */
  readonly pcm: Buffer;
  /** Words in the order in which they lit up, and when in seconds of the context. */
  readonly lit: readonly { readonly word: string; readonly at: number }[];
}

export class Ears {
  readonly #page: Page;

  private constructor(page: Page) {
    this.#page = page;
  }

  /** To be called before the page is opened. */
  static async on(page: Page): Promise<Ears> {
    await page.addInitScript({ content: script });
    return new Ears(page);
  }

  /** Everything until now. */
  forget(): Promise<void> {
    return this.#page.evaluate('ears.forget()');
  }

  isLoud(): Promise<boolean> {
    return this.#page.evaluate('ears.isLoud()');
  }

  /** The body of the last answer to a request for speech. */
  answer(): Promise<string> {
    return this.#page.evaluate('ears.answer()');
  }

  async heard(): Promise<Heard> {
    const heard = await this.#page.evaluate<Omit<Heard, 'pcm'> & { pcm: string }>('ears.heard()');
    return { ...heard, pcm: Buffer.from(heard.pcm, 'base64') };
  }

  /** Clicks a button. @returns how long something could still be heard */
  silentAfter(button: string): Promise<number> {
    return this.#page.evaluate(`ears.silentAfter(${JSON.stringify(button)})`);
  }
}

/** A call of the console as the page's user. @returns the answer */
export const ask = (page: Page, name: string, question: object): Promise<unknown> =>
  page.evaluate(
    `fetch('/api/${name}', {
      method: 'POST', headers: { 'content-type': 'application/json' },
      body: ${JSON.stringify(JSON.stringify(question))},
    }).then((response) => response.json())`,
  );

/** @returns frames between the end of each source and the start of the next: above 0 a gap, below 0 an overlap */
export const jointsOf = ({ lengths, rate, starts }: Heard): readonly number[] =>
  starts.slice(1).map((start, index) => Math.round((start - starts[index]!) * rate) - lengths[index]!);
