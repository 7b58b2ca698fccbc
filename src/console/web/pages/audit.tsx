import { call } from '../call.js';
import { formatName, formatNumber, formatTime } from '../format.js';
import { CsvLink, useChoice, useSearch } from '../parts/filters.js';
import { Page, Shown, Time } from '../parts/page.js';
import { Table, usePages } from '../parts/table.js';
import { useCall } from '../use-call.js';

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
  const asked = useCall('audit', { beforeId: null, ...filter });
  const { more, pages } = usePages(
    asked.answer,
    (last) => call('audit', { beforeId: last.at(-1)!.auditId, ...filter }),
    ({ length }) => length < pageRows,
  );
  const isFiltered = filter.search !== '' || filter.kind !== '';
  return (
    <Shown of={asked}>
      {(first) => (
        <>
          <Table
            caption="Changes, the newest first"
            none={isFiltered ? 'No change is like that. Change the search or the kind.' : 'No change yet.'}
            rows={pages.flat()}
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
          {first.length > 0 && more}
        </>
      )}
    </Shown>
  );
};

export const AuditPage = () => {
  const [search, searchField] = useSearch('Search changes');
  const [kind, kindField] = useChoice('kind', 'Kind', kinds);
  const query = new URLSearchParams({ search, kind });
  return (
    <Page
      title="Audit"
      lead="Who changed what, in the console and on the command line. Rows stay for 400 days."
    >
      <div class="filters">
        {searchField}
        {kindField}
        <CsvLink href={`/api/audit.csv?${query.toString()}`} />
      </div>
      <Rows search={search} kind={kind} />
    </Page>
  );
};
