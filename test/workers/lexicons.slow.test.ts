import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import t from 'tap';
import { limits } from '../../src/limits.js';
import { Lexicons } from '../../src/threads/lexicons.js';
import { pronounced } from '../../src/text/lexicon.js';
import { wordSpans } from '../../src/text/words.js';
import { parsePlain } from '../../workers/lexicons/entries.js';
import { parsePls } from '../../workers/lexicons/pls.js';
import { accountWords } from '../../workers/lexicons/write.js';

/** A log that keeps its lines. */
const recordedLog = () => {
  const lines: { readonly msg: string; readonly file: string; readonly fault: string; lexicon?: string }[] =
    [];
  const write = (line: string) => lines.push(JSON.parse(line) as (typeof lines)[number]);
  return { log: pino({ base: null }, { write }), lines };
};

t.test('the plain form has two columns, comments and rules', (t) => {
  const { entries, findings } = parsePlain(
    [
      '# names',
      'Nguyen\t/ˈwɪn/',
      'New  York = the big apple',
      '@language de',
      '@case exact',
      "Chemie\t/çe'mi:/",
      '@language any',
      'no column',
      'a\tb\tc',
      'x\t/h&ello/',
      'one two three four five six\tmany',
      '@language german!',
      '@case upper',
      `${'w'.repeat(300)}\tx`,
      `qq\t${'9'.repeat(199)}`,
    ].join('\r\n'),
    limits,
  );
  t.strictSame(entries, [
    { written: 'Nguyen', caseRule: 'smart', language: null, form: { ipa: 'ˈwɪn' } },
    { written: 'New York', caseRule: 'smart', language: null, form: { spelling: 'the big apple' } },
    { written: 'Chemie', caseRule: 'exact', language: 'de', form: { ipa: 'çeˈmiː' } },
  ]);
  t.strictSame(
    findings.kept.map(({ line, fault }) => `${line}: ${fault}`),
    [
      '8: the line must have two columns: a word, then a tab or " = ", then its spoken form',
      '9: the line must have two columns: a word, then a tab or " = ", then its spoken form',
      '10: "&" in the phonemes of "x" is not a sign of the IPA that voices know',
      '11: "one two three four five six" has more than 5 words',
      '12: "german!" is not a language tag such as en-US',
      '13: the case rule must be smart, exact or any',
      `14: "${'w'.repeat(20)}..." or its spoken form is longer than 200 characters`,
      '15: the spoken form of "qq" takes longer to say than 400 letters: shorten it, or write its numbers and signs as words',
    ],
  );
  t.throws(
    () =>
      accountWords('/nowhere', limits).addition('acme', {
        word: 'kettle'.repeat(5),
        spoken: 'ﷺ'.repeat(199),
      }),
    /takes longer to say than 400 letters/,
    'nor can the console add such a word',
  );
  t.end();
});

const pls = (body: string, attributes = 'alphabet="ipa" xml:lang="en-US"') =>
  `<?xml version="1.0" encoding="UTF-8"?>\n<lexicon version="1.0" xmlns="http://www.w3.org/2005/01/pronunciation-lexicon" ${attributes}>\n${body}\n</lexicon>\n`;

t.test('the W3C form has words with spellings or phonemes, and faults have their lines', (t) => {
  const { entries, findings } = parsePls(
    pls(`<lexeme><grapheme>W3C</grapheme><alias>World Wide Web Consortium</alias></lexeme>
<lexeme>
  <grapheme>colour</grapheme><grapheme>color</grapheme>
  <phoneme>ˈkʌlə</phoneme><phoneme prefer="true">ˈkʌlɚ</phoneme>
</lexeme>
<lexeme><grapheme>AT&amp;T</grapheme><alias>A T and T</alias></lexeme>
<lexeme><grapheme>x</grapheme><phoneme alphabet="x-sampa">Eks</phoneme></lexeme>
<lexeme><grapheme>alone</grapheme></lexeme>`),
    limits,
  );
  const language = 'en-US';
  t.strictSame(entries, [
    { written: 'W3C', caseRule: 'smart', language, form: { spelling: 'World Wide Web Consortium' } },
    { written: 'colour', caseRule: 'smart', language, form: { ipa: 'ˈkʌlɚ' } },
    { written: 'color', caseRule: 'smart', language, form: { ipa: 'ˈkʌlɚ' } },
    { written: 'AT&T', caseRule: 'smart', language, form: { spelling: 'A T and T' } },
  ]);
  t.strictSame(findings.kept, [
    { line: 9, fault: 'the alphabet of phonemes is "x-sampa": only "ipa" is known' },
    { line: 10, fault: 'the <lexeme> lacks a <grapheme>, or a <phoneme> or <alias>' },
  ]);
  t.end();
});

