/** Clients of other services, unmodified: packages of test/interop, which has a lock file of its own. */
import { isNight } from '../fuzz/check.js';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { packageRoot } from './package-root.js';

const folder = join(packageRoot, 'test', 'interop');
const requireThere = createRequire(join(folder, 'package.json'));

/** Skips a test if the packages are not installed: `t.test(name, { skip: missingClients }, ...)`. CI installs them. */
export const missingClients: string | false =
  existsSync(join(folder, 'node_modules')) || process.env['SYRINX_CI_REQUIRE_ALL'] === '1'
    ? false
    : 'not installed: npm ci --prefix test/interop';

/** @param name of a package of test/interop @returns what it exports */
export const loadClient = (name: string): unknown => requireThere(name);

/** Of a client in mid-speech: each is the same race at another moment. */
export const interruptions = isNight ? 200 : 15;
