/** The real service as a child process, on a free port, with a store of its own. */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Test } from 'tap';
import { packageRoot } from './package-root.js';

const compiled = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

const nodeFlags = ['--disable-warning=ExperimentalWarning'];

export type Environment = Readonly<Record<string, string>>;

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

interface LogLine {
  readonly msg: string;
  readonly port?: number;
  readonly opsPort?: number;
  readonly [field: string]: unknown;
}

/** What a process wrote, and how it ended. */
class Child {
  readonly process: ChildProcess;
  readonly exited: Promise<Exit>;
  stdout = '';
  stderr = '';

  constructor(script: string, args: readonly string[], env: Environment) {
    // Without what tap adds to every process: its loader's handlers make signals deadly that the service ignores.
    const node = ['-u', 'NODE_OPTIONS', process.execPath, ...nodeFlags];
    this.process = spawn('env', [...node, compiled(script), ...args], {
      cwd: packageRoot,
      env: { PATH: process.env['PATH'], ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.process.stdout?.on('data', (bytes: Buffer) => (this.stdout += bytes.toString()));
    this.process.stderr?.on('data', (bytes: Buffer) => (this.stderr += bytes.toString()));
    this.exited = new Promise((resolve) => {
      this.process.once('close', (code, signal) => resolve({ code, signal }));
    });
  }

  get lines(): LogLine[] {
    return this.stdout
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as LogLine);
  }
}

export class Service extends Child {
  readonly dataDir: string;
  port = 0;
  opsPort = 0;

  constructor(dataDir: string, env: Environment, script: string) {
    super(script, [], { HOST: '127.0.0.1', PORT: '0', OPS_PORT: '0', DATA_DIR: dataDir, ...env });
    this.dataDir = dataDir;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get opsUrl(): string {
    return `http://127.0.0.1:${this.opsPort}`;
  }

  /** The key that the first start made. */
  get key(): string {
    return readFileSync(join(this.dataDir, 'first-key'), 'utf8').trim();
  }

  /** Resolves when the service listens; rejects when it ends before. */
  async listening(): Promise<void> {
    const found = new Promise<void>((resolve) => {
      const look = (): void => {
        const { port, opsPort } = this.lines.find((line) => line.msg === 'listening') ?? {};
        if (port === undefined || opsPort === undefined) return;
        this.port = port;
        this.opsPort = opsPort;
        resolve();
      };
      this.process.stdout?.on('data', look);
      look();
    });
    const ended = this.exited.then(({ code }) => {
      throw new Error(`the service ended with ${code}: ${this.stderr}${this.stdout}`);
    });
    await Promise.race([found, ended]);
    ended.catch(() => undefined);
  }

  get(path: string, headers: Environment = { 'x-api-key': this.key }): Promise<Response> {
    return fetch(this.url + path, { headers });
  }

  post(path: string, body: unknown, init: { key?: string; signal?: AbortSignal } = {}): Promise<Response> {
    return fetch(this.url + path, {
      method: 'POST',
      headers: { 'x-api-key': init.key ?? this.key, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: init.signal ?? null,
    });
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<Exit> {
    this.process.kill(signal);
    return this.exited;
  }
}

/** The same service with an engine that is scripted, see scripted-synthesis.ts. */
export const SCRIPTED = 'test/support/scripted-service.js';

const temporaryFolder = (t: Test): string => {
  const folder = mkdtempSync(join(tmpdir(), 'syrinx-test-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
};

/** Starts a service that ends with the test. It may not be listening yet. */
export const spawnService = (t: Test, env: Environment = {}, script = 'src/main.js'): Service => {
  const service = new Service(env['DATA_DIR'] ?? join(temporaryFolder(t), 'data'), env, script);
  t.teardown(() => service.stop('SIGKILL'));
  return service;
};

export const startService = async (t: Test, env: Environment = {}, script?: string): Promise<Service> => {
  const service = spawnService(t, env, script);
  await service.listening();
  return service;
};

/** Runs a script of the package to its end. */
export const runScript = async (
  script: string,
  args: readonly string[],
  env: Environment,
): Promise<Exit & { stdout: string; stderr: string }> => {
  const child = new Child(script, args, env);
  const exit = await child.exited;
  return { ...exit, stdout: child.stdout, stderr: child.stderr };
};

export interface StreamRecord {
  readonly type: 'audio' | 'timestamps';
  readonly audio_chunk?: string;
  readonly words?: string[];
  readonly start_seconds?: number[];
  readonly end_seconds?: number[];
}

/** The records of a streamed body as they come. */
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

/** A streamed body to its end: audio bytes joined, words in order of arrival. */
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

export const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Waits for a condition that is to come true; the caller asserts it afterwards. */
export const until = async (condition: () => boolean | Promise<boolean>, ms = 30_000): Promise<boolean> => {
  const end = performance.now() + ms;
  while (performance.now() < end) {
    if (await condition()) return true;
    await pause(5);
  }
  return condition();
};