t.test('a file that is no lexicon is refused with its line', (t) => {
  const refused = (text: string, line: number, message: RegExp) =>
    t.throws(() => parsePls(text, limits), { line, message });
  refused('', 1, /element/i);
  refused('<lexicon>\n<lexeme>\n</lexicon>', 3, /lexeme|tag/i);
  refused('<html/>', 1, /root element must be <lexicon>/);
  refused('<lexicon version="1.0"/>', 1, /xml:lang/);
  refused(
    '<!DOCTYPE lexicon [<!ENTITY a "aaaa">]>\n<lexicon xml:lang="en">&a;</lexicon>',
    1,
    /document type/,
  );
  refused('\n\n<!doctype x SYSTEM "file:///etc/passwd"><lexicon/>', 3, /document type/);
  refused(pls('<lexeme><grapheme>&unknown;</grapheme></lexeme>'), 3, /entity|reference/i);
  refused(`<lexicon xml:lang="en">${'<a>'.repeat(200_000)}`, 1, /./);
  t.end();
});

t.test(
  'files are read for the service, a voice and an account; bad ones are reported, and a reload replaces all',
  async (t) => {
    const folder = join(t.testdir(), 'lexicons');
    const { log, lines } = recordedLog();
    const entry = new URL('../../workers/lexicons.js', import.meta.url);
    const lexicons = new Lexicons({ folder, bounds: limits, log, entry });
    t.teardown(() => lexicons.close());
    const spoken = (text: string, account = 'Shop', voiceId = 'wren', lexiconId?: string) =>
      pronounced(
        lexicons.of(account, { voiceId, ...(lexiconId && { lexiconId }) }),
        text,
        wordSpans(text),
        'en-US',
      ).map((form) => form.ipa ?? form.spoken);

    await lexicons.reload();
    t.strictSame(spoken('alpha'), [], 'there is no folder');

    for (const path of ['', 'accounts/Shop', 'voices/wren', 'voices/.hidden', 'named/trains', 'named/empty'])
      mkdirSync(join(folder, path), { recursive: true });
    writeFileSync(join(folder, 'a.txt'), 'alpha\tservice\nbeta\tservice\ngamma\tservice\nbad line\n');
    writeFileSync(
      join(folder, 'b.pls'),
      pls('<lexeme><grapheme>delta</grapheme><phoneme>ˈdɛltə</phoneme></lexeme>'),
    );
    writeFileSync(join(folder, 'broken.pls'), '<lexicon>\n<');
    writeFileSync(join(folder, 'binary.txt'), Buffer.from([0xff, 0xfe, 0x00]));
    writeFileSync(join(folder, 'large.txt'), `#${' '.repeat(limits.lexiconFileBytesMax)}`);
    writeFileSync(join(folder, 'notes.md'), 'alpha\tno lexicon');
    writeFileSync(join(folder, 'voices/wren/x.tsv'), 'alpha\tvoice\nbeta\tvoice\n');
    writeFileSync(join(folder, 'accounts/Shop/x.tsv'), 'alpha\taccount\n');
    writeFileSync(join(folder, 'named/trains/x.tsv'), 'alpha\tnamed\n');
    await lexicons.reload();
    t.strictSame(spoken('alpha beta gamma delta'), ['account', 'voice', 'service', 'ˈdɛltə']);
    t.strictSame(spoken('alpha beta', 'Other', 'ada'), ['service', 'service']);
    t.strictSame(spoken('alpha beta', 'Shop', 'wren', 'trains'), ['named', 'voice'], 'the named one wins');
    t.strictSame(lexicons.names, ['trains']);
    for (const name of ['gone', 'gone', 'empty'])
      t.strictSame(spoken('alpha', 'Shop', 'wren', name), ['account'], 'speech goes on without it');
    t.match(
      lines.filter(({ msg }) => /^a key names a lexicon/.test(msg)).map(({ lexicon }) => lexicon),
      [/named\/gone$/, /named\/empty$/],
      'the log has each name once',
    );
    t.match(
      lines.filter(({ msg }) => msg === 'lexicon').map(({ file, fault }) => `${file} ${fault}`),
      [
        /a\.txt:4 the line must have two columns/,
        /binary\.txt:1 the file is not in UTF-8/,
        /broken\.pls:2 /,
        /large\.txt:1 the file has \d+ bytes; 2097152 are allowed/,
      ],
    );

    writeFileSync(
      join(folder, 'a.txt'),
      Array.from({ length: 10_000 }, (_, i) => `word${i}\tform ${i}`).join('\n'),
    );
    const reading = [lexicons.reload(), lexicons.reload()];
    t.strictSame(spoken('gamma'), ['service'], 'the old ones hold until the new ones are there');
    await Promise.all(reading);
    t.strictSame(spoken('gamma word9999'), ['form 9999']);
  },
);

