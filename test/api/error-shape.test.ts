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

t.test('a voice of any length is echoed once and cut in the message', (t) => {
  const voice = 'v'.repeat(1_000_000);
  const { body } = unknownVoice(voice, ['adam'], limits);
  t.ok(body.length < 1_001_000);
  t.equal((JSON.parse(body) as { voice: string }).voice, voice);
  t.end();
});
