/** Heads that the server library cannot read and does not answer: by what, and when, their connections end. */
import t from 'tap';
import { eventually, startFront } from '../support/front-server.js';

const start = 'GET /healthz HTTP/1.1\r\nHost: a\r\n';

const heads: readonly (readonly [name: string, head: string])[] = [
  ['nothing', ''],
  ['half a head', start],
  ['a line feed alone', `${start}X-A: b\n\r\n`],
  ['a carriage return alone', `${start}X-A: b\rX-B: c\r\n\r\n`],
  ['a folded line', `${start}X-A: b\r\n  c\r\n\r\n`],
  ['a NUL', `${start}X-A: b\0\r\n\r\n`],
  ['another control character', `${start}X-A: b\x01\r\n\r\n`],
  ['no colon', `${start}X-A\r\n\r\n`],
  ['an empty line in front', `\r\n${start}\r\n`],
];

t.test(
  'a head that cannot be read ends its connection without an answer, also when bytes drip in',
  async (t) => {
    const front = await startFront(t);
    await Promise.all(
      heads.flatMap(([name, head]) =>
        [false, true].map(async (drips) => {
          const client = await front.client();
          const startMs = performance.now();
          if (head !== '') client.send(Buffer.from(head, 'latin1'));
          const timer = drips && head !== '' ? setInterval(() => client.send('y'), 1_000) : undefined;
          await client.closed();
          clearInterval(timer);
          const seconds = (performance.now() - startMs) / 1_000;
          t.comment(`${name}${drips ? ', dripping' : ''}: ${seconds.toFixed(1)} s`);
          t.equal(client.receivedBytes, 0, name);
          // The library counts ten seconds in steps of four; the rest is for a busy machine.
          t.ok(seconds < 25, `${name}: ${seconds} s`);
          client.destroy();
        }),
      ),
    );
    await eventually(() => front.server.inFlight === 0);
  },
);
