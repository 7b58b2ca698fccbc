/** Programs on a pseudo-terminal, as a person at a terminal starts them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Test } from 'tap';
import { packageRoot } from './package-root.js';
import { SCRIPTED } from './service.js';
import { missingTool } from './tools.js';

/** Other systems have a `script` with other options. */
export const noTerminal = process.platform === 'linux' ? missingTool('script') : 'not on Linux';

export class Terminal {
  /** Of `script`, which ends with the exit code of the program. */
  readonly child: ChildProcess;
  readonly exited: Promise<number | null>;
  /** What the terminal has shown, with line ends of one character. */
  shown = '';

  /** @param command a line for a shell that replaces it, `exec ...` */
  constructor(command: string, columns: number, env: NodeJS.ProcessEnv = {}) {
    const { PATH, HOME } = process.env;
    this.child = spawn('script', ['-qefc', `stty cols ${columns}; ${command}`, '/dev/null'], {
      env: { PATH, HOME, SHELL: '/bin/sh', TERM: 'xterm', ...env },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.exited = once(this.child, 'close').then(([code]) => code as number | null);
    this.child.stdout!.setEncoding('utf8').on('data', (text: string) => {
      this.shown += text.replaceAll('\r\n', '\n');
    });
  }

  /** @throws if the program ends without showing it */
  async showing(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const found = pattern.exec(this.shown);
      if (found !== null) return found;
      const ended = await Promise.race([this.exited.then(() => true), once(this.child.stdout!, 'data')]);
      if (ended === true && !pattern.test(this.shown))
        throw new Error(`not shown: ${pattern}\n${this.shown}`);
    }
  }

  type(keys: string): void {
    this.child.stdin!.write(keys);
  }
}

export const CTRL_C = '\x03';
export const CTRL_D = '\x04';

/** Starts the service in place of a shell. */
export const startCommandOf = (script: string) =>
  `exec ${process.execPath} --disable-warning=ExperimentalWarning ${join(packageRoot, 'dist', script)}`;
export const startCommand = startCommandOf(SCRIPTED);
const small = { SYNTHESIS_THREADS: '1', ACTOR_THREADS: '1', PORT: '0', OPS_PORT: '0', CONSOLE_PORT: '0' };

/** The service on a terminal of its own; it ends with the test. */
export const openService = (
  t: Test,
  columns: number,
  env: NodeJS.ProcessEnv,
  command = startCommand,
): Terminal => {
  const terminal = new Terminal(command, columns, { ...small, ...env });
  // The service ends with its terminal.
  t.teardown(() => terminal.child.kill('SIGKILL'));
  return terminal;
};

/** The welcome, whole. */
export const readyText = /syrinx is ready[^]*Press Ctrl-C to end the service\..*\n/;
export const jsonText = /^\s*[{}]|"\w+":/m;
