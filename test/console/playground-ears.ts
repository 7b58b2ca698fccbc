/** The audio of the playground: samples as they are scheduled, words as they light up, silence after a stop. */
import type { Page } from 'playwright-core';
import type { Test } from 'tap';
import { isNight } from '../fuzz/check.js';
import { noBrowser, startConsole } from './browser-rig.js';

/** By day other tests run beside this one. The sound would go on for longer than `LISTENED_MS`. */
export const SILENT_MS_MAX = isNight ? 100 : 2_000;
const LISTENED_MS = isNight ? 500 : 4_000;

/** Runs in the page before its own scripts. It changes no sound. */
const script = `
  const sources = [];
  const lit = [];
  const meters = [];
  let context = null;
  const start = AudioBufferSourceNode.prototype.start;
  AudioBufferSourceNode.prototype.start = function (when) {
    context = this.context;
    const samples = this.buffer.getChannelData(0).slice();
    if (endsAt === null) {
      frameMs = performance.now();
      requestAnimationFrame(note);
    }
    endsAt = Math.max(endsAt, when + this.buffer.duration + 1);
    sources.push({ when, plannedAt: context.currentTime, rate: this.buffer.sampleRate, samples });
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
  let frameMs = performance.now();
  let frameBeforeMs = frameMs;
  let endsAt = null;
  // Until a second after the last source: to draw without an end takes much CPU time.
  const note = () => {
    frameBeforeMs = frameMs;
    frameMs = performance.now();
    if (context.currentTime < endsAt) requestAnimationFrame(note);
    else endsAt = null;
  };
  const buttonOf = (text) => [...document.querySelectorAll('button')].find(
    (element) => element.checkVisibility() && element.textContent.trim() === text);
  let awaited = null;
  new MutationObserver((changes) => {
    for (const { target } of changes)
      if (target.matches('.pg-word[aria-current]')) {
        lit.push({
          word: target.textContent,
          where: target.closest('section')?.ariaLabel ?? null,
          at: context.currentTime - context.outputLatency,
          frameSeconds: Math.max(frameMs - frameBeforeMs, performance.now() - frameMs) / 1_000,
        });
        if (lit.length !== awaited?.count) continue;
        awaited.act();
        awaited = null;
      }
  }).observe(document, { subtree: true, attributes: true, attributeFilter: ['aria-current'] });
  const fetch = window.fetch;
  let answer = null;
  window.fetch = async (...asked) => {
    const response = await fetch(...asked);
    if (response.url.includes('/api/v1/tts/stream')) {
      answer = response.clone().text();
      // Of a stream that is cut, nobody asks.
      answer.catch(() => undefined);
    }
    return response;
  };
  const isLoudAt = (meter) => {
    const samples = new Float32Array(meter.fftSize);
    meter.getFloatTimeDomainData(samples);
    return samples.some((sample) => sample !== 0);
  };
  const isLoud = () => meters.some(isLoudAt);
  window.ears = {
    forget: () => { sources.length = lit.length = meters.length = 0; },
    isLoud,
    answer: () => answer,
    heard: () => ({
      rate: sources[0]?.rate ?? 0,
      sources: sources.map(({ plannedAt, samples, when }) => ({ start: when, plannedAt, length: samples.length })),
      pcm: btoa(sources.map(({ samples }) =>
        [...samples].map((sample) => {
          const value = Math.round(sample * 32768) & 0xffff;
          return String.fromCharCode(value & 0xff, value >> 8);
        }).join('')).join('')),
      lit,
    }),
    clickAfter: (count, text) => new Promise((resolve, reject) => {
      const act = () => {
        const button = buttonOf(text);
        if (button === undefined) reject(new Error('no button "' + text + '"'));
        else resolve(button.click());
      };
      awaited = { count, act };
    }),
    silentAfter: async (text) => {
      const button = buttonOf(text);
      // On the clock of the audio: a machine without time for the browser delays both alike.
      const startOf = new Map(meters.map((meter) => [meter, meter.context.currentTime]));
      const startMs = performance.now();
      button.click();
      let lastLoudMs = 0;
      while (performance.now() - startMs < ${LISTENED_MS}) {
        for (const [meter, start] of startOf)
          if (isLoudAt(meter)) lastLoudMs = Math.max(lastLoudMs, 1000 * (meter.context.currentTime - start));
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
      return lastLoudMs;
    },
  };
`;

/** Times are seconds of the page's audio context. */
export interface Source {
  readonly start: number;
  /** When the page asked for it. */
  readonly plannedAt: number;
  /** Samples. */
  readonly length: number;
}

export interface LitWord {
  readonly word: string;
  /** The label of the section that it is in. */
  readonly where: string | null;
  readonly at: number;
  /** What the browser took to draw: no word lights up sooner. */
  readonly frameSeconds: number;
}

export interface Heard {
  readonly rate: number;
  readonly sources: readonly Source[];
  /** All samples in their order, signed 16-bit little-endian. */
  readonly pcm: Buffer;
  /** Words in the order in which they lit up. */
  readonly lit: readonly LitWord[];
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

  /** Clicks a button when so many words have lit up. The audio would not wait for a test that has no time. */
  clickAfter(words: number, button: string): Promise<void> {
    return this.#page.evaluate(`ears.clickAfter(${words}, ${JSON.stringify(button)})`);
  }

  /** Clicks a button. @returns how long something could still be heard */
  silentAfter(button: string): Promise<number> {
    return this.#page.evaluate(`ears.silentAfter(${JSON.stringify(button)})`);
  }
}

/** An operator in the playground of a service that speaks. Without a browser the whole file is skipped. */
export const enterPlayground = async (t: Test) => {
  if (noBrowser !== false) {
    t.pass(noBrowser, { skip: noBrowser });
    process.exit();
  }
  const rig = await startConsole(t, { SYNTHESIS_THREADS: '1', CONSOLE_HOST: '0.0.0.0' }, 'src/main.js');
  const ada = await rig.arrive();
  const { page } = ada;
  const ears = await Ears.on(page);
  await ada.join(rig.claimLink, 'ada', 'Claim this console');
  return { rig, ada, page, ears };
};

/** A source is planned so long before it starts. */
const leadSeconds = 0.05;

/**
 * @returns the sources that do not start at the frame at which the one before them ends, though the page had their samples
 * in time. A machine without time for the service, or for the page, is no fault of the page.
 */
export const badJointsOf = ({ rate, sources }: Heard): readonly Source[] =>
  sources.filter((source, index) => {
    const before = sources[index - 1];
    if (before === undefined) return false;
    const endBefore = before.start + before.length / rate;
    const frames = Math.round((source.start - endBefore) * rate);
    return frames < 0 || (frames > 0 && source.plannedAt < endBefore - leadSeconds);
  });

/** @returns when a moment of the audio is heard, in seconds of the context */
export const heardAt = ({ rate, sources }: Heard, seconds: number): number => {
  let left = seconds * rate;
  for (const { length, start } of sources) {
    if (left < length) return start + left / rate;
    left -= length;
  }
  return Number.NaN;
};
