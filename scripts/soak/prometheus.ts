/** Reads the text format of Prometheus, as far as a soak needs it. */

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const line = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const label = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

const toNumber = (text: string): number =>
  text === '+Inf' ? Infinity : text === '-Inf' ? -Infinity : Number(text);

/** Comments and what is no sample are left out. */
export const parseSamples = (text: string): Sample[] =>
  text.split('\n').flatMap((row) => {
    const [, name, labels = '', value] = line.exec(row) ?? [];
    if (name === undefined || value === undefined) return [];
    const pairs = [...labels.matchAll(label)].map(([, key = '', text = '']) => [key, text] as const);
    return [{ name, labels: Object.fromEntries(pairs), value: toNumber(value) }];
  });

/** The sum of all samples of a name; `null` when there is none. @param labels that they must have */
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
