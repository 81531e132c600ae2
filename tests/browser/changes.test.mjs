// Changes: what is other than it was, and who did it.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { accessible, closeBrowser, closePage, fitsPhone, Muster, openBrowser, openPage, until } from './world.mjs';

const NASTY = `<img src=x onerror=alert(1)>"'&{{`;
let muster;

const row = (page, text) => page.getByRole('row').filter({ hasText: text });

before(async () => {
  await openBrowser();
  muster = await new Muster().start();
  await muster.gameServer('--region', 'EU', '--max', '4').says(/registered/);
});

after(async () => {
  await closeBrowser();
  await muster.stop();
});

test('a start, servers and what operators did stand in one list, and new ones come by themselves', async () => {
  const page = await openPage(muster, { at: '#/audit' });
  await row(page, /Muster \S+ started with the configuration/).getByText('by itself').waitFor();
  await row(page, /server 1 .*came/).waitFor();
  const ann = await muster.tokenFor('ann', 'muster_admin');
  await muster.ask('POST', '/v1/servers/1/drain', undefined, ann);
  await row(page, 'drained server 1').getByText('ann').waitFor();
  await row(page, 'drained server 1').getByText('127.0.0.1').waitFor();
  await row(page, 'drained server 1').getByRole('link').waitFor();
  await accessible(page, 'changes');
  await fitsPhone(page, 'changes');

  await page.getByLabel('Who').selectOption('ann');
  await row(page, 'started with').waitFor({ state: 'detached' });
  await row(page, 'drained').waitFor();
  await page.getByLabel('Who').selectOption('by itself');
  await row(page, 'drained').waitFor({ state: 'detached' });
  await row(page, 'started with').waitFor();
  await page.getByLabel('Who').selectOption('');
  await page.getByLabel('What').selectOption('drain');
  await until(async () => (await page.getByRole('row').count()) === 2, 'one row');
  await page.getByLabel('What').selectOption('');
  await page.getByLabel('Find').fill('SERVER 1');
  await row(page, 'drained').waitFor();
  await until(() => page.url().includes('find=SERVER'), 'the address');
  await row(page, 'drained').getByRole('link').click();
  await page.getByRole('heading', { name: 'Server 1' }).waitFor();
  await closePage(page);
});

test('many tokens that a program made are one line, and hide nothing', async () => {
  for (let i = 0; i < 30; i++) await muster.tokenFor(`bot-${i}`, 'game');
  const page = await openPage(muster, { at: '#/audit' });
  await row(page, /made 3\d access tokens/).waitFor();
  await row(page, 'drained server 1').waitFor();
  await closePage(page);
});

test('who did it is text, and so is what he wrote', async () => {
  const mallory = await muster.tokenFor(NASTY, 'muster_admin', 'game_ban');
  await muster.ask('POST', '/ban/issue', { account: NASTY, reason: NASTY, expires: '2099-01-01 00:00:00' }, mallory);
  const page = await openPage(muster, { at: '#/audit' });
  await row(page, /issued ban/).getByText(NASTY).first().waitFor();
  assert.equal(await page.locator('img[src="x"]').count(), 0);
  await closePage(page);
});

test('who may only read sees changes without addresses; who may not is told so', async () => {
  const page = await openPage(muster, { token: await muster.tokenFor('looker', 'muster_read'), at: '#/audit' });
  await row(page, /drain server 1/).getByText('ann').waitFor();
  await page.getByText('live', { exact: true }).waitFor();
  await closePage(page);
  const other = await openPage(muster, { token: await muster.tokenFor('player', 'game'), at: '#/audit' });
  await other.getByText('Your token may not see this').waitFor();
  await closePage(other);
});
