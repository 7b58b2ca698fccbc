/** A listener of another dialect: its own routes and its own words for errors, over the same services. */
import t from 'tap';
import { specificationErrors, type ErrorShape } from '../../src/api/error-shape.js';
import { parseSpeechRequest } from '../../src/api/speech-request.js';
import { consoleErrors } from '../../src/console/answers.js';
import { ConnectionPool } from '../../src/front/connections.js';
import { Cors } from '../../src/front/cors.js';
import { streamResponder } from '../../src/front/responders.js';
import { addRoutes, type Route } from '../../src/front/routes.js';
import { createServices } from '../../src/front/services.js';
import { speechRoute } from '../../src/front/speech-route.js';
import { closeListenSocket, createApp, listenOn, localPort } from '../../src/front/uws.js';
import { errors } from '../../src/errors.js';
import { limits } from '../../src/limits.js';
import { Metrics } from '../../src/metrics.js';
import { monotonicMs } from '../../src/monotonic.js';
import { FakeSpeech } from '../support/fake-speech.js';
import { FakeAdmission, keysInUse, recordingLog, type LogLine } from '../support/front-server.js';

const word = (status: number, message: string) => ({
  status,
  contentType: 'application/problem+json',
  body: JSON.stringify({ problem: message }),
});

const otherErrors: ErrorShape = {
  of: (code) => word(errors[code].status, code),
  unknownVoice: (voice) => word(404, `no voice ${voice}`),
  notFound: word(404, 'no route'),
};

t.test('a listener words every error in its own shape', async (t) => {
  const lines: LogLine[] = [];
  const services = createServices({
    keys: keysInUse(),
    log: recordingLog(lines),
    metrics: new Metrics(),
    clock: monotonicMs,
    bounds: limits,
    connections: new ConnectionPool(limits.connectionsMax).listener(),
    cors: new Cors([]),
    errors: specificationErrors(limits),
  });
  const speech = new FakeSpeech();
  const speechParts = { speech, admission: new FakeAdmission(), isDraining: () => false };
  const routes: readonly Route[] = [
    {
      path: '/other/speak',
      method: 'post',
      handler: speechRoute(
        speechParts,
        (body, head, bounds) => {
          const asked = parseSpeechRequest(body, head.contentType, bounds);
          return asked.ok ? asked : { ok: false, ...word(400, 'body') };
        },
        streamResponder,
      ),
    },
    {
      path: '/other/fault',
      method: 'get',
      handler: () => {
        throw new Error('scripted');
      },
    },
  ];
  const app = createApp();
  addRoutes(app, { ...services, errors: otherErrors }, routes);
  const socket = listenOn(app, '127.0.0.1', 0, false);
  if (socket === null) throw new Error('no port');
  t.teardown(() => {
    closeListenSocket(socket);
    app.close();
  });
  const ask = async (path: string, key: string, init: RequestInit = {}) => {
    const url = `http://127.0.0.1:${localPort(socket)}${path}`;
    const response = await fetch(url, {
      ...init,
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
    });
    t.ok(response.headers.get('x-request-id'), path);
    return [response.status, response.headers.get('content-type'), await response.text()];
  };
  const speak = (key: string, voice: string) =>
    ask('/other/speak', key, { method: 'POST', body: JSON.stringify({ text: 'a', voice }) });
  const answer = ({ status, contentType, body }: ReturnType<typeof word>) => [status, contentType, body];

  t.same(await ask('/else', 'svc_sk_good'), answer(word(404, 'no route')));
  t.same(await ask('/other/speak', 'svc_sk_good'), answer(word(405, 'methodNotAllowed')));
  t.same(await ask('/other/fault', 'svc_sk_good'), answer(word(500, 'internal')));
  t.same(await speak('none', 'ada'), answer(word(401, 'keyMalformed')));
  t.same(await speak('svc_sk_broke', 'ada'), answer(word(402, 'creditExhausted')));
  t.same(await ask('/other/speak', 'svc_sk_good', { method: 'POST', body: '{}' }), answer(word(400, 'body')));
  t.same(await speak('svc_sk_good', 'nobody'), answer(word(404, 'no voice nobody')));
  speech.refuse = () => 'contextPoolExhausted';
  t.same(await speak('svc_sk_good', 'ada'), answer(word(503, 'unavailable')));
  t.equal(services.registry.size, 0);
});

t.test('the console says that a request needs a length', (t) => {
  const { status, body } = consoleErrors.of('lengthRequired');
  t.equal(status, 411);
  t.match(body, /Content-Length/);
  t.end();
});
