/** What a start comes to: it serves, or is refused as an operator should meet it. */
import type { ServiceProcessOptions } from '../rig-old/service-process.js';
import { TortureService } from './service.js';

export type StartOutcome =
  | { readonly kind: 'serves'; readonly service: TortureService }
  /** Exit code 1 and one line, without a stack. */
  | { readonly kind: 'refused'; readonly line: string }
  | { readonly kind: 'broke'; readonly how: string };

/** Longer than any start takes, on a machine that has other things to do. */
const START_MS_MAX = 60_000;

export const startOutcome = async (options: ServiceProcessOptions): Promise<StartOutcome> => {
  const service = new TortureService(options);
  let timer: NodeJS.Timeout | undefined;
  const hung = new Promise<'hung'>((resolve) => {
    timer = setTimeout(() => resolve('hung'), START_MS_MAX);
  });
  const listening = service.listening().then(
    () => 'listening' as const,
    () => 'ended' as const,
  );
  const first = await Promise.race([listening, hung]);
  clearTimeout(timer);
  if (first === 'listening') return { kind: 'serves', service };
  if (first === 'hung') {
    await service.kill();
    return { kind: 'broke', how: 'it neither listened nor ended' };
  }
  const { code, signal } = await service.exited;
  const lines = service.stderr.trimEnd().split('\n');
  const [line = ''] = lines;
  if (code === 1 && lines.length === 1 && line.startsWith('syrinx: ')) return { kind: 'refused', line };
  return { kind: 'broke', how: `exit ${String(code ?? signal)}: ${lines.slice(0, 3).join(' / ')}` };
};

/** How often each came about, the most frequent first. */
export class Tally {
  readonly #counts = new Map<string, number>();

  add(what: string): void {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + 1);
  }

  of(what: string): number {
    return this.#counts.get(what) ?? 0;
  }

  get sum(): number {
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
  }

  toString(): string {
    const rows = [...this.#counts].sort(([, a], [, b]) => b - a);
    return rows.map(([what, count]) => `${String(count)} ${what}`).join(', ');
  }
}
