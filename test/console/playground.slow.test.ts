/** The playground in a browser: requests in every format, and faults. */
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import { isNight, partOfToday, seedOfRun } from '../fuzz/check.js';
import { packageRoot } from '../support/package-root.js';
import { prose, type StreamRecord } from '../support/service.js';
import { missingTool } from '../support/tools.js';
import { eventually, until } from '../support/waiting.js';
import { ask } from './browser-rig.js';
import { badJointsOf, enterPlayground, type Heard, heardAt, SILENT_MS_MAX } from './playground-ears.js';

const { ada, ears, page, rig } = await enterPlayground(t);

const text = 'The old kettle costs twenty dollars, a ticket $12.';
const request = page.getByRole('tabpanel', { name: 'Request' });
const status = () => request.getByRole('status').innerText();
const alert = () => request.getByRole('alert').innerText();
const words = request.getByRole('group', { name: /^Spoken words/ }).getByRole('button');

const accounts = await ask(page, 'accounts', {});
const { accountId } = accounts[0]!;

const recordsOf = (body: string): readonly StreamRecord[] =>
  body
    .split('\n\n')
    .filter((record) => record !== '')
    .map((record) => JSON.parse(record.slice('data: '.length)) as StreamRecord);

/** @returns seconds of the wav file at which what is heard begins */
const beginOf = ({ pcm, rate }: Heard, audio: readonly Buffer[]): number =>
  (Buffer.concat(audio).indexOf(pcm.subarray(0, 8_000)) - 44) / 2 / rate;

const numberOf = (shown = ''): number => Number(shown.replaceAll(',', ''));

/** Speaks a text to its end. @returns what the service sent */
const speak = async (t: Test, said: string, format: string) => {
  await page.reload();
  await ada.field('Format').selectOption(format);
  await ada.field('Text').fill(said);
  await ada.button('Speak').click();
  t.ok(await until(async () => (await status()) === 'Spoken to the end.'), `${format} is spoken to its end`);
  const records = recordsOf(await ears.answer());
  const audio = records.flatMap(({ audio_chunk: chunk }) =>
    chunk === undefined ? [] : [Buffer.from(chunk, 'base64')],
  );
  const times = records.flatMap(({ words = [], start_seconds = [] }) =>
    words.map((word, index) => ({ word, start: start_seconds[index]! })),
  );
  return { audio, times };
};

/** Begins a long text, and waits until it is heard. */
const beginLong = async () => {
  await ada.field('Format').selectOption('pcm');
  await ada.field('Text').fill(prose(58));
  await ada.button('Speak').click();
  await eventually(() => ears.isLoud());
};

/** The page draws two seconds late, until it is reloaded, as on a busy machine. */
const drawLate = () =>
  page.evaluate(
    '{ const draw = requestAnimationFrame; requestAnimationFrame = (act) => setTimeout(() => draw(act), 2_000); }',
  );

const downloaded = async (): Promise<{ name: string; bytes: Buffer }> => {
  const saving = page.waitForEvent('download');
  await ada.button('Download').click();
  const download = await saving;
  return { name: download.suggestedFilename(), bytes: readFileSync(await download.path()) };
};

t.test(
  'what one hears is what the service sent, without gap or overlap, and words light up on time',
  async (t) => {
    const { audio, times } = await speak(t, text, 'pcm');
    const heard = await ears.heard();
    t.equal(heard.rate, 32_000);
    t.ok(heard.pcm.equals(Buffer.concat(audio)), 'the same samples');
    t.strictSame(badJointsOf(heard), [], 'each source starts at the frame at which the one before it ends');
    const figures = await request.locator('.cells').innerText();
    const [, firstByteMs, audibleMs] =
      /First byte\s+([\d,]+) ms\s+First audible sample\s+([\d,]+) ms/.exec(figures) ?? [];
    t.ok(numberOf(firstByteMs) > 0 && numberOf(audibleMs) > numberOf(firstByteMs), figures);

    // Once more, when nothing waits for the service.
    await ears.forget();
    await ada.button('Play again').click();
    await eventually(async () => (await ears.heard()).lit.at(-1)?.word === times.at(-1)?.word);
    const again = await ears.heard();
    t.ok(again.pcm.equals(heard.pcm), 'the same samples again');
    t.strictSame(badJointsOf(again), []);
    t.ok(again.lit.length > text.split(' ').length / 2);
    let index = -1;
    for (const { at, frameSeconds, word } of again.lit) {
      index = times.findIndex((candidate, next) => next > index && candidate.word === word);
      t.ok(index >= 0, `${word} lights up in its turn`);
      const lateMs = Math.round((at - heardAt(again, times[index]?.start ?? 0)) * 1_000);
      const allowedMs = (isNight ? 50 : 10_000) + frameSeconds * 1_000;
      t.ok(lateMs > -50 && lateMs < allowedMs, `${word} is ${lateMs} ms late`);
    }
  },
);

