/**
 * The scenario of the dialects: synthesis threads that end in mid-speech, drains in mid-speech, clients that vanish and clients
 * that read slowly, through each dialect. The clients of a soak listen meanwhile, over the public port and all dialects.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { dialectEndpoints, EndpointClient, type Endpoint } from '../../rig/endpoints.js';
import { LoadProcess } from '../../rig/load-process.js';
import { Dice } from '../../rig/random.js';
import { describeExit, freeDialectPorts, Service } from '../../rig/service.js';
import { Tally } from '../../rig/tally.js';
import { comesTrue, describeLeftovers, leftoversOf } from '../checks.js';
import { runFlood } from '../floods/floods.js';
import type { Flood } from '../floods/flood.js';
import { slowDialectReaders } from '../floods/slow-readers.js';
import type { SoakLoad } from '../../soak/load.js';
import { keysNeeded, otherKeysNeeded } from '../../soak/population.js';
import type { Scenario, TortureOptions, TortureRow } from '../scenario.js';
import { breaking } from '../threads/faults.js';

const fragileEntry = new URL('../threads/fragile-service.js', import.meta.url);
const loadEntry = new URL('../../soak/load.js', import.meta.url);
const format = { encoding: 'pcm', sampleRateHz: 24_000 } as const;
const sentence = 'The train was late again, so we walked along the river and talked about the summer. ';

const settleMs = 500;
const endMsMax = 60_000;
const wholeMsMax = 30_000;

/** Clients of a soak over the public port: those of the dialects come with the ones over HTTP. */
const contexts = 2;
const httpClients = 4;

const endpointsFor = async (service: Service, text: string): Promise<readonly Endpoint[]> => {
  const { dialectPorts, port } = service;
  const [key = ''] = await service.makeKeys(1);
  return dialectEndpoints({ port, dialectPorts, key, voice: 'wren', text, format });
};

const endOf = (client: EndpointClient): Promise<string> =>
  Promise.race([client.ended(), sleep(endMsMax, 'no end', { ref: false })]);

/** @returns the names of the endpoints through which nothing is spoken */
const silentEndpoints = async (service: Service): Promise<string[]> => {
  const silent: string[] = [];
  for (const endpoint of await endpointsFor(service, 'Still here.')) {
    const client = new EndpointClient(endpoint);
    if ((await endOf(client)) !== 'whole') silent.push(endpoint.name);
    client.leave();
  }
  return silent;
};

/** The clients of a soak. They check all that they hear. */
class Bystanders {
  readonly #load: SoakLoad;
  readonly #faults: string[] = [];
  #replies = 0;

  constructor() {
    this.#load = new LoadProcess(loadEntry, (event) => {
      if (event.type === 'tick') this.#replies = event.replies;
      // The scenario takes the cores that they need.
      else if (event.kind !== 'underruns') this.#faults.push(`${event.where}: ${event.what}`);
    });
  }

  async start(service: Service, seed: number): Promise<void> {
    const [idle = '', ...http] = await service.makeKeys(1 + otherKeysNeeded(httpClients));
    const sockets = await service.makeKeys(keysNeeded(contexts));
    const { dialectPorts, port } = service;
    const target = { host: '127.0.0.1', port, dialectPorts, voices: await service.voices() };
    await this.#load.call('begin', {
      target,
      seed,
      idleSockets: 0,
      httpClients,
      mayRefuse: false,
      drainMs: null,
    });
    await this.#load.call('populate', { contexts, keys: { sockets, http, idle, isShared: false } });
  }

  /** They hear all that they have asked for. @returns what they found, in words, and whether it is good */
  async end(): Promise<{ readonly found: string; readonly held: boolean }> {
    await this.#load.call('stop');
    const faults = this.#faults;
    const shown =
      faults.length === 0 ? 'none disturbed' : `${faults.length} FAULTS: ${faults.slice(0, 3).join('; ')}`;
    const found = `clients of all kinds heard ${this.#replies} replies, ${shown}`;
    return { found, held: faults.length === 0 && this.#replies > 0 };
  }

  /** Idempotent. */
  close(): void {
    this.#load.close();
  }
}

/** One death for each endpoint and round. */
const threadDeaths = async ({ count, progress, seed }: TortureOptions): Promise<TortureRow> => {
  let deaths = 0;
  const service = await Service.start({
    ...{ entry: fragileEntry, env: freeDialectPorts, synthesisThreads: 2, actorThreads: 1 },
    onLine: (line) => {
      if (line.includes('"msg":"synthesis thread ended; ')) deaths++;
    },
  });
  const bystanders = new Bystanders();
  try {
    await sleep(settleMs);
    const filesBefore = service.openFiles;
    const endpoints = await endpointsFor(service, breaking('exit'));
    await bystanders.start(service, seed);
    const ends = new Tally();
    let slowestMs = 0;
    const times = count * endpoints.length;
    for (let i = 0; i < times; i++) {
      progress(`thread deaths: ${i} of ${times}, ${ends.toString()}`);
      const client = new EndpointClient(endpoints[i % endpoints.length]!);
      ends.add(await endOf(client));
      client.leave();
      const startMs = performance.now();
      await comesTrue(async () => (await service.unreadyReasons()) === '', wholeMsMax);
      slowestMs = Math.max(slowestMs, performance.now() - startMs);
    }
    const silent = await silentEndpoints(service);
    const { found, held } = await bystanders.end();
    const left = await leftoversOf(service, filesBefore, []);
    const outcome = [
      `how the answers ended: ${ends.toString()}`,
      `${deaths} threads ended, replaced after at most ${Math.round(slowestMs)} ms`,
      silent.length === 0 ? 'each dialect speaks afterwards' : `SILENT: ${silent.join(', ')}`,
      found,
      describeLeftovers(left),
    ];
    const areSeen = ends.of('failed') + ends.of('cut') === times;
    return {
      fault: 'dialects: a synthesis thread ends in mid-speech',
      injected: 'process.exit in a step of the engine, for a text of each dialect',
      count: times,
      outcome: outcome.join('; '),
      held: areSeen && deaths === times && silent.length === 0 && left.length === 0 && held,
    };
  } finally {
    bystanders.close();
    await service.stop();
  }
};

