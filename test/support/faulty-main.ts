/**
 * The service as it is, but that its drain meets a fault, and SIGWINCH one that nothing catches.
 *
 * DRAIN is `hangs`: a thread cannot be ended; or `fails`: it rejects.
 */
import { App } from '../../src/app.js';

App.prototype.drain = async () => {
  if (process.env['DRAIN'] === 'fails') throw new Error('scripted drain');
  return false;
};
process.on('SIGWINCH', () => {
  throw new Error('scripted fault');
});
await import('../../src/main.js');