t.test('a word that is clicked, or reached with the keyboard, is where speech goes on', async (t) => {
  const { audio, times } = await speak(t, text, 'wav');
  const jump = async (index: number, act: () => Promise<void>) => {
    await ears.forget();
    const stopped = ears.clickAfter(1, 'Stop');
    await act();
    await stopped;
    const { start, word } = times[index]!;
    t.ok(Math.abs(beginOf(await ears.heard(), audio) - start) < 0.001, word);
  };
  await jump(3, () => words.nth(3).click());
  await jump(5, async () => {
    await words.nth(3).focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
  });
});

t.test('each format sounds as it streams, and downloads as it is', async (t) => {
  const rates: Record<string, number> = { mp3: 32_000, opus: 48_000, mulaw: 8_000, linear16: 32_000 };
  t.comment(`seed ${seedOfRun()}`);
  for (const [format, rate] of partOfToday(Object.entries(rates), 2)) {
    const { audio } = await speak(t, 'A word in time.', format);
    const heard = await ears.heard();
    t.equal(heard.rate, rate, format);
    t.ok(heard.pcm.length / 2 / rate > 0.7, `${format}: ${heard.pcm.length / 2 / rate} s are heard`);
    t.strictSame(badJointsOf(heard), [], `${format}: without gap or overlap`);
    const { bytes, name } = await downloaded();
    if (format === 'opus') {
      const endSample = Number(bytes.readBigUInt64LE(bytes.lastIndexOf('OggS') + 6));
      const skipped = bytes.readUInt16LE(bytes.indexOf('OpusHead') + 10);
      t.equal(heard.pcm.length / 2, endSample - skipped, 'not a sample past its end');
    }
    if (format !== 'linear16') {
      t.equal(name, `speech.${format === 'mulaw' ? 'ulaw' : format}`);
      t.ok(bytes.equals(Buffer.concat(audio)), `${format}: the bytes of the stream`);
      continue;
    }
    t.equal(name, 'speech.wav');
    t.equal(bytes.readUInt32LE(4), bytes.length - 8);
    t.equal(bytes.readUInt32LE(40), bytes.length - 44);
    t.ok(bytes.subarray(44).equals(heard.pcm), 'one header, then what was heard');
  }
});

t.test('stop ends the request and falls silent, also before the request is drawn', async (t) => {
  await drawLate();
  await beginLong();
  const failed = page.waitForEvent('requestfailed');
  const silentMs = await ears.silentAfter('Stop');
  t.ok(silentMs < SILENT_MS_MAX, `${silentMs} ms`);
  t.match((await failed).url(), /\/api\/v1\/tts\/stream\?accountId=\d+$/);
  const stopped = /^Stopped after [\d.]+ s\. (?:Heard up to “.+”|No word was heard)\.$/;
  t.ok(await until(async () => stopped.test(await status())), 'it says up to which word');
  await page.reload();
  await beginLong();
  await ada.field('Text').press('Escape');
  t.ok(await until(async () => (await status()).startsWith('Stopped after')), 'Escape stops too');
});

