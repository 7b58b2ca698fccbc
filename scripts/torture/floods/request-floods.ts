/** Floods of whole requests: of one key, of many, and of clients who are gone before they are answered. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Dice } from '../dice.js';
import { ByteClient, speechRequest } from './clients.js';
import { countOne, formatCounts, type Flood, type FloodParts } from './flood.js';

/** Generous: what is to be found is a request that is never answered. */
const answerMsMax = 60_000;

/** Runs `act` so often, so many at a time. */
const repeat = async (
  count: number,
  parallel: number,
  act: (index: number) => Promise<void>,
): Promise<void> => {
  let next = 0;
  const runOn = async (): Promise<void> => {
    for (let index = next++; index < count; index = next++) await act(index);
  };
  await Promise.all(Array.from({ length: parallel }, runOn));
};

const ask = async ({ service }: FloodParts, request: string): Promise<string> => {
  const client = new ByteClient(service.port);
  client.socket.write(request);
  const status = await client.status(answerMsMax);
  // A stream is heard to its end.
  if (status === '200') for (let i = 0; i < 2_000 && !client.isWhole && !client.isClosed; i++) await sleep(5);
  const isCut = status === '200' && !client.isWhole;
  client.reset();
  return isCut ? '200, cut' : status;
};

export const oneKey: Flood = {
  fault: 'requests of one key',
  injected: '64 at a time, of a key that has nine slots',
  async run(parts) {
    const { count, keys, progress, voice } = parts;
    const [key = ''] = await keys(1);
    const answers = new Map<string, number>();
    const total = count * 5;
    await repeat(total, 64, async (index) => {
      countOne(answers, await ask(parts, speechRequest(key, voice, 'One of very many.')));
      progress(`${String(index)} of ${String(total)}: ${formatCounts(answers)}`);
    });
    const known = (answers.get('200') ?? 0) + (answers.get('429') ?? 0);
    const held = known === total && answers.has('200') && answers.has('429');
    return { count: total, outcome: formatCounts(answers), held };
  },
};

export const manyKeys: Flood = {
  fault: 'requests of many keys',
  injected: '64 at a time, over 40 keys, a short sentence each',
  async run(parts) {
    const { count, keys, progress, voice } = parts;
    const all = await keys(40);
    const answers = new Map<string, number>();
    const total = count * 2;
    await repeat(total, 64, async (index) => {
      const request = speechRequest(all[index % all.length]!, voice, 'Hi.');
      countOne(answers, await ask(parts, request));
      progress(`${String(index)} of ${String(total)}: ${formatCounts(answers)}`);
    });
    return { count: total, outcome: formatCounts(answers), held: answers.get('200') === total };
  },
};

export const aborted: Flood = {
  fault: 'requests aborted',
  injected: 'connection reset 0 to 30 ms after a request of each kind, over 20 keys',
  async run(parts) {
    const { count, keys, progress, seed, service, voice } = parts;
    const all = await keys(20);
    const dice = new Dice(seed);
    const total = count * 10;
    const paths = ['/v1/tts/stream', '/v1/tts', '/v1/tts/stream', '/v1/tts/speakers'];
    const text = 'This is a sentence whose end nobody will wait for. '.repeat(4);
    const answers = new Map<string, number>();
    await repeat(total, 64, async (index) => {
      const client = new ByteClient(service.port);
      const request = speechRequest(all[index % all.length]!, voice, text, paths[index % paths.length]);
      const cut = dice.chance(0.2) ? dice.below(request.length) : request.length;
      client.socket.write(request.slice(0, cut));
      if (await client.connected()) await sleep(dice.below(30));
      countOne(answers, client.statuses[0] ?? 'unanswered');
      client.reset();
      if (index % 100 === 0) progress(`${String(index)} of ${String(total)}`);
    });
    const held = !answers.has('500') && !answers.has('closed');
    return { count: total, outcome: `when they went: ${formatCounts(answers)}`, held };
  },
};
