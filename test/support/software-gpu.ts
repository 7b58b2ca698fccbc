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

process.env['VK_ICD_FILENAMES'] = driver;
process.env['XDG_RUNTIME_DIR'] ??= mkdtempSync(join(tmpdir(), 'syrinx-test-gpu-'));
process.env['ORT_DISABLE_TELEMETRY'] = '1';
