/** The overload bench, in short: it runs to its end, and reports every phase. The figures say little. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { runScript } from '../support/service.js';

interface Visits {
  readonly offered: number;
  readonly admitted: number;
  readonly refused: number;
  readonly failed: number;
}

interface Report {
  readonly rows: readonly { readonly what: string; readonly bar: string | null }[];
  readonly figures: {
    readonly capacity: number;
    readonly greedy: readonly {
      readonly kind: string;
      readonly file: string;
      readonly attacked: { readonly waitsMs: readonly number[] };
    }[];
    readonly phases: readonly {
      readonly name: string;
      readonly listeners: number;
      readonly figures: { readonly visits: Visits; readonly http: Visits; readonly ws: Visits };
    }[];
  };
}

void t.test('a short overload loses no visit, and reports each of its phases', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'syrinx-overload-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const json = join(folder, 'overload.json');
  const only = ['--only', 'cold,half,2,10,burst,flood'];
  const args = ['overload', '--quick', '--seconds', '3', '--capacity', '20', ...only, '--json', json];
  const { code, stderr, stdout } = await runScript('scripts/bench/main.js', args, {});
  t.ok(code === 0 || code === 1, stderr);
  const { figures, rows } = JSON.parse(readFileSync(json, 'utf8')) as Report;
  t.equal(figures.capacity, 20);
  for (const factor of [2, 10]) {
    const phase = figures.phases.find(({ name }) => name === `${factor} x`);
    t.equal(phase?.listeners, 20 * factor);
    const { http, visits, ws } = phase!.figures;
    t.ok(visits.admitted > 0);
    t.equal(visits.admitted + visits.refused + visits.failed, visits.offered);
    t.ok(ws.offered > 0 && http.offered > ws.offered, 'over both transports');
    t.equal(visits.failed, 0, stderr);
  }
  const burst = figures.phases.find(({ name }) => name === 'burst')!.figures.visits;
  t.same({ all: burst.admitted + burst.refused, lost: burst.failed }, { all: 1_000, lost: 0 }, stderr);
  for (const beside of ['quiet', 'beside two busy programs']) {
    const phase = figures.phases.find(({ name }) => name === `cold, ${beside}`);
    t.equal(phase?.figures.visits.offered, 18, beside);
  }
  t.equal(figures.phases.find(({ name }) => name === 'half at once')?.figures.visits.offered, 10);
  t.same(
    figures.greedy.map(({ file, kind }) => `${kind} ${file}`),
    ['text short', 'text long', 'unread short', 'unread long'],
  );
  t.ok(figures.greedy.every(({ attacked }) => attacked.waitsMs.length > 0));
  // Half, at once, two overloads, the burst, the flood.
  t.equal(rows.filter(({ bar }) => bar !== null).length, 3 + 2 + 6 + 6 + 1 + 4);
  t.match(stdout, /10 x: time to a refusal/);
});
