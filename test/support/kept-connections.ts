/**
 * Imported for what it does: `fetch` uses a connection again for a second only, and not for five.
 *
 * The service counts the time of an idle connection in steps of four seconds, and ends it at the third. If its process gets no
 * core for a while, the third step comes before it reads a request that waits: the request gets a reset.
 */
import { Agent, setGlobalDispatcher } from 'undici';

setGlobalDispatcher(new Agent({ keepAliveMaxTimeout: 1_000 }));
