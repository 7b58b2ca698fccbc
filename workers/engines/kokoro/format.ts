/** Kokoro and KittenTTS, as people download them: a model, and tables of voices beside it. */
import { type Sex, VoicePackError } from '../../../src/threads/voices.js';
import type { VoiceFormat } from '../engine.js';
import { ownerFile, type PackFolder } from '../pack.js';
import type { KokoroData, Speaker } from './engine.js';
import { type FamilyName, families, languageOfName, sexOfName, unspoken } from './families.js';
import { sampleRateHz } from './segment.js';
import type { PackSettings } from './settings.js';
import { padId } from './symbols.js';
import { blend, type RawNames, readTables, styleSize, tableFiles, type Tables } from './tables.js';

/** Change it when the derived files change. */
const recipe = 'kokoro 1';

interface NamedTable {
  readonly name: string;
  readonly table: Float32Array;
  readonly language: string;
  readonly sex: Sex | null;
  readonly speedPrior: number;
}

/** Files of other formats, which also have voices beside a model. */
const isOtherModel = (file: string): boolean =>
  /\.onnx\.json$|(?:^|\/)(?:flow_lm|mimi_|text_conditioner)/.test(file);

const modelsIn = (files: readonly string[]): string[] => files.filter((file) => file.endsWith('.onnx'));

/**
 * Precisions in the names of exports, the worst first. A name without one is the whole model: the others are smaller, and
 * not faster on a CPU. Those in 16 bits make values that are not numbers on some machines.
 */
const precisions = [/fp16|float16/i, /f16/i, /q4|int4|bnb4/i, /q8|int8|quant/i];

