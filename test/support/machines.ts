/**
 * Machines for a test: each has a root of its own, which begins as a copy of this one (overlayfs), and an address in a network
 * of their own. So a page's commands run as printed, and change nothing here. Debian's packages are those of this machine.
 *
 * There is no systemd, sudo or apt-get in a machine: small scripts stand in for what the pages use of them.
 */
import { spawn, spawnSync } from 'node:child_process';
import { appendFileSync, chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { temporaryFolder } from '../store/support.js';
import { packageRoot } from './package-root.js';

/** Debian starts a server when it is installed. */
const aptGet = `#!/bin/sh
set -eu
[ "$1 $2" = 'install --no-install-recommends' ] || { echo "apt-get $*: not known here" >&2; exit 1; }
shift 2
for package; do
  dpkg -s "$package" >/dev/null
  case $package in postgresql | nginx | haproxy) systemctl start "$package" ;; esac
done
`;

const sudo = `#!/bin/sh
[ "$1" = -u ] || { echo "sudo $*: not known here" >&2; exit 1; }
user=$2
shift 2
[ "$1" != -H ] || shift
exec setpriv --reuid "$user" --regid "$user" --init-groups env HOME="$(getent passwd "$user" | cut -d: -f6)" "$@"
`;

/** Like systemctl's, \`stop\` returns when the process has ended. The service gets what syrinx@.service gives it. */
const systemctl = `#!/bin/sh
set -eu
act=$1 unit=$2 port=\${2#syrinx@} pid=/run/syrinx.pid
case "$act $unit" in
  'edit syrinx@') exit ;;
  'start postgresql') mkdir -p /run/postgresql && chown postgres: /run/postgresql && set -- $(pg_lsclusters -h | head -1) && pg_ctlcluster "$1" "$2" start ; exit ;;
  'restart postgresql') set -- $(pg_lsclusters -h | head -1) && pg_ctlcluster "$1" "$2" restart ; exit ;;
  'start nginx') nginx ; exit ;;
  'reload nginx') nginx -s reload ; exit ;;
  'start haproxy') exit ;;
  'reload haproxy') haproxy -D -n 2000 -f /etc/haproxy/haproxy.cfg ; exit ;;
  *syrinx@[0-9]*) ;;
  *) echo "systemctl $*: not known here" >&2 ; exit 1 ;;
esac
case $act in stop | restart)
  if [ -e $pid ]; then
    kill -TERM "$(cat $pid)"
    # A process that no one waits for stays as a zombie.
    while grep -qs '^State:[^Z]*$' "/proc/$(cat $pid)/status"; do sleep 0.1; done
    rm $pid
  fi
esac
case $act in start | restart)
  cd /opt/syrinx/current
  set -a
  PORT=$port OPS_PORT=1$port CONSOLE_PORT=2$port DATA_DIR=/var/lib/syrinx
  . /etc/syrinx/env
  setpriv --reuid syrinx --regid syrinx --init-groups setsid \\
    node_modules/.bin/node --disable-warning=ExperimentalWarning dist/src/main.js >>/var/log/syrinx.log 2>&1 &
  echo $! >$pid
esac
`;

/** What an operator writes with an editor: the test has made that already. */
const editor = '#!/bin/sh\n[ -e "$1" ]\n';

const stands = { 'apt-get': aptGet, sudo, systemctl, editor } as const;

const must = (program: string, ...args: readonly string[]): void => {
  const { error, status, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${error?.message ?? stderr}`);
};

/** Whether this user may make machines; otherwise why not. */
export const cannotMakeMachines = (): string | false => {
  if (process.getuid?.() !== 0) return 'needs root';
  const tried = spawnSync('unshare', ['--mount', '--net', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt']);
  return tried.status === 0 ? false : 'this user may not mount, or may not make networks';
};

export interface Ran {
  readonly code: number | null;
  readonly output: string;
}

export class Machine {
  readonly root: string;
  readonly #namespace: string;

  constructor(root: string, namespace: string) {
    this.root = root;
    this.#namespace = namespace;
  }

  /** Runs shell commands as root. */
  run(code: string): Promise<Ran> {
    const args = ['netns', 'exec', this.#namespace, 'chroot', this.root, 'sh', '-ec', code];
    const child = spawn('ip', args, {
      // The stand-ins come first.
      env: { PATH: '/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/root', LANG: 'C.UTF-8' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (bytes: Buffer) => (output += bytes.toString()));
    // What it started in the background keeps the pipes open.
    return new Promise((resolve) =>
      child.once('exit', (code) => setImmediate(() => resolve({ code, output }))),
    );
  }

  write(path: string, text: string): void {
    appendFileSync(join(this.root, path), text);
  }
}

export class Machines {
  readonly #t: Test;
  readonly #folder: string;
  readonly #switch: string;
  #count = 0;

  constructor(t: Test) {
    this.#t = t;
    this.#folder = temporaryFolder(t);
    this.#switch = this.#addNamespace('switch');
    must('ip', '-n', this.#switch, 'link', 'add', 'bridge', 'type', 'bridge');
    must('ip', '-n', this.#switch, 'link', 'set', 'bridge', 'up');
  }

  /** @param address with the length of its network */
  add(name: string, address: string): Machine {
    const namespace = this.#addNamespace(name);
    const port = `port${++this.#count}`;
    must(
      'ip',
      '-n',
      this.#switch,
      'link',
      'add',
      port,
      'type',
      'veth',
      'peer',
      'name',
      'eth0',
      'netns',
      namespace,
    );
    must('ip', '-n', this.#switch, 'link', 'set', port, 'up', 'master', 'bridge');
    must('ip', '-n', namespace, 'address', 'add', address, 'dev', 'eth0');
    for (const link of ['lo', 'eth0']) must('ip', '-n', namespace, 'link', 'set', link, 'up');
    const machine = new Machine(this.#addRoot(name), namespace);
    for (const [program, text] of Object.entries(stands)) {
      const path = join(machine.root, 'usr/local/bin', program);
      writeFileSync(path, text);
      chmodSync(path, 0o755);
    }
    return machine;
  }

  #addNamespace(name: string): string {
    const namespace = `syrinx-${process.pid}-${name}`;
    must('ip', 'netns', 'add', namespace);
    this.#t.teardown(() => {
      const { stdout } = spawnSync('ip', ['netns', 'pids', namespace], { encoding: 'utf8' });
      for (const pid of stdout.split('\n').filter(Boolean)) process.kill(Number(pid), 'SIGKILL');
      must('ip', 'netns', 'delete', namespace);
    });
    return namespace;
  }

  /** With this checkout in the place of the archive. */
  #addRoot(name: string): string {
    const changes = join(this.#folder, name);
    mkdirSync(changes);
    this.#mount(changes, '-t', 'tmpfs', 'tmpfs');
    const root = this.#overlay('/', changes, join(changes, 'root'));
    for (const kept of ['dev', 'proc']) this.#mount(join(root, kept), '--rbind', `/${kept}`);
    this.#mount(join(root, 'tmp'), '-t', 'tmpfs', 'tmpfs');
    mkdirSync(join(root, 'opt/syrinx/current'), { recursive: true });
    this.#overlay(packageRoot, join(changes, 'release'), join(root, 'opt/syrinx/current'));
    // A checkout may be for its owner alone; the archive's files are for all.
    chmodSync(join(root, 'opt/syrinx/current'), 0o755);
    return root;
  }

  #overlay(lower: string, changes: string, place: string): string {
    for (const folder of [join(changes, 'upper'), join(changes, 'work'), place])
      mkdirSync(folder, { recursive: true });
    const layers = `lowerdir=${lower},upperdir=${join(changes, 'upper')},workdir=${join(changes, 'work')}`;
    this.#mount(place, '-t', 'overlay', 'overlay', '-o', layers);
    return place;
  }

  #mount(place: string, ...what: readonly string[]): void {
    must('mount', '--make-private', ...what, place);
    this.#t.teardown(() => must('umount', '--lazy', '--recursive', place));
  }
}
