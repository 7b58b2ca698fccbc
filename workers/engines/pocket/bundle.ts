/** The files of an export in five graphs. */
import typia, { type tags } from 'typia';
import { VoicePackError } from '../../../src/threads/voices.js';
import { elementTypes, type Model, type ValueInfo } from '../graph/model.js';
import {
  checked,
  type HeldFile,
  ownerLanguage,
  type PackContent,
  type PackFolder,
  type SampleRateHz,
  totalBytes,
} from '../pack.js';
import type { DerivedFiles } from '../graph/derived.js';
import { contentOf, languageOf, named, type Prompts, shareable } from './content.js';
import type { FiveGraphName, FrameRateHz, PocketData, Size } from './models.js';
import { bytesOf, type StateSpec } from './states.js';
import { parseSentencePiece, parseVocabulary, type Vocabulary } from './tokeniser.js';
import { checkState, parseNumpy, parseSafetensors, parseVoiceTable, type VoicePrompt } from './voices.js';

/** What exports in five graphs do not say about themselves: the values of the reference. */
const defaults = {
  ...{ temperature: 0.7, noise_clamp: null, eos_threshold: -4 },
  ...{ tokens_per_second_estimate: 3, gen_seconds_padding: 2 },
} as const;
/** The share of the speech model's states that the prompt of a voice fills, when memory is counted. */
const promptShare = 0.5;

/** Of a file, and of all voices of a pack. */
const voicesBytesMax = 256 * 1024 * 1024;
const tokeniserBytesMax = 16 * 1024 * 1024;

type FileName = string & tags.Pattern<'^[A-Za-z0-9_][A-Za-z0-9._-]*$'>;

interface BundleState {
  readonly input_name: string;
  readonly shape: (number & tags.Type<'uint32'>)[];
  readonly fill: string;
  readonly path?: string;
}

/** `bundle.json` of an export in five graphs. */
interface Bundle {
  readonly sample_rate: SampleRateHz;
  readonly frame_rate: FrameRateHz;
  readonly language?: string;
  readonly pad_with_spaces_for_short_inputs?: boolean;
  readonly remove_semicolons?: boolean;
  readonly model_recommended_frames_after_eos?: (number & tags.Type<'uint32'>) | null;
  readonly max_token_per_chunk?: Size;
  readonly insert_bos_before_voice?: boolean;
  readonly tokenizer_file?: FileName;
  readonly bos_before_voice_file?: FileName | null;
  readonly flow_lm_state_manifest?: BundleState[];
  readonly mimi_state_manifest?: BundleState[];
}

const validateBundle = typia.createValidate<Bundle>();
const baseOf = (file: string): string => file.slice(file.lastIndexOf('/') + 1);
const folderOf = (file: string): string => file.slice(0, file.lastIndexOf('/') + 1);

/** Names of the graphs, the one to prefer first. */
const fileNames: Readonly<Record<FiveGraphName, readonly string[]>> = {
  main: ['flow_lm_main_int8.onnx', 'flow_lm_main.onnx', 'lm_main.int8.onnx', 'lm_main.onnx'],
  flow: ['flow_lm_flow_int8.onnx', 'flow_lm_flow.onnx', 'lm_flow.int8.onnx', 'lm_flow.onnx'],
  decoder: ['mimi_decoder_int8.onnx', 'mimi_decoder.onnx', 'decoder.int8.onnx', 'decoder.onnx'],
  text: ['text_conditioner_int8.onnx', 'text_conditioner.onnx'],
};

/** The inputs and outputs that are not states. */
const plain: Readonly<
  Record<FiveGraphName, readonly [inputs: readonly string[], outputs: readonly string[]]>
> = {
  main: [
    ['sequence', 'text_embeddings'],
    ['conditioning', 'eos_logit'],
  ],
  flow: [['c', 's', 't', 'x'], ['flow_dir']],
  decoder: [['latent'], ['audio_frame']],
  text: [['token_ids'], ['embeddings']],
};

const isMain = (file: string): boolean => fileNames.main.includes(baseOf(file));

/** The folders of exports in five graphs. */
export const bundlesIn = ({ files }: PackFolder): string[] => [
  ...new Set(files.filter(isMain).map(folderOf)),
];

