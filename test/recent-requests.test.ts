/** The last requests, as the console lists them. */
import t from 'tap';
import { generateKey } from '../src/accounts/keys.js';
import { askedVoice, endOf, RecentRequests, type EndedRequest } from '../src/recent-requests.js';

const request = (accountId: number | undefined, requestId: string): EndedRequest => ({
  ...{ requestId, accountId, keyId: accountId, route: '/v1/tts', outcome: 'complete', totalMs: 1 },
});

const all = { accountId: null, keyId: null, status: null, before: null };

const idsOf = (requests: RecentRequests): string[] =>
  requests.page(all).rows.map((kept) => kept.request.requestId);

t.test('a full account loses its own oldest request, and takes none from others', (t) => {
  const requests = new RecentRequests({ requestsKeptMax: 10, requestsOfAccountMax: 3 });
  requests.add(request(1, 'quiet'));
  for (let index = 0; index < 100; index++) requests.add(request(2, `loud ${index}`));
  requests.add(request(1, 'late'));
  t.strictSame(idsOf(requests), ['late', 'loud 99', 'loud 98', 'loud 97', 'quiet']);
  const numbers = requests.page(all).rows.map(({ number }) => number);
  t.strictSame(
    numbers,
    numbers.toSorted((a, b) => b - a),
    'the newest first',
  );
  t.end();
});

t.test('callers without a key count as one account', (t) => {
  const requests = new RecentRequests({ requestsKeptMax: 10, requestsOfAccountMax: 2 });
  requests.add(request(7, 'own'));
  for (let index = 0; index < 50; index++) requests.add(request(undefined, `keyless ${index}`));
  t.strictSame(idsOf(requests), ['keyless 49', 'keyless 48', 'own']);
  t.end();
});

t.test('when the whole is full, the oldest of all goes, whatever the order', (t) => {
  const bounds = { requestsKeptMax: 40, requestsOfAccountMax: 15 };
  const requests = new RecentRequests(bounds);
  /** The same, kept in the plainest way. */
  const kept: { readonly accountId: number; readonly requestId: string }[] = [];
  let seed = 1;
  for (let index = 0; index < 5_000; index++) {
    seed = (seed * 48_271) % 2_147_483_647;
    const accountId = seed % (1 + (index % 9));
    const requestId = String(index);
    const own = kept.filter((one) => one.accountId === accountId);
    if (own.length === bounds.requestsOfAccountMax) kept.splice(kept.indexOf(own[0]!), 1);
    else if (kept.length === bounds.requestsKeptMax) kept.shift();
    kept.push({ accountId, requestId });
    requests.add(request(accountId, requestId));
  }
  t.strictSame(idsOf(requests), kept.map(({ requestId }) => requestId).toReversed());
  t.end();
});

t.test('an end has one of four kinds', (t) => {
  t.equal(endOf({ outcome: 'complete', refusal: undefined }), 'complete');
  t.equal(endOf({ outcome: 'complete', refusal: 'slotsExhausted' }), 'refused');
  t.equal(endOf({ outcome: 'refused', refusal: undefined }), 'refused');
  t.equal(endOf({ outcome: 'failed', refusal: undefined }), 'failed');
  t.equal(endOf({ outcome: 'aborted', refusal: undefined }), 'stopped');
  t.end();
});

t.test('a key in place of a voice is not kept', (t) => {
  for (const key of [generateKey(), generateKey().slice(0, 20), 'sk-proj-0123456789'])
    t.equal(askedVoice(key), undefined);
  t.equal(askedVoice('21m00Tcm4TlvDq8ikWAM'), '21m00Tcm4TlvDq8ikWAM');
  t.end();
});
