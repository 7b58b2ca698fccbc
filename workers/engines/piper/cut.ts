/**
 * Cuts Piper's graph (VITS) into the parts that run one after the other. They are found by how they are wired, because
 * names differ from exporter to exporter:
 *
 *   ids ─► encoder ─► frames of each id, means, deviations ─► (noise added here) ─► flow ─► generator ─► samples
 *
 * The encoder sees the whole sentence: it is cut between its layers, so that a long sentence takes several short steps. Flow and
 * generator run piece by piece.
 */
import { type Model, type Node, product } from '../graph/model.js';
import { streamed } from '../graph/stream.js';
import { GraphError, Wiring, extract, inner } from '../graph/surgery.js';

/** `flow`, `generator`, and the parts of the encoder. */
export type PartName = string;

/** A part of the encoder. */
interface EncoderPart {
  readonly model: Model;
  /** The value that the next part takes; `null` for the last part. */
  readonly output: string | null;
  /** Multiplications for an id. */
  readonly work: number;
}

/** A sentence of 420 ids takes 110 ms of a core that runs a step of speech in 20 ms. */
const encoderParts = 3;
/** Operators whose outputs pass from layer to layer. */
const layerEnds = new Set(['Add', 'Mul', 'Transpose', 'LayerNormalization']);

const wrappers = new Set(['Unsqueeze', 'Squeeze', 'Identity', 'Reshape']);
const isNoise = ({ op }: Node) => op === 'RandomNormalLike' || op === 'RandomNormal';

const workOf = (model: Model, nodes: readonly Node[]): number => {
  let work = 0;
  for (const { op, inputs } of nodes)
    if (op === 'Conv' || op === 'MatMul') work += product(model.initialisers.get(inputs[1]!)?.dims ?? [0]);
  return work;
};

const only = <T>(items: readonly T[], what: string): T => {
  if (items.length !== 1) throw new GraphError(`it has ${items.length} ${what}, a Piper voice has one`);
  return items[0]!;
};

class Cutter {
  /** The graphs of the parts. */
  readonly models: Record<PartName, Model> = {};
  readonly #model: Model;
  readonly #wiring: Wiring;
  readonly #ceil: Node;
  /** Values that depend on the number of frames. */
  readonly #framed: ReadonlySet<string>;

