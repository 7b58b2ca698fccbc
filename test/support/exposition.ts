/** A strict parser for the text format of Prometheus (0.0.4). */

export interface Family {
  readonly type: string;
  readonly help: string;
  /** By series, `name{label="value"}`, with the labels in the order sent. */
  readonly samples: ReadonlyMap<string, number>;
}

const nameShape = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const sampleShape = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/;
const labelShape = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)/y;
const valueShape = /^(?:[+-]?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?)|\+Inf)$/;

export const labelsOf = (series: string): Map<string, string> => {
  const labels = new Map<string, string>();
  const inner = /\{(.*)\}$/.exec(series)?.[1] ?? '';
  labelShape.lastIndex = 0;
  while (labelShape.lastIndex < inner.length) {
    const match = labelShape.exec(inner);
    if (match === null) throw new Error(`labels: ${series}`);
    if (labels.has(match[1]!)) throw new Error(`a label twice: ${series}`);
    labels.set(match[1]!, match[2]!);
  }
  return labels;
};

const checkHistogram = (name: string, samples: ReadonlyMap<string, number>): void => {
  const last = new Map<string, { le: number; count: number }>();
  for (const [series, count] of samples) {
    if (!series.startsWith(`${name}_bucket`)) continue;
    const labels = labelsOf(series);
    const le = Number((labels.get('le') ?? '').replace('+Inf', 'Infinity'));
    labels.delete('le');
    const key = JSON.stringify([...labels]);
    const before = last.get(key) ?? { le: -Infinity, count: 0 };
    if (!(le > before.le) || count < before.count) throw new Error(`buckets out of order: ${series}`);
    last.set(key, { le, count });
  }
  for (const [key, { le, count }] of last) {
    const inner = (JSON.parse(key) as [string, string][]).map(([label, value]) => `${label}="${value}"`);
    const labels = inner.length === 0 ? '' : `{${inner.join(',')}}`;
    if (le !== Infinity || samples.get(`${name}_count${labels}`) !== count)
      throw new Error(`${name}${labels}: its buckets do not add up`);
    if (samples.get(`${name}_sum${labels}`) === undefined) throw new Error(`${name}${labels} has no sum`);
  }
};

/** @throws if the text violates the format */
export const parseExposition = (text: string): Map<string, Family> => {
  if (!text.endsWith('\n')) throw new Error('the last line has no end');
  const families = new Map<string, Family & { samples: Map<string, number> }>();
  let current: { name: string; help: string } | undefined;
  for (const line of text.slice(0, -1).split('\n')) {
    if (line === '') continue;
    const [, keyword, name = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? [];
    if (keyword === 'HELP') {
      if (!nameShape.test(name) || families.has(name)) throw new Error(`a family twice: ${line}`);
      current = { name, help: rest };
    } else if (keyword === 'TYPE') {
      if (current?.name !== name) throw new Error(`a type without its help: ${line}`);
      if (!['counter', 'gauge', 'histogram'].includes(rest)) throw new Error(line);
      families.set(name, { type: rest, help: current.help, samples: new Map() });
    } else {
      const [, series = '', labels, value = ''] = sampleShape.exec(line) ?? [];
      const family = families.get(current?.name ?? '');
      if (family === undefined || !valueShape.test(value)) throw new Error(`no sample: ${line}`);
      const suffix = series.slice(current!.name.length);
      const suffixes = family.type === 'histogram' ? ['_bucket', '_sum', '_count'] : [''];
      if (!series.startsWith(current!.name) || !suffixes.includes(suffix)) throw new Error(`astray: ${line}`);
      const whole = labels === undefined ? series : `${series}{${labels}}`;
      labelsOf(whole);
      if (family.samples.has(whole)) throw new Error(`a series twice: ${line}`);
      family.samples.set(whole, Number(value));
    }
  }
  for (const [name, { type, samples }] of families) if (type === 'histogram') checkHistogram(name, samples);
  return families;
};
