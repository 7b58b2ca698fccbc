/** A soak of some seconds: of the real service, and of a service that loses or doubles a single frame. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { startThief, type Theft } from '../support/frame-thief.js';
import { runScript, startService } from '../support/service.js';

interface Report {
  readonly passed: boolean;
  readonly invariants: readonly { readonly name: string; readonly passed: boolean | null }[];
  readonly summary: Readonly<Record<string, number | null>>;
  readonly rests: readonly {
    readonly pssBytes: number;
    readonly kept: { readonly heapBytes: number; readonly externalBytes: number };
  }[];
  readonly series: readonly {
    readonly phase: string;
    readonly streams: number;
    readonly speechPerSecond: number;
  }[];
}

/** These depend on the machine as much as on the service. */
const ofTime = ['underruns', 'first-audio', 'event-loop', 'probe'];

const soak = async (t: Test, args: readonly string[]) => {
  const out = mkdtempSync(join(tmpdir(), 'syrinx-soak-'));
  t.teardown(() => rmSync(out, { recursive: true, force: true }));
  const always = ['--minutes', '0.1', '--sockets', '20', '--out', out];
  const ended = await runScript('scripts/soak/main.js', [...always, ...args], {});
  if (!existsSync(join(out, 'soak.json'))) throw new Error(ended.stderr);
  const report = JSON.parse(readFileSync(join(out, 'soak.json'), 'utf8')) as Report;
  const broken = report.invariants.flatMap(({ name, passed }) => (passed === false ? [name] : []));
  return { ...ended, report, broken };
};

const withoutTime = (names: readonly string[]) => names.filter((name) => !ofTime.includes(name));

// At once: most of the time they wait.
t.jobs = 2;

void t.test('a soak of the service reports that every invariant holds', async (t) => {
  const { broken, code, report, stdout } = await soak(t, [
    ...['--contexts', '5', '--streams', '2', '--warm-up', '0.2', '--rests', '2'],
  ]);
  t.same(withoutTime(broken), [], stdout);
  t.equal(code, broken.length === 0 ? 0 : 1, 'the exit code agrees with the report');
  t.equal(report.passed, broken.length === 0);
  t.ok((report.summary['frames'] ?? 0) > 50);
  t.ok(report.series.length > 0);
  t.equal(report.rests.length, 2);
  t.ok(
    report.rests.every(({ pssBytes, kept }) => pssBytes > 2 ** 25 && kept.heapBytes > 2 ** 24),
    'memory is measured at rest',
  );
  t.ok(
    report.series.some(({ phase }) => phase === 'warm-up'),
    'there is a warm-up',
  );
  const rested = report.series.findIndex(({ phase, streams }) => phase === 'rest' && streams === 0);
  t.ok(rested >= 0, 'there is a rest without streams');
  t.ok(
    report.series.slice(rested + 1).some(({ speechPerSecond }) => speechPerSecond > 0),
    'speech continues after the rest',
  );
  const { phase, streams } = report.series.at(-1)!;
  t.same({ phase, streams }, { phase: 'rest', streams: 0 }, 'the last rest is the last measurement');
  const judged = report.invariants.filter(({ passed }) => passed !== null).map(({ name }) => name);
  for (const name of ['frames', 'words', 'flushes', 'ledger', 'slots', 'handles', 'log', 'alive'])
    t.ok(judged.includes(name), `${name} is judged`);
});

void t.test('a soak at a share of the capacity judges what is refused', async (t) => {
  const { broken, report, stdout } = await soak(t, [
    ...['--load', '0.5', '--contexts', '4', '--streams', '2'],
  ]);
  // Other tests run beside it: the service may rightly refuse.
  t.same(
    withoutTime(broken).filter((name) => name !== 'refusals'),
    [],
    stdout,
  );
  const refusals = report.invariants.find(({ name }) => name === 'refusals');
  t.equal(
    refusals?.passed,
    report.summary['refusals'] === 0,
    'below the capacity, a refusal breaks an invariant',
  );
});

void t.test('a single lost or doubled frame of audio is found', async (t) => {
  const service = await startService(t);
  // With this seed the only client asks for 237 characters as pcm, with timestamps.
  const run = async (theft: Theft) => {
    const port = await startThief(t, service.port, theft, 9);
    const url = `http://127.0.0.1:${String(port)}`;
    return soak(t, ['--url', url, '--key', service.key, '--seed', '8', '--contexts', '1', '--streams', '0']);
  };
  const [none, lost, doubled] = await Promise.all([run('none'), run('lost'), run('doubled')]);
  t.same(withoutTime(none.broken), [], `the proxy itself changes nothing\n${none.stdout}`);
  t.equal(lost.code, 1);
  t.ok(lost.broken.includes('audio'), lost.stdout);
  t.equal(doubled.code, 1);
  t.ok(doubled.broken.includes('audio'), doubled.stdout);
});
