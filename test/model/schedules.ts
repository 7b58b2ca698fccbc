/** Schedules: what happens to a few sockets, step by step. */
import fc from 'fast-check';

export type Step = {
  readonly socket: number;
  /** The tick of the event loop ends with this step: the sender runs. */
  readonly endsTick: boolean;
} & (
  | { readonly act: 'frames'; readonly messages: readonly string[] }
  | { readonly act: 'fault'; readonly fault: 'full' | 'throws'; readonly message: string }
  | { readonly act: 'binary' | 'stall' | 'voices' | 'revoke' | 'gone' }
  | { readonly act: 'work' | 'die' | 'drain' | 'pass' | 'credit' | 'shutDown'; readonly count: number }
);

const SOCKETS = 3;
const ids = ['a', 'b', 'c', 'd', null];
const texts = [
  ...[
    'Hello',
    ' there. ',
    'One. Two. ',
    'A longer text, without an end',
    ' ',
    '',
    '\ud83d',
    '\ude00',
    '\u{1f600}. ',
  ],
  'The last one is long enough to be more than a socket may have waiting.',
];
const flushIds = ['f', 'g', null, undefined];
const broken = [
  ...['', '{', '[]', '{}', '{"send_text":1}', '{"send_text":"a","flush":true}', '{"close_context":false}'],
  '{"context_id":"a","flush":true,"flush_id":7}',
  '{"context_id":"a","start_context":{"voice_id":"ada","model_id":"other"}}',
  '{"context_id":"b","start_context":{"voice_id":"nobody","model_id":"default"}}',
  '{"context_id":"a","send_text":"a","more":1}',
  '{"context_id":"nobody","cancel_context":true}',
];

/** The weight of each act. */
const acts = Object.entries({
  start: 20,
  text: 12,
  speak: 10,
  flood: 0.5,
  flush: 7,
  close: 5,
  cancel: 4,
  broken: 3,
  work: 30,
  stall: 5,
  drain: 6,
  pass: 5,
  credit: 3,
  die: 2,
  binary: 1,
  full: 1,
  throws: 0.25,
  gone: 0.5,
  voices: 1,
  revoke: 0.25,
  shutDown: 0.5,
}).flatMap(([name, weight]) => Array<string>(weight * 4).fill(name));

const of = <T>(values: readonly T[], at: number): T => values[at % values.length] as T;

const stepOf = (number: number): Step => {
  const act = of(acts, number);
  let rest = Math.floor(number / acts.length);
  const next = (below: number): number => {
    const value = rest % below;
    rest = Math.floor(rest / below);
    return value;
  };
  const socket = Math.max(0, next(SOCKETS + 2) - 2);
  const id = next(3) > 0 ? of(ids, 0) : of(ids, next(ids.length));
  const count = next(32);
  const endsTick = next(3) > 0;
  const frames = (...fields: readonly object[]): Step => ({
    act: 'frames',
    socket,
    endsTick,
    messages: fields.map((some) => JSON.stringify({ ...some, context_id: id })),
  });
  const flush = { flush: true, flush_id: of(flushIds, count) };
  const start = { start_context: { voice_id: 'ada', model_id: 'default', timestamps: count % 2 === 0 } };
  switch (act) {
    case 'start':
      return frames(start);
    case 'text':
      return frames({ send_text: of(texts, count) });
    case 'flush':
      return frames(flush);
    case 'speak':
      return frames({ send_text: of(texts, count) }, flush);
    case 'flood':
      return frames(...Array<object>(count).fill({ cancel_context: true }));
    case 'close':
      return frames({ close_context: true });
    case 'cancel':
      return frames({ cancel_context: true });
    case 'broken':
      return { act: 'frames', socket, endsTick, messages: [of(broken, count)] };
    case 'full':
    case 'throws':
      return {
        act: 'fault',
        fault: act,
        socket,
        endsTick,
        message: JSON.stringify({ ...start, context_id: id }),
      };
    case 'pass':
      return { act, socket, endsTick, count: of([1, 3, 11, 20], count) };
    case 'work':
    case 'die':
    case 'drain':
    case 'credit':
    case 'shutDown':
      return { act, socket, endsTick, count };
    case 'binary':
    case 'stall':
    case 'voices':
    case 'revoke':
    case 'gone':
      return { act, socket, endsTick };
    default:
      throw new Error(`no act ${act}`);
  }
};

/** Shrinks by omitting steps. */
export const schedules = (stepsMax: number): fc.Arbitrary<Step[]> =>
  fc.array(fc.nat(2 ** 30).map(stepOf), { maxLength: stepsMax, size: 'max' });
