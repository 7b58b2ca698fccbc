/** The image, the compose files and the chart fit the service. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { readConfig } from '../../src/config.js';
import { limits } from '../../src/limits.js';
import { version } from '../../src/version.js';
import { packageRoot } from '../support/package-root.js';
import { readSource } from '../support/source-files.js';

const image = readSource('scripts/package/Containerfile');
const composes = readdirSync(join(packageRoot, 'scripts/deploy')).filter((name) =>
  /^compose.*yaml$/.test(name),
);
const stopMsMax =
  limits.drainMsMax +
  limits.administrationCloseMsMax +
  limits.stepEndMsMax +
  limits.longStepEndMsMax +
  limits.ledgerCloseMsMax;

t.test('the image has the ports of the service, and listens for others than itself', (t) => {
  const { port, opsPort, console } = readConfig({});
  t.match(image, `EXPOSE ${port} ${console?.port} ${opsPort}`);
  const [, settings = ''] = /^ENV (.+)$/m.exec(image) ?? [];
  const env: Record<string, string> = {};
  for (const [, name = '', value = ''] of settings.matchAll(/(\w+)=(\S+)/g)) env[name] = value;
  const inside = readConfig(env);
  t.match([inside.host, inside.opsHost, inside.console?.host], ['0.0.0.0', '0.0.0.0', '0.0.0.0']);
  t.match(image, new RegExp(`^VOLUME ${inside.dataDir}$`, 'm'));
  t.end();
});

t.test(
  'the release is one: the image, the compose files, the chart and their page have the version of the package',
  (t) => {
    t.equal(composes.length, 3);
    for (const path of [...composes, 'containers.md'])
      for (const [, tag] of readSource(`scripts/deploy/${path}`).matchAll(/syrinx:(\d[\w.]*)/g))
        t.equal(tag, version, path);
    const chart = readSource('scripts/deploy/chart/Chart.yaml');
    t.match(chart, new RegExp(`^version: ${version}\nappVersion: ${version}$`, 'm'));
    t.match(readSource('CHANGELOG.md'), new RegExp(`^## \\[${version}\\] - \\d{4}-\\d\\d-\\d\\d$`, 'm'));
    const pages = ['scripts/deploy/README.md', 'scripts/package/README.md', 'src/client/README.md'].map(
      readSource,
    );
    for (const [, other] of pages.join('\n').matchAll(/(?:syrinx-|--branch v)(\d+\.\d+\.\d+)/g))
      t.equal(other, version);
    t.end();
  },
);

t.test('nothing cuts a drain off', (t) => {
  for (const path of composes)
    for (const [, seconds] of readSource(`scripts/deploy/${path}`).matchAll(/stop_grace_period: (\d+)s/g))
      t.ok(Number(seconds) * 1_000 >= stopMsMax + 5_000, path);
  const pods = readSource('scripts/deploy/chart/templates/hosts.yaml');
  const [, more] =
    /terminationGracePeriodSeconds: \{\{ add \.Values\.drainSeconds (\d+) \}\}/.exec(pods) ?? [];
  // The pod sleeps for five seconds first.
  t.ok(Number(more) * 1_000 >= stopMsMax - limits.drainMsMax + 5_000);
  t.match(readSource('scripts/deploy/chart/values.yaml'), `drainSeconds: ${limits.drainMsMax / 1_000}\n`);
  t.end();
});
