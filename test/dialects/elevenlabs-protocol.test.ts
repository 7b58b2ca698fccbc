/** What messages of the ElevenLabs API ask for, without a service. */
import t from 'tap';
import { ElevenLabsProtocol } from '../../src/dialects/elevenlabs/socket.js';
import { readTags } from '../../src/dialects/elevenlabs/tags.js';
import { limits } from '../../src/limits.js';

t.test('the id of a context that failed takes no text until it is closed, and then is free', (t) => {
  const protocol = new ElevenLabsProtocol(
    {
      voiceId: () => 'wren',
      format: { encoding: 'pcm', sampleRateHz: 16_000 },
      ...{ normalization: null, isMulti: true, isAuto: false, isSync: false, idleMsMax: null },
    },
    limits,
  );
  const read = (message: object) =>
    protocol.read(Buffer.from(JSON.stringify({ ...message, context_id: 'c' })), new Map());
  protocol.error('creditExhausted', '', 'c');
  t.strictSame(read({ text: 'Under way. ' }), []);
  t.strictSame(read({ close_context: true }), []);
  t.match(read({ text: 'Again. ' }), [{ type: 'start' }, { type: 'text', text: 'Again. ' }]);
  t.end();
});

t.test('breaks in a row are a pause of three seconds at most', (t) => {
  const [, words] = readTags('Wait <break time="2s"/><break time="9999s"/> go');
  t.match(words, { text: 'go', pauseMs: 3_000 });
  t.end();
});