t.test('what the console adds to accounts is read last, and takes no room from other files', async (t) => {
  const folder = t.testdir({
    accounts: {
      ada: { 'console.txt': 'one\tmember\nthree\tmember\n', 'names.txt': 'two\toperator\n' },
      bob: { 'names.txt': 'one\toperator\n' },
    },
    voices: { wren: { 'console.txt': 'four\toperator\n' } },
  });
  const entry = new URL('../../workers/lexicons.js', import.meta.url);
  const spoken = async (fewer: Partial<Record<'lexiconEntriesMax' | 'lexiconFilesMax', number>>) => {
    const bounds = { ...limits, ...fewer };
    const lexicons = new Lexicons({ folder, bounds, log: recordedLog().log, entry });
    t.teardown(() => lexicons.close());
    await lexicons.reload();
    const text = 'one two three four';
    return ['ada', 'bob'].map((account) =>
      pronounced(lexicons.of(account, { voiceId: 'wren' }), text, wordSpans(text), 'en').map(
        (form) => `${form.first} ${form.spoken}`,
      ),
    );
  };
  const operators = [
    ['1 operator', '3 operator'],
    ['0 operator', '3 operator'],
  ];
  t.strictSame(await spoken({ lexiconEntriesMax: 3 }), operators, 'entries');
  t.strictSame(await spoken({ lexiconFilesMax: 3 }), operators, 'files');
});

t.test('files beyond the bound are one finding, which hides no fault of the others', async (t) => {
  const names = Array.from({ length: 9 }, (_, index) => `${index}.txt`);
  const folder = t.testdir(Object.fromEntries(names.map((name) => [name, 'no column\n'])));
  const { log, lines } = recordedLog();
  const entry = new URL('../../workers/lexicons.js', import.meta.url);
  const bounds = { ...limits, lexiconFilesMax: 2, lexiconFindingsMax: 3 };
  const lexicons = new Lexicons({ folder, bounds, log, entry });
  t.teardown(() => lexicons.close());
  await lexicons.reload();
  t.match(
    lines.filter(({ msg }) => msg === 'lexicon').map(({ file, fault }) => `${file} ${fault}`),
    [
      /2\.txt:1 more than 2 files: 7 are not read, from this one on$/,
      /0\.txt:1 .*column/,
      /1\.txt:1 .*column/,
    ],
  );
});

t.test('a file may have a million faults: the first are logged, the others counted', async (t) => {
  const folder = t.testdir({ 'a.txt': 'x\n'.repeat(2 ** 20), 'b.txt': 'one\t1\n' });
  const { log, lines } = recordedLog();
  const entry = new URL('../../workers/lexicons.js', import.meta.url);
  const lexicons = new Lexicons({ folder, bounds: limits, log, entry });
  t.teardown(() => lexicons.close());
  await lexicons.reload();
  t.equal(lines.filter(({ msg }) => msg === 'lexicon').length, limits.lexiconFindingsMax);
  t.match(lines.at(-1), { msg: 'lexicons read', files: 2, entries: 1, faults: 2 ** 20 });
});

t.test('files that end their thread one after the other are named, and the reading ends', async (t) => {
  const accounts = Array.from({ length: 20 }, (_, index) => [`a${index}`, { 'exit.txt': '' }] as const);
  const folder = t.testdir({ accounts: Object.fromEntries(accounts) });
  const { log, lines } = recordedLog();
  const entry = new URL('../support/lexicons/hostile.js', import.meta.url);
  const lexicons = new Lexicons({ folder, bounds: limits, log, entry });
  t.teardown(() => lexicons.close());
  await lexicons.reload();
  t.equal(lines.filter(({ msg }) => msg === 'lexicon').length, 9);
  t.match(lines.at(-1), { msg: /could not be read/ });
});

t.test('entries beyond the bound are left out, and the log says so', async (t) => {
  const folder = t.testdir({
    'a.txt': 'one\t1\ntwo\t2\nthree\t3\n',
    'b.txt': 'four\t4\n',
  });
  const { log, lines } = recordedLog();
  const entry = new URL('../../workers/lexicons.js', import.meta.url);
  const bounds = { ...limits, lexiconEntriesMax: 2 };
  const lexicons = new Lexicons({ folder, bounds, log, entry });
  t.teardown(() => lexicons.close());
  await lexicons.reload();
  const text = 'one two three four';
  t.equal(pronounced(lexicons.of('', { voiceId: '' }), text, wordSpans(text), 'en').length, 2);
  t.match(
    lines.find(({ msg }) => msg === 'lexicon'),
    { fault: /too many entries/ },
  );
});

