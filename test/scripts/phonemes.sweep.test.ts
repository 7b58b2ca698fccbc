/** `npm run phonemes`, once in a process of its own. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { smallShape, piperModel, writePiper } from '../../scripts/voices/fixtures/piper.js';
import { makeFiveGraphs } from '../../scripts/voices/fixtures/pocket.js';
import { keys as keysProgram } from '../../scripts/keys.js';
import { phonemes } from '../../scripts/phonemes.js';
import { prefixOf } from '../../src/accounts/keys.js';
import type { Said } from '../../src/speech/said.js';
import { runner, spawnCommand } from '../support/run-command.js';
import { modelsDir } from '../support/voices.js';

const linesOf = (stdout: string): Said[] =>
  stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Said);

const prepare = (t: Test, hasOwnModels = false) => {
  const lexiconFolders = { accounts: { ada: {} }, voices: { lark: {} } };
  const root = t.testdir({ data: { lexicons: lexiconFolders }, models: { amy: {}, echo: {} } });
  const models = hasOwnModels ? join(root, 'models') : modelsDir;
  const lexicons = join(root, 'data', 'lexicons');
  writeFileSync(
    join(lexicons, 'names.txt'),
    'kettle = teapot\nLos Gatos = loss gattus\nsyrinx = /ˈsɪɹɪŋks/\n',
  );
  writeFileSync(join(lexicons, 'voices', 'lark', 'own.txt'), 'kettle = pan\n');
  writeFileSync(join(lexicons, 'accounts', 'ada', 'own.txt'), 'kettle = pot\n');
  const dataDir = join(root, 'data');
  const run = runner(phonemes, dataDir, { MODELS_DIR: models });
  const input = join(root, 'input.txt');
  const said = async (args: readonly string[], text: string): Promise<Said[]> => {
    writeFileSync(input, text);
    const { status, stdout, stderr } = await run(...args, '--json', input);
    t.strictSame([status, stderr], [0, '']);
    return linesOf(stdout);
  };
  const keys = runner(keysProgram, dataDir);
  return { root, dataDir, run, said, keys };
};

t.test('each line gives one line, with the entry or rule behind each replaced word', async (t) => {
  const { dataDir } = prepare(t);
  const text = "My husband's kettle cost $20.";
  const env = { ...process.env, DATA_DIR: dataDir, MODELS_DIR: modelsDir };
  const input = `${text}\n\nThe syrinx, in Los Gatos!`;
  const { status, stdout, stderr } = spawnCommand('phonemes', ['--normalize', '--json'], { env, input });
  t.strictSame([status, stderr], [0, '']);
  const [first, blank, last, ...more] = linesOf(stdout);
  t.strictSame(first, {
    text,
    spoken: "My husband's teapot cost twenty dollars.",
    words: [
      { word: 'My', ipa: 'maɪ' },
      { word: "husband's", ipa: 'hˈʌzbəndz' },
      { word: 'kettle', ipa: 'tˈiːpɑːt', by: 'lexicon (service): kettle' },
      { word: 'cost', ipa: 'kˈɔst' },
      { word: '$20.', ipa: 'twˈɛnti dˈɑːlɚz', by: 'rule: money' },
    ],
  });
  t.strictSame(blank, { text: '', spoken: '', words: [] });
  t.equal(last?.spoken, 'The /ˈsɪɹɪŋks/, in loss gattus!');
  t.match(last?.words[1], { word: 'syrinx,', ipa: 'ˈsɪɹɪŋks', by: 'lexicon (service): syrinx' });
  t.match(last?.words[3], { word: 'Los Gatos!', ipa: 'lˈɔs ɡˈæɾəs', by: 'lexicon (service): Los Gatos' });
  t.strictSame(more, []);
});

t.test('lexicons count as in the service: the account, then the voice, then the service', async (t) => {
  const { said, keys } = prepare(t);
  await keys('create', '--account', 'ada');
  const byOf = async (...args: string[]) => (await said(args, 'kettle'))[0]?.words[0]?.by;
  t.equal(await byOf('--voice', 'wren'), 'lexicon (service): kettle');
  t.equal(await byOf('--voice', 'lark'), 'lexicon (voice lark): kettle');
  t.equal(await byOf('--voice', 'lark', '--for', 'ada'), 'lexicon (account ada): kettle');
});

t.test('--for speaks as a key sets it, else as its account does', async (t) => {
  const { root, run, said, keys } = prepare(t);
  mkdirSync(join(root, 'data', 'lexicons', 'named', 'shop'), { recursive: true });
  writeFileSync(join(root, 'data', 'lexicons', 'named', 'shop', 'own.txt'), 'kettle = urn\n');
  const key = (await keys('create', '--account', 'ada', '--lexicon', 'shop')).stdout.trim();
  const spokenFor = async (target: string) => (await said(['--for', target], 'A kettle for $5'))[0]?.spoken;
  t.equal(await spokenFor(key), 'A urn for $5');
  await keys('set', 'ada', '--normalize', 'on');
  t.equal(await spokenFor('ada'), 'A pot for five dollars');
  t.equal(await spokenFor(prefixOf(key)), 'A urn for five dollars');
  await keys('set', key, '--normalize', 'off');
  t.equal(await spokenFor(key), 'A urn for $5');
  const { status, stderr } = await run('--for', 'nobody');
  t.equal(status, 1);
  t.match(stderr, /There is no account "nobody"/);
});

t.test('without --normalize no rule applies, and only --escapes makes line breaks', async (t) => {
  const { said } = prepare(t);
  const text = 'At 5:30.\\nThen';
  const long = 'banana'.repeat(60);
  const [plain, address, cut] = await said([], `${text}\nSee www.acme.org now\n${long} end.`);
  t.equal(plain?.text, text);
  t.equal(plain?.words.length, 2);
  t.match(address?.words[1], { word: 'www.acme.org', by: 'address' }, 'an address is what replaced the word');
  t.strictSame(
    cut?.words.map(({ word }) => word),
    [long, 'end.'],
    'a long word that is cut over two segments is one word',
  );
  t.ok((cut?.words[0]?.ipa.match(/b/g)?.length ?? 0) >= 50, 'all of it is heard');
  const [broken] = await said(['--escapes'], text);
  t.strictSame(
    broken?.words.map(({ word }) => word),
    ['At', '5:30.', 'Then'],
  );
  t.equal(broken?.spoken, 'At 5:30.\nThen');
  t.notOk(broken?.words.some(({ by }) => by !== undefined));
});

t.test('a file is read; for people there is a table', async (t) => {
  const { root, run } = prepare(t);
  const file = join(root, 'text.txt');
  writeFileSync(file, 'The kettle.\r\nIt sings.\n');
  const { status, stdout } = await run(file);
  t.equal(status, 0);
  t.equal(
    stdout,
    'The kettle.\n= The teapot.\n  WORD     IPA       BY\n  The      ðə\n  kettle.  tˈiːpɑːt  lexicon (service): kettle\n\n' +
      'It sings.\n  WORD    IPA    BY\n  It      ɪt\n  sings.  sˈɪŋz\n\n',
  );
});

t.test(
  "Piper's voices say espeak-ng's phonemes; a format that reads letters has none, and says so",
  async (t) => {
    const { root, said, run } = prepare(t, true);
    await writePiper(join(root, 'models', 'amy'), 'amy', piperModel(smallShape));
    await makeFiveGraphs(join(root, 'models', 'echo'));
    t.strictSame((await said(['--voice', 'amy'], 'Red kettle.'))[0]?.words, [
      { word: 'Red', ipa: 'ɹˈɛd' },
      { word: 'kettle.', ipa: 'tˈiːpɑːt', by: 'lexicon (service): kettle' },
    ]);
    const file = join(root, 'text.txt');
    writeFileSync(file, 'Red kettle, syrinx.');
    const { status, stdout, stderr } = await run('--voice', 'echo-alba', '--json', file);
    t.equal(status, 0);
    t.equal(stderr, 'echo-alba: the format pocket has no phonemes: this voice reads letters\n');
    const { spoken, words } = JSON.parse(stdout) as Said;
    t.equal(spoken, 'Red teapot, syrinx.', 'and ignores entries with phonemes');
    t.strictSame(
      words.map(({ ipa }) => ipa),
      ['', '', ''],
    );
  },
);

t.test('what cannot be used is explained, with exit code 2', async (t) => {
  const { root, run } = prepare(t);
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [['--voice', 'nobody'], /^phonemes: there is no voice "nobody": choose from wren, wren_conv, /],
    [[join(root, 'none.txt')], /^phonemes: .*none\.txt: there is no such file\n/],
    [['n'.repeat(300)], /^phonemes: n+: there is no such file\n/],
    [[root], /^phonemes: .*: this is not a file\n/],
    [['a', 'b'], /^phonemes: .* takes 0 to 1 operands, not 2/],
  ];
  for (const [args, message] of cases) {
    const { status, stdout, stderr } = await run(...args);
    t.strictSame([status, stdout], [2, ''], args.join(' '));
    t.match(stderr, message);
    t.match(stderr, /\nUsage: npm run phonemes -- /);
    t.notMatch(stderr, /^ {4}at /m, 'no stack');
  }
});
