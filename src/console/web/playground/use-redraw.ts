/** Drawing once for each frame of the screen. */
import { useEffect, useReducer, useRef } from 'preact/hooks';
import type { Track } from './track.js';

/** @returns a function that draws the component again, once for each frame of the screen however often it is called */
export const useRedraw = (): (() => void) => {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const frame = useRef(0);
  useEffect(() => () => cancelAnimationFrame(frame.current), []);
  return useRef(() => {
    cancelAnimationFrame(frame.current);
    frame.current = requestAnimationFrame(() => redraw(undefined));
  }).current;
};

/** Outside of what Preact draws: calls `show` for each frame of the screen while a track plays, and once when it does not. */
export const usePlayhead = (track: Track, show: (heardSeconds: number | null) => void): void => {
  const isPlaying = track.state === 'playing';
  useEffect(() => {
    let frame = 0;
    const draw = () => {
      show(track.heardSeconds);
      if (isPlaying) frame = requestAnimationFrame(draw);
    };
    draw();
    return () => cancelAnimationFrame(frame);
  });
};
