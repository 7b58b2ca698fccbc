import { closeSync, openSync, statSync, writeSync } from 'node:fs';
import fc from 'fast-check';
import t from 'tap';
import { createAdmission } from '../../src/accounts/admission.js';
import type { Lease } from '../../src/accounts/lease.js';
import { limits } from '../../src/limits.js';
import { Reservations } from '../../src/store/reservations.js';
import { storePath } from '../../src/store/sqlite/database.js';
import { SqliteReader } from '../../src/store/sqlite/reader.js';
import type { ActiveKey, LedgerEntry } from '../../src/store/store.js';
import { createKeys } from '../../scripts/operator.js';
import { check } from '../fuzz/check.js';
import { activeKey } from '../support/front-server.js';
import { balances, memoryFolder } from '../store/support.js';
import { CopyingReader, SteppedLedger, keyOf, leaseOf, log, setUp } from './stepped-admission.js';
import { noSpeakingDefaults } from '../../src/api/speech-settings.js';

t.test('a lease grows with its text within the credit, and refunds text that is dropped', async (t) => {
  const { dataDir, administration, ledger, admission } = setUp(t, 2);
  const { key } = await administration.createKey('shop', 100);
  const shop = keyOf(admission, key);
  const lease = leaseOf(admission.admit(shop, 20, 'socket'));
  const other = leaseOf(admission.admit(shop, 5, 'request'));
  t.strictSame(admission.inFlight, { slots: 2, reservedCredits: 50 });
  t.equal(lease.reserve(26), 'creditExhausted', '52 credits, of 50 that are not promised');
  t.strictSame(admission.inFlight, { slots: 2, reservedCredits: 50 }, 'a refusal changes nothing');
  t.equal(lease.reserve(25), null);
  t.strictSame(admission.admit(shop, 1, 'late'), { ok: false, code: 'creditExhausted' });
  lease.settle(10, 'wren');
  lease.refund(15);
  t.equal(admission.inFlight.reservedCredits, 70);
  lease.refund(1_000);
  t.equal(admission.inFlight.reservedCredits, 30, 'settled text is not refunded');
  lease.refund(1);
  t.equal(lease.reserve(35), null);
  ledger.fault = 'full';
  t.equal(lease.reserve(1), 'unavailable', 'nothing is reserved while nothing can be written');
  ledger.fault = null;
  lease.close();
  lease.refund(5);
  t.throws(() => lease.reserve(1), /closed lease/);
  t.strictSame(admission.inFlight, { slots: 1, reservedCredits: 10 });
  other.close();
  ledger.commit();
  t.strictSame(balances(dataDir), [{ name: 'shop', balance: 80, sum: 80 }]);
});

t.test(
  'credit that was spent is not free again while the copy of the store is older than the ledger',
  async (t) => {
    let copy: CopyingReader | undefined;
    const { administration, ledger, admission } = setUp(
      t,
      1,
      () => 1_000,
      limits.leaseStepCharacters,
      (reader) => {
        copy = new CopyingReader(reader);
        return copy;
      },
    );
    const { key } = await administration.createKey('shop', 100);
    const shop = keyOf(admission, key);
    const speak = (characters: number) => {
      const lease = leaseOf(admission.admit(shop, characters, 'request'));
      lease.settle(characters, 'wren');
      lease.close();
    };
    speak(60);
    ledger.commit();
    ledger.acknowledge();
    speak(10);
    t.strictSame(admission.admit(shop, 31, 'request'), { ok: false, code: 'creditExhausted' });
    copy!.renew();
    t.strictSame(admission.admit(shop, 31, 'request'), { ok: false, code: 'creditExhausted' });
    speak(30);
    t.strictSame(admission.admit(shop, 1, 'request'), { ok: false, code: 'creditExhausted' });
  },
);

