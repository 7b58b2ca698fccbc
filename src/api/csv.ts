/** Records of a file for a spreadsheet, in the form of RFC 4180. */

/**
 * Users choose names, and a spreadsheet reads a cell with such a start as a formula. Where it separates cells by
 * another character than a comma, a name has several. NFKC makes ASCII of the wide and small forms.
 */
const SEPARATORS = new Set(',;|\t\r\n');
const isPassedOver = /^[\s\p{C}"]$/u;
const startsFormula = /^[=+\-@]/;

const asText = (name: string): string => {
  let text = '';
  /** What came since the start of the cell; `null`: something that counts came. */
  let lead: string | null = '';
  for (const character of name) {
    if (SEPARATORS.has(character)) {
      text += (lead ?? '') + character;
      lead = '';
    } else if (lead === null) text += character;
    else if (isPassedOver.test(character)) lead += character;
    else {
      text += (startsFormula.test(character.normalize('NFKC')) ? "'" : '') + lead + character;
      lead = null;
    }
  }
  return text + (lead ?? '');
};

const cell = (value: string | number): string => {
  if (typeof value === 'number') return String(value);
  const text = asText(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

export const csvRecord = (cells: readonly (string | number)[]): string => `${cells.map(cell).join(',')}\r\n`;

/** @param columns their names, and the cell of a row @returns the record of the names, and those of rows */
export const csvTable = <Row>(columns: Readonly<Record<string, (row: Row) => string | number>>) => ({
  header: csvRecord(Object.keys(columns)),
  records: (rows: readonly Row[]): string => {
    // A name that many rows have is looked at once.
    const cells = new Map<string | number, string>();
    const cellOf = (value: string | number): string => {
      const known = cells.get(value) ?? cell(value);
      cells.set(value, known);
      return known;
    };
    const recordOf = (row: Row): string =>
      `${Object.values(columns)
        .map((valueOf) => cellOf(valueOf(row)))
        .join(',')}\r\n`;
    return rows.map(recordOf).join('');
  },
});
