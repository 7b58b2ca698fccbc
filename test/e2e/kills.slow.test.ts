/** kill -9 of the service at any moment of any traffic: the contents of the store afterwards. */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import t, { type Test } from 'tap';
import { createKeys, operate } from '../../scripts/operator.js';
import { storePath } from '../../src/store/sqlite/database.js';
import { limits } from '../../src/limits.js';
import { isNight, seedOfRun, times } from '../fuzz/check.js';
import { balances, chargesOf, temporaryFolder } from '../store/support.js';
import { seededRandom } from '../../scripts/rig/random.js';
import { RawClient, requestBytes } from '../support/raw-client.js';
import { SCRIPTED, pause, startService, until } from '../support/service.js';
import {
  chargeMax,
  chargeThrough,
  listen,
  proseOf,
  type Heard,
  type Listening,
} from '../support/speech-oracle.js';

const start = (t: Test, dataDir: string) =>
  startService(t, { DATA_DIR: dataDir, SYNTHESIS_THREADS: '2' }, SCRIPTED);

/** Every row of the ledger, in order. Acknowledged rows must never change. */
const ledgerOf = (dataDir: string): string[] => {
  const database = new DatabaseSync(storePath(dataDir));
  const rows = database.prepare('SELECT * FROM ledger ORDER BY id').all();
  database.close();
  return rows.map((row) => JSON.stringify(row));
};

const sumsAreRight = (t: Test, dataDir: string) => {
  for (const { name, balance, sum } of balances(dataDir))
    t.equal(balance, sum, `${name}: the sum of the ledger`);
};

t.test('a kill loses less than one ledger entry of a streaming request, and no earlier entry', async (t) => {
  const dataDir = join(temporaryFolder(t), 'data');
  const [key = ''] = await createKeys(dataDir, [['listener', 100_000]]);
  const service = await start(t, dataDir);
  const text = proseOf(6_000);
  const body = { text, voice: 'wren', response_format: { encoding: 'pcm', sample_rate: 24_000 } };
  const client = await RawClient.open(service.port);
  t.teardown(() => client.destroy());
  client.send(requestBytes({ method: 'POST', path: '/v1/tts/stream', key, body: JSON.stringify(body) }));
  const heardLetters = () => Math.floor(client.receivedBytes / 3_300);
  await client.until(() => heardLetters() > 2_600);
  const heard = chargeThrough(text, heardLetters());
  const written = () => [...chargesOf(dataDir).values()].reduce((sum, { credits }) => sum + credits, 0);
  t.ok(
    await until(() => written() > heard - limits.leaseStepCharacters),
    'entries are durable while the client listens',
  );
  const before = ledgerOf(dataDir);
  await service.kill();
  await client.closed();
  const after = ledgerOf(dataDir);
  t.same(after.slice(0, before.length), before);
  t.ok(written() <= chargeThrough(text, heardLetters() + 200), 'only what was made is charged');
  sumsAreRight(t, dataDir);
});

interface Asked {
  readonly request: Listening;
  readonly heard: Promise<Heard>;
}

const randomRequest = (random: () => number, keys: readonly string[]): Listening => {
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
  const length = pick([1, 40, 250, 500, 1_600]);
  const fault = random() < 0.15 ? ' Then !throw it breaks.' : '';
  const hangsUp = random() < 0.35;
  return {
    path: pick(['/v1/tts', '/v1/tts/stream']),
    key: pick(keys),
    text: proseOf(length) + fault,
    ...(hangsUp ? { hangUpAfterLetters: Math.floor(random() * random() * length) } : {}),
  };
};

