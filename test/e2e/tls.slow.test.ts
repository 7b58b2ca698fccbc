/** TLS as an operator sets it up: two variables, checked at the start, read again on SIGHUP. */
import { execFile } from 'node:child_process';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { readConfig } from '../../src/config.js';
import { doubtOf, readCertificate } from '../../src/front/certificate.js';
import { encryptKey, makeCertificate } from '../support/certificates.js';
import { failsToStart, runScript, SCRIPTED, spawnService, startService } from '../support/service.js';
import { missingTool } from '../support/tools.js';

const skip = missingTool('openssl', 'curl');
const folder = t.testdir({});
const certificateOf = (name: string) => makeCertificate(folder, name);
const run = promisify(execFile);

t.test(
  'an unusable certificate or key is named in one line, and the service does not start',
  { skip },
  async (t) => {
    const good = certificateOf('good');
    const other = certificateOf('other');
    const rare = makeCertificate(folder, 'rare', ['ec', '-pkeyopt', 'ec_paramgen_curve:secp256k1']);
    const text = join(folder, 'text.pem');
    writeFileSync(text, 'no PEM at all\n');
    const torn = join(folder, 'torn.pem');
    writeFileSync(torn, good.ca.slice(0, 200));
    const faults: readonly (readonly [string, Record<string, string>, RegExp])[] = [
      ['only a key', { TLS_KEY: good.keyPath }, /TLS_CERT is missing/],
      ['only a certificate', { TLS_CERT: good.certPath }, /TLS_KEY is missing/],
      [
        'a missing file',
        { TLS_CERT: '/no/such.pem', TLS_KEY: good.keyPath },
        /TLS_CERT: .*\/no\/such\.pem.*no such file/,
      ],
      ['a folder', { TLS_CERT: good.certPath, TLS_KEY: folder }, /TLS_KEY: .* folder/],
      [
        'a file that is no PEM',
        { TLS_CERT: text, TLS_KEY: good.keyPath },
        /TLS_CERT: .*no certificate in PEM/,
      ],
      ['half a certificate', { TLS_CERT: torn, TLS_KEY: good.keyPath }, /TLS_CERT: .*no certificate in PEM/],
      [
        'a certificate as the key',
        { TLS_CERT: good.certPath, TLS_KEY: good.certPath },
        /TLS_KEY: .*no private key/,
      ],
      [
        'the key of another certificate',
        { TLS_CERT: good.certPath, TLS_KEY: other.keyPath },
        /TLS_KEY: .*does not belong/,
      ],
      [
        'an encrypted key',
        { TLS_CERT: good.certPath, TLS_KEY: encryptKey(good.keyPath) },
        /TLS_KEY: .*openssl pkey -in/,
      ],
    ];
    for (const [name, env, reason] of faults)
      t.throws(() => readCertificate(readConfig(env).tls!), { message: reason }, name);
    const kind = { TLS_CERT: rare.certPath, TLS_KEY: rare.keyPath };
    await failsToStart(t, spawnService(t, kind, SCRIPTED), /TLS_CERT: .*of a kind that is not served/);
  },
);

t.test('an expired or future certificate is accepted with a warning', { skip }, (t) => {
  const certificate = readCertificate(certificateOf('timely'));
  const days = (count: number) => new Date(Date.now() + count * 86_400_000);
  t.equal(doubtOf(certificate, days(0)), null);
  t.match(doubtOf(certificate, days(3)), 'expired');
  t.match(doubtOf(certificate, days(-1)), 'not valid yet');
  t.end();
});

t.test(
  'curl, say and the client connect by TLS; after SIGHUP new connections get the new certificate',
  { skip },
  async (t) => {
    const first = certificateOf('one');
    const [certPath, keyPath] = [join(folder, 'live.crt'), join(folder, 'live.key')];
    const install = ({ certPath: cert, keyPath: key }: typeof first) => {
      copyFileSync(cert, certPath);
      copyFileSync(key, keyPath);
    };
    install(first);
    const env = { TLS_CERT: certPath, TLS_KEY: keyPath };
    const service = await startService(t, env, SCRIPTED);
    t.match(service.logged('listening'), [{ tls: true }]);
    const base = `https://localhost:${service.port}`;
    const curl = async (path: string, ca: string) =>
      (await run('curl', ['-sS', '--cacert', ca, '-H', `x-api-key: ${service.key}`, base + path])).stdout;
    t.match(await curl('/v1/tts/speakers', first.certPath), 'speaker_ids');

    const say = (more: readonly string[], trust: Record<string, string>) =>
      runScript(
        'scripts/say.js',
        ['Hello there.', '--url', base, '--key', service.key, '-o', '-', ...more],
        trust,
      );
    for (const more of [[], ['--ws']]) {
      const said = await say(more, { NODE_EXTRA_CA_CERTS: first.certPath });
      t.equal(said.code, 0, said.stderr);
      t.ok(said.stdout.length > 1_000);
    }
    const untrusted = await say([], {});
    t.equal(untrusted.code, 1);
    t.match(untrusted.stderr, 'NODE_EXTRA_CA_CERTS');

    writeFileSync(certPath, 'half written');
    service.signal('SIGHUP');
    await service.untilLogged('the TLS certificate stays as it is');
    t.match(await curl('/v1/tts/speakers', first.certPath), 'speaker_ids');

    const second = certificateOf('two');
    install(second);
    service.signal('SIGHUP');
    await service.untilLogged('new connections get the new TLS certificate');
    t.match(await curl('/v1/tts/speakers', second.certPath), 'speaker_ids');
    await t.rejects(curl('/v1/tts/speakers', first.certPath));
    const secret = readFileSync(keyPath, 'utf8').split('\n')[1] ?? '-';
    t.notOk(service.stdout.includes(secret), 'the log has no key');
    t.match(await service.stop(), { code: 0 });
  },
);
