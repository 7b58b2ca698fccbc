/** What the frame net of our voice makes is checked before it becomes sound. */
import { Tensor } from 'onnxruntime-node';
import t from 'tap';
import { Graphs } from '../../../workers/engines/syrinx/graphs.js';
import type { Manifest } from '../../../workers/engines/syrinx/manifest.js';

const frames = 3;
const rows = 2 * frames;
const sizes = { hidden: 1, style: 4, noise: 1, bands: 2, pulses: 1, decoderNoise: 1, tail: 1 } as const;
const good = { f0: 120, voicing: 0.5, bands: -3 };

/** The rows of a net whose outputs have these values, one of which is `wrong`. */
const made = (name: keyof typeof good, wrong: number) => {
  const valuesOf = (output: keyof typeof good, count: number) => {
    const values = new Float32Array(count).fill(good[output]);
    if (output === name) values[count - 1] = wrong;
    return new Tensor('float32', values, [count]);
  };
  const outputs = {
    f0: valuesOf('f0', rows),
    voicing: valuesOf('voicing', rows),
    bands: valuesOf('bands', rows * 2 * sizes.bands),
  };
  const run = () => Promise.resolve(outputs);
  const manifest = { sizes, margins: { frames: 0 }, decoderDelaySamples: 0, frame: { rowSamples: 120 } };
  const graphs = new Graphs(
    { run: { encoder: run, frames: run, decoder: run } },
    manifest as unknown as Manifest,
  );
  return graphs.frames(
    {
      hidden: new Float32Array(2),
      index: new BigInt64Array(frames),
      position: new Float32Array(4 * frames),
      noise: new Float32Array(frames),
      edges: BigInt64Array.of(1n, 1n),
    },
    new Float32Array(1),
    rows,
  );
};

void t.test('a decoder gives back a state of the size that the manifest says', async (t) => {
  const decodes = (tail: number) => {
    const zeros = (size: number) => new Tensor('float32', new Float32Array(size), [size]);
    const state = { phaseOut: zeros(1), pulsesOut: zeros(1), noiseOut: zeros(1), tailOut: zeros(tail) };
    const outputs = { pcm: zeros(120), ...state, frameIndexOut: new Tensor('int64', [1n], [1]) };
    const run = () => Promise.resolve(outputs);
    const manifest = { sizes, margins: { rows: 0 }, decoderDelaySamples: 0, frame: { rowSamples: 120 } };
    const graphs = new Graphs(
      { run: { encoder: run, frames: run, decoder: run } },
      manifest as unknown as Manifest,
    );
    const row = {
      f0: new Float32Array(1),
      voicing: new Float32Array(1),
      bands: new Float32Array(sizes.bands),
    };
    return graphs.decode(row, graphs.initialState(0, 0), Float32Array.of(1));
  };
  t.equal((await decodes(sizes.tail)).pcm.length, 120);
  await t.rejects(decodes(sizes.tail + 1), /tail has 2 values/);
});

void t.test('a value that no voice has, or that is no number, fails the step', async (t) => {
  for (const name of ['f0', 'voicing', 'bands'] as const) {
    t.equal((await made(name, good[name])).f0.length, rows, 'these are a voice');
    for (const wrong of [NaN, Infinity, -40, 2_000])
      await t.rejects(made(name, wrong), /^(?:f0|voicing|a band) is /, `${name} ${wrong}`);
  }
});