const chooseModel = (files: readonly string[], named: string | undefined): string => {
  const models = modelsIn(files);
  const rankOf = (file: string) => {
    const place = precisions.findIndex((precision) => precision.test(file.replace(/^.*\//, '')));
    return place < 0 ? 0 : precisions.length - place;
  };
  if (named !== undefined && models.includes(named)) return named;
  return models.toSorted((a, b) => rankOf(a) - rankOf(b))[0]!;
};

/** What the metadata of sherpa's packages say of tables without names. */
const rawNamesOf = (metadata: ReadonlyMap<string, string>): RawNames | null => {
  const names = metadata.get('speaker_names');
  const rows = Number(metadata.get('style_dim')?.split(',')[0]);
  return names === undefined || !Number.isInteger(rows) ? null : { names: names.split(','), rows };
};

const familyOf = (settings: PackSettings, tables: Tables): FamilyName => {
  if (settings.family !== null) return settings.family;
  const rows = Math.max(...[...tables.values()].map(({ length }) => length / styleSize));
  return rows >= families.kokoro.rows.min ? 'kokoro' : 'kitten';
};

const refuseRows = (folder: PackFolder, family: FamilyName, tables: Tables): void => {
  const { title, rows } = families[family];
  for (const [name, { length }] of tables) {
    const count = length / styleSize;
    if (count >= rows.min && count <= rows.max) continue;
    throw new VoicePackError(
      `${folder.path}: the voice "${name}" has ${count} rows, one of ${title} has ${rows.min} to ${rows.max}: ` +
        'download the voices of the same release as the model',
    );
  }
};

const namesShown = 3;

const listOf = (names: readonly string[]): string => {
  const more = names.length - namesShown;
  return names.slice(0, namesShown).join(', ') + (more > 0 ? ` and ${more} more` : '');
};

/** The voices that can speak, and notes about the others. */
const speakable = (
  folder: PackFolder,
  family: FamilyName,
  tables: Tables,
  settings: PackSettings,
): { readonly found: NamedTable[]; readonly notes: string[] } => {
  const languageOf = (name: string): string | null =>
    families[family].language ?? languageOfName(name) ?? settings.language;
  const titles = new Map(Object.entries(settings.aliases).map(([alias, name]) => [name, alias]));
  const found: NamedTable[] = [];
  const foreign: string[] = [];
  const nameless: string[] = [];
  const add = (name: string, source: string, table: Float32Array, speedPrior: number) => {
    const language = languageOf(source);
    if (language === null) nameless.push(name);
    else if (unspoken.has(language)) foreign.push(name);
    else found.push({ name, table, language, sex: sexOfName(source), speedPrior });
  };
  for (const [name, table] of tables)
    add(titles.get(name) ?? name, name, table, settings.speedPriors[name] ?? 1);
  for (const { name, parts } of settings.blends) {
    const mixed = parts.map(({ voice, weight }) => {
      const table = tables.get(settings.aliases[voice] ?? voice);
      if (table === undefined)
        throw new VoicePackError(
          `${folder.pathOf(ownerFile)}: the blend "${name}" has the unknown voice "${voice}"`,
        );
      return { table, weight };
    });
    if (tables.has(name) || mixed.some(({ table }) => table.length !== mixed[0]!.table.length))
      throw new VoicePackError(
        `${folder.pathOf(ownerFile)}: the blend "${name}" needs another name, or voices of one release`,
      );
    add(name, parts[0]!.voice, blend(mixed), 1);
  }
  const notes = [];
  if (foreign.length > 0)
    notes.push(
      `left out: ${listOf(foreign)}: Japanese and Chinese need the phonemes of misaki, which espeak-ng does not make`,
    );
  if (nameless.length > 0)
    notes.push(`left out: ${listOf(nameless)}: the name shows no language; set "language" in ${ownerFile}`);
  if (found.length === 0)
    throw new VoicePackError(`${folder.path}: no voice can be used: ${notes.join('; ') || 'there is none'}`);
  return { found, notes };
};

/** Puts all tables into memory that threads share. */
const sharedStyles = (tables: readonly NamedTable[]): { styles: SharedArrayBuffer; speakers: Speaker[] } => {
  const size = tables.reduce((sum, { table }) => sum + table.length, 0);
  const styles = new SharedArrayBuffer(size * Float32Array.BYTES_PER_ELEMENT);
  const all = new Float32Array(styles);
  let at = 0;
  const speakers = tables.map(({ table, speedPrior }) => {
    all.set(table, at);
    const firstRow = at / styleSize;
    at += table.length;
    return { firstRow, rows: table.length / styleSize, speedPrior };
  });
  return { styles, speakers };
};

/** Bytes of a loaded model in each thread: the graph, and its weights of less than a page. */
const threadBytes = 8 * 1024 * 1024;

/** Versions of KittenTTS whose voices have several rows put this id at the end of each text. */
const endMarkId = 10;

/** The usual default voice of Kokoro. */
const isDefault = ({ name }: NamedTable): boolean => name === 'af_heart' || name === 'af';

export const kokoro: VoiceFormat = {
  name: 'kokoro',
  looksFor: 'MODEL.onnx with voices/NAME.bin or voices.npz',
  recognises({ files }) {
    const { read, torch } = tableFiles(files);
    return modelsIn(files).length > 0 && read.length + torch.length > 0 && !files.some(isOtherModel);
  },

  async read(folder, derived) {
    const { languageNote } = await import('../g2p/languages.js');
    const { readConfig, readSettings } = await import('./settings.js');
    const { hasWholeSpeed, shapeOf } = await import('./graph.js');
    const config = await readConfig(folder);
    const chosen = chooseModel(folder.files, config?.model_file);
    const file = await folder.hold(chosen);
    const source = await folder.model(chosen);
    const sources = await folder.sources(chosen);
    const settings = await readSettings(folder, config, source.metadata);
    const tables = await readTables(folder, rawNamesOf(source.metadata));
    const family = familyOf(settings, tables);
    refuseRows(folder, family, tables);
    let graph;
    try {
      graph = shapeOf(source);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      throw new VoicePackError(`${file.path}: ${error.message}`);
    }
    const { shape, model } = graph;
    const { found, notes } = speakable(folder, family, tables, settings);
    const voices = found.toSorted((a, b) => Number(isDefault(b)) - Number(isDefault(a)));
    for (const language of new Set(voices.map((voice) => voice.language))) {
      const note = languageNote(language);
      if (note !== null) notes.push(note);
    }
    if (shape.durations === null) notes.push('word times are estimates: the model has no durations');
    if (hasWholeSpeed(shape))
      notes.push('the pace can only be a whole number: this export takes no other speed');
    const made = await derived.models(sources, recipe, { model });
    const { styles, speakers } = sharedStyles(voices);
    const hasEndMark = family === 'kitten' && speakers.some(({ rows }) => rows > 1);
    return {
      voices: voices.map(({ name, language, sex }) => ({
        id: voices.length === 1 ? folder.name : `${folder.name}-${name}`,
        ...{ sampleRateHz, language },
        ...(sex !== null && { sex }),
      })),
      modelBytes: threadBytes,
      sharedBytes: made.model.bytes + styles.byteLength,
      notes,
      data: {
        family,
        model: { ...made.model, path: file.path },
        shape,
        vocabulary: settings.vocabulary ?? families[family].vocabulary,
        ending: hasEndMark ? [endMarkId, padId] : [padId],
        speakers,
        styles,
      } satisfies KokoroData,
    };
  },

  async load(pack, means, measured) {
    const { KokoroEngine } = await import('./engine.js');
    return KokoroEngine.load(pack, means, measured);
  },

  async pronounce(_, bounds) {
    const { createPhonemiser, phonemicWords } = await import('../g2p/speech.js');
    const phonemiser = await createPhonemiser(bounds);
    return (request, { language }) => phonemicWords(phonemiser, request, language);
  },
};
