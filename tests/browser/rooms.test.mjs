// Rooms: the list, one of them with its players, kicking, ending, and how it ended.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { arena, enter, NASTY, noForeignImages, seat } from './arena.mjs';
import { accessible, closeBrowser, closePage, fitsPhone, goTo, Muster, openBrowser, openPage, until } from './world.mjs';

let muster, room, nasty;

before(async () => {
  await openBrowser();
  muster = await new Muster({ config: arena() }).start();
  await muster.agent();
  room = await seat(muster, 'create', NASTY, { settings: { map: NASTY, rules: { laps: 3 } }, info: { hat: NASTY } });
  nasty = await enter(room);
});

after(async () => {
  nasty?.socket.destroy();
  await closeBrowser();
  await muster.stop();
});

test('no room yet says how to get one', async () => {
  const empty = await new Muster({ config: arena() }).start();
  try {
    const page = await openPage(empty, { at: '#/rooms' });
    await page.getByText('No room yet').waitFor();
    await accessible(page, 'rooms-empty');
    await closePage(page);
  } finally {
    await empty.stop();
  }
});

test('the list shows who is there, who is coming, and a room that comes', async () => {
  const page = await openPage(muster, { at: '#/rooms' });
  const row = page.getByRole('row').filter({ has: page.getByRole('link', { name: room.id, exact: true }) });
  await row.getByText('1 of 4').waitFor();
  await row.getByText('open').waitFor();
  await seat(muster, 'join', 'bert');
  await row.getByText('1 + 1 coming of 4').waitFor();
  const second = await seat(muster, 'create', 'carla');
  await page.getByRole('link', { name: second.id, exact: true }).waitFor();
  await noForeignImages(page);
  await accessible(page, 'rooms');
  await fitsPhone(page, 'rooms');
  await closePage(page);
});

test('filters are in the address', async () => {
  const page = await openPage(muster, { at: '#/rooms?state=ended' });
  await page.getByText('No room fits').waitFor();
  await page.getByLabel('State').selectOption('open');
  await page.getByRole('link', { name: room.id, exact: true }).waitFor();
  assert.match(page.url(), /state=open/);
  await page.getByLabel('Find').fill('"laps":3');
  await page.getByText('1 of 2 rooms').waitFor();
  await closePage(page);
});

test('one room: settings, seats with deadlines, its log; everything of players is text', async () => {
  const page = await openPage(muster, { at: `#/rooms/${room.id}` });
  await page.getByText('1 player is in it, 1 on the way; 2 places are free.').waitFor();
  await page.getByText(`"map": ${JSON.stringify(NASTY)}`).waitFor();
  const seats = page.getByRole('region', { name: 'seats' });
  await seats.getByRole('link', { name: NASTY }).waitFor();
  const bert = seats.getByRole('row').filter({ hasText: 'bert' });
  const first = await bert.locator('time').textContent();
  assert.match(first, /^in \d+ min$/);
  await page.getByRole('log').getByText('joined over tcp').waitFor();
  await noForeignImages(page);
  await accessible(page, 'room');
  await fitsPhone(page, 'room');
  const joined = await enter(await seat(muster, 'join', 'dora'));
  await seats.getByRole('row').filter({ hasText: 'dora' }).getByText('taken').waitFor();
  await page.getByRole('log').getByText('dora joined').waitFor();
  joined.socket.destroy();
  await seats.getByRole('link', { name: 'dora' }).waitFor({ state: 'detached' });
  await closePage(page);
});

test('a kick is asked for, done, told to the game server, and in the audit', async () => {
  const eve = await enter(await seat(muster, 'join', 'eve'));
  const page = await openPage(muster, { at: `#/rooms/${room.id}` });
  await page.getByRole('button', { name: 'Kick eve' }).click();
  await page.getByRole('dialog').getByText('He may come again').waitFor();
  await page.getByRole('button', { name: 'Leave it' }).click();
  assert.equal((await muster.get('/v1/seats?account=eve')).items.length, 1);
  await page.getByRole('button', { name: 'Kick eve' }).click();
  await page.getByLabel('What the game server may show him').fill('too loud');
  await page.getByRole('dialog').getByRole('button', { name: /^Kick eve out of room/ }).click();
  await page.getByText(`eve is out of room ${room.id}.`).waitFor();
  await eve.over;
  assert.match(eve.heard, /too loud/);
  assert.equal((await muster.get('/v1/seats?account=eve')).items.length, 0);
  const [entry] = (await muster.get('/v1/audit')).items;
  assert.deepEqual([entry.action, entry.target.kind], ['kick', 'seat']);
  await page.getByRole('button', { name: 'Kick eve' }).waitFor({ state: 'detached' });
  await closePage(page);
});

test('who may only read cannot kick, end or write', async () => {
  const page = await openPage(muster, { token: await muster.tokenFor('looker', 'muster_read'), at: `#/rooms/${room.id}` });
  const kick = page.getByRole('button', { name: `Kick ${NASTY}` });
  await kick.waitFor();
  assert.ok(await kick.isDisabled());
  assert.ok(await page.getByRole('button', { name: 'Terminate' }).isDisabled());
  assert.ok(await page.getByLabel('Line for its input').isDisabled());
  await closePage(page);
});

test('ending its server ends the room, which then says how it ended', async () => {
  const page = await openPage(muster, { at: `#/rooms/${room.id}` });
  await page.getByRole('button', { name: 'Terminate' }).click();
  await page.getByRole('dialog').getByText('everybody in it is thrown out').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: /^Terminate server/ }).click();
  await page.getByText('It is over. An operator ended it.').waitFor();
  await page.getByText('It ended by itself, as it should (exit code 0).').waitFor();
  await page.getByText('Its last lines').waitFor();
  await until(async () => (await muster.get('/v1/audit')).items[0].action === 'terminate', 'the audit');
  await accessible(page, 'room-ended');
  await goTo(page, '#/rooms/999999');
  await page.getByText('There is no room 999999.').waitFor();
  await closePage(page);
});
