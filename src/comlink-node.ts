/** comlink's adapter for node:worker_threads. Only this file knows its place in the package. */
// oxlint-disable-next-line no-restricted-imports -- the package's own folder, not our output
export { default as nodeEndpoint } from 'comlink/dist/esm/node-adapter.mjs';