/** About a minute of speech. It is made within a drain. */
const drainedText = sentence.repeat(12);

/** @returns what is wrong */
const drainOnce = async (dice: Dice, ends: Tally): Promise<string[]> => {
  // Enough time on a busy machine.
  const patient = { ...freeDialectPorts, DRAIN_SECONDS: '60' };
  const service = await Service.start({ env: patient, synthesisThreads: 2, actorThreads: 1 });
  try {
    const endpoints = await endpointsFor(service, drainedText);
    const clients = endpoints.map((endpoint) => new EndpointClient(endpoint));
    // This one leaves while the service drains.
    const leaving = new EndpointClient(dice.pick(endpoints));
    await Promise.all([...clients, leaving].map((client) => client.heard()));
    const unheard = clients.filter(({ end, heardMs }) => heardMs === 0 || end !== null).length;
    service.signal('SIGTERM');
    await sleep(dice.below(200));
    leaving.reset();
    const late = endpoints.map((endpoint) => new EndpointClient(endpoint));
    const wrong: string[] = unheard === 0 ? [] : [`${unheard} were not in mid-speech`];
    for (const [i, client] of clients.entries()) {
      const end = await endOf(client);
      ends.add(end);
      if (end !== 'whole') wrong.push(`${endpoints[i]!.name}: ${end}`);
    }
    const { code, signal } = await service.exited;
    if (code !== 0) wrong.push(`the service ended with ${describeExit({ code, signal })}`);
    // The drain may let them in for a moment; it may not leave them without an answer.
    for (const [i, client] of late.entries())
      if ((await endOf(client)) === 'no end')
        wrong.push(`${endpoints[i]!.name}: a late client has no answer`);
    if (service.log.errors > 0) wrong.push(service.log.errorLines[0] ?? '');
    return wrong;
  } finally {
    await service.kill();
  }
};

const drains = async ({ count, progress, seed }: TortureOptions): Promise<TortureRow> => {
  const wrong: string[] = [];
  const ends = new Tally();
  for (let round = 0; round < count; round++) {
    progress(`drains: ${round} of ${count}, ${ends.toString()}`);
    wrong.push(...(await drainOnce(new Dice(seed, round), ends)));
  }
  const found = wrong.length === 0 ? 'exit 0 each time' : `WRONG: ${wrong.slice(0, 3).join('; ')}`;
  return {
    fault: 'dialects: a drain in mid-speech',
    injected:
      'SIGTERM while a minute of speech is under way through each dialect, and one more client leaves',
    count,
    outcome: `what was under way: ${ends.toString()}; ${found}`,
    held: wrong.length === 0 && ends.of('whole') > 0,
  };
};

const vanishing: Flood = {
  fault: 'dialects: clients that vanish',
  injected: 'connections of each dialect that end 0 to 300 ms after they begin, half of them with a RST',
  async run({ count, progress, seed, service }) {
    const endpoints = await endpointsFor(service, sentence.repeat(20));
    const dice = new Dice(seed, 1);
    const parallel = 6;
    let [left, heard] = [count, 0];
    const vanish = async (): Promise<void> => {
      while (left-- > 0) {
        const client = new EndpointClient(dice.pick(endpoints));
        if (dice.chance(0.5)) await Promise.race([client.heard(), sleep(2_000)]);
        await sleep(dice.below(300));
        if (client.heardMs > 0) heard++;
        if (dice.chance(0.5)) client.reset();
        else client.leave();
        progress(`${count - left} of ${count} have left, ${heard} in mid-speech`);
      }
    };
    await Promise.all(Array.from({ length: parallel }, vanish));
    const isAtRest = await comesTrue(async () => (await service.status()).openContexts <= 4);
    const silent = await silentEndpoints(service);
    const spoken = silent.length === 0 ? 'each dialect speaks afterwards' : `SILENT: ${silent.join(', ')}`;
    const held = isAtRest && silent.length === 0 && heard > count / 10;
    return { count, outcome: `${heard} left in mid-speech; ${spoken}`, held };
  },
};

const floods = async (options: TortureOptions): Promise<TortureRow[]> => {
  const service = await Service.start({ env: freeDialectPorts });
  try {
    await sleep(settleMs);
    const more = { ...options, count: options.count * 15 };
    return [
      await runFlood(service, vanishing, 'wren', more),
      await runFlood(service, slowDialectReaders, 'wren', more),
    ];
  } finally {
    await service.stop();
  }
};

export const dialects: Scenario = {
  name: 'dialects',
  about: 'through each dialect: threads that end, drains, clients that vanish and slow readers',
  defaultCount: 20,
  run: async (options) => [await threadDeaths(options), await drains(options), ...(await floods(options))],
};
