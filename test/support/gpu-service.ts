/** The real service, its own entry included, with a GPU that breaks when a test asks for it (gpu-synthesis.ts). */
import { App } from '../../src/app.js';
import { limits } from '../../src/limits.js';

// A software device is slow beside other tests.
Object.assign(limits, { voicesLoadMsMax: 200_000, threadHangMsMax: 30_000 });

const start = App.start.bind(App);
App.start = (parts) => start({ ...parts, synthesisEntry: new URL('gpu-synthesis.js', import.meta.url) });

await import('../../src/main.js');
