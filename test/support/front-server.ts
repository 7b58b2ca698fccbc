/** The front on a real port, with a scripted `Speech` and an admission in memory. */
import type { Test } from 'tap';
import type { Admission } from '../../src/accounts/admission.js';
import type { ActiveKey, KeysListener } from '../../src/store/store.js';
import { readCertificate } from '../../src/front/certificate.js';
import { KeysInUse } from '../../src/front/keys-in-use.js';
import { createServer, type Server, type ServerParts } from '../../src/front/server.js';
import { limits, type Bounds } from '../../src/limits.js';
import { monotonicMs } from '../../src/monotonic.js';
import type { Log } from '../../src/log.js';
import type { TestCertificate } from './certificates.js';
import { Metrics } from '../../src/metrics.js';
import { FakeLease, FakeSpeech } from './fake-speech.js';
import { RawClient, requestBytes, type RequestOptions } from './raw-client.js';
import { noSpeakingDefaults, type SpeakingDefaults } from '../../src/api/speech-settings.js';

export { eventually } from './waiting.js';

export const GOOD_KEY = 'svc_sk_good';
/** Of the account of the first one. */
export const SECOND_KEY = 'svc_sk_second';
export const OTHER_KEY = 'svc_sk_other';
export const BROKE_KEY = 'svc_sk_broke';

/** Keys of one account end with the same digit. */
const accountOf = (keyId: number): number => keyId % 10;

export const activeKey = (
  keyId: number,
  voices: readonly string[] | null = null,
  speaking: SpeakingDefaults = noSpeakingDefaults,
): ActiveKey => ({
  keyId,
  accountId: accountOf(keyId),
  account: `account ${accountOf(keyId)}`,
  expiresAtMs: null,
  voices,
  speaking,
});

export interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly fields: Record<string, unknown>;
}

/** For services without an admission. */
export const keysInUse = (): KeysInUse =>
  new KeysInUse({ admission: { renew: (key) => key }, clock: monotonicMs, bounds: limits });

/** Keeps the lines of a log. */
export const recordingLog = (lines: LogLine[]): Log => {
  const at = (level: string) => (fields: unknown, message?: string) => {
    if (typeof fields === 'string') lines.push({ level, message: fields, fields: {} });
    else lines.push({ level, message: message ?? '', fields: fields as Record<string, unknown> });
  };
  const methods = ['debug', 'info', 'warn', 'error', 'fatal'].map((level) => [level, at(level)] as const);
  return Object.fromEntries(methods) as unknown as Log;
};

export class FakeAdmission implements Admission {
  readonly leases: FakeLease[] = [];
  readonly revoked = new Set<number>();
  #onRevoked: KeysListener = () => undefined;
  /** Voices that a key is restricted to. */
  readonly voices = new Map<number, readonly string[]>();
  slotsTaken = 0;
  authenticated = 0;

  authenticate(header: string): ReturnType<Admission['authenticate']> {
    this.authenticated += 1;
    if (!header.startsWith('svc_sk_'))
      return { ok: false, code: header === '' ? 'keyMissing' : 'keyMalformed' };
    if (header === GOOD_KEY) return this.#active(7);
    if (header === SECOND_KEY) return this.#active(17);
    if (header === OTHER_KEY) return this.#active(9);
    if (header === BROKE_KEY) return this.#active(8);
    return { ok: false, code: 'keyUnknown' };
  }

  byId(keyId: number): ReturnType<Admission['byId']> {
    return this.revoked.has(keyId) ? { ok: false, code: 'keyUnknown' } : this.#active(keyId);
  }

  async refresh(): Promise<void> {}

  renew({ keyId }: ActiveKey): ActiveKey | null {
    return this.revoked.has(keyId) ? null : this.#active(keyId).key;
  }

  watchKeys(listener: KeysListener): void {
    this.#onRevoked = listener;
  }

  /** As a store does that says so by itself. */
  revoke(keyId: number): void {
    this.revoked.add(keyId);
    this.#onRevoked([keyId]);
  }

