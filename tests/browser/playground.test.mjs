// The playground: real requests of made-up players and services, and the same as curl.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { accessible, closeBrowser, closePage, fitsPhone, Muster, MUSTER, openBrowser, openPage, shot, until } from './world.mjs';

const NASTY = `<img src=x onerror=alert(1)>"'&{{`;
const CONFIG = `
default_region: EU
fleets:
  - {name: default}
  - {name: arena, provider: agent, game: arena, server: main, binary: ${join(dirname(MUSTER), 'arena')}, max_players: 2, versions: [{name: "1.0"}]}
`;
let muster;

before(async () => {
  await openBrowser();
  muster = await new Muster({ config: CONFIG }).start();
  await muster.agent();
  await muster.gameServer('--region', 'EU', '--max', '9').says(/registered/);
});

after(async () => {
  await closeBrowser();
  await muster.stop();
});

const choose = (page, name) => page.getByLabel('Call').selectOption({ label: name });
const send = (page, who) => page.getByRole('button', { name: `Send as ${who}` }).click();
const answer = (page) => page.getByRole('article').first();

/** Sends, and the body of the answer that came. */
async function did(page, who, status = 200) {
  const had = await page.getByRole('article').count();
  await send(page, who);
  await page.getByRole('article').nth(had).waitFor();
  await answer(page).getByText(String(status), { exact: true }).waitFor();
  return JSON.parse(await answer(page).locator('pre').textContent());
}

test('a player creates a room, a friend joins him, a third stands in line and leaves it', async () => {
  const page = await openPage(muster, { at: '#/playground' });
  await page.getByLabel('Game, server and version').selectOption('arena/main/1.0');
  await page.getByText('Starts a real server process').waitFor();
  const room = await did(page, 'try-ann');
  assert.deepEqual(room.settings.map, 'ice');
  await answer(page).getByRole('link', { name: `room ${room.id}` }).waitFor();
  await accessible(page, 'playground');
  await fitsPhone(page, 'playground');

  await page.getByLabel('try-ben').check();
  await choose(page, 'Join friends');
  await page.getByLabel('Friends, with commas').fill('try-ann');
  const friend = await did(page, 'try-ben');
  assert.equal(friend.status, 'Success');
  assert.equal(friend.sessionId, room.id);

  await page.getByLabel('try-cat').check();
  await page.getByLabel('Friends, with commas').fill('try-ann');
  const waits = await did(page, 'try-cat', 202);
  assert.equal(waits.status, 'Queued');
  assert.equal(waits.queuePosition, 1);
  await answer(page).getByRole('link', { name: 'the queue' }).waitFor();
  await choose(page, 'Leave the line');
  assert.equal(await page.getByLabel('Name of the ticket').inputValue(), waits.ticketId);
  await did(page, 'try-cat');
  assert.equal((await muster.get('/v1/allocations?player=try-cat')).items[0].state, 'cancelled');

  await choose(page, 'Where is he?');
  const where = await did(page, 'try-cat');
  assert.deepEqual(where.seats, []);
  await closePage(page);
});

test('what it shows as curl does the same in a terminal', async () => {
  const page = await openPage(muster, { at: '#/playground?do=rooms' });
  await page.getByLabel('Game, server and version').selectOption('arena/main/1.0');
  await page.getByLabel('Filter').fill('{"map": ["ice", "it\'s"]}');
  const text = await page.locator('.command code').textContent();
  assert.match(text, /^MUSTER_TOKEN=\$\(muster token issue --account try-ann --scopes game\)\ncurl /);
  const out = execFileSync('sh', ['-c', text.replace('muster token', `${MUSTER} token`)],
    { env: { ...process.env, MUSTER_URL: muster.url, MUSTER_TOKEN: muster.token }, stdio: ['ignore', 'pipe', 'ignore'] });
  const here = await did(page, 'try-ann');
  assert.equal(here.rooms.length, 1);
  assert.deepEqual(JSON.parse(out).rooms.map((r) => r.id), here.rooms.map((r) => r.id));
  assert.match(await answer(page).textContent(), /\d ms/);
  await closePage(page);
});

test('a service makes a lobby and aborts it, and places a party', async () => {
  const page = await openPage(muster, { at: '#/playground' });
  await choose(page, 'Create a lobby');
  const lobby = await did(page, 'a service', 201);
  assert.equal(lobby.players.length, 4);
  await answer(page).getByRole('link', { name: `lobby ${lobby.id}` }).waitFor();
  await choose(page, 'Abort a lobby');
  assert.equal(await page.getByLabel('Number of the lobby').inputValue(), lobby.id);
  await did(page, 'a service');
  await until(async () => (await muster.get(`/v1/lobbies/${lobby.id}`)).state === 'aborted', 'the end of the lobby');
  await choose(page, 'Ask for a place for a party');
  await page.getByLabel('Who comes along').fill('try-dan');
  const party = await did(page, 'a service');
  assert.equal(party.party.length, 1);
  await closePage(page);
});

test('a refusal is shown with its status and sentence, what is no JSON is not sent at all', async () => {
  const page = await openPage(muster, { at: '#/playground?do=join' });
  await page.getByLabel('Filter').fill('{"map": ');
  await page.getByText(/settings is no JSON/).waitFor();
  assert.ok(await page.getByRole('button', { name: 'Send as try-ann' }).isDisabled());
  await page.getByLabel('Filter').fill('{"map": {"@func": "like"}}');
  const refused = await did(page, 'try-ann', 400);
  assert.match(refused.error.message, /unknown @func/);
  await shot(page, 'playground-refused');
  await closePage(page);
});

test('names and settings are text, whatever is in them', async () => {
  const page = await openPage(muster, { at: '#/playground' });
  await page.getByLabel('Another player').fill(NASTY);
  await page.getByRole('button', { name: 'Add' }).click();
  await page.getByLabel('Settings').fill(JSON.stringify({ map: NASTY }));
  const room = await did(page, NASTY);
  assert.equal(room.settings.map, NASTY);
  assert.equal(await page.locator('img[src="x"]').count(), 0);
  const text = await page.locator('.command code').textContent();
  assert.ok(text.includes(`--account '<img src=x onerror=alert(1)>"'\\''&{{'`), text);
  await closePage(page);
});

test('who may make no tokens pastes one, and is told so', async () => {
  const page = await openPage(muster, { token: await muster.tokenFor('looker', 'muster_read'), at: '#/playground?do=where' });
  await page.getByText('Your token may not make tokens for players').waitFor();
  assert.ok(await page.getByRole('button', { name: 'Send as try-ann' }).isDisabled());
  await page.getByLabel('Another player').fill('eve');
  await page.getByLabel('His token').fill(await muster.tokenFor('eve', 'game'));
  await page.getByRole('button', { name: 'Add' }).click();
  const where = await did(page, 'eve');
  assert.equal(where.account, 'eve');
  await choose(page, 'Create a lobby');
  await page.getByText('To act as a service your token needs').waitFor();
  await shot(page, 'playground-readonly');
  await closePage(page);
});
