/**
 * Chooses what runs the models. A process of its own tries a GPU: a driver may crash or hang. Neither onnxruntime nor its
 * Node binding says which device it uses, so the name comes from the Vulkan loader, which lists its devices on the
 * standard error of that process.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Config, Provider } from '../config.js';
import type { ProcessLog } from '../log.js';

export interface Device {
  readonly provider: Provider;
  /** As its driver calls it; `null`: the CPU, or the system does not say. */
  readonly name: string | null;
  /** Why this one, for the log. */
  readonly reason: string;
  /** Another one was asked for. */
  readonly isFallback: boolean;
}

/** What the process writes on its standard output, as JSON. */
export interface DeviceTrial {
  /** `null`: it works. */
  readonly fault: string | null;
}

interface TriedDevice extends DeviceTrial {
  readonly name: string | null;
}

/** Devices that compute on the CPU, and the files of their drivers. */
const softwareNames = /swiftshader|llvmpipe|lavapipe|softpipe|software/i;
const softwareDrivers = '*swiftshader*,*llvmpipe*,*lavapipe*,*lvp*';

/** Milliseconds that a process has to end by SIGKILL. Inside a driver that hangs, it cannot. */
const KILL_MS_MAX = 5_000;

/** The loader lists: `INFO:      [0] NAME`. */
const listedDevice = /^[A-Z |]+:\s+\[\d+\]\s+(\S.*)$/gm;

export const isSoftware = (name: string): boolean => softwareNames.test(name);

/** WebGPU prefers a GPU to a software device. */
export const deviceNameIn = (lines: string): string | null => {
  const names = [...lines.matchAll(listedDevice)].map(([, name]) => name!.trimEnd());
  return names.find((name) => !isSoftware(name)) ?? names[0] ?? null;
};

/**
 * Whether onnxruntime's library for CUDA is installed. Every build for Linux supports CUDA, and without the library an
 * attempt makes onnxruntime complain on the terminal.
 */
export const hasCudaLibrary = (): boolean => {
  const entry = createRequire(import.meta.url).resolve('onnxruntime-node');
  const folder = join(dirname(entry), '..', 'bin', 'napi-v6', process.platform, process.arch);
  return ['libonnxruntime_providers_cuda.so', 'onnxruntime_providers_cuda.dll'].some((name) =>
    existsSync(join(folder, name)),
  );
};

const systemHasGpuFile = (): boolean => {
  if (['/dev/nvidia0', '/dev/dxg'].some((path) => existsSync(path))) return true;
  return existsSync('/dev/dri') && readdirSync('/dev/dri').some((name) => name.startsWith('renderD'));
};

/**
 * For Vulkan's loader. It puts the chosen device first. With `auto` it leaves out software devices: of several devices, no
 * list says which one onnxruntime opens.
 */
const vulkanEnv = (device: string | null, isAuto: boolean): Record<string, string> => {
  const disabled = process.env['VK_LOADER_DRIVERS_DISABLE'] ?? '';
  return {
    ...(device?.includes(':') === true && {
      VK_LOADER_DEVICE_SELECT: device.replace(/[0-9a-f]{4}/g, '0x$&'),
    }),
    ...(isAuto && {
      VK_LOADER_DRIVERS_DISABLE: disabled === '' ? softwareDrivers : `${disabled},${softwareDrivers}`,
    }),
  };
};

/** The number of the CUDA device, if one is chosen. */
export const cudaDeviceOf = (device: string | null): number | null =>
  device === null || device.includes(':') ? null : Number(device);

const tryDevice = async (
  args: readonly string[],
  entry: URL,
  timeoutMs: number,
  env: Record<string, string> = {},
): Promise<TriedDevice> => {
  const child = spawn(process.execPath, [fileURLToPath(entry), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
    env: { ...process.env, ...env, ORT_DISABLE_TELEMETRY: '1', VK_LOADER_DEBUG: 'info' },
  });
  const closed = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
  const ended = Promise.all([closed, readAll(child.stdout), readAll(child.stderr)]);
  const over = await Promise.race([ended, pause(timeoutMs + KILL_MS_MAX, null, { ref: false })]);
  if (over === null) {
    ended.catch(() => undefined);
    child.unref();
    child.stdout.destroy();
    child.stderr.destroy();
    return { name: null, fault: 'the process that tried it hangs and cannot be ended' };
  }
  const [[code, signal], output, lines] = over;
  const name = deviceNameIn(lines);
  if (code !== 0) return { name, fault: `the process that tried it ended with ${signal ?? `code ${code}`}` };
  return { name, ...(JSON.parse(output) as DeviceTrial) };
};

/** One line says what runs the models, and why. At a terminal it would hide the welcome, unless the owner wanted another. */
export const logDevice = ({ provider, name, reason, isFallback }: Device, log: ProcessLog): void =>
  log[isFallback ? 'warn' : log.print === null ? 'info' : 'debug'](
    { executionProvider: provider, device: name, reason },
    isFallback ? 'the GPU cannot be used: the CPU runs the models' : 'the device that runs the models',
  );

const cpu = (reason: string, isFallback = false): Device => ({
  provider: 'cpu',
  name: null,
  reason,
  isFallback,
});

/**
 * @param entry the compiled `workers/device.ts`
 * @param timeoutMs of a trial
 * @param hasGpuFile whether the system has the device file of a GPU: `auto` tries none on a machine without one
 */
export const chooseDevice = async (
  { executionProvider: wanted, gpu }: Pick<Config, 'executionProvider' | 'gpu'>,
  entry: URL,
  timeoutMs: number,
  hasGpuFile = systemHasGpuFile,
): Promise<Device> => {
  if (wanted === 'cpu') return cpu('EXECUTION_PROVIDER is cpu');
  const isAuto = wanted === 'auto';
  const faults: string[] = [];
  const accept = (provider: Provider, name: string | null): Device => ({
    ...{ provider, name, isFallback: false },
    reason: [isAuto ? 'it works' : `EXECUTION_PROVIDER is ${wanted}`, ...faults].join('; '),
  });
  if (isAuto || wanted === 'cuda') {
    if (hasCudaLibrary()) {
      const number = cudaDeviceOf(gpu.device);
      const { fault, name } = await tryDevice(['cuda', String(number ?? 0)], entry, timeoutMs);
      if (fault === null) return accept('cuda', name);
      faults.push(`CUDA cannot be used: ${fault}`);
    } else faults.push('onnxruntime-node was installed without CUDA (ONNXRUNTIME_NODE_INSTALL=cuda12)');
  }
  if (isAuto && gpu.graphs.length === 0) faults.push('GPU_GRAPHS is not set: WebGPU is not tried');
  else if (isAuto && !hasGpuFile()) faults.push('there is no device file of a GPU in /dev');
  else if (isAuto || wanted === 'webgpu') {
    const env = vulkanEnv(gpu.device, isAuto);
    const { fault, name } = await tryDevice(['webgpu'], entry, timeoutMs, env);
    if (fault !== null) faults.push(`WebGPU cannot be used: ${fault}`);
    else if (isAuto && (name === null || isSoftware(name)))
      faults.push(
        name === null
          ? 'WebGPU works, but its device is unknown: to use it, set EXECUTION_PROVIDER=webgpu'
          : `WebGPU has only a software device (${name})`,
      );
    else {
      Object.assign(process.env, env);
      return accept('webgpu', name);
    }
  }
  return cpu(faults.join('; '), !isAuto);
};
