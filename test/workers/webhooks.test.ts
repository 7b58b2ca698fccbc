/** Messages to the webhooks of accounts: what they reach, what they are signed with, how often they are sent. */
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import { after, dueOf, type Delivery } from '../../src/accounts/webhooks.js';
import { openWebhooks } from '../../workers/webhooks.js';

interface Got {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A receiver on this machine. */
const receiver = async (t: Test, status = 200) => {
  const got: Got[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (piece: Buffer) => (body += piece.toString()));
    request.on('end', () => {
      got.push({ headers: request.headers, body });
      response.writeHead(status, { location: '/elsewhere' }).end('x'.repeat(100_000));
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  return { got, port: (server.address() as AddressInfo).port };
};

const message = { type: 'test', accountId: 1, account: 'ada', text: 'A test.' } as const;
const open = (t: Test, allow: readonly string[]) =>
  openWebhooks({ folder: t.testdir(), allow, answerMsMax: 10_000 });

t.test('a message is signed as Standard Webhooks says', async (t) => {
  const webhooks = open(t, ['127.0.0.0/8', '::1']);
  const { got, port } = await receiver(t);
  const url = `http://localhost:${port}/alerts`;
  const secret = webhooks.check(url);
  t.strictSame(await webhooks.send({ url, secret }, 'msg_1', message), {
    isDelivered: true,
    result: 'answered 200',
  });
  const [{ body, headers } = { body: '', headers: {} as IncomingHttpHeaders }] = got;
  t.strictSame(JSON.parse(body), message);
  const signed = `msg_1.${headers['webhook-timestamp'] as string}.${body}`;
  const expected = createHmac('sha256', Buffer.from(secret, 'base64')).update(signed).digest('base64');
  t.equal(headers['webhook-signature'], `v1,${expected}`);
});

t.test(
  'an internal address is not reached unless the operator allows it, by number or by name',
  async (t) => {
    const { got, port } = await receiver(t);
    const closed = open(t, []);
    for (const host of [
      '127.0.0.1',
      '10.1.2.3',
      '169.254.169.254',
      '[::1]',
      '[::ffff:127.0.0.1]',
      '0x7f.1',
      '[fd00::1]',
    ])
      t.throws(() => closed.check(`https://${host}:${port}/`), { message: /address/ }, host);
    t.throws(() => closed.check(`http://example.com/`), { message: /https/ });
    for (const url of ['ftp://example.com', 'https://a:b@example.com', 'nothing'])
      t.throws(() => closed.check(url), { message: /address/ }, url);
    t.ok(closed.check('https://example.com/alerts'));
    // What a name means is known only when it is called.
    for (const url of [
      `https://localhost:${port}/`,
      `http://localhost:${port}/`,
      `http://127.0.0.1:${port}/`,
    ])
      t.match(await closed.send({ url, secret: 'AAAA' }, 'id', message), {
        isDelivered: false,
        result: 'its address is internal',
      });
    const other = open(t, ['10.0.0.0/8']);
    t.match(await other.send({ url: `http://localhost:${port}/`, secret: 'AAAA' }, 'id', message), {
      isDelivered: false,
    });
    t.equal(got.length, 0);
  },
);

t.test('a redirect is not followed, and counts as a failure', async (t) => {
  const { got, port } = await receiver(t, 302);
  const webhooks = open(t, ['127.0.0.1']);
  const url = `http://127.0.0.1:${port}/`;
  t.strictSame(await webhooks.send({ url, secret: webhooks.check(url) }, 'id', message), {
    isDelivered: false,
    result: 'answered 302',
  });
  t.equal(got.length, 1);
});

t.test('one message a day for each cause, with a bound on the attempts', (t) => {
  const bounds = { webhookAttemptsMax: 5, webhookRetryMs: 60_000, webhooksAtOnceMax: 8 };
  const day = 86_400_000;
  const attempts: number[] = [];
  let delivery: Delivery | undefined;
  let ids = 0;
  const newId = () => `msg_${ids++}`;
  // A receiver that never takes it, for two days, looked at once a minute.
  for (let nowMs = 0; nowMs < 2 * day; nowMs += 60_000) {
    const deliveries = delivery === undefined ? {} : { 'credit.low': delivery };
    const due = dueOf({ deliveries }, 'credit.low', nowMs, newId);
    if (due === null) continue;
    attempts.push(nowMs / 60_000);
    delivery = after(due, false, nowMs, bounds);
  }
  t.strictSame(attempts, [0, 1, 5, 21, 85, 1440, 1441, 1445, 1461, 1525]);
  t.equal(ids, 2, 'attempts of a day are the same message');
  const done = after(delivery!, true, 0, bounds);
  t.equal(dueOf({ deliveries: { 'credit.low': done } }, 'credit.low', day, newId), null);
  t.ok(
    dueOf({ deliveries: { 'credit.low': done } }, 'credit.out', day, newId),
    'another cause is on its own',
  );
  t.end();
});
