// Fleets and hosts: what fits, which version runs where, how a machine is, and whether it may go.
import assert from 'node:assert/strict';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { accessible, closeBrowser, closePage, fitsPhone, goTo, Hosts, Muster, MUSTER, openBrowser, openPage, until } from './world.mjs';

const EVIL = `<img src=x onerror=alert(1)>"'&{{`;
const CONFIG = `
default_region: EU
timeouts: {host_backoff_ms: 1, host_backoff_max_ms: 1}
fleets:
  - {name: default}
  - {name: arena, provider: agent, game: arena, server: main, binary: "${join(dirname(MUSTER), 'arena')}", max_players: 4, versions: [{name: "1.0"}, {name: "2.0"}]}
  - {name: broken, provider: agent, game: broken, server: main, binary: /bin/false, max_players: 4, versions: [{name: "1.0"}]}
`;
let muster;
let host;

const play = async (account, path) => muster.ask('POST', path, { settings: {} }, await muster.tokenFor(account, 'game'));
const audited = async () => (await muster.get('/v1/audit')).items[0];
const rowOf = (page, table, name) => page.getByRole('region', { name: table }).getByRole('row', { name });

before(async () => {
  await openBrowser();
  muster = await new Muster({ config: CONFIG }).start();
  await muster.gameServer('--region', 'EU', '--max', '4').says(/registered/);
  await muster.agent('frankfurt-1');
  host = await until(async () => (await muster.get('/v1/hosts')).items.find((h) => h.passed_over === null), 'a healthy host');
  for (const [account, version] of [['ann', '1.0'], ['ben', '1.0'], ['cat', '2.0']]) {
    const { status, body } = await play(account, `/create/arena/main/${version}`);
    assert.equal(status, 200, JSON.stringify(body));
  }
});

after(async () => {
  await closeBrowser();
  await muster.stop();
});

