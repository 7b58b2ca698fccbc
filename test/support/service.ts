/** The service as a child process that ends with its test, on free ports, with a store of its own. */
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { Changes } from '../../scripts/rig/changes.js';
import { sumOf } from '../../scripts/rig/exposition.js';
import { type Exit, NodeProcess, Service } from '../../scripts/rig/service.js';
import { memoryFolder } from '../store/support.js';
import { packageRoot } from './package-root.js';
import { fetchAfterTurn, until } from './waiting.js';

export { freePort, holdPort } from '../../scripts/rig/ports.js';
export { pause, until } from './waiting.js';

const cacheFolder = join(packageRoot, 'node_modules', '.cache');
/** Files that are derived from voices, of all tests: to make them takes most of the time of a first start. */
const derivedFolder = join(cacheFolder, 'syrinx-tests');
const compiledFolder = join(cacheFolder, 'syrinx-compiled');

const entryOf = (script: string) => new URL(`../../${script}`, import.meta.url);

/** `npx tap` loads handlers into every Node process that make ignored signals deadly. */
const shared = {
  launcher: ['env', '-u', 'NODE_OPTIONS'],
  inheritsEnv: false,
  keepsLines: true,
  cwd: packageRoot,
} as const;

export type Environment = Readonly<Record<string, string>>;

interface LogEntry {
  readonly msg: string;
  readonly [field: string]: unknown;
}

export class TestService extends Service {
  /** The log so far, but for lines that are no JSON. */
  readonly entries: LogEntry[] = [];
  readonly #changes = new Changes();

