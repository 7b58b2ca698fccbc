/** Runs a command line in the process of the test, or in one of its own. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Program } from '../../scripts/command.js';

export interface CommandResult {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export const runner =
  (program: Program, dataDir: string, more: NodeJS.ProcessEnv = {}) =>
  async (...args: string[]): Promise<CommandResult> => {
    const written = { stdout: '', stderr: '' };
    const status = await program(args, {
      env: { ...more, DATA_DIR: dataDir },
      out: (text) => (written.stdout += text),
      err: (text) => (written.stderr += text),
    });
    return { status, ...written };
  };

/** @param script below `scripts`, without its ending */
export const spawnCommand = (
  script: string,
  args: readonly string[],
  options: { readonly env?: NodeJS.ProcessEnv; readonly cwd?: string; readonly input?: string } = {},
): CommandResult => {
  const file = fileURLToPath(new URL(`../../scripts/${script}.js`, import.meta.url));
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', file, ...args],
    { encoding: 'utf8', ...options },
  );
  return { status, stdout, stderr };
};