t.test('a limit of credit holds at once, and so does its end', async (t) => {
  const { administration, admission } = setUp(t, 1);
  const { key: header } = await administration.createKey('ada', null);
  const caller = admission.authenticate(header);
  if (!caller.ok) throw new Error(caller.code);
  const leftOf = () => admission.standing(caller.key)?.leftCharacters;
  t.equal(leftOf(), Infinity);
  await administration.meter('ada', true, 5);
  t.equal(leftOf(), 5);
  t.strictSame(admission.admit(caller.key, 6, 'request'), { ok: false, code: 'creditExhausted' });
  await administration.meter('ada', false);
  t.equal(leftOf(), Infinity);
  t.ok(admission.admit(caller.key, 6, 'request').ok);
});

t.test('a header is not a key, an unknown key or a key', async (t) => {
  const { administration, admission } = setUp(t);
  const { key } = await administration.createKey(null, null);
  t.strictSame(admission.authenticate(''), { ok: false, code: 'keyMissing' });
  for (const header of ['x', 'Bearer x', `Bearer ${key}`, key.toUpperCase()])
    t.strictSame(admission.authenticate(header), { ok: false, code: 'keyMalformed' }, header);
  for (const header of ['svc_sk_', `${key}x`, key.slice(0, -1), 'svc_sk_\0', 'svc_sk_é'])
    t.strictSame(admission.authenticate(header), { ok: false, code: 'keyUnknown' });
  const active = {
    ...{ keyId: 1, accountId: 1, account: 'account-1', expiresAtMs: null, voices: null },
    speaking: noSpeakingDefaults,
  };
  t.strictSame(admission.authenticate(key), { ok: true, key: active });
  t.strictSame(admission.renew(active), active);
  await administration.revoke(key);
  t.strictSame(admission.authenticate(key), { ok: false, code: 'keyUnknown' });
  t.equal(admission.renew(active), null);
});

t.test('a key has nine slots, whatever other keys have', async (t) => {
  const { administration, admission } = setUp(t);
  const one = keyOf(admission, (await administration.createKey('shared', null)).key);
  const other = keyOf(admission, (await administration.createKey('shared', null)).key);
  const leases = Array.from({ length: 9 }, (_, index) => leaseOf(admission.admit(one, 1, `r${index}`)));
  t.strictSame(admission.admit(one, 1, 'r'), { ok: false, code: 'slotsExhausted' });
  t.ok(admission.admit(other, 1, 'r').ok);
  leases[0]?.close();
  leases[0]?.close();
  t.ok(admission.admit(one, 1, 'r').ok, 'closed twice, freed once');
  t.strictSame(admission.admit(one, 1, 'r'), { ok: false, code: 'slotsExhausted' });
});

t.test('a request that waits for credit holds a slot, and gives it back when it leaves', async (t) => {
  const reservations = new Reservations(limits);
  t.teardown(() => reservations.close());
  const { administration, admission } = setUp(t, 1, undefined, undefined, undefined, reservations);
  const { key } = await administration.createKey('shop', 100);
  const shop = keyOf(admission, key);
  const waiting = admission.waitForCredit!(shop, 10, shop.keyId, false, () => t.fail('it has left'));
  t.equal(admission.inFlight.slots, 1);
  t.equal(waiting?.cancel(), true);
  t.equal(waiting?.cancel(), false);
  t.equal(admission.inFlight.slots, 0);
});

t.test('credit is checked before slots, and a refused request reserves nothing', async (t) => {
  const { administration, admission } = setUp(t, 2);
  const { key: header } = await administration.createKey(null, 20);
  const key = keyOf(admission, header);
  const lease = leaseOf(admission.admit(key, 6, 'a'));
  t.strictSame(admission.inFlight, { slots: 1, reservedCredits: 12 });
  t.strictSame(admission.admit(key, 5, 'b'), { ok: false, code: 'creditExhausted' });
  for (let index = 0; index < 8; index += 1) t.ok(admission.admit(key, 0, `empty ${index}`).ok);
  t.strictSame(admission.admit(key, 5, 'c'), { ok: false, code: 'creditExhausted' });
  t.strictSame(admission.admit(key, 4, 'd'), { ok: false, code: 'slotsExhausted' });
  t.strictSame(admission.inFlight, { slots: 9, reservedCredits: 12 });
  lease.close();
  t.strictSame(admission.inFlight, { slots: 8, reservedCredits: 0 });
  // A credit by another connection counts at once.
  t.strictSame(admission.admit(key, 11, 'e'), { ok: false, code: 'creditExhausted' });
  await administration.credit(header, 2);
  t.ok(admission.admit(key, 11, 'e').ok);
});