  admit(key: { readonly keyId: number }): ReturnType<Admission['admit']> {
    if (key.keyId === 8) return { ok: false, code: 'creditExhausted' };
    if (this.slotsTaken >= 9) return { ok: false, code: 'slotsExhausted' };
    this.slotsTaken += 1;
    const lease = new FakeLease(() => (this.slotsTaken -= 1));
    this.leases.push(lease);
    return { ok: true, lease };
  }

  standing({ keyId }: Pick<ActiveKey, 'keyId'>): ReturnType<Admission['standing']> {
    const leftCharacters = keyId === 8 ? 0 : 1_000;
    return { usedCharacters: 10, leftCharacters, hasFreeSlot: this.slotsTaken < 9 };
  }

  get inFlight(): Admission['inFlight'] {
    return { slots: this.slotsTaken, reservedCredits: 0 };
  }

  #active(keyId: number): { readonly ok: true; readonly key: ActiveKey } {
    return { ok: true, key: activeKey(keyId, this.voices.get(keyId)) };
  }
}

export interface Front {
  readonly server: Server;
  readonly port: number;
  /** Of the further listeners, by name. */
  readonly dialectPorts: Readonly<Record<string, number>>;
  /** Where results too large for memory go. */
  readonly dataDir: string;
  readonly speech: FakeSpeech;
  readonly admission: FakeAdmission;
  readonly lines: LogLine[];
  readonly metrics: Metrics;
  /** Why the stages below are not ready. */
  readonly reasons: string[];
  /** What needs the operator's attention. */
  readonly warnings: string[];
  client(): Promise<RawClient>;
  /** Opens a client and sends a request. */
  sent(request: RequestOptions | Buffer): Promise<RawClient>;
}

export const startFront = async (
  t: Test,
  options: {
    readonly bounds?: Partial<Bounds>;
    readonly parts?: Partial<ServerParts>;
    readonly corsOrigins?: readonly string[];
    /** With it, all clients use TLS. */
    readonly certificate?: TestCertificate;
  } = {},
): Promise<Front> => {
  const lines: LogLine[] = [];
  const reasons: string[] = [];
  const warnings: string[] = [];
  const speech = new FakeSpeech();
  const metrics = new Metrics();
  const admission = new FakeAdmission();
  const dataDir = t.testdir({});
  const { certificate } = options;
  const server = createServer({
    config: { host: '127.0.0.1', port: 0, dataDir, corsOrigins: options.corsOrigins ?? [] },
    speech,
    admission,
    readiness: { reasons: () => reasons, warnings: () => warnings },
    log: recordingLog(lines),
    metrics,
    bounds: { ...limits, ...options.bounds },
    certificate: certificate === undefined ? null : readCertificate(certificate),
    ...options.parts,
  });
  const { port, dialectPorts } = await server.listen();
  const clients: RawClient[] = [];
  t.teardown(() => {
    for (const client of clients) client.destroy();
    server.close();
  });
  const client = async (): Promise<RawClient> => {
    const opened = await RawClient.open(port, certificate?.ca);
    clients.push(opened);
    return opened;
  };
  return {
    server,
    port,
    dialectPorts,
    dataDir,
    speech,
    admission,
    lines,
    metrics,
    reasons,
    warnings,
    client,
    sent: async (request) => {
      const opened = await client();
      opened.send(Buffer.isBuffer(request) ? request : requestBytes(request));
      return opened;
    },
  };
};

/** A valid request for speech. */
export const speak = (
  path: '/v1/tts' | '/v1/tts/stream',
  body: Record<string, unknown> = {},
): RequestOptions => ({
  method: 'POST',
  path,
  key: GOOD_KEY,
  body: JSON.stringify({ text: 'Hello there.', voice: 'ada', ...body }),
});

/** A valid message of a voice-agent platform. @param query after the question mark */
export const platformAsks = (message: Record<string, unknown> = {}, query = 'voice=ada'): RequestOptions => ({
  method: 'POST',
  path: `/v1/tts/integrations/voiceplatform${query === '' ? '' : `?${query}`}`,
  key: GOOD_KEY,
  body: JSON.stringify({ message: { type: 'voice-request', text: 'Hello there.', ...message } }),
});

export const requestLines = (front: Front): LogLine[] =>
  front.lines.filter(({ message }) => message === 'request');