t.test(
  'the request as code is what the playground sends, and runs',
  { skip: missingTool('curl', 'python3') },
  async (t) => {
    const { times } = await speak(t, 'It\'s $5, isn\'t it? "Yes".', 'wav');
    const dir = t.testdir();
    const run = promisify(execFile);
    await request.getByText('As code').click();
    const programs: Record<string, readonly string[]> = {
      curl: ['sh', '-e'],
      Node: [join(packageRoot, 'node_modules', '.bin', 'node')],
      Python: ['python3'],
    };
    for (const [language, [program = '', ...args]] of Object.entries(programs)) {
      await request.getByText(language, { exact: true }).click();
      const code = await request.getByLabel(`The request in ${language}`).innerText();
      t.match(code, /YOUR_API_KEY/);
      const file = join(dir, language === 'Node' ? 'program.mjs' : 'program');
      writeFileSync(file, code.replace('YOUR_API_KEY', rig.service.key));
      const { stdout } = await run(program, [...args, file], { cwd: dir });
      t.equal(readFileSync(join(dir, 'speech.wav')).toString('latin1', 0, 4), 'RIFF', language);
      if (language !== 'curl')
        t.strictSame(
          stdout.split(/\s+/).filter(Boolean),
          times.map(({ word }) => word),
        );
    }
  },
);

t.test('it says plainly why the service does not speak', async (t) => {
  await beginLong();
  await ask(page, 'suspendAccount', { accountId, suspended: true });
  await request.getByRole('alert').waitFor();
  t.match(await alert(), /^The speech broke off after [\d.]+ s\. The account was suspended\./);
  await ada.button('Speak').click();
  t.ok(await until(async () => (await alert()).startsWith('The account is suspended, so it cannot speak')));
  await ask(page, 'suspendAccount', { accountId, suspended: false });

  const poor = await ask(page, 'createAccount', { name: 'poor', credits: 20 });
  await page.reload();
  await ada.field('Account').selectOption(String(poor.accountId));
  await ada.button('Speak').click();
  t.ok(
    await until(async () => (await alert()).startsWith('The account has too little credit for this text.')),
  );
  await drawLate();
  await ada.field('Text').fill('Nineteen letters on');
  await ada.button('Speak').click();
  t.ok(
    await until(async () => (await status()) === 'Spoken to the end.'),
    'for a shorter text it has enough',
  );
  t.ok(await until(() => page.getByText('1 credit left').isVisible()), 'the credit that is left is shown');
  await page.reload();
});

t.test('the tenth stream of an account is refused, and one that ends makes room', async (t) => {
  // Not from the page: a browser opens no more than six connections to one host.
  const cookies = await page.context().cookies();
  const others = new AbortController();
  t.teardown(() => others.abort());
  const streams = await Promise.all(
    Array.from({ length: 9 }, () =>
      fetch(`${rig.url}/api/v1/tts/stream?accountId=${accountId}`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          cookie: cookies.map(({ name, value }) => `${name}=${value}`).join('; '),
        },
        body: JSON.stringify({ text: prose(400), voice: 'wren' }),
        signal: others.signal,
      }),
    ),
  );
  t.strictSame(new Set(streams.map(({ status }) => status)), new Set([200]));
  await ada.field('Account').selectOption(String(accountId));
  const answered = async (): Promise<number> => {
    const answer = page.waitForResponse(/\/api\/v1\/tts\/stream/);
    await ada.button('Speak').click();
    return (await answer).status();
  };
  t.ok(await until(async () => (await answered()) === 429));
  t.match(await alert(), /^Nine streams of this account speak in the playground already/);
  others.abort();
  t.ok(await until(async () => (await answered()) === 200));
  t.ok(await until(async () => /^Sp(?:eaking …|oken to the end\.)$/.test(await status())));
});

t.test('the wave shows what was heard; a click plays the word that is under the pointer', async (t) => {
  const { audio, times } = await speak(t, text, 'wav');
  const wave = request.getByRole('slider', { name: 'Position in the audio' });
  const under = request.locator('.pg-under');
  const seconds = Number(await wave.getAttribute('aria-valuemax'));
  const whole = `${seconds.toFixed(1)} of ${seconds.toFixed(1)} s.`;
  const heard = () => wave.getAttribute('aria-valuetext');
  t.ok(await until(async () => (await heard())?.startsWith(whole) === true), `all of it: ${await heard()}`);
  const { word, start } = times[3]!;
  const { height, width } = (await wave.boundingBox())!;
  await ears.forget();
  const position = { x: (width * (start + 0.05)) / seconds, y: height / 2 };
  await wave.hover({ position });
  t.ok(await until(async () => (await under.innerText()).endsWith(` s ${word}`)), await under.innerText());
  const stopped = ears.clickAfter(1, 'Stop');
  await wave.click({ position });
  await stopped;
  const began = beginOf(await ears.heard(), audio);
  t.ok(
    began > start && began < times[4]!.start,
    `${word} is at ${start} s, and speech goes on at ${began} s`,
  );
  t.ok(await until(async () => /^Stopped after [\d.]+ s\. Heard up to “.+”\.$/.test(await status())));
  t.ok((await request.locator('.unheard').count()) > 0, 'the rest is struck out');
  t.ok(
    await until(async () => Number(await wave.getAttribute('aria-valuenow')) < seconds),
    'and not coloured',
  );
  const stoppedAt = Number(await wave.getAttribute('aria-valuenow'));
  await ears.forget();
  const stoppedAgain = ears.clickAfter(1, 'Stop');
  await wave.press('Home');
  await stoppedAgain;
  t.equal(beginOf(await ears.heard(), audio), 0, 'from the start');
  t.ok(await until(async () => Number(await wave.getAttribute('aria-valuenow')) < stoppedAt));
});

