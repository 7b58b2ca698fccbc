/** Speaking defaults of keys and accounts on several hosts that share a database. */
import t from 'tap';
import { keys as keysProgram } from '../../scripts/keys.js';
import { heardFrom } from '../support/heard.js';
import { hasPostgres, startPostgres } from '../support/postgres.js';
import { runner } from '../support/run-command.js';
import { SCRIPTED, startService, until } from '../support/service.js';

t.test('every host follows within a second', { skip: !hasPostgres() && 'no PostgreSQL' }, async (t) => {
  const server = await startPostgres();
  t.teardown(() => server.stop());
  const { url } = await server.database();
  const env = { STORE_URL: url, SYNTHESIS_THREADS: '1', ACTOR_THREADS: '1', CONSOLE_PORT: 'off' };
  const services = [await startService(t, env, SCRIPTED), await startService(t, env, SCRIPTED)];
  const hosts = services.map((service) => heardFrom(service));
  // A machine that is no host: which lexicons the hosts have cannot be known there.
  const keys = runner(keysProgram, `${services[0]!.dataDir}-none`, { STORE_URL: url });
  const key = (await keys('create', '--account', 'ada', '--lexicon', 'tea')).stdout.trim();
  for (const service of services)
    t.ok(await until(async () => (await service.get('/v1/tts/speakers', { 'x-api-key': key })).ok));
  const contexts = await Promise.all(hosts.map(async (host) => host.context(key)));
  t.teardown(() => contexts.forEach(({ client }) => client.close()));
  for (const [target, args, expected] of [
    [key, ['--normalize', 'on'], 'true 1 forty two'],
    ['ada', ['--speed', '1.5'], 'true 1.5 forty two'],
    [key, ['--normalize', 'default'], 'false 1.5'],
  ] as const) {
    t.match(await keys('set', target, ...args), { status: 0 });
    for (const [index, host] of hosts.entries()) {
      t.ok(await until(async () => (await host.webhook(key)) === expected), `host ${index}: ${expected}`);
      t.ok(await until(async () => (await contexts[index]!.next()) === expected), 'a WebSocket');
    }
  }
});
