/** A drain while speech is under way through each endpoint. Clients that leave in mid-speech are in every soak. */
import { setTimeout as sleep } from 'node:timers/promises';
import { EndpointClient } from '../rig/endpoints.js';
import { Dice } from '../rig/random.js';
import { describeExit, freeDialectPorts, Service } from '../rig/service.js';
import { Tally } from '../rig/tally.js';
import { endOf, endpointsFor } from './checks.js';
import { rowOf, unmet, type Scenario } from './scenario.js';

/** About a minute of speech. It is made within a drain. */
const text = 'The train was late again, so we walked along the river and talked about the summer. '.repeat(
  12,
);

/** @returns what is wrong */
const drainOnce = async (dice: Dice, ends: Tally): Promise<string[]> => {
  // Enough time on a busy machine.
  const patient = { ...freeDialectPorts, DRAIN_SECONDS: '60' };
  const service = await Service.start({ env: patient, synthesisThreads: 2, actorThreads: 1 });
  try {
    const endpoints = await endpointsFor(service, text);
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
