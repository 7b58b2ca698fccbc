/**
 * The scenarios of the dialects: synthesis threads that end in mid-speech, drains in mid-speech and clients that vanish; and
 * clients that read slowly, which takes more than a minute. Neighbours listen meanwhile.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { EndpointClient } from '../rig/endpoints.js';
import { Dice } from '../rig/random.js';
import { describeExit, freeDialectPorts, Service } from '../rig/service.js';
import { Tally } from '../rig/tally.js';
import { comesTrue } from './checks.js';
import { runFlood } from './floods/floods.js';
import type { Flood } from './floods/flood.js';
import { slowDialectReaders } from './floods/slow-readers.js';
import type { Scenario, TortureOptions, TortureRow } from './scenario.js';
import { deathsThroughDialects, describeSpeech, endOf, endpointsFor } from './threads/threads.js';

const sentence = 'The train was late again, so we walked along the river and talked about the summer. ';
const settleMs = 500;
/** Two neighbours over WebSockets, with one context or two, and two over HTTP. */
const neighbourContextsMax = 6;

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
    const isAtRest = await comesTrue(
      async () => (await service.status()).openContexts <= neighbourContextsMax,
    );
    const spoken = await describeSpeech(await endpointsFor(service, 'Still here.'));
    const held = isAtRest && !spoken.includes('SILENT') && heard > count / 10;
    return { count, outcome: `${heard} left in mid-speech; ${spoken}`, held };
  },
};

const flood = async (options: TortureOptions, kind: Flood): Promise<TortureRow> => {
  const service = await Service.start({ env: freeDialectPorts });
  try {
    await sleep(settleMs);
    return await runFlood(service, kind, 'wren', { ...options, count: options.count * 15 });
  } finally {
    await service.stop();
  }
};

export const dialects: Scenario = {
  name: 'dialects',
  about: 'through each dialect: threads that end, drains, and clients that vanish',
  defaultCount: 20,
  run: async (options) => [
    await deathsThroughDialects(options),
    await drains(options),
    await flood(options, vanishing),
  ],
};

export const slowDialects: Scenario = {
  name: 'slow-dialect-readers',
  about: 'through each dialect: clients that ask for much speech and read little of it',
  defaultCount: 20,
  run: async (options) => [await flood(options, slowDialectReaders)],
};