const nameList = (values: readonly ValueInfo[]): string => values.map(({ name }) => name).join(', ');

/** @throws {VoicePackError} the graph is not that of a known export */
const checkNames = (path: string, { inputs, outputs }: Model, graph: FiveGraphName): void => {
  const [wantedInputs, wantedOutputs] = plain[graph];
  const has = (values: readonly ValueInfo[], names: readonly string[]) =>
    names.every((wanted) => values.some(({ name }) => name === wanted));
  if (has(inputs, wantedInputs) && has(outputs, wantedOutputs)) return;
  throw new VoicePackError(
    `${path}: takes ${nameList(inputs)} and gives ${nameList(outputs)}: ` +
      `an export of Pocket TTS takes ${wantedInputs.join(', ')} and gives ${wantedOutputs.join(', ')} here`,
  );
};

/** The states of a graph, from its inputs and outputs; `bundle.json` has their first values. */
const statesOf = (
  path: string,
  { inputs, outputs }: Model,
  graph: FiveGraphName,
  known: readonly BundleState[] = [],
): StateSpec[] => {
  const [plainInputs, plainOutputs] = plain[graph];
  const given = outputs.filter(({ name }) => !plainOutputs.includes(name));
  const taken = inputs.filter(({ name }) => !plainInputs.includes(name));
  return taken.map(({ name, type, dims }, place) => {
    const entry = known.find(({ input_name }) => input_name === name);
    const output = given.find((value) => value.name === `out_${name}`) ?? given[place];
    const stateType = (['float32', 'int64', 'bool'] as const).find((known) => elementTypes[known] === type);
    if (output === undefined || stateType === undefined || given.length !== taken.length)
      throw new VoicePackError(`${path}: its state "${name}" is of a kind that is not supported`);
    const shape = dims.map((size, i) => (typeof size === 'number' ? size : (entry?.shape[i] ?? 0)));
    return {
      input: name,
      output: output.name,
      type: stateType,
      dims: shape,
      isOpen: dims.some((size) => typeof size !== 'number'),
      fill: entry?.fill === 'nan' ? Number.NaN : entry?.fill === 'ones' ? 1 : 0,
      ...(entry?.path !== undefined && { path: entry.path }),
    };
  });
};

const lastSize = (path: string, values: readonly ValueInfo[], name: string): number => {
  const size = values.find((value) => value.name === name)?.dims.at(-1);
  if (typeof size === 'number' && size > 0) return size;
  throw new VoicePackError(`${path}: the size of "${name}" is not fixed`);
};

const readTokeniser = async (folder: PackFolder, at: string, name: string): Promise<Vocabulary> => {
  const [model, table, scores] = [name, 'vocab.json', 'token_scores.json'].map((file) => at + file);
  if (folder.files.includes(model!))
    return parseSentencePiece(folder.pathOf(model!), await folder.bytes(model!, tokeniserBytesMax));
  if (folder.files.includes(table!) && folder.files.includes(scores!))
    return parseVocabulary(folder.pathOf(table!), await folder.json(table!), await folder.json(scores!));
  throw new VoicePackError(`${folder.pathOf(model!)}: the file is missing: it is the tokeniser of the model`);
};

/** Files of voices in the bundle's folder and below it. */
const readVoices = async (folder: PackFolder, at: string, width: number): Promise<Prompts> => {
  const prompts: Prompts = new Map();
  let rest = voicesBytesMax;
  const add = (name: string, prompt: VoicePrompt): void => {
    if (prompt.kind === 'embedding') rest -= prompt.values.byteLength;
    if (rest < 0)
      throw new VoicePackError(
        `${folder.pathOf(at)}: its voices have more than ${voicesBytesMax} bytes together: remove some`,
      );
    prompts.set(name, prompt);
  };
  for (const file of folder.files) {
    if (!file.startsWith(at) || baseOf(file) === 'bos_before_voice.npy') continue;
    const [, name = '', ending] = /^(?:voice[-_])?([\w-]+)\.(bin|npy|safetensors)$/.exec(baseOf(file)) ?? [];
    const path = folder.pathOf(file);
    if (ending === 'bin' && name === 'voices')
      for (const [id, prompt] of parseVoiceTable(path, await folder.bytes(file, voicesBytesMax), width))
        add(id, prompt);
    else if (ending === 'safetensors') add(name, parseSafetensors(await folder.hold(file), width, rest));
    else if (ending === 'npy') {
      const prompt = parseNumpy(await folder.bytes(file, voicesBytesMax), width);
      if (prompt === null)
        throw new VoicePackError(`${path}: not a voice: an array of 32-bit vectors of ${width} numbers`);
      add(name, prompt);
    }
  }
  return prompts;
};

