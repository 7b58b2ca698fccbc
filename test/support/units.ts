/**
 * A stand-in for systemd: a `systemctl` in PATH that starts and stops the service by the name of its unit, as
 * syrinx@.service says.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { Test } from 'tap';
import { packageRoot } from './package-root.js';
import { until } from './waiting.js';

/** Like systemctl's, `stop` returns when the process has ended. */
const systemctl = `#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")"
[[ $2 == --quiet ]] && set -- "$1" "$3"
port=\${2#syrinx@}
case $1 in
  is-active) [[ -e pid.$port && ! -e exit.$port ]] ;;
  start)
    echo "$port" >>started
    rm -f "exit.$port"
    [[ -e env.$port ]] && export "$(cat "env.$port")"
    if [[ -n \${CANNOT_EXECUTE:-} ]]; then echo 203 >"exit.$port"; exit 1; fi
    PORT=$port OPS_PORT=1$port CONSOLE_PORT=2$port UNITS=$PWD nohup bash -c '
      cd "$RELEASE"
      "$NODE" --disable-warning=ExperimentalWarning dist/$ENTRY >>"$UNITS/log.$PORT" 2>&1 &
      echo $! >"$UNITS/pid.$PORT"
      wait $! && code=0 || code=$?
      echo $code >"$UNITS/exit.$PORT"' >/dev/null 2>&1 &
    until [[ -e pid.$port ]]; do sleep 0.01; done ;;
  stop)
    echo "$port" >>stopped
    [[ -e pid.$port ]] || exit 0
    kill -TERM "$(cat "pid.$port")" 2>/dev/null || true
    until [[ -e exit.$port ]]; do sleep 0.01; done
    rm -f "pid.$port" ;;
  enable | disable) echo "$1 $port" >>installed ;;
esac
`;

export interface UnitLine {
  readonly msg: string;
  readonly [field: string]: unknown;
}

export class Units {
  readonly #folder: string;
  readonly #env: Readonly<Record<string, string | undefined>>;

  /** The units end with the test. @param env of the units; ENTRY is the compiled program */
  constructor(t: Test, folder: string, env: Readonly<Record<string, string>> & { readonly ENTRY: string }) {
    this.#folder = folder;
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'systemctl'), systemctl, { mode: 0o755 });
    this.#env = {
      PATH: [folder, process.env['PATH']].join(delimiter),
      NODE: process.execPath,
      RELEASE: packageRoot,
      ...env,
    };
    t.teardown(async () => {
      for (const pid of this.#pids) process.kill(pid, 'SIGKILL');
      // The shell of each writes how it ended: not into a folder that is being removed.
      await until(() => this.#pids.length === 0);
    });
  }

  /** The environment for a script, with this `systemctl` in PATH. */
  get env(): Record<string, string | undefined> {
    return { ...this.#env };
  }

  /** Sets a variable of one unit. */
  set(port: number, variable: string): void {
    writeFileSync(join(this.#folder, `env.${port}`), variable);
  }

  run(command: string, port: number): number | null {
    return spawnSync(join(this.#folder, 'systemctl'), [command, `syrinx@${port}`], { env: this.env }).status;
  }

  log(port: number): UnitLine[] {
    return this.#read(`log.${port}`)
      .split('\n')
      .filter((line) => line.startsWith('{') && line.endsWith('}'))
      .map((line) => JSON.parse(line) as UnitLine);
  }

  exitCode(port: number): string {
    return this.#read(`exit.${port}`).trim();
  }

  /** The ports of all units that were stopped, in order. */
  get stopped(): string[] {
    return this.#read('stopped').trim().split('\n');
  }

  /** One line for each enable and disable. */
  get installed(): string[] {
    return this.#read('installed').trim().split('\n');
  }

  get #pids(): number[] {
    const ports = new Set(this.#read('started').split('\n').filter(Boolean));
    return [...ports]
      .filter((port) => existsSync(join(this.#folder, `pid.${port}`)))
      .filter((port) => !existsSync(join(this.#folder, `exit.${port}`)))
      .map((port) => Number(this.#read(`pid.${port}`)));
  }

  #read(name: string): string {
    const path = join(this.#folder, name);
    return existsSync(path) ? readFileSync(path, 'utf8') : '';
  }
}
