/**
 * The graphs of Kokoro and KittenTTS. Exports differ in the names of inputs, in the type of the speed, and in whether
 * durations are an output.
 */
import { Tensor } from 'onnxruntime-node';
import { type ElementType, type Model, type Node, type ValueInfo, elementTypes } from '../graph/model.js';
import { Wiring } from '../graph/surgery.js';
import { padId } from './symbols.js';
import { styleSize } from './tables.js';

/** Types that a speed can have, by the names of onnxruntime. */
const numberTypes = {
  [elementTypes.float32]: 'float32',
  [elementTypes.float64]: 'float64',
  [elementTypes.float16]: 'float16',
  [elementTypes.int32]: 'int32',
  [elementTypes.int64]: 'int64',
} as const;

type NumberType = (typeof numberTypes)[keyof typeof numberTypes];

/** How to run a graph. */
export interface GraphShape {
  readonly ids: string;
  readonly speed: NumberType;
  readonly audio: string;
  /** The output with the durations of the ids; `null`: the graph has none. */
  readonly durations: string | null;
}

const idNames = ['input_ids', 'tokens'];
const audioNames = ['waveform', 'audio'];
const durationNames = ['duration', 'durations', 'pred_dur'];
/** The output for durations that are an inner value. */
const exposedName = 'syrinx_durations';
/** Nodes between the rounding of durations and the sum over them, in all exports that were seen. */
const hopsMax = 5;

const isNumber = (type: ElementType): type is keyof typeof numberTypes => type in numberTypes;

const named = (values: readonly ValueInfo[], names: readonly string[]): ValueInfo | undefined =>
  values.find(({ name }) => names.includes(name));

/** Whether a value reaches an operator within some nodes. */
const reaches = (wiring: Wiring, name: string, op: string, hops: number): boolean => {
  let values = new Set([name]);
  for (let hop = 0; hop < hops && values.size > 0; hop++) {
    const takers = [...values].flatMap((value) => wiring.takers.get(value) ?? []);
    if (takers.some((node) => node.op === op)) return true;
    values = new Set(takers.flatMap(({ outputs }) => outputs));
  }
  return false;
};

/** The durations inside a graph: rounded, clipped, and summed up to place the frames. `null` if that is not clear. */
const innerDurations = (model: Model): string | null => {
  const wiring = new Wiring(model);
  const found = new Set<string>();
  for (const { op, outputs } of model.nodes) {
    const [rounded] = outputs;
    if (op !== 'Round' || rounded === undefined || !reaches(wiring, rounded, 'CumSum', hopsMax)) continue;
    const clip = wiring.takers.get(rounded)?.find((node) => node.op === 'Clip');
    found.add(clip?.outputs[0] ?? rounded);
  }
  const [only, another] = found;
  return only === undefined || another !== undefined ? null : only;
};

/** The graph with its durations as a further output, whatever their type is. */
const withDurations = (model: Model, name: string): Model => {
  const cast: Node = {
    name: exposedName,
    op: 'Cast',
    domain: '',
    inputs: [name],
    outputs: [exposedName],
    attributes: new Map([['to', { type: 'int', value: elementTypes.float32 }]]),
  };
  return {
    ...model,
    nodes: [...model.nodes, cast],
    outputs: [...model.outputs, { name: exposedName, type: elementTypes.float32, dims: [] }],
  };
};

/**
 * Finds out how a graph is run, and exposes its durations.
 * @throws {RangeError} if it is not a graph of this kind; the message says what it lacks
 */
export const shapeOf = (model: Model): { readonly shape: GraphShape; readonly model: Model } => {
  const ids = named(model.inputs, idNames);
  const style = named(model.inputs, ['style']);
  const speed = named(model.inputs, ['speed']);
  const audio = named(model.outputs, audioNames) ?? model.outputs[0];
  if (ids === undefined || style === undefined || speed === undefined || audio === undefined)
    throw new RangeError(
      `a model of Kokoro or KittenTTS takes input_ids (or tokens), style and speed; this one takes ${model.inputs.map(({ name }) => name).join(', ')}`,
    );
  const size = style.dims.at(-1);
  if (
    ids.type !== elementTypes.int64 ||
    style.type !== elementTypes.float32 ||
    (typeof size === 'number' && size !== styleSize)
  )
    throw new RangeError('its inputs have types or sizes that no known export has: use another export');
  if (!isNumber(speed.type)) throw new RangeError('its speed is not a number: use another export');
  if (audio.type !== elementTypes.float32)
    throw new RangeError(
      'its audio is not in 32-bit floats: use an export whose inputs and outputs are fp32',
    );
  const own = named(model.outputs, durationNames)?.name;
  const inner = own === undefined ? innerDurations(model) : null;
  return {
    shape: {
      ids: ids.name,
      speed: numberTypes[speed.type],
      audio: audio.name,
      durations: own ?? (inner === null ? null : exposedName),
    },
    model: inner === null ? model : withDurations(model, inner),
  };
};

/** A positive number as a 16-bit float, by cutting off what does not fit. */
const halfOf = (value: number): number => {
  const exponent = Math.max(-14, Math.min(15, Math.floor(Math.log2(value))));
  return ((exponent + 15) << 10) | Math.floor((value / 2 ** exponent - 1) * 1024);
};

const speedTensor = (type: NumberType, speed: number): Tensor => {
  const whole = Math.max(1, Math.round(speed));
  const values = {
    float32: Float32Array.of(speed),
    float64: Float64Array.of(speed),
    float16: Uint16Array.of(halfOf(speed)),
    int32: Int32Array.of(whole),
    int64: BigInt64Array.of(BigInt(whole)),
  };
  return new Tensor(type as 'float32', values[type] as Float32Array, [1]);
};

/** Whether the pace can only be a whole number. */
export const hasWholeSpeed = ({ speed }: GraphShape): boolean => speed === 'int32' || speed === 'int64';

/** @param ids without pads @param ending ids after them */
export const feedsOf = (
  shape: GraphShape,
  ids: readonly number[],
  ending: readonly number[],
  style: Float32Array,
  speed: number,
): Record<string, Tensor> => {
  const padded = [padId, ...ids, ...ending];
  return {
    [shape.ids]: new Tensor('int64', BigInt64Array.from(padded, BigInt), [1, padded.length]),
    style: new Tensor('float32', style, [1, styleSize]),
    speed: speedTensor(shape.speed, speed),
  };
};
