/** Ends in mid-speech, through each endpoint: drains, and clients that vanish while neighbours listen. */
import { setTimeout as sleep } from 'node:timers/promises';
import { EndpointClient } from '../rig/endpoints.js';
import { Dice } from '../rig/random.js';
import { describeExit, freeDialectPorts, Service } from '../rig/service.js';
import { Tally } from '../rig/tally.js';
import { scenarioOf, type Fault } from './beside.js';
import { comesTrue, endOf, endpointsFor, silentOf } from './checks.js';
import { rowOf, unmet, type Scenario } from './scenario.js';

const sentence = 'The train was late again, so we walked along the river and talked about the summer. ';
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
    const inSpeech = clients.every(({ end, heardMs }) => heardMs > 0 && end === null);
    service.signal('SIGTERM');
    await sleep(dice.below(200));
    leaving.reset();
    const late = endpoints.map((endpoint) => new EndpointClient(endpoint));
    const endsNow = await Promise.all(clients.map(endOf));
    for (const end of endsNow) ends.add(end);
    const exit = await service.exited;
    // The drain may let them in for a moment; it may not leave them without an answer.
    const lateEnds = await Promise.all(late.map(endOf));
    return unmet({
      'all were in mid-speech': inSpeech,
      'what was under way came to its end': endsNow.every((end) => end === 'whole'),
      [`exit 0, not ${describeExit(exit)}`]: exit.code === 0,
      'late clients had an answer': !lateEnds.includes('no end'),
      [`no error logged: ${service.log.errorLines[0] ?? ''}`]: service.log.errors === 0,
    });
  } finally {
    await service.kill();
  }
};

export const drains: Scenario = {
  name: 'drains',
  about: 'SIGTERM while a minute of speech is under way through each endpoint, and one more client leaves',
  defaultCount: 20,
  async run({ count, progress, seed }) {
    const wrong: string[] = [];
    const ends = new Tally();
    for (let round = 0; round < count; round++) {
      progress(`${round} of ${count}, ${ends.toString()}`);
      wrong.push(...(await drainOnce(new Dice(seed, round), ends)));
    }
    const named = { fault: 'a drain in mid-speech', injected: drains.about };
    return [rowOf(named, { count, saw: `what was under way: ${ends.toString()}`, wrong })];
  },
};

const vanishing: Fault = {
  fault: 'clients that vanish',
  injected: 'connections to each endpoint that end 0 to 300 ms after they begin, half of them with a RST',
  async inject({ count, progress, seed, service }) {
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
    const conditions = { 'the contexts of all are closed': isAtRest, 'some have heard': heard > count / 10 };
    const wrong = [...unmet(conditions), ...(await silentOf(service))];
    return { count, saw: `${heard} left in mid-speech`, wrong };
  },
};

export const vanish = scenarioOf(
  { name: 'vanish', about: vanishing.injected, defaultCount: 1_000 },
  [vanishing],
  { env: freeDialectPorts },
);