t.test('a key with a limit spends no more than that, and unspoken text gives room back', async (t) => {
  const { administration, ledger, admission } = setUp(t, 2);
  const { key: header } = await administration.createKey('shop', null, { creditLimit: 100 });
  const { key: otherHeader } = await administration.createKey('shop', null);
  const [key, other] = [keyOf(admission, header), keyOf(admission, otherHeader)];
  const lease = leaseOf(admission.admit(key, 30, 'a'));
  t.strictSame(admission.admit(key, 21, 'b'), { ok: false, code: 'creditExhausted' });
  t.equal(lease.reserve(21), 'creditExhausted');
  t.equal(lease.reserve(20), null);
  t.ok(admission.admit(other, 1_000, 'c').ok, 'another key of the account has no limit');
  lease.settle(10, 'wren');
  lease.close();
  t.equal(ledger.queue.length, 1);
  t.strictSame(
    admission.admit(key, 41, 'd'),
    { ok: false, code: 'creditExhausted' },
    'what is queued counts',
  );
  ledger.commit();
  t.strictSame(admission.admit(key, 41, 'd'), { ok: false, code: 'creditExhausted' });
  const failed = leaseOf(admission.admit(key, 40, 'd'));
  failed.settle(40, 'wren');
  failed.void();
  ledger.commit();
  ledger.acknowledge();
  leaseOf(admission.admit(key, 40, 'e')).close();
  await administration.change(header, { creditLimit: 19 });
  t.strictSame(admission.admit(key, 1, 'f'), { ok: false, code: 'creditExhausted' });
  await administration.change(header, { creditLimit: 22 });
  t.ok(admission.admit(key, 1, 'f').ok, 'a change counts at once');
  await administration.change(header, { creditLimit: null });
  t.ok(admission.admit(key, 1_000, 'g').ok);
  // The account can pay for less than the limit.
  await administration.meter('shop', true, 10);
  t.strictSame(admission.admit(key, 6, 'h'), { ok: false, code: 'creditExhausted' });
});

t.test('a key that has expired, or whose account is suspended, is unknown', async (t) => {
  let nowMs = 1_000;
  const { administration, admission } = setUp(t, 1, () => nowMs);
  const { key: header } = await administration.createKey('shop', null);
  // The administration has the clock of the machine.
  const expiresAtMs = Date.now() + 86_400_000;
  await administration.change(header, { expiresAtMs });
  const key = keyOf(admission, header);
  const unknown = { ok: false, code: 'keyUnknown' };
  nowMs = expiresAtMs - 1;
  t.strictSame(admission.renew(key), key);
  nowMs = expiresAtMs;
  t.strictSame(admission.authenticate(header), unknown);
  t.equal(admission.renew(key), null);
  await administration.change(header, { expiresAtMs: null });
  t.strictSame(admission.renew(key), { ...key, expiresAtMs: null }, 'as it is now, not as it was');
  await administration.suspend('shop');
  t.strictSame(admission.authenticate(header), unknown);
  t.equal(admission.renew(key), null);
  await administration.resume('shop');
  t.ok(admission.authenticate(header).ok);
});

/** An entry without its account and key. */
const contentOf = ({ requestId, kind, amount, characters, beginsRequest, atMs }: LedgerEntry) => [
  requestId,
  kind,
  amount,
  characters,
  beginsRequest,
  atMs,
];

