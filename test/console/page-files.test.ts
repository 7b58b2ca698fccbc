/** The files of the page, as the build makes them. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import t from 'tap';
import { packageRoot } from '../support/package-root.js';
import { filesIn, readSource } from '../support/source-files.js';

const folder = join(packageRoot, 'dist', 'console');
const assets = join(folder, 'assets');
const names = readdirSync(assets);
const read = (name: string): string => readFileSync(join(assets, name), 'utf8');
const html = readFileSync(join(folder, 'index.html'), 'utf8');

t.test('the console has at most 60 kB, compressed', (t) => {
  t.ok(names.length >= 2 && names.every((name) => html.includes(`/assets/${name}`)), names.join());
  const bytes = names.reduce((sum, name) => sum + gzipSync(read(name)).length, gzipSync(html).length);
  t.ok(bytes <= 60_000, `${bytes} bytes`);
  t.comment(`${bytes} bytes`);
  t.end();
});

t.test('the page loads nothing from elsewhere, and has no inline script or style', (t) => {
  for (const text of [html, ...names.map(read)])
    for (const [, host] of text.matchAll(/https?:\/\/([\w.-]+)/g))
      t.equal(host, 'www.w3.org', 'the name of a format');
  t.notMatch(html, /<style|\sstyle=|\son\w+=/);
  for (const [, attributes = '', content] of html.matchAll(/<script([^>]*)>([^]*?)<\/script>/g)) {
    t.match(attributes, /src="\/assets\//);
    t.equal(content, '');
  }
  t.end();
});

t.test('no source of the page makes HTML of a text', (t) => {
  const risky = /innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerouslySet/i;
  const sources = filesIn(['src/console/web'], /\.tsx?$/);
  t.ok(sources.length > 20);
  t.strictSame(
    sources.filter((path) => risky.test(readSource(path))),
    [],
  );
  t.end();
});
