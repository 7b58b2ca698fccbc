/**
 * No regular expression of the service backtracks on a text: twice the length takes at most 2.5 times as long. All of them
 * are tried, also those that only see short texts, so that nobody has to know which those are.
 */
import t from 'tap';
import ts from 'typescript';
import { attacks, slownessOf } from '../support/attacks.js';
import { filesIn, readSource } from '../support/source-files.js';

/** By its source; with the file that has it. */
const found = new Map<string, { readonly expression: RegExp; readonly file: string }>();

const Original = RegExp;

const add = (file: string, source: string, flags: string): void => {
  // Every call begins at the start of the text.
  const expression = new Original(source, flags.replace(/[gy]/g, ''));
  found.set(String(expression), { expression, file });
};

const sources = filesIn(['src', 'workers'], /\.tsx?$/).filter((file) => !file.endsWith('.d.ts'));
const constructors: string[] = [];

for (const file of sources) {
  const source = ts.createSourceFile(file, readSource(file), ts.ScriptTarget.Latest);
  const visit = (node: ts.Node): void => {
    if (ts.isRegularExpressionLiteral(node)) {
      const [, pattern = '', flags = ''] = /^\/(.*)\/([a-z]*)$/s.exec(node.text) ?? [];
      add(file, pattern, flags);
    }
    if (ts.isNewExpression(node) && ts.isIdentifier(node.expression) && node.expression.text === 'RegExp')
      constructors.push(file);
    ts.forEachChild(node, visit);
  };
  visit(source);
}

// Those that are put together are caught as their modules make them.
for (const file of new Set(constructors)) {
  const Recorder = new Proxy(Original, {
    construct: (target, [source, flags]: [string, string?]) => {
      add(file, source, flags ?? '');
      return Reflect.construct(target, [source, flags]);
    },
  });
  globalThis.RegExp = Recorder;
  await import(new URL(`../../${file.replace(/\.tsx?$/, '.js')}`, import.meta.url).href);
  globalThis.RegExp = Original;
}

t.test('regular expressions take linear time', async (t) => {
  for (const { expression, file } of found.values())
    for (const attack of attacks(expression.source)) {
      const slowness = await slownessOf(attack, 2_000, (text) => expression.test(text));
      if (slowness !== null) {
        t.fail(`${file}: ${String(expression)}: ${slowness}`);
        break;
      }
    }
  t.ok(found.size > 500, `${found.size} expressions`);
  t.ok(constructors.length > 10, `${constructors.length} of them put together`);
});
