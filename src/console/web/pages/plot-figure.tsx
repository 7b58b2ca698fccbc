/** A plot with its title and legend. The code that draws comes with the first one. */
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { Problem } from '../parts/page.js';
import type * as Plots from './plots.js';

export const PlotFigure = (props: {
  readonly title: string;
  readonly about: string;
  /** For screen readers. */
  readonly label: string;
  readonly legend: readonly (readonly [label: string, color: string, value: string])[];
  /** What the values of the legend are of. */
  readonly at?: string;
  /** @returns what ends the plot */
  readonly draw: (plots: typeof Plots, box: HTMLElement) => () => void;
  /** Another one is drawn afresh. */
  readonly of: unknown;
  readonly children?: ComponentChildren;
}) => {
  const { about, at, draw, label, legend, title } = props;
  const box = useRef<HTMLDivElement>(null);
  const [isLost, setIsLost] = useState(false);
  useLayoutEffect(() => {
    let close: (() => void) | null = null;
    let isGone = false;
    import('./plots.js').then(
      (plots) => {
        if (!isGone && box.current !== null) close = draw(plots, box.current);
      },
      () => setIsLost(true),
    );
    return () => {
      isGone = true;
      close?.();
    };
  }, [props.of]);
  return (
    <figure class="card stack">
      {isLost && <Problem refusal={{ message: 'The plot did not load. Reload the page.' }} />}
      <figcaption class="between small">
        <strong>{title}</strong>
        <span class="muted">{about}</span>
      </figcaption>
      <div class="plot-box" ref={box} role="img" aria-label={label} />
      <ul class="row legend">
        {legend.map(([name, color, value]) => (
          <li key={name} class="row">
            <span aria-hidden="true" style={{ color: `var(${color})` }}>
              ■
            </span>
            {name}
            <strong>{value}</strong>
          </li>
        ))}
        {at !== undefined && <li class="muted">{at}</li>}
      </ul>
      {props.children}
    </figure>
  );
};
