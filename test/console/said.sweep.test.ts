/** What will be said, in the console, and the words that its users add. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ConsoleClient } from '../support/console-client.js';
import { SCRIPTED, startService } from '../support/service.js';
import { pause } from '../support/waiting.js';

const service = await startService(t, { SYNTHESIS_THREADS: '1', CONSOLE_PORT: '0' }, SCRIPTED);
const operator = await ConsoleClient.claim(service);
const { accountId } = await operator.call('createAccount', { name: 'ada', credits: null });
const other = await operator.call('createAccount', { name: 'bob/..', credits: null });
const member = await operator.invited(accountId, 'max');
const folder = join(service.dataDir, 'lexicons', 'accounts');
const question = { accountId, voice: 'wren', text: 'The kettle costs $20.', normalize: true };

t.test('each word has its phonemes and the rule behind it', async (t) => {
  t.strictSame(await member.call('said', question), {
    spoken: 'The kettle costs twenty dollars.',
    hasPhonemes: true,
    words: [
      { word: 'The', ipa: 'ðə' },
      { word: 'kettle', ipa: 'kˈɛɾəl' },
      { word: 'costs', ipa: 'kˈɔsts' },
      { word: '$20.', ipa: 'twˈɛnti dˈɑːlɚz', by: 'rule: money' },
    ],
  });
  await t.rejects(member.call('said', { ...question, voice: 'nobody' }), { message: /: 404 / });
  await t.rejects(member.call('said', { ...question, text: 'x'.repeat(5_001) }), { message: /: 400 / });
});

t.test('a long text holds up no other call', async (t) => {
  const text = '01234 56789 '.repeat(200);
  let isSaid = false;
  const said = member.call('said', { ...question, text }).then(() => (isSaid = true));
  let answered = 0;
  for (; !isSaid; answered++) {
    await operator.call('account', { accountId: other.accountId });
    // A user has 50 calls a second.
    await pause(25);
  }
  await said;
  t.ok(answered >= 5, `${answered} calls were answered meanwhile`);
});

t.test('a word that a member adds holds at once, for its account only, and the audit has it', async (t) => {
  t.strictSame(await member.call('addWord', { accountId, word: 'kettle', spoken: 'pot' }), {});
  await member.call('addWord', { accountId, word: 'Los Gatos', spoken: '/lˈɔs ɡˈæɾəs/' });
  await member.call('addWord', { accountId, word: 'kettle', spoken: 'teapot' });
  t.match((await member.call('said', question)).words[1], {
    word: 'kettle',
    ipa: 'tˈiːpɑːt',
    by: 'lexicon (account ada): kettle',
  });
  t.equal(
    readFileSync(join(folder, 'ada', 'console.txt'), 'utf8'),
    'Los Gatos\t/lˈɔs ɡˈæɾəs/\nkettle\tteapot\n',
  );
  t.strictSame(readdirSync(join(folder, 'ada')), ['console.txt'], 'nothing else is left');
  const others = await operator.call('said', { ...question, accountId: other.accountId });
  t.notOk(others.words[1]?.by);
  const [act] = await operator.call('audit', { beforeId: null });
  t.match(act, {
    ...{ actor: 'max', account: 'ada', action: 'lexicon.add' },
    ...{ subject: 'ada', details: 'kettle = teapot' },
  });
});

t.test('words that are long to say hold up no other call, and each keeps its entry', async (t) => {
  await member.call('addWord', { accountId, word: 'zq', spoken: '123456789 987654' });
  const text = 'zq '.repeat(200);
  let isSaid = false;
  const said = member.call('said', { ...question, text }).finally(() => (isSaid = true));
  let answered = 0;
  for (; !isSaid; answered++) {
    await operator.call('account', { accountId: other.accountId });
    // A user has 50 calls a second.
    await pause(25);
  }
  const { words } = await said;
  t.equal(words.filter(({ by }) => by === 'lexicon (account ada): zq').length, 200);
  // A segment of 66 such words was one step of half a second.
  t.ok(answered >= 10, `${answered} calls were answered meanwhile`);
});

t.test('words are added without a reading of all files, and forms without end are refused', async (t) => {
  const readings = service.logged('lexicons read').length;
  const forms = Array.from({ length: 17 }, (_, form) =>
    ['a', 'b', 'c', 'd', 'e']
      .map((letter, at) => ((form >> at) & 1 ? letter.toUpperCase() : letter))
      .join(''),
  );
  for (const form of forms.slice(0, 16)) await member.call('addWord', { accountId, word: form, spoken: 'x' });
  const file = readFileSync(join(folder, 'ada', 'console.txt'), 'utf8');
  for (let time = 0; time < 2; time++)
    await t.rejects(member.call('addWord', { accountId, word: forms[16]!, spoken: 'x' }), {
      message: /: 409 .*16 forms/,
    });
  t.equal(readFileSync(join(folder, 'ada', 'console.txt'), 'utf8'), file);
  for (let index = 0; index < 3; index++)
    await member.call('addWord', { accountId, word: 'kettle', spoken: `pot${index}` });
  t.equal(service.logged('lexicons read').length, readings);
  const { words } = await member.call('said', question);
  t.match(words[1]?.by, /account ada/);
  await member.call('addWord', { accountId, word: 'kettle', spoken: 'teapot' });
  t.match((await member.call('said', question)).words[1], { word: 'kettle', ipa: 'tˈiːpɑːt' });
});

t.test('what cannot be an entry is refused, and changes and records nothing', async (t) => {
  const before = readFileSync(join(folder, 'ada', 'console.txt'), 'utf8');
  const rows = (await operator.call('audit', { beforeId: null })).length;
  for (const [word, spoken] of [
    ['tea', '/№/'],
    ['tea', 'a\tb'],
    ['tea\ncoffee', 'a'],
    ['#tea', 'a'],
    ['@case exact', ' '],
    ['one two three four five six', 'a'],
    [' ', 'a'],
    ['q', 'seventeen letters'],
    ['q', `/${'a'.repeat(17)}/`],
  ] as const)
    await t.rejects(member.call('addWord', { accountId, word, spoken }), { message: /: 400 / }, word);
  await t.rejects(operator.call('addWord', { accountId: other.accountId, word: 'tea', spoken: 'coffee' }), {
    message: /: 400 .*cannot be that of a folder/,
  });
  t.equal(readFileSync(join(folder, 'ada', 'console.txt'), 'utf8'), before);
  t.strictSame(readdirSync(folder), ['ada']);
  t.notOk(existsSync(join(service.dataDir, 'lexicons', 'console.txt')));
  t.equal((await operator.call('audit', { beforeId: null })).length, rows);
});

t.test('a word that is there already is not added again, however it is written', async (t) => {
  const file = join(folder, 'ada', 'console.txt');
  const acts = async () => (await operator.call('audit', { beforeId: null })).length;
  await member.call('addWord', { accountId, word: 'café  au lait', spoken: 'milk coffee' });
  const added = readFileSync(file, 'utf8');
  const rows = await acts();
  const readings = service.logged('lexicons read').length;
  await member.call('addWord', { accountId, word: ' cafe\u0301 au lait', spoken: 'milk coffee ' });
  t.equal(readFileSync(file, 'utf8'), added);
  t.equal(await acts(), rows, 'nothing is recorded');
  t.equal(service.logged('lexicons read').length, readings, 'nothing is read');
  await member.call('addWord', { accountId, word: 'cafe\u0301 au lait ', spoken: 'coffee' });
  t.equal(readFileSync(file, 'utf8'), added.replace('milk coffee', 'coffee'));
});

t.test('a word cannot turn the direction of the texts around it', async (t) => {
  for (const word of ['ket\u202etle', '\u2066kettle', 'ket\u200btle'])
    await t.rejects(member.call('addWord', { accountId, word, spoken: 'teapot' }), {
      message: /: 400 .*invisible/,
    });
});

t.test('a lexicon of the console has a bound for its size', async (t) => {
  const file = join(folder, 'ada', 'console.txt');
  const before = readFileSync(file, 'utf8');
  const lines = Array.from({ length: 163 }, (_, at) => `${'w'.repeat(99)}${at}\t${'s'.repeat(97)}`);
  writeFileSync(file, `${lines.join('\n')}\n`);
  await t.rejects(
    member.call('addWord', { accountId, word: 'v'.repeat(100), spoken: 'so '.repeat(66).trim() }),
    {
      message: /: 409 .*32768 characters/,
    },
  );
  writeFileSync(file, before);
});

t.test('a new account has none of the words of a deleted account of its name', async (t) => {
  await operator.call('deleteAccount', { accountId });
  const { accountId: newId } = await operator.call('createAccount', { name: 'ada', credits: null });
  t.notOk(existsSync(join(folder, 'ada', 'console.txt')));
  const { words } = await operator.call('said', { ...question, accountId: newId });
  t.notOk(words[1]?.by);
});
