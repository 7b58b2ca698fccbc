/**
 * Runs the commands of hosts.md as printed, on five machines with the addresses of the page. The archive is this checkout; instead of an
 * editor's work there is a certificate for the name that the site files have.
 */
import t, { type Test } from 'tap';
import { cannotMakeMachines, Machines, type Machine } from '../support/machines.js';
import { hasPostgres } from '../support/postgres.js';
import { until } from '../support/service.js';
import { readSource } from '../support/source-files.js';
import { missingTool } from '../support/tools.js';

const blocks = [...readSource('scripts/deploy/hosts.md').matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(
  ([, code = '']) => code,
);

/** The only block that contains a text. */
const block = (text: string): string => {
  const found = blocks.filter((code) => code.includes(text));
  if (found.length !== 1) throw new Error(`the page has ${found.length} blocks with "${text}"`);
  return found[0]!;
};

const linesOf = (code: string): string[] => code.trimEnd().split('\n');

const readyWaits =
  'curl -fs --retry 30 --retry-delay 1 --retry-all-errors --max-time 2 http://127.0.0.1:18080/readyz';

/** As README.md has it for each machine; the page begins after that. */
const install = `
  useradd --system --home-dir /var/lib/syrinx --shell /usr/sbin/nologin syrinx
  mkdir -p /etc/syrinx && install -d -m 700 -o syrinx -g syrinx /var/lib/syrinx
  echo SYNTHESIS_THREADS=1 >>/etc/syrinx/env`;

/** The default of PostgreSQL 13. */
const oldPasswords = `
  systemctl start postgresql
  sudo -u postgres psql -c "ALTER SYSTEM SET password_encryption = 'md5'"
  set -- $(pg_lsclusters -h | head -1)
  pg_ctlcluster "$1" "$2" stop`;

const certificate = `
  mkdir -p /etc/ssl/syrinx
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=speech.example.com \\
    -keyout /etc/ssl/syrinx/privkey.pem -out /etc/ssl/syrinx/fullchain.pem 2>&1`;

const run = async (t: Test, machine: Machine, code: string): Promise<string> => {
  const { code: status, output } = await machine.run(code);
  t.equal(status, 0, `${linesOf(code)[0] ?? ''}\n${status === 0 ? '' : output}`);
  return output;
};

const skip = cannotMakeMachines() || missingTool('ip', 'nginx', 'haproxy', 'openssl', 'curl', 'setpriv');

if (hasPostgres())
  t.test('hosts.md, from one host to three', { skip }, async (t) => {
    const machines = new Machines(t);
    const database = machines.add('database', '10.0.0.9/24');
    const hosts = [1, 2, 3].map((number) => machines.add(`host${number}`, `10.0.0.${number}/24`));
    const [first, second, third] = hosts as [Machine, Machine, Machine];
    for (const host of hosts) await run(t, host, install);
    // What an operator has before: one host, with accounts.
    await run(t, first, `systemctl start syrinx@8080\n${readyWaits}`);
    const key = (await run(t, first, 'cat /var/lib/syrinx/first-key')).trim();

    await run(t, database, oldPasswords);
    await run(t, database, block('createdb'));
    for (const [i, host] of hosts.entries())
      await run(t, host, block('HOST=10.0.0.1').replace('HOST=10.0.0.1', `HOST=10.0.0.${i + 1}`));
    const move = linesOf(block('store -- copy'));
    const [alias = ''] = move.filter((line) => line.startsWith('alias'));
    const [restart = ''] = move.filter((line) => line.includes('on each host'));
    const syrinx = (command: string) => `${alias}\n${command}`;
    t.match(await run(t, first, move.filter((line) => line !== restart).join('\n')), /is good/);
    for (const host of hosts) await run(t, host, restart);
    for (const host of hosts) await run(t, host, readyWaits);

    const writersOf = async (): Promise<string[]> => {
      const [list = ''] = linesOf(block('declare-dead'));
      return linesOf(await run(t, third, syrinx(list))).slice(1);
    };
    t.equal((await writersOf()).length, 3);

    const proxies = { nginx: block('syrinx-upstream.conf'), haproxy: block('haproxy.cfg') };
    const speak = (proxy: Machine, withKey: string) =>
      proxy.run(`curl -fsk -o /dev/null -w '%{http_code}' https://127.0.0.1/v1/tts -H 'content-type: application/json' \\
      -H 'x-api-key: ${withKey}' -d '{"text": "Good morning.", "voice": "wren"}'`);
    const made = await run(t, second, syrinx('syrinx keys -- create --account ada --credits 1000'));
    const ada = /svc_sk_\w+/.exec(made)?.[0] ?? '';
    for (const [i, [kind, code]] of Object.entries(proxies).entries()) {
      const proxy = machines.add(kind, `10.0.0.${20 + i}/24`);
      await run(t, proxy, certificate);
      await run(t, proxy, `cd /opt/syrinx/current\n${code}`);
      for (const each of [key, ada])
        t.ok(await until(async () => (await speak(proxy, each)).output === '200'), `${kind} serves the key`);
      await run(t, first, block('&& sleep 5'));
      t.match(await speak(proxy, key), { code: 0, output: '200' }, `${kind}: the first host was restarted`);
    }
    t.match(await run(t, third, syrinx('syrinx usage')), /^ada +2 /m, 'each host knows what all have spoken');

    // A host that will never come back.
    const pid = (await run(t, second, 'cat /run/syrinx.pid')).trim();
    const [writer = ''] = (await writersOf())
      .filter((line) => line.includes(`:${pid} `))
      .map((line) => /\d+/.exec(line)?.[0]);
    await run(t, second, `kill -KILL ${pid}`);
    const [, declare = ''] = linesOf(block('declare-dead'));
    t.match(await run(t, third, syrinx(declare.replace('WRITER', writer))), /can be spent by others/);
    t.equal((await writersOf()).length, 2);
  });