/** The possible charge of a request, given the audio that arrived and how the service ended. */
const chargeRange = (
  { path, text }: Listening,
  heard: Heard,
  killed: boolean,
): [min: number, max: number] => {
  const whole = chargeThrough(text, text.length);
  // A whole result is charged when it is complete. That can be before the client gets any of it.
  if (heard.status === 0) return [0, path === '/v1/tts' ? whole : chargeMax(text, heard)];
  if (heard.status !== 200) return [0, 0];
  const max = heard.complete || path === '/v1/tts' ? whole : chargeMax(text, heard);
  // A kill can lose what was not yet an entry.
  if (killed) return [0, max];
  return [path === '/v1/tts' ? whole : chargeThrough(text, heard.letters), max];
};

const ACTS = 16;
const IN_FLIGHT_MAX = 7;

/** Runs a service once: actions in a seeded order, and then a kill during them or an orderly end. */
const live = async (
  t: Test,
  dataDir: string,
  keys: readonly string[],
  random: () => number,
  killed: boolean,
) => {
  const before = ledgerOf(dataDir);
  const service = await start(t, dataDir);
  const knownBefore = new Set(chargesOf(dataDir).keys());
  const asked: Asked[] = [];
  const inFlight = new Set<Promise<unknown>>();
  for (let act = 0; act < ACTS; act += 1) {
    const request = randomRequest(random, keys);
    const heard = listen(service.port, request);
    asked.push({ request, heard });
    inFlight.add(heard);
    void heard.finally(() => inFlight.delete(heard));
    if (random() < 0.15) {
      const credits = 1 + Math.floor(random() * 500);
      await operate(dataDir, (administration) => administration.credit('metered', credits));
    }
    if (inFlight.size >= IN_FLIGHT_MAX) await Promise.race(inFlight);
    if (random() < 0.5) await pause(random() * 20);
  }
  const acknowledged = ledgerOf(dataDir);
  await (killed ? service.kill() : service.stop());
  t.equal(service.stderr, '');
  const ledger = ledgerOf(dataDir);
  t.same(ledger.slice(0, before.length), before, 'earlier entries stay');
  t.same(ledger.slice(0, acknowledged.length), acknowledged, 'every acknowledged entry is there');
  const charges = chargesOf(dataDir);
  for (const id of knownBefore) charges.delete(id);
  const wrong: unknown[] = [];
  const namelessMax: number[] = [];
  for (const { request, heard: hearing } of asked) {
    const heard = await hearing;
    const [min, max] = chargeRange(request, heard, killed);
    const charge = charges.get(heard.requestId ?? '')?.credits ?? 0;
    charges.delete(heard.requestId ?? '');
    if (heard.requestId === null) namelessMax.push(max);
    else if (charge < min || charge > max)
      wrong.push({ ...request, text: request.text.length, heard, charge, min, max });
  }
  t.same(wrong, [], 'every charge is possible');
  // Requests without a response have no known id. Compare in order of size: the largest charge with the largest request.
  const nameless = [...charges.values()].map(({ credits }) => credits).sort((a, b) => b - a);
  namelessMax.sort((a, b) => b - a);
  t.ok(
    nameless.every((credits, index) => credits <= (namelessMax[index] ?? 0)),
    `also without a response: ${nameless.join()} of ${namelessMax.join()}`,
  );
};

const firstSeed = seedOfRun();
for (let seed = firstSeed; seed < firstSeed + times; seed++)
  t.test(
    `schedule SYRINX_FUZZ_SEED=${seed}: requests, aborts, faults, kills and an orderly end`,
    async (t) => {
      const dataDir = join(temporaryFolder(t), 'data');
      const random = seededRandom(seed);
      const keys = await createKeys(dataDir, [
        ['metered', 9_000],
        ['metered', null],
        ['unmetered', null],
      ]);
      for (const killed of isNight ? [true, true, false] : [true, false]) {
        await live(t, dataDir, keys, random, killed);
        sumsAreRight(t, dataDir);
        const metered = balances(dataDir).find(({ name }) => name === 'metered');
        t.ok((metered?.balance ?? -1) >= 0, 'no speech without credit');
      }
    },
  );
