/**
 * The real service, its own entry included, with a fault in its drain: with DRAIN=hangs a thread cannot end, with
 * DRAIN=fails the drain rejects. SIGWINCH throws an error that nothing catches.
 */
import { App } from '../../src/app.js';

App.prototype.drain = async () => {
  if (process.env['DRAIN'] === 'fails') throw new Error('scripted drain');
  return false;
};
process.on('SIGWINCH', () => {
  throw new Error('scripted fault');
});
await import('./scripted-service.js');
