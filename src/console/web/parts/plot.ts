/** A canvas that uPlot draws: it follows the size of its element, and the colours of the page. Loaded with the first plot. */
import uPlot from 'uplot';
import { onTheme } from '../theme.js';

const value = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name);

/** The colour of a custom property with `light-dark()`, which a canvas does not know. */
const resolved = (name: string): string => {
  const probe = document.createElement('span');
  probe.style.color = value(name).trim();
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
};

export interface Plot {
  readonly set: (data: uPlot.AlignedData) => void;
  readonly close: () => void;
}

interface Theme {
  readonly colorOf: (name: string) => string;
  /** Of each axis. */
  readonly axis: Pick<uPlot.Axis, 'stroke' | 'font' | 'ticks'>;
  /** Of the axis of values. */
  readonly grid: uPlot.Axis.Grid;
}

/** @param optionsFor called again when the colours change */
export const keepDrawn = (
  element: HTMLElement,
  first: uPlot.AlignedData,
  optionsFor: (theme: Theme) => Omit<uPlot.Options, 'width' | 'height' | 'legend'>,
): Plot => {
  let data = first;
  const size = () => ({ width: element.clientWidth, height: element.clientHeight });
  const make = (): uPlot => {
    const theme: Theme = {
      colorOf: resolved,
      axis: { stroke: resolved('--muted'), font: '12px system-ui, sans-serif', ticks: { show: false } },
      grid: { stroke: resolved('--border'), width: 1 },
    };
    return new uPlot({ ...optionsFor(theme), ...size(), legend: { show: false } }, data, element);
  };
  let plot = make();
  const sizes = new ResizeObserver(() => plot.setSize(size()));
  sizes.observe(element);
  const ignoreTheme = onTheme(() => {
    plot.destroy();
    plot = make();
  });
  return {
    set: (next) => {
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