t.test('two voices are compared: the other one goes on at the same word', async (t) => {
  await speak(t, text, 'pcm');
  await ada.field('Voice').selectOption('rook');
  await ada.button('Speak').click();
  const rows = request.getByRole('table', { name: /^What was spoken/ }).getByRole('row');
  t.ok(await until(async () => (await rows.count()) === 3));
  t.ok(await until(async () => (await status()) === 'Spoken to the end.'), 'both are spoken to their ends');
  t.match(
    (await rows.allInnerTexts()).slice(1),
    [/rook, pcm at 32,000 Hz/, /wren, pcm at 32,000 Hz/],
    'the newest first',
  );
  const word = await words.nth(4).innerText();
  await ears.forget();
  const compared = ears.clickAfter(2, 'Compare');
  await words.nth(4).click();
  await compared;
  await eventually(async () => (await ears.heard()).lit.length > 2);
  const first = (await ears.heard()).lit[2]?.word ?? '';
  t.ok(text.indexOf(first) >= text.indexOf(word), `goes on at ${word}: ${first}`);
  t.ok(await until(() => request.getByRole('radio', { name: /^B: wren/ }).isChecked()));
  await request.getByText(/^A: rook/).click();
  t.ok(await until(async () => (await rows.nth(1).innerText()).includes('Shown')));
  // Another page and back: the history stays, and nothing sounds.
  await page.getByRole('link', { name: 'Voices' }).click();
  await ada.sees('Voices');
  await page.getByRole('link', { name: 'Playground' }).click();
  t.ok(await until(async () => (await rows.count()) === 3));
  t.notOk(await ears.isLoud());
  await request.getByRole('button', { name: 'Clear' }).click();
  t.ok(await until(async () => (await rows.count()) === 0));
});

t.test('an empty text says what to do; the limit and the cost are shown', async (t) => {
  await page.reload();
  await ada.field('Text').fill('  ');
  await ada.button('Speak').click();
  t.match(await alert(), /^There is no text\. Write what you want to hear/);
  await ada.button('Use an example').click();
  await page.getByText('81 of 5,000 characters.').waitFor();
  t.equal(await request.getByRole('alert').count(), 0);
  await ada.field('Text').fill('a'.repeat(5_000));
  await page.getByText('5,000 of 5,000 characters. The rest is not taken here.').waitFor();
  const rich = await ask(page, 'createAccount', { name: 'rich', credits: 90_000 });
  await page.reload();
  await ada.field('Account').selectOption(String(rich.accountId));
  await ada.field('Text').fill('Nine 👍');
  await page.getByText('7 of 5,000 characters, 6 credits.').waitFor();
  await ada.button('Speak').click();
  await page.getByText('89,994 credits left').waitFor();
  t.match(await request.locator('.cells').innerText(), /Credits\s+6/);
});

t.test('no key is in the page, and the browser complains of nothing', async (t) => {
  await page.reload();
  await ada.button('Speak').click();
  t.ok(await until(async () => (await status()) === 'Spoken to the end.'));
  t.notMatch(await page.content(), /svc_sk_/);
  t.strictSame(await ada.violations(), []);
  t.strictSame(
    ada.complaints.filter((complaint) => !complaint.includes('ERR_INCOMPLETE_CHUNKED_ENCODING')),
    [],
    'but for the stream that was cut',
  );
});
