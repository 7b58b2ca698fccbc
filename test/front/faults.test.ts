import t, { type Test } from 'tap';
import { specificationErrors } from '../../src/api/error-shape.js';
import { readBody } from '../../src/front/body-reader.js';
import { ConnectionPool } from '../../src/front/connections.js';
import { Cors } from '../../src/front/cors.js';
import type { Exchange } from '../../src/front/exchange.js';
import { addHandler, type Handler } from '../../src/front/routes.js';
import { endRequest } from '../../src/front/request-end.js';
import { createServices } from '../../src/front/services.js';
import { limits } from '../../src/limits.js';
import { closeListenSocket, createApp, listenOn, localPort } from '../../src/front/uws.js';
import { Metrics } from '../../src/metrics.js';
import { monotonicMs } from '../../src/monotonic.js';
import { header, RawClient } from '../support/raw-client.js';
import {
  eventually,
  GOOD_KEY,
  keysInUse,
  recordingLog,
  speak,
  startFront,
  type LogLine,
} from '../support/front-server.js';

const fault = (): never => {
  throw new Error('the text of a caller');
};

/** One route with a handler that misbehaves, on a real port. */
const serve = (t: Pick<Test, 'teardown'>, handler: Handler) => {
  const lines: LogLine[] = [];
  const bounds = { ...limits, stallRearmMs: 40 };
  const services = createServices({
    keys: keysInUse(),
    log: recordingLog(lines),
    metrics: new Metrics(),
    clock: monotonicMs,
    bounds,
    connections: new ConnectionPool(limits.connectionsMax).listener(),
    cors: new Cors([]),
    errors: specificationErrors(bounds),
  });
  const app = createApp();
  addHandler(app, services, ['/fault', '/fault'], () => handler);
  const socket = listenOn(app, '127.0.0.1', 0, false);
  if (socket === null) throw new Error('no port');
  t.teardown(() => {
    closeListenSocket(socket);
    app.close();
  });
  return { port: localPort(socket), lines, services };
};

t.test('an exception anywhere in a route is a 500, and the process lives', async (t) => {
  const handlers: [string, Handler][] = [
    ['in the handler', fault],
    ['in the body', (exchange, head) => readBody(exchange, head, 7, fault)],
    ['in a cork', (exchange) => exchange.corked(fault)],
    ['in a guarded timer', (exchange) => setTimeout(exchange.guarded(fault), 1)],
    ['at the end of a tick', (exchange) => exchange.services.tick.add(exchange.guarded(fault))],
    ['something that is no error', (exchange) => exchange.guarded(() => throwString())()],
    [
      'in the pulse',
      (exchange) => {
        const { pulse } = exchange.services;
        const member = { beat: exchange.guarded(fault) };
        pulse.add(member);
        exchange.onOver(() => pulse.delete(member));
      },
    ],
  ];
  for (const [name, handler] of handlers) {
    const { port, lines, services } = serve(t, handler);
    const client = await RawClient.open(port);
    for (let round = 0; round < 2; round++) {
      client.send('POST /fault HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab');
      const response = await client.response();
      t.equal(response.status, 500, name);
      t.equal(response.body.toString(), 'Internal Server Error', name);
      t.equal(header(response, 'content-type'), 'text/plain; charset=utf-8', name);
      const id = header(response, 'x-request-id');
      t.match(
        lines.find(({ level, fields }) => level === 'error' && fields['requestId'] === id)?.fields,
        { route: '/fault' },
        `${name}: the log has it by its request id`,
      );
      t.notMatch(JSON.stringify(lines), /text of a caller/, `${name}: the log does not quote`);
    }
    t.equal(services.registry.size, 0, name);
    client.destroy();
  }
});

const throwString = (): never => {
  // oxlint-disable-next-line typescript/only-throw-error -- what a careless package may throw
  throw 'text';
};

t.test('an exception after the head was sent cuts the response short', async (t) => {
  const { port, services } = serve(t, (exchange) => {
    exchange.corked((res) => {
      exchange.writeHead(200, 'text/plain');
      res.write('begun');
    });
    setTimeout(exchange.guarded(fault), 1);
  });
  const client = await RawClient.open(port);
  t.teardown(() => client.destroy());
  client.send('GET /fault HTTP/1.1\r\nHost: a\r\n\r\n');
  const response = await client.response();
  t.equal(response.status, 200);
  t.equal(response.body.toString(), 'begun');
  t.notOk(response.complete);
  t.equal(services.registry.size, 0);
});

