/** The client against the real service: the examples of its page, a revoked key, and a service that starts again. */
import { execFile } from 'node:child_process';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { connect } from '../../src/client/index.js';
import { freePort, runScript, spawnService, startService } from '../support/service.js';
import { readSource } from '../support/source-files.js';
import { codeOf, collect, errorOf } from '../support/speech-client.js';

const service = await startService(t, { SYNTHESIS_THREADS: '1' });

t.test('the examples of the client’s page run as printed', async (t) => {
  const blocks = [...readSource('src/client/README.md').matchAll(/^```js\n([\s\S]*?)^```$/gm)];
  const outputs: string[] = [];
  const dir = t.testdir();
  for (const [, code = ''] of blocks) {
    const path = join(dir, 'example.mjs');
    // The compiled file that the package exports as syrinx/client.
    const clientUrl = new URL('../../src/client/index.js', import.meta.url).href;
    writeFileSync(
      path,
      code.replace('syrinx/client', clientUrl).replace('http://127.0.0.1:8080', service.url),
    );
    const env = { PATH: process.env['PATH'], SYRINX_KEY: service.key };
    outputs.push((await promisify(execFile)(process.execPath, [path], { cwd: dir, env })).stdout);
  }
  t.strictSame(
    outputs[0]
      ?.replace(/^\d+\.\d\d /gm, '')
      .trim()
      .split('\n'),
    'Text is sent as it is written. The first sentence is heard at once.'.split(' '),
  );
  t.ok(statSync(join(dir, 'answer.pcm')).size > 2 * 48_000, 'more than two seconds');
  t.strictSame(outputs.slice(1), ['spoken\n']);
});

t.test('revoking a key closes its clients', async (t) => {
  const environment = { DATA_DIR: service.dataDir };
  const { stdout } = await runScript('scripts/keys.js', ['create'], environment);
  const key = /svc_sk_\w+/.exec(stdout)?.[0] ?? '';
  const client = await connect({ url: service.url, apiKey: key });
  const context = client.context({ voiceId: 'wren' });
  await context.started;
  await runScript('scripts/keys.js', ['revoke', key], environment);
  t.equal(await codeOf(collect(context)), 'invalid_api_key');
  t.match(await client.closed, { code: 'invalid_api_key', retryable: false });
});

t.test('the client connects again after the service was killed and restarted', async (t) => {
  // A fixed port, as in a deployment. A port that the system chose stays taken for a minute after a kill.
  const environment = { SYNTHESIS_THREADS: '1', PORT: String(await freePort()) };
  const first = await startService(t, environment);
  const client = await connect({
    url: first.url,
    apiKey: first.key,
    reconnect: { attemptsMax: 50, capMs: 500 },
  });
  t.teardown(() => client.close());
  const lost = client.context({ voiceId: 'wren' });
  lost.send('Good morning, the kettle is on, and the paper is at the door! '.repeat(30));
  const reading = errorOf(collect(lost));
  await lost.started;
  await first.kill();
  t.match(await reading, { code: 'connection_lost', retryable: true });
  const next = client.context({ voiceId: 'wren' });
  next.send('There you are.');
  void next.close();
  const second = spawnService(t, { ...environment, DATA_DIR: first.dataDir });
  t.ok(Buffer.concat(await collect(next.audio)).length > 32_000, 'the waiting context speaks');
  await client.close();
  t.equal((await second.stop()).code, 0);
});
