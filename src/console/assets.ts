/** The page: the files that the build made of `web`, read once into memory. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Header } from '../front/cors.js';
import type { Exchange } from '../front/exchange.js';
import { reply, type Reply } from '../front/reply.js';
import type { RequestHead } from '../front/request-head.js';
import type { Handler, Route } from '../front/routes.js';
import { replyRefusal, replyWhenDone } from './answers.js';
import type { SessionState } from './contract.js';
import type { Gate } from './gate.js';

const INDEX = 'index.html';

const contentTypes: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
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

/** The place of the answer to the call `session` in the page, which saves a signed-in user one call. */
const SESSION_PLACE = '<meta name="session" />';

const withSession = (page: string, state: SessionState): string => {
  const content = JSON.stringify(state).replaceAll(/[&"<]/g, (character) => `&#${character.charCodeAt(0)};`);
  return page.replace(SESSION_PLACE, () => `<meta name="session" content="${content}" />`);
};

/** The page (`web/shell.tsx`) sets this cookie. With the choice in the page, the browser shows no other colours first. */
const withTheme = (page: string, { cookie }: Pick<RequestHead, 'cookie'>): string => {
  const theme = /(?:^|;)\s*syrinx-theme=(light|dark)\s*(?:;|$)/.exec(cookie)?.[1];
  return theme === undefined ? page : page.replace('content="light dark"', `content="${theme}"`);
};

/**
 * @param sessionOf the session of a request; `null` if it has none, or if the store does not answer
 * @param folder by default where the build puts it, beside the compiled sources
 */
export const readPage = (
  gate: Gate,
  sessionOf: (exchange: Exchange, head: RequestHead) => Promise<SessionState | null>,
  folder = fileURLToPath(new URL('../../console', import.meta.url)),
): { readonly routes: readonly Route[]; readonly page: Handler } => {
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
  const pageFor = async (exchange: Exchange, head: RequestHead): Promise<Reply> => {
    const state = await sessionOf(exchange, head);
    const page = withTheme(index.body.toString(), head);
    return { status: 200, ...index, body: Buffer.from(state === null ? page : withSession(page, state)) };
  };
  const files = [...assets].filter(([path]) => path !== INDEX);
  return {
    routes: files.map(([path, asset]) => ({ path: `/${path}`, method: 'get', handler: serve(asset) })),
    // For every other path: its script chooses what to show. Methods other than GET are answered 404.
    page: (exchange, head) => {
      const refusal = gate.refusePage(head);
      if (exchange.method !== 'get' && exchange.method !== 'head')
        reply(exchange, exchange.services.errors.notFound);
      else if (refusal !== null) replyRefusal(exchange, refusal);
      else replyWhenDone(exchange, pageFor(exchange, head));
    },
  };
};
