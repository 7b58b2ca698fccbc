/** Speaks over a WebSocket, as a voice agent does, and shows every frame. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { TabProps } from './request-tab.js';
import { formatMs, formatNumber } from '../format.js';
import { Button } from '../parts/button.js';
import { CopyBlock } from '../parts/copy.js';
import { Choice } from '../parts/form.js';
import { Empty, Problem } from '../parts/page.js';
import { Switch } from '../parts/switch.js';
import { useConsole } from '../session.js';
import { conversationCode } from './as-code.js';
import { ContextCard } from './context-card.js';
import { firstFormat, firstTemperature, formatOf, SpeechFields, type SpeechChoice } from './settings.js';
import {
  contextCharactersMax,
  contextsMax,
  SocketSession,
  type SocketState,
  type ListedFrame,
} from './socket-session.js';
import { AudioOutput } from './track.js';
import { useRedraw } from './use-redraw.js';

const connections: Readonly<Record<SocketState, string>> = {
  closed: 'Not connected. The first context connects.',
  connecting: 'Connecting …',
  open: 'Connected.',
};

/** Tokens a second of a slow, a usual and a fast language model. */
const tokenRates = [10, 30, 100];

const Frames = (props: { readonly frames: readonly ListedFrame[]; readonly onClear: () => void }) => {
  const { frames, onClear } = props;
  const list = useRef<HTMLOListElement>(null);
  const newest = frames.at(-1)?.number;
  const [follows, setFollows] = useState(true);
  // Where the list stood when its reader, or this page, last moved it.
  const lastTop = useRef(0);
  // Before the browser draws: no frame comes between the list and its scrolling.
  useLayoutEffect(() => {
    if (follows && list.current !== null) list.current.scrollTop = list.current.scrollHeight;
  }, [newest, follows]);
  return (
    <section>
      <div class="between">
        <h2>Frames</h2>
        <div class="row">
          {!follows && <Button kind="small" label="Follow the newest" onClick={() => setFollows(true)} />}
          <Button kind="small" label="Clear" onClick={onClear} />
        </div>
      </div>
      {frames.length === 0 ? (
        <p class="hint">All frames are listed here, sent and received, audio as its length.</p>
      ) : (
        <ol
          class="frames"
          tabIndex={0}
          aria-label="Frames, the newest last"
          ref={list}
          onScroll={({ currentTarget: { clientHeight, scrollHeight, scrollTop } }) => {
            // New frames move the end away, and only a reader moves the list up.
            if (scrollTop + clientHeight > scrollHeight - 32) setFollows(true);
            else if (scrollTop < lastTop.current) setFollows(false);
            lastTop.current = scrollTop;
          }}
        >
          {frames.map(({ atMs, from, number, text }) => (
            <li key={number}>
              <span class="muted">{formatMs(atMs)}</span>
              <span>{from === 'page' ? 'sent' : 'received'}</span>
              <code>{text}</code>
            </li>
          ))}
        </ol>
      )}
    </section>
  );
};

const Script = (props: { readonly session: SocketSession; readonly serviceUrl: string }) => {
  const { serviceUrl, session } = props;
  const [isOpen, setOpen] = useState(false);
  const { length } = session.sent;
  const code = useMemo(
    () =>
      isOpen ? conversationCode({ serviceUrl, sent: session.sent, extensions: session.extensions }) : '',
    [isOpen, length],
  );
  if (length === 0) return null;
  return (
    <details class="card" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>As a script</summary>
      {isOpen && <CopyBlock text={code.trim()} label="The conversation as a script" />}
      <p class="hint">
        What was sent since the frames were cleared, for Node 22 with nothing installed. Replace YOUR_API_KEY,
        save it as conversation.mjs, and run node conversation.mjs. It keeps the audio of each context in a
        file.
      </p>
    </details>
  );
};

export const SocketTab = (props: TabProps) => {
  const { account, onSpoken, onVoice, voice, voices } = props;
  const { serviceUrl } = useConsole().session;
  const [choice, setChoice] = useState<SpeechChoice>({
    temperature: firstTemperature,
    format: { ...firstFormat, encoding: 'pcm' },
  });
  const [writer, setWriter] = useState<'person' | 'model'>('person');
  const [rate, setRate] = useState(30);
  const redraw = useRedraw();
  const open = useRef<HTMLButtonElement>(null);
  const [output] = useState(() => new AudioOutput());
  const session = useRef<SocketSession>(null);
  session.current ??= new SocketSession({ accountId: account.accountId, output, onChange: redraw, onSpoken });
  const { connection, contexts, frames, problem } = session.current;

  useEffect(
    () => () => {
      session.current?.dispose();
      output.close();
    },
    [],
  );

  const live = contexts.filter(({ state }) => state === 'open' || state === 'closing').length;
  return (
    <div class="stack">
      <div class="pg-columns">
        <div class="stack">
          <div class="between">
            <p class="muted pg-status" role="status">
              {connections[connection]}
            </p>
            {connection !== 'closed' && (
              <Button kind="small" label="Disconnect" onClick={() => session.current?.disconnect()} />
            )}
          </div>
          {problem !== null && <Problem refusal={{ message: problem }} />}
          <Switch
            name="writer"
            label="Who writes the text"
            options={{ person: 'Send as I type', model: 'Replay as a language model writes' }}
            value={writer}
            onChange={setWriter}
          />
          {contexts.length === 0 && (
            <Empty title="No context yet">
              A context is one voice that speaks the text you send, piece by piece. Choose a voice and open a
              context. One connection can have several.
            </Empty>
          )}
          {contexts.map((context) => (
            <ContextCard
              key={context.id}
              session={session.current!}
              context={context}
              tokensPerSecond={writer === 'model' ? rate : null}
              onRemoved={() => open.current?.focus()}
            />
          ))}
        </div>
        <div class="card stack">
          <SpeechFields
            {...{ voices, voice, onVoice, choice }}
            onChange={(changes) => setChoice({ ...choice, ...changes })}
          />
          <label class="row">
            <input
              type="checkbox"
              checked={session.current.normalizes}
              disabled={live > 0}
              onChange={(event) => session.current?.normalize(event.currentTarget.checked)}
            />
            Speak numbers, dates and money as words
          </label>
          <p class="hint">
            {live > 0
              ? 'Numbers are of the connection: they can be changed when no context is open.'
              : 'A program sets this on its key: a WebSocket has no word for it.'}
          </p>
          <button
            type="button"
            class="button primary"
            ref={open}
            aria-disabled={live >= contextsMax}
            onClick={() => session.current?.open({ ...choice, voice, format: formatOf(choice.format) })}
          >
            Open a context
          </button>
          {writer === 'model' && (
            <Choice
              name="speed"
              label="Speed of the language model"
              options={tokenRates.map(
                (tokens) => [String(tokens), `${formatNumber(tokens)} tokens a second`] as const,
              )}
              value={String(rate)}
              onChange={(tokens) => setRate(Number(tokens))}
            />
          )}
          <p class="hint">
            {`Up to ${formatNumber(contextsMax)} contexts here, of ${formatNumber(contextCharactersMax)} characters each. They can sound at the same time.`}
          </p>
        </div>
      </div>
      <Frames frames={frames} onClear={() => session.current?.clearFrames()} />
      <Script session={session.current} serviceUrl={serviceUrl} />
    </div>
  );
};
