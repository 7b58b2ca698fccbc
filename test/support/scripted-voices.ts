/** The catalogue of scripted-synthesis.ts. */
import type { Voices } from '../../src/dispatch/generations.js';

export const voicesOf = (...speakerIds: string[]): Voices => ({
  catalogue: { speakerIds, sampleRateHz: () => 24_000 },
  packs: [],
});

export const scriptedVoices = voicesOf('scripted');
