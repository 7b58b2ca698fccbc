import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { limits } from '../../src/limits.js';
import { openApiDocument } from '../../src/api/openapi.js';
import { parseSpeechRequest } from '../../src/api/speech-request.js';
import { parseVoicePlatform } from '../../src/api/voice-platform.js';
import { Description } from '../support/description.js';
import { packageRoot } from '../support/package-root.js';

const voices = ['wren', 'lark', 'wren_conv'];
const description = new Description(JSON.parse(JSON.stringify(openApiDocument(voices, limits))));
const { document } = description;

interface LintReport {
  readonly totals: { readonly errors: number; readonly warnings: number };
  readonly problems: readonly { readonly message: string }[];
}

t.test('a public linter finds no fault in the description', async (t) => {
  const folder = t.testdir({ 'openapi.json': JSON.stringify(document), '.npmrc': '' });
  const linter = join(packageRoot, 'node_modules', '@redocly', 'cli', 'bin', 'cli.js');
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [linter, 'lint', 'openapi.json', '--format=json'],
    {
      cwd: folder,
      // The linter must not report its use or look for updates.
      env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
    },
  );
  const report = JSON.parse(stdout) as LintReport;
  t.same(report.problems, []);
  t.match(report.totals, { errors: 0, warnings: 0 });

  const broken = { ...document, paths: { '/v1/tts': { post: { operationId: 'x' } } } };
  const wrong = t.testdir({ 'openapi.json': JSON.stringify(broken) });
  await t.rejects(
    promisify(execFile)(process.execPath, [linter, 'lint', 'openapi.json', '--format=json'], { cwd: wrong }),
    'the linter does look',
  );
});

t.test('the description names its versions, every route and the key', (t) => {
  t.equal(document.openapi, '3.1.0');
  t.equal(document.info.version, '0.1.0');
  t.same(
    description.operations.map(({ method, path }) => `${method} ${path}`),
    [
      'post /v1/tts',
      'post /v1/tts/stream',
      'get /v1/tts/speakers',
      'post /v1/tts/integrations/voiceplatform',
      'get /openapi.json',
      'get /healthz',
      'get /readyz',
    ],
  );
  t.match(document, {
    security: [{ apiKey: [] }],
    components: { securitySchemes: { apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' } } },
  });
  for (const { path, operation } of description.operations)
    t.equal(operation.security === undefined, !/^\/(?:health|ready)z$/.test(path), path);
  t.end();
});

t.test('every example fits its schema, and the parsers accept those of requests', (t) => {
  const examples = description.examples();
  t.ok(examples.length > 20);
  for (const { name, fault } of examples) t.equal(fault, null, name);
  for (const { name, value } of examples.filter((example) => example.name.includes('requestBody'))) {
    const bytes = Buffer.from(JSON.stringify(value));
    const result = name.includes('voiceplatform')
      ? parseVoicePlatform(bytes, undefined, 'wren', limits)
      : parseSpeechRequest(bytes, undefined, limits);
    t.ok(result.ok, name);
  }
  t.end();
});

t.test('schemas are as strict as the service', (t) => {
  const speech = { text: 'a', voice: 'b' };
  for (const [component, value, isValid] of [
    ['SpeechRequestBody', speech, true],
    ['SpeechRequestBody', { ...speech, more: 1 }, false],
    ['SpeechRequestBody', { ...speech, temperature: null }, true],
    ['SpeechRequestBody', { ...speech, temperature: 3.01 }, false],
    ['SpeechRequestBody', { ...speech, timestamps: null }, false],
    ['SpeechRequestBody', { ...speech, response_format: { sample_rate: null, bitrate: '128k' } }, true],
    ['SpeechRequestBody', { ...speech, response_format: { sample_rate: 8000.5 } }, false],
    ['SpeechRequestBody', { ...speech, response_format: { more: 1 } }, false],
    ['SpeechRequestBody', { ...speech, response_format: null }, false],
    ['VoicePlatformBody', { message: { type: 'hang', text: 1 }, call: {} }, true],
    ['VoicePlatformBody', { message: { type: 'voice-request' } }, false],
    ['VoicePlatformBody', { message: { type: 'voice-request', text: '', more: 1 } }, true],
    ['VoicePlatformBody', { message: { type: 'voice-request', text: '', sampleRate: 7999 } }, false],
    ['VoicePlatformBody', { message: { type: 'voice-request', text: '', sampleRate: 8000.5 } }, false],
    ['StreamRecord', { type: 'audio', audio_chunk: '' }, true],
    ['StreamRecord', { type: 'audio', words: [] }, false],
    ['ValidationErrors', { detail: [{ type: 'a', loc: ['body', 0], msg: '' }] }, true],
    ['ValidationErrors', { detail: [{ type: 'a', loc: ['body', 0.5], msg: '' }] }, false],
  ] as const)
    t.equal(description.valueFault(component, value) === null, isValid, JSON.stringify(value));
  t.end();
});

t.test('the description names exactly the encodings that exist', (t) => {
  const { encoding } = document.components.schemas['ResponseFormatBody']?.properties as {
    encoding: { description: string };
  };
  const names = [...encoding.description.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
  t.equal(names.length, 7 + 9);
  for (const name of names) {
    const body = JSON.stringify({ text: '', voice: '', response_format: name });
    t.ok(parseSpeechRequest(Buffer.from(body), undefined, limits).ok, name);
  }
  t.end();
});
