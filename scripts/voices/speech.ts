/** Speaks a text with one pack, without a service. */
import { limits } from '../../src/limits.js';
import { requestOf } from '../../src/speech/utterances.js';
import { Segmenter } from '../../src/text/segments.js';
import { unguarded } from '../../src/threads/vitals.js';
import { closeFiles } from '../../src/threads/voices.js';
import { WavEncoder } from '../../workers/audio/samples.js';
import type { PackEntry } from '../../workers/engines/entries.js';
import { type PackPlaces, derivedIn, loadPacks, meansOf, readEntry } from '../../workers/engines/registry.js';
import type { DeviceData } from '../device.js';
import { FileSink } from '../say/sinks.js';
import { settingsOf } from '../../src/api/speech-settings.js';

const SEED = 1;

export interface Speech {
  readonly entry: PackEntry;
  readonly voiceId: string;
  readonly text: string;
  readonly file: string;
  readonly device: DeviceData;
}

export interface Spoken {
  readonly firstAudioMs: number;
  readonly computeMs: number;
  readonly audioMs: number;
}

/** Writes a wav file. @throws {VoicePackError} the pack cannot be loaded */
export const speakToFile = async (
  { entry, voiceId, text, file, device }: Speech,
  { cacheDir }: PackPlaces,
): Promise<Spoken> => {
  const files: number[] = [];
  const { pack } = await readEntry(entry, derivedIn(cacheDir), files);
  const means = meansOf({ ...device, logLevel: 'silent', bounds: limits }, unguarded);
  const engine = await loadPacks([pack], means);
  closeFiles(files);
  const voice = pack.voices.find(({ id }) => id === voiceId)!;
  const segmenter = new Segmenter(limits, false, voice.language);
  const segments = [...segmenter.push(text), ...segmenter.end()].filter(({ speak }) => speak);
  const settings = settingsOf({ voiceId });
  const encoder = new WavEncoder(voice.sampleRateHz);
  const sink = await FileSink.open(file);
  let samples = 0;
  let firstAudioMs = 0;
  const startedMs = performance.now();
  try {
    await sink.write(Buffer.from(encoder.chunkHeader(0, true)));
    for (const [place, segment] of segments.entries()) {
      const request = requestOf(segment, settings, limits, voice.language);
      const synthesis = engine.open({ ...request, seed: SEED + place, utteranceSeed: SEED });
      for (let isLast = false; !isLast;) {
        const chunk = await synthesis.step();
        if (chunk === null) break;
        firstAudioMs ||= performance.now() - startedMs;
        samples += chunk.pcm.length;
        await sink.write(Buffer.from(encoder.encode(chunk.pcm)));
        isLast = chunk.last;
      }
    }
    const computeMs = performance.now() - startedMs;
    await sink.finish();
    return { firstAudioMs, computeMs, audioMs: (1000 * samples) / voice.sampleRateHz };
  } catch (error) {
    await sink.discard();
    throw error;
  }
};
