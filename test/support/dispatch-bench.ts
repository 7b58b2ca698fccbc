/** A dispatcher with scripted engines (scripted-synthesis.ts). Its audio is read back letter by letter. */
import type { Costs } from '../../src/speech/costs.js';
import { Dispatcher, type DispatcherOptions } from '../../src/speech/dispatcher.js';
import type { Voices } from '../../src/threads/voices.js';
import type { Lease } from '../../src/accounts/lease.js';
import type { Frame } from '../../src/threads/messages.js';
import { limits, type Bounds } from '../../src/limits.js';
import { createLog, type Log } from '../../src/log.js';
import { Metrics } from '../../src/metrics.js';
import type { Watchdog } from '../../src/threads/watchdog.js';
import { playThread } from './played-threads.js';
import { scriptedVoices } from './scripted-voices.js';
import { eventually } from './waiting.js';
import { opened } from './fake-speech.js';

const LETTER_SAMPLES = 1_200;

export const start = async ({
  threads = 2,
  bounds = {},
  voices = scriptedVoices,
  synthesisEntry = new URL('scripted-synthesis.js', import.meta.url),
  watchdog,
  log = createLog('silent', limits),
  overload = 'late',
  costs,
  startThread,
}: {
  threads?: number;
  bounds?: Partial<Bounds>;
  voices?: Voices;
  synthesisEntry?: URL;
  watchdog?: Watchdog;
  log?: Log;
  overload?: DispatcherOptions['config']['overload'];
  costs?: Costs;
  startThread?: DispatcherOptions['startThread'];
} = {}) => {
  const dispatcher = new Dispatcher({
    config: {
      synthesisThreads: threads,
      actorThreads: 1,
      executionProvider: 'cpu',
      logLevel: 'silent',
      overload,
    },
    voices,
    // A heap that is soon full. Text is cut before the call that appends it returns, however busy the machine is.
    bounds: { ...limits, synthesisHeapMiBMax: 24, sliceMsMax: 1_000, ...bounds },
    log,
    metrics: new Metrics(),
    ...(watchdog !== undefined && { watchdog }),
    ...(costs !== undefined && { costs }),
    ...(startThread !== undefined && { startThread }),
    synthesisEntry,
    actorEntry: new URL('fragile-actors.js', import.meta.url),
  });
  try {
    await dispatcher.threads.ready();
  } catch (error) {
    await dispatcher.close(1_000);
    throw error;
  }
  return dispatcher;
};

/** The same with synthesis threads that the test plays. */
export const startPlayed = (options: Parameters<typeof start>[0] = {}) =>
  start({ ...options, startThread: playThread });

/** A lease that counts. */
export const lease = () => {
  const account = { settled: 0, closed: 0 };
  const granted: Lease = {
    account: 'default',
    delivered: () => undefined,
    settle: (characters) => {
      account.settled += characters;
    },
    close: () => {
      account.closed++;
    },
    void: () => {
      account.closed++;
    },
  };
  return { account, granted };
};

export interface Outcome {
  ending: 'closed' | 'failed';
  reason: string | undefined;
  letters: string;
  settled: number;
  closes: number;
}

export const optionsOf = (granted: Lease, timestamps = false, voiceId = 'scripted') =>
  ({
    lease: granted,
    settings: { voiceId, temperature: 1, normalizeText: false },
    format: { encoding: 'pcm', sampleRateHz: 24_000 },
    framing: 'stream',
    timestamps,
  }) as const;

/** Reads the letters back from the levels of the samples. */
export const lettersOf = (frames: readonly Frame[]): string => {
  const samples = frames.flatMap((frame) => {
    if (frame.type !== 'audio') return [];
    const record = Buffer.from(frame.bytes).toString('utf8').replace('data: ', '');
    return [Buffer.from((JSON.parse(record) as { audio_chunk: string }).audio_chunk, 'base64')];
  });
  const pcm = Buffer.concat(samples);
  let letters = '';
  for (let at = 0; at + 2 * LETTER_SAMPLES <= pcm.length; at += 2 * LETTER_SAMPLES)
    letters += String.fromCharCode(Math.floor(pcm.readInt16LE(at) / 50));
  return letters;
};

export const speak = (
  dispatcher: Dispatcher,
  text: string,
  timestamps = false,
  voiceId?: string,
): Promise<Outcome> =>
  new Promise((resolve) => {
    const { account, granted } = lease();
    const frames: Frame[] = [];
    const onFrame = (frame: Frame): void => {
      frames.push(frame);
      if (frame.type === 'audio') context.handed(frame);
      else if (frame.type === 'closed' || frame.type === 'failed') {
        context.release();
        context.release();
        const reason = frame.type === 'failed' ? frame.reason : undefined;
        const { settled, closed: closes } = account;
        resolve({ ending: frame.type, reason, letters: lettersOf(frames), settled, closes });
      }
    };
    const context = opened(dispatcher.open(optionsOf(granted, timestamps, voiceId), onFrame));
    context.append(text);
    context.end();
  });

export const sentence = 'one two three four five six seven eight nine ten eleven twelve. ';
export const long = sentence.repeat(6).trim();

export const untilWhole = (dispatcher: Dispatcher) => eventually(() => dispatcher.threads.isWhole);
export const untilIdle = (dispatcher: Dispatcher) =>
  eventually(() => dispatcher.scheduler.runningSegments === 0);
