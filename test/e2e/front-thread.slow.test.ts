/** One caller, or whoever reads the log, does not hold up the others. */
import t from 'tap';
import { openWs } from '../support/socket-client.js';
import { HttpConnection, encodeRequest } from '../../scripts/rig/http.js';
import { encodeFrame, opcodes, SocketConnection } from '../../scripts/rig/socket.js';
import { SCRIPTED, speech, startService, until } from '../support/service.js';

const REQUESTS = 3_000;

const service = await startService(t, { SYNTHESIS_THREADS: '1', ACTOR_THREADS: '1' }, SCRIPTED);

/** @returns how many of `REQUESTS` are answered 200. They have a key: without one not each has its line in the log */
const lists = async (): Promise<number> => {
  const connection = new HttpConnection({ port: service.port });
  const bytes = encodeRequest({ path: '/v1/tts/speakers', key: service.key });
  let answered = 0;
  for (let i = 0; i < REQUESTS; i++) if ((await connection.ask(bytes)) === 200) answered++;
  connection.close();
  return answered;
};

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

void t.test('a megabyte of white space is cut in many ticks, and nothing after it is lost', async (t) => {
  const client = await openWs(service.port, service.key);
  client.send({ start_context: { voice_id: 'wren', model_id: 'default' } });
  const blank = `${' '.repeat(125_000)}${'\n'.repeat(125_000)}`;
  for (let i = 0; i < 4; i++) client.send({ send_text: blank });
  client.send({ flush: true, flush_id: 'blank' });
  client.send({ send_text: 'Hello there.' });
  client.send({ close_context: true });
  await client.frame((frame) => 'context_closed' in frame);
  const kinds = client.frames.map((frame) => Object.keys(frame)[0]);
  t.equal(kinds.filter((kind) => kind === 'error').length, 0);
  const flushed = client.frames.findIndex(({ flush_id }) => flush_id === 'blank');
  const audio = client.frames.findIndex((frame) => 'audio_chunk' in frame);
  t.ok(flushed >= 0 && audio > flushed, kinds.join());
});

void t.test('frames of 1 MiB are refused one after the other, and speech goes on', async (t) => {
  const answers: string[] = [];
  const connection = new SocketConnection(
    { port: service.port, key: service.key },
    { onMessage: (json) => answers.push(json), onError: (error) => answers.push(String(error)) },
  );
  await connection.opened();
  const bytes = 2 ** 20;
  const keys = Array.from({ length: 90_000 }, (_, i) => `"${i.toString(36)}":0`);
  for (const text of [
    `{"x":[${'['.repeat(bytes - 6)}`,
    `{"x":[${'{},'.repeat(bytes / 3 - 4)}{}]}`,
    `{${keys.join()}}`,
  ])
    connection.write(encodeFrame(Buffer.from(text), { opcode: opcodes.text }));
  const other = await openWs(service.port, service.key);
  other.send({ start_context: { voice_id: 'wren', model_id: 'default' } });
  other.send({ send_text: 'Hello there.' });
  other.send({ close_context: true });
  await other.frame((frame) => 'context_closed' in frame);
  t.ok(await until(() => answers.length === 3));
  t.ok(
    answers.every((json) => json.includes('"error":"invalid frame: ')),
    answers.join().slice(0, 500),
  );
  connection.close();
});

void t.test(
  'a log without a reader holds up no request, and loses no line that it has room for',
  async (t) => {
    service.stopReading();
    t.equal(await lists(), REQUESTS);
    t.equal((await service.post('/v1/tts', speech('Still here.'))).status, 200);
    t.equal(await service.metric('syrinx_log_lines_lost_total'), 0);
    service.goOnReading();
    const lines = () => service.logged('request').filter(({ route }) => route === '/v1/tts/speakers').length;
    t.ok(await until(() => lines() === REQUESTS), `${lines()} lines`);
  },
);

void t.test('a service with a log that is not read ends at SIGTERM', async (t) => {
  service.stopReading();
  await lists();
  service.signal('SIGTERM');
  t.ok(await until(() => !isAlive(service.pid)), 'the process is gone');
  service.goOnReading();
  t.match(await service.exited, { code: 0 });
});
