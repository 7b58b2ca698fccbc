/** The check of a context's frames finds each thing that can go wrong. What is refused must be so whole, and nothing else. */
import t from 'tap';
import { createAudioCheck, OggPages } from '../../scripts/rig/audio-check.js';
import { ContextCheck } from '../../scripts/rig/context-check.js';
import { unavailable, type ServerFrame } from '../../scripts/rig/socket.js';
import { OggStream } from '../../workers/audio/opus.js';

const bytesPerMs = 48;
const audio = (ms: number): ServerFrame => ({
  audio_chunk: Buffer.alloc(ms * bytesPerMs).toString('base64'),
});
const words = (first: string, second: string, at: number): ServerFrame => ({
  timestamps: { words: [first, second], start_seconds: [at, at + 0.5], end_seconds: [at + 0.5, at + 1] },
});
const started: ServerFrame = { context_started: {} };
const flushed = (flushId: string): ServerFrame => ({ flush_completed: true, flush_id: flushId });
const refused = (flushId?: string): ServerFrame => ({
  error: unavailable,
  ...(flushId !== undefined && { flush_id: flushId }),
});
const closed: readonly ServerFrame[] = [flushed('c:close'), { context_closed: true }];

interface Sent {
  readonly text?: string;
  readonly flush?: string;
  readonly close?: true;
}

/** @returns the kinds of faults, and of frames */
const check = (
  steps: readonly (ServerFrame | Sent)[],
  mayRefuse = true,
  mayStop = false,
  audio = createAudioCheck({ encoding: 'pcm', sampleRateHz: 24_000 }),
) => {
  const faults: string[] = [];
  const context = new ContextCheck({
    id: 'c',
    audio,
    timestamps: true,
    trailMs: { min: 0, max: 500 },
    wordMarginMs: null,
    msPerCharacter: null,
    ...(mayRefuse && { refusal: unavailable }),
    ...(mayStop && { startRefusal: unavailable }),
    onFault: (kind) => faults.push(kind),
  });
  const kinds = steps.map((step) => {
    if ('text' in step) context.text(step.text);
    else if ('flush' in step) context.flush(step.flush);
    else if ('close' in step) context.closing();
    else return context.onFrame(step as ServerFrame);
    return 'sent';
  });
  return { faults, kinds: kinds.filter((kind) => kind !== 'sent') };
};

const ask = (text: string, flush: string): readonly Sent[] => [{ text }, { flush }];
const spoken = (flushId: string, at: number): readonly ServerFrame[] => [
  audio(1_200),
  words('good', 'morning', at),
  flushed(flushId),
];

t.test('a refused utterance between two that are spoken is no fault', (t) => {
  const { faults, kinds } = check([
    ...[started, ...ask('good morning', '1'), ...ask('nobody hears', '2'), ...ask('good morning', '3')],
    // The text is refused at once, while the first utterance is spoken; its flush in its place.
    ...[refused(), ...spoken('1', 0), refused('2'), ...spoken('3', 1.2), { close: true as const }, ...closed],
  ]);
  t.same(faults, []);
  t.same(
    kinds.filter((kind) => kind !== 'audio' && kind !== 'words'),
    ['started', 'refusing', 'flushed', 'refused', 'flushed', 'flushed', 'closed'],
  );
  t.end();
});

t.test('an utterance may be refused in its middle, at its flush, or at the close', (t) => {
  const middle = [started, ...ask('good morning, the rest', '1'), audio(1_200), words('good', 'morning,', 0)];
  t.same(check([...middle, refused(), refused('1'), { close: true as const }, ...closed]).faults, []);
  const atFlush = [started, ...ask('good morning', '1'), refused('1'), ...ask('good morning', '2')];
  t.same(check([...atFlush, ...spoken('2', 0), { close: true as const }, ...closed]).faults, []);
  const atClose = check([started, { text: 'good morning' }, { close: true as const }, refused(), ...closed]);
  t.same(atClose, { faults: [], kinds: ['started', 'refusing', 'refused', 'closed'] });
  t.end();
});

t.test('a refusal excuses nothing else', (t) => {
  const late = [started, ...ask('good morning', '1'), ...ask('nobody hears', '2')];
  const cases: readonly (readonly [string, readonly (ServerFrame | Sent)[], readonly string[]])[] = [
    [
      'a refused utterance is spoken',
      [...late, refused(), ...spoken('1', 0), refused('2'), words('nobody', 'hears', 1.2)],
      ['words'],
    ],
    ['the wrong flush is refused', [...late, refused(), refused('2')], ['flushes']],
    [
      'words of a flush that was not refused are lost',
      [...late, refused(), audio(1_200), flushed('1')],
      ['words'],
    ],
    ['an utterance is refused twice', [...late, refused(), refused()], ['errors']],
    ['another error', [...late, { error: 'Rate limit exceeded' }], ['errors']],
    [
      'closed without its flush',
      [...late, refused(), ...spoken('1', 0), { close: true as const }, { context_closed: true }],
      ['flushes'],
    ],
  ];
  for (const [name, steps, kinds] of cases)
    t.ok(
      kinds.every((kind) => check(steps).faults.includes(kind)),
      name,
    );
  t.same(check([...late, refused()], false).faults, ['errors'], 'where nothing may be refused');
  t.end();
});

t.test('a service that may stop may refuse a start, and then sends nothing more', (t) => {
  t.same(check([refused()], false, true), { faults: [], kinds: ['start-refused'] });
  t.same(check([refused(), { error: 'unknown context_id: c' }], false, true).faults, ['frames', 'errors']);
  t.same(check([started, { text: 'good morning' }, refused()], false, true).faults, ['errors']);
  t.same(check([refused()]).faults, ['errors'], 'where it may not stop');
  t.end();
});

/** Two utterances of two words each, in Opus, and what a faultless service sends for them. */
const faultless = (): (ServerFrame | Sent)[] => {
  const stream = new OggStream(7);
  let pages = 0;
  const page = (isLast = false): ServerFrame => {
    const packet = { bytes: Buffer.alloc(300, pages), granule: ++pages * 24_000 };
    return { audio_chunk: Buffer.from(stream.pages([packet], isLast)).toString('base64') };
  };
  const utterance = (flushId: string, at: number) => [
    ...ask('good morning', flushId),
    ...[page(), page(), words('good', 'morning', at), flushed(flushId)],
  ];
  const both = [...utterance('1', 0), ...utterance('2', 1)];
  return [started, ...both, { close: true as const }, page(true), ...closed];
};

t.test('a frame that is lost, doubled or misplaced is a fault', (t) => {
  const faultsOf = (steps: readonly (ServerFrame | Sent)[]) =>
    check(steps, false, false, new OggPages()).faults;
  t.same(faultsOf(faultless()), []);
  const frames = faultless().flatMap((step, at) =>
    'audio_chunk' in step || 'timestamps' in step ? [at] : [],
  );
  t.equal(frames.length, 7);
  for (const at of frames) {
    t.not(faultsOf(faultless().toSpliced(at, 1)).length, 0, `step ${at} lost`);
    t.not(faultsOf(faultless().toSpliced(at, 0, faultless()[at]!)).length, 0, `step ${at} doubled`);
  }
  for (const at of [3, 5, 11]) {
    const steps = faultless();
    [steps[at], steps[at + 1]] = [steps[at + 1]!, steps[at]!];
    t.not(faultsOf(steps).length, 0, `steps ${at} and ${at + 1} swapped`);
  }
  for (const at of [6, 12]) t.not(faultsOf(faultless().toSpliced(at, 1)).length, 0, `flush ${at} missing`);
  t.end();
});
