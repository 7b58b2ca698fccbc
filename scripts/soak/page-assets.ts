/** What the report's page has besides its figures: its style, and the script that draws its charts. */

/** Plain JavaScript, after `report` (the data) and `uPlot`. Draws every chart; all share one cursor. */
export const chartScript = `
const folder = document.getElementById('charts');
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
const minutes = (seconds) => {
  const rounded = seconds / 60;
  return String(Number(rounded.toFixed(2)));
};
const sync = uPlot.sync('soak');
let plots = [];

/** Vertical lines where a phase begins. */
const marks = {
  hooks: {
    draw: (plot) => {
      const { ctx, bbox } = plot;
      ctx.save();
      ctx.strokeStyle = color('quiet');
      ctx.setLineDash([4, 4]);
      for (const { at } of report.marks) {
        const x = Math.round(plot.valToPos(at, 'x', true));
        if (x <= bbox.left || x >= bbox.left + bbox.width) continue;
        ctx.beginPath();
        ctx.moveTo(x, bbox.top);
        ctx.lineTo(x, bbox.top + bbox.height);
        ctx.stroke();
      }
      ctx.restore();
    },
  },
};

const text = (value, unit) => {
  if (value === null || value === undefined) return '–';
  const digits = Math.abs(value) < 10 && !Number.isInteger(value) ? 2 : Math.abs(value) < 100 && !Number.isInteger(value) ? 1 : 0;
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits }) + (unit && ' ' + unit);
};

const draw = (chart) => {
  const known = chart.lines.filter(({ values }) => values.some((value) => value !== null));
  const card = document.createElement('div');
  card.className = 'chart';
  const title = document.createElement('h3');
  title.textContent = chart.title + (chart.unit && ', ' + chart.unit);
  card.append(title);
  folder.append(card);
  if (known.length === 0) {
    card.append('No figures.');
    return;
  }
  const axis = { stroke: color('quiet'), grid: { stroke: color('grid'), width: 1 }, ticks: { stroke: color('grid') } };
  const plot = new uPlot(
    {
      width: card.clientWidth - 28,
      height: 220,
      cursor: { sync: { key: sync.key }, points: { size: 6 } },
      plugins: [marks],
      scales: {
        x: { time: false },
        y: { range: (_plot, min, max) => {
          if (min === null) return [0, 1];
          if (chart.fromZero === false) return uPlot.rangeNum(min, max, 0.1, true);
          return [0, max <= 0 ? 1 : max * 1.1];
        } },
      },
      axes: [
        { ...axis, values: (_plot, splits) => splits.map((value) => minutes(value)),
          incrs: [15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 36000] },
        { ...axis, size: 60 },
      ],
      series: [
        { label: 'minute', value: (_plot, value) => (value === null ? '–' : minutes(value)) },
        ...known.map((line) => ({
          label: line.name,
          stroke: color('c' + line.color),
          fill: chart.bars ? color('c' + line.color) : undefined,
          width: 1.5,
          points: { show: chart.bars ? false : undefined },
          paths: chart.bars ? uPlot.paths.bars({ size: [0.8, 20] }) : undefined,
          value: (_plot, value) => text(value, chart.unit),
        })),
      ],
    },
    [report.seconds, ...known.map(({ values }) => values)],
    card,
  );
  plots.push({ plot, card });
};

const drawAll = () => {
  for (const { plot } of plots) plot.destroy();
  plots = [];
  folder.replaceChildren();
  report.charts.forEach(draw);
};

drawAll();
addEventListener('resize', () => {
  for (const { plot, card } of plots) plot.setSize({ width: card.clientWidth - 28, height: 220 });
});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawAll);
`;

/** Light or dark, as the reader's system. */
export const pageStyle = `
:root {
  --back: #f6f7f9; --card: #fff; --text: #1b1f24; --quiet: #5d6672; --line: #dfe3e8; --grid: #e9ecef;
  --kept: #11734b; --broken: #b3261e; --unjudged: #6a6f76;
  --c1: #2563c9; --c2: #c2660b; --c3: #b3261e; --c4: #7b8794; --c5: #6d4bb8; --c6: #1a8a8a;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #14171b; --card: #1c2026; --text: #e6e9ed; --quiet: #9aa4b0; --line: #2d333b; --grid: #262c33;
    --kept: #4cc38a; --broken: #ff7b72; --unjudged: #9aa4b0;
    --c1: #6ea8fe; --c2: #f0a24b; --c3: #ff7b72; --c4: #8b97a5; --c5: #b79cf5; --c6: #56c2c2;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1280px; padding: 24px; background: var(--back); color: var(--text);
  font: 15px/1.5 system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif; }
h1 { font-size: 26px; margin: 0; }
h2 { font-size: 18px; margin: 32px 0 8px; }
h3 { font-size: 14px; font-weight: 600; margin: 0 0 4px; }
header p { margin: 4px 0; color: var(--quiet); }
header p.kept, header p.broken { font-size: 17px; font-weight: 600; }
.note { color: var(--quiet); margin: 0 0 12px; }
.kept .verdict { color: var(--kept); } .broken .verdict { color: var(--broken); }
.unjudged .verdict { color: var(--unjudged); }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(200px, 1fr)); gap: 12px; margin-top: 20px; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 12px 14px; }
.tile span, .tile small { display: block; color: var(--quiet); font-size: 13px; }
.tile b { font-size: 22px; font-variant-numeric: tabular-nums; }
table { width: 100%; border-collapse: collapse; background: var(--card); border: 1px solid var(--line);
  border-radius: 10px; overflow: hidden; }
#charts table { width: auto; border: 0; }
section > table th { text-align: left; font-size: 13px; color: var(--quiet); font-weight: 500; }
section > table th, section > table td { padding: 8px 14px; border-top: 1px solid var(--line); vertical-align: top; }
section > table thead th { border-top: 0; }
section > table td:first-child { white-space: nowrap; font-weight: 600; }
section > table td:last-child { color: var(--quiet); overflow-wrap: anywhere; }
section > table ul { margin: 4px 0 0; padding-left: 18px; font-size: 13px; }
#charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(560px, 100%), 1fr)); gap: 16px; }
.chart { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 12px 14px; min-width: 0; }
.uplot, .uplot * { font-family: inherit; }
.uplot .u-legend { font-size: 13px; color: var(--quiet); text-align: left; margin: 4px 0 0; }
.u-legend th { font-weight: 400; }
.u-legend.u-inline .u-value { min-width: 4.5em; text-align: left; font-variant-numeric: tabular-nums; }
.u-select { background: color-mix(in srgb, var(--c1) 18%, transparent); }
.u-cursor-x, .u-cursor-y { border-color: var(--quiet) !important; }
`;
