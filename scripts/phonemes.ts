/** What will be said of a text, line by line, from the command line. It needs no running service. */
import { createReadStream, openSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { administer } from '../src/accounts/administration.js';
import { noSpeakingDefaults, settingsOf } from '../src/api/speech-settings.js';
import { readConfig } from '../src/config.js';
import { limits } from '../src/limits.js';
import { draftOf, saidOf, type Said } from '../src/speech/said.js';
import { storeAt } from '../src/store/driver.js';
import { Lexicons } from '../src/threads/lexicons.js';
import type { Voice, VoicePack } from '../src/threads/voices.js';
import { ipasOf, pronounceOf } from '../workers/engines/registry.js';
import { UsageError, program, runIfMain, type Terminal } from './command.js';
import { formatTable } from './table.js';
import { installed, placesOf } from './voices/packs.js';

const usage = `Usage: npm run phonemes -- [--voice ID] [--normalize] [--for KEY_OR_ACCOUNT] [--json] [--escapes] [FILE | -]

  --voice ID       a voice of MODELS_DIR (default: the first)
  --normalize      numbers, dates and the like as people say them, as with normalize_text
  --for KEY        what this key sets (its beginning will do), or its account: numbers, lexicons
  --for ACCOUNT    the same for the keys of this account that set nothing
  --json           for programs: one JSON object a line
  --escapes        "\\n" in a line is a line break

Shows for each line of FILE (default: standard input) what will be said, with the segments, rules, lexicons and
pronunciation of the service. It needs no running service. BY names what replaced a word: the entry of a lexicon, the rule
of --normalize, or "address". Phonemes are those of espeak-ng (IPA). Lexicons are read from DATA_DIR/lexicons.
`;

/** A line of a text, with its sounds in columns. */
const table = ({ text, spoken, words }: Said): string => {
  const rows = words.map(({ word, ipa, by = '' }) => [`  ${word}`, ipa, by]);
  const heading = spoken === text ? `${text}\n` : `${text}\n= ${spoken}\n`;
  return rows.length === 0
    ? `${heading}\n`
    : `${heading}${formatTable([['  WORD', 'IPA', 'BY'], ...rows])}\n`;
};

const openText = (file: string): number => {
  try {
    if (statSync(file).isFile()) return openSync(file, 'r');
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    const isAbsent = ['ENOENT', 'ENOTDIR', 'ENAMETOOLONG'].includes(code);
    throw new UsageError(`${file}: ${isAbsent ? 'there is no such file' : `it cannot be read (${code})`}`);
  }
  throw new UsageError(`${file}: this is not a file`);
};

/** @returns opens it: lines are lost that come before someone waits for them */
const linesOf = (file: string): (() => AsyncIterable<string>) => {
  const read = (input: NodeJS.ReadableStream) => createInterface({ input, crlfDelay: Infinity });
  if (file === '-') return () => read(process.stdin);
  const fd = openText(file);
  return () => read(createReadStream('', { fd }));
};

const voiceOf = (id: string | null, packs: readonly VoicePack[]): { pack: VoicePack; voice: Voice } => {
  const voices = packs.flatMap((pack) => pack.voices.map((voice) => ({ pack, voice })));
  const found = id === null ? voices[0] : voices.find(({ voice }) => voice.id === id);
  if (found !== undefined) return found;
  const ids = voices.map(({ voice }) => voice.id);
  throw new UsageError(`there is no voice "${id}": choose from ${ids.slice(0, 40).join(', ')}`);
};

const readLexicons = async (dataDir: string, err: Terminal['err']): Promise<Lexicons> => {
  const tell = (...[about, what]: unknown[]) =>
    err(`${String(what)}: ${Object.values(about as object).join(': ')}\n`);
  const lexicons = new Lexicons({
    folder: join(dataDir, 'lexicons'),
    bounds: limits,
    log: { info: () => undefined, warn: tell, error: tell },
    entry: new URL('../workers/lexicons.js', import.meta.url),
  });
  await lexicons.reload();
  return lexicons;
};

const defaultsOf = async (target: string | null, env: Terminal['env']) =>
  target === null
    ? { account: '', speaking: noSpeakingDefaults }
    : administer(storeAt(readConfig(env), limits), false, (administration) =>
        administration.speakingOf(target),
      );

export const phonemes = program('phonemes', usage, {
  operands: [0, 1],
  options: ['voice', 'for'],
  flags: ['normalize', 'json', 'escapes'],
  run: async ({ operands: [file = '-'], option, flag }, { env, out, err }) => {
    const lines = linesOf(file);
    const { packs } = await installed(placesOf(env));
    const { pack, voice } = voiceOf(option('voice'), packs);
    const lexicons = await readLexicons(readConfig(env).dataDir, err);
    const pronounce = await pronounceOf(pack, limits);
    if (pronounce === null)
      err(`${voice.id}: the format ${pack.engine} has no phonemes: this voice reads letters\n`);
    const { account, speaking } = await defaultsOf(option('for'), env);
    const asked = { voiceId: voice.id, normalizeText: flag('normalize') || null };
    const settings = settingsOf(asked, speaking);
    const parts = {
      settings,
      language: voice.language,
      lexicons: lexicons.of(account, settings),
      bounds: limits,
      hasPhonemes: pronounce !== null,
    };
    for await (const line of lines()) {
      const text = flag('escapes') ? line.replaceAll('\\n', '\n') : line;
      const draft = await draftOf(text, parts);
      const said = saidOf(draft, pronounce === null ? [] : await ipasOf(pronounce, draft.segments, voice));
      out(flag('json') ? `${JSON.stringify(said)}\n` : table(said));
    }
  },
});

await runIfMain(import.meta.url, phonemes);
