import t from 'tap';
import { noSpeakingDefaults, settingsOf } from '../../src/api/speech-settings.js';

const voiceId = 'wren';
const key = { normalizeText: true, speed: 1.5, lexiconId: 'trains' };

t.test('a field of the request wins, then its key, then its API', (t) => {
  const specified = { voiceId, temperature: 1, normalizeText: false };
  t.strictSame(settingsOf({ voiceId }), specified, 'as the specification says');
  t.strictSame(settingsOf({ voiceId }, noSpeakingDefaults), specified, 'a key that sets nothing');
  t.strictSame(settingsOf({ voiceId, temperature: null, normalizeText: null, speed: null }), specified);
  t.strictSame(settingsOf({ voiceId, normalizesByDefault: true }), { ...specified, normalizeText: true });
  t.strictSame(settingsOf({ voiceId }, key), { voiceId, temperature: 1, ...key });
  t.strictSame(settingsOf({ voiceId, normalizesByDefault: true }, { ...key, normalizeText: false }), {
    ...{ voiceId, temperature: 1 },
    ...{ ...key, normalizeText: false },
  });
  t.strictSame(
    settingsOf({ voiceId, normalizeText: false, speed: 1, temperature: 0.5 }, key),
    { voiceId, temperature: 0.5, normalizeText: false, lexiconId: 'trains' },
    'the pace of the voice is a wish too',
  );
  t.end();
});
