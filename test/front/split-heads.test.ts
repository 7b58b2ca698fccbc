/** What a request in two TCP segments gets, split at each of its bytes: a defect of uws-pack 20.0.8, which a proxy hides. */
import t from 'tap';
import { startFront } from '../support/front-server.js';
import { RawClient } from '../support/raw-client.js';

const request = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n';

t.test('a request split within the request line may get 505, one split later is answered', async (t) => {
  const front = await startFront(t);
  /** The answer to a later request: what was sent before has been read. */
  const readsAll = async (): Promise<void> => {
    const client = await RawClient.open(front.port);
    client.send(request);
    await client.response();
    client.destroy();
  };
  const statusOf = async (at: number): Promise<number> => {
    const client = await RawClient.open(front.port);
    client.send(request.slice(0, at));
    await readsAll();
    client.send(request.slice(at));
    const { status } = await client.response();
    client.destroy();
    return status;
  };
  const places = Array.from({ length: request.length - 1 }, (_, at) => at + 1);
  const statuses = await Promise.all(places.map(statusOf));
  const split = places.filter((_, index) => statuses[index] !== 200);
  t.comment(`${split.length} of ${places.length} places: ${split.join(', ')}`);
  t.ok(statuses.every((status) => status === 200 || status === 505));
  const lineEnd = request.indexOf('\r\n') + 2;
  t.strictSame(
    split.filter((at) => at > lineEnd),
    [],
    'the lines of headers may be split anywhere',
  );
  t.ok(split.length > 0, 'without this the library is mended: remove the advice in scripts/deploy/README.md');
});
