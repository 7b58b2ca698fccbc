/** comlink's adapter for node:worker_threads. Only this file knows its place in the package. */
// eslint-disable-next-line @typescript-eslint/no-restricted-imports -- the package's own folder, not our output
export { default as nodeEndpoint } from 'comlink/dist/esm/node-adapter.mjs';
