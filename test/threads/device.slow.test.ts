import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { readConfig } from '../../src/config.js';
import { limits } from '../../src/limits.js';
import { chooseDevice, deviceNameIn } from '../../src/threads/device.js';

t.test('the name of a GPU comes before that of a software device', (t) => {
  const listed = (...names: string[]) =>
    ['INFO:  Sorted order:', ...names.map((name, i) => `INFO:                        [${i}] ${name}  `)].join(
      '\n',
    );
  t.equal(deviceNameIn(listed('llvmpipe (LLVM 15.0.6, 256 bits)', 'NVIDIA H100 PCIe')), 'NVIDIA H100 PCIe');
  t.equal(deviceNameIn(listed('llvmpipe (LLVM 15.0.6, 256 bits)')), 'llvmpipe (LLVM 15.0.6, 256 bits)');
  t.equal(deviceNameIn('WARNING: no drivers'), null);
  t.end();
});

t.test('without a driver the CPU is used, and the reason says so', async (t) => {
  process.env['VK_ICD_FILENAMES'] = '/nonexistent.json';
  const entry = new URL('../../workers/device.js', import.meta.url);
  const device = await chooseDevice(
    readConfig({ EXECUTION_PROVIDER: 'webgpu' }),
    entry,
    limits.deviceTrialMsMax,
  );
  t.match(device, { provider: 'cpu', name: null, reason: /^WebGPU cannot be used: ./, isFallback: true });
});

t.test('a device process that ends or hangs is a fault and no more', async (t) => {
  const program = join(t.testdir(), 'device.mjs');
  const tried = (code: string, timeoutMs: number) => {
    writeFileSync(program, code);
    const url = new URL(`file://${program}`);
    return chooseDevice(readConfig({ EXECUTION_PROVIDER: 'webgpu' }), url, timeoutMs);
  };
  t.match(await tried('process.kill(process.pid, "SIGSEGV")', 10_000), {
    provider: 'cpu',
    reason: /SIGSEGV/,
  });
  t.match(await tried('setTimeout(() => {}, 1e6)', 200), { provider: 'cpu', reason: /SIGKILL/ });
  // Its output stays open, as that of a process that SIGKILL cannot end.
  const survives = `
    const { spawn } = await import('node:child_process');
    spawn('sleep', ['20'], { stdio: 'inherit', detached: true });
    setTimeout(() => {}, 1e6);`;
  t.match(await tried(survives, 3_000), { provider: 'cpu', reason: /hangs and cannot be ended/ });
});

t.test('auto tries and uses a GPU without the drivers of software devices', async (t) => {
  const program = join(t.testdir(), 'device.mjs');
  const url = new URL(`file://${program}`);
  const choose = (provider: string, graphs = 'all') =>
    chooseDevice(readConfig({ EXECUTION_PROVIDER: provider, GPU_GRAPHS: graphs }), url, 10_000, () => true);
  const variable = 'VK_LOADER_DRIVERS_DISABLE';
  process.env[variable] = '*other*';
  t.teardown(() => delete process.env['VK_LOADER_DRIVERS_DISABLE']);
  writeFileSync(program, `process.stdout.write(JSON.stringify({ fault: process.env.${variable} }))`);
  t.match((await choose('auto')).reason, /\*other\*,.*\*swiftshader\*.*\*lvp\*/);
  t.match((await choose('webgpu')).reason, /: \*other\*$/);
  t.equal(process.env[variable], '*other*');
  writeFileSync(
    program,
    `process.stderr.write('INFO:     [0] NVIDIA H100 PCIe\\n');
    process.stdout.write(JSON.stringify({ fault: null }))`,
  );
  t.match(await choose('auto'), { provider: 'webgpu', name: 'NVIDIA H100 PCIe' });
  t.match(process.env[variable], '*swiftshader*', 'the drivers that the service loads');
  t.match(await choose('auto', ''), { provider: 'cpu', isFallback: false, reason: /GPU_GRAPHS is not set/ });
});

t.test('GPU_DEVICE is the device that the Vulkan loader puts first', async (t) => {
  const program = join(t.testdir(), 'device.mjs');
  writeFileSync(
    program,
    'process.stdout.write(JSON.stringify({ fault: process.env.VK_LOADER_DEVICE_SELECT }))',
  );
  const config = readConfig({ EXECUTION_PROVIDER: 'webgpu', GPU_DEVICE: '10DE:2684' });
  const { reason } = await chooseDevice(config, new URL(`file://${program}`), 10_000);
  t.match(reason, '0x10de:0x2684');
  for (const wrong of ['gpu0', '10de', '10de:26841'])
    t.throws(() => readConfig({ GPU_DEVICE: wrong }), /GPU_DEVICE must be/);
});

t.test('GPU_GRAPHS says what runs by WebGPU', (t) => {
  const graphsFor = (env: Record<string, string>) => readConfig(env).gpu.graphs;
  t.same(graphsFor({}), [], 'a small GPU does not slow a voice by itself');
  t.same(graphsFor({ EXECUTION_PROVIDER: 'webgpu' }), 'all');
  t.same(graphsFor({ GPU_GRAPHS: 'all' }), 'all');
  t.same(graphsFor({ EXECUTION_PROVIDER: 'webgpu', GPU_GRAPHS: 'a/b, c/d' }), ['a/b', 'c/d']);
  t.throws(
    () => graphsFor({ GPU_GRAPHS: 'measured' }),
    /must be all, or a list such as .*no longer measures/,
  );
  t.throws(() => graphsFor({ GPU_GRAPHS: 'decoder' }), /GPU_GRAPHS must be all/);
  t.end();
});
