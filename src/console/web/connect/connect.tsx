/** How programs use this service: its addresses, and lines to copy. */
import { type ComponentChildren, Fragment } from 'preact';
import { useState } from 'preact/hooks';
import { CopyBlock } from '../parts/copy.js';
import { Labelled } from '../parts/form.js';
import { Page, Shown } from '../parts/page.js';
import { Table } from '../parts/table.js';
import { codeFor } from '../playground/as-code.js';
import { useConsole, useUser } from '../session.js';
import { useCall } from '../use-call.js';

const SAID = 'Good morning. The kettle is on.';
const KEY_UNKNOWN = 'YOUR_API_KEY';

interface Listener {
  readonly name: string;
  readonly title: string;
  /** What an operator sets to have it. */
  readonly variables: string;
}

const listeners = {
  elevenlabs: { name: 'elevenlabs', title: 'Clients of ElevenLabs', variables: 'ELEVENLABS_PORT=8082' },
  openai: { name: 'openai', title: 'Clients of OpenAI', variables: 'OPENAI_PORT=8083' },
  wyoming: {
    name: 'wyoming',
    title: 'Home Assistant (Wyoming)',
    variables: 'WYOMING_PORT=10200 WYOMING_HOST=0.0.0.0 WYOMING_ALLOW=192.168.1.0/24 WYOMING_ACCOUNT=default',
  },
  browser: { name: 'browser', title: 'Pages in browsers, with tokens', variables: 'BROWSER_PORT=8084' },
} as const satisfies Record<string, Listener>;

const everywhere = ['0.0.0.0', '::'];
const isLoopback = (host: string): boolean => /^(?:127\.|localhost$|\[?::1\]?$)/.test(host);

/** One way to use the service: what it is for, and its lines or what is missing. */
const Way = (props: {
  readonly title: string;
  readonly lead?: ComponentChildren;
  readonly lines: Readonly<Record<string, string>>;
  /** The listener that it needs is off. */
  readonly missing?: Listener | null;
}) => (
  <section class="card">
    <h2>{props.title}</h2>
    {props.lead !== undefined && <p>{props.lead}</p>}
    {props.missing ? (
      <p class="notice warn">
        The port for this is off. An operator sets <code>{props.missing.variables}</code> and starts the
        service again.
      </p>
    ) : (
      Object.entries(props.lines).map(([label, text], _index, { length }) => (
        <Fragment key={label}>
          {length > 1 && <p class="muted">{label}</p>}
          <CopyBlock label={label} text={text} />
        </Fragment>
      ))
    )}
  </section>
);

const Ways = (props: { readonly voice: string }) => {
  const { voice } = props;
  const { session } = useConsole();
  const user = useUser();
  const { ports, listensOn, serviceUrl } = session;
  const { hostname, port, protocol } = new URL(serviceUrl);
  const [host, setHost] = useState(everywhere.includes(listensOn) ? location.hostname : hostname);
  const [key, setKey] = useState('');
  const url = `${protocol}//${host}:${port}`;
  const shownKey = key.trim() || KEY_UNKNOWN;
  const code = codeFor({ serviceUrl: url, key: shownKey, request: { text: SAID, voice } });
  const missing = (listener: Listener): Listener | null => (listener.name in ports ? null : listener);
  const at = (listener: Listener, scheme: string = protocol): string =>
    `${scheme}//${host}:${ports[listener.name]}`;
  const sockets = protocol === 'https:' ? 'wss:' : 'ws:';
  const rows = [
    { title: 'Speech', address: url },
    ...Object.values(listeners).map((listener) => ({
      title: listener.title,
      address:
        missing(listener) === null
          ? at(listener, listener.name === 'wyoming' ? 'tcp:' : protocol) +
            (listener.name === 'openai' ? '/v1' : '')
          : null,
      listener,
    })),
  ];
  const keysPath = user.accountId === null ? '/accounts' : `/accounts/${user.accountId}/keys`;
  return (
    <>
      <section>
        <div class="cells">
          <Labelled name="host" label="Host" hint="The name or address that programs reach this machine by.">
            {(control) => (
              <input
                {...control}
                value={host}
                onInput={(event) => setHost(event.currentTarget.value.trim())}
              />
            )}
          </Labelled>
          <Labelled
            name="key"
            label="API key"
            hint={
              <>
                For the lines below. It stays in this page. <a href={keysPath}>Create a key</a>
              </>
            }
          >
            {(control) => (
              <input
                {...control}
                value={key}
                placeholder="svc_sk_…"
                autocomplete="off"
                spellcheck={false}
                onInput={(event) => setKey(event.currentTarget.value)}
              />
            )}
          </Labelled>
        </div>
        {isLoopback(listensOn) && (
          <p class="notice">
            The service listens on this machine only. To reach it from others, an operator sets{' '}
            <code>HOST</code>, or puts a proxy with TLS in front of it.
          </p>
        )}
        <Table
          caption="Addresses"
          isNarrow
          rows={rows}
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
      <Way title="curl" lead="The audio arrives while it is made." lines={{ 'With curl': code.curl }} />
      <Way
        title="Node"
        lead="With nothing installed. Save it as speech.mjs, and run node speech.mjs."
        lines={{ 'With Node': code.node }}
      />
      <Way
        title="Python"
        lead="With its standard library. Save it as speech.py, and run python3 speech.py."
        lines={{ 'With Python': code.python }}
      />
      <Way
        title="LiveKit Agents"
        lead="In an agent: its plugin for ElevenLabs, in Node. npm install @livekit/agents @livekit/agents-plugin-elevenlabs"
        missing={missing(listeners.elevenlabs)}
        lines={{
          'With LiveKit Agents': `\
import { TTS } from '@livekit/agents-plugin-elevenlabs';

const tts = new TTS({
  baseURL: '${at(listeners.elevenlabs)}/v1',
  apiKey: '${shownKey}',
  voiceId: '${voice}',
  encoding: 'pcm_24000',
});
`,
        }}
      />
      <Way
        title="Pipecat"
        lead="In a pipeline: its service for ElevenLabs."
        missing={missing(listeners.elevenlabs)}
        lines={{
          'With Pipecat': `\
from pipecat.services.elevenlabs.tts import ElevenLabsTTSService

tts = ElevenLabsTTSService(
    url="${at(listeners.elevenlabs, sockets)}",
    api_key="${shownKey}",
    voice_id="${voice}",
)
`,
        }}
      />
      <Way
        title="Open WebUI"
        lead="Admin settings, Audio, text-to-speech engine OpenAI: its address and key. The model does not matter."
        missing={missing(listeners.openai)}
        lines={{
          'Address for Open WebUI': `${at(listeners.openai)}/v1`,
          'Key for Open WebUI': shownKey,
          'Voice for Open WebUI': voice,
        }}
      />
      <Way
        title="Home Assistant"
        lead="Settings, Devices & services, Add integration, Wyoming Protocol: its host and port. It needs no key; one account pays."
        missing={missing(listeners.wyoming)}
        lines={{ 'Host for Home Assistant': host, 'Port for Home Assistant': String(ports['wyoming']) }}
      />
    </>
  );
};

export const ConnectPage = () => {
  const voices = useCall('voices', {});
  return (
    <Page
      title="Connect"
      lead={
        <>
          Lines to copy into your program. <a href="/docs">API</a> has every field and error.
        </>
      }
    >
      <Shown of={voices}>
        {({ packs }) => <Ways voice={packs.flatMap((pack) => pack.voices)[0]?.id ?? 'wren'} />}
      </Shown>
    </Page>
  );
};
