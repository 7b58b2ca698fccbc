/** One context of the WebSocket: its text, its words and its end. */
import type { TargetedKeyboardEvent } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { formatMs } from '../format.js';
import { Button } from '../parts/button.js';
import { TextField } from '../parts/form.js';
import { Problem } from '../parts/page.js';
import {
  contextCharactersMax,
  type ContextState,
  type SocketContext,
  type SocketSession,
} from './socket-session.js';
import { SpokenText, whatWasHeard } from './spoken-text.js';
import { Waveform } from './waveform.js';

const states: Readonly<Record<ContextState, string>> = {
  open: 'open',
  closing: 'speaks the rest, then closes',
  closed: 'closed',
  cancelled: 'interrupted',
  lost: 'connection lost',
};

const firstScript =
  'Of course. I can book that table for you. Shall I take the one by the window, at half past seven?';

/** Pieces of about four characters, as language models write. */
const tokensOf = (text: string): readonly string[] => text.match(/\s*\S{1,4}|\s+/g) ?? [];

/** @returns the text that was typed or pasted; sent text cannot be taken back */
const insertedInto = (before: string, after: string): string => {
  let start = 0;
  while (start < before.length && before[start] === after[start]) start += 1;
  let end = 0;
  const shorter = Math.min(before.length, after.length) - start;
  while (end < shorter && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  return after.slice(start, after.length - end);
};

/** Hands out the tokens of a text one by one. */
const useReplay = (onToken: (token: string) => void, onEnd: () => void) => {
  const timer = useRef<ReturnType<typeof setInterval>>(undefined);
  const [isRunning, setRunning] = useState(false);
  const stop = () => {
    clearInterval(timer.current);
    setRunning(false);
  };
  useEffect(() => () => clearInterval(timer.current), []);
  const start = (text: string, tokensPerSecond: number) => {
    const tokens = tokensOf(text);
    let next = 0;
    clearInterval(timer.current);
    setRunning(true);
    timer.current = setInterval(() => {
      const token = tokens[next++];
      if (token !== undefined) onToken(token);
      if (next < tokens.length) return;
      stop();
      onEnd();
    }, 1_000 / tokensPerSecond);
  };
  return { isRunning, start, stop };
};

export const ContextCard = (props: {
  readonly session: SocketSession;
  readonly context: SocketContext;
  /** Of a language model that writes; `null`: a person does. */
  readonly tokensPerSecond: number | null;
  readonly onRemoved: () => void;
}) => {
  const { context, session, tokensPerSecond } = props;
  const { id, state } = context;
  const [typed, setTyped] = useState('');
  const [script, setScript] = useState(firstScript);
  const replay = useReplay(
    (token) => session.sendText(context, token),
    () => session.flush(context),
  );
  const isOpen = state === 'open';
  useEffect(() => {
    if (!isOpen) replay.stop();
  }, [isOpen]);
  useEffect(() => {
    if (!context.isRefused || !replay.isRunning) return;
    replay.stop();
    session.flush(context);
  }, [context.isRefused]);

  const onType = (after: string) => {
    const inserted = insertedInto(typed, after);
    setTyped(after);
    if (inserted !== '') session.sendText(context, inserted);
  };
  const flush = () => {
    session.flush(context);
    setTyped('');
  };
  const onKeyDown = (event: TargetedKeyboardEvent<HTMLElement>) => {
    if (event.key === 'Escape') session.cancel(context);
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) flush();
  };

  return (
    <section class="card stack" aria-label={`${id}, ${context.voice}`} onKeyDown={onKeyDown}>
      <div class="between">
        <h2>{id}</h2>
        <span class="muted">
          {context.voice}, {states[state]}
          {context.firstAudioMs !== null &&
            `, first audio ${formatMs(context.firstAudioMs)} after the first text`}
        </span>
      </div>
      {isOpen && tokensPerSecond === null && (
        <TextField
          name={`${id}-typed`}
          label="Text, sent as you type"
          hint="Ctrl+Enter flushes: the rest is spoken. Escape interrupts. Sent text cannot be taken back."
          rows={2}
          value={typed}
          onInput={(event) => {
            // An input method for other scripts composes its text in the field first.
            if (!event.isComposing) onType(event.currentTarget.value);
          }}
          onCompositionEnd={(event) => onType(event.currentTarget.value)}
        />
      )}
      {isOpen && tokensPerSecond !== null && (
        <TextField
          name={`${id}-script`}
          label="What the language model writes"
          hint="Escape interrupts."
          rows={3}
          maxLength={contextCharactersMax}
          value={script}
          onInput={(event) => setScript(event.currentTarget.value)}
        />
      )}
      <div class="row">
        {isOpen && tokensPerSecond !== null && (
          <Button
            kind="primary"
            label={replay.isRunning ? 'Writing …' : 'Write'}
            isOff={replay.isRunning}
            onClick={() => {
              if (!replay.isRunning) replay.start(script, tokensPerSecond);
            }}
          />
        )}
        {isOpen && (
          <>
            <Button label="Flush" onClick={flush} />
            <Button label="Close" onClick={() => session.close(context)} />
          </>
        )}
        {(isOpen || state === 'closing' || context.track.state === 'playing') && (
          <Button label="Interrupt" onClick={() => session.cancel(context)} />
        )}
        {!isOpen && state !== 'closing' && (
          <Button
            label="Remove"
            onClick={() => {
              session.remove(context);
              props.onRemoved();
            }}
          />
        )}
      </div>
      {context.problem !== null && <Problem refusal={{ message: context.problem }} />}
      {context.text !== '' && (
        <>
          {context.track.receivedSeconds > 0 && <Waveform track={context.track} words={context.words} />}
          {context.track.state === 'stopped' && (
            <p class="muted">{whatWasHeard(context.track, context.words)}</p>
          )}
          <SpokenText
            label={`Words of ${id}. The arrow keys move, Enter plays from a word.`}
            text={context.text}
            words={context.words}
            track={context.track}
          />
        </>
      )}
    </section>
  );
};
