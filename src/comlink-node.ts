/** comlink over node:worker_threads: the one place that knows where the package keeps its adapter. */
// eslint-disable-next-line @typescript-eslint/no-restricted-imports -- the package's own folder, not our output
export { default as nodeEndpoint } from 'comlink/dist/esm/node-adapter.mjs';
