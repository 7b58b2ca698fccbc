/** The real service, its own entry included, with the tones of test/support/engines as a further format of voices. */
import { App } from '../../src/app.js';

const start = App.start.bind(App);
App.start = (parts) =>
  start({
    ...parts,
    packsEntry: new URL('engines/tones/packs.js', import.meta.url),
    synthesisEntry: new URL('engines/tones/synthesis.js', import.meta.url),
    actorEntry: new URL('quick-actors.js', import.meta.url),
  });

await import('../../src/main.js');
