/** Entry of an actor thread that does not measure what encodings cost: that takes more CPU time than the rest of its start. */
import { encodingNames } from '../../src/api/formats.js';
import { serveActors } from '../../workers/actor-thread.js';

const COST = 0.003;

await serveActors(() => Promise.resolve(new Map(encodingNames.map((name) => [name, COST]))));
