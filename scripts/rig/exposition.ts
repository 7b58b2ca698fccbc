/** The text format of Prometheus, as far as the rig reads it. */

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const line = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const label = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

const parseValue = (text: string): number =>
  text === '+Inf' ? Infinity : text === '-Inf' ? -Infinity : Number(text);

export const parseSamples = (text: string): Sample[] =>
  text.split('\n').flatMap((row) => {
    const [, name, labels = '', value] = line.exec(row) ?? [];
    if (name === undefined || value === undefined) return [];
    const pairs = [...labels.matchAll(label)].map(([, key = '', text = '']) => [key, text] as const);
    return [{ name, labels: Object.fromEntries(pairs), value: parseValue(value) }];
  });

/** The sum of all samples with the name and the labels; `null` without one. */
export const sumOf = (
  samples: readonly Sample[],
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | null => {
  const wanted = Object.entries(labels);
  const found = samples.filter(
    (sample) => sample.name === name && wanted.every(([key, text]) => sample.labels[key] === text),
  );
  return found.length === 0 ? null : found.reduce((sum, { value }) => sum + value, 0);
};
