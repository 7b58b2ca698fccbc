/** Draws stacked bars with uPlot. Loaded when a plot is first shown. */
import uPlot from 'uplot';
import { keepDrawn, type Plot } from '../parts/plot.js';
import { stepMs, type PlotData } from './usage-data.js';

/**
 * @param onPoint the index of the step under the pointer, or null
 */
export const drawPlot = (
  element: HTMLElement,
  data: PlotData,
  onPoint: (index: number | null) => void,
): Plot => {
  const isDay = data.step === 'day';
  const day = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric', timeZone: 'UTC' });
  const hour = new Intl.DateTimeFormat(undefined, { hour: 'numeric', minute: '2-digit', timeZone: 'UTC' });
  const number = new Intl.NumberFormat(undefined, { notation: 'compact' });

  // Each series is drawn up to the sum of itself and those below it, the highest first.
  const sums: number[][] = [];
  for (const { values } of data.series) {
    const below = sums.at(-1);
    sums.push(values.map((value, index) => value + (below?.[index] ?? 0)));
  }
  const stacked = sums.toReversed();

  const half = stepMs[data.step] / 2_000;

  // At least two pixels: else the colours of a month of hours cannot be told apart.
  const bars = uPlot.paths.bars!({ size: [0.72, 48, 2], radius: 0.12, align: 0 });
  return keepDrawn(
    element,
    [data.timesMs.map((ms) => ms / 1_000), ...stacked],
    ({ axis, colorOf, grid }) => ({
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
      scales: {
        x: { time: true, range: (_, min, max) => [min - half, max + half] },
        y: { range: (_, _min, max) => [0, Math.max(1, max * 1.05)] },
      },
      axes: [
        {
          ...axis,
          size: 32,
          grid: { show: false },
          values: (_, splits, _axis, space, increment) =>
            splits.map((seconds) =>
              space === 0
                ? null
                : isDay || increment >= 86_400
                  ? day.format(seconds * 1_000)
                  : hour.format(seconds * 1_000),
            ),
          incrs: isDay
            ? [86_400, 2 * 86_400, 7 * 86_400, 14 * 86_400, 28 * 86_400, 56 * 86_400]
            : [3_600, 3 * 3_600, 6 * 3_600, 12 * 3_600, 86_400, 2 * 86_400, 7 * 86_400, 14 * 86_400],
          space: 64,
        },
        {
          ...axis,
          size: 52,
          grid,
          values: (_, splits) => splits.map((value) => number.format(value)),
        },
      ],
      series: [
        {},
        ...stacked.map((_, index) => ({
          fill: colorOf(`--series-${data.series.length - index}`),
          width: 0,
          paths: bars,
          points: { show: false },
        })),
      ],
      tzDate: (seconds: number) => uPlot.tzDate(new Date(seconds * 1_000), 'Etc/UTC'),
      hooks: { setCursor: [({ cursor }) => onPoint(cursor.idx ?? null)] },
    }),
  );
};
