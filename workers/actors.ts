/** Entry of an actor thread. */
import { measureEncodings } from './actor/encoding-cost.js';
import { serveActors } from './actor-thread.js';

await serveActors(measureEncodings);
