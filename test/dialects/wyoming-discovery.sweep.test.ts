/** What Home Assistant finds by itself: with the library for zeroconf that it uses, in a network of its own. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import t, { type Test } from 'tap';
import { cannotMakeMachines } from '../support/machines.js';
import { packageRoot } from '../support/package-root.js';
import { SCRIPTED, startService, type TestService } from '../support/service.js';
import { missingTool, pythonWith } from '../support/tools.js';
import { until } from '../support/waiting.js';

const address = '10.77.0.5';
/** One card, on which the service and the browser hear each other. */
const network = `ip link set lo up && ip link add lan type veth peer name other && ip link set other up &&
  ip address add ${address}/24 dev lan && ip link set lan up && ip route add 224.0.0.0/4 dev lan && exec "$@"`;

interface Found {
  readonly state: string;
  readonly name?: string;
  readonly port?: number;
  readonly addresses?: readonly string[];
}

const python = pythonWith('zeroconf');
const isRequired = process.env['SYRINX_CI_REQUIRE_ALL'] === '1';
const skip =
  cannotMakeMachines() ||
  missingTool('ip', 'unshare', 'nsenter') ||
  (python === undefined && !isRequired ? 'no python3 with zeroconf' : false);

const start = (t: Test, env: Readonly<Record<string, string>>): Promise<TestService> =>
  startService(
    t,
    { WYOMING_PORT: '0', WYOMING_ACCOUNT: 'default', SYNTHESIS_THREADS: '1', ...env },
    SCRIPTED,
    ['unshare', '--net', 'sh', '-c', network, 'sh'],
  );

/** Browses the network of a service. */
const browse = async (t: Test, { pid }: TestService): Promise<readonly Found[]> => {
  const args = [
    '-t',
    String(pid),
    '-n',
    python ?? 'python3',
    join(packageRoot, 'test/support/browse_wyoming.py'),
  ];
  const browser = spawn('nsenter', args, { stdio: ['pipe', 'pipe', 'inherit'] });
  t.teardown(() => browser.kill());
  const found: Found[] = [];
  const lines = createInterface({ input: browser.stdout });
  lines.on('line', (line) => found.push(JSON.parse(line) as Found));
  await once(lines, 'line');
  return found;
};

t.test('a port that other machines reach is found', { skip }, async (t) => {
  const service = await start(t, { WYOMING_HOST: '0.0.0.0', WYOMING_ALLOW: '10.77.0.0/24' });
  const found = await browse(t, service);
  t.ok(await until(() => found.length > 1));
  const { port = 0 } = found[1] ?? {};
  t.match(found[1], {
    state: 'Added',
    name: /^Syrinx on .+\._wyoming\._tcp\.local\.$/,
    addresses: [address],
  });
  const ask = `exec 3<>/dev/tcp/${address}/${port} && echo '{"type": "describe"}' >&3 && head -1 <&3`;
  const { stdout } = spawnSync('nsenter', ['-t', String(service.pid), '-n', 'bash', '-c', ask], {
    encoding: 'utf8',
  });
  t.match(stdout, /"type":"info"/, 'the service is there');
  await service.stop();
});

t.test('a port of this machine alone is not announced', { skip }, async (t) => {
  const service = await start(t, { WYOMING_HOST: '127.0.0.1' });
  const found = await browse(t, service);
  // Longer than the other test needs to find its service.
  await until(() => found.length > 1, 3_000);
  t.same(found, [{ state: 'Browsing' }]);
  await service.stop();
});

/** Questions that point to one long name: a datagram of 64 KB, which takes seconds to read, and then what a frame can hold. */
const hostileQuestions = `
import socket, struct
def datagram(size):
    name = b'\\x01a' * (size // 4) + b'\\0'
    count = (size - 16 - len(name)) // 6
    questions = name + struct.pack('>HH', 12, 1) + (b'\\xc0\\x0c' + struct.pack('>HH', 12, 1)) * count
    return struct.pack('>HHHHHH', 0, 0, count + 1, 0, 0, 0) + questions
to = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for size in [65_000] + [1_470] * 1_000:
    to.sendto(datagram(size), ('${address}', 5353))
`;

t.test('questions that take long to read hold up nothing', { skip }, async (t) => {
  const service = await start(t, { WYOMING_HOST: '0.0.0.0', WYOMING_ALLOW: '10.77.0.0/24' });
  const inNetwork = (...command: readonly string[]) =>
    spawnSync('nsenter', ['-t', String(service.pid), '-n', ...command], { encoding: 'utf8' });
  t.equal(inNetwork('python3', '-c', hostileQuestions).status, 0);
  // Without a bound the first one takes 20 s, and the others 10 s.
  const { stdout, stderr } = inNetwork('curl', '-sS', '-m', '5', `${service.url}/nothing`);
  t.match(stdout, /Not Found/, stderr);
  const found = await browse(t, service);
  t.ok(await until(() => found.length > 1), 'it is found when they are over');
  await service.stop();
});
