/** A front with the Wyoming port, whose account that pays is that of `GOOD_KEY`. */
import type { Test } from 'tap';
import { wyoming } from '../../src/dialects/wyoming/wyoming.js';
import { limits, type Bounds } from '../../src/limits.js';
import { FakeSpeech } from './fake-speech.js';
import { FakeAdmission, startFront, type Front } from './front-server.js';
import { WyomingClient } from './wyoming-client.js';

export const payer = { accountId: 7, keyId: 7 };

export interface WyomingFront {
  readonly front: Front;
  readonly speech: FakeSpeech;
  readonly admission: FakeAdmission;
  /** @param localAddress the client's */
  readonly open: (localAddress?: string) => Promise<WyomingClient>;
}

/** @param clock in place of the machine's */
export const startWyomingFront = async (
  t: Test,
  someBounds: Partial<Bounds>,
  clock?: () => number,
): Promise<WyomingFront> => {
  const [speech, admission] = [new FakeSpeech(), new FakeAdmission()];
  const bounds = { ...limits, ...someBounds };
  const config = { host: '127.0.0.1', isReachable: false, port: 0, allow: [], account: 'default' };
  const front = await startFront(t, {
    bounds,
    parts: {
      ...{ speech, admission },
      ...(clock !== undefined && { clock }),
      further: (shared) => {
        const parts = { shared, speech, admission, bounds, certificate: null };
        return [wyoming({ ...parts, config: { host: '', dataDir: '', corsOrigins: [] } }, config, payer)];
      },
    },
  });
  return {
    ...{ front, speech, admission },
    open: async (localAddress) => {
      const client = await WyomingClient.open(front.dialectPorts['wyoming'] ?? 0, localAddress);
      t.teardown(() => client.close());
      return client;
    },
  };
};
