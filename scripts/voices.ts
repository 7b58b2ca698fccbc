/** The voices of MODELS_DIR from the command line. It needs no running service. */
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { readConfig } from '../src/config.js';
import { sampleText } from '../src/text/sample-sentences.js';
import { VoicePackError, type VoicePack, type Voices } from '../src/threads/voices.js';
import { entriesIn } from '../workers/engines/entries.js';
import { UsageError, program, runIfMain } from './command.js';
import { deviceData } from './device.js';
import { formatTable } from './table.js';
import { makeKitten, makeKokoro } from './voices/fixtures/kokoro.js';
import { mediumShape, piperModel, writePiper } from './voices/fixtures/piper.js';
import { makeOneGraph } from './voices/fixtures/pocket-one.js';
import { makeFiveGraphs } from './voices/fixtures/pocket.js';
import { makeSherpaKokoro, makeSherpaPiper } from './voices/fixtures/sherpa.js';
import { addPack, removePack } from './voices/install.js';
import { entryFor, examine, installed, packWith, placesOf } from './voices/packs.js';
import { bytesOf, describePack, formatBytes, namesOf, unique } from './voices/report.js';
import { speakToFile } from './voices/speech.js';

/** Makers of packs that have the files of real ones. */
const examples: Readonly<Record<string, (path: string) => void | Promise<void>>> = {
  kokoro: makeKokoro,
  kitten: makeKitten,
  piper: (path) => writePiper(path, 'piper', piperModel(mediumShape)),
  pocket: makeFiveGraphs,
  'pocket-one': (path) => {
    mkdirSync(path, { recursive: true });
    return makeOneGraph(join(path, 'model.onnx'));
  },
  'sherpa-kokoro': makeSherpaKokoro,
  'sherpa-piper': makeSherpaPiper,
};

const usage = `Usage: npm run voices -- COMMAND

  list [--json]               show the voice packs in MODELS_DIR, and why others cannot be used
  check PATH                  say what a file or folder is, whether this service speaks it, and how fast
  add PATH [--name ID]        check it, and copy it into MODELS_DIR, whole or not at all
  remove ID                   delete a pack from MODELS_DIR
  try ID ["text"] [-o FILE]   speak with a voice and without the service (default: a sentence, to ID.wav)
  example FORMAT PATH         make an example pack, which does not sound like speech (FORMATS)

PATH is a folder, or a file that ends in .onnx with its other files beside it, or the name of a pack in MODELS_DIR. A
running service changes its voices by \`npm run service -- reload\`, or at a restart.
`.replace('FORMATS', Object.keys(examples).join(', '));

/** In the table of all packs. */
const VOICES_SHOWN_MAX = 4;

const takeEffect = 'A running service takes it over by `npm run service -- reload`, or at its next start.\n';

const listJson = (packs: readonly VoicePack[], findings: Voices['findings']): string => {
  const shown = packs.map((pack) => ({
    ...{ pack: pack.name, format: pack.engine, bytes: bytesOf(pack), licence: pack.licence },
    voices: pack.voices.map(({ id, language, sampleRateHz }) => ({
      id,
      language,
      sample_rate: sampleRateHz,
    })),
  }));
  const notUsable = findings.map(({ fault }) => fault);
  return `${JSON.stringify({ packs: shown, not_usable: notUsable }, null, 2)}\n`;
};

export const voices = program('voices', usage, {
  list: {
    flags: ['json'],
    run: async ({ flag }, { env, out }) => {
      const { packs, findings } = await installed(placesOf(env));
      if (flag('json')) {
        out(listJson(packs, findings));
        return;
      }
      const rows = packs.map((pack) => [
        pack.name,
        pack.engine,
        unique(pack.voices.map(({ language }) => language)),
        `${unique(pack.voices.map(({ sampleRateHz }) => sampleRateHz))} Hz`,
        formatBytes(bytesOf(pack)),
        pack.licence ?? 'not stated',
        namesOf(pack, VOICES_SHOWN_MAX),
      ]);
      out(formatTable([['PACK', 'FORMAT', 'LANGUAGE', 'RATE', 'SIZE', 'LICENCE', 'VOICES'], ...rows], [4]));
      if (findings.length > 0) out(`\nNot usable:\n${findings.map(({ fault }) => `  ${fault}\n`).join('')}`);
    },
  },
  check: {
    operands: [1, 1],
    run: async ({ operands: [target = ''] }, { env, out }) => {
      const places = placesOf(env);
      const examined = await examine(await entryFor(target, places), places, readConfig(env));
      out(`${target}\n${describePack(examined)}`);
      if ('fault' in examined.outcome) throw new VoicePackError(`${target} cannot be used.`);
    },
  },
  add: {
    operands: [1, 1],
    options: ['name'],
    run: async ({ operands: [target = ''], option }, { env, out }) => {
      const places = placesOf(env);
      const entry = await entryFor(target, places);
      const name = option('name') ?? entry.name;
      const examined = await addPack(entry, name, places);
      out(`${name} is added.\n${describePack(examined)}${takeEffect}`);
      out(`Hear it: npm run voices -- try ${examined.pack.voices[0]?.id ?? name}\n`);
    },
  },
  remove: {
    operands: [1, 1],
    run: async ({ operands: [id = ''] }, { env, out }) => {
      const places = placesOf(env);
      const [{ packs }, entries] = [await installed(places), await entriesIn(places.modelsDir)];
      // A pack that cannot be used has a name and no voices.
      const isName = entries.packs.some((entry) => entry.name === id);
      const { name, voices } = isName ? { name: id, voices: [] } : packWith(id, packs);
      if (voices.length > 1)
        throw new VoicePackError(
          `"${id}" is one of ${voices.length} voices of the pack "${name}": name the pack to remove them all`,
        );
      if (packs.length === 1 && packs[0]?.name === name)
        throw new VoicePackError(
          `"${name}" is the only pack that can be used, and no service starts without one: add another first`,
        );
      await removePack(entries.packs.find((entry) => entry.name === name)!);
      out(`${name} is removed. ${takeEffect}`);
    },
  },
  example: {
    operands: [2, 2],
    run: async ({ operands: [format = '', path = ''] }, { out }) => {
      const make = Object.hasOwn(examples, format) ? examples[format] : undefined;
      if (make === undefined)
        throw new UsageError(
          `there is no example "${format}": choose from ${Object.keys(examples).join(', ')}`,
        );
      if (existsSync(path)) throw new UsageError(`${path} is there already: give another path`);
      await make(path);
      out(`${path} is made. Check it: npm run voices -- check ${path}\n`);
    },
  },
  try: {
    operands: [1, 2],
    options: ['output'],
    short: { output: 'o' },
    run: async ({ operands: [id = '', given], option }, { env, out }) => {
      const places = placesOf(env);
      const { packs } = await installed(places);
      const pack = packWith(id, packs);
      const voice = pack.voices.find((candidate) => candidate.id === id) ?? pack.voices[0]!;
      const file = option('output') ?? `${voice.id}.wav`;
      const { firstAudioMs, computeMs, audioMs } = await speakToFile(
        {
          entry: await entryFor(pack.name, places),
          voiceId: voice.id,
          text: given ?? sampleText(pack, voice),
          file,
          device: await deviceData(readConfig(env)),
        },
        places,
      );
      out(
        `${voice.id}: ${(audioMs / 1000).toFixed(1)} s of speech in ${Math.round(computeMs)} ms, ` +
          `first audio after ${Math.round(firstAudioMs)} ms, in ${file}\n`,
      );
    },
  },
});

await runIfMain(import.meta.url, voices);
