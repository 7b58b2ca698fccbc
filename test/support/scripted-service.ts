/**
 * The real service, its own entry included, with a scripted engine (scripted-synthesis.ts). Its start measures no encodings,
 * and passwords cost little.
 */
import { App } from '../../src/app.js';

const start = App.start.bind(App);
App.start = (parts) =>
  start({
    ...parts,
    synthesisEntry: new URL('scripted-synthesis.js', import.meta.url),
    actorEntry: new URL('quick-actors.js', import.meta.url),
    administrationEntry: new URL('quick-administration.js', import.meta.url),
  });

await import('../../src/main.js');