t.test('settled text is charged, the rest is refunded, and a void lease costs nothing', async (t) => {
  const { administration, admission, ledger, dataDir } = setUp(t, 3);
  const key = keyOf(admission, (await administration.createKey('payer', 20_000)).key);
  const spoken = leaseOf(admission.admit(key, 100, 'spoken'));
  spoken.settle(60, 'wren');
  spoken.settle(10, 'wren');
  t.equal(ledger.queue.length, 0, 'one entry, at the close');
  t.strictSame(admission.inFlight, { slots: 1, reservedCredits: 300 }, 'what is owed stays reserved');
  spoken.close();
  spoken.settle(30, 'wren');
  spoken.void();
  const failed = leaseOf(admission.admit(key, 1_600, 'failed'));
  failed.settle(1_500, 'wren');
  failed.settle(99, 'wren');
  failed.void();
  failed.close();
  const soon = leaseOf(admission.admit(key, 100, 'failed before its first entry'));
  soon.settle(99, 'wren');
  soon.void();
  const greedy = leaseOf(admission.admit(key, 10, 'greedy'));
  for (const characters of [-5, Number.NaN, 8, 8]) greedy.settle(characters, 'wren');
  greedy.close();
  t.strictSame(ledger.queue.map(contentOf), [
    ['spoken', 'usage', -210, 70, true, 1_000],
    ['failed', 'usage', -4_500, 1_500, true, 1_000],
    ['failed', 'refund', 4_500, 1_500, false, 1_000],
    ['greedy', 'usage', -30, 10, true, 1_000],
  ]);
  t.ok(ledger.queue.every(({ accountId, keyId }) => accountId === key.accountId && keyId === key.keyId));
  t.strictSame(admission.inFlight, { slots: 0, reservedCredits: 0 });
  ledger.commit();
  t.strictSame(balances(dataDir), [{ name: 'payer', balance: 19_760, sum: 19_760 }]);
});

t.test('a long request is charged in steps of a thousand characters, or of a minute', async (t) => {
  let nowMs = 0;
  const { administration, admission, ledger } = setUp(t, 1, () => nowMs);
  const key = keyOf(admission, (await administration.createKey(null, 100_000)).key);
  const lease = leaseOf(admission.admit(key, 10_000, 'r'));
  for (let segment = 0; segment < 30; segment += 1) lease.settle(90, 'wren');
  t.strictSame(ledger.queue.splice(0).map(contentOf), [
    ['r', 'usage', -1_080, 1_080, true, 0],
    ['r', 'usage', -1_080, 1_080, false, 0],
  ]);
  nowMs = 59_999;
  lease.settle(10, 'wren');
  t.equal(ledger.queue.length, 0);
  nowMs = 60_000;
  lease.settle(10, 'wren');
  t.strictSame(ledger.queue.splice(0).map(contentOf), [['r', 'usage', -560, 560, false, 60_000]]);
  nowMs = 119_999;
  lease.settle(10, 'wren');
  nowMs = 179_998;
  lease.settle(10, 'wren');
  t.equal(ledger.queue.length, 0, 'the minute starts with the first character that is not in an entry');
  lease.settle(5_000, 'wren');
  lease.close();
  t.strictSame(ledger.queue.splice(0).map(contentOf), [['r', 'usage', -5_020, 5_020, false, 179_998]]);
});

