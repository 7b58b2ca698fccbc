/** How the last requests ended: a list with filters, and one request in full. */
import { useState } from 'preact/hooks';
import type { RequestEnd, RequestRow, RequestsPage as Answer } from '../../contract.js';
import { call } from '../call.js';
import {
  formatClock,
  formatDay,
  formatMs,
  formatName,
  formatNumber,
  formatSecond,
  formatTenths,
} from '../format.js';
import { Button } from '../parts/button.js';
import { CopyButton } from '../parts/copy.js';
import { Dialog } from '../parts/dialog.js';
import { useChoice } from '../parts/filters.js';
import { Choice, type Options } from '../parts/form.js';
import { Empty, Page, Shown, Time } from '../parts/page.js';
import { Table, usePages, type Column } from '../parts/table.js';
import { useQuery } from '../route.js';
import { refresh, useCall } from '../use-call.js';
import { requestWords } from './request-words.js';

const ends = {
  complete: { label: 'Complete', kind: 'good' },
  refused: { label: 'Refused', kind: 'warn' },
  failed: { label: 'Failed', kind: 'bad' },
  stopped: { label: 'Stopped', kind: '' },
} as const satisfies Record<RequestEnd, object>;

const statuses: Options<string> = [
  ['', 'All'],
  ...Object.entries(ends).map(([end, { label }]) => [end, label] as const),
  ...['200', '400', '401', '402', '413', '422', '429', '500', '503'],
];

const milliseconds = (ms: number | null): string =>
  ms === null ? '' : ms < 10 ? `${formatTenths(ms)} ms` : formatMs(ms);
const duration = (ms: number): string => (ms < 1_000 ? milliseconds(ms) : `${formatTenths(ms / 1_000)} s`);

const labelOf = ({ end, reason }: RequestRow): string =>
  end === 'complete' ? ends.complete.label : formatName(reason.replaceAll('-', ' '));

/** `status` 101: it is a context, or a message, of a WebSocket. */
const statusOf = ({ status }: RequestRow): string =>
  status === null ? 'No answer' : status === 101 ? 'WebSocket' : String(status);

type Names = Pick<Answer, 'keys' | 'accounts'>;

const namesIn = ({ accounts, keys }: Names) => {
  const keyOf = new Map(keys.map((one) => [one.keyId, one]));
  const accountOf = new Map(accounts.map(({ accountId, account }) => [accountId, account]));
  return {
    key: ({ keyId }: RequestRow): string => {
      if (keyId === null) return 'No valid key';
      const { key = '', keyName = '' } = keyOf.get(keyId) ?? {};
      return keyName === '' ? key : keyName;
    },
    account: ({ accountId }: RequestRow): string => accountOf.get(accountId ?? -1) ?? '',
  };
};

const Details = (props: {
  readonly row: RequestRow;
  readonly names: ReturnType<typeof namesIn>;
  readonly onClose: () => void;
}) => {
  const { names, onClose, row } = props;
  const { characters, end, firstAudioMs, reason, requestId, route, totalMs, voice } = row;
  const facts = {
    Time: formatSecond(row.atMs),
    Account: names.account(row),
    Key: names.key(row),
    Route: route,
    Voice: voice ?? '',
    Characters: characters === null ? '' : formatNumber(characters),
    Status: statusOf(row),
    'First audio': milliseconds(firstAudioMs),
    Duration: duration(totalMs),
  };
  return (
    <Dialog title={labelOf(row)} onClose={onClose}>
      <p class={`notice ${ends[end].kind}`}>
        {requestWords[reason]}
        {reason === 'creditExhausted' && row.accountId !== null && (
          <>
            {' '}
            <a href={`/accounts/${row.accountId}/keys`}>To the account</a>
          </>
        )}
      </p>
      <dl class="facts">
        <dt>Request id</dt>
        <dd class="between">
          <code>{requestId}</code>
          <CopyButton text={requestId} />
        </dd>
        {Object.entries(facts).map(
          ([name, value]) =>
            value !== '' && (
              <>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </>
            ),
        )}
      </dl>
      <p class="small muted">
        The answer had this id in x-request-id, and the log of the service has it. The text is kept nowhere.
      </p>
    </Dialog>
  );
};

const numberIn = (text: string): number | null => (/^\d{1,10}$/.test(text) ? Number(text) : null);

