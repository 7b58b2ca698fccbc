/** One account with many keys does its worst, for almost nothing; the others speak on. */
import t from 'tap';
import { createKeys } from '../../scripts/operator.js';
import { limits } from '../../src/limits.js';
import { startService, until } from '../support/service.js';
import { openWs } from '../support/socket-client.js';

const KEYS = 4;
const SOCKETS_A_KEY = 16;
const CONTEXTS_A_SOCKET = 64;
const RESTARTS_A_SOCKET = 100;
const voice = { voice_id: 'wren' };

t.test(
  'four keys of one account with one credit hold all contexts that they can; other accounts are served',
  async (t) => {
    const service = await startService(t);
    const { dataDir, port } = service;
    const keys = await createKeys(
      dataDir,
      Array.from({ length: KEYS }, (_, i) => ['greedy', i === 0 ? 1 : null] as const),
    );
    const [other = ''] = await createKeys(dataDir, [['other', 10_000]]);
    const sockets = await Promise.all(
      keys.flatMap((key) => Array.from({ length: SOCKETS_A_KEY }, () => openWs(port, key))),
    );
    for (const socket of sockets) for (let i = 0; i < CONTEXTS_A_SOCKET; i++) socket.start(`c${i}`, voice);
    const answers = () => sockets.reduce((sum, { frames }) => sum + frames.length, 0);
    await until(() => answers() === KEYS * SOCKETS_A_KEY * CONTEXTS_A_SOCKET);
    const started = sockets.reduce(
      (sum, { frames }) => sum + frames.filter((frame) => frame.context_started !== undefined).length,
      0,
    );
    const half = limits.contextsMax / 2;
    t.ok(started > 0.9 * half && started <= half, `${started} contexts started: half of what others leave`);
    const isServed = async (during: string) => {
      for (let i = 0; i < 3; i++) {
        const answer = await service.post(
          '/v1/tts/stream',
          { text: 'Still here.', voice: 'wren' },
          { key: other },
        );
        t.equal(answer.status, 200, during);
        t.match(await answer.text(), /^data: /, during);
      }
    };
    await isServed('they are open');
    for (const socket of sockets)
      for (let i = 0; i < CONTEXTS_A_SOCKET; i++) socket.send({ send_text: ' ', context_id: `c${i}` });
    await isServed('they get white space');
    const before = answers();
    for (const socket of sockets)
      for (let i = 0; i < CONTEXTS_A_SOCKET; i++) socket.send({ flush: true, context_id: `c${i}` });
    await until(() => answers() === before + KEYS * SOCKETS_A_KEY * CONTEXTS_A_SOCKET);
    await isServed('they are flushed');
    const mp3 = { ...voice, response_format: { encoding: 'mp3' } };
    for (const socket of sockets)
      for (let i = 0; i < RESTARTS_A_SOCKET; i++) {
        socket.send({ cancel_context: true, context_id: 'c0' });
        socket.start('c0', mp3);
      }
    // An actor thread that made an encoder for each would hang, and be ended with the speech of others.
    await isServed('one of them begins again and again');
    const client = await openWs(port, other);
    client.start('mine', voice);
    t.match(await client.frame(() => true), { context_id: 'mine', error: undefined });
    for (const socket of [...sockets, client]) socket.close();
  },
);
