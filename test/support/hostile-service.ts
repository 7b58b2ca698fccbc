/** The real service, its own entry included, with packs that hang the thread that reads them. */
import { App } from '../../src/app.js';

const start = App.start.bind(App);
App.start = (parts) => start({ ...parts, packsEntry: new URL('engines/hostile/packs.js', import.meta.url) });

await import('../../src/main.js');
