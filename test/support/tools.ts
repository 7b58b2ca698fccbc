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
 * For a test that wants programs which not everyone has: `t.test(name, { skip: missingTool('ffmpeg') }, ...)`.
 * `.ci/run` installs them all and sets SYRINX_CI_REQUIRE_ALL: there the test runs, and fails where one is missing.
 */
export const missingTool = (...programs: readonly string[]): string | false => {
  const missing = programs.filter((program) => !isInstalled(program));
  if (missing.length === 0 || process.env['SYRINX_CI_REQUIRE_ALL'] === '1') return false;
  return `not installed: ${missing.join(', ')}`;
};
