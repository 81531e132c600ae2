// Refusals: how many, why, and who again and again.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { accessible, closeBrowser, closePage, fitsPhone, Muster, openBrowser, openPage, until } from './world.mjs';

const NASTY = `<img src=x onerror=alert(1)>"'&{{`;
const CONFIG = `
default_region: EU
fleets:
  - {name: default}
  - {name: arena, provider: agent, game: arena, server: main, binary: /bin/false, max_players: 2, versions: [{name: "1.0"}]}
`;
let muster;

const refused = async (account, times, code) => {
  const token = await muster.tokenFor(account, 'game');
  for (let i = 0; i < times; i++) {
    const { body } = await muster.ask('POST', '/create/arena/main/1.0', {}, token);
    assert.equal(body.error.code, code, JSON.stringify(body));
  }
};
const row = (page, text) => page.getByRole('row').filter({ hasText: text });

before(async () => {
  await openBrowser();
  muster = await new Muster({ config: CONFIG }).start();
});

after(async () => {
  await closeBrowser();
  await muster.stop();
});

test('nobody is refused at first; then it says how many, why, whose doing it is, and who again and again', async () => {
  const page = await openPage(muster, { at: '#/refusals' });
  await page.getByText('Nobody was refused').first().waitFor();
  await refused('anna', 4, 'no_host'); // there is no host at all
  await refused('ben', 1, 'no_host');
  await muster.ask('POST', '/ban/issue', { account: 'cat', reason: 'cheats', expires: '2099-01-01 00:00:00' });
  await refused('cat', 3, 'banned');
  const bars = page.getByRole('list', { name: 'Refusals by reason' }).getByRole('listitem');
  await until(async () => (await bars.count()) === 2 && /5 of 2 players/.test(await bars.first().textContent()), 'the bars');
  assert.match(await bars.first().textContent(), /no host/);
  assert.match(await bars.nth(1).textContent(), /banned3 of 1 player/);
  await page.getByText('5 of 8 refusals are our doing').waitFor();
  await page.getByText('1 player got that answer again and again').waitFor();
  await row(page, 'anna').getByText('4 times').waitFor();
  await row(page, 'cat').getByText('3 times').waitFor();
  assert.equal(await row(page, 'ben').count(), 0);
  await accessible(page, 'refusals');
  await fitsPhone(page, 'refusals');

  await page.getByRole('combobox', { name: 'Reason' }).selectOption('banned');
  await row(page, 'anna').waitFor({ state: 'detached' });
  await row(page, 'cat').waitFor();
  await page.getByLabel('Window').selectOption('15m');
  await until(() => page.url().includes('in=15m') && page.url().includes('reason=banned'), 'the address');
  await row(page, 'cat').getByRole('link', { name: 'cat' }).click();
  await page.getByRole('heading', { name: 'cat' }).waitFor();
  await closePage(page);
});

test('who may only read sees it, who may not is told, and a name is text', async () => {
  await refused(NASTY, 3, 'banned'); // cat's address is banned with him, and it is his, too
  const page = await openPage(muster, { token: await muster.tokenFor('looker', 'muster_read'), at: '#/refusals' });
  await row(page, NASTY).waitFor();
  assert.equal(await page.locator('img[src="x"]').count(), 0);
  await closePage(page);
  const other = await openPage(muster, { token: await muster.tokenFor('player', 'game'), at: '#/refusals' });
  await other.getByText('Your token may not see this').waitFor();
  await closePage(other);
});
