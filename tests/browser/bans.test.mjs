// Bans: found, issued, changed, lifted; by whom may.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { accessible, closeBrowser, closePage, fitsPhone, Muster, openBrowser, openPage, shot, until } from './world.mjs';

const NASTY = `<img src=x onerror=alert(1)>"'&{{`;
let muster;

const ban = async (account, reason, expires = '9999-12-31 23:59:59') => {
  const { status, body } = await muster.ask('POST', '/ban/issue', { account, reason, expires });
  assert.equal(status, 200, JSON.stringify(body));
  return body.id;
};
const row = (page, text) => page.getByRole('row').filter({ hasText: text });

before(async () => {
  await openBrowser();
  muster = await new Muster().start();
});

after(async () => {
  await closeBrowser();
  await muster.stop();
});

test('nobody is banned at first, and the page says how one is', async () => {
  const page = await openPage(muster, { at: '#/bans' });
  await page.getByText('Nobody is banned').waitFor();
  await page.getByText('muster ban issue').waitFor();
  await shot(page, 'bans-empty');
  await closePage(page);
});

test('a ban is issued, refused when there is one already, changed and lifted, each in the audit', async () => {
  const page = await openPage(muster, { at: '#/bans' });
  await page.getByRole('button', { name: 'Ban a player' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Account').fill('mallory');
  await dialog.getByLabel(/^Reason/).fill('aims too well');
  await dialog.getByLabel('Until').selectOption('forever');
  await shot(page, 'bans-issue');
  await page.keyboard.press('Tab');
  await dialog.getByLabel(/^Reason/).press('Enter'); // a form: the keyboard sends it
  await page.getByText('The player is banned.').waitFor();
  await row(page, 'mallory').getByText('forever').waitFor();
  await row(page, 'mallory').getByText('aims too well').waitFor();
  await row(page, 'mallory').getByText('admin').waitFor();

  await page.getByRole('button', { name: 'Ban a player' }).click();
  await dialog.getByLabel('Account').fill('mallory');
  await dialog.getByLabel(/^Reason/).fill('again');
  await dialog.getByRole('button', { name: 'Ban a player' }).click();
  await dialog.getByText('This player is banned already.').waitFor();
  await dialog.getByRole('button', { name: 'Leave it' }).click();

  await row(page, 'mallory').getByRole('button', { name: 'Edit' }).click();
  await dialog.getByLabel(/^Reason/).fill('aimed too well');
  await dialog.getByLabel('Until').selectOption('1h');
  await dialog.getByRole('button', { name: 'Change the ban of mallory' }).click();
  await row(page, 'aimed too well').getByText(/in (60|59) min|in 1 h/).waitFor();

  await row(page, 'mallory').getByRole('button', { name: 'Lift' }).click();
  await dialog.getByText('He may join again at once').waitFor();
  await dialog.getByRole('button', { name: 'Lift the ban of mallory' }).click();
  await page.getByText('mallory may join again.').waitFor();
  await page.getByText('Nobody is banned').waitFor();
  const { items } = await muster.get('/v1/audit');
  assert.deepEqual(items.slice(0, 3).map((e) => e.action), ['lift', 'update', 'ban']);
  await closePage(page);
});

test('a date that is past is refused in words, and nothing changes', async () => {
  const page = await openPage(muster, { at: '#/bans' });
  await page.getByRole('button', { name: 'Ban a player' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Account').fill('early');
  await dialog.getByLabel(/^Reason/).fill('x');
  await dialog.getByLabel('Until').selectOption('date');
  await dialog.getByLabel(/^Date/).fill('2020-01-01T00:00');
  await dialog.getByRole('button', { name: 'Ban a player' }).click();
  await dialog.getByText('expires is in the past.').waitFor();
  assert.ok(!(await muster.get('/v1/bans')).items.some((b) => b.account === 'early'));
  await closePage(page);
});

test('a ban that comes and goes elsewhere is seen without a reload, and found by its words', async () => {
  const page = await openPage(muster, { at: '#/bans' });
  await page.getByRole('heading', { name: 'Bans' }).waitFor();
  const first = await ban('eve', 'listens in');
  await row(page, 'eve').waitFor();
  await ban('trent', 'sells seats', '2099-01-01 00:00:00');
  await row(page, 'trent').waitFor();
  await page.getByLabel('Find').fill('SELLS');
  await row(page, 'eve').waitFor({ state: 'detached' });
  assert.ok(page.url().includes('find=SELLS'));
  await page.getByLabel('Find').fill('');
  await row(page, 'eve').waitFor();
  await muster.ask('DELETE', `/ban/${first}`);
  await row(page, 'eve').waitFor({ state: 'detached' });
  await closePage(page);
});

test('a ban that runs out goes to those that are over by itself', async () => {
  const soon = new Date(Date.now() + 4500).toISOString().slice(0, 19).replace('T', ' ');
  await ban('brief', 'for a moment', soon);
  const page = await openPage(muster, { at: '#/bans?state=expired' });
  await row(page, 'brief').getByText('expired').waitFor();
  await row(page, 'brief').getByText(/over since/).waitFor();
  assert.equal(await row(page, 'brief').getByRole('button').count(), 0);
  await closePage(page);
});

test('who may only read sees bans and is told what he lacks', async () => {
  const page = await openPage(muster, { token: await muster.tokenFor('looker', 'muster_read'), at: '#/bans' });
  await page.getByText('needs the scope game_ban').first().waitFor();
  const lift = row(page, 'trent').getByRole('button', { name: 'Lift' });
  assert.ok(await lift.isDisabled());
  assert.match(await lift.getAttribute('title'), /game_ban/);
  await shot(page, 'bans-readonly');
  await closePage(page);
});

test('whatever is in a name, a reason or a token, it is text', async () => {
  await ban(NASTY, NASTY);
  const page = await openPage(muster, { at: '#/bans' });
  await row(page, NASTY).waitFor();
  assert.equal(await page.locator('img[src="x"]').count(), 0);
  await row(page, NASTY).getByRole('button', { name: 'Lift' }).click();
  await page.getByRole('dialog').getByText(`Lift the ban of ${NASTY}?`).waitFor();
  await page.keyboard.press('Escape');
  await row(page, NASTY).getByRole('link').click();
  await until(() => page.url().includes('#/players/'), 'the page of the player');
  await closePage(page);
});

test('light, dark and on a phone nothing is cut off, and axe finds nothing', async () => {
  await ban('a-player-with-quite-a-long-name-of-his-own', 'a reason that goes on and on so that it is longer than its column');
  const page = await openPage(muster, { at: '#/bans' });
  await row(page, 'trent').waitFor();
  await accessible(page, 'bans');
  await fitsPhone(page, 'bans');
  await closePage(page);
});
