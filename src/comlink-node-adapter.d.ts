/** comlink ships no types for this module. */
declare module 'comlink/dist/esm/node-adapter.mjs' {
  import type { MessagePort, Worker } from 'node:worker_threads';
  import type { Endpoint } from 'comlink';

  const nodeEndpoint: (port: MessagePort | Worker) => Endpoint;
  export { nodeEndpoint as default };
}
