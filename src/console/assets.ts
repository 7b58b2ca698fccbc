/** The page: the files that the build made of `web`, read once into memory. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Header } from '../front/cors.js';
import { reply } from '../front/reply.js';
import type { Handler, Route } from '../front/routes.js';
import { replyRefusal } from './answers.js';
import type { Gate } from './gate.js';

const INDEX = 'index.html';

const contentTypes: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
};

/** Below it, a file's name holds the hash of its content. */
const HASHED = 'assets/';
const immutable: readonly Header[] = [['cache-control', 'public, max-age=31536000, immutable']];

interface Asset {
  readonly body: Buffer;
  readonly contentType: string;
  readonly headers: readonly Header[];
}

const missingPage =
  '<!doctype html><title>syrinx</title><p>The page of the console was not built: run npm run build.';

/** By path from the folder, with slashes. Other files, such as source maps, are not served. */
const readAssets = (folder: string): Map<string, Asset> => {
  const found = existsSync(folder) ? readdirSync(folder, { recursive: true, withFileTypes: true }) : [];
  const files = found.filter((entry) => entry.isFile());
  const assets = new Map<string, Asset>();
  for (const { name, parentPath } of files) {
    const path = join(parentPath, name);
    const contentType = contentTypes[extname(name)];
    if (contentType === undefined) continue;
    const shown = relative(folder, path).replaceAll(sep, '/');
    const headers = shown.startsWith(HASHED) ? immutable : [];
    assets.set(shown, { body: readFileSync(path), contentType, headers });
  }
  return assets;
};

export interface Assets {
  /** One for each file but the page. */
  readonly routes: readonly Route[];
  /** The page, for every other path: it finds out itself what to show there. Other methods than GET are answered 404. */
  readonly page: Handler;
}

/** @param folder by default where the build puts it, beside the compiled sources */
export const readPage = (
  gate: Gate,
  folder = fileURLToPath(new URL('../../console', import.meta.url)),
): Assets => {
  const assets = readAssets(folder);
  const serve =
    (asset: Asset): Handler =>
    (exchange, head) => {
      const refusal = gate.refusePage(head);
      if (refusal !== null) replyRefusal(exchange, refusal);
      else reply(exchange, { status: 200, ...asset });
    };
  const index = assets.get(INDEX) ?? {
    body: Buffer.from(missingPage),
    contentType: 'text/html; charset=utf-8',
    headers: [],
  };
  const files = [...assets].filter(([path]) => path !== INDEX);
  const serveIndex = serve(index);
  return {
    routes: files.map(([path, asset]) => ({ path: `/${path}`, method: 'get', handler: serve(asset) })),
    page: (exchange, head) => {
      if (exchange.method === 'get' || exchange.method === 'head') serveIndex(exchange, head);
      else reply(exchange, exchange.services.errors.notFound);
    },
  };
};
