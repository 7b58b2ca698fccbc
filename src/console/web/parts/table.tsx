import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { formatNumber } from '../format.js';
import { Button } from './button.js';
import { useAct } from './form.js';
import { Problem } from './page.js';

export interface Column<Row> {
  readonly label: string;
  readonly cell: (row: Row) => ComponentChildren;
  readonly isNumber?: boolean;
  /** Stays on one line where there is room. */
  readonly isShort?: boolean;
  /** A list leaves it out on a phone. */
  readonly isDetail?: boolean;
  /** Its label is for screen readers only. */
  readonly isAction?: boolean;
}

/**
 * On a phone each row becomes a block with its labels. Browsers then forget that it is a table: hence the roles. The first
 * column names the row.
 */
export const Table = <Row,>(props: {
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly rowKey: (row: Row) => string | number;
  readonly total?: Row;
  /** Fits on a phone as it is. */
  readonly isNarrow?: boolean;
  /** A line for each row on a phone, without details. */
  readonly isList?: boolean;
  /** More rows come after a click. */
  readonly rowsMax?: number;
  /** In the place of a table without rows: a text, or an `Empty`. */
  readonly none?: ComponentChildren;
}) => {
  const [isWhole, setIsWhole] = useState(false);
  const classOf = ({ isAction, isDetail, isNumber, isShort }: Column<Row>) =>
    [
      isShort === true && 'short',
      isNumber === true && 'number',
      isAction === true && 'action',
      isDetail === true && 'detail',
    ]
      .filter(Boolean)
      .join(' ') || undefined;
  const cells = (row: Row) =>
    props.columns.map((column, index) =>
      index === 0 ? (
        <th scope="row" role="rowheader" class={classOf(column)}>
          {column.cell(row)}
        </th>
      ) : (
        <td
          role="cell"
          class={classOf(column)}
          data-label={column.isAction === true ? undefined : column.label}
        >
          <span class="value">{column.cell(row)}</span>
        </td>
      ),
    );
  if (props.rows.length === 0 && props.none !== undefined)
    return typeof props.none === 'string' ? (
      <p class="muted" role="status">
        {props.none}
      </p>
    ) : (
      props.none
    );
  const { rows, rowsMax = rows.length } = props;
  const table = (
    <table
      class={props.isList === true ? 'table list' : props.isNarrow === true ? 'table' : 'table wide'}
      role="table"
    >
      <caption class="hidden">{props.caption}</caption>
      <thead role="rowgroup">
        <tr role="row">
          {props.columns.map((column) => (
            <th scope="col" role="columnheader" class={classOf(column)}>
              {column.isAction === true ? <span class="hidden">{column.label}</span> : column.label}
            </th>
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {(isWhole ? rows : rows.slice(0, rowsMax)).map((row) => (
          <tr role="row" key={props.rowKey(row)}>
            {cells(row)}
          </tr>
        ))}
      </tbody>
      {props.total !== undefined && (
        <tfoot role="rowgroup">
          <tr role="row">{cells(props.total)}</tr>
        </tfoot>
      )}
    </table>
  );
  return isWhole || rows.length <= rowsMax ? (
    table
  ) : (
    <>
      {table}
      <p>
        <Button label={`Show ${formatNumber(rows.length - rowsMax)} more`} onClick={() => setIsWhole(true)} />
      </p>
    </>
  );
};

/**
 * The pages of a list whose call answers with one page: the first, which is asked again like any answer, and those that a user
 * asked for.
 *
 * @param ask gets the page after another
 */
export const usePages = <Answer,>(
  first: Answer | undefined,
  ask: (last: Answer) => Promise<Answer>,
  isLast: (page: Answer) => boolean,
): { readonly pages: readonly Answer[]; readonly more: ComponentChildren } => {
  const [older, setOlder] = useState<{ readonly of: Answer; readonly pages: readonly Answer[] } | null>(null);
  const { act, refusal, running } = useAct();
  const pages = first === undefined ? [] : [first, ...(older?.of === first ? older.pages : [])];
  const last = pages.at(-1);
  if (first === undefined || last === undefined) return { pages, more: null };
  const onMore = () =>
    act(async () => {
      const page = await ask(last);
      setOlder({ of: first, pages: [...pages.slice(1), page] });
    });
  const more = (
    <>
      {refusal !== null && <Problem refusal={refusal} />}
      <p>
        {isLast(last) ? (
          <span class="muted">No older ones.</span>
        ) : (
          <Button label="Show more" isOff={running} onClick={onMore} />
        )}
      </p>
    </>
  );
  return { pages, more };
};
