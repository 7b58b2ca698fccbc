/** The windows of our graphs on a GPU. The decoder's are the chunks, with their margins. */
import { Tensor } from 'onnxruntime-node';
import type { Feeds, Fit, GraphWindows } from '../windows.js';
import type { GraphName, Manifest } from './manifest.js';
import { chunkGrid, reachOf, rowsPerFrame } from './segment.js';
import { windowPhones } from './timeline.js';

/** [1, places, channels] */
const nets = { rank: 3, axis: 1, isCentred: true } as const;

/** Frames of a phone. Windows with more phones run on the CPU. */
const framesOfPhoneMin = 2;

export const windowsOf = ({
  margins,
}: Pick<Manifest, 'margins'>): Readonly<Record<GraphName, GraphWindows>> => {
  // A window begins with the margin before it, which is shorter at the start.
  const encoderLengths = windowPhones.map((phones, i) => {
    const before = windowPhones.slice(0, i).reduce((sum, more) => sum + more, 0);
    return Math.min(before, margins.phones) + phones + margins.phones;
  });
  // The second chunk is near the start, where the window has silence before it: it takes the window of the third.
  const frameLengths = chunkGrid.filter((_, i) => i !== 1).map((frames) => frames + 2 * reachOf(margins));

  const fitPhones = (feeds: Feeds): Fit | null => {
    const count = feeds['place']!.dims[1]!;
    const length = encoderLengths.find((known) => known >= count);
    if (length === undefined) return null;
    const surplus = (axis: number) => ({ axis, count: length - count });
    return {
      ...{ length, count, from: 0, axes: { ids: 1, place: 1, style: 1 } },
      surplus: { hidden: surplus(2), duration: surplus(0), durationSpread: surplus(0) },
    };
  };

  /** In a window, a margin takes the place of an edge. */
  const fitFrames = (feeds: Feeds): Fit | null => {
    const count = feeds['index']!.dims[0]!;
    const [before = 0, after = 0] = Array.from(
      feeds['edges']!.data as BigInt64Array,
      (edge) => Number(edge) * margins.frames,
    );
    const all = before + count + after;
    // The largest has what the largest chunk needs.
    const length = frameLengths.find((known) => known >= all) ?? frameLengths.at(-1)!;
    const phones = Math.floor(length / framesOfPhoneMin);
    if (before + count > length || feeds['hidden']!.dims[2]! > phones) return null;
    const surplus = (axis: number) => ({ axis, count: rowsPerFrame * Math.max(0, length - all) });
    return {
      ...{
        length,
        count,
        from: before,
        axes: { hidden: 2, index: 0, position: 1, noise: 1 },
        lengths: { hidden: phones },
      },
      own: { edges: new Tensor('int64', BigInt64Array.of(0n, 0n), [2]) },
      surplus: { f0: surplus(0), voicing: surplus(0), bands: surplus(0) },
    };
  };

  return {
    encoder: { shared: [], mask: { data: 'ids', ...nets }, fit: fitPhones },
    frames: { shared: ['edges'], mask: { data: 'index', ...nets }, fit: fitFrames },
    decoder: { shared: [] },
  };
};