t.test('entries have their voice, and over a lease all audio that was handed over, once', async (t) => {
  const { administration, admission, ledger } = setUp(t);
  const key = keyOf(admission, (await administration.createKey(null, 100_000)).key);
  const audioOf = ({ kind, voice, characters, audioMs, beginsRequest }: LedgerEntry) => [
    kind,
    voice,
    characters,
    audioMs,
    beginsRequest,
  ];
  const short = leaseOf(admission.admit(key, 100, 'short'));
  for (const frame of [20.25, 100.5, 100.5]) {
    short.delivered(frame, 'wren');
    short.settle(frame === 20.25 ? 30 : 0, 'wren');
  }
  short.close();
  short.delivered(1_000, 'wren');
  t.strictSame(ledger.queue.splice(0).map(audioOf), [['usage', 'wren', 30, 221, true]], 'one entry');

  const socket = leaseOf(admission.admit(key, 9_000, 'socket'));
  for (const voice of ['wren', 'lark', 'wren']) {
    socket.delivered(10.3, voice);
    socket.settle(500, voice);
    socket.delivered(30_000.3, voice);
  }
  t.strictSame(
    ledger.queue.splice(0).map(audioOf),
    [
      ['usage', 'wren', 500, 30_011, true],
      ['usage', 'lark', 500, 10, false],
    ],
    'a step has the audio so far',
  );
  socket.close();
  t.strictSame(
    ledger.queue.splice(0).map(audioOf),
    [
      ['usage', 'wren', 500, 30_011 - 1, false],
      ['usage', 'lark', 0, 30_001, false],
    ],
    'the close adds the rest, of a voice whose characters are charged too',
  );

  const failed = leaseOf(admission.admit(key, 9_000, 'failed'));
  failed.delivered(10, 'wren');
  failed.settle(1_000, 'wren');
  failed.delivered(500, 'wren');
  failed.void();
  t.strictSame(ledger.queue.splice(0).map(audioOf), [
    ['usage', 'wren', 1_000, 10, true],
    ['refund', 'wren', 1_000, 0, false],
  ]);
  const unspoken = leaseOf(admission.admit(key, 10, 'unspoken'));
  unspoken.delivered(500, 'wren');
  unspoken.close();
  t.strictSame(ledger.queue, [], 'audio of no charge makes no entry');
});

t.test('a key that is known by its id is as good as its text', async (t) => {
  let nowMs = 1_000;
  const { administration, admission } = setUp(t, 1, () => nowMs);
  const { key, keyId } = await administration.createKey('ada', 5, { expiresAtMs: Date.UTC(2090, 0) });
  t.strictSame(admission.byId(keyId), admission.authenticate(key));
  t.strictSame(admission.byId(keyId + 1), { ok: false, code: 'keyUnknown' });
  nowMs = Date.UTC(2090, 0);
  t.strictSame(admission.byId(keyId), { ok: false, code: 'keyUnknown' });
  nowMs = 1_000;
  await administration.suspend('ada');
  t.strictSame(admission.byId(keyId), { ok: false, code: 'keyUnknown' });
});

t.test('an unmetered account is charged and never refused', async (t) => {
  const { administration, admission, ledger, dataDir } = setUp(t);
  const key = keyOf(admission, (await administration.createKey('free', null)).key);
  const lease = leaseOf(admission.admit(key, 1_000_000, 'r'));
  lease.settle(1_000_000, 'wren');
  lease.close();
  ledger.commit();
  t.strictSame(balances(dataDir), [{ name: 'free', balance: -1_000_000, sum: -1_000_000 }]);
  t.ok(admission.admit(key, 1_000_000, 'r').ok);
});

t.test('speech that costs nothing is recorded without credits', async (t) => {
  const { administration, admission, ledger } = setUp(t, 0);
  const key = keyOf(admission, (await administration.createKey(null, 0)).key);
  const lease = leaseOf(admission.admit(key, 10, 'r'));
  lease.settle(5, 'wren');
  lease.close();
  t.strictSame(ledger.queue.map(contentOf), [['r', 'usage', 0, 5, true, 1_000]]);
  const failed = leaseOf(admission.admit(key, 2_000, 'failed'));
  failed.settle(2_000, 'wren');
  failed.void();
  t.equal(ledger.queue.length, 2, 'a refund of nothing is not recorded');
});

