// Lobbies: what one waits for, who is there, its start, and how it is called off.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { NASTY, noForeignImages } from './arena.mjs';
import { accessible, closeBrowser, closePage, fitsPhone, goTo, Muster, openBrowser, openPage } from './world.mjs';

let muster;

const player = (account, ...more) =>
  muster.run('player-client', '--account', account, '--client', `127.0.0.1:${muster.ports.client}`, '--stay', ...more);

async function lobby(accounts, more = {}) {
  const [first, ...others] = accounts.map((account) => ({ account, name: account === 7 ? NASTY : `player-${account}` }));
  const { status, body } = await muster.ask('POST', '/v1/lobbies', { region: 'EU', map: 'caldera', teams: [[first], others], ...more });
  assert.ok(status < 300, JSON.stringify(body));
  return body;
}

before(async () => {
  await openBrowser();
  muster = await new Muster().start();
});

after(async () => {
  await closeBrowser();
  await muster.stop();
});

test('none yet; then one without a server says so', async () => {
  const page = await openPage(muster, { at: '#/lobbies' });
  await page.getByText('No lobby yet').waitFor();
  await lobby([1, 2]);
  await page.getByText('No lobby now').waitFor();
  await page.getByRole('button', { name: 'Show those that are over' }).click();
  await page.getByText('No server took it (no servers).').waitFor();
  await page.getByRole('row').nth(1).getByRole('link').first().click();
  await page.getByText('It was called off. No server took it (no servers).').waitFor();
  await page.getByText('Its players hear:').waitFor();
  await accessible(page, 'lobby-aborted');
  await closePage(page);
});

test('one that loads: what it waits for, who is loaded, loading and missing; then it starts', async () => {
  await muster.gameServer('--region', 'EU', '--max', '4').says(/registered/);
  const { id } = await lobby([7, 8, 9], { map: NASTY, groups: [[7, 8], [9]], requeue: true });
  const page = await openPage(muster, { at: `#/lobbies/${id}` });
  await page.getByText('It waits for 3 of 3 players to load.').waitFor();
  const row = (name) => page.getByRole('region', { name: 'players of the lobby' }).getByRole('row').filter({ hasText: name });
  await row('player-8').getByText('missing').waitFor();
  player(8, '--load-after', '0');
  await row('player-8').getByText('loaded', { exact: true }).waitFor();
  player(7, '--never-load');
  await row(NASTY).getByText('loading').waitFor();
  await page.getByText('It waits for 2 of 3 players to load.').waitFor();
  await page.getByText(`${NASTY}, player-8: in this lobby`).waitFor();
  await noForeignImages(page);
  await accessible(page, 'lobby');
  await fitsPhone(page, 'lobby');
  await goTo(page, '#/lobbies');
  await page.getByText('2 of 3 players to load').waitFor();
  await noForeignImages(page);
  await accessible(page, 'lobbies');
  await fitsPhone(page, 'lobbies');
  await closePage(page);
});

test('an abort asks first, tells the players, and is in the audit', async () => {
  const { id } = (await muster.get('/v1/lobbies?state=loading')).items[0];
  const page = await openPage(muster, { at: `#/lobbies/${id}` });
  await page.getByRole('button', { name: 'Abort' }).click();
  await page.getByRole('dialog').getByText('their groups are to be queued again').waitFor();
  await page.getByRole('button', { name: 'Leave it' }).click();
  assert.equal((await muster.get(`/v1/lobbies/${id}`)).state, 'loading');
  await page.getByRole('button', { name: 'Abort' }).click();
  await page.getByLabel('What they hear').fill(`sorry ${NASTY}`);
  await page.getByRole('dialog').getByRole('button', { name: `Abort lobby ${id}` }).click();
  await page.getByText('It was called off. Somebody called it off.').waitFor();
  await page.getByText(`sorry ${NASTY}`).waitFor();
  await page.getByText('player-9: to be queued again').waitFor();
  const [entry] = (await muster.get('/v1/audit')).items;
  assert.deepEqual([entry.action, entry.target.kind], ['abort', 'lobby']);
  await noForeignImages(page);
  await closePage(page);
});

test('one that has started says where, and leads to its match', async () => {
  player(21, '--load-after', '0');
  player(22, '--load-after', '0');
  const { id } = await lobby([21, 22]);
  const page = await openPage(muster, { at: `#/lobbies/${id}` });
  await page.getByText(/^It started on server \d+, and its match goes on\.$/).waitFor();
  await page.getByText('none: no server was lost before the start').waitFor();
  const { session } = await muster.get(`/v1/lobbies/${id}`);
  await page.getByRole('link', { name: session, exact: true }).click();
  await page.getByRole('heading', { name: `Match ${session}` }).waitFor();
  await page.getByRole('link', { name: 'player-22' }).waitFor();
  await accessible(page, 'match-of-lobby');
  await closePage(page);
});

test('who may only read cannot abort', async () => {
  const { id } = (await muster.get('/v1/lobbies?state=started')).items[0];
  const page = await openPage(muster, { token: await muster.tokenFor('looker', 'muster_read'), at: `#/lobbies/${id}` });
  const abort = page.getByRole('button', { name: 'Abort' });
  await abort.waitFor();
  assert.ok(await abort.isDisabled());
  await goTo(page, '#/lobbies/12');
  await page.getByText('There is no lobby 12.').waitFor();
  await closePage(page);
});
