/** One input of the fuzz: what is written to a new connection, how it is cut, and how the connection ends. */

/** What inputs are made of. */
export interface Vocabulary {
  /** Keys with credit, without credit, and unknown ones. */
  readonly goodKeys: readonly string[];
  readonly brokeKeys: readonly string[];
  readonly unknownKeys: readonly string[];
  readonly voices: readonly string[];
}

/**
 * `half-close`: the client sends a FIN at once. `reset`: it closes at once. `wait`: it waits a moment for an answer;
 * `patient`: as long as first audio may take. `linger`: it stays until the service closes the connection.
 */
export type Ending = 'half-close' | 'reset' | 'wait' | 'patient' | 'linger';

export interface Input {
  /** For statistics. */
  readonly kind: string;
  readonly bytes: Buffer;
  /** The listener that gets it, as the service names it; without one, the public port. */
  readonly dialect?: string;
  /** Written after the answer 101. */
  readonly afterUpgrade: Buffer | null;
  /** Where `bytes` are cut into writes of their own, ascending. */
  readonly cuts: readonly number[];
  readonly ending: Ending;
}

export type Made = Pick<Input, 'kind' | 'bytes' | 'afterUpgrade' | 'dialect'>;
