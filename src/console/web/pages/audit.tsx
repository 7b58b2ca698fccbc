import { useEffect, useState } from 'preact/hooks';
import type { AuditRow } from '../../contract.js';
import { call } from '../call.js';
import { formatName, formatTime } from '../format.js';
import { useAct } from '../parts/form.js';
import { Empty, Page, Problem, Time, Waiting } from '../parts/page.js';
import { Table } from '../parts/table.js';

/** Of a page that is not the last. */
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
            caption="Acts, the newest first"
            rows={rows}
            rowKey={({ auditId }) => auditId}
            columns={[
              { label: 'Act', cell: ({ action }) => formatName(action) },
              { label: 'Who', cell: ({ actor }) => actor },
              { label: 'What', cell: ({ subject }) => subject },
              { label: 'Details', cell: ({ details }) => details },
              { label: 'Time', cell: ({ atMs }) => <Time ms={atMs} format={formatTime} /> },
            ]}
          />
          <p class="foot">
            {isEnd ? (
              <span class="muted">That is all.</span>
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
