/** The dashboard for Grafana is that of the metrics that exist, and Prometheus understands its queries. */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { dashboard, dashboardPath } from '../../scripts/dashboard.js';
import { Metrics } from '../../src/metrics.js';
import { temporaryFolder } from '../store/support.js';
import { missingTool } from '../support/tools.js';

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly description?: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string }[];
}

const { panels } = JSON.parse(dashboard()) as { panels: readonly Panel[] };

t.test('the file is what the table of metrics makes: else run `npm run dashboard`', (t) => {
  t.ok(readFileSync(dashboardPath, 'utf8') === dashboard());
  t.end();
});

t.test('each metric has one panel, and no two panels are in one place', (t) => {
  const metrics = new Metrics().catalogue.map(({ name }) => name);
  const shown = panels.flatMap(({ description }) => description?.split('\n').slice(-1) ?? []);
  t.same(shown.toSorted(), metrics.toSorted());
  t.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`),
  );
  t.equal(new Set(cells).size, cells.length);
  t.end();
});

t.test('Prometheus understands each query', { skip: missingTool('promtool') }, (t) => {
  const queries = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
  t.ok(queries.length > panels.length - 5);
  const rules = queries.map((query, i) => ({
    record: `dashboard:query_${i}`,
    expr: query.replaceAll('$__rate_interval', '5m').replaceAll(/\$\w+/g, '.*'),
  }));
  const path = join(temporaryFolder(t), 'rules.yml');
  // JSON is YAML.
  writeFileSync(path, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }));
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'rules', path], { encoding: 'utf8' });
  t.equal(status, 0, stderr);
  t.match(stdout, `${rules.length} rules found`);
  t.end();
});
