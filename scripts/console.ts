/** The console from the command line: a link that claims it, or that gives an operator a new password. */
import { Access } from '../src/accounts/access.js';
import { Passwords } from '../src/accounts/passwords.js';
import { Sessions } from '../src/accounts/sessions.js';
import { consoleUrl } from '../src/address.js';
import { readConfig } from '../src/config.js';
import { limits } from '../src/limits.js';
import { runningServices } from '../src/ops/pid-file.js';
import { storeAt } from '../src/store/driver.js';
import { AdministrationError } from '../src/store/store.js';
import { program, runIfMain, storePlace } from './command.js';
import { formatTime } from './table.js';

const usage = `Usage: npm run console -- link

  link   print a link that works once, for 30 minutes. Without an operator it claims the console. With one, it sets a
         new password for the operator that you name. Earlier links end

The address is that of the service that runs on DATA_DIR. Where none runs, CONSOLE_HOST, CONSOLE_PORT and CONSOLE_ORIGIN say it.
${storePlace}
`;

export const consoleProgram = program('console', usage, {
  link: {
    run: async (_, { env, out, err }) => {
      const config = readConfig(env);
      const [running] = runningServices(config.dataDir);
      const url = running === undefined ? consoleUrl(config) : running.consoleUrl;
      if (url === null) throw new AdministrationError('The console is off: set CONSOLE_PORT to its port');
      if (running === undefined && config.console?.port === 0 && config.console.origin === null)
        throw new AdministrationError(
          'CONSOLE_PORT is 0, any free port: set it to the port that the service printed',
        );
      const store = await storeAt(config, limits).administer(false);
      try {
        const sessions = new Sessions(store, limits);
        const passwords = new Passwords(limits.passwordsWaitingMax);
        const access = new Access({ store, sessions, passwords, bounds: limits });
        const { token, expiresAtMs } = await access.makeLink('command line', false);
        out(`${url}/claim#${token}\n`);
        err(`It works once, until ${formatTime(expiresAtMs)} UTC. Earlier links do not work any more.\n`);
      } finally {
        await store.close();
      }
    },
  },
});

await runIfMain(import.meta.url, consoleProgram);