t.test(
  'while the ledger cannot be written nothing is admitted, and open leases are charged at their close',
  async (t) => {
    const { administration, admission, ledger } = setUp(t);
    const key = keyOf(admission, (await administration.createKey(null, 10_000)).key);
    const lease = leaseOf(admission.admit(key, 5_000, 'r'));
    ledger.fault = 'behind';
    ledger.full = true;
    t.strictSame(admission.admit(key, 1, 's'), { ok: false, code: 'unavailable' });
    t.match(admission.faults(), [/too slow/]);
    for (let index = 0; index < 30; index += 1) lease.settle(100, 'wren');
    t.equal(ledger.queue.length, 0, 'a full queue is not filled further');
    t.equal(admission.inFlight.reservedCredits, 5_000, 'what is owed stays reserved');
    lease.close();
    t.match(ledger.queue, [{ amount: -3_000 }]);
    ledger.fault = null;
    t.strictSame(admission.faults(), []);
    t.ok(admission.admit(key, 7_000, 's').ok);
    t.strictSame(admission.admit(key, 1, 's'), { ok: false, code: 'creditExhausted' });
  },
);

t.test('while the store cannot be read nothing is admitted, and the process goes on', async (t) => {
  const dataDir = memoryFolder(t);
  const [key = ''] = await createKeys(dataDir, [[null, null]]);
  const file = openSync(storePath(dataDir), 'r+');
  const { size } = statSync(storePath(dataDir));
  writeSync(file, Buffer.alloc(size - 4096, 0xa5), 0, size - 4096, 4096);
  closeSync(file);
  const ledger = new SteppedLedger(() => undefined);
  const reader = new SqliteReader(dataDir, limits, ledger.writer);
  t.teardown(() => reader.close());
  const admission = createAdmission({
    reader,
    ledger,
    bounds: limits,
    creditsPerCharacter: 1,
    clock: Date.now,
    log,
  });
  t.strictSame(admission.authenticate(key), { ok: false, code: 'unavailable' });
  const opened = activeKey(1);
  t.strictSame(admission.admit(opened, 1, 'r'), { ok: false, code: 'unavailable' });
  t.equal(admission.renew(opened), opened, 'the key of an open socket does not count as revoked');
  t.equal(admission.renew({ ...opened, expiresAtMs: 1 }), null, 'but it expires');
  t.strictSame(admission.faults(), ['the store is damaged']);
  t.strictSame(admission.inFlight, { slots: 0, reservedCredits: 0 });
});

type Step =
  | { readonly do: 'admit'; readonly key: number; readonly characters: number }
  | { readonly do: 'settle'; readonly lease: number; readonly characters: number }
  | { readonly do: 'close' | 'void'; readonly lease: number }
  | { readonly do: 'commit'; readonly entries: number }
  | { readonly do: 'limit'; readonly key: number; readonly credits: number | null }
  | { readonly do: 'acknowledge' | 'full' | 'room' };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('admit'), key: fc.nat(2), characters: fc.nat(400) }) },
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant('settle'), lease: fc.nat(30), characters: fc.nat(200) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('close', 'void'), lease: fc.nat(30) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('commit'), entries: fc.nat(4) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('limit'),
      key: fc.nat(2),
      credits: fc.option(fc.nat(3_000)),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('acknowledge', 'full', 'room') }) },
);

/** The expected state of a lease. */
interface ModelLease {
  readonly lease: Lease;
  readonly key: number;
  readonly reserved: number;
  settled: number;
  open: boolean;
}

