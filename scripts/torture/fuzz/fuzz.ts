/**
 * Raw bytes from a seeded generator to the service with its real voices, while neighbours listen.
 *
 * Most keys of the inputs have no credit: their requests pass every check but the last and are not spoken, so that the
 * CPU goes to what is fuzzed. Some keys have credit.
 */
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freeDialectPorts } from '../../rig/service.js';
import { Tally } from '../../rig/tally.js';
import { scenarioOf, type Fault } from '../beside.js';
import type { Vocabulary } from './corpus.js';
import { inputOf } from './input.js';
import { shoot } from './shot.js';

const parallel = 256;
const goodKeyCount = 2;
/** Failed inputs that are written to files and reported. */
const failuresReportedMax = 5;
const progressEvery = 50;
/** Of the clients, from 127.0.0.2 on, where the system has them. */
const addresses = process.platform === 'linux' ? 100 : 0;

const rawBytes: Fault = {
  fault: 'raw bytes over HTTP and WebSocket, to all listeners',
  injected: `a seeded generator, ${parallel} connections at a time, to the public port and the dialects`,
  async inject({ count, keys, progress, seed, service }) {
    const vocabulary: Vocabulary = {
      goodKeys: await keys(goodKeyCount),
      brokeKeys: await service.makeKeys(6, 0),
      voices: await service.voices(),
    };
    const wrong: string[] = [];
    const answers = new Tally();
    const kinds = new Tally();
    const startedMs = performance.now();
    let next = 0;
    let done = 0;
    const onFault = (index: number, what: string): void => {
      wrong.push(what);
      if (wrong.length > failuresReportedMax) return;
      const { afterUpgrade, bytes, ...input } = inputOf(seed, index, vocabulary);
      const file = join(tmpdir(), `syrinx-fuzz-${seed}-${index}.json`);
      const hex = { bytes: bytes.toString('hex'), afterUpgrade: afterUpgrade?.toString('hex') ?? null };
      writeFileSync(file, `${JSON.stringify({ seed, index, what, ...input, ...hex })}\n`);
      process.stderr.write(`\ninput ${index} of seed ${seed}: ${what}; its bytes: ${file}\n`);
    };
    const isAlive = (): boolean => service.exit === null;
    const client = async (): Promise<void> => {
      while (next < count && isAlive()) {
        const index = next++;
        const input = inputOf(seed, index, vocabulary);
        const port = input.dialect === null ? service.port : service.dialectPorts[input.dialect]!;
        const address = addresses > 0 ? `127.0.0.${2 + (index % addresses)}` : '127.0.0.1';
        const shot = await shoot(input, port, address);
        kinds.add(input.kind);
        for (const answer of shot.answers) answers.add(answer);
        if (!isAlive()) onFault(index, 'the service exited');
        else if (shot.fault !== null) onFault(index, `input ${index}: ${shot.fault}`);
        if (++done % progressEvery > 0) continue;
        const rate = Math.round((done * 1000) / (performance.now() - startedMs));
        progress(`${done} of ${count}, ${rate} a second, ${wrong.length + service.log.errors} faults`);
      }
    };
    await Promise.all(Array.from({ length: parallel }, client));
    const seconds = Math.round((performance.now() - startedMs) / 1000);
    const saw = `seed ${seed}: ${kinds.toShares()}; answers: ${answers.toShares()}; in ${seconds} s`;
    return { count, saw, wrong };
  },
};

export const fuzz = scenarioOf(
  {
    name: 'fuzz',
    about: 'raw bytes over HTTP and WebSocket from a seeded generator; by night a million',
    defaultCount: 100_000,
  },
  [rawBytes],
  { synthesisThreads: 2, actorThreads: 1, env: freeDialectPorts },
);
