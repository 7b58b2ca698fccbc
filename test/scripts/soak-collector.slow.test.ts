/** The soak's collector uses a process's inspector: it collects in every thread, connects once, and delays no exit. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { Collector, Inspector } from '../../scripts/soak/collector.js';

const garbageBytes = 30e6;

/** Has a worker thread; both threads make garbage. Ends when its input ends. */
const script = `
  const { Worker, isMainThread, parentPort } = require('node:worker_threads');
  globalThis.garbage = Array.from({ length: ${String(garbageBytes / 8)} }, (_, i) => i + 0.5);
  delete globalThis.garbage;
  if (!isMainThread) { parentPort.postMessage('made'); parentPort.once('message', () => {}); }
  else {
    const worker = new Worker(__filename === '[eval]' ? process.env.SCRIPT : __filename, { eval: true });
    worker.once('message', () => {
      console.log(JSON.stringify(process.memoryUsage().heapUsed));
      process.stdin.once('end', () => worker.postMessage('end')).resume();
    });
  }
`;

const start = async (t: Test) => {
  const child = spawn(process.execPath, ['--inspect=127.0.0.1:0', '-e', script], {
    env: { ...process.env, SCRIPT: script },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  let talk = '';
  child.stderr.on('data', (data: Buffer) => (talk += data.toString()));
  await once(child.stdout, 'data');
  const url = /ws:\/\/\S+/.exec(talk)?.[0];
  if (url === undefined) throw new Error(`no inspector in: ${talk}`);
  return {
    child,
    url,
    exited: once(child, 'exit'),
    connections: () => talk.split('Debugger attached.').length - 1,
  };
};

void t.test('the garbage of all threads is collected, always over one connection', async (t) => {
  const { url, connections } = await start(t);
  const collector = new Collector(url);
  t.teardown(() => collector.close());
  const { heapBytes } = await collector.collect();
  // Two heaps of Node's own; either thread's garbage alone is more.
  t.ok(heapBytes > 4e6 && heapBytes < garbageBytes, String(heapBytes));
  for (let look = 0; look < 5; look++) await collector.collect();
  t.equal(connections(), 1);
});

void t.test('a closed collector connects again when it is asked again', async (t) => {
  const { url, connections } = await start(t);
  const collector = new Collector(url);
  await collector.collect();
  collector.close();
  collector.close();
  await collector.collect();
  collector.close();
  t.equal(connections(), 2);
});

void t.test('a process that ends does not wait for its inspector', async (t) => {
  const { child, url, exited } = await start(t);
  const collector = new Collector(url);
  await collector.collect();
  child.stdin.end();
  t.same(await exited, [0, null]);
  await t.rejects(collector.collect(), /not connected any more/);
  await t.rejects(collector.collect(), /ECONNREFUSED/);
  collector.close();
});

void t.test('a call to a process that dies rejects at once', async (t) => {
  const { child, url, exited } = await start(t);
  const inspector = await Inspector.connect(url);
  t.teardown(() => inspector.close());
  const never = inspector.call(null, 'Runtime.evaluate', {
    expression: 'new Promise(() => {})',
    awaitPromise: true,
  });
  const rejected = t.rejects(never, /Runtime.evaluate: the connection closed/);
  await sleep(50);
  child.kill('SIGKILL');
  await exited;
  await rejected;
  await t.rejects(inspector.call(null, 'Runtime.evaluate', { expression: '1' }), /not connected any more/);
});