t.test('a fault in one clean-up does not prevent the others', async (t) => {
  let ran = 0;
  const { port, services, lines } = serve(t, (exchange) => {
    exchange.onOver(fault);
    exchange.onOver(() => (ran += 1));
    exchange.fail('done');
    exchange.onOver(() => (ran += 1));
  });
  t.equal((await RawClient.ask(port, { path: '/fault' })).status, 500);
  t.equal(ran, 2);
  t.equal(services.registry.size, 0);
  t.ok(lines.some(({ message }) => message === 'clean-up of a request failed'));
});

t.test('calls on an exchange that is over do nothing', async (t) => {
  let exchange: Exchange | undefined;
  const { port, services } = serve(t, (given) => (exchange = given));
  const client = await RawClient.open(port);
  client.send('GET /fault HTTP/1.1\r\nHost: a\r\n\r\n');
  await eventually(() => exchange !== undefined);
  client.destroy();
  await eventually(() => exchange?.isOver === true);
  t.doesNotThrow(() => {
    exchange?.corked(fault);
    exchange?.guarded(fault)();
    exchange?.onData(fault);
    exchange?.onWritable(fault);
    exchange?.rearm();
    exchange?.drop('failed');
    exchange?.fail('again');
    exchange?.finish();
  });
  t.equal(services.registry.size, 0);
});

t.test('a stage below that throws causes a 500, and its lease is closed', async (t) => {
  const front = await startFront(t);
  for (const path of ['/v1/tts', '/v1/tts/stream'] as const) {
    front.speech.refuse = fault;
    t.equal((await RawClient.ask(front.port, speak(path))).status, 500, `${path}: open`);
    front.speech.refuse = null;
    front.speech.script = fault;
    t.equal((await RawClient.ask(front.port, speak(path))).status, 500, `${path}: end`);
    t.ok(front.speech.last.released);
    front.speech.script = (context) => {
      context.handed = fault;
      context.audio(300);
    };
    const response = await RawClient.ask(front.port, speak(path));
    // A stream has begun when the socket has its frame.
    t.ok(path === '/v1/tts' ? response.status === 500 : !response.complete, `${path}: handed`);
    t.ok(front.speech.last.released);
    front.speech.script = (context) => setImmediate(() => context.emit(null as never));
    t.equal((await RawClient.ask(front.port, speak(path))).status, 500, `${path}: a frame that is none`);
  }
  t.equal(front.admission.slotsTaken, 0);
  t.ok(front.admission.leases.every(({ closed, voided }) => closed + voided > 0));
  const authenticate = front.admission.authenticate.bind(front.admission);
  front.admission.authenticate = fault;
  t.equal((await RawClient.ask(front.port, { path: '/v1/tts/speakers', key: GOOD_KEY })).status, 500);
  t.equal((await RawClient.ask(front.port, speak('/v1/tts'))).status, 500);
  front.admission.authenticate = authenticate;
  front.speech.script = (context) => context.stream(1, 300);
  t.equal((await RawClient.ask(front.port, speak('/v1/tts/stream'))).status, 200, 'the process lives');
  t.equal(front.server.inFlight, 0);
});

t.test('a leaking backpressure gate ends its stream instead of filling the memory', async (t) => {
  const front = await startFront(t);
  front.speech.script = (context) => {
    for (let count = 0; count < 200; count++) context.audio(99_999);
  };
  const response = await RawClient.ask(front.port, speak('/v1/tts/stream'));
  t.equal(response.status, 500);
  t.ok(front.speech.last.released);
});

t.test('requests without a key do not fill the log', (t) => {
  const lines: LogLine[] = [];
  let nowMs = 0;
  const services = createServices({
    keys: keysInUse(),
    log: recordingLog(lines),
    metrics: new Metrics(),
    clock: () => nowMs,
    bounds: limits,
    connections: new ConnectionPool(limits.connectionsMax).listener(),
    cors: new Cors([]),
    errors: specificationErrors(limits),
  });
  const end = (key?: { keyId: number; accountId: number }) =>
    endRequest(services, {
      ...{ requestId: 'id', key, route: 'none', status: 404, outcome: 'complete' },
      ...{ startMs: nowMs, firstAudio: undefined },
    });
  const count = (level: string) => lines.filter((line) => line.level === level).length;
  for (let i = 0; i < 700; i++) end();
  t.equal(count('info'), 500);
  t.match(lines.at(-1), { level: 'warn', fields: { count: 1 } });
  end({ keyId: 1, accountId: 1 });
  t.equal(count('info'), 501, 'one with a key has its line');
  nowMs += 10_000;
  for (let i = 0; i < 700; i++) end();
  t.equal(count('info'), 1_001);
  t.match(lines.at(-1), { level: 'warn', fields: { count: 200 } }, 'the others are counted');
  t.end();
});
