/** Draws lines over time, up to now. Loaded with the live page's first chart. */
import type uPlot from 'uplot';
import { keepDrawn, type Plot } from '../parts/plot.js';

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

const isAt = (values: uPlot.AlignedData[number], index: number): boolean => (values[index] ?? null) !== null;

/** Points that no line shows, because their neighbours are missing. */
const alone = (values: uPlot.AlignedData[number]): number[] =>
  Array.from(values, (_, index) => index).filter(
    (index) => isAt(values, index) && !isAt(values, index - 1) && !isAt(values, index + 1),
  );

export const drawLines = (element: HTMLElement, data: uPlot.AlignedData, options: LinesOptions): Plot => {
  const { colors, format, highestMin, onPoint, spanSeconds } = options;
  const time = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
  return keepDrawn(element, data, ({ axis, colorOf, grid }) => ({
    cursor: {
      y: false,
      drag: { x: false, y: false },
      sync: { key: 'live' },
      points: { size: 6 },
    },
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
    axes: [
      {
        ...axis,
        size: 28,
        grid: { show: false },
        space: 64,
        values: (_, splits) => splits.map((seconds) => time.format(seconds * 1_000)),
      },
      { ...axis, size: 60, grid, space: 32, values: (_, splits) => splits.map(format) },
    ],
    series: [
      {},
      ...colors.map((name): uPlot.Series => {
        const stroke = colorOf(name);
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
    hooks: { setCursor: [({ cursor }) => onPoint(cursor.idx ?? null)] },
  }));
};
