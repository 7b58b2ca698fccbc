/** Lines or stacked bars over time, with their title and legend. */
import type { ComponentChildren, TargetedPointerEvent } from 'preact';
import { ticks } from '../format.js';

/** Units of the drawing, which is stretched to its place in the page. */
const [width, height] = [1_000, 100];
/** Of the time of a bar. */
const barPart = 0.72;

const minuteMs = 60_000;
/** Between two times on an axis. */
const timeSteps = [
  ...[1, 5, 10, 15, 30].map((minutes) => minutes * minuteMs),
  ...[1, 2, 3, 6, 12].map((hours) => hours * 60 * minuteMs),
  ...[1, 2, 7, 14, 28, 56].map((days) => days * 1_440 * minuteMs),
];
const timesMax = 8;
const valuesMax = 4;

/** 1, 2 or 5 times a power of ten, so that a few steps reach the highest value. */
const valueStep = (highest: number): number => {
  const power = 10 ** Math.floor(Math.log10(highest / valuesMax));
  return power * ([1, 2, 5].find((factor) => factor * power * valuesMax >= highest) ?? 10);
};

/** A place in the drawing; `null`: a gap. */
type Place = readonly [x: number, y: number] | null;

/** A line through the places between two gaps; a dot, if there is only one. */
const Line = ({ isFilled, places }: { readonly isFilled: boolean; readonly places: readonly Place[] }) => {
  const runs: [number, number][][] = [[]];
  for (const place of places)
    if (place === null) runs.push([]);
    else runs.at(-1)!.push([...place]);
  const found = runs.filter(({ length }) => length > 0);
  const lines = found.map((run) => `M${run.join('L')}`);
  return (
    <>
      {isFilled && (
        <path
          class="plot-area"
          d={lines.map((line, index) => `${line}V${height}H${found[index]![0]![0]}Z`).join('')}
        />
      )}
      <path d={lines.join('')} />
      <path class="plot-dots" d={lines.map((line) => (line.includes('L') ? '' : `${line}h0`)).join('')} />
    </>
  );
};

export interface Series {
  readonly label: string;
  /** A custom property. */
  readonly color: string;
  readonly values: readonly (number | null)[];
  /** In the legend: the value of the point that is shown. */
  readonly shown: string;
}

export const Plot = (props: {
  readonly title: string;
  readonly about: string;
  /** For screen readers. */
  readonly label: string;
  /** What the values of the legend are of. */
  readonly at?: string;
  /** In place of lines: each stands on that of the series before, and has its time in its middle. */
  readonly hasBars?: boolean;
  readonly isUtc?: boolean;
  readonly timesMs: readonly number[];
  readonly fromMs: number;
  readonly toMs: number;
  readonly series: readonly Series[];
  /** The axis goes at least so high. */
  readonly highestMin: number;
  readonly format: (value: number) => string;
  /** The index of the time under the pointer, here or in another plot. */
  readonly point: number | null;
  readonly onPoint: (index: number | null) => void;
  readonly children?: ComponentChildren;
}) => {
  const { fromMs, hasBars = false, isUtc = false, point, series, timesMs, toMs } = props;
  const sumOf = (count: number, index: number): number =>
    series.slice(0, count).reduce((sum, { values }) => sum + (values[index] ?? 0), 0);
  const highest = timesMs.map((_, index) =>
    hasBars ? sumOf(series.length, index) : Math.max(...series.map(({ values }) => values[index] ?? 0)),
  );
  const top = 1.1 * Math.max(props.highestMin, ...highest);
  const xOf = (ms: number): number => (width * (ms - fromMs)) / (toMs - fromMs);
  const yOf = (value: number): number => height * (1 - value / top);

  const valuesApart = valueStep(top);
  const values = Array.from({ length: valuesMax + 1 }, (_, index) => index * valuesApart).filter(
    (value) => value <= top,
  );
  const timesApart = timeSteps.find((step) => (toMs - fromMs) / step <= timesMax) ?? timeSteps.at(-1)!;
  const times = Array.from({ length: timesMax + 3 }, (_, index) => {
    const ms = (Math.floor(fromMs / timesApart) + index - 1) * timesApart;
    // Midnight is at another time of UTC.
    return isUtc ? ms : ms + new Date(ms).getTimezoneOffset() * minuteMs;
  }).filter((ms) => ms >= fromMs && ms <= toMs);

  const formats = isUtc ? ticks.utc : ticks.here;
  const formatTick = timesApart < 1_440 * minuteMs ? formats.time : formats.day;

  const barWidth = (barPart * width) / timesMs.length;
  const draw = ({ values: of }: Series, index: number) =>
    hasBars ? (
      <path
        class="plot-bars"
        d={timesMs
          .map((ms, at) => {
            const [from, to] = [sumOf(index, at), sumOf(index + 1, at)];
            return to > from
              ? `M${xOf(ms) - barWidth / 2} ${yOf(from)}V${yOf(to)}h${barWidth}V${yOf(from)}Z`
              : '';
          })
          .join('')}
      />
    ) : (
      <Line
        isFilled={series.length === 1}
        places={timesMs.map((ms, at) => {
          const value = of[at] ?? null;
          return value === null || ms < fromMs ? null : [xOf(ms), yOf(value)];
        })}
      />
    );

  const onPointerMove = ({ clientX, currentTarget }: TargetedPointerEvent<SVGSVGElement>) => {
    const { left, width: shownWidth } = currentTarget.getBoundingClientRect();
    const x = ((clientX - left) / shownWidth) * width;
    const away = timesMs.map((ms) => Math.abs(xOf(ms) - x));
    props.onPoint(away.length === 0 ? null : away.indexOf(Math.min(...away)));
  };
  const pointMs = point === null ? undefined : timesMs[point];
  return (
    <figure class="card stack">
      <figcaption class="between small">
        <strong>{props.title}</strong>
        <span class="muted">{props.about}</span>
      </figcaption>
      <div class="plot" role="img" aria-label={props.label}>
        <div>
          {values.map((value) => (
            <span key={value} style={{ top: `${yOf(value)}%` }}>
              {props.format(value)}
            </span>
          ))}
        </div>
        <svg
          viewBox={`0 0 ${width} ${height}`}
          preserveAspectRatio="none"
          onPointerMove={onPointerMove}
          onPointerLeave={() => props.onPoint(null)}
        >
          <path class="plot-grid" d={values.map((value) => `M0 ${yOf(value)}H${width}`).join('')} />
          {series.map((one, index) => (
            <g key={one.label} style={{ color: `var(${one.color})` }}>
              {draw(one, index)}
            </g>
          ))}
          {pointMs !== undefined && <path class="plot-point" d={`M${xOf(pointMs)} 0V${height}`} />}
        </svg>
        <div>
          {times.map((ms) => (
            <span key={ms} style={{ left: `${(100 * xOf(ms)) / width}%` }}>
              {formatTick(ms)}
            </span>
          ))}
        </div>
      </div>
      <ul class="row legend">
        {series.map(({ color, label, shown }) => (
          <li key={label} class="row">
            <span aria-hidden="true" style={{ color: `var(${color})` }}>
              ■
            </span>
            {label}
            <strong>{shown}</strong>
          </li>
        ))}
        {props.at !== undefined && <li class="muted">{props.at}</li>}
      </ul>
      {props.children}
    </figure>
  );
};
