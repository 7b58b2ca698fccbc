/** The real service, its own entry included, with a scripted engine (scripted-synthesis.ts). */
import { App } from '../../src/app.js';

const start = App.start.bind(App);
App.start = (parts) => start({ ...parts, synthesisEntry: new URL('scripted-synthesis.js', import.meta.url) });

await import('../../src/main.js');
