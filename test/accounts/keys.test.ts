import t from 'tap';
import { generateKey, hashKey, looksLikeKey, prefixOf } from '../../src/accounts/keys.js';

t.test('a key has the prefix of the specification and 43 letters and digits', (t) => {
  for (let round = 0; round < 100; round += 1) t.match(generateKey(), /^svc_sk_[0-9A-Za-z]{43}$/);
  t.end();
});

t.test('keys differ, and use every character about equally', (t) => {
  const keys = Array.from({ length: 2_000 }, generateKey);
  t.equal(new Set(keys).size, keys.length);
  const counts = new Map<string, number>();
  for (const key of keys)
    for (const character of key.slice('svc_sk_'.length))
      counts.set(character, (counts.get(character) ?? 0) + 1);
  t.equal(counts.size, 62);
  // 1387 expected, standard deviation 37: a bias of 256 % 62 would put eight characters 25 % above the rest.
  for (const [character, count] of counts) t.ok(count > 1_150 && count < 1_630, `${character} ${count}`);
  t.end();
});

t.test('the store has the SHA-256 of a key, listings have a short prefix', (t) => {
  t.equal(
    Buffer.from(hashKey('svc_sk_x')).toString('hex'),
    '8a4c73a1f1cf8f74110f8831d178071a9ce4cf8fe917f0f90d5fc774a0705cf1',
  );
  t.equal(prefixOf('svc_sk_abcdefghij'), 'svc_sk_abcdef');
  t.end();
});

t.test('only a value that begins with svc_sk_ counts as a key', (t) => {
  for (const value of ['svc_sk_', 'svc_sk_x', 'svc_sk_ é']) t.ok(looksLikeKey(value), value);
  for (const value of ['', 'svc_sk', 'SVC_SK_x', 'Bearer svc_sk_x', ' svc_sk_x'])
    t.notOk(looksLikeKey(value), value);
  t.end();
});
