/**
 * Entry of a thread of the process that tries a voice pack: ends the process when the one that asked for the trial has gone,
 * however it went. The main thread may be inside a model that never ends.
 */
import { Socket } from 'node:net';

new Socket({ fd: 0 }).on('close', () => process.kill(process.pid, 'SIGKILL')).resume();
