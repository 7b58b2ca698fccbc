/**
 * SwiftShader: Vulkan in software, from Debian's chromium. WebGPU runs on it, slowly but as on a GPU. Import this before a
 * test uses WebGPU.
 */
import { existsSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const driver = '/usr/lib/chromium/vk_swiftshader_icd.json';

/** Skips a test if there is no such device: `t.test(name, { skip: missingGpu }, ...)`. `.ci/run` installs it. */
export const missingGpu: string | false =
  existsSync(driver) || process.env['SYRINX_CI_REQUIRE_ALL'] === '1'
    ? false
    : `no software device for WebGPU: ${driver} is missing (Debian's chromium)`;

/** For a process that does not inherit ours. */
export const softwareGpuEnv = {
  VK_ICD_FILENAMES: driver,
  XDG_RUNTIME_DIR: process.env['XDG_RUNTIME_DIR'] ?? mkdtempSync(join(tmpdir(), 'syrinx-test-gpu-')),
  ORT_DISABLE_TELEMETRY: '1',
} as const;

Object.assign(process.env, softwareGpuEnv);
