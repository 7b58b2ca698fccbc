/** The audio as a wave. What was heard is coloured, a click plays from there, and the word under the pointer is named. */
import type { TargetedKeyboardEvent, TargetedMouseEvent } from 'preact';
import { useId, useMemo, useRef, useState } from 'preact/hooks';
import { formatSeconds } from '../format.js';
import type { Track } from './track.js';
import { usePlayhead } from './use-redraw.js';
import { wordAt, type Word } from './wire.js';

const barsMax = 160;
const heightUnits = 100;
/** Of an arrow key. */
const stepSeconds = 1;

/** @returns a path with one bar for each of `count` parts of the audio, each in a unit of width */
const barsOf = (peaks: readonly number[], count: number): string => {
  const loudest = peaks.reduce((max, peak) => Math.max(max, peak), 0.05);
  return Array.from({ length: count }, (_, bar) => {
    const [from, to] = [bar, bar + 1].map((edge) => Math.floor((edge * peaks.length) / count));
    const peak = Math.max(0, ...peaks.slice(from, to));
    const half = Math.max(1, (heightUnits / 2 - 2) * (peak / loudest));
    return `M${bar + 0.5} ${(heightUnits / 2 - half).toFixed(1)}v${(2 * half).toFixed(1)}`;
  }).join('');
};

export const Waveform = (props: { readonly track: Track; readonly words: readonly Word[] }) => {
  const { track, words } = props;
  const id = useId();
  const slider = useRef<HTMLDivElement>(null);
  const heard = useRef<SVGRectElement>(null);
  const clock = useRef<HTMLSpanElement>(null);
  const [pointedSeconds, setPointed] = useState<number | null>(null);
  const { peaks, receivedSeconds } = track;
  const count = Math.max(1, Math.min(barsMax, peaks.length));
  const bars = useMemo(() => barsOf(peaks, count), [track, peaks.length]);
  const unitsAt = (seconds: number): number =>
    receivedSeconds === 0 ? 0 : (count * Math.min(seconds, receivedSeconds)) / receivedSeconds;
  const total = `of ${formatSeconds(receivedSeconds * 1_000)} s`;

  usePlayhead(track, (heardSeconds) => {
    const seconds = heardSeconds ?? 0;
    heard.current?.setAttribute('width', String(unitsAt(seconds)));
    const text = `${formatSeconds(seconds * 1_000)} ${total}`;
    if (clock.current === null || clock.current.textContent === text) return;
    clock.current.textContent = text;
    slider.current?.setAttribute('aria-valuenow', seconds.toFixed(1));
    slider.current?.setAttribute('aria-valuetext', `${text}. ${words[wordAt(words, seconds)]?.text ?? ''}`);
  });

  const secondsAt = ({ clientX, currentTarget }: TargetedMouseEvent<HTMLElement>): number => {
    const { left, width } = currentTarget.getBoundingClientRect();
    return Math.max(0, Math.min(1, (clientX - left) / width)) * receivedSeconds;
  };
  const onKeyDown = (event: TargetedKeyboardEvent<HTMLElement>) => {
    const now = track.heardSeconds ?? 0;
    const target: Readonly<Record<string, number>> = {
      ArrowLeft: now - stepSeconds,
      ArrowRight: now + stepSeconds,
      Home: 0,
      End: receivedSeconds - stepSeconds,
      Enter: now,
    };
    const seconds = target[event.key];
    if (seconds === undefined || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    track.playFrom(Math.max(0, Math.min(seconds, receivedSeconds)));
  };

  const pointed = pointedSeconds === null ? undefined : words[wordAt(words, pointedSeconds)];
  return (
    <div class="pg-wave">
      <div
        ref={slider}
        role="slider"
        tabIndex={0}
        aria-label="Position in the audio"
        aria-valuemin={0}
        aria-valuemax={Number(receivedSeconds.toFixed(1))}
        aria-valuenow={0}
        onClick={(event) => track.playFrom(secondsAt(event))}
        onMouseMove={(event) => setPointed(secondsAt(event))}
        onMouseLeave={() => setPointed(null)}
        onKeyDown={onKeyDown}
      >
        <svg
          viewBox={`0 0 ${count} ${heightUnits}`}
          width="100%"
          height="100%"
          preserveAspectRatio="none"
          aria-hidden="true"
        >
          <clipPath id={id}>
            <rect ref={heard} height={heightUnits} />
          </clipPath>
          {pointed !== undefined && (
            <rect
              class="pg-pointed"
              x={unitsAt(pointed.startSeconds)}
              width={unitsAt(pointed.endSeconds) - unitsAt(pointed.startSeconds)}
              height={heightUnits}
            />
          )}
          <path d={bars} />
          <path d={bars} class="heard" clip-path={`url(#${id})`} />
        </svg>
      </div>
      <p class="between hint">
        <span ref={clock} />
        <span class="pg-under">
          {pointedSeconds === null
            ? 'Click to play from there.'
            : `${formatSeconds(pointedSeconds * 1_000)} s ${pointed?.text ?? ''}`}
        </span>
      </p>
    </div>
  );
};
