/** What scenarios ask a service: does it speak, does it start, is it at rest. */
import { setTimeout as sleep } from 'node:timers/promises';
import { EndpointClient, endpointsOf, type Endpoint } from '../rig/endpoints.js';
import { exchange, speechRequest, type SpeechPath } from '../rig/http.js';
import { percentile } from '../rig/statistics.js';
import { describeExit, Service, type ServiceOptions, type Status } from '../rig/service.js';

/** Median and longest, or other shares, of milliseconds. */
export const spreadOf = (values: readonly number[], shares: readonly number[] = [0.5, 1]): string =>
  shares.map((share) => String(Math.round(percentile(values, share)))).join('/');

/** Whole milliseconds in words. */
export const ms = (value: number): string => `${Math.round(value)} ms`;

/** One request to its end. @returns its status, 0 without a response or when it broke off, and the bytes of its body */
export const speak = async (
  port: number,
  key: string,
  text: string,
  { path = '/v1/tts', voice = 'wren' }: { readonly path?: SpeechPath; readonly voice?: string } = {},
): Promise<{ readonly status: number; readonly bytes: number }> => {
  const format = { encoding: 'pcm', sampleRateHz: 32_000 } as const;
  const answer = await exchange(port, speechRequest({ key, voice, text, path, format }));
  return answer.isWhole ? { status: answer.status, bytes: answer.body.length } : { status: 0, bytes: 0 };
};

const endMsMax = 60_000;

/** How the answer to a client ended. */
export const endOf = async (client: EndpointClient): Promise<string> => {
  const end = await Promise.race([client.ended(), sleep(endMsMax, 'no end', { ref: false })]);
  client.leave();
  return end === 'cut' && client.heardMs === 0 ? 'no answer' : end;
};

/** All endpoints of the public port and of the dialects, for a text that a new key asks for. */
export const endpointsFor = async (service: Service, text: string): Promise<readonly Endpoint[]> => {
  const { dialectPorts, port } = service;
  const [key = ''] = await service.makeKeys(1);
  const format = { encoding: 'pcm', sampleRateHz: 24_000 } as const;
  const { requests, sockets } = endpointsOf({ port, dialectPorts, key, voice: 'wren', text, format });
  return [...requests, ...sockets];
};

/** @returns endpoints that do not speak to their end, in words */
export const silentOf = async (service: Service): Promise<string[]> => {
  const silent: string[] = [];
  for (const endpoint of await endpointsFor(service, 'Still here.'))
    if ((await endOf(new EndpointClient(endpoint))) !== 'whole') silent.push(`${endpoint.name} is silent`);
  return silent;
};

/** Waits for a condition. @returns false if it does not come true in time */
export const comesTrue = async (condition: () => Promise<boolean>, withinMs = 30_000): Promise<boolean> => {
  const endMs = performance.now() + withinMs;
  while (performance.now() < endMs) {
    if (await condition().catch(() => false)) return true;
    await sleep(50);
  }
  return false;
};

/** The result of a start. */
export type StartOutcome =
  | { readonly kind: 'serves'; readonly service: Service }
  /** Exit code 1 and one line, without a stack. */
  | { readonly kind: 'refused'; readonly line: string }
  | { readonly kind: 'broke'; readonly how: string };

/** More than any start takes on a busy machine. */
const startMsMax = 60_000;

export const startOutcome = async (options: ServiceOptions, msMax = startMsMax): Promise<StartOutcome> => {
  const service = new Service(options);
  const timeout = new AbortController();
  const first = await Promise.race([
    service.listening().then(
      () => 'listening' as const,
      () => 'ended' as const,
    ),
    sleep(msMax, 'hung' as const, { signal: timeout.signal }),
  ]);
  timeout.abort();
  if (first === 'listening') return { kind: 'serves', service };
  if (first === 'hung') {
    await service.kill();
    return { kind: 'broke', how: 'it neither listened nor ended' };
  }
  const exit = await service.exited;
  const lines = service.stderr.trimEnd().split('\n');
  const [line = ''] = lines;
  if (exit.code === 1 && lines.length === 1 && line.startsWith('syrinx: ')) return { kind: 'refused', line };
  return { kind: 'broke', how: `exit ${describeExit(exit)}: ${lines.slice(0, 3).join(' / ')}` };
};

/** The service closes idle connections after ten seconds, in steps of four. */
const restMsMax = 25_000;
/** Files of the store and of the system come and go. */
const moreFilesMax = 4;
const slotsPerKey = 9;

const isAtRest = (status: Status): boolean =>
  status.requestsInFlight === 0 &&
  status.openContexts === 0 &&
  status.runningSegments === 0 &&
  status.threadsWhole;

/** Whether the key can have all its requests at once. */
const slotsAreFree = async (port: number, key: string): Promise<boolean> => {
  const spoken = await Promise.all(
    Array.from({ length: slotsPerKey }, () => speak(port, key, 'Still here.')),
  );
  return spoken.every(({ status }) => status === 200);
};

/**
 * Waits until the service is at rest.
 *
 * @param filesBefore open files of the service before the torture
 * @param keys whose slots must be free
 * @returns what the service still holds, in words
 */
export const leftoversOf = async (
  service: Service,
  filesBefore: number,
  keys: readonly string[],
): Promise<string[]> => {
  const filesMax = filesBefore + moreFilesMax;
  const endMs = performance.now() + restMsMax;
  let status = await service.status();
  while ((!isAtRest(status) || service.openFiles > filesMax) && performance.now() < endMs) {
    await sleep(200);
    status = await service.status();
  }
  const left: string[] = [];
  if (!isAtRest(status)) left.push(`not at rest: ${JSON.stringify(status)}`);
  if (service.openFiles > filesMax) left.push(`${service.openFiles} open files, before ${filesBefore}`);
  for (const key of keys) if (!(await slotsAreFree(service.port, key))) left.push('slots of a key');
  return left;
};
