/** A soak on the terminal: three lines that are painted again each second; elsewhere a line every ten seconds. */
import { totalCpu } from '../rig/process-facts.js';
import type { LoadTick, Step } from './measures.js';
import { totalFaults } from './series.js';

const plainEveryMs = 10_000;

export interface Shown {
  readonly phase: string;
  readonly elapsedMs: number;
  /** `null`: unknown. */
  readonly leftMs: number | null;
  readonly tick: LoadTick;
  readonly step: Step | null;
}

const clockTime = (ms: number): string => {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const pad = (value: number) => String(value).padStart(2, '0');
  return `${String(Math.floor(seconds / 3600))}:${pad(Math.floor(seconds / 60) % 60)}:${pad(seconds % 60)}`;
};

const ms = (value: number): string => `${value.toFixed(value < 10 ? 1 : 0)} ms`;
const mib = (bytes: number | null): string => (bytes === null ? '-' : `${(bytes / 2 ** 20).toFixed(0)} MiB`);
const percent = (cores: number): string => `${(cores * 100).toFixed(0)} %`;

/** The lines for a moment. */
export const progressLines = ({ phase, elapsedMs, leftMs, tick, step }: Shown): string[] => {
  const left = leftMs === null ? '' : `, ${clockTime(leftMs)} left`;
  const cpu = step?.cpu;
  const used = cpu === null || cpu === undefined ? null : totalCpu(cpu);
  const speech = step === null ? '-' : step.speechPerSecond.toFixed(0);
  const { p50, p99 } = tick.firstAudioMs;
  const delay = step?.loopDelayP99Ms ?? null;
  return [
    `${phase} ${clockTime(elapsedMs)}${left} | sockets ${tick.sockets}, streams ${tick.streams}, ${speech} s of speech a second`,
    `  first audio p50 ${ms(p50)}, p99 ${ms(p99)} | underruns ${tick.underruns} (unjudged ${tick.unjudged}), faults ${totalFaults(tick)} | replies ${tick.replies}, requests ${tick.requests}`,
    `  PSS ${mib(step?.pssBytes ?? null)}, event loop p99 ${delay === null ? '-' : ms(delay)} | CPU: service ${used === null ? '-' : percent(used)}, load ${step === null ? '-' : percent(step.loadCpu)} (late p99 ${ms(tick.loopLateMs.p99)})`,
  ];
};

export class Progress {
  readonly #out: NodeJS.WriteStream;
  #painted = 0;
  #plainAtMs = -Infinity;

  constructor(out: NodeJS.WriteStream) {
    this.#out = out;
  }

  show(shown: Shown): void {
    const lines = progressLines(shown);
    if (this.#out.isTTY) {
      this.#clear();
      const cut = lines.map((line) => line.slice(0, Math.max(20, this.#out.columns - 1)));
      this.#out.write(`${cut.join('\n')}\n`);
      this.#painted = cut.length;
      return;
    }
    const nowMs = performance.now();
    if (nowMs - this.#plainAtMs < plainEveryMs) return;
    this.#plainAtMs = nowMs;
    this.#out.write(`${lines.map((line) => line.trim()).join(' | ')}\n`);
  }

  /** Writes a line that stays, above the painted ones. */
  say(line: string): void {
    this.#clear();
    this.#out.write(`${line}\n`);
  }

  #clear(): void {
    if (this.#painted > 0) this.#out.write(`\x1b[${String(this.#painted)}A\x1b[J`);
    this.#painted = 0;
  }
}
