/** The ways to use this service: for each, the lines to copy, or the port that it lacks. */
import { Fragment } from 'preact';
import type { SessionState } from '../../contract.js';
import { CopyBlock } from '../parts/copy.js';
import { codeFor, conversationCode } from '../playground/as-code.js';

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

export interface Way {
  readonly title: string;
  readonly lead: string;
  readonly lines: Readonly<Record<string, string>>;
  /** The listener that it needs is off. */
  readonly missing?: Listener | null;
}

interface WaysOptions {
  readonly session: SessionState;
  /** Where programs reach this machine. */
  readonly host: string;
  readonly voice: string;
  /** Empty: a placeholder. */
  readonly key: string;
}

/** The name by which programs reach the service, as far as this page knows. */
export const hostOf = ({ listensOn, serviceUrl }: SessionState): string =>
  ['0.0.0.0', '::'].includes(listensOn) ? location.hostname : new URL(serviceUrl).hostname;

/** The address of speech, and those of other APIs; `null`: it is off. */
export const addressesOf = (
  { ports, serviceUrl }: SessionState,
  host: string,
): readonly { readonly title: string; readonly address: string | null }[] => {
  const { port, protocol } = new URL(serviceUrl);
  return [
    { title: 'Speech', address: `${protocol}//${host}:${port}` },
    ...Object.values(listeners).map(({ name, title }) => ({
      title,
      address:
        name in ports
          ? `${name === 'wyoming' ? 'tcp:' : protocol}//${host}:${ports[name]}${name === 'openai' ? '/v1' : ''}`
          : null,
    })),
  ];
};

export const waysOf = ({ host, key, session, voice }: WaysOptions): readonly Way[] => {
  const { ports, serviceUrl } = session;
  const { port, protocol } = new URL(serviceUrl);
  const shownKey = key || KEY_UNKNOWN;
  const url = `${protocol}//${host}:${port}`;
  const code = codeFor({ serviceUrl: url, key: shownKey, request: { text: SAID, voice } });
  const missing = (listener: Listener): Listener | null => (listener.name in ports ? null : listener);
  const at = (listener: Listener, scheme: string = protocol): string =>
    `${scheme}//${host}:${ports[listener.name]}`;
  const id = 'answer';
  const frames = [
    { start_context: { voice_id: voice, model_id: 'default', timestamps: true }, context_id: id },
    ...SAID.split(/(?= )/).map((text) => ({ send_text: text, context_id: id })),
  ];
  const sent = frames.map((frame, index) => ({ atMs: 50 * index, frame }));
  return [
    { title: 'curl', lead: 'The audio arrives while it is made.', lines: { 'With curl': code.curl } },
    {
      title: 'WebSocket',
      lead: 'For text that comes word by word. Node 22 with nothing installed. Save it as conversation.mjs, and run node conversation.mjs.',
      lines: {
        'Over a WebSocket': conversationCode({
          ...{ serviceUrl: url, key: shownKey, sent, extensions: { [id]: 'pcm' } },
        }),
      },
    },
    {
      title: 'Node',
      lead: 'With nothing installed. Save it as speech.mjs, and run node speech.mjs.',
      lines: { 'With Node': code.Node },
    },
    {
      title: 'Python',
      lead: 'With its standard library. Save it as speech.py, and run python3 speech.py.',
      lines: { 'With Python': code.Python },
    },
    {
      title: 'LiveKit Agents',
      lead: 'In an agent: its plugin for ElevenLabs, in Node. npm install @livekit/agents @livekit/agents-plugin-elevenlabs',
      missing: missing(listeners.elevenlabs),
      lines: {
        'With LiveKit Agents': `\
import { TTS } from '@livekit/agents-plugin-elevenlabs';

const tts = new TTS({
  baseURL: '${at(listeners.elevenlabs)}/v1',
  apiKey: '${shownKey}',
  voiceId: '${voice}',
  encoding: 'pcm_24000',
});
`,
      },
    },
    {
      title: 'Pipecat',
      lead: 'In a pipeline: its service for ElevenLabs.',
      missing: missing(listeners.elevenlabs),
      lines: {
        'With Pipecat': `\
from pipecat.services.elevenlabs.tts import ElevenLabsTTSService

tts = ElevenLabsTTSService(
    url="${at(listeners.elevenlabs, protocol === 'https:' ? 'wss:' : 'ws:')}",
    api_key="${shownKey}",
    voice_id="${voice}",
)
`,
      },
    },
    {
      title: 'Open WebUI',
      lead: 'Admin settings, Audio, text-to-speech engine OpenAI: its address and key. The model does not matter.',
      missing: missing(listeners.openai),
      lines: {
        'Address for Open WebUI': `${at(listeners.openai)}/v1`,
        'Key for Open WebUI': shownKey,
        'Voice for Open WebUI': voice,
      },
    },
    {
      title: 'Home Assistant',
      lead: 'Settings, Devices & services, Add integration, Wyoming Protocol: its host and port. It needs no key; one account pays.',
      missing: missing(listeners.wyoming),
      lines: { 'Host for Home Assistant': host, 'Port for Home Assistant': String(ports['wyoming']) },
    },
  ];
};

export const WayLines = ({ lead, lines, missing }: Way) => (
  <>
    <p>{lead}</p>
    {missing ? (
      <p class="notice warn">
        The port for this is off. An operator sets <code>{missing.variables}</code> and starts the service
        again.
      </p>
    ) : (
      Object.entries(lines).map(([label, text], _index, { length }) => (
        <Fragment key={label}>
          {length > 1 && <p class="muted">{label}</p>}
          <CopyBlock label={label} text={text} />
        </Fragment>
      ))
    )}
  </>
);
