import type { ComponentChildren } from 'preact';

/** Figures with their names. */
export const Tiles = (props: {
  readonly figures: readonly (readonly [name: string, figure: ComponentChildren])[];
}) => (
  <dl class="cells tiles">
    {props.figures.map(([name, figure]) => (
      <div key={name} class="card">
        <dt>{name}</dt>
        <dd>{figure}</dd>
      </div>
    ))}
  </dl>
);
