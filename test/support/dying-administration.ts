/** An administration thread that dies at its first call. */
import { parentPort } from 'node:worker_threads';

parentPort?.once('message', () => {
  throw new Error('a defect of the thread');
});
