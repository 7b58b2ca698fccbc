import { defineConfig, globalIgnores } from 'eslint/config';
import tseslint from 'typescript-eslint';

export default defineConfig(
  globalIgnores(['dist', 'dist-*', 'data', '.tap', 'models', 'scripts/voice/work']),
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  {
    files: ['**/*.{ts,tsx}'],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'separate-type-imports' }],
      '@typescript-eslint/no-unnecessary-condition': ['error', { allowConstantLoopConditions: true }],
      // An index under `noUncheckedIndexedAccess` is checked by the type; a `!` says that its bound was checked above.
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              group: ['**/dist/**', '!ajv/dist/2020.js'],
              message: 'Import the source; the output folder has no name.',
            },
          ],
        },
      ],
      'no-restricted-syntax': [
        'error',
        { selector: 'ExportDefaultDeclaration', message: 'Name what you export.' },
        { selector: 'PropertyDefinition[accessibility="private"]', message: 'Use #private.' },
        {
          selector: 'MethodDefinition[accessibility="private"][kind!="constructor"]',
          message: 'Use #private.',
        },
      ],
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', destructuredArrayIgnorePattern: '^_', varsIgnorePattern: '^_' },
      ],
      eqeqeq: 'error',
      'no-console': 'error',
      'prefer-const': 'error',
    },
  },
  {
    // piscina calls a module's default export, and others' modules have theirs.
    files: ['workers/synthesis.ts', '{test/support,scripts/torture/threads}/**/*synthesis.ts', '**/*.d.ts'],
    rules: { 'no-restricted-syntax': 'off' },
  },
  {
    files: ['src/**/*.ts'],
    ignores: ['src/client/**', 'src/console/web/**'],
    rules: {
      'no-restricted-globals': [
        'error',
        {
          name: 'URLSearchParams',
          message: 'Use Query of src/front/query.ts: a hostile query costs it nothing.',
        },
      ],
    },
  },
  {
    files: ['scripts/**/*.ts', 'test/**/*.ts'],
    rules: { 'no-console': 'off' },
  },
  {
    files: ['test/**/*.ts'],
    rules: {
      // t.test() returns a promise that tap itself awaits.
      '@typescript-eslint/no-floating-promises': [
        'error',
        {
          allowForKnownSafePromises: [
            { from: 'package', name: 'PromiseWithSubtest', package: '@tapjs/core' },
          ],
        },
      ],
      '@typescript-eslint/require-await': 'off',
      // A flag that a callback sets between two lines looks constant to it.
      '@typescript-eslint/no-unnecessary-condition': 'off',
    },
  },
);
