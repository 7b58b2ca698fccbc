/** The Grafana dashboard of scripts/deploy/prometheus: each panel shows one metric of the table. */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Metrics, type CatalogueEntry } from '../src/metrics.js';
import { program, runIfMain } from './command.js';

const usage = `Usage: npm run dashboard

Brings the queries and descriptions in scripts/deploy/prometheus/dashboard.json, the dashboard for Grafana, up to date with the
table of metrics. The last line of the description of a panel names its metric. Run it after a change of that table.
`;

/** What of it follows from its metric. A row is the heading of a section. */
interface Panel {
  readonly type: 'timeseries' | 'row';
  readonly title: string;
  readonly description?: string;
}

const datasource = { type: 'prometheus', uid: '${datasource}' };
const quantiles = [0.5, 0.95, 0.99];

/** The queries of a metric, each with its legend. */
const queriesOf = ({ name, type, labelNames }: CatalogueEntry): readonly (readonly [string, string])[] => {
  const route = labelNames.includes('route') ? ', route=~"$route"' : '';
  const selector = `{job=~"$job", instance=~"$instance"${route}}`;
  const legend = labelNames.map((label) => `{{${label}}}`).join(' ');
  switch (type) {
    case 'histogram':
      return quantiles.map((quantile) => [
        `histogram_quantile(${quantile}, sum by (le) (rate(${name}_bucket${selector}[$__rate_interval])))`,
        `p${quantile * 100}`,
      ]);
    case 'counter': {
      const by = labelNames.length === 0 ? 'instance' : labelNames.join(', ');
      return [[`sum by (${by}) (rate(${name}${selector}[$__rate_interval]))`, legend || '{{instance}}']];
    }
    case 'gauge':
      return [[`${name}${selector}`, `{{instance}} ${legend}`.trim()]];
  }
};

export const dashboardPath = fileURLToPath(
  new URL('../../scripts/deploy/prometheus/dashboard.json', import.meta.url),
);

const updated = (panel: Panel, metric: CatalogueEntry): object => ({
  ...panel,
  description: `${metric.help}\n\n${metric.name}`,
  targets: queriesOf(metric).map(([expr, legendFormat], i) => ({
    ...{ refId: String.fromCharCode(65 + i), datasource, expr, legendFormat },
  })),
});

/** @throws if it does not have each metric of the table once */
export const dashboard = (): string => {
  const metrics = new Map(new Metrics().catalogue.map((metric) => [metric.name, metric]));
  const document = JSON.parse(readFileSync(dashboardPath, 'utf8')) as { panels: readonly Panel[] };
  const panels = document.panels.map((panel) => {
    if (panel.type === 'row') return panel;
    const name = panel.description?.split('\n').at(-1) ?? '';
    const metric = metrics.get(name);
    if (metric === undefined)
      throw new Error(`the panel "${panel.title}" has ${name}, which is no other metric`);
    metrics.delete(name);
    return updated(panel, metric);
  });
  if (metrics.size > 0) throw new Error(`the dashboard lacks ${[...metrics.keys()].join(', ')}`);
  return `${JSON.stringify({ ...document, panels }, null, 2)}\n`;
};

export const dashboardProgram = program('dashboard', usage, {
  options: [],
  run: (_, { out }) => {
    writeFileSync(dashboardPath, dashboard());
    out(`${dashboardPath}\n`);
  },
});

await runIfMain(import.meta.url, dashboardProgram);
