/** The check of a WebSocket's frames finds each thing that can go wrong. */
import t from 'tap';
import { CheckedContext } from '../../scripts/rig/checked-context.js';
import { seededRandom } from '../../scripts/rig/random.js';
import type { ServerFrame } from '../../scripts/rig/socket.js';
import { OggStream } from '../../workers/audio/opus.js';

const frameMs = 500;
const granulesPerMs = 48;

/** What a faultless service sends to a context of two utterances of two words each. */
const faultlessFrames = (): ServerFrame[] => {
  const stream = new OggStream(7);
  let pages = 0;
  const audio = (isLast = false): ServerFrame => {
    const packet = { bytes: Buffer.alloc(300, pages), granule: ++pages * frameMs * granulesPerMs };
    return { audio_chunk: Buffer.from(stream.pages([packet], isLast)).toString('base64') };
  };
  const words = (first: number): ServerFrame => ({
    timestamps: {
      words: ['good', 'morning'],
      start_seconds: [first, first + 0.5],
      end_seconds: [first + 0.5, first + 1],
    },
  });
  return [
    { context_started: {} },
    audio(),
    audio(),
    words(0),
    { flush_completed: true, flush_id: 'c-0' },
    audio(),
    audio(),
    words(1),
    { flush_completed: true, flush_id: 'c-1' },
    audio(true),
    { flush_completed: true, flush_id: 'c:close' },
    { context_closed: true },
  ];
};

const audioAt = [1, 2, 5, 6];
const wordsAt = [3, 7];

/** @returns the faults found, and whether the context ended */
const check = (frames: readonly ServerFrame[]): { faults: string[]; isOver: boolean } => {
  const faults: string[] = [];
  let isOver = false;
  const context = new CheckedContext({
    id: 'c',
    voice: 'wren',
    utterances: 2,
    isCancelled: false,
    write: () => undefined,
    random: seededRandom(1),
    nextText: () => 'good morning',
    onOver: () => (isOver = true),
    onFault: (what) => faults.push(what),
  });
  for (const frame of frames) {
    context.onFrame(frame);
    if (context.isIdle) context.speak();
  }
  return { faults, isOver };
};

void t.test('a context with all frames in order has no fault', (t) => {
  t.same(check(faultlessFrames()), { faults: [], isOver: true });
  t.end();
});

void t.test('a frame of audio or of words that is lost, doubled or misplaced is a fault', (t) => {
  for (const at of [...audioAt, 9, ...wordsAt]) {
    const lost = faultlessFrames();
    lost.splice(at, 1);
    t.not(check(lost).faults.length, 0, `frame ${at} lost`);
    const doubled = faultlessFrames();
    doubled.splice(at, 0, doubled[at]!);
    t.not(check(doubled).faults.length, 0, `frame ${at} doubled`);
  }
  for (const at of [1, 5]) {
    const swapped = faultlessFrames();
    [swapped[at], swapped[at + 1]] = [swapped[at + 1]!, swapped[at]!];
    t.not(check(swapped).faults.length, 0, `frames ${at} and ${at + 1} swapped`);
  }
  t.end();
});

void t.test('audio of another context is a fault', (t) => {
  const frames = faultlessFrames();
  const packet = { bytes: Buffer.alloc(10), granule: frameMs * granulesPerMs };
  const other = new OggStream(8);
  other.pages([packet], false);
  frames[2] = { audio_chunk: Buffer.from(other.pages([packet], false)).toString('base64') };
  t.not(check(frames).faults.length, 0);
  t.end();
});

void t.test('a flush that completes before its words, a missing flush and an early end are faults', (t) => {
  for (const at of [3, 7]) {
    const early = faultlessFrames();
    [early[at], early[at + 1]] = [early[at + 1]!, early[at]!];
    t.not(check(early).faults.length, 0, `flush ${at + 1} too early`);
  }
  for (const at of [4, 8, 10]) {
    const missing = faultlessFrames();
    missing.splice(at, 1);
    const { faults, isOver } = check(missing);
    t.ok(faults.length > 0 || !isOver, `flush ${at} missing`);
  }
  t.end();
});
