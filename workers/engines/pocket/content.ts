/** What both kinds of exports of Pocket TTS have in common. */
import type { Voice } from '../../../src/threads/voices.js';
import type { DerivedFiles } from '../graph/derived.js';
import type { Model } from '../graph/model.js';
import { type HeldFile, ownerFile, type PackContent } from '../pack.js';
import { type PocketBasics, type PocketData, segmentsAtOnceMax, voicesKeptMax } from './models.js';
import type { VoicePrompt } from './voices.js';

/** States in memory for each segment: a run makes a new one beside the old one, and an earlier one may still be in memory. */
const statesOfSegment = 3;

/** BCP 47, by the names of the exports. */
const languages: Readonly<Record<string, string>> = {
  ...{ english: 'en-US', french: 'fr-FR', german: 'de-DE', italian: 'it-IT' },
  ...{ portuguese: 'pt-PT', spanish: 'es-ES', hebrew: 'he-IL' },
};

export const languageOf = (name: string | null | undefined): string | null =>
  languages[name?.split('_')[0] ?? ''] ?? null;

const always = [
  'word times are estimates by the length of the words: the model gives none',
  'its speed cannot be changed: a request for another speed is ignored',
];
const languageNote = `the files do not name the language: it is spoken as English; set "language" in ${ownerFile}`;

export type Prompts = Map<string, VoicePrompt>;

/** The prompts with the ids of their voices. */
export const named = (packName: string, prompts: Prompts): PocketBasics['voices'] =>
  [...prompts].map(([name, prompt]) => ({
    id: prompts.size === 1 ? packName : `${packName}-${name}`,
    prompt,
  }));

/** Change it when the derived files change. */
const recipe = 'pocket 1';

/**
 * The graphs with their weights in a file that all threads map.
 *
 * @param sources the files that they are made of
 */
export const shareable = async <Name extends string>(
  derived: DerivedFiles,
  sources: readonly HeldFile[],
  files: Readonly<Record<Name, HeldFile>>,
  models: Readonly<Record<Name, Model>>,
): Promise<Readonly<Record<Name, HeldFile>>> => {
  // The metadata can have voices and a further graph.
  const bare = Object.entries<Model>(models).map(([name, model]) => [
    name,
    { ...model, metadata: new Map() },
  ]);
  const made = await derived.models(sources, recipe, Object.fromEntries(bare) as Record<Name, Model>);
  for (const name of Object.keys(made) as Name[]) made[name] = { ...made[name], path: files[name].path };
  return made;
};

/** Bytes of loaded graphs in each thread, without its states. */
const threadBytes = 16 * 1024 * 1024;

/**
 * @param bytes of the files, which threads share
 * @param stateBytes of one state of a segment
 * @param keptBytes of a voice's prompt that a thread keeps
 */
export const contentOf = (
  data: PocketData,
  language: string | null,
  bytes: number,
  stateBytes: number,
  keptBytes: number,
): PackContent => {
  const { voices, config } = data.basics;
  const sampleRateHz = config.sample_rate;
  return {
    voices: voices.map(({ id }): Voice => ({ id, sampleRateHz, language: language ?? 'en-US' })),
    modelBytes: threadBytes,
    sharedBytes: bytes,
    stateBytes:
      segmentsAtOnceMax * statesOfSegment * stateBytes + Math.min(voicesKeptMax, voices.length) * keptBytes,
    notes: language === null ? [...always, languageNote] : always,
    data,
  };
};
