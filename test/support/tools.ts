import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

const isInstalled = (program: string): boolean =>
  (process.env['PATH'] ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });

/**
 * Skips a test if a program is missing: `t.test(name, { skip: missingTool('ffmpeg') }, ...)`. `.ci/run` installs all
 * programs and sets SYRINX_CI_REQUIRE_ALL. Then no test is skipped, and a missing program fails the test.
 */
export const missingTool = (...programs: readonly string[]): string | false => {
  const missing = programs.filter((program) => !isInstalled(program));
  if (missing.length === 0 || process.env['SYRINX_CI_REQUIRE_ALL'] === '1') return false;
  return `not installed: ${missing.join(', ')}`;
};
