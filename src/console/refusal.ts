/** An act of the console that is refused. Its fields are the body of the answer. */
import type { Refusal } from './contract.js';

export class ConsoleRefusal extends Error implements Refusal {
  override readonly name = 'ConsoleRefusal';
  readonly code: Refusal['code'];
  readonly field?: string;
  readonly retryAfterMs?: number;

  constructor({ code, message, field, retryAfterMs }: Refusal) {
    super(message);
    this.code = code;
    if (field !== undefined) this.field = field;
    if (retryAfterMs !== undefined) this.retryAfterMs = retryAfterMs;
  }
}
