/** What the default settings of the codecs make of speech: its spectrum after an independent decoder, and its bytes. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { defaultCodecFormat } from '../../../src/api/formats.js';
import { limits } from '../../../src/limits.js';
import { loadEncoders } from '../../../workers/audio/encoders.js';
import { decodersOf } from '../../support/decoders.js';
import { spectralDistanceDb } from '../../support/spectral-distance.js';
import { speak } from '../../support/spoken.js';
import { missingTool } from '../../support/tools.js';
import { loadVoices, speak as speakText } from '../../support/voices.js';

const text =
  'Six thick thistle sticks shook in the fresh breeze. Please call Stella, and ask her to bring the azure vase with her.';
const ENGINE_HZ = 24_000;

/** A little above what our encoders reach with the full band of these voices: 0.9 and 1.0 dB, 2.7 dB, 1.9 dB. */
const cases = [
  { encoding: 'mp3', decodedHz: 32_000, delaySamples: 0, distanceDbMax: 1.2, kbpsMax: 131 },
  { encoding: 'opus', decodedHz: 48_000, delaySamples: 0, distanceDbMax: 2.9, kbpsMax: 68 },
  { encoding: 'aac', decodedHz: 24_000, delaySamples: 1_024, distanceDbMax: 2.1, kbpsMax: 103 },
] as const;

await loadEncoders(limits);
const voices = await loadVoices();

for (const { encoding, decodedHz, delaySamples, distanceDbMax, kbpsMax } of cases) {
  const format = defaultCodecFormat(encoding);
  const [decoder] = decodersOf(encoding, format.sampleRateHz);
  const skip = missingTool(decoder!.program);
  t.test(`${encoding} at its defaults keeps the spectrum of speech, in its bitrate`, { skip }, async (t) => {
    for (const voiceId of ['wren', 'finch']) {
      const { pcm } = await speakText(voices, text, { voiceId });
      const { file } = await speak(format, 'whole', [{ pcm }]);
      const path = join(t.testdir(), `speech.${encoding}`);
      writeFileSync(path, file);
      const decoded = { samples: decoder!.decode(path).subarray(delaySamples), sampleRateHz: decodedHz };
      const distanceDb = spectralDistanceDb({ samples: pcm, sampleRateHz: ENGINE_HZ }, decoded);
      t.ok(distanceDb <= distanceDbMax, `${voiceId}: ${distanceDb.toFixed(2)} dB from its source`);
      const kbps = (file.length * 8) / (pcm.length / ENGINE_HZ) / 1000;
      t.ok(kbps <= kbpsMax, `${voiceId}: ${kbps.toFixed(1)} kbps`);
    }
  });
}
