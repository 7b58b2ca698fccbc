/** The figures of the service, live, with its past. The page shows when the connection is lost, and connects again. */
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { HistoryPoint, HistoryRange, HistoryView, LiveView } from '../contract.js';
import { call } from './call.js';
import { refresh, useCall } from './use-call.js';

/** Several times the period of the server. */
const silenceMs = 4_000;
const retryMs = 2_000;

export interface Live {
  readonly view: LiveView | null;
  readonly state: 'connecting' | 'connected' | 'lost';
}

export const useLive = (): Live => {
  const [live, setLive] = useState<Live>({ view: null, state: 'connecting' });
  useLayoutEffect(() => {
    let source: EventSource;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const after = (ms: number, act: () => void) => {
      clearTimeout(timer);
      timer = setTimeout(act, ms);
    };
    const lose = () => {
      source.close();
      setLive(({ view }) => ({ view, state: 'lost' }));
      after(retryMs, () => {
        // An EventSource does not report why it failed. This call shows whether the session has ended.
        call('voices', {}).catch(() => undefined);
        connect();
      });
    };
    const connect = () => {
      source = new EventSource('/api/live');
      source.onmessage = ({ data }: MessageEvent<string>) => {
        after(silenceMs, lose);
        setLive({ view: JSON.parse(data) as LiveView, state: 'connected' });
      };
      source.onerror = lose;
      after(silenceMs, lose);
    };
    connect();
    return () => {
      clearTimeout(timer);
      source.close();
    };
  }, []);
  return live;
};

/** More points than the service keeps of an hour. */
const pointsMax = 1_000;
/** Of the longer ranges, the page asks again for all. */
const pastMs = 300_000;

const withPoint = (past: HistoryView, point: HistoryPoint): HistoryView =>
  Object.fromEntries(
    Object.entries(past).map(([name, values]) => [
      name,
      [...values, point[name as keyof HistoryPoint]].slice(-pointsMax),
    ]),
  ) as unknown as HistoryView;

/** The past as the service keeps it; of the hour, with the points that came since the page asked. */
export const useHistory = (range: HistoryRange, { state, view }: Live): HistoryView | undefined => {
  const { answer } = useCall('history', { range });
  const shown = useRef<{ readonly answer: HistoryView; view: HistoryView } | null>(null);
  const wasLost = useRef(false);
  useEffect(() => {
    // While the connection was lost, points were missed.
    if (state === 'connected' && wasLost.current) void refresh();
    wasLost.current = state === 'lost';
  }, [state]);
  useEffect(() => {
    const timer = setInterval(() => void refresh(), pastMs);
    return () => clearInterval(timer);
  }, []);
  if (answer !== undefined && shown.current?.answer !== answer) shown.current = { answer, view: answer };
  const point = range === 'hour' ? (view?.point ?? null) : null;
  if (shown.current !== null && point !== null && point.atMs > (shown.current.view.atMs.at(-1) ?? 0))
    shown.current.view = withPoint(shown.current.view, point);
  return answer && shown.current?.view;
};
