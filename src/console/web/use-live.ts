/** The figures of the service, live. It shows when the connection is lost, and connects again. */
import { useEffect, useState } from 'preact/hooks';
import type { LiveView } from '../contract.js';
import { call } from './call.js';

/** Several times the period of the server. */
const silenceMs = 4_000;
const retryMs = 2_000;

export const historyMax = 120;

export interface Live {
  /** The oldest first, `historyMax` at most. */
  readonly views: readonly LiveView[];
  readonly state: 'connecting' | 'connected' | 'lost';
}

export const useLive = (): Live => {
  const [live, setLive] = useState<Live>({ views: [], state: 'connecting' });
  useEffect(() => {
    let source: EventSource | null = null;
    let timer: ReturnType<typeof setTimeout> | undefined;

    const lose = () => {
      source?.close();
      setLive(({ views }) => ({ views, state: 'lost' }));
      clearTimeout(timer);
      timer = setTimeout(() => {
        // An EventSource does not report why it failed. This call shows whether the session has ended.
        call('voices', {}).catch(() => undefined);
        connect();
      }, retryMs);
    };
    const listen = () => {
      clearTimeout(timer);
      timer = setTimeout(lose, silenceMs);
    };
    const connect = () => {
      source = new EventSource('/api/live');
      source.onmessage = ({ data }: MessageEvent<string>) => {
        listen();
        const view = JSON.parse(data) as LiveView;
        setLive(({ views }) => ({ views: [...views.slice(1 - historyMax), view], state: 'connected' }));
      };
      source.onerror = lose;
      listen();
    };
    connect();
    return () => {
      clearTimeout(timer);
      source?.close();
    };
  }, []);
  return live;
};
