import { spawnSync } from 'node:child_process';
import { isInstalled } from '../../scripts/say/sinks.js';

/**
 * Skips a test if a program is missing: `t.test(name, { skip: missingTool('ffmpeg') }, ...)`. `.ci/run` installs all
 * programs and sets SYRINX_CI_REQUIRE_ALL. Then no test is skipped, and a missing program fails the test.
 */
export const missingTool = (...programs: readonly string[]): string | false => {
  const missing = programs.filter((program) => !isInstalled(program));
  if (missing.length === 0 || process.env['SYRINX_CI_REQUIRE_ALL'] === '1') return false;
  return `not installed: ${missing.join(', ')}`;
};

/**
 * The Python that has a module: the one on PATH, or the system's, for which `.ci/run` installs modules.
 *
 * @returns its path, or `undefined` if neither has it
 */
export const pythonWith = (module: string): string | undefined =>
  ['python3', '/usr/bin/python3'].find(
    (python) => spawnSync(python, ['-c', `import ${module}`]).status === 0,
  );

/** A Python that has modules, which `.ci/run` installs, and whether to skip a test that needs them: see `missingTool`. */
export const pythonFor = (...modules: readonly string[]): { python: string; skip: string | false } => {
  const python = pythonWith(modules.join(', '));
  const isSkipped = python === undefined && process.env['SYRINX_CI_REQUIRE_ALL'] !== '1';
  return {
    python: python ?? '/usr/bin/python3',
    skip: isSkipped && `no python3 with ${modules.join(', ')}`,
  };
};
