/** The service, on a disk that gives its modules when there is a file `GO`. */
import { existsSync } from 'node:fs';
import { registerHooks } from 'node:module';

const isThere = (): boolean => existsSync(process.env['GO'] ?? '');
const cell = new Int32Array(new SharedArrayBuffer(4));

registerHooks({
  resolve: (specifier, context, next) => {
    if (specifier.endsWith('/app.js') && !isThere()) {
      process.stdout.write('{"msg":"loading"}\n');
      while (!isThere()) Atomics.wait(cell, 0, 0, 20);
    }
    return next(specifier, context);
  },
});

await import('../../src/main.js');
