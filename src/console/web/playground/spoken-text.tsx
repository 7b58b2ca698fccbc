/** A text. Each word lights up while it is spoken, and a click on a word plays from there. */
import type { TargetedKeyboardEvent } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Track } from './track.js';
import type { Word } from './wire.js';

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

/** @returns the index of the word that is spoken then, or -1 */
const wordAt = (words: readonly Word[], seconds: number): number =>
  words.findLastIndex((word) => word.startSeconds <= seconds && seconds < word.endSeconds);

const steps: Readonly<Record<string, (index: number, last: number) => number>> = {
  ArrowLeft: (index) => index - 1,
  ArrowUp: (index) => index - 1,
  ArrowRight: (index) => index + 1,
  ArrowDown: (index) => index + 1,
  Home: () => 0,
  End: (_, last) => last,
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

  // Outside of what Preact draws: a word changes several times a second, and hundreds of words need not be compared.
  const lit = useRef<Element | null>(null);
  const isPlaying = track.state === 'playing';
  useEffect(() => {
    let frame = 0;
    const show = () => {
      const seconds = track.heardSeconds;
      const index =
        seconds === null || track.state === 'stopped' ? -1 : wordAt(words, seconds + drawingSeconds);
      const word = element.current?.querySelectorAll('button')[index] ?? null;
      if (word !== lit.current) {
        lit.current?.removeAttribute('aria-current');
        word?.setAttribute('aria-current', 'true');
        lit.current = word;
      }
      frame = requestAnimationFrame(show);
    };
    show();
    if (!isPlaying) cancelAnimationFrame(frame);
    return () => cancelAnimationFrame(frame);
  }, [isPlaying, track, words]);

  const onKeyDown = (event: TargetedKeyboardEvent<HTMLElement>) => {
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const last = pieces.length - 1;
    const index = Math.max(0, Math.min(step(reached, last), last));
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
            class="pg-word"
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