test('fleets: how their servers come, how many places there are, which versions', async () => {
  const page = await openPage(muster, { at: '#/fleets' });
  await rowOf(page, 'fleets', /^default register by themselves 1 available 0 of 4/).waitFor();
  await rowOf(page, 'fleets', /^arena started by agents .* 3 1\.0\s+2\.0/).waitFor();
  await accessible(page, 'fleets');
  await fitsPhone(page, 'fleets');
  await muster.gameServer('--region', 'EU', '--max', '6').says(/registered/);
  await rowOf(page, 'fleets', /^default .* 2 available 0 of 10/).waitFor(); // without a reload
  await page.getByRole('link', { name: 'default' }).click();
  await page.getByRole('heading', { name: 'Fleet default' }).waitFor();
  await page.locator('.figure', { hasText: 'Slots used' }).getByText('0 of 10').waitFor();
  await page.locator('.figure', { hasText: 'Servers available' }).click();
  await page.getByRole('heading', { name: 'Servers' }).waitFor();
  assert.match(page.url(), /#\/servers\?fleet=default&status=available$/);
  await closePage(page);
});

test('a fleet tells which version runs where, and keeps telling', async () => {
  const page = await openPage(muster, { at: '#/fleets/arena' });
  await rowOf(page, 'Which version runs where', /^1\.0 on the host frankfurt-1 EU 2 /).waitFor();
  await rowOf(page, 'Which version runs where', /^2\.0 on the host frankfurt-1 EU 1 /).waitFor();
  await accessible(page, 'fleet');
  await fitsPhone(page, 'fleet');
  assert.equal((await play('dan', '/create/arena/main/2.0')).status, 200);
  await rowOf(page, 'Which version runs where', /^2\.0 on the host frankfurt-1 EU 2 /).waitFor();
  await page.getByRole('region', { name: 'Which version runs where' }).getByRole('link', { name: 'frankfurt-1' }).first().click();
  await page.getByRole('heading', { name: 'Host frankfurt-1' }).waitFor();
  await closePage(page);
});

test('a version is disabled after a question, nobody can join it, and it is enabled again; both are in the audit', async () => {
  const page = await openPage(muster, { at: '#/fleets/arena' });
  const version = page.locator('.versions li', { has: page.getByRole('heading', { name: '2.0', exact: true }) });
  await version.getByRole('button', { name: 'Disable' }).click();
  await page.getByRole('dialog').getByText('go on to their end').waitFor();
  await page.getByRole('button', { name: 'Disable arena 2.0' }).click();
  await version.getByText('disabled').waitFor();
  assert.match((await audited()).action, /disable/);
  assert.equal((await play('eve', '/create/arena/main/2.0')).body.error.code, 'version_disabled');
  await version.getByRole('button', { name: 'Enable' }).click();
  await version.getByText('enabled').waitFor();
  assert.match((await audited()).action, /enable/);
  await closePage(page);
});

test('hosts: the list with filters in the address, live', async () => {
  const hosts = new Hosts(muster);
  await hosts.beat([{ name: EVIL, region: 'USE', cpu_percent: 97, memory_percent: 40, leaving: true }]);
  const page = await openPage(muster, { at: '#/hosts' });
  await rowOf(page, 'hosts', /^frankfurt-1 healthy EU/).waitFor();
  await page.getByRole('link', { name: EVIL }).waitFor();
  await accessible(page, 'hosts');
  await fitsPhone(page, 'hosts');
  await page.getByLabel('Status').selectOption('leaving');
  await page.getByText('1 hosts').or(page.getByText('1 host')).first().waitFor();
  assert.match(page.url(), /status=leaving/);
  assert.equal(await page.getByRole('link', { name: 'frankfurt-1' }).count(), 0);
  await page.getByLabel('Status').selectOption('');
  await hosts.beat([{ name: 'tokyo-1', region: 'KR' }]);
  await rowOf(page, 'hosts', /^tokyo-1/).waitFor(); // without a reload
  await page.getByRole('link', { name: EVIL }).click();
  await page.getByRole('heading', { name: `Host ${EVIL}` }).waitFor();
  await closePage(page);
});

test('a host tells how it is, what runs there, and what went wrong, with the way to the output', async () => {
  const refused = await play('fay', '/create/broken/main/1.0');
  assert.ok(refused.status >= 400);
  const page = await openPage(muster, { at: `#/hosts/${host.id}` });
  await page.getByText('It is heard of and gets new servers.').waitFor();
  await rowOf(page, 'Rooms on it', /^\d+ open arena 1\.0/).first().waitFor();
  await rowOf(page, 'Last failures', /could not be started/).first().waitFor();
  await accessible(page, 'host');
  await fitsPhone(page, 'host');
  await rowOf(page, 'Last failures', /could not be started/).first().getByRole('link', { name: /^server/ }).click();
  await page.getByRole('heading', { name: /^Server \d+/ }).waitFor();
  await closePage(page);
});

test('a host is found by its name, too', async () => {
  const page = await openPage(muster, { at: '#/hosts/frankfurt-1' });
  await page.getByText('May I take it away now?').waitFor();
  await goTo(page, '#/hosts/frankfurt-9');
  await page.getByText('No host has that name.').waitFor();
  await closePage(page);
});

test('a host answers whether it may be taken away now, and follows what happens', async () => {
  const idle = (await muster.get('/v1/hosts')).items.find((h) => h.name === 'tokyo-1');
  const page = await openPage(muster, { at: `#/hosts/${idle.id}` });
  const answer = page.getByRole('region', { name: 'May I take it away now?' });
  await answer.getByText(/^Yes: nothing runs on it/).waitFor();
  await goTo(page, `#/hosts/${host.id}`);
  await answer.getByText(/^No: \d+ rooms? with \d+ players? runs? on it; disable it, and it is free when they end/).waitFor();
  await muster.ask('POST', `/v1/hosts/${host.id}/disable`);
  await answer.getByText(/it gets nothing new, and is free when they end/).waitFor(); // without a reload
  await accessible(page, 'host-removal');
  await muster.ask('POST', `/v1/hosts/${host.id}/enable`);
  await answer.getByText(/disable it, and it is free when they end/).waitFor();
  await closePage(page);
});

test('a host is disabled after a question and enabled again; both are in the audit', async () => {
  const page = await openPage(muster, { at: `#/hosts/${host.id}` });
  await page.getByRole('button', { name: 'Disable' }).click();
  await page.getByRole('dialog').getByText('Nothing new is started there.').waitFor();
  await page.getByRole('button', { name: 'Leave it' }).click();
  assert.equal((await muster.get(`/v1/hosts/${host.id}`)).enabled, true);
  await page.getByRole('button', { name: 'Disable' }).click();
  await page.getByRole('button', { name: 'Disable host frankfurt-1' }).click();
  await page.getByText('An operator disabled it.').waitFor();
  assert.equal((await muster.get(`/v1/hosts/${host.id}`)).enabled, false);
  assert.match((await audited()).action, /disable/);
  await page.getByRole('button', { name: 'Enable' }).click();
  await page.getByText('It is heard of and gets new servers.').waitFor();
  assert.match((await audited()).action, /enable/);
  await closePage(page);
});

test('who may only read cannot change hosts and versions, and is told why', async () => {
  const token = await muster.tokenFor('looker', 'muster_read');
  const page = await openPage(muster, { token, at: `#/hosts/${host.id}` });
  const disable = page.getByRole('button', { name: 'Disable' });
  await disable.waitFor();
  assert.ok(await disable.isDisabled());
  await goTo(page, '#/fleets/arena');
  await page.getByRole('heading', { name: '1.0', exact: true }).waitFor();
  assert.ok(await disable.first().isDisabled());
  assert.match(await disable.first().getAttribute('title'), /needs the scope muster_admin/);
  await closePage(page);
});

test('what is not there, and what one may not see, is said in words', async () => {
  const page = await openPage(muster, { at: '#/hosts/999' });
  await page.getByText('There is no host 999.').waitFor();
  await goTo(page, '#/fleets/nothing');
  await page.getByText(/There is no fleet/).waitFor();
  const token = await muster.tokenFor('player', 'game');
  const other = await openPage(muster, { token, at: '#/hosts' });
  await other.getByText('Your token may not see this').waitFor();
  await goTo(other, '#/fleets');
  await other.getByText('Your token may not see this').waitFor();
  await closePage(other);
  await closePage(page);
});
