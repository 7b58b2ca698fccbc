/** An act of the console that is refused. Its fields are the body of the answer. */
import type { Refusal } from './contract.js';

export class ConsoleRefusal extends Error implements Refusal {
  override readonly name = 'ConsoleRefusal';
  readonly code: Refusal['code'];
  readonly field?: string;
  readonly retryAfterMs?: number;

  constructor(code: Refusal['code'], message: string, more: Pick<Refusal, 'field' | 'retryAfterMs'> = {}) {
    super(message);
    this.code = code;
    Object.assign(this, more);
  }
}
