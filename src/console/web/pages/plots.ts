/** Canvases that uPlot draws: they follow the size of their element, and the colours of the page. Loaded with the first plot. */
import uPlot from 'uplot';
import { formatTick } from '../format.js';
import { onTheme } from '../theme.js';
import { type PlotData, stepMs } from './usage-data.js';

/** Colours that were read. Each costs the page a pass over its styles. */
const colors = new Map<string, string>();
onTheme(() => colors.clear());

/** The colour of a custom property with `light-dark()`, which a canvas does not know. */
const resolved = (name: string): string => {
  let color = colors.get(name);
  if (color !== undefined) return color;
  const probe = document.createElement('span');
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  ({ color } = getComputedStyle(probe));
  probe.remove();
  colors.set(name, color);
  return color;
};

export type PlotValues = uPlot.AlignedData;

export interface Plot {
  readonly set: (data: PlotValues) => void;
  readonly close: () => void;
}

interface Drawing extends Pick<uPlot.Options, 'scales' | 'series' | 'tzDate'> {
  readonly cursor?: Pick<uPlot.Cursor, 'points' | 'sync'>;
  readonly times: uPlot.Axis;
  readonly values: uPlot.Axis;
}

/**
 * @param drawingOf called again when the colours change
 * @param onPoint gets the index of the point under the pointer, or null
 */
const keepDrawn = (
  element: HTMLElement,
  first: PlotValues,
  drawingOf: () => Drawing,
  onPoint: (index: number | null) => void,
): Plot => {
  let data = first;
  const size = () => ({ width: element.clientWidth, height: element.clientHeight });
  const make = (): uPlot => {
    const { cursor, times, values, ...drawing } = drawingOf();
    const axis = { stroke: resolved('--muted'), font: '12px system-ui, sans-serif', ticks: { show: false } };
    const grid = { stroke: resolved('--border'), width: 1 };
    const options: uPlot.Options = {
      ...drawing,
      ...size(),
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, ...cursor },
      axes: [
        { ...axis, grid: { show: false }, space: 64, ...times },
        { ...axis, grid, ...values },
      ],
      hooks: { setCursor: [({ cursor: { idx } }) => onPoint(idx ?? null)] },
    };
    return new uPlot(options, data, element);
  };
  let plot = make();
  const sizes = new ResizeObserver(() => {
    const { height, width } = size();
    // It also reports the size at the start. A plot draws itself for any size that it gets.
    if (width !== plot.width || height !== plot.height) plot.setSize({ width, height });
  });
  sizes.observe(element);
  const ignoreTheme = onTheme(() => {
    plot.destroy();
    plot = make();
  });
  return {
    set: (next) => {
      if (next === data) return;
      data = next;
      plot.setData(next);
    },
    close: () => {
      ignoreTheme();
      sizes.disconnect();
      plot.destroy();
    },
  };
};

/** @param onPoint the index of the step under the pointer, or null */
export const drawBars = (
  element: HTMLElement,
  data: PlotData,
  onPoint: (index: number | null) => void,
): Plot => {
  const isDay = data.step === 'day';
  const day = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric', timeZone: 'UTC' });
  const hour = new Intl.DateTimeFormat(undefined, { timeStyle: 'short', timeZone: 'UTC' });
  const number = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 2 });

  // Each series is drawn up to the sum of itself and those below it, the highest first.
  const sums: number[][] = [];
  for (const { values } of data.series) {
    const below = sums.at(-1);
    sums.push(values.map((value, index) => value + (below?.[index] ?? 0)));
  }
  const stacked = sums.toReversed();

  const half = stepMs[data.step] / 2_000;

  // Bars have at least two pixels. In narrower ones, the colours of a month of hours look alike.
  const bars = uPlot.paths.bars!({ size: [0.72, 48, 2], radius: 0.12, align: 0 });
  const drawing = (): Drawing => ({
    cursor: { points: { show: false } },
    scales: {
      x: { time: true, range: (_, min, max) => [min - half, max + half] },
      y: { range: (_, _min, max) => [0, Math.max(1, max * 1.05)] },
    },
    times: {
      size: 32,
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
    },
    values: { size: 52, values: (_, splits) => splits.map((value) => number.format(value)) },
    series: [
      {},
      ...stacked.map((_, index) => ({
        fill: resolved(`--series-${data.series.length - index}`),
        width: 0,
        paths: bars,
        points: { show: false },
      })),
    ],
    tzDate: (seconds: number) => uPlot.tzDate(new Date(seconds * 1_000), 'Etc/UTC'),
  });
  return keepDrawn(element, [data.timesMs.map((ms) => ms / 1_000), ...stacked], drawing, onPoint);
};

/** A chart shows at least this part of its span. */
const SPAN_PARTS = 12;

export interface LinesOptions {
  /** Custom properties. The area of a single line is filled. */
  readonly colors: readonly string[];
  /** Of a value on its axis, with the unit. */
  readonly format: (value: number) => string;
  /** The axis goes at least so high. */
  readonly highestMin: number;
  readonly spanSeconds: number;
  /** @param index of the point under the pointer, or null */
  readonly onPoint: (index: number | null) => void;
}

const isAt = (values: PlotValues[number], index: number): boolean => (values[index] ?? null) !== null;

/** Points that no line shows, because their neighbours are missing. */
const alone = (values: PlotValues[number]): number[] =>
  Array.from(values, (_, index) => index).filter(
    (index) => isAt(values, index) && !isAt(values, index - 1) && !isAt(values, index + 1),
  );

export const drawLines = (element: HTMLElement, data: PlotValues, options: LinesOptions): Plot => {
  const { colors, format, highestMin, onPoint, spanSeconds } = options;
  const drawing = (): Drawing => ({
    cursor: { sync: { key: 'live' }, points: { size: 6 } },
    scales: {
      x: {
        time: true,
        range: (plot) => {
          const [times] = plot.data;
          const end = times.at(-1) ?? Date.now() / 1_000;
          // After a start, what there is fills the chart, but it is not drawn out of measure.
          const first = Math.min(times[0] ?? end, end - spanSeconds / SPAN_PARTS);
          return [Math.max(first, end - spanSeconds), end];
        },
      },
      y: { range: (_, _min, max) => [0, Math.max(highestMin, max * 1.1)] },
    },
    times: {
      size: 28,
      values: (_, splits, _axis, _space, increment) =>
        splits.map((seconds) => formatTick(seconds * 1_000, increment * 1_000)),
    },
    values: { size: 60, space: 32, values: (_, splits) => splits.map(format) },
    series: [
      {},
      ...colors.map((name): uPlot.Series => {
        const stroke = resolved(name);
        return {
          stroke,
          width: 1.5,
          ...(colors.length === 1 && { fill: `color-mix(in srgb, ${stroke} 14%, transparent)` }),
          points: {
            size: 4,
            fill: stroke,
            filter: (plot, index, isShown) => (isShown ? null : alone(plot.data[index] ?? [])),
          },
        };
      }),
    ],
  });
  return keepDrawn(element, data, drawing, onPoint);
};
