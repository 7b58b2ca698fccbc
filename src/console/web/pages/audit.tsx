import { useEffect, useState } from 'preact/hooks';
import type { AuditRow } from '../../contract.js';
import { call } from '../call.js';
import { formatName, formatNumber, formatTime } from '../format.js';
import { CsvLink, Search } from '../parts/filters.js';
import { Choice, useAct } from '../parts/form.js';
import { Page, Problem, Time, Waiting } from '../parts/page.js';
import { More, Table } from '../parts/table.js';
import { useQuery } from '../route.js';

/** Rows of each page but the last. */
const pageRows = 100;

const kinds = {
  '': 'All',
  account: 'Accounts',
  key: 'Keys',
  lexicon: 'Lexicon',
  user: 'Users',
  session: 'Sign-ins',
  console: 'Console links',
  voices: 'Voices',
} as const;
type Kind = keyof typeof kinds;

/** What an action did to what it names: `lexicon.add` is "Word added". */
const done: Readonly<Record<string, string>> = {
  ...{ add: 'added', change: 'changed', claim: 'claimed', create: 'created', delete: 'deleted' },
  ...{ invite: 'invited', join: 'joined', open: 'opened', refuse: 'refused', remove: 'removed' },
  ...{ resume: 'resumed', revoke: 'revoked', suspend: 'suspended', signIn: 'began', signOut: 'ended' },
  ...{ credit: 'got credit', link: 'link made', meter: 'credit limit changed', webhook: 'webhook changed' },
  ...{ changePassword: 'changed the password', recover: 'set a password by a link' },
  withdrawInvitations: 'invitations withdrawn',
};
const wordsOf = (action: string): string => {
  const [subject = '', act = ''] = action.split('.');
  return formatName(`${subject === 'lexicon' ? 'word' : subject} ${done[act] ?? act}`);
};

/** Amounts and times of a detail as the browser writes them; a name may look alike, so only where details have them. */
const detailOf = (details: string): string =>
  details
    .replaceAll(/(?<=(?:^|; )(?:limit )?)\d+(?= |;|$)/g, (amount) => formatNumber(Number(amount)))
    .replace(/(?<=^until ).*Z$/, (time) => formatTime(Date.parse(time)));

const Rows = (filter: { readonly search: string; readonly kind: Kind }) => {
  const [rows, setRows] = useState<readonly AuditRow[] | null>(null);
  const [isEnd, setIsEnd] = useState(false);
  const { act, refusal, running } = useAct();
  const more = () =>
    act(async () => {
      const page = await call('audit', { beforeId: rows?.at(-1)?.auditId ?? null, ...filter });
      setRows([...(rows ?? []), ...page]);
      setIsEnd(page.length < pageRows);
    });
  useEffect(() => void more(), []);
  if (refusal !== null) return <Problem refusal={refusal} />;
  if (rows === null) return <Waiting />;
  return (
    <>
      <Table
        caption="Changes, the newest first"
        none={
          filter.search === '' && filter.kind === ''
            ? 'No change yet.'
            : 'No change is like that. Change the search or the kind.'
        }
        rows={rows}
        rowKey={({ auditId }) => auditId}
        columns={[
          { label: 'Action', isShort: true, cell: ({ action }) => wordsOf(action) },
          {
            label: 'Who',
            cell: ({ account, actor }) => [actor, <span class="below">{account}</span>],
          },
          { label: 'What', cell: ({ subject }) => subject },
          { label: 'Details', cell: ({ details }) => detailOf(details) },
          { label: 'Time', isShort: true, cell: ({ atMs }) => <Time ms={atMs} format={formatTime} /> },
        ]}
      />
      {rows.length > 0 && <More isEnd={isEnd} running={running} onMore={more} />}
    </>
  );
};

export const AuditPage = () => {
  const [search, setSearch] = useQuery<string>('search', '');
  const [kind, setKind] = useQuery<Kind>('kind', '', Object.keys(kinds) as Kind[]);
  const query = new URLSearchParams({ search, kind });
  return (
    <Page
      title="Audit"
      lead="Who changed what, in the console and on the command line. Rows stay for 400 days."
    >
      <div class="filters">
        <Search label="Search changes" value={search} onChange={setSearch} />
        <Choice label="Kind" options={kinds} value={kind} onChange={setKind} />
        <CsvLink href={`/api/audit.csv?${query.toString()}`} />
      </div>
      <Rows key={query.toString()} search={search} kind={kind} />
    </Page>
  );
};
