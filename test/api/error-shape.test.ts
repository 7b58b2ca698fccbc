import t from 'tap';
import { limits } from '../../src/limits.js';
import { unknownVoice } from '../../src/api/error-shape.js';

t.test('the unknown-voice body has its four keys and sorted voices', (t) => {
  const { status, body } = unknownVoice('nobody', ['vera', 'Zoe', 'adam_conv', 'adam'], limits);
  t.equal(status, 422);
  t.strictSame(JSON.parse(body), {
    error: 'unknown_voice',
    message: "Unknown voice 'nobody'. Valid voices: Zoe, adam, adam_conv, vera",
    voice: 'nobody',
    valid_voices: ['Zoe', 'adam', 'adam_conv', 'vera'],
  });
  t.end();
});

t.test('a voice is echoed as it was sent, and a name that is too long for one is cut', (t) => {
  const voiceIn = (voice: string): string =>
    (JSON.parse(unknownVoice(voice, ['adam'], limits).body) as { voice: string }).voice;
  const longest = 'é'.repeat(limits.quotedBytesMax / 2);
  t.equal(voiceIn(longest), longest);
  t.equal(voiceIn(`${longest}e`), `${longest}…`);
  t.ok(voiceIn('v'.repeat(1_000_000)).length <= limits.quotedBytesMax + 1);
  t.end();
});