t.test('over any schedule, credit is exact at every admission, and nothing is left at the end', async (t) => {
  // Some leases have several steps, most have none.
  const { administration, admission, ledger, dataDir } = setUp(t, 2, undefined, 150);
  let round = 0;
  const schedule = async (steps: readonly Step[], credits: number, limit: number): Promise<void> => {
    round += 1;
    const name = `schedule ${round}`;
    // Two keys share a metered account; the third belongs to one that is not metered.
    const limits: (number | null)[] = [limit, null, null];
    const created = [
      await administration.createKey(name, credits, { creditLimit: limit }),
      await administration.createKey(name, null),
      await administration.createKey(`${name}, unmetered`, null),
    ];
    const keys = created.map(({ key }) => keyOf(admission, key));
    const leases: ModelLease[] = [];
    const spent = (has: (key: number) => boolean) =>
      leases.reduce((sum, { key, settled }) => sum + (has(key) ? 2 * settled : 0), 0);
    const reservedNow = (has: (key: number) => boolean) =>
      leases.reduce(
        (sum, { key, open, reserved, settled }) => sum + (has(key) && open ? 2 * (reserved - settled) : 0),
        0,
      );
    const isMetered = (key: number) => key < 2;
    const admit = (key: number, characters: number): void => {
      const isSame = (other: number) => other === key;
      const ofAccount = isMetered(key) ? credits - spent(isMetered) - reservedNow(isMetered) : Infinity;
      const ofKey = (limits[key] ?? Infinity) - spent(isSame) - reservedNow(isSame);
      const available = Math.min(ofAccount, ofKey);
      const taken = leases.filter((lease) => lease.open && lease.key === key).length;
      const expected =
        2 * characters > available ? 'creditExhausted' : taken >= 9 ? 'slotsExhausted' : 'admitted';
      const result = admission.admit(keys[key] as ActiveKey, characters, `${name} ${leases.length}`);
      const got = result.ok ? 'admitted' : result.code;
      if (got !== expected) throw new Error(`${got}, not ${expected}, with ${available} available`);
      if (result.ok) leases.push({ lease: result.lease, key, reserved: characters, settled: 0, open: true });
    };
    for (const action of steps) {
      const chosen = 'lease' in action ? leases[action.lease % Math.max(1, leases.length)] : undefined;
      if (action.do === 'admit') admit(action.key, action.characters);
      else if (action.do === 'commit') ledger.commit(action.entries);
      else if (action.do === 'acknowledge') ledger.acknowledge();
      else if (action.do === 'limit') {
        limits[action.key] = action.credits;
        await administration.change(created[action.key]?.key ?? '', { creditLimit: action.credits });
      } else if (action.do === 'full' || action.do === 'room') ledger.full = action.do === 'full';
      else if (chosen !== undefined && action.do === 'settle') {
        chosen.lease.settle(action.characters, 'wren');
        if (chosen.open) chosen.settled = Math.min(chosen.reserved, chosen.settled + action.characters);
      } else if (chosen !== undefined) {
        if (action.do === 'void') chosen.lease.void();
        else chosen.lease.close();
        if (chosen.open && action.do === 'void') chosen.settled = 0;
        chosen.open = false;
      }
    }
    for (const model of leases) {
      model.lease.close();
      model.open = false;
    }
    if (admission.inFlight.slots !== 0 || admission.inFlight.reservedCredits !== 0)
      throw new Error(`left: ${JSON.stringify(admission.inFlight)}`);
    ledger.commit();
    ledger.acknowledge();
    ledger.full = false;
    const sums = balances(dataDir).filter((account) => account.name.startsWith(name));
    const expected = [credits - spent(isMetered), -spent((key) => !isMetered(key))];
    sums.forEach(({ balance, sum }, index) => {
      if (balance !== sum || balance !== expected[index])
        throw new Error(`balance ${balance}, sum ${sum}, expected ${expected[index]}`);
    });
    if (sums.length !== 2) throw new Error('two accounts are expected');
    const listed = (await administration.list()).slice(-3).map(({ spent }) => spent);
    const spentByKey = keys.map((_, index) => spent((key) => key === index));
    if (listed.join() !== spentByKey.join())
      throw new Error(`spent ${listed.join()}, not ${spentByKey.join()}`);
  };
  const steps = fc.array(step, { minLength: 10, maxLength: 120 });
  await check(t, fc.asyncProperty(steps, fc.nat(4_000), fc.nat(3_000), schedule), 60);
});
