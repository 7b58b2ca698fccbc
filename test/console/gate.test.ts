/** Which requests the console takes: its own page's, under a name that no other site can give itself. */
import t from 'tap';
import { Gate } from '../../src/console/gate.js';

const gateAt = (host: string, origin: string | null, scheme: 'http' | 'https' = 'http') =>
  new Gate({ host, origin, scheme, url: () => `${scheme}://${host}:8081` });

const admits = (gate: Gate, host: string, origin = '', fetchSite = ''): boolean =>
  gate.refuseCall({ host, fetchSite }, origin) === null;

t.test('a name that could point anywhere is refused', (t) => {
  const gate = gateAt('console.lan', null);
  for (const host of [
    '127.0.0.1:8081',
    '127.0.0.1',
    'localhost:9000',
    '[::1]:8081',
    '10.0.0.7:8081',
    'CONSOLE.lan',
  ])
    t.equal(gate.refusePage({ host }), null, host);
  for (const host of [
    'evil.example',
    'evil.example:8081',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    'console.lan.evil.example',
    '[::1].evil.example',
    '[::1]evil',
    '',
    ':8081',
    'user@127.0.0.1',
    '127.0.0.1:8081:80',
  ])
    t.match(gate.refusePage({ host }), { code: 'forbidden', message: /http:\/\/console\.lan:8081/ }, host);
  t.end();
});

t.test('a page of another origin is refused', (t) => {
  const gate = gateAt('127.0.0.1', null);
  const host = '127.0.0.1:8081';
  t.ok(admits(gate, host), 'no browser');
  t.ok(admits(gate, host, 'http://127.0.0.1:8081', 'same-origin'));
  t.ok(admits(gate, '127.0.0.1:9000', 'http://127.0.0.1:9000'), 'through a tunnel');
  for (const origin of [
    'http://127.0.0.1:3000',
    'https://127.0.0.1:8081',
    'http://localhost:8081',
    'null',
    'http://evil.example',
  ])
    t.notOk(admits(gate, host, origin), origin);
  for (const site of ['same-site', 'cross-site', 'none', 'SAME-ORIGIN', 'x'])
    t.notOk(admits(gate, host, 'http://127.0.0.1:8081', site), site);
  t.notOk(admits(gate, 'evil.example', 'http://evil.example', 'same-origin'), 'a name that points here');
  const tls = gateAt('127.0.0.1', null, 'https');
  t.ok(admits(tls, host, 'https://127.0.0.1:8081'));
  t.notOk(admits(tls, host, 'http://127.0.0.1:8081'));
  t.end();
});

t.test('behind a proxy only the name of CONSOLE_ORIGIN counts', (t) => {
  const gate = gateAt('127.0.0.1', 'https://console.example.com');
  t.ok(admits(gate, 'console.example.com', 'https://console.example.com', 'same-origin'));
  t.ok(admits(gate, 'console.example.com', ''));
  t.notOk(admits(gate, 'console.example.com', 'http://console.example.com'));
  t.notOk(admits(gate, 'console.example.com', 'https://console.example.com:444'));
  t.notOk(admits(gate, '127.0.0.1:8081', 'http://127.0.0.1:8081'));
  const withPort = gateAt('127.0.0.1', 'https://console.example.com:8443');
  t.ok(
    admits(withPort, 'console.example.com', 'https://console.example.com:8443'),
    'the proxy may drop the port',
  );
  t.end();
});
