/** What the report's page runs in the browser: a chart for each of the report's, all with one cursor. */

export interface ChartLine {
  readonly name: string;
  /** Number of a colour of the page's style. */
  readonly color: 1 | 2 | 3 | 4 | 5 | 6;
  /** One a step; `null` where nothing is known. */
  readonly values: readonly (number | null)[];
}

export interface Chart {
  readonly title: string;
  readonly unit: string;
  /** By default its scale begins at zero. */
  readonly fromZero?: boolean;
  readonly bars?: boolean;
  readonly lines: readonly ChartLine[];
}

/** Plain JavaScript; `report` (its data) and `uPlot` are there before it. */
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
    card.append('The service does not tell.');
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
