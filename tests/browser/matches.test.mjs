// Matches: the list as they come and go, one of them, and ending it.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { noForeignImages } from './arena.mjs';
import { accessible, closeBrowser, closePage, fitsPhone, goTo, Muster, openBrowser, openPage } from './world.mjs';

const silence = (ms) => `timeouts: { heartbeat_ms: ${ms} }\n`; // after which a server counts as gone
let muster, servers;

async function allocate(lobby) {
  await muster.run('allocate', '--lobby', lobby, '--region', 'EU', '--players', '6', '--manager', `127.0.0.1:${muster.ports.manager}`).over;
  const { items } = await muster.get(`/v1/sessions?lobby=${lobby}`);
  return items[0];
}

before(async () => {
  await openBrowser();
  muster = await new Muster({ config: silence(600000) }).start();
  servers = [muster.gameServer('--region', 'EU', '--max', '9', '--players', '2')];
  await servers[0].says(/registered/);
});

after(async () => {
  await closeBrowser();
  await muster.stop();
});

test('none yet; one that comes is seen at once, with its players', async () => {
  const page = await openPage(muster, { at: '#/matches' });
  await page.getByText('No match yet').waitFor();
  await accessible(page, 'matches-empty');
  const match = await allocate(31);
  const row = page.getByRole('row').filter({ has: page.getByRole('link', { name: match.id, exact: true }) });
  await row.getByText('31 of cli').waitFor();
  await row.getByText('2 of 6').waitFor();
  await noForeignImages(page);
  await accessible(page, 'matches');
  await fitsPhone(page, 'matches');
  await closePage(page);
});

test('one match: where it is, when it was acknowledged, when it ends by itself', async () => {
  const match = await allocate(32);
  const page = await openPage(muster, { at: `#/matches/${match.id}` });
  await page.getByText('Its server holds it and is ready.').waitFor();
  await page.getByText('Acknowledged', { exact: true }).waitFor();
  await page.getByText('2 of 6 are in it').waitFor();
  await page.getByText('Ends by itself').waitFor();
  await accessible(page, 'match');
  await fitsPhone(page, 'match');
  await closePage(page);
});

test('ending asks first, is done, said, and in the audit; the list drops it by itself', async () => {
  const match = await allocate(33);
  const list = await openPage(muster, { at: '#/matches' });
  await list.getByRole('link', { name: match.id, exact: true }).first().waitFor();
  const page = await openPage(muster, { at: `#/matches/${match.id}` });
  await page.getByRole('button', { name: 'End' }).click();
  await page.getByRole('button', { name: 'Leave it' }).click();
  assert.equal((await muster.get(`/v1/sessions/${match.id}`)).state, 'open');
  await page.getByRole('button', { name: 'End' }).click();
  await page.getByRole('dialog').getByRole('button', { name: `End match ${match.id}` }).click();
  await page.getByText(/An operator ended it\./).waitFor();
  const [entry] = (await muster.get('/v1/audit')).items;
  assert.deepEqual([entry.action, entry.target.id], ['end', match.id]);
  await list.getByText('33 of cli').waitFor({ state: 'detached' });
  await list.getByLabel('State').selectOption('all');
  await list.getByText('33 of cli').waitFor();
  assert.match(list.url(), /state=all/);
  await closePage(list);
  await closePage(page);
});

test('who may only read cannot end it; one that is not there is said', async () => {
  const match = await allocate(34);
  const page = await openPage(muster, { token: await muster.tokenFor('looker', 'muster_read'), at: `#/matches/${match.id}` });
  const end = page.getByRole('button', { name: 'End' });
  await end.waitFor();
  assert.ok(await end.isDisabled());
  await goTo(page, '#/matches/99999');
  await page.getByText(/^There is no .* 99999\.$/).waitFor();
  await closePage(page);
});

test('a match whose server has no connection says so at once, and when it counts as lost', async () => {
  const match = await allocate(35);
  const page = await openPage(muster, { at: `#/matches/${match.id}` });
  await page.getByText('Its server holds it and is ready.').waitFor();
  await servers[0].stop('SIGTERM');
  await page.getByText(/^Its server has no connection\. /).waitFor();
  assert.equal((await muster.get(`/v1/sessions/${match.id}`)).state, 'open');
  await muster.kill9(); // the next one is less patient
  writeFileSync(muster.config, silence(1000));
  await muster.start();
  await page.getByText(/^Its server is gone\. It is kept/).waitFor();
  assert.equal((await muster.get(`/v1/sessions/${match.id}`)).state, 'lost');
  await closePage(page);
});
