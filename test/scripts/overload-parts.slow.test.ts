/** The parts of an overload that decide: the search for capacity, the schedule of arrivals, the figures, the verdicts. */
import t from 'tap';
import { troubleOf } from '../../scripts/bench/overload/phases.js';
import { figuresOf, wholeFiguresOf, type Visit } from '../../scripts/bench/overload/figures.js';
import type { CrowdFigures } from '../../scripts/bench/overload/crowd.js';
import {
  calmFirstAudio,
  calmRows,
  carriedRow,
  greedyRow,
  halfRows,
  idleFirstAudio,
  overloadRows,
} from '../../scripts/bench/overload/rows.js';
import { drawArrivals } from '../../scripts/bench/overload/schedule.js';
import { searchCapacity, type SearchSettings } from '../../scripts/rig/capacity-search.js';

const settings: SearchSettings = {
  first: 64,
  growth: 1.6,
  refinements: 3,
  max: 1_600,
  trials: 2,
  secondThoughts: 2,
};

/** Searches a machine that carries `capacity`. @param flakes loads of which the first trials fail */
const search = async (
  capacity: number,
  flakes: readonly number[] = [],
  flakeTrials = 1,
  more: Partial<SearchSettings> = {},
) => {
  const tried: number[] = [];
  const result = await searchCapacity({ ...settings, ...more }, async (load) => {
    tried.push(load);
    const isFlake = flakes.includes(load) && tried.filter((other) => other === load).length <= flakeTrials;
    return load <= capacity && !isFlake;
  });
  return { ...result, tried };
};

t.test('the search finds every capacity within a few percent', async (t) => {
  for (let capacity = 1; capacity <= 1_500; capacity += 7) {
    const { held, failed, tried } = await search(capacity);
    t.ok(
      held <= capacity && failed !== null && failed > capacity,
      `${capacity}: ${held} to ${String(failed)}`,
    );
    t.ok(failed! - held <= Math.max(2, 0.1 * capacity), `${capacity}: a gap of ${failed! - held}`);
    t.ok(tried.length <= 24, `${capacity}: ${tried.length} trials`);
  }
});

t.test('the search tries a load again before it gives it up', async (t) => {
  const sure = await search(200);
  const flaky = await search(200, sure.tried);
  t.equal(flaky.held, sure.held);
  t.equal(flaky.failed, sure.failed);
});

t.test('the search doubts a failure that every load below contradicts', async (t) => {
  const { held, failed } = await search(500, [64, 164], 2);
  t.ok(held > 450 && failed! > 500, `${held} to ${String(failed)}`);
});

t.test('the search ends at the greatest load, and where nothing holds', async (t) => {
  t.match(await search(10_000, [], 0, { max: 300 }), { held: 300, failed: null });
  const { held, tried } = await search(0);
  t.equal(held, 0);
  t.ok(tried.includes(1), 'it tries a single client');
});

t.test('a schedule is decided by its seed, and has exactly the load that was asked for', (t) => {
  const draw = (seed: number) => drawArrivals(seed, 40, 30_000, 32);
  t.same(draw(1), draw(1));
  t.notSame(draw(1), draw(2));
  const arrivals = draw(1);
  t.equal(arrivals.length, 1_200);
  t.ok(arrivals.every(({ atMs }, i) => atMs >= (arrivals[i - 1]?.atMs ?? 0) && atMs < 30_000));
  t.equal(arrivals.filter(({ transport }) => transport === 'ws').length, 400);
  for (const transport of ['http', 'ws'] as const) {
    const texts = new Set(arrivals.filter((one) => one.transport === transport).map(({ text }) => text));
    t.equal(texts.size, 32, `every text comes over ${transport}`);
  }
  const uses = Map.groupBy(arrivals, ({ text }) => text);
  const counts = [...uses.values()].map(({ length }) => length);
  t.ok(Math.max(...counts) - Math.min(...counts) <= 1, 'each text equally often');
  t.end();
});

const visit = (fields: Partial<Visit>): Visit => ({
  dueMs: 0,
  outcome: 'admitted',
  firstAudioMs: 10,
  dryMs: 0,
  refusalMs: null,
  clientLateMs: 1,
  ...fields,
});

t.test('figures count gaps only of the admitted, and a visit without audio as infinitely late', (t) => {
  const figures = figuresOf([
    visit({}),
    visit({}),
    visit({ firstAudioMs: 500, dryMs: 101 }),
    visit({ dryMs: 101 }),
    visit({ dryMs: 30 }),
    visit({ dryMs: 15 }),
    visit({ firstAudioMs: null }),
    visit({ outcome: 'refused', firstAudioMs: null, refusalMs: 7 }),
    visit({ outcome: 'failed', firstAudioMs: null, dryMs: 900 }),
  ]);
  t.match(figures, {
    offered: 9,
    admitted: 7,
    refused: 1,
    failed: 1,
    dry: 2,
    everDry: 3,
    dryMsMax: 101,
    refusalMs: { p50: 7, p99: 7 },
    firstAudioMs: { p50: 10, max: Infinity },
  });
  t.match(figuresOf([]), { offered: 0, firstAudioMs: null, refusalMs: null, dryMsMax: 0 });
  t.end();
});

