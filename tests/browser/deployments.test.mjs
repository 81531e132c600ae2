// Deployments: an archive comes with a bar, is switched to, crashes, and gets out of quarantine.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { accessible, closeBrowser, closePage, fitsPhone, Muster, openBrowser, openPage, shot, until } from './world.mjs';

const NASTY = `<img src=x onerror=alert(1)>"'&{{`;
const CONFIG = `
default_region: EU
timeouts: {host_backoff_ms: 1, host_backoff_max_ms: 1}
fleets:
  - {name: default}
  - {name: hello, provider: agent, game: hello, server: main, binary: server, max_players: 8, versions: [{name: "1.0"}]}
`;
let muster;

/** A .tar.gz whose server only says why it will not run; `bytes` make it larger. */
function archive(name, script = '#!/bin/sh\necho no such map >&2\nexit 7\n', bytes = 0) {
  const folder = join(muster.folder, `${name}.d`);
  mkdirSync(folder);
  writeFileSync(join(folder, 'server'), script, { mode: 0o755 });
  if (bytes) writeFileSync(join(folder, 'data'), Buffer.from(Array.from({ length: bytes }, () => Math.random() * 256)));
  const file = join(muster.folder, `${name}.tar.gz`);
  execFileSync('tar', ['-C', folder, '-czf', file, '.']);
  return file;
}

const version = async (name = '1.0') => (await muster.get('/v1/versions')).items.find((v) => v.name === name);
const actions = async () => (await muster.get('/v1/audit')).items.map((e) => e.action);

before(async () => {
  await openBrowser();
  muster = await new Muster({ config: CONFIG }).start();
  await muster.agent();
});

after(async () => {
  await closeBrowser();
  await muster.stop();
});

test('an archive is uploaded and kept; switching asks first, and both are in the audit', async () => {
  const page = await openPage(muster, { at: '#/deployments' });
  await page.getByRole('heading', { name: 'hello 1.0' }).waitFor();
  await page.getByLabel(/^Archive/).setInputFiles(archive('one'));
  await page.getByText('one.tar.gz').waitFor();
  await page.getByLabel(/^Version/).fill('1.0');
  await page.getByRole('button', { name: 'Upload', exact: true }).click();
  await page.getByText(/Deployment \d+ is kept. Nothing uses it/).waitFor();
  const row = page.getByRole('region', { name: 'Deployments of hello 1.0' }).getByRole('row').nth(1);
  await row.getByText('kept').waitFor();
  await row.getByRole('button', { name: 'Switch' }).click();
  await page.getByRole('dialog').getByText('Rooms that run go on as they are').waitFor();
  await shot(page, 'deployments-switch');
  assert.equal((await version()).wanted, null);
  await page.getByRole('dialog').getByRole('button', { name: /^Switch hello 1.0/ }).click();
  await row.getByText('in use').waitFor();
  await row.getByText('1 of 1 host').waitFor();
  assert.deepEqual((await actions()).slice(0, 2), ['switch', 'deploy']);
  await closePage(page);
});

test('an archive that is none is refused in words, and nothing is kept', async () => {
  const page = await openPage(muster, { at: '#/deployments' });
  await page.getByLabel(/^Version/).fill('1.0');
  await page.getByRole('button', { name: 'Upload', exact: true }).click();
  await page.getByText('Choose an archive first').waitFor();
  const text = join(muster.folder, 'readme.zip');
  writeFileSync(text, 'this is no archive');
  const kept = (await muster.get('/v1/deployments')).items.length;
  await page.getByLabel(/^Archive/).setInputFiles(text);
  await page.getByRole('button', { name: 'Upload', exact: true }).click();
  await page.getByRole('alert').getByText(/archive|tar|zip/i).waitFor();
  await shot(page, 'deployments-refused');
  assert.equal((await muster.get('/v1/deployments')).items.length, kept);
  await closePage(page);
});

