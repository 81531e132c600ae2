// Nodes of a cell: the console of a standby leads to the leader's, and the overview shows all of them.
import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { accessible, Child, closeBrowser, closePage, fitsPhone, Muster, openBrowser, openPage, shot, until } from './world.mjs';

const lib = resolve(dirname(fileURLToPath(import.meta.url)), '../lib');
const POSTGRES = `
import sys, time
sys.path.insert(0, ${JSON.stringify(lib)})
from postgres import Postgres
with Postgres() as server:
    print("url", server.url(), flush=True)
    time.sleep(600)
`;

let postgres;
let a;
let b;

/** Starts it as a node, and does not wait until it leads. */
async function stand(muster, name, url) {
  muster.args = ['--store', url, '--cell', 'eu', '--node', name];
  const p = muster.ports;
  muster.child = new Child(process.env.MUSTER_BIN ?? resolve(lib, '../../build/muster'), ['serve', '--dev', '--config', muster.config,
    '--data', join(muster.folder, 'data'), '--http', `127.0.0.1:${p.http}`, '--server-port', p.server, '--manager-port', p.manager,
    '--client-port', p.client, ...muster.args].map(String));
  const [, http, server, manager, client] = await muster.child.says(
    /standby http=\S*:(\d+) server=\S*:(\d+) manager=\S*:(\d+) client=\S*:(\d+)/);
  muster.ports = { http, server, manager, client };
}

before(async () => {
  await openBrowser();
  postgres = new Child('/usr/bin/python3', ['-c', POSTGRES]);
  const [, url] = await postgres.says(/url (\S+)\n/);
  a = new Muster();
  await stand(a, 'a', url);
  await a.child.says(/ready http=/);
  b = new Muster();
  mkdirSync(join(b.folder, 'data'), { mode: 0o700 });
  copyFileSync(join(a.folder, 'data/secret'), join(b.folder, 'data/secret'));
  await stand(b, 'b', url);
  await until(async () => (await a.get('/v1/cluster')).nodes.some((n) => n.name === 'b' && n.ready), 'a standby that is ready');
});

after(async () => {
  await closeBrowser();
  await b?.stop();
  await a?.stop();
  await postgres?.stop();
});

test('the overview shows who leads, who stands by and how far each is', async () => {
  const page = await openPage(a);
  const nodes = page.getByRole('table', { name: 'Nodes' });
  await nodes.getByRole('row', { name: /^a .* leads/ }).waitFor();
  await nodes.getByRole('row', { name: /^b .* ready 0 / }).waitFor();
  await page.getByText('a leads cell eu in epoch 1; its standby is ready to take over.').waitFor();
  await accessible(page, 'nodes');
  await fitsPhone(page, 'nodes');
  await shot(page, 'nodes');
  await closePage(page);
});

test('the console of a standby leads to that of the leader, logged in when one was', async () => {
  const page = await openPage(b, { token: '' });
  await page.getByRole('heading', { name: 'This node stands by' }).waitFor();
  const link = page.getByRole('link', { name: 'Open the console of a' });
  assert.equal(await link.getAttribute('href'), `${a.url}/`);
  await accessible(page, 'standby');
  await fitsPhone(page, 'standby');
  await shot(page, 'standby');
  page.places.push(a.url); // it goes there, as told
  await link.click();
  await page.getByLabel('Access token').waitFor();
  assert.ok(page.url().startsWith(a.url));
  await closePage(page);
});

test('a console whose node stops leading says so, leads on, and opens again when it leads', async () => {
  const page = await openPage(a);
  page.places.push(b.url); // redirects are announced, and not followed
  await page.getByRole('table', { name: 'Nodes' }).waitFor();
  assert.equal((await a.ask('POST', '/v1/cluster/step-down', {})).status, 200);
  const link = page.getByRole('link', { name: 'Open the console of b' });
  await link.waitFor();
  assert.equal(await link.getAttribute('href'), `${b.url}/#token=${a.token}`);
  await until(async () => (await b.get('/v1/cluster')).nodes.some((n) => n.name === 'a' && n.ready), 'a as a standby');
  assert.equal((await b.ask('POST', '/v1/cluster/step-down', {})).status, 200);
  await page.getByText(/^a leads cell eu in epoch 3/).first().waitFor();
  await closePage(page);
});
