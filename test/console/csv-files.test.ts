/** The file of the usage opens in a spreadsheet, and nothing in it is run there. */
import t from 'tap';
import { usageTable } from '../../src/accounts/overview.js';

const row = {
  atMs: Date.UTC(2026, 0, 2, 3),
  accountId: 3,
  account: 'Harbour Radio',
  keyId: 7,
  key: 'svc_sk_AbCdEf',
  keyName: 'web',
  voice: 'wren',
  requests: 2,
  characters: 1_234,
  credits: 1_234,
  refunded: 10,
  audioMs: 61_250,
};

t.test('rows are records of RFC 4180', (t) => {
  t.equal(
    usageTable.header + usageTable.records([row, { ...row, keyName: 'say "hi", all', voice: '' }]),
    [
      'time,account,key,key_name,voice,requests,characters,credits,refunded,audio_seconds',
      '2026-01-02T03:00:00.000Z,Harbour Radio,svc_sk_AbCdEf,web,wren,2,1234,1234,10,61.25',
      '2026-01-02T03:00:00.000Z,Harbour Radio,svc_sk_AbCdEf,"say ""hi"", all",,2,1234,1234,10,61.25',
      '',
    ].join('\r\n'),
  );
  t.end();
});

t.test('a name is never a formula', (t) => {
  const wide = [
    '\uff1d1+1',
    '\uff0b1',
    '\uff0d1',
    '\uff20x',
    '\ufe661',
    '\ufe621',
    '\ufe631',
    '\ufe6bx',
    '\u207c1',
  ];
  for (const keyName of ['=1+1', '+1', '-1', '@x', ' =1', '\u00a0=1', '\u200b=1', ...wide])
    t.match(usageTable.records([{ ...row, keyName }]), `,'${keyName},`, keyName);
  t.match(
    usageTable.records([{ ...row, keyName: '=HYPERLINK("http://x","y")' }]),
    `,"'=HYPERLINK(""http://x"",""y"")",`,
  );
  t.end();
});

t.test('nor is a part of a name, where the spreadsheet separates cells by another character', (t) => {
  const cases = [
    ['a;=1+1', "a;'=1+1"],
    ['a; \uff1d1+1;b;-2', "a;' \uff1d1+1;b;'-2"],
    ['a\t@x', "a\t'@x"],
    ['a|+1', "a|'+1"],
    ['a;"=1+1"', `"a;'""=1+1"""`],
    ['a,=1', `"a,'=1"`],
    ['a;b', 'a;b'],
    ['a - b = c', 'a - b = c'],
    ['x-y@z;w=1', 'x-y@z;w=1'],
  ] as const;
  for (const [keyName, shown] of cases)
    t.ok(usageTable.records([{ ...row, keyName }]).includes(`,${shown},wren,`), keyName);
  t.end();
});

t.test('a name that many rows have is looked at once: a member could choose one that takes long', (t) => {
  let looks = 0;
  const normalize = Object.getOwnPropertyDescriptor(String.prototype, 'normalize')?.value as (
    this: string,
    form?: string,
  ) => string;
  t.teardown(() => Reflect.set(String.prototype, 'normalize', normalize));
  Reflect.set(String.prototype, 'normalize', function (this: string, form?: string) {
    looks++;
    return normalize.call(this, form);
  });
  const keyName = ',\uff1d'.repeat(32);
  usageTable.records([{ ...row, keyName }]);
  const looksOfOne = looks;
  t.ok(looksOfOne > 0);
  usageTable.records(Array.from({ length: 1_000 }, () => ({ ...row, keyName })));
  t.equal(looks - looksOfOne, looksOfOne);
  t.end();
});
