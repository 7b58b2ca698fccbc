/** What a person at a terminal sees of the service. Programs get JSON. Rarer cases are in terminal.sweep.test.ts. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { readable, welcome } from '../../src/terminal.js';
import { SCRIPTED, startService } from '../support/service.js';
import { CTRL_C, readyText, jsonText, noTerminal, openService as open } from '../support/terminal.js';

t.test('a first start, narrow and without colours, and the next one', { skip: noTerminal }, async (t) => {
  const dataDir = join(t.testdir(), 'data');
  const first = open(t, 60, { DATA_DIR: dataDir, NO_COLOR: '1' });
  await first.showing(readyText);
  const [, key = ''] = await first.showing(/shown only this once.*\n\n {2}(svc_sk_\w+)\n/);
  const [, url = ''] = await first.showing(/Speech +(http:\/\/127\.0\.0\.1:\d+)\n/);
  const [, link = ''] = await first.showing(/within 30 minutes:\n\n {2}(http:\S+)\n/);
  const [, consoleUrl = ''] = await first.showing(/Console +(http:\/\/127\.0\.0\.1:\d+)\n/);
  t.ok(link.startsWith(`${consoleUrl}/claim#`));
  t.match(first.shown, /Metrics +http:\/\/127\.0\.0\.1:\d+\/metrics\n/);
  t.match(first.shown, /Voices +wren, [^]*heron, finch, jay\n/);
  t.ok(first.shown.includes(`\n  export SYRINX_KEY=${key}\n  npm run say -- --url ${url} "`), 'to copy');
  const speech = { text: 'Hello.', voice: 'wren' };
  const headers = { 'x-api-key': key, 'content-type': 'application/json' };
  const answer = await fetch(`${url}/v1/tts`, { method: 'POST', headers, body: JSON.stringify(speech) });
  t.equal(answer.status, 200, 'the key works');
  await first.showing(/INFO: request\s+route=\/v1\/tts\s+method=post\s+status=200\s+outcome=complete /);
  first.type(CTRL_C);
  t.equal(await first.exited, 0);
  t.match(first.shown, /INFO: stopping signal=SIGINT\n/);
  t.notMatch(first.shown, jsonText);
  t.notMatch(first.shown, '\x1b', 'no colours');
  const wide = first.shown
    .split('\n')
    .filter((line) => line.length > 60 && !/^ {2}(?:svc_|export|npm|http)/.test(line));
  t.strictSame(wide, [], 'only what is to be copied is longer than a line');
  for (const name of ['first-key', 'console-link']) t.notOk(existsSync(join(dataDir, name)), name);

  const second = open(t, 120, { DATA_DIR: dataDir, HOST: '0.0.0.0' });
  await second.showing(readyText);
  t.match(second.shown, /Speech +http:\/\/127\.0\.0\.1:\d+, on all addresses of this machine\n/);
  t.match(second.shown, /npm run keys -- create makes one[^]*export SYRINX_KEY=svc_sk_\.\.\.\n/);
  t.notMatch(second.shown, /svc_sk_\w/, 'a key is shown only once');
  second.type(CTRL_C);
  t.equal(await second.exited, 0);
  t.match(second.shown, /\x1b\[32mINFO\x1b\[39m: /, 'colours');
});

t.test('a pipe gets JSON and nothing else', async (t) => {
  const piped = await startService(t, { SYNTHESIS_THREADS: '1', ACTOR_THREADS: '1' }, SCRIPTED);
  t.match(await piped.stop(), { code: 0 });
  t.ok(piped.lines.length >= 3);
  for (const line of piped.lines) t.match(JSON.parse(line), { level: Number, time: Number, msg: String });
});

t.test('the welcome names some of many voices, and addresses that a client can use', (t) => {
  const tls = { certPath: 'cert', keyPath: 'key' };
  const voices = Array.from({ length: 100 }, (_, i) => `voice-${i}`);
  const origin = 'https://console.example.com';
  const console = { host: '127.0.0.1', port: 8081, origin, webhookAllow: [], isGiven: true };
  const config = { host: '::', opsHost: '10.0.0.7', tls, console, wyoming: null };
  const ports = { port: 8443, opsPort: 9464, consolePort: 8081, dialectPorts: { elevenlabs: 8082 } };
  const text = welcome({ config, ...ports, claimUrl: null, voices, firstKey: null });
  t.match(text, /Console +https:\/\/console\.example\.com\n/);
  t.match(text, /Speech +https:\/\/\[::1\]:8443, on all addresses of this machine\n/);
  t.match(text, /ElevenLabs +https:\/\/\[::1\]:8082\n/);
  t.match(text, /Metrics +http:\/\/10\.0\.0\.7:9464\/metrics\n/);
  t.match(text, /Voices +voice-0, [^]* voice-23,\s+and 76 more\n/);
  t.match(text, '--url https://[::1]:8443 "');
  t.end();
});

t.test('a line shows every field, and nothing in it controls the terminal', (t) => {
  const line = (fields: object) =>
    readable(JSON.stringify({ level: 50, time: 0, msg: 'a fault', ...fields }));
  const plain = (text: string) => text.replaceAll(/\x1b\[\d+m/g, '').replace(/^\[\d\d:\d\d:\d\d\] /, '');
  t.equal(
    plain(line({ requestId: 'x', none: null, empty: [], list: ['a', 'b'], deep: { p50: 1, ok: true } })),
    'ERROR: a fault list=a,b deep.p50=1 deep.ok=true requestId=x\n',
  );
  t.equal(plain(line({ reason: 'two words' })), 'ERROR: a fault reason="two words"\n');
  t.match(line({ reason: 'x\x1b[2J\u202e\x9b' }), 'reason=x\\u{1b}[2J\\u{202e}\\u{9b}');
  t.match(
    plain(line({ errorType: 'TypeError', stack: '    at a (file:1:2)\n    at b (file:3:4)' })),
    'ERROR: a fault errorType=TypeError\n    at a (file:1:2)\n    at b (file:3:4)\n',
  );
  t.end();
});
