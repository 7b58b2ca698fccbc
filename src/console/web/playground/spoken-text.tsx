/** A text. Each word lights up while it is spoken, and a click on a word plays from there. */
import type { TargetedKeyboardEvent } from 'preact';
import { useMemo, useRef, useState } from 'preact/hooks';
import { formatSeconds } from '../format.js';
import type { Track } from './track.js';
import { usePlayhead } from './use-redraw.js';
import { wordAt, type Word } from './wire.js';

/** A word with the text between it and the word before. */
interface Piece {
  readonly before: string;
  readonly word: Word;
}

/** Words come as they were written, in their order, so each is found behind the one before. */
const piecesOf = (text: string, words: readonly Word[]): { pieces: readonly Piece[]; rest: string } => {
  let end = 0;
  const pieces = words.map((word) => {
    const start = text.indexOf(word.text, end);
    if (start < 0) return { before: ' ', word };
    const before = text.slice(end, start);
    end = start + word.text.length;
    return { before, word };
  });
  return { pieces, rest: text.slice(end) };
};

/** Half a frame of a usual screen: a drawing is visible that much later. */
const drawingSeconds = 0.008;

/** What one had heard when a track was stopped. `null`: it was not. */
const stoppedSecondsOf = (track: Track): number | null =>
  track.state === 'stopped' ? (track.heardSeconds ?? 0) : null;

/** @returns the same as a sentence; empty if the track was not stopped */
export const whatWasHeard = (track: Track, words: readonly Word[]): string => {
  const seconds = stoppedSecondsOf(track);
  if (seconds === null) return '';
  const last = words.findLast(({ startSeconds }) => startSeconds < seconds);
  const upTo = last === undefined ? 'No word was heard.' : `Heard up to “${last.text}”.`;
  return `Stopped after ${formatSeconds(seconds * 1_000)} s. ${upTo}`;
};

export const SpokenText = (props: {
  readonly label: string;
  readonly text: string;
  readonly words: readonly Word[];
  readonly track: Track;
}) => {
  const { text, track, words } = props;
  const element = useRef<HTMLParagraphElement>(null);
  // Tab reaches one word, the arrow keys reach the others.
  const [reached, setReached] = useState(0);
  const { pieces, rest } = useMemo(() => piecesOf(text, words), [text, words.length]);

  // A word changes several times a second, and hundreds of words need not be compared.
  const lit = useRef<Element | null>(null);
  const stoppedSeconds = stoppedSecondsOf(track);
  usePlayhead(track, (seconds) => {
    const index = seconds === null || stoppedSeconds !== null ? -1 : wordAt(words, seconds + drawingSeconds);
    const word = element.current?.querySelectorAll('button')[index] ?? null;
    if (word === lit.current) return;
    lit.current?.removeAttribute('aria-current');
    word?.setAttribute('aria-current', 'true');
    lit.current = word;
  });

  const onKeyDown = (event: TargetedKeyboardEvent<HTMLElement>) => {
    const last = pieces.length - 1;
    const [before, after] = [Math.max(0, reached - 1), Math.min(reached + 1, last)];
    const arrows = { ArrowLeft: before, ArrowUp: before, ArrowRight: after, ArrowDown: after };
    const keys: Readonly<Record<string, number>> = { ...arrows, Home: 0, End: last };
    const index = keys[event.key];
    if (index === undefined) return;
    event.preventDefault();
    setReached(index);
    element.current?.querySelectorAll('button')[index]?.focus();
  };

  return (
    <p class="pg-text" role="group" aria-label={props.label} ref={element} onKeyDown={onKeyDown}>
      {pieces.map(({ before, word }, index) => (
        <>
          {before}
          <button
            type="button"
            class={
              stoppedSeconds !== null && word.startSeconds >= stoppedSeconds ? 'pg-word unheard' : 'pg-word'
            }
            tabIndex={index === reached ? 0 : -1}
            onFocus={() => setReached(index)}
            onClick={() => track.playFrom(word.startSeconds)}
          >
            {word.text}
          </button>
        </>
      ))}
      <span class="muted">{rest}</span>
    </p>
  );
};