  constructor(dataDir: string, env: Environment, script: string, launcher: readonly string[]) {
    super({
      ...{ ...shared, entry: entryOf(script), dataDir, launcher: [...launcher, ...shared.launcher] },
      // A thread more takes half a second of CPU time at each start, and to compile the modules again a fifth of a second.
      env: { SYNTHESIS_THREADS: '1', ACTOR_THREADS: '1', NODE_COMPILE_CACHE: compiledFolder, ...env },
    });
    void this.exited.then(() => this.#changes.notify());
  }

  get stdout(): string {
    return this.lines.join('\n');
  }

  /** The key that the first start made. */
  get key(): string {
    return readFileSync(join(this.dataDir, 'first-key'), 'utf8').trim();
  }

  /** Entries with a message. */
  logged(message: string): LogEntry[] {
    return this.entries.filter(({ msg }) => msg === message);
  }

  /** Waits for the nth entry with a message. @throws if the service ends first */
  async untilLogged(message: string, count = 1): Promise<LogEntry> {
    for (;;) {
      const entry = this.logged(message)[count - 1];
      if (entry !== undefined) return entry;
      if (this.exit !== null) throw new Error(`ended without "${message}": ${this.stdout}${this.stderr}`);
      await this.#changes.next();
    }
  }

  /** The sum of the samples of a metric with these labels; 0 without one. */
  async metric(name: string, labels: Environment = {}): Promise<number> {
    return sumOf(await this.metrics(), name, labels) ?? 0;
  }

  async openContexts(): Promise<number> {
    return (await this.status()).openContexts;
  }

  /** The log entries of all requests that were answered before this call: they come through a pipe, after the answers. */
  async requests(): Promise<LogEntry[]> {
    const answer = await this.get('/');
    await answer.arrayBuffer();
    const last = answer.headers.get('x-request-id');
    await until(() => this.entries.some(({ requestId }) => requestId === last));
    return this.logged('request');
  }

  get(path: string, headers: Environment = { 'x-api-key': this.key }): Promise<Response> {
    return fetchAfterTurn(this.url + path, { headers });
  }

  post(path: string, body: unknown, init: { key?: string; signal?: AbortSignal } = {}): Promise<Response> {
    return fetchAfterTurn(this.url + path, {
      method: 'POST',
      headers: { 'x-api-key': init.key ?? this.key, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: init.signal ?? null,
    });
  }

  protected override onLine(line: string): void {
    super.onLine(line);
    if (line.startsWith('{')) this.entries.push(JSON.parse(line) as LogEntry);
    this.#changes.notify();
  }
}

/** @returns a data folder that goes with the test */
export const newDataFolder = (t: Test): string => {
  const folder = join(memoryFolder(t), 'data');
  mkdirSync(folder, { mode: 0o700 });
  mkdirSync(join(folder, 'voices'));
  mkdirSync(derivedFolder, { recursive: true });
  symlinkSync(derivedFolder, join(folder, 'voices', 'derived'));
  return folder;
};

/** The same service with a scripted engine, see scripted-synthesis.ts. */
export const SCRIPTED = 'test/support/scripted-service.js';

/**
 * Starts a service that ends with the test. It may not listen yet.
 *
 * @param launcher a command that execs the service, such as `['prlimit', '--nofile=64']`
 */
export const spawnService = (
  t: Test,
  env: Environment = {},
  script = 'src/main.js',
  launcher: readonly string[] = [],
): TestService => {
  const dataDir = env['DATA_DIR'] ?? newDataFolder(t);
  const service = new TestService(dataDir, env, script, launcher);
  t.teardown(() => {
    // A defect that is seen once in many runs must leave its reason.
    const faults = service.lines.filter((line) => /"level":[56]0/.test(line)).slice(-5);
    if (!t.passing() && faults.length > 0) console.error(`the service logged:\n${faults.join('\n')}`);
    return service.kill();
  });
  return service;
};

export const startService = async (...parameters: Parameters<typeof spawnService>): Promise<TestService> => {
  const service = spawnService(...parameters);
  await service.listening();
  return service;
};

/** Asserts that a service ends with exit code 1 and one line on standard error, which matches all of `reasons`. */
export const failsToStart = async (
  t: Test,
  service: TestService,
  ...reasons: readonly (string | RegExp)[]
): Promise<void> => {
  t.match(await service.exited, { code: 1 });
  t.equal(service.stderr.trimEnd().split('\n').length, 1, service.stderr);
  for (const reason of reasons) t.match(service.stderr, reason);
};

/** Runs a script of the package to its end. */
export const runScript = async (
  script: string,
  args: readonly string[],
  env: Environment,
): Promise<Exit & { stdout: string; stderr: string }> => {
  const child = new NodeProcess({ ...shared, entry: entryOf(script), args, env });
  const exit = await child.exited;
  return { ...exit, stdout: child.lines.map((line) => `${line}\n`).join(''), stderr: child.stderr };
};

/** A text of 84 characters, several times. */
export const prose = (times: number): string =>
  'The train was late again, so we walked along the river and talked about the summer. '.repeat(times);

/** The body of a speech request. */
export const speech = (text: string, more: object = {}) => ({
  text,
  voice: 'wren',
  response_format: { encoding: 'pcm', sample_rate: 48_000 },
  ...more,
});

export interface StreamRecord {
  readonly type: 'audio' | 'timestamps';
  readonly audio_chunk?: string;
  readonly words?: string[];
  readonly start_seconds?: number[];
  readonly end_seconds?: number[];
}

/** Yields the records of a streamed body as they arrive. */
export async function* recordsOf(response: Response): AsyncGenerator<StreamRecord> {
  if (response.body === null) return;
  let pending = '';
  for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
    const records = (pending + text).split('\n\n');
    pending = records.pop() ?? '';
    for (const record of records) {
      if (!record.startsWith('data: ')) throw new Error(`no record: ${record.slice(0, 80)}`);
      yield JSON.parse(record.slice('data: '.length)) as StreamRecord;
    }
  }
  if (pending !== '') throw new Error('the body ended inside a record');
}

/** Reads a streamed body to its end: audio bytes joined, words in order of arrival. */
export const readStream = async (response: Response) => {
  const chunks: Buffer[] = [];
  const words: { word: string; start: number; end: number; audioBytesBefore: number }[] = [];
  let audioBytes = 0;
  for await (const record of recordsOf(response)) {
    if (record.type === 'audio') {
      const chunk = Buffer.from(record.audio_chunk ?? '', 'base64');
      chunks.push(chunk);
      audioBytes += chunk.length;
    } else
      record.words?.forEach((word, i) =>
        words.push({
          word,
          start: record.start_seconds?.[i] ?? Number.NaN,
          end: record.end_seconds?.[i] ?? Number.NaN,
          audioBytesBefore: audioBytes,
        }),
      );
  }
  return { audio: Buffer.concat(chunks), chunks, words };
};

/** Opens a long stream that is read no further than its first record. `rest` reads on, and throws if the stream is cut. */
export const openStream = async (service: TestService, text = prose(400), key = service.key) => {
  const aborter = new AbortController();
  const response = await service.post('/v1/tts/stream', speech(text), { key, signal: aborter.signal });
  const records = recordsOf(response);
  await records.next();
  /** @returns the characters of base64 that were left */
  const rest = async (): Promise<number> => {
    let characters = 0;
    for await (const { audio_chunk = '' } of records) characters += audio_chunk.length;
    return characters;
  };
  return { response, rest, abort: () => aborter.abort() };
};
