/** Speaks over a WebSocket, as a voice agent does, and shows every frame. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { VoiceView } from '../../contract.js';
import { formatNumber } from '../format.js';
import { Labelled } from '../parts/form.js';
import { Empty, Problem } from '../parts/page.js';
import { ContextCard, type Writer } from './context-card.js';
import { firstTemperature, VoiceFields } from './settings.js';
import { contextsMax, SocketSession, type Connection, type ListedFrame } from './socket-session.js';
import { AudioOutput } from './track.js';
import { useRedraw } from './use-redraw.js';

const connections: Readonly<Record<Connection, string>> = {
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
  const isAtEnd = useRef(true);
  useEffect(() => {
    if (isAtEnd.current) list.current?.scrollTo({ top: list.current.scrollHeight });
  }, [newest]);
  return (
    <section>
      <div class="between">
        <h2>Frames</h2>
        <button type="button" class="button small" onClick={onClear}>
          Clear
        </button>
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
            isAtEnd.current = scrollTop + clientHeight > scrollHeight - 32;
          }}
        >
          {frames.map(({ atMs, from, number, text }) => (
            <li key={number}>
              <span class="muted">{formatNumber(Math.round(atMs))} ms</span>
              <span>{from === 'page' ? 'sent' : 'received'}</span>
              <code>{text}</code>
            </li>
          ))}
        </ol>
      )}
    </section>
  );
};

export const SocketTab = (props: {
  readonly accountId: number;
  readonly voices: readonly VoiceView[];
  readonly voice: string;
  readonly onVoice: (voice: string) => void;
  /** Called when credit may have been spent. */
  readonly onSpoken: () => void;
}) => {
  const { accountId, onSpoken, onVoice, voice, voices } = props;
  const [temperature, setTemperature] = useState(firstTemperature);
  const [writer, setWriter] = useState<Writer>({ kind: 'person' });
  const redraw = useRedraw();
  const open = useRef<HTMLButtonElement>(null);
  const [output] = useState(() => new AudioOutput());
  const session = useRef<SocketSession>(null);
  session.current ??= new SocketSession(accountId, output, { onChange: redraw, onSpoken });
  const { connection, contexts, frames, problem } = session.current;

  useEffect(
    () => () => {
      session.current?.dispose();
      output.close();
    },
    [],
  );

  const live = contexts.filter(({ state }) => state === 'open' || state === 'closing').length;
  const rate = writer.kind === 'model' ? writer.tokensPerSecond : 30;
  return (
    <div class="stack">
      <div class="pg-columns">
        <div class="stack">
          <div class="between">
            <p class="muted pg-status" role="status">
              {connections[connection]}
            </p>
            {connection !== 'closed' && (
              <button type="button" class="button small" onClick={() => session.current?.disconnect()}>
                Disconnect
              </button>
            )}
          </div>
          {problem !== null && <Problem refusal={{ message: problem }} />}
          <fieldset class="row">
            <legend class="hidden">Who writes the text</legend>
            <label class="row">
              <input
                type="radio"
                name="writer"
                checked={writer.kind === 'person'}
                onChange={() => setWriter({ kind: 'person' })}
              />
              Send as I type
            </label>
            <label class="row">
              <input
                type="radio"
                name="writer"
                checked={writer.kind === 'model'}
                onChange={() => setWriter({ kind: 'model', tokensPerSecond: rate })}
              />
              Replay as a language model writes
            </label>
          </fieldset>
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
              writer={writer}
              onRemoved={() => open.current?.focus()}
            />
          ))}
        </div>
        <div class="card stack">
          <VoiceFields
            voices={voices}
            value={{ voice, temperature }}
            onChange={(value) => {
              onVoice(value.voice);
              setTemperature(value.temperature);
            }}
          />
          <button
            type="button"
            class="button primary"
            ref={open}
            aria-disabled={live >= contextsMax}
            onClick={() => session.current?.open(voice, temperature)}
          >
            Open a context
          </button>
          {writer.kind === 'model' && (
            <Labelled name="speed" label="Speed of the language model">
              {(control) => (
                <select
                  {...control}
                  value={String(writer.tokensPerSecond)}
                  onChange={({ currentTarget: { value } }) =>
                    setWriter({ kind: 'model', tokensPerSecond: Number(value) })
                  }
                >
                  {tokenRates.map((tokens) => (
                    <option value={tokens} key={tokens}>
                      {`${formatNumber(tokens)} tokens a second`}
                    </option>
                  ))}
                </select>
              )}
            </Labelled>
          )}
          <p class="hint">
            {`Up to ${formatNumber(contextsMax)} contexts here, as pcm at 32,000 Hz. They can sound at the same time.`}
          </p>
        </div>
      </div>
      <Frames frames={frames} onClear={() => session.current?.clearFrames()} />
    </div>
  );
};