t.test(
  'a word that is added holds at once, and in a reading under way; no word causes a reading',
  async (t) => {
    const folder = t.testdir({ accounts: { ada: { 'console.txt': 'one\t1\n' } } });
    const { log, lines } = recordedLog();
    const entry = new URL('../../workers/lexicons.js', import.meta.url);
    const lexicons = new Lexicons({ folder, bounds: { ...limits, lexiconEntriesMax: 3 }, log, entry });
    t.teardown(() => lexicons.close());
    await lexicons.reload();
    const entryOf = (written: string, spelling: string) =>
      ({ written, caseRule: 'smart', language: null, form: { spelling } }) as const;
    const add = (account: string, written: string, spelling: string, isChange = false) =>
      lexicons.add(account, entryOf(written, spelling), isChange);
    const spoken = (account: string) =>
      pronounced(lexicons.of(account, { voiceId: '' }), 'one two', wordSpans('one two'), 'en').map(
        (form) => form.spoken,
      );
    t.ok(add('ada', 'two', '2'));
    t.strictSame(spoken('ada'), ['1', '2']);
    for (let index = 0; index < 10; index++) t.ok(add('ada', 'one', `uno${index}`, index > 0));
    t.strictSame(spoken('ada'), ['uno9', '2']);
    t.ok(lexicons.hasRoomFor('three', '3'), 'a new form takes the room of the one before');
    lexicons.remove('ada', entryOf('one', 'uno9'));
    t.strictSame(spoken('ada'), ['1', '2'], 'the form that it replaced holds again');
    t.ok(add('ada', 'one', 'uno9'));
    t.ok(add('bob', 'one', 'un'));
    t.strictSame(spoken('bob'), ['un'], 'the first word of an account');
    t.notOk(lexicons.hasRoomFor('three', '3'));

    const reading = lexicons.reload();
    t.ok(add('ada', 'two', 'due'));
    t.strictSame(spoken('ada'), ['uno9', 'due'], 'before it ends');
    lexicons.remove('bob', entryOf('one', 'un'));
    await reading;
    t.strictSame(spoken('ada'), ['1', 'due'], 'and after it');
    t.strictSame(spoken('bob'), []);
    await lexicons.reload();
    t.strictSame(spoken('ada'), ['1'], 'then as in the file');
    t.equal(lines.filter(({ msg }) => msg === 'lexicons read').length, 3);
  },
);

t.test(
  'a word or form far too long is refused before it is normalised, which takes time by its square',
  (t) => {
    const marks = '\u0323\u0301'.repeat(200_000);
    const startMs = performance.now();
    const { entries, findings } = parsePlain(
      `a\t${marks}\nb${marks}\tc\nd\te${'\u0301'.repeat(150)}`,
      limits,
    );
    t.ok(performance.now() - startMs < 10_000);
    t.match(
      findings.kept.map(({ line, fault }) => `${line}: ${fault}`),
      [/^1: "a\.\.\." or its .* longer than 200/, /^2: "b.*longer than 200/],
    );
    t.strictSame(
      entries.map(({ written }) => written),
      ['d'],
    );
    t.end();
  },
);

t.test('a file at which the thread hangs or ends is left out, and the log says so', async (t) => {
  const folder = t.testdir({ 'a.txt': 'one\t1\n', 'exit.txt': '', 'spin.txt': '', 'z.txt': 'two\t2\n' });
  const { log, lines } = recordedLog();
  const entry = new URL('../support/lexicons/hostile.js', import.meta.url);
  const bounds = { ...limits, lexiconReadMsMax: 10_000, watchdogBeatMs: 100 };
  const lexicons = new Lexicons({ folder, bounds, log, entry });
  t.teardown(() => lexicons.close());
  await lexicons.reload();
  t.strictSame(
    lines.filter(({ msg }) => msg === 'lexicon').map(({ file, fault }) => `${file}: ${fault}`),
    [
      `${folder}/exit.txt:1: the thread that reads the lexicons ended with code 3: the file is left out`,
      `${folder}/spin.txt:1: it was not read within 10 s: the file is left out`,
    ],
  );
  const spoken = () =>
    pronounced(lexicons.of('', { voiceId: '' }), 'one two', wordSpans('one two'), 'en').length;
  t.equal(spoken(), 2, 'the files beside them are read');

  writeFileSync(join(folder, 'a.txt'), 'three\t3\n');
  rmSync(join(folder, 'spin.txt'));
  await lexicons.reload();
  t.equal(spoken(), 1, 'a later reading reads them again');

  writeFileSync(join(folder, 'spin.txt'), '');
  const hanging = lexicons.reload();
  await lexicons.close();
  await hanging;
  t.pass('a service that stops does not wait for it');
});
