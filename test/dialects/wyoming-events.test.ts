/** Events from bytes: cut anywhere, with faults, and within bounds. */
import t from 'tap';
import { Dice } from '../../scripts/rig/random.js';
import { EventReader, encodeEvent, type WyomingEvent } from '../../src/dialects/wyoming/events.js';
import { encodeWyoming } from '../../scripts/rig/wyoming.js';
import { wholeBudget } from '../support/whole-budget.js';

const bounds = { bodyBytesMax: 10_000, bodyDepthMax: 8, bodyTokensMax: 50 };

const readAll = (pieces: readonly Buffer[], budget = wholeBudget(1_000_000)): WyomingEvent[] => {
  const reader = new EventReader(bounds, budget);
  const events: WyomingEvent[] = [];
  for (const piece of pieces) {
    if (!reader.push(piece)) throw new Error('no memory');
    for (let event = reader.next(); event !== null; event = reader.next()) events.push(event);
    reader.trim();
  }
  reader.close();
  if (budget.taken !== 0) throw new Error('memory is not given back');
  return events;
};

const conversation = Buffer.concat([
  encodeWyoming('describe'),
  encodeWyoming('synthesize', {
    text: 'Guten Morgen, 你好 \u{1F600}\n',
    voice: { name: 'wren', speaker: null },
  }),
  Buffer.from('{"type":"ping","data":{"text":"a","more":1},"data_length":12}\n{"text":"b"}'),
  encodeEvent('audio-chunk', { rate: 16_000 }, Buffer.from('{"type":"describe"}\n')),
  encodeWyoming('synthesize-stop'),
]);

const expected: WyomingEvent[] = [
  { type: 'describe', data: {} },
  {
    type: 'synthesize',
    data: { text: 'Guten Morgen, 你好 \u{1F600}\n', voice: { name: 'wren', speaker: null } },
  },
  { type: 'ping', data: { text: 'b', more: 1 } },
  { type: 'audio-chunk', data: { rate: 16_000 } },
  { type: 'synthesize-stop', data: {} },
];

t.test('the client of these tests writes events as the library of the protocol does', async (t) => {
  t.equal(
    encodeWyoming('synthesize-start', { voice: { name: 'wren' } }).toString(),
    '{"type": "synthesize-start", "version": "1.8.0", "data_length": 27}\n{"voice": {"name": "wren"}}',
  );
});

t.test('events are the same however their bytes are cut; payloads are skipped', async (t) => {
  t.strictSame(readAll([conversation]), expected);
  t.strictSame(readAll([...conversation].map((byte) => Buffer.of(byte))), expected);
  const dice = new Dice(7);
  for (let round = 0; round < 200; round++) {
    const pieces: Buffer[] = [];
    for (let at = 0; at < conversation.length;) {
      const end = at + dice.between(1, 90);
      pieces.push(conversation.subarray(at, end));
      at = end;
    }
    t.strictSame(readAll(pieces), expected);
  }
});

t.test('bytes that are no event are a fault', async (t) => {
  const faults: readonly (readonly [bytes: Buffer | string, message: RegExp])[] = [
    ['GET / HTTP/1.1\r\n', /not JSON/],
    ['\n', /not JSON/],
    ['[]\n', /begins with a line/],
    ['{"type":1}\n', /begins with a line/],
    ['{"type":"a","data_length":-1}\n', /begins with a line/],
    ['{"type":"a","data_length":1.5}\n', /begins with a line/],
    ['{"type":"a","data_length":"5"}\n', /begins with a line/],
    ['{"type":"a","data":[]}\n', /begins with a line/],
    ['{"type":"a","data_length":10001}\n', /data of an event are too long/],
    ['{"type":"a","data_length":2}\n[]', /must be a JSON object/],
    [`{"type":"a","data":${'['.repeat(9)}${']'.repeat(9)}}\n`, /nests too deep/],
    [`{"type":"a","data":{"b":[${'1,'.repeat(60)}1]}}\n`, /too many values/],
    [Buffer.from('{"type":"\xff"}\n', 'latin1'), /UTF-8/],
    ['x'.repeat(10_001), /line of an event is too long/],
    [`{"type":"${'x'.repeat(10_000)}"}\n`, /line of an event is too long/],
  ];
  for (const [bytes, message] of faults) {
    t.throws(() => readAll([Buffer.from(bytes as string)]), { message }, String(bytes).slice(0, 40));
  }
});

t.test('bytes beyond the memory for them are refused', async (t) => {
  const budget = wholeBudget(5_000);
  const reader = new EventReader(bounds, budget);
  t.ok(reader.push(Buffer.alloc(4_000, 'x')));
  t.notOk(reader.push(Buffer.alloc(4_000, 'x')));
  reader.close();
  reader.close();
  t.equal(budget.taken, 0);
  const line = `{"type":"a","data":{"b":"${'x'.repeat(4_500)}"},"data_length":2}\n`;
  t.ok(reader.push(Buffer.from(line)));
  t.equal(reader.next(), null);
  reader.trim();
  t.ok(budget.taken >= line.length, 'what was read of an event still counts');
  t.ok(reader.push(Buffer.from('{}')));
  t.match(reader.next(), { type: 'a' });
  reader.trim();
  t.equal(budget.taken, 0);
});
