// Writes dist/extension.js, which has the client of the language server in it, and LICENSE: ours, and those of the packages that are in the bundle.
import { build } from 'esbuild';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';

const { metafile } = await build({
  entryPoints: ['src/extension.js'],
  outfile: 'dist/extension.js',
  bundle: true,
  minify: true,
  metafile: true,
  platform: 'node',
  target: 'node20',
  mainFields: ['module', 'main'],
  external: ['vscode'],
  logLevel: 'warning',
});

const inputs = Object.values(metafile.outputs).flatMap((output) => Object.entries(output.inputs));
const places = inputs.filter(([, { bytesInOutput }]) => bytesInOutput > 0).map(([file]) => file.match(/^.*node_modules\/(?:@[^/]+\/)?[^/]+/)?.[0]);
const read = (file) => readFileSync(file, 'utf8').trim();
const theirs = [...new Set(places)].filter(Boolean).sort().map((folder) => {
  const license = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
  if (!license) throw new Error(`${folder} has no licence`);
  const { name, version } = JSON.parse(read(`${folder}/package.json`));
  return `dist/extension.js contains ${name} ${version}:\n\n${read(`${folder}/${license}`)}`;
});
const ours = ['The extension is licensed under MIT or Apache-2.0, at your choice.', read('../../LICENSE-MIT'), read('../../LICENSE-APACHE')];
writeFileSync('LICENSE', `${[...ours, ...theirs].join(`\n\n${'-'.repeat(80)}\n\n`)}\n`);
