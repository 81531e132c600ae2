// Bundles the console and writes it as C arrays, which src/api/console.c serves:
//   node build.mjs --out FOLDER
// FOLDER then holds the files as a browser sees them, and console_files.c.
import { build } from 'esbuild';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { feature } from 'topojson-client';

const here = dirname(fileURLToPath(import.meta.url));
const require = createRequire(import.meta.url);
const at = process.argv.indexOf('--out');
const out = at > 0 ? process.argv[at + 1] : join(here, 'dist');
mkdirSync(out, { recursive: true });

// The coast lines as one SVG path: degrees, y downwards, a decimal place where it can be seen.
function landPath() {
  const topology = JSON.parse(readFileSync(require.resolve('world-atlas/land-110m.json'), 'utf8'));
  const land = feature(topology, topology.objects.land);
  const shapes = land.type === 'FeatureCollection' ? land.features : [land];
  const short = (n) => String(Math.round(n * 10) / 10);
  // What goes over the date line begins anew on the other side; else it were a line across the map.
  const letter = (points, i) =>
    i === 0 || Math.abs(points[i][0] - points[i - 1][0]) > 180 ? 'M' : 'L';
  const ring = (points) => {
    const texts = points.map(([x, y]) => `${short(x)} ${short(-y)}`);
    return `${texts.map((t, i) => (t === texts[i - 1] ? '' : letter(points, i) + t)).join('')}Z`;
  };
  const polygons = shapes.flatMap((s) =>
    s.geometry.type === 'Polygon' ? [s.geometry.coordinates] : s.geometry.coordinates);
  const south = (rings) => rings[0].every(([, y]) => y < -58); // nobody runs a server there
  return polygons.filter((p) => !south(p)).flat().map(ring).join('');
}

const land = {
  name: 'land',
  setup(b) {
    b.onResolve({ filter: /^virtual:land$/ }, () => ({ path: 'land', namespace: 'land' }));
    b.onLoad({ filter: /.*/, namespace: 'land' }, () =>
      ({ contents: `export default ${JSON.stringify(landPath())}`, loader: 'js' }));
  },
};

const result = await build({
  entryPoints: { app: join(here, 'src/main.tsx') },
  bundle: true,
  minify: true,
  format: 'esm',
  target: ['es2021'],
  jsx: 'automatic',
  jsxImportSource: 'preact',
  entryNames: '[name]-[hash]',
  outdir: out,
  metafile: true,
  write: false,
  legalComments: 'none', // licences.txt has them whole
  logLevel: 'warning',
  plugins: [land],
});

function licences() {
  const used = new Set(Object.keys(result.metafile.inputs)
    .map((path) => path.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//)?.[1]).filter(Boolean));
  used.add('world-atlas'); // its data is in the bundle, made into a path above
  return [...used].sort().map((name) => {
    const folder = join(here, 'node_modules', name);
    const file = readdirSync(folder).find((f) => /^licen[cs]e/i.test(f));
    const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    return `${name} ${version}\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`;
  }).join(`\n${'-'.repeat(72)}\n\n`);
}

const types = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  txt: 'text/plain; charset=utf-8',
};
const files = result.outputFiles.map((f) => ({
  path: `/console/${f.path.split('/').pop()}`, body: Buffer.from(f.contents), kept: true,
}));
const named = (end) => files.find((f) => f.path.endsWith(end)).path;
const page = readFileSync(join(here, 'src/index.html'), 'utf8')
  .replace('{{js}}', named('.js')).replace('{{css}}', named('.css'));
files.push({ path: '/', body: Buffer.from(page), kept: false, file: 'index.html' });
files.push({ path: '/console/icon.svg', body: readFileSync(join(here, 'src/icon.svg')), kept: false });
files.push({ path: '/console/licences.txt', body: Buffer.from(licences()), kept: false });

// ── as C ─────────────────────────────────────────────────────────────────────────────────────
function array(name, bytes) {
  const lines = [];
  for (let i = 0; i < bytes.length; i += 24)
    lines.push('    ' + [...bytes.subarray(i, i + 24)].join(',') + ',');
  return `static const unsigned char ${name}[] = {\n${lines.join('\n')}\n};\n`;
}

let c = '/* Made by web/build.mjs. */\n#include "api/console.h"\n\n';
const rows = files.map((f, i) => {
  const packed = gzipSync(f.body, { level: 9 });
  const digest = createHash('sha256').update(f.body).digest('hex').slice(0, 16);
  c += array(`plain_${i}`, f.body) + array(`packed_${i}`, packed);
  writeFileSync(join(out, f.file ?? f.path.split('/').pop()), f.body);
  const type = types[(f.file ?? f.path).split('.').pop()];
  return `    {"${f.path}", "${type}", "\\"${digest}\\"", ${f.kept},\n` +
    `     {(const char *)plain_${i}, sizeof(plain_${i})},\n` +
    `     {(const char *)packed_${i}, sizeof(packed_${i})}},\n`;
});
c += `\nconst struct console_file console_files[] = {\n${rows.join('')}};\n`;
c += `const size_t n_console_files = ${files.length};\n`;
writeFileSync(join(out, 'console_files.c'), c);
