/** Floods of whole requests: of one key, of many keys, and of clients that leave before the answer. */
import { setTimeout as sleep } from 'node:timers/promises';
import { encodeRequest, speechRequest } from '../../rig/http.js';
import { Dice } from '../../rig/random.js';
import { RawConnection } from '../../rig/raw-connection.js';
import { Tally } from '../../rig/tally.js';
import type { Fault, FaultParts } from '../beside.js';
import { unmet } from '../scenario.js';

/** Generous: the fault to find is a request without an answer. */
const answerMsMax = 60_000;

/** Runs `act` `count` times, `parallel` at a time. */
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

const ask = async ({ service, voice }: FaultParts, key: string, text: string): Promise<string> => {
  const client = new RawConnection(service);
  client.write(encodeRequest(speechRequest({ key, voice, text })));
  const status = await client.answered(answerMsMax);
  // Reads a stream to its end.
  if (status === '200') for (let i = 0; i < 2_000 && !client.isWhole && !client.isClosed; i++) await sleep(5);
  const isCut = status === '200' && !client.isWhole;
  client.reset();
  return isCut ? '200, cut' : status;
};

export const oneKey: Fault = {
  fault: 'requests of one key',
  injected: '64 at a time, of a key that has nine slots',
  async inject(parts) {
    const { count, keys, progress } = parts;
    const [key = ''] = await keys(1);
    const answers = new Tally();
    const total = count * 5;
    await repeat(total, 64, async (index) => {
      answers.add(await ask(parts, key, 'One of very many.'));
      progress(`${index} of ${total}: ${answers.toString()}`);
    });
    const [spoken, refused] = [answers.of('200'), answers.of('429')];
    const conditions = {
      'each is spoken or refused': spoken + refused === total && spoken > 0 && refused > 0,
    };
    return { count: total, saw: answers.toString(), wrong: unmet(conditions) };
  },
};

export const manyKeys: Fault = {
  fault: 'requests of many keys',
  injected: '64 at a time, over 40 keys, a short sentence each',
  async inject(parts) {
    const { count, keys, progress } = parts;
    const all = await keys(40);
    const answers = new Tally();
    const total = count * 2;
    await repeat(total, 64, async (index) => {
      answers.add(await ask(parts, all[index % all.length]!, 'Hi.'));
      progress(`${index} of ${total}: ${answers.toString()}`);
    });
    const wrong = unmet({ 'all are spoken': answers.of('200') === total });
    return { count: total, saw: answers.toString(), wrong };
  },
};

export const aborted: Fault = {
  fault: 'requests aborted',
  injected: 'connection reset 0 to 30 ms after a request of each kind, over 20 keys',
  async inject(parts) {
    const { count, keys, progress, seed, service, voice } = parts;
    const all = await keys(20);
    const dice = new Dice(seed);
    const total = count * 10;
    const paths = ['/v1/tts/stream', '/v1/tts', '/v1/tts/stream', '/v1/tts/speakers'];
    const text = 'No client waits for the end of this sentence. '.repeat(4);
    const answers = new Tally();
    await repeat(total, 64, async (index) => {
      const client = new RawConnection(service);
      const [key, path] = [all[index % all.length]!, paths[index % paths.length]!];
      const request = encodeRequest(speechRequest({ key, voice, text, path }));
      const cut = dice.chance(0.2) ? dice.below(request.length) : request.length;
      client.write(request.subarray(0, cut));
      if (await client.connected()) await sleep(dice.below(30));
      answers.add(client.status ?? 'unanswered');
      client.reset();
      if (index % 100 === 0) progress(`${index} of ${total}`);
    });
    const wrong = unmet({ 'none is closed or a 500': answers.of('500') === 0 && answers.of('closed') === 0 });
    return { count: total, saw: `answered before they left: ${answers.toString()}`, wrong };
  },
};
