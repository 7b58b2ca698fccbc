/** The service with its real voices, and threads that break where a text names a fault. */
import { writeFirstKey } from '../../../src/accounts/secret-file.js';
import { App } from '../../../src/app.js';
import { readConfig } from '../../../src/config.js';
import { limits } from '../../../src/limits.js';
import { createLog } from '../../../src/log.js';

const config = readConfig(process.env);
const log = createLog(config.logLevel, limits);
const { app, dialectPorts, port } = await App.start({
  config,
  log,
  onFirstKey: (key) => void writeFirstKey(config.dataDir, key),
  synthesisEntry: new URL('./fragile-synthesis.js', import.meta.url),
  actorEntry: new URL('./fragile-actors.js', import.meta.url),
});
process.on('SIGUSR2', () => void app.status().then((status) => log.info(status, 'status')));
process.once('SIGTERM', () => void app.drain().then(() => process.exit(0)));
log.info({ port, dialectPorts }, 'listening');
