/** How programs use this service: its addresses, and lines to copy. */
import { useState } from 'preact/hooks';
import { Field } from '../parts/form.js';
import { Page, Shown } from '../parts/page.js';
import { Table } from '../parts/table.js';
import { useConsole, useUser } from '../session.js';
import { useVoices } from '../use-call.js';
import { addressesOf, hostOf, WayLines, waysOf } from './ways.js';

const isLoopback = (host: string): boolean => /^(?:127\.|localhost$|\[?::1\]?$)/.test(host);

const Ways = ({ voice }: { readonly voice: string }) => {
  const { session } = useConsole();
  const user = useUser();
  const [host, setHost] = useState(hostOf(session));
  const [key, setKey] = useState('');
  const keysPath = user.accountId === null ? '/keys' : `/accounts/${user.accountId}/keys`;
  return (
    <>
      <section>
        <div class="cells">
          <Field
            name="host"
            label="Host"
            hint="The name or address that programs reach this machine by."
            value={host}
            onInput={(event) => setHost(event.currentTarget.value.trim())}
          />
          <Field
            name="key"
            label="API key"
            hint={
              <>
                For the lines below. It stays in this page. <a href={keysPath}>Create a key</a>
              </>
            }
            value={key}
            placeholder="svc_sk_…"
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => setKey(event.currentTarget.value)}
          />
        </div>
        {isLoopback(session.listensOn) && (
          <p class="notice">
            The service listens on this machine only. To reach it from others, an operator sets{' '}
            <code>HOST</code>, or puts a proxy with TLS in front of it.
          </p>
        )}
        <Table
          caption="Addresses"
          isNarrow
          rows={addressesOf(session, host)}
          rowKey={({ title }) => title}
          columns={[
            { label: 'For', cell: ({ title }) => title },
            {
              label: 'Address',
              cell: ({ address }) =>
                address === null ? <span class="muted">off</span> : <code>{address}</code>,
            },
          ]}
        />
      </section>
      {waysOf({ session, host, voice, key: key.trim() }).map((way) => (
        <section class="card" key={way.title}>
          <h2>{way.title}</h2>
          <WayLines {...way} />
        </section>
      ))}
    </>
  );
};

export const ConnectPage = () => {
  const voices = useVoices();
  return (
    <Page
      title="Connect"
      lead={
        <>
          Lines to copy into your program. <a href="/docs">API</a> has every field and error.
        </>
      }
    >
      <Shown of={voices}>{([first]) => <Ways voice={first?.id ?? 'wren'} />}</Shown>
    </Page>
  );
};
