/** The whole service, over real sockets and a real store; only its engine is scripted (scripted-synthesis.ts). */
import { App } from '../../src/app.js';
import { writeFirstKey } from '../../src/accounts/administration.js';
import { readConfig } from '../../src/config.js';
import { limits } from '../../src/limits.js';
import { createLog } from '../../src/log.js';

const config = readConfig(process.env);
const log = createLog(config.logLevel, limits);
const { app, port, opsPort } = await App.start({
  config,
  log,
  onFirstKey: (key) => void writeFirstKey(config.dataDir, key),
  synthesisEntry: new URL('scripted-synthesis.js', import.meta.url),
});
process.once('SIGTERM', () => void app.drain().then(() => process.exit(0)));
log.info({ port, opsPort }, 'listening');
