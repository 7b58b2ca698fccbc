/** For supervisors and load balancers; no key is asked for. */
import type { Health } from '../api/responses.js';
import type { Handler } from './handler.js';
import { reply } from './reply.js';

export interface Readiness {
  /** Why no speech should be sent here now, one phrase each; empty when it may. */
  reasons(): readonly string[];
  /** What the operator should see to all the same. */
  warnings(): readonly string[];
}

const answer = (status: number, value: Health) => ({
  status,
  contentType: 'application/json',
  body: JSON.stringify(value),
  headers: [['cache-control', 'no-store']] as const,
});

/** The process lives and its event loop turns. */
export const healthAnswer = () => answer(200, { status: 'ok' });

/** Voices are loaded, the threads are whole, the store works, and nothing is draining. */
export const readyAnswer = (readiness: Readiness) => {
  const reasons = readiness.reasons();
  const warnings = readiness.warnings();
  const seen = warnings.length === 0 ? {} : { warnings: [...warnings] };
  return reasons.length === 0
    ? answer(200, { status: 'ready', ...seen })
    : answer(503, { status: 'not ready', reasons: [...reasons], ...seen });
};

/** `GET /healthz` */
export const healthRoute: Handler = (exchange) => reply(exchange, healthAnswer());

/** `GET /readyz` */
export const readyRoute =
  (readiness: Readiness): Handler =>
  (exchange) =>
    reply(exchange, readyAnswer(readiness));