export const readFive = async (
  folder: PackFolder,
  at: string,
  derived: DerivedFiles,
): Promise<PackContent> => {
  const held = {} as Record<FiveGraphName, HeldFile>;
  const models = {} as Record<FiveGraphName, Model>;
  const sources: HeldFile[] = [];
  for (const graph of ['text', 'main', 'flow', 'decoder'] as const) {
    const file = fileNames[graph].map((name) => at + name).find((name) => folder.files.includes(name));
    if (file === undefined)
      throw new VoicePackError(`${folder.pathOf(at + fileNames[graph][1]!)}: the file is missing`);
    models[graph] = await folder.model(file);
    held[graph] = await folder.hold(file);
    sources.push(...(await folder.sources(file)));
    checkNames(held[graph].path, models[graph], graph);
  }
  const path = folder.pathOf(`${at}bundle.json`);
  const bundle = folder.files.includes(`${at}bundle.json`)
    ? checked(path, 'bundle', validateBundle(await folder.json(`${at}bundle.json`)))
    : null;
  const width = lastSize(held.main.path, models.main.inputs, 'text_embeddings');
  const latentSize = lastSize(held.main.path, models.main.inputs, 'sequence');
  const prompts = await readVoices(folder, at, width);
  if (prompts.size === 0)
    throw new VoicePackError(
      `${folder.pathOf(at)}: there is no voice: put voices.bin, or NAME.safetensors or NAME.npy of a voice, beside the ` +
        'graphs. This service cannot make a voice from a recording',
    );
  const [main, decoder] = (['main', 'decoder'] as const).map((graph) =>
    statesOf(
      held[graph].path,
      models[graph],
      graph,
      graph === 'main' ? bundle?.flow_lm_state_manifest : bundle?.mimi_state_manifest,
    ),
  );
  const isNamed = main!.some(({ path: name }) => name !== undefined);
  if (!isNamed && [...prompts.values()].some(({ kind }) => kind === 'state'))
    throw new VoicePackError(
      `${path}: the file is missing: without it a voice in a file of states cannot be read`,
    );
  for (const prompt of prompts.values()) if (prompt.kind === 'state') checkState(prompt, main!);
  const beforeFile = `${at}${bundle?.bos_before_voice_file ?? 'bos_before_voice.npy'}`;
  const hasBefore = bundle?.insert_bos_before_voice === true && folder.files.includes(beforeFile);
  const before = hasBefore ? parseNumpy(await folder.bytes(beforeFile, voicesBytesMax), width) : null;
  const { sample_rate = 24_000, frame_rate = 12.5 } = bundle ?? {};
  const data: PocketData = {
    basics: {
      config: {
        ...defaults,
        ...{ sample_rate, frame_rate, frame_size: Math.round(sample_rate / frame_rate) },
        ...{ latent_dim: latentSize, model_dim: width },
        frames_after_eos: bundle?.model_recommended_frames_after_eos ?? null,
        max_tokens_per_chunk: bundle?.max_token_per_chunk ?? 50,
        pad_with_spaces_for_short_inputs: bundle?.pad_with_spaces_for_short_inputs ?? true,
        remove_semicolons: bundle?.remove_semicolons ?? false,
      },
      vocabulary: await readTokeniser(folder, at, bundle?.tokenizer_file ?? 'tokenizer.model'),
      voices: named(folder.name, prompts),
    },
    five: { main: main!, decoder: decoder!, flowSteps: 1, before: before?.values ?? null },
    files: await shareable(derived, sources, held, models),
  };
  const mainBytes = bytesOf(main!);
  return contentOf(
    data,
    (await ownerLanguage(folder)) ?? languageOf(bundle?.language),
    totalBytes(sources),
    mainBytes + bytesOf(decoder!),
    promptShare * mainBytes,
  );
};
