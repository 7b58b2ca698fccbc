/**
 * Voices that people bring: bad packs beside good ones, a pack that is removed while it speaks, storms of SIGHUP. A thread that ends
 * in a step of each engine is tested in `test/e2e/retries.nightly.ts`.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { exchange } from '../../rig/http.js';
import { Dice } from '../../rig/random.js';
import type { Service } from '../../rig/service.js';
import { Tally } from '../../rig/tally.js';
import { foreignPacks, makeMixedPacks, voiceOfEachPack } from '../../voices/fixtures/mixed.js';
import { comesTrue, speak, startOutcome } from '../checks.js';
import { rowOf, unmet, type Scenario, type TortureOptions, type TortureRow } from '../scenario.js';
import { inScratch } from '../../rig/machine.js';
import { badPacks } from './bad-packs.js';

const text = 'The kettle is on, and the kitchen smells of toast. Shall we sit by the window and talk?';
/** A first start tries each new pack, one after the other; one of them takes all its processor time. */
const startMsMax = 240_000;
const reloadMsMax = 60_000;

interface Speaker {
  readonly service: Service;
  readonly key: string;
}

/** @returns the status; 0 for an answer that broke off */
const speakWith = async ({ service, key }: Speaker, voice: string, spoken = text): Promise<string> =>
  String((await speak(service.port, key, spoken, { path: '/v1/tts/stream', voice })).status);

const warningsOf = async ({ port }: Service): Promise<readonly string[]> => {
  const { body } = await exchange(port, { path: '/readyz' });
  return (JSON.parse(body.toString()) as { warnings?: string[] }).warnings ?? [];
};

const startIn = async (scratch: string, onLine?: (line: string) => void): Promise<Speaker> => {
  const outcome = await startOutcome(
    {
      ...{ dataDir: join(scratch, 'data'), env: { MODELS_DIR: join(scratch, 'models') } },
      ...{ synthesisThreads: 2, actorThreads: 1, ...(onLine !== undefined && { onLine }) },
    },
    startMsMax,
  );
  if (outcome.kind !== 'serves') throw new Error(outcome.kind === 'broke' ? outcome.how : outcome.line);
  const { service } = outcome;
  const [key = ''] = await service.makeKeys(1);
  return { service, key };
};

/** Packs that speak: ours, and those of other formats. */
const packCount = 1 + Object.keys(foreignPacks).length;

const voicesOf = async ({ service }: Speaker): Promise<readonly string[]> =>
  voiceOfEachPack(await service.voices());

const beside = async (scratch: string, { progress }: TortureOptions): Promise<TortureRow> => {
  for (const { name, make } of badPacks) await make(join(scratch, 'models', `bad-${name}`));
  progress(`${badPacks.length} bad packs beside good ones`);
  const found = new Map<string, string>();
  const startedMs = performance.now();
  const speaker = await startIn(scratch, (line) => {
    if (!line.includes('a voice pack cannot be used')) return;
    const { pack, reason } = JSON.parse(line) as { pack: string; reason: string };
    found.set(pack, reason);
  });
  const startMs = Math.round(performance.now() - startedMs);
  try {
    const wrong = badPacks.flatMap(({ name, finding }) => {
      const reason = found.get(`bad-${name}`);
      return reason !== undefined && finding.test(reason) ? [] : [`${name}: ${reason ?? 'no finding'}`];
    });
    const voices = await voicesOf(speaker);
    const spoken = new Tally();
    for (const voice of voices) spoken.add(await speakWith(speaker, voice));
    const warnings = (await warningsOf(speaker.service)).length;
    // The next start uses the results of the trials.
    await speaker.service.stop();
    const againMs = performance.now();
    const again = await startIn(scratch);
    const nextStartMs = Math.round(performance.now() - againMs);
    await again.service.stop();
    const conditions = {
      'each good pack has its voices': voices.length === packCount,
      'they speak': spoken.of('200') === packCount,
      'there are warnings': warnings > 0,
    };
    const named = { fault: 'bad packs', injected: badPacks.map(({ name }) => name).join(', ') };
    const saw =
      `${found.size} findings, each with its reason; the voices of ${voices.length} packs spoke (${spoken.toString()}); ` +
      `${warnings} warnings; start ${startMs} ms, the next one ${nextStartMs} ms`;
    return rowOf(named, { count: badPacks.length, saw, wrong: [...wrong, ...unmet(conditions)] });
  } finally {
    await speaker.service.kill();
  }
};

const signals = 50;

/** Packs go and come back, with one SIGHUP in 25 ms meanwhile. */
const removed = async (
  speaker: Speaker,
  models: string,
  { count, progress, seed }: TortureOptions,
): Promise<TortureRow> => {
  const dice = new Dice(seed, 1);
  const ends = new Tally();
  let gone = 0;
  const removable = Object.entries(foreignPacks);
  // Two listeners of each voice: one key has at most nine requests in flight.
  const [key = ''] = await speaker.service.makeKeys(1);
  const listeners = [speaker, { ...speaker, key }];
  const storm = async (): Promise<void> => {
    for (let i = 0; i < signals; i++) {
      speaker.service.signal('SIGHUP');
      await sleep(dice.between(0, 50));
    }
  };
  for (let i = 0; i < count; i++) {
    progress(`voices removed ${i} of ${count} times: ${ends.toString()}`);
    const foreign = (await voicesOf(speaker)).slice(1);
    const speaking = listeners.flatMap((listener) =>
      foreign.map((voice) => speakWith(listener, voice, `${text} ${text}`)),
    );
    await sleep(20);
    for (const [name] of removable) rmSync(join(models, name), { recursive: true });
    await storm();
    for (const end of await Promise.all(speaking)) ends.add(end);
    const isGone = async () => (await voicesOf(speaker)).length === 1;
    if (await comesTrue(isGone, reloadMsMax))
      for (const voice of foreign) if ((await speakWith(speaker, voice)) === '422') gone++;
    for (const [name, make] of removable) await make(join(models, name));
    await storm();
    await comesTrue(async () => (await voicesOf(speaker)).length === packCount, reloadMsMax);
  }
  const times = count * removable.length;
  const named = {
    fault: 'voices removed',
    injected: `files deleted while their voices speak, then put back, with ${signals} times SIGHUP each`,
  };
  const conditions = {
    'speech goes on to its end': ends.of('200') === 2 * times,
    'the voices are unknown afterwards': gone === times,
    'it is ready afterwards': await comesTrue(async () => (await speaker.service.unreadyReasons()) === ''),
  };
  const saw = `speech in progress: ${ends.toString()}; unknown afterwards ${gone} of ${times} times`;
  return rowOf(named, { count, saw, wrong: unmet(conditions) });
};

export const voices: Scenario = {
  name: 'voices',
  about: 'packs that people bring: bad, hostile, removed while they speak; reloads without end',
  defaultCount: 4,
  run: (options) =>
    inScratch(async (scratch) => {
      const models = join(scratch, 'models');
      await makeMixedPacks(models);
      const bad = await beside(scratch, options);
      for (const { name } of badPacks) rmSync(join(models, `bad-${name}`), { recursive: true });
      const speaker = await startIn(scratch);
      try {
        return [bad, await removed(speaker, models, options)];
      } finally {
        await speaker.service.stop();
      }
    }),
};
