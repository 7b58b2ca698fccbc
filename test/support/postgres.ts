/** PostgreSQL for a test file. */
import t from 'tap';
import { postgresBinaries } from '../../scripts/rig/postgres.js';

export { PostgresServer } from '../../scripts/rig/postgres.js';

/** Without a server the tests that need one are not registered, and the report says so. */
export const hasPostgres = (): boolean => {
  if (postgresBinaries() !== null || process.env['SYRINX_CI_REQUIRE_ALL'] === '1') return true;
  t.pass('PostgreSQL', { skip: 'not installed: apt-get install postgresql' });
  return false;
};
