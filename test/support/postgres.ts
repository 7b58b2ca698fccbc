/** PostgreSQL for a test file. */
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import t from 'tap';
import { postgresBinaries, PostgresServer } from '../../scripts/rig/postgres.js';

/** In memory if the system offers that: after a crash the server first writes all of its data to the disk. */
export const startPostgres = (): Promise<PostgresServer> =>
  PostgresServer.start(existsSync('/dev/shm') ? '/dev/shm' : tmpdir());

/** Without a server the tests that need one are not registered, and the report says so. */
export const hasPostgres = (): boolean => {
  if (postgresBinaries() !== null || process.env['SYRINX_CI_REQUIRE_ALL'] === '1') return true;
  t.pass('PostgreSQL', { skip: 'not installed: apt-get install postgresql' });
  return false;
};