const crowd = (fields: Partial<CrowdFigures> = {}, visits: readonly Visit[] = [visit({})]): CrowdFigures => ({
  visits: figuresOf(visits),
  http: figuresOf(visits),
  ws: figuresOf([]),
  wholes: wholeFiguresOf([]),
  servedPerSecond: 100,
  owedMs: 0,
  drainMs: 0,
  probes: [],
  faults: 'nothing',
  clientCores: 0.1,
  ...fields,
});

t.test('a load is carried when nobody is late, dry, refused or left behind', (t) => {
  t.equal(troubleOf(crowd(), 100), null);
  const troubles: readonly (readonly [CrowdFigures, RegExp])[] = [
    [crowd({}, []), /nobody/],
    [crowd({}, [visit({}), visit({ outcome: 'failed' })]), /1 failed/],
    [crowd({}, [visit({}), visit({ outcome: 'refused' })]), /1 refused/],
    [crowd({}, [visit({ dryMs: 21 })]), /1 ran dry/],
    [crowd({}, [visit({ firstAudioMs: 201 })]), /p99 201 ms/],
    [crowd({ owedMs: 60_000 }), /600 ms of speech behind/],
  ];
  for (const [figures, message] of troubles) t.match(troubleOf(figures, 100), message);
  t.end();
});

const passed = (rows: readonly { readonly passed: boolean | null }[]) => rows.map((row) => row.passed);

t.test('rows of an overload miss their bars where the figures do', (t) => {
  const idle = idleFirstAudio([9, 9]);
  const good = crowd({ servedPerSecond: 85, probes: [5, 6, 7] }, [visit({ firstAudioMs: 400, dryMs: 100 })]);
  t.same(passed(overloadRows('2', 100, idle, good)), [true, true, true, true, true, null, true]);
  const refused = Array.from({ length: 20 }, () => visit({ outcome: 'refused', refusalMs: 51 }));
  const bad = crowd({ servedPerSecond: 84, probes: [null, null, 7] }, [
    visit({ firstAudioMs: 401, dryMs: 101 }),
    visit({ outcome: 'failed' }),
    ...refused,
  ]);
  t.same(passed(overloadRows('2', 100, idle, bad)), [false, false, false, false, false, null, false]);
  const many = Array.from({ length: 98 }, () => visit({}));
  const some = (fields: Partial<Visit>) =>
    passed(overloadRows('2', 100, idle, crowd({ probes: [5] }, [...many, visit(fields), visit(fields)])));
  t.equal(some({ dryMs: 101 })[0], true, 'two in a hundred may run dry');
  t.equal(some({ firstAudioMs: 1_001 })[1], false, 'p99 counts as well as p95');
  const slow = calmFirstAudio([crowd({}, [visit({ firstAudioMs: 5 })])]);
  t.same(slow, { p95Ms: 5, when: 'at 0.8 x' });
  t.same(passed(overloadRows('2', 100, slow, good)).at(-1), false, 'a median of 6 ms is not normal then');
  t.end();
});

t.test('rows of loads that are carried miss their bars for one refusal or failure', (t) => {
  t.same(passed(calmRows([crowd()], [crowd()])), [true, true, true]);
  const dry = crowd({}, [visit({ dryMs: 40, firstAudioMs: 30 }), visit({ outcome: 'refused' })]);
  t.same(passed(calmRows([dry], [crowd()])), [false, false, false]);
  const carried = (...visits: readonly Visit[]) => carriedRow('18', crowd({}, visits)).passed;
  t.equal(carried(visit({ dryMs: 900 })), true, 'a gap has no bar there');
  t.equal(carried(), false);
  t.equal(carried(visit({}), visit({ outcome: 'refused' })), false);
  t.equal(carried(visit({}), visit({ outcome: 'failed' })), false);
  const half = (...visits: readonly Visit[]) => passed(halfRows(2, crowd({}, visits)));
  t.same(half(visit({ firstAudioMs: 500, dryMs: 100 })), [true, true, true]);
  t.same(half(visit({ firstAudioMs: 501, dryMs: 101 })), [true, false, false]);
  t.same(half(visit({}), visit({ outcome: 'refused' })), [false, true, true]);
  t.end();
});

t.test('whole files beside a greedy key may take twice their calm time, or 150 ms', (t) => {
  const files = (...waitsMs: readonly number[]) => ({ waitsMs, faults: 'nothing' });
  const fair = (calm: readonly number[], attacked: readonly number[]) =>
    greedyRow({ kind: 'text', file: 'short', calm: files(...calm), attacked: files(...attacked) }).passed;
  t.equal(fair([40, 50], [60, 150]), true);
  t.equal(fair([40, 50], [60, 151]), false);
  t.equal(fair([100], [200]), true);
  t.equal(fair([100], [201]), false);
  t.equal(fair([50], [Infinity]), false, 'one that did not come');
  t.equal(fair([50], []), false, 'none');
  t.equal(fair([Infinity], [50]), false, 'nor in calm');
  t.end();
});
