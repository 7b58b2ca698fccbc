/** A table for a terminal: each column is as wide as its widest cell, with two spaces between columns. */

/** @param rightAligned indices of the columns of numbers */
export const formatTable = (
  rows: readonly (readonly string[])[],
  rightAligned: readonly number[] = [],
): string => {
  const widths: number[] = [];
  for (const row of rows)
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, cell.length);
  const pad = (cell: string, column: number): string => {
    const width = widths[column] ?? 0;
    return rightAligned.includes(column) ? cell.padStart(width) : cell.padEnd(width);
  };
  return rows.map((row) => `${row.map(pad).join('  ').trimEnd()}\n`).join('');
};

/** To the minute; `-` for `null`. */
export const formatTime = (ms: number | null): string =>
  ms === null ? '-' : new Date(ms).toISOString().slice(0, 16).replace('T', ' ');

/** For programs. */
export const iso = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());
