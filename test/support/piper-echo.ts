/** A voice with the graph of Piper's exporter whose audio shows the inputs of the graph. */
import { GraphBuilder } from '../../scripts/voices/fixtures/graph-builder.js';
import { metadataOf } from '../../scripts/voices/fixtures/piper.js';
import { type Model, elementTypes } from '../../workers/engines/graph/model.js';

/** Samples of a frame of `echo`, in their order. Ids and speakers are divided by 512, scales by 8. */
export const echoSamples = ['one', 'id', 'speaker', 'lengthScale', 'durationNoiseScale', 'noise'] as const;
export const echoRate = 8;

/**
 * A voice whose audio shows the inputs of the graph: each frame has the samples of `echoSamples`. The first is 0.5, so
 * that a reader knows the gain. Each id has as many frames as the length scale says, times two.
 */
export const echoModel = (): Model => {
  const graph = new GraphBuilder(0);
  const { int64, float32 } = elementTypes;
  const ids = graph.input('input', int64, ['batch_size', 'phonemes']);
  graph.input('input_lengths', int64, ['batch_size']);
  const scales = graph.input('scales', float32, [3]);
  const sid = graph.input('sid', int64, ['batch_size']);
  const numbers = graph.unsqueeze(graph.toFloat(ids), 1);
  const zeros = graph.mul(numbers, graph.floats([0], []));
  const scale = (place: number) => graph.op('Gather', [scales, graph.ints([place], [])], { axis: 0 });
  const row = (value: string, factor: number) =>
    graph.add(zeros, graph.mul(value, graph.floats([factor], [])));
  const speaker = graph.toFloat(sid);
  const rows = [
    row(graph.floats([0.5], []), 1),
    row(numbers, 1 / 512),
    row(speaker, 1 / 512),
    row(scale(1), 1 / 8),
    row(scale(2), 1 / 8),
    zeros,
  ];
  const means = graph.join(rows, 1);
  // Only the last row has noise.
  const silent = graph.floats([-100, -100, -100, -100, -100, -2], [1, rows.length, 1]);
  const deviations = graph.add(graph.mul(means, graph.floats([0], [])), silent);
  const frames = graph.op('Ceil', [row(scale(1), 2)]);
  const total = graph.toInteger(graph.op('ReduceSum', [frames, graph.ints([0, 1, 2])], { keepdims: 0 }));
  const range = graph.op('Range', [graph.ints([0], []), total, graph.ints([1], [])]);
  const places = graph.unsqueeze(graph.toFloat(range), 0, 2);
  const ends = graph.op('CumSum', [frames, graph.ints([2], [])]);
  const starts = graph.sub(ends, frames);
  const path = graph.sub(
    graph.toFloat(graph.op('Less', [places, ends])),
    graph.toFloat(graph.op('Less', [places, starts])),
  );
  const turned = (value: string) => graph.transpose(value, [0, 2, 1]);
  const mean = turned(graph.op('MatMul', [path, turned(means)]));
  const deviation = graph.op('Exp', [turned(graph.op('MatMul', [path, turned(deviations)]))]);
  const noise = graph.mul(graph.mul(graph.op('RandomNormalLike', [mean]), deviation), scale(0));
  const prior = graph.add(mean, noise);
  const size = rows.length;
  const diagonal = (width: number) => (_: unknown, at: number) =>
    Number(Math.floor(at / width) === at % width);
  const identity = graph.floats(Array.from({ length: size * size }, diagonal(size)), [size, size, 1]);
  const zeroed = graph.op('Conv', [graph.op('Identity', [prior]), identity], {
    kernel_shape: [1],
    pads: [0, 0],
  });
  const spread = graph.floats(Array.from({ length: size * echoRate }, diagonal(echoRate)), [
    size,
    1,
    echoRate,
  ]);
  const audio = graph.op('ConvTranspose', [zeroed, spread], {
    kernel_shape: [echoRate],
    pads: [0, 0],
    strides: [echoRate],
  });
  return graph.model(
    [{ name: 'output', type: float32, dims: ['batch_size', null, null, 'time'] }],
    [graph.unsqueeze(audio, 1)],
    metadataOf(4),
  );
};
