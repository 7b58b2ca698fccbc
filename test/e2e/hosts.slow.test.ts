/** Several hosts behind nginx and HAProxy, with the files of scripts/deploy: a key stays on one host, whichever header carries it. */
import { cpSync } from 'node:fs';
import { createServer, get, type IncomingMessage, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { createKeys } from '../../scripts/operator.js';
import { connect, SyrinxError } from '../../src/client/index.js';
import { HostsProxy, type HostsProxyKind } from '../../scripts/rig/proxy.js';
import { isNight, seedOfRun } from '../fuzz/check.js';
import { temporaryFolder } from '../store/support.js';
import { hasPostgres, startPostgres } from '../support/postgres.js';
import {
  freePort,
  prose,
  SCRIPTED,
  speech,
  startService,
  until,
  type TestService,
  pause,
} from '../support/service.js';
import { openNative } from '../support/socket-client.js';
import { missingTool } from '../support/tools.js';

const slotsPerKey = 9;
/** nginx tries a host again two seconds after a failure, HAProxy checks it after one. */
const foundAgainMs = 4_000;
const drainMs = 2_000;
/** For threads and store, after the drain. */
const endMsMax = 15_000;

interface Echo {
  readonly port: number;
  readonly close: () => Promise<void>;
}

/** A host that answers with its own name. */
const startEcho = async (name: string, port = 0): Promise<Echo> => {
  const server: Server = createServer((request: IncomingMessage, response) => {
    response.setHeader('connection', 'close').end(request.url === '/readyz' ? '{}' : name);
  }).listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
};

const keys = Array.from({ length: 30 }, (_, i) => `svc_sk_${(i * 7_919 + 13).toString(36).padEnd(43, 'q')}`);

const startProxy = async (t: Test, kind: HostsProxyKind, hosts: readonly number[]): Promise<number> => {
  const proxy = await HostsProxy.start(kind, temporaryFolder(t), hosts);
  t.teardown(() => proxy.kill());
  return proxy.port;
};

const keyDecides = async (t: Test, kind: HostsProxyKind): Promise<void> => {
  const names = ['a', 'b', 'c'];
  const hosts = await Promise.all(names.map((host) => startEcho(host)));
  t.teardown(async () => {
    for (const host of hosts) await host.close();
  });
  const proxyPort = await startProxy(
    t,
    kind,
    hosts.map(({ port }) => port),
  );
  const hostOf = async (headers: Record<string, string>): Promise<string> => {
    const answer = await fetch(`http://127.0.0.1:${proxyPort}/v1/tts/speakers`, { headers });
    return answer.status === 200 ? answer.text() : `${answer.status}`;
  };
  const hostOfTwice = async (...keys: string[]): Promise<string> => {
    const request = get({
      ...{ host: '127.0.0.1', port: proxyPort, path: '/v1/tts/speakers', agent: false },
      headers: { 'x-api-key': keys },
    });
    const [answer] = (await once(request, 'response')) as [IncomingMessage];
    return Buffer.concat(await answer.toArray()).toString();
  };
  const hostsOf = async (): Promise<string[]> => {
    const found: string[] = [];
    for (const key of keys) found.push(await hostOf({ 'x-api-key': key }));
    return found;
  };

  const before = await hostsOf();
  t.same([...new Set(before)].sort(), names, 'every host has some of the keys');
  t.same(await hostsOf(), before, 'a key stays where it is');
  for (const [i, key] of keys.slice(0, 10).entries()) {
    const others: Record<string, string>[] = [
      { 'xi-api-key': key },
      { authorization: `Bearer ${key}` },
      { authorization: `bearer  ${key}` },
      { authorization: key },
      { 'x-api-key': key, 'xi-api-key': `other-${i}`, authorization: `Bearer other-${i}` },
      { 'xi-api-key': key, authorization: `Bearer other-${i}` },
    ];
    for (const headers of others) t.equal(await hostOf(headers), before[i], Object.keys(headers).join());
    // The service reads the first one.
    t.equal(await hostOfTwice(key, `other-${i}`), before[i], 'the header comes twice');
  }
  const keyless = await Promise.all(Array.from({ length: 9 }, () => hostOf({})));
  t.equal(new Set(keyless).size, 1, 'requests without a key have one fixed host');

  await hosts[1]!.close();
  const without = await hostsOf();
  for (const [i, host] of without.entries())
    if (before[i] === 'b') t.match(host, /^[ac]$/, 'its keys move');
    else t.equal(host, before[i], 'all others stay');
  t.same(await hostsOf(), without);
  hosts[1] = await startEcho('b', hosts[1]!.port);
  const areBack = async () => {
    await pause(500);
    return (await hostsOf()).join() === before.join();
  };
  t.ok(await until(areBack, 3 * foundAgainMs), 'they come back');
};

/** More than all buffers on the way to a client that does not read. */
const text = 'A long text for a slow reader. '.repeat(80);

/** Streams whose client does not read them: each holds a slot of its key. */
const openStreams = async (port: number, key: string, count: number) => {
  const control = new AbortController();
  const answers = await Promise.all(
    Array.from({ length: count }, () =>
      fetch(`http://127.0.0.1:${port}/v1/tts/stream`, {
        method: 'POST',
        headers: { 'x-api-key': key, 'content-type': 'application/json' },
        body: JSON.stringify({
          text,
          voice: 'wren',
          response_format: { encoding: 'pcm', sample_rate: 48_000 },
        }),
        signal: control.signal,
      }),
    ),
  );
  const granted = answers.filter(({ status }) => status === 200).length;
  const refused = answers.filter(({ status }) => status === 429).length;
  return { granted, refused, end: () => control.abort() };
};

const folder = temporaryFolder(t);
const [key = ''] = await createKeys(join(folder, 'seed'), [['ada', null]]);
/** Each has a store of its own, with the same key. */
const startHost = (i: number): Promise<TestService> => {
  const dataDir = join(folder, `host-${i}`);
  cpSync(join(folder, 'seed'), dataDir, { recursive: true });
  return startService(t, { DATA_DIR: dataDir, DRAIN_SECONDS: String(drainMs / 1_000) }, SCRIPTED);
};
const hosts = [await startHost(0), await startHost(1), await startHost(2)];

const slotsAreOfAllHosts = async (t: Test, kind: HostsProxyKind): Promise<void> => {
  const proxyPort = await startProxy(
    t,
    kind,
    hosts.map(({ port }) => port),
  );
  const socket = await openNative(proxyPort, key);
  const streams = await openStreams(proxyPort, key, slotsPerKey + 3);
  t.match(streams, { granted: slotsPerKey, refused: 3 }, 'nine slots over all hosts');
  const statuses = await Promise.all(hosts.map((host) => host.status()));
  const home = statuses.findIndex(({ requestsInFlight }) => requestsInFlight > slotsPerKey);
  t.ok(home >= 0, 'one host has all streams of the key, and its WebSocket');
  t.same(
    statuses.filter((_, i) => i !== home).map(({ requestsInFlight }) => requestsInFlight),
    [0, 0],
  );

  const leavingMs = performance.now();
  const left = hosts[home]!.stop();
  t.match(await socket.closing(), { code: 1001 }, 'the quiet WebSocket is closed');
  const more = await openStreams(proxyPort, key, slotsPerKey + 3);
  t.match(more, { granted: slotsPerKey, refused: 3 }, 'nine more on another host, while the first drains');
  await left;
  const bothMs = performance.now() - leavingMs;
  t.ok(
    bothMs < drainMs + endMsMax,
    `the key had eighteen for ${Math.round(bothMs)} ms, no longer than DRAIN_SECONDS and the end`,
  );
  streams.end();
  more.end();
  if (isNight) hosts[home] = await startHost(hosts.length + home);
};

/** What a host sees of a request: how its length was announced, and how long it was. */
interface Seen {
  readonly announced: string | null;
  readonly coding: string | null;
  readonly bytes: number;
}

const chunked = (pieces: readonly string[]): ReadableStream =>
  ReadableStream.from(pieces.map((piece) => Buffer.from(piece)));

/** The service answers 411 to a chunked body, and clients that do not know their length in advance send nothing else. */
const chunksAreJoined = async (t: Test, kind: HostsProxyKind): Promise<void> => {
  const service = hosts.find(({ exit }) => exit === null)!;
  const proxyPort = await startProxy(t, kind, [service.port, service.port, service.port]);
  const post = (port: number, pieces: readonly string[], headers = {}) =>
    fetch(`http://127.0.0.1:${port}/v1/tts`, {
      method: 'POST',
      headers: { 'x-api-key': key, 'content-type': 'application/json', ...headers },
      body: chunked(pieces),
      duplex: 'half',
    });
  const body = JSON.stringify(speech(prose(3)));
  t.equal((await post(service.port, [body])).status, 411, 'the service itself');
  t.equal((await post(proxyPort, [body])).status, 200);
  t.equal((await post(proxyPort, body.match(/./gs) ?? [])).status, 200, 'a chunk for each character');
};

/** Where HAProxy keeps a body whole, and where it does not, no part of a body may pass for the whole. */
const lengthsAreTrue = async (t: Test): Promise<void> => {
  const server = createServer((request, response) => {
    void request.toArray().then((pieces) => {
      const { 'content-length': announced = null, 'transfer-encoding': coding = null } = request.headers;
      const seen: Seen = { announced, coding, bytes: Buffer.concat(pieces as Buffer[]).length };
      response.setHeader('connection', 'close').end(JSON.stringify(seen));
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  const proxyPort = await startProxy(t, 'haproxy', [port, port, port]);
  const headOf = (bytes: number) =>
    Object.fromEntries(Array.from({ length: bytes / 80 }, (_, i) => [`x-more-${i}`, 'h'.repeat(70)]));
  for (const headBytes of [0, 7_200])
    for (const bytes of [0, 1, 5_000, 11_000, 12_288, 14_000, 16_384, 50_000])
      for (const pieceBytes of [64, bytes || 1]) {
        const pieces = Array.from({ length: Math.ceil(bytes / pieceBytes) }, (_, i) =>
          'b'.repeat(Math.min(pieceBytes, bytes - i * pieceBytes)),
        );
        const answer = await fetch(`http://127.0.0.1:${proxyPort}/v1/tts`, {
          method: 'POST',
          headers: headOf(headBytes),
          body: chunked(pieces),
          duplex: 'half',
        });
        const seen = (await answer.json()) as Seen;
        const name = `${bytes} bytes in pieces of ${pieceBytes}, after a head of ${headBytes}`;
        t.equal(seen.bytes, bytes, name);
        if (seen.coding === null) t.equal(seen.announced, String(bytes), name);
        else t.ok(headBytes + bytes > 11_000, `${name}: it is short enough to be whole`);
      }
};

const creditsPerKey = 10_000_000;
/** The cores are for the starts of hosts, and not for encoders. */
const cheap = { response_format: { encoding: 'mulaw', sample_rate: 8_000 } };

/**
 * Every host stops and starts again, one after the other, while clients ask for speech. All hosts speak for the same two
 * metered accounts.
 */
const restartsAreNotSeen = async (t: Test, kind: HostsProxyKind): Promise<void> => {
  const folder = temporaryFolder(t);
  const server = await startPostgres();
  t.teardown(() => server.stop());
  const { name, url } = await server.database();
  const seeds = Array.from({ length: 8 }, (_, i) => [`account-${i % 2}`, creditsPerKey] as const);
  const keys = await createKeys(folder, seeds, url);
  const ports = [await freePort(), await freePort(), await freePort()];
  const started: TestService[] = [];
  const start = async (i: number): Promise<TestService> => {
    const dataDir = join(folder, `host-${i}`);
    const env = { DATA_DIR: dataDir, STORE_URL: url, PORT: String(ports[i]), SYNTHESIS_THREADS: '1' };
    const service = await startService(t, env, SCRIPTED);
    started.push(service);
    return service;
  };
  const hosts = [await start(0), await start(1), await start(2)];
  const proxyPort = await startProxy(t, kind, ports);

  let isOver = false;
  let answered = 0;
  /** Characters of all requests that were answered. */
  let spoken = 0;
  const failures: unknown[] = [];
  const ask = async (key: string, text: string, path: string): Promise<void> => {
    while (!isOver) {
      const body = JSON.stringify(speech(text, cheap));
      const headers = { 'x-api-key': key, 'content-type': 'application/json' };
      try {
        const answer = await fetch(`http://127.0.0.1:${proxyPort}${path}`, { method: 'POST', headers, body });
        await answer.text();
        if (answer.status === 200) spoken += text.length;
        else failures.push(answer.status);
      } catch (error) {
        failures.push(error);
      }
      answered += 1;
      // The moments of a restart are met often enough; more would only keep the cores from the start.
      await pause(100);
    }
  };
  let connected = 0;
  /** Over a WebSocket. Repeats what failed as the client's page says: only if nothing of it was heard. */
  const converse = async (apiKey: string): Promise<void> => {
    const client = await connect({
      url: `http://127.0.0.1:${proxyPort}`,
      apiKey,
      onEvent: ({ type }) => void (connected += type === 'open' ? 1 : 0),
    });
    while (!isOver) {
      let heard = 0;
      try {
        const context = client.context({ voiceId: 'wren' });
        context.send(prose(3));
        void context.close();
        for await (const audio of context.audio) heard += audio.length;
        spoken += prose(3).length;
        answered += 1;
      } catch (error) {
        if (heard > 0 || !(error instanceof SyrinxError && error.retryable)) failures.push(error);
      }
      // A socket that never rests is closed only at the end of the drain.
      await pause(50);
    }
    await client.close();
  };
  const asking = Promise.all(
    keys.flatMap((key) => [ask(key, 'Yes.', '/v1/tts'), ask(key, prose(3), '/v1/tts/stream'), converse(key)]),
  );
  const hostsWithCredit = async (): Promise<number> => {
    const rows = await server.execute(
      name,
      'SELECT count(*)::int AS hosts FROM syrinx.reservations GROUP BY account_id',
    );
    return Math.max(0, ...rows.map(({ hosts }) => Number(hosts)));
  };
  for (const [i, host] of hosts.entries()) {
    const before = answered;
    t.ok(await until(async () => (await hostsWithCredit()) > 1), 'hosts share the credit of an account');
    t.match(await host.stop(), { code: 0 });
    hosts[i] = await start(i);
    t.ok(await until(() => answered > before + 20), 'clients go on');
    // As hosts.md says, so that the proxy finds the host again.
    await pause(foundAgainMs);
  }
  isOver = true;
  await asking;
  const reports = started.flatMap(({ entries }) =>
    entries.filter(({ level, status }) => Number(level) >= 50 || Number(status) >= 400),
  );
  t.same(
    failures,
    [],
    `of ${answered} requests and utterances: ${failures.length === 0 ? '' : JSON.stringify(reports)}`,
  );
  t.ok(connected > keys.length, `${keys.length} WebSockets were connected ${connected} times`);
  for (const host of hosts) t.match(await host.stop(), { code: 0 });
  t.equal(await hostsWithCredit(), 0, 'hosts that have ended hold no credit');
  const [row] = await server.execute(name, 'SELECT sum(balance)::bigint AS balance FROM syrinx.accounts');
  t.equal(keys.length * creditsPerKey - Number(row?.['balance']), spoken, 'each character is charged once');
};

const isPostgresThere = hasPostgres();
const kinds = ['nginx', 'haproxy'] as const;
/** What starts three hosts runs behind one of the two each day, and by night behind both. */
const kindOfDay = kinds[seedOfRun() % 2];
for (const kind of kinds) {
  const skip = missingTool(kind);
  t.test(`${kind}: the key decides the host`, { skip }, (t) => keyDecides(t, kind));
  t.test(`${kind}: a client that sends chunks is served`, { skip }, (t) => chunksAreJoined(t, kind));
  if (!isNight && kind !== kindOfDay) continue;
  t.test(`${kind}: a key has nine slots over all hosts`, { skip }, (t) => slotsAreOfAllHosts(t, kind));
  // For 40 s all cores are busy, and PostgreSQL must answer within a second.
  if (isPostgresThere && isNight)
    t.test(`${kind}: a restart of each host fails no request`, { skip }, (t) => restartsAreNotSeen(t, kind));
}
t.test('haproxy: no part of a body passes for the whole', { skip: missingTool('haproxy') }, lengthsAreTrue);