test('a large upload shows how far it is and can be stopped; a file can be dropped', async () => {
  const page = await openPage(muster, { at: '#/deployments' });
  const file = archive('large', undefined, 8 << 20);
  await page.getByRole('heading', { name: 'hello 1.0' }).waitFor();
  // A slow line, so that there is something to see.
  const line = await page.context().newCDPSession(page);
  await line.send('Network.enable');
  await line.send('Network.emulateNetworkConditions', { offline: false, latency: 1, downloadThroughput: -1, uploadThroughput: 1 << 20 });
  await page.getByLabel(/^Archive/).setInputFiles(file);
  await page.getByLabel(/^Version/).fill('2.0');
  await page.getByRole('button', { name: 'Upload', exact: true }).click();
  const bar = page.getByRole('progressbar', { name: /large.tar.gz/ });
  await until(async () => (await bar.getAttribute('value')) > 0, 'the bar to move');
  await page.getByText(/\d+ %, .* of 8.0 MiB/).waitFor();
  await shot(page, 'deployments-upload');
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByText('The upload was stopped. Nothing was kept.').waitFor();
  assert.ok(!(await version('2.0')));
  await line.send('Network.emulateNetworkConditions', { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: -1 });

  const dropped = await page.evaluateHandle(() => {
    const data = new DataTransfer();
    data.items.add(new File(['x'], 'dropped.zip'));
    return data;
  });
  await page.locator('.drop').dispatchEvent('drop', { dataTransfer: dropped });
  await page.getByText('dropped.zip').waitFor();
  await closePage(page);
});

test('one that only crashes is quarantined; the page says why and how to get out', async () => {
  const page = await openPage(muster, { at: '#/deployments' });
  const ann = await muster.tokenFor('ann', 'game');
  await page.getByRole('heading', { name: 'hello 1.0' }).waitFor();
  await until(async () => {
    await muster.ask('POST', '/create/hello/main/1.0', {}, ann);
    return (await version()).quarantined;
  }, 'three crashes');
  await page.getByText(/^Quarantined: .*no such map/).waitFor();
  await page.getByText('Upload an archive that works').waitFor();
  await accessible(page, 'deployments');
  await fitsPhone(page, 'deployments');
  await page.getByRole('button', { name: 'Enable' }).click();
  await page.getByRole('dialog').getByText('This ends the quarantine').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Enable hello 1.0' }).click();
  await page.getByText('enabled', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Disable' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Disable hello 1.0' }).click();
  await page.getByText('disabled', { exact: true }).waitFor();
  assert.deepEqual((await actions()).slice(0, 2), ['disable', 'enable']);
  await closePage(page);
});

test('who may only read cannot upload, switch or enable', async () => {
  const page = await openPage(muster, { token: await muster.tokenFor('looker', 'muster_read'), at: '#/deployments' });
  const enable = page.getByRole('button', { name: 'Enable' });
  await enable.waitFor();
  assert.ok(await enable.isDisabled());
  const send = page.getByRole('button', { name: 'Upload', exact: true });
  assert.ok(await send.isDisabled());
  assert.match(await send.getAttribute('title'), /muster_admin/);
  assert.ok(await page.getByLabel(/^Archive/).isDisabled());
  await closePage(page);
});

test('names are text, whatever is in them', async () => {
  const mallory = await muster.tokenFor(NASTY, 'muster_admin');
  const page = await openPage(muster, { token: mallory, at: '#/deployments' });
  await page.getByLabel(/^Archive/).setInputFiles(archive('nasty', '#!/bin/sh\nexit 8\n'));
  await page.getByLabel(/^Version/).fill('1.0');
  await page.getByRole('button', { name: 'Upload', exact: true }).click();
  await page.getByRole('row').filter({ hasText: NASTY }).waitFor();
  assert.equal(await page.locator('img[src="x"]').count(), 0);
  await closePage(page);
});
