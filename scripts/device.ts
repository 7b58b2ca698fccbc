/** The device that the service would use, for commands that speak without one. */
import type { Config, Provider } from '../src/config.js';
import { limits } from '../src/limits.js';
import { type Device, chooseDevice } from '../src/threads/device.js';
import { GpuState } from '../src/threads/gpu.js';
import type { GpuThreadData } from '../src/threads/messages.js';

export interface DeviceData {
  readonly executionProvider: Provider;
  readonly gpu: GpuThreadData;
}

export type DeviceConfig = Pick<Config, 'executionProvider' | 'gpu'>;

export const deviceFor = (config: DeviceConfig): Promise<Device> =>
  chooseDevice(config, new URL('../workers/device.js', import.meta.url), limits.deviceTrialMsMax);

/** What a synthesis thread would get. */
export const deviceData = async (config: DeviceConfig): Promise<DeviceData> => {
  const { provider } = await deviceFor(config);
  const state = new GpuState().buffer;
  return { executionProvider: provider, gpu: { ...config.gpu, state } };
};
