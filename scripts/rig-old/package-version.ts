import { readFileSync } from 'node:fs';

/** Of this package: its folder is above that of whatever was compiled. */
export const packageVersion = (): string => {
  const text = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
};