  constructor(model: Model) {
    this.#model = model;
    this.#wiring = new Wiring(model);
    this.#ceil = only(
      model.nodes.filter(({ op }) => op === 'Ceil'),
      'operators "Ceil", which makes the durations',
    );
    this.#framed = this.#wiring.after(this.#ceil.outputs);
  }

  /** @returns what is needed to run the parts */
  plan() {
    const noises = this.#model.nodes.filter(isNoise);
    const frameNoise = only(
      noises.filter(({ outputs }) => this.#framed.has(outputs[0]!)),
      'sources of noise for frames',
    );
    const durationNoises = noises.filter((node) => node !== frameNoise);
    if (durationNoises.length > 1) only(durationNoises, 'sources of noise for durations');
    const prior = this.#prior(frameNoise);
    const afterPrior = this.#wiring.after([prior.output]);
    const masks = this.#masks(prior.output, afterPrior);
    const middle = this.#generatorInput(afterPrior);
    const channels =
      middle.conv === undefined ? 0 : (this.#model.initialisers.get(middle.conv)?.dims[1] ?? 0);
    if (channels === 0) throw new GraphError('the first weights of its generator are not found');
    return {
      encoder: this.#encoder(durationNoises[0]?.outputs[0] ?? null, prior.means, prior.logDeviations),
      flow: this.#stream('flow', prior.output, middle.value, channels, masks),
      generator: this.#stream('generator', middle.value, this.#audio(), channels, masks),
      channels,
    };
  }

  /** Keeps the graph of a part, and adds to its plan what runs it. */
  #part<Plan>(name: PartName, { model, ...plan }: Plan & { readonly model: Model }) {
    this.models[name] = model;
    return { ...plan, name, inputs: model.inputs.map((input) => input.name) };
  }

  /**
   * @param noise the input that takes the noise of the durations, [1, 2, ids]; `null` if the durations have none
   * @returns parts, which run one after the other, and the outputs: frames of each id [1, 1, ids]; means and logarithms of
   *   deviations [1, ids, channels]
   */
  #encoder(noise: string | null, means: string, logDeviations: string) {
    const durations = this.#ceil.outputs[0]!;
    const given = noise === null ? [] : [inner(noise)];
    const outputs = [durations, means, logDeviations].map((name) => inner(name));
    let model = extract(this.#model, { inputs: given, outputs });
    const partWork = workOf(model, model.nodes) / encoderParts;
    const parts: EncoderPart[] = [];
    while (parts.length < encoderParts - 1) {
      const cut = cutAfter(model, partWork);
      if (cut === null) break;
      parts.push(cut.part);
      model = cut.rest;
    }
    parts.push({ model, output: null, work: workOf(model, model.nodes) });
    const named = parts.map((part, place) => this.#part(`encoder_${place}`, part));
    return { parts: named, noise, durations, means, logDeviations };
  }

  /** Where noise is added to means: `means + noise * exp(logDeviations) * scale`. */
  #prior(frameNoise: Node): { output: string; means: string; logDeviations: string } {
    let value = frameNoise.outputs[0]!;
    let deviations: string | undefined;
    for (;;) {
      const node = only(this.#wiring.takers.get(value) ?? [], 'uses of the noise for frames');
      const other = node.inputs.find((name) => name !== value) ?? '';
      value = node.outputs[0]!;
      if (node.op === 'Mul' && this.#framed.has(other)) deviations = other;
      if (node.op === 'Mul') continue;
      const exp = deviations === undefined ? undefined : this.#wiring.maker.get(deviations);
      if (node.op !== 'Add' || exp?.op !== 'Exp')
        throw new GraphError('its noise is not added to means as in a Piper voice');
      return {
        output: value,
        means: this.#beforeFrames(other),
        logDeviations: this.#beforeFrames(exp.inputs[0]!),
      };
    }
  }

  /** The value for each id [1, ids, channels] of one for each frame, which a product with the alignment makes. */
  #beforeFrames(value: string): string {
    const transpose = this.#wiring.maker.get(value);
    const product = this.#wiring.maker.get(transpose?.inputs[0] ?? '');
    const [alignment = '', perId = ''] = product?.inputs ?? [];
    if (
      transpose?.op !== 'Transpose' ||
      product?.op !== 'MatMul' ||
      !this.#framed.has(alignment) ||
      this.#framed.has(perId)
    )
      throw new GraphError('its ids are not spread over frames as in a Piper voice');
    return perId;
  }

  /** Values that only mark which frames exist. All frames that run here do, so these values are ones. */
  #masks(prior: string, afterPrior: ReadonlySet<string>): string[] {
    const masks = new Set<string>();
    for (const { inputs, outputs } of this.#model.nodes)
      if (outputs.some((name) => name !== prior && afterPrior.has(name)))
        for (const name of inputs) if (this.#framed.has(name) && !afterPrior.has(name)) masks.add(name);
    return [...masks];
  }

  /** The input of the convolution before the first one that makes several samples of a frame. */
  #generatorInput(afterPrior: ReadonlySet<string>): { value: string; conv: string | undefined } {
    const up = this.#model.nodes.find(
      ({ op, inputs }) => op === 'ConvTranspose' && afterPrior.has(inputs[0]!),
    );
    for (let value = up?.inputs[0]; value !== undefined;) {
      const node = this.#wiring.maker.get(value);
      if (node?.op === 'Conv') return { value: node.inputs[0]!, conv: node.inputs[1] };
      value = node?.inputs.find((name) => afterPrior.has(name));
    }
    throw new GraphError('it has no generator like that of a Piper voice');
  }

  /** The samples [1, 1, samples], before dimensions are added. */
  #audio(): string {
    let value = this.#model.outputs[0]!.name;
    for (let node = this.#wiring.maker.get(value); node !== undefined && wrappers.has(node.op);) {
      value = node.inputs[0]!;
      node = this.#wiring.maker.get(value);
    }
    return value;
  }

  #stream(name: PartName, input: string, output: string, channels: number, masks: readonly string[]) {
    const given = [input, ...masks].map((name) => inner(name));
    const part = extract(this.#model, { inputs: given, outputs: [inner(output)] });
    return this.#part(name, { input, output, ...streamed(part, { name: input, channels }, masks) });
  }
}

/** Cuts a model after about this much work, at a value that the rest needs alone; `null` if there is none. */
const cutAfter = (model: Model, work: number): { part: EncoderPart; rest: Model } | null => {
  const all = workOf(model, model.nodes);
  let done = 0;
  const places = model.nodes.map((node) => {
    done += workOf(model, [node]);
    return { node, distance: Math.abs(done - work), isPart: done > 0 && done < all };
  });
  const candidates = places
    .filter(({ node, isPart }) => isPart && layerEnds.has(node.op))
    .toSorted((a, b) => a.distance - b.distance);
  for (const { node, distance } of candidates) {
    if (distance > work / 2) return null;
    const output = node.outputs[0]!;
    const rest = extract(model, { inputs: [inner(output)], outputs: model.outputs });
    const restWork = workOf(model, rest.nodes);
    const part = extract(model, { inputs: [], outputs: [inner(output)] });
    // Otherwise the rest needs more than this value, and something would be computed twice.
    if (workOf(model, part.nodes) + restWork === all)
      return { part: { model: part, output, work: all - restWork }, rest };
  }
  return null;
};

/** @throws {GraphError} if the graph is not wired as Piper's are */
export const cutPiper = (model: Model) => {
  const cutter = new Cutter(model);
  return { plan: cutter.plan(), models: cutter.models };
};

export type PiperPlan = ReturnType<Cutter['plan']>;
