import { useEffect, useState } from 'preact/hooks';
import type { AuditRow } from '../../contract.js';
import { call } from '../call.js';
import { formatName, formatTime } from '../format.js';
import { useAct } from '../parts/form.js';
import { Empty, Page, Problem, Time, Waiting } from '../parts/page.js';
import { Table } from '../parts/table.js';

/** Rows of each page but the last. */
const pageRows = 100;

export const AuditPage = () => {
  const [rows, setRows] = useState<readonly AuditRow[] | null>(null);
  const [isEnd, setIsEnd] = useState(false);
  const { act, refusal, running } = useAct();
  const more = () =>
    act(async () => {
      const page = await call('audit', { beforeId: rows?.at(-1)?.auditId ?? null });
      setRows([...(rows ?? []), ...page]);
      setIsEnd(page.length < pageRows);
    });
  useEffect(() => void more(), []);
  return (
    <Page
      title="Audit"
      lead="Who changed what, in the console and on the command line. Rows stay for 400 days."
    >
      {refusal !== null && <Problem refusal={refusal} />}
      {rows === null ? (
        refusal === null && <Waiting />
      ) : rows.length === 0 ? (
        <Empty title="Nothing has been changed yet" />
      ) : (
        <>
          <Table
            caption="Changes, the newest first"
            rows={rows}
            rowKey={({ auditId }) => auditId}
            columns={[
              { label: 'Action', cell: ({ action }) => formatName(action) },
              {
                label: 'Who',
                cell: ({ account, actor }) => (account === null ? actor : `${actor} of ${account}`),
              },
              { label: 'What', cell: ({ subject }) => subject },
              { label: 'Details', cell: ({ details }) => details },
              { label: 'Time', cell: ({ atMs }) => <Time ms={atMs} format={formatTime} /> },
            ]}
          />
          <p>
            {isEnd ? (
              <span class="muted">No more rows.</span>
            ) : (
              <button type="button" class="button" aria-disabled={running} onClick={() => void more()}>
                Show more
              </button>
            )}
          </p>
        </>
      )}
    </Page>
  );
};