const statusIn = (text: string): RequestEnd | number | null =>
  Object.hasOwn(ends, text) ? (text as RequestEnd) : numberIn(text);

const columnsOf = (
  names: ReturnType<typeof namesIn>,
  show: (row: RequestRow) => void,
): readonly Column<RequestRow>[] => [
  {
    label: 'Time',
    cell: (row) => (
      <button type="button" class="link" onClick={() => show(row)}>
        <Time ms={row.atMs} format={formatClock} />
        <span class="below">{formatDay(row.atMs)}</span>
      </button>
    ),
  },
  {
    label: 'Key',
    cell: (row) => (
      <>
        {names.key(row)}
        {names.account(row) !== '' && <span class="below">{names.account(row)}</span>}
      </>
    ),
  },
  {
    label: 'Route',
    cell: ({ route, voice }) => (
      <>
        <code>{route}</code>
        {voice !== null && <span class="below">{voice}</span>}
      </>
    ),
  },
  {
    label: 'Characters',
    isNumber: true,
    cell: ({ characters }) => (characters === null ? '' : formatNumber(characters)),
  },
  { label: 'First audio', isNumber: true, cell: ({ firstAudioMs }) => milliseconds(firstAudioMs) },
  { label: 'Duration', isNumber: true, cell: ({ totalMs }) => duration(totalMs) },
  {
    label: 'Status',
    cell: (row) => (
      <>
        <span class={`badge ${ends[row.end].kind}`}>{labelOf(row)}</span>
        <span class="below">{statusOf(row)}</span>
      </>
    ),
  },
];

/** `accountId` null: all accounts, and requests without a key. */
export const Requests = ({ accountId }: { readonly accountId: number | null }) => {
  const [key, setKey] = useQuery<string>('key', '');
  const [status, statusField, setStatus] = useChoice<string>('status', 'Status', statuses);
  const filter = { keyId: numberIn(key), status: statusIn(status) };
  const asked = useCall('requests', { accountId, ...filter, before: null });
  const [shown, setShown] = useState<RequestRow | null>(null);
  const first = asked.answer;
  const { more, pages } = usePages(
    first,
    ({ next }) => call('requests', { accountId, ...filter, before: next }),
    ({ next }) => next === null,
  );
  const names = namesIn({
    keys: pages.flatMap(({ keys }) => keys),
    accounts: accountId === null ? pages.flatMap(({ accounts }) => accounts) : [],
  });
  const rows = pages.flatMap((page) => page.rows);
  const isFiltered = filter.keyId !== null || filter.status !== null;
  return (
    <>
      <div class="filters">
        <Choice
          label="Key"
          options={[
            ['', 'All'],
            ...(first?.keys ?? []).map(
              ({ key, keyId, keyName }) =>
                [String(keyId), keyName === '' ? key : `${keyName} (${key})`] as const,
            ),
          ]}
          value={key}
          onChange={setKey}
        />
        {statusField}
        <Button label="Refresh" onClick={refresh} />
      </div>
      <Shown of={asked}>
        {() =>
          rows.length === 0 ? (
            isFiltered ? (
              <Empty
                title="No such request"
                action={
                  <Button
                    label="Show all"
                    onClick={() => {
                      setKey('');
                      setStatus('');
                    }}
                  />
                }
              >
                None of the last requests ended like this.
              </Empty>
            ) : (
              <Empty title="No request yet" action={<a href="/playground">To the playground</a>}>
                The last {formatNumber(1_000)} requests appear here when they end. A restart of the service
                forgets them.
              </Empty>
            )
          ) : (
            <>
              <div
                class="requests"
                onClick={({ target }) => {
                  if (target instanceof Element && target.closest('button') === null)
                    target.closest('tbody tr')?.querySelector('button')?.click();
                }}
              >
                <Table
                  caption="Requests, the newest first"
                  rows={rows}
                  rowKey={({ atMs, requestId }) => `${requestId}${atMs}`}
                  columns={columnsOf(names, setShown)}
                />
              </div>
              {more}
            </>
          )
        }
      </Shown>
      {shown !== null && <Details row={shown} names={names} onClose={() => setShown(null)} />}
    </>
  );
};

export const AllRequestsPage = () => (
  <Page
    title="Requests"
    lead="How the last requests of all accounts ended, and those without a valid key. Texts are kept nowhere."
  >
    <Requests accountId={null} />
  </Page>
);
