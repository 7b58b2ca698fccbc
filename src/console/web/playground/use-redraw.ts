import { useEffect, useReducer, useRef } from 'preact/hooks';

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
