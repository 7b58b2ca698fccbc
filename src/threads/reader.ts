/**
 * A thread that reads what others made, and ends with that: voice packs, lexicons, the answer of a webhook. What it reads may
 * hang it or end it, so it says what it reads at each moment, and each of that has a time.
 */
import { close } from 'node:fs';
import { Worker } from 'node:worker_threads';
import type { Bounds } from '../limits.js';
import { monotonicMs } from '../monotonic.js';
import { within } from '../within.js';
import { Watchdog } from './watchdog.js';

/** What a thread reads: a pack, or a file. */
export interface ReadItem {
  readonly name: string;
  readonly path: string;
  /** Of the state of its files, once that is known. */
  readonly stamp?: string;
}

/** What the thread says before its answer, each time that something of it changes. */
export interface ReadProgress {
  /** `null`: nothing. */
  readonly reading: ReadItem | null;
  /** Descriptors of open files. */
  readonly files: readonly number[];
}

/** What ended a thread before its answer. */
export interface ReadLoss {
  readonly item: ReadItem;
  readonly kind: 'late' | 'memory' | 'other';
  /** One line. */
  readonly fault: string;
}

export interface ReaderParts<Mail extends object, Answer> {
  readonly entry: URL;
  readonly workerData: unknown;
  /** What it reads, for messages: `voices`. */
  readonly what: string;
  readonly heapMiBMax: number;
  /** What it reads from its start, if it does not say that itself. */
  readonly item?: ReadItem;
  /** For each item. */
  readonly itemMsMax: number;
  /** While it reads none: it looks for them, or tries one. */
  readonly otherMsMax: number;
  readonly bounds: Pick<Bounds, 'watchdogBeatMs' | 'threadHangMsMax'>;
  /** Takes what the thread says besides its progress. @returns its answer, if that is it */
  readonly onMail: (mail: Mail) => Answer | undefined;
  /** Ends the reading. */
  readonly signal?: AbortSignal;
}

/**
 * Threads that have not ended. A call of the system that does not return, as on a mount that does not answer, keeps its thread
 * here, and one of the four by which the whole process uses files. Nothing can end it.
 */
const live = new Set<Worker>();
/** With so many no reading of files begins. Voices and lexicons are read at once. */
const LIVE_MAX = 3;

/** A file system does not answer. The message quotes no text. */
export class UnansweredError extends Error {
  override readonly name = 'UnansweredError';
}

/** Ends all readings. @returns false if one does not end: an exit of the process would wait for it */
export const endReaders = (msMax = 1_000): Promise<boolean> =>
  within(msMax, Promise.all([...live].map((thread) => thread.terminate())));

/**
 * Runs one thread to its answer. Files that it leaves open after a loss are closed.
 *
 * @returns its answer, or the item at which it ended
 * @throws the thread ended while it read no item; the reason of `signal`
 */
export const readInThread = <Mail extends object, Answer>(
  parts: ReaderParts<Mail, Answer>,
): Promise<{ readonly answer: Answer } | { readonly loss: ReadLoss }> =>
  new Promise((resolve, reject) => {
    parts.signal?.throwIfAborted();
    const { entry, workerData, what, heapMiBMax, itemMsMax, otherMsMax, onMail, signal } = parts;
    const watchdog = new Watchdog(parts.bounds, monotonicMs);
    const thread = new Worker(entry, {
      workerData,
      // By default a thread closes at its end the files that it opened.
      trackUnmanagedFds: false,
      resourceLimits: { maxOldGenerationSizeMb: heapMiBMax },
    });
    let { reading, files }: ReadProgress = { reading: parts.item ?? null, files: [] };
    let fault: NodeJS.ErrnoException | undefined;
    const lose = (kind: ReadLoss['kind'], error: Error): void => {
      watchdog.close();
      if (reading === null) reject(error);
      else resolve({ loss: { item: reading, kind, fault: error.message.split('\n')[0]! } });
    };
    live.add(thread);
    // An end inside a call of the system waits for that.
    const end = (): void => void thread.terminate();
    const expect = (): (() => void) => {
      const [name, msMax] = reading === null ? [`the ${what}`, otherMsMax] : ['it', itemMsMax];
      return watchdog.expect(msMax, () => {
        lose('late', new Error(`${name} was not read within ${msMax / 1000} s`));
        end();
      });
    };
    let unexpect = expect();
    const onAbort = (): void => {
      watchdog.close();
      reject(signal!.reason as Error);
      end();
    };
    signal?.addEventListener('abort', onAbort, { once: true });
    thread.on('message', (mail: Mail | ReadProgress) => {
      if (!('reading' in mail)) {
        const answer = onMail(mail);
        if (answer === undefined) return;
        watchdog.close();
        files = [];
        resolve({ answer });
        return;
      }
      ({ files } = mail);
      const before = reading?.name;
      ({ reading } = mail);
      if (reading?.name === before) return;
      unexpect();
      unexpect = expect();
    });
    thread.once('error', (error: Error) => (fault = error));
    thread.once('exit', (code) => {
      live.delete(thread);
      signal?.removeEventListener('abort', onAbort);
      for (const file of files) close(file, () => undefined);
      const isMemory = fault?.code === 'ERR_WORKER_OUT_OF_MEMORY';
      if (isMemory) lose('memory', new Error(`it takes more than ${heapMiBMax} MiB of memory to read`));
      else lose('other', fault ?? new Error(`the thread that reads the ${what} ended with code ${code}`));
    });
  });

/**
 * The same for what reads files.
 *
 * @throws {UnansweredError} too many earlier threads wait for a file system
 */
export const readFilesInThread = async <Mail extends object, Answer>(parts: ReaderParts<Mail, Answer>) => {
  if (live.size < LIVE_MAX) return readInThread(parts);
  const why = 'because a file system does not answer: mend or unmount it, then reload';
  throw new UnansweredError(`${live.size} earlier readings have not ended, ${why}`);
};
