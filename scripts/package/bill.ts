/** What an archive consists of: a bill of materials (CycloneDX), and for people a page with the licences. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A part of an archive. */
export interface Part {
  readonly name: string;
  readonly version: string;
  /** SPDX. */
  readonly licence: string;
  /** Paths of the licence's texts, from the root of the archive. */
  readonly texts: readonly string[];
  /** Its repository, or the archive of its source with the archive's SHA-256. */
  readonly source?: { readonly url: string; readonly sha256?: string };
}

interface Component {
  readonly 'bom-ref': string;
  externalReferences?: readonly object[];
}
interface Bill {
  serialNumber?: string;
  readonly metadata: { timestamp?: string; component: { 'bom-ref': string; name: string; type: string } };
  components: Component[];
  dependencies: { ref: string; dependsOn: string[] }[];
}

const isLicence = (file: string): boolean => /^(?:licen[cs]e|copying|notice|third.?party)/i.test(file);
const nameIn = (path: string): string => path.replace(/^.*node_modules\//, '');

/**
 * Reads what packages say of themselves. A package that holds only the binaries of another one has no text: the other's holds.
 *
 * @param root of the archive
 * @param paths of its packages
 * @throws Error if a package has no licence, or no text of it
 */
export const partsOf = (root: string, paths: readonly string[]): readonly Part[] => {
  const textsIn = (path: string): readonly string[] =>
    readdirSync(join(root, path))
      .filter(isLicence)
      .map((file) => join(path, file));
  return paths.map((path) => {
    const manifest = JSON.parse(readFileSync(join(root, path, 'package.json'), 'utf8')) as {
      name: string;
      version: string;
      license?: string;
      repository?: string | { readonly url: string };
    };
    const own = textsIn(path);
    const parents = paths.filter((other) => other !== path && nameIn(path).includes(nameIn(other)));
    const texts = own.length > 0 ? own : parents.flatMap(textsIn);
    const { name, version, license } = manifest;
    if (license === undefined || texts.length === 0) throw new Error(`${path} lacks the text of its licence`);
    const repository =
      typeof manifest.repository === 'string' ? manifest.repository : manifest.repository?.url;
    const source = repository === undefined ? {} : { source: { url: repository } };
    return { name, version, licence: license, texts, ...source };
  });
};

/** Runs npm in a folder. @returns its standard output */
export const npm = (folder: string, ...args: readonly string[]): string => {
  // `npm run` names its program; a test does not run under npm.
  const path = process.env['npm_execpath'];
  const [program, first] = path === undefined ? ['npm', []] : [process.execPath, [path]];
  return execFileSync(program, [...first, ...args], { cwd: folder, encoding: 'utf8', maxBuffer: 2 ** 26 });
};

/** Parts that npm does not know. */
const ownParts: readonly Part[] = [
  { name: 'syrinx-en', version: '1', licence: 'Apache-2.0', texts: ['LICENSE', 'models/syrinx-en/NOTICE'] },
  {
    ...{ name: 'lame', version: '3.100', licence: 'LGPL-2.0-or-later', texts: ['scripts/lame/COPYING'] },
    // As in scripts/lame/build.sh.
    source: {
      url: 'https://deb.debian.org/debian/pool/main/l/lame/lame_3.100.orig.tar.gz',
      sha256: 'ddfe36cab873794038ae2c1210557ad34857a4b6bdc515785d1da9e175b1da1e',
    },
  },
  {
    name: 'scowl',
    version: '2020.12.07',
    licence: 'HPND-sell-variant',
    texts: ['workers/engines/g2p/COPYING'],
  },
  {
    // Of it, the AAC encoder of libavcodec. As in scripts/aac/build.sh.
    ...{ name: 'ffmpeg', version: '5.1.9', licence: 'LGPL-2.1-or-later', texts: ['scripts/aac/COPYING'] },
    source: {
      url: 'https://deb.debian.org/debian/pool/main/f/ffmpeg/ffmpeg_5.1.9.orig.tar.xz',
      sha256: 'd9b593bb2ba93d4b50f74177e0cdcd41747e708596367deed0c30348a71dd176',
    },
  },
  // In libopus-wasm. Its build checks this hash.
  {
    ...{ name: 'opus', version: '1.6.1', licence: 'BSD-3-Clause' },
    texts: ['node_modules/libopus-wasm/THIRD_PARTY_NOTICES.md'],
    source: {
      url: 'https://downloads.xiph.org/releases/opus/opus-1.6.1.tar.gz',
      sha256: '6ffcb593207be92584df15b32466ed64bbec99109f007c82205f0194572411a1',
    },
  },
];

const referencesOf = ({ source }: Part): readonly object[] =>
  source === undefined
    ? []
    : [
        source.sha256 === undefined
          ? { type: 'vcs', url: source.url }
          : {
              type: 'distribution',
              url: source.url,
              hashes: [{ alg: 'SHA-256', content: source.sha256 }],
            },
      ];

const componentOf = (part: Part): Component => ({
  ...ownComponentOf(part),
  externalReferences: referencesOf(part),
});

const ownComponentOf = ({ name, version, licence }: Part): Component => ({
  'bom-ref': `${name}@${version}`,
  ...{
    type: name === 'syrinx-en' || name === 'scowl' ? 'data' : 'library',
    name,
    version,
    purl: `pkg:generic/${name}@${version}`,
  },
  ...{ licenses: [{ license: { id: licence } }] },
});

/**
 * Writes SBOM.cdx.json: what npm knows of the parts, with the hashes of the lock file. It has neither a date nor a serial
 * number, so that equal sources make equal archives.
 *
 * @param project the folder of the checkout, with its packages installed
 * @param root of the archive
 */
export const writeBill = (project: string, root: string, parts: readonly Part[]): void => {
  // `--omit dev` would leave out packages that development uses as well.
  const output = npm(project, 'sbom', '--sbom-format', 'cyclonedx', '--package-lock-only');
  const bill = JSON.parse(output) as Bill;
  delete bill.serialNumber;
  delete bill.metadata.timestamp;
  const product = bill.metadata.component;
  // npm takes the name of the folder.
  Object.assign(product, { name: 'syrinx', type: 'application' });
  const references = new Set(parts.map(({ name, version }) => `${name}@${version}`));
  bill.components = bill.components.filter((component) => references.has(component['bom-ref']));
  // The lock file names no addresses, so npm knows none.
  for (const component of bill.components) {
    const part = parts.find(({ name, version }) => `${name}@${version}` === component['bom-ref']);
    if (part !== undefined) component.externalReferences = referencesOf(part);
  }
  if (bill.components.length !== references.size) throw new Error('npm sbom does not know all packages');
  bill.components.push(...ownParts.map(componentOf));
  references.add(product['bom-ref']);
  bill.dependencies = bill.dependencies
    .filter(({ ref }) => references.has(ref))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((to) => references.has(to)) }));
  writeFileSync(join(root, 'SBOM.cdx.json'), `${JSON.stringify(bill, null, 2)}\n`);
};

const preface = `# Licences

Run this for yourself or as a service for others: no licence puts a duty on you.

If you pass the archive on, it is as a whole under the GPL-3.0, because espeak-ng is. scripts/package/README.md says what
you must give with it. syrinx itself is under the Apache License 2.0 (LICENSE).

| Part | Version | Licence | Text |
| --- | --- | --- | --- |
`;

/** Writes LICENCES.md. @param root of the archive */
export const writeLicences = (root: string, parts: readonly Part[]): void => {
  const rows = [...ownParts, ...parts].map(
    ({ name, version, licence, texts }) =>
      `| ${name} | ${version} | ${licence} | ${texts.map((text) => `[${text}](${text})`).join(', ')} |\n`,
  );
  writeFileSync(join(root, 'LICENCES.md'), preface + rows.join(''));
};
