// Players: found, where they are, what happened to them, and what can be done about it.
import assert from 'node:assert/strict';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { accessible, closeBrowser, closePage, fitsPhone, goTo, Muster, MUSTER, openBrowser, openPage, shot, until } from './world.mjs';

const NASTY = `<img src=x onerror=alert(1)>"'&{{`;
const CONFIG = `
default_region: EU
fleets:
  - {name: default}
  - {name: arena, provider: agent, game: arena, server: main, binary: ${join(dirname(MUSTER), 'arena')}, max_players: 2, versions: [{name: "1.0"}]}
`;
let muster;
let room;

const play = async (account, path, body, expected = 200) => {
  const { status, body: answer } = await muster.ask('POST', path, body, await muster.tokenFor(account, 'game'));
  assert.equal(status, expected, JSON.stringify(answer));
  return answer;
};
const row = (page, text) => page.getByRole('row').filter({ hasText: text });
const steps = (page) => page.locator('.time-line .step').allTextContents();

before(async () => {
  await openBrowser();
  muster = await new Muster({ config: CONFIG }).start();
  await muster.agent();
});

after(async () => {
  await closeBrowser();
  await muster.stop();
});

test('nobody is here; who comes is seen without a reload, and found by the beginning of his name', async () => {
  const page = await openPage(muster, { at: '#/players' });
  await page.getByText('Nobody is here').waitFor();
  room = await play('anna', '/create/arena/main/1.0', {});
  await row(page, 'anna').getByText('reserved').waitFor();
  await row(page, 'anna').getByRole('link', { name: `room ${room.id}` }).waitFor();
  await play('ben', '/v1/allocations', { ticketId: 'b1', fleet: 'arena', playerId: 'ben', joinOnIds: ['anna'] });
  await row(page, 'ben').waitFor();
  await play('cat', '/v1/allocations', { ticketId: 'c1', fleet: 'arena', playerId: 'cat', joinOnIds: ['anna'] }, 202);
  await row(page, 'cat').getByText('waiting').waitFor();
  await accessible(page, 'players');
  await fitsPhone(page, 'players');
  await page.getByLabel('Name begins with').fill('an');
  await row(page, 'ben').waitFor({ state: 'detached' });
  assert.ok(page.url().includes('search=an'));
  await page.getByLabel('Name begins with').fill('nobody');
  await page.getByText('No player whose name begins with “nobody”').waitFor();
  await page.getByRole('link', { name: 'what happened to “nobody”' }).click();
  await page.getByText('Nothing is known of him').waitFor();
  await closePage(page);
});

test('one player: where, until when, and his journey in words; kicked, it goes on before the eyes', async () => {
  const page = await openPage(muster, { at: '#/players/ben' });
  await page.getByRole('link', { name: `room ${room.id}` }).first().waitFor();
  await page.getByText('on his way to a room').waitFor();
  await page.getByText(/^in \d+/).first().waitFor();
  await until(async () => (await steps(page)).includes('reserved'), 'the seat in the journey');
  await page.getByRole('button', { name: 'Kick' }).click();
  await page.getByRole('dialog').getByLabel('What he may be told').fill('too loud');
  await page.getByRole('dialog').getByRole('button', { name: `Kick ben from room ${room.id}` }).click();
  await page.getByText(`ben is out of room ${room.id}.`).waitFor();
  await until(async () => (await steps(page))[0] === 'kicked', 'the kick in the journey');
  await page.getByText(/was thrown out/).waitFor();
  await page.getByText('He is nowhere').waitFor();
  assert.equal((await muster.get('/v1/audit')).items.find((e) => e.action !== 'issue').action, 'kick');
  await accessible(page, 'player');
  await fitsPhone(page, 'player');
  await closePage(page);
});

test('what happened at 03:12: a window around a time, kept in the address', async () => {
  const page = await openPage(muster, { at: '#/players/ben' });
  await until(async () => (await steps(page)).length > 0, 'the journey');
  await page.getByLabel(/^Around/).fill('2020-01-01T03:12');
  await page.getByText('Nothing happened to him in that time.').waitFor();
  assert.ok(page.url().includes('at=2020-01-01T03'));
  const two = (n) => String(n).padStart(2, '0');
  const now = await page.evaluate(() => { const d = new Date(); return [d.getFullYear(), d.getMonth() + 1, d.getDate(), d.getHours(), d.getMinutes()]; });
  await page.getByLabel(/^Around/).fill(`${now[0]}-${two(now[1])}-${two(now[2])}T${two(now[3])}:${two(now[4])}`);
  await until(async () => (await steps(page)).includes('kicked'), 'the journey around now');
  await page.getByLabel('When').selectOption('1h');
  await until(async () => (await steps(page)).includes('kicked') && page.url().includes('in=1h'), 'the last hour');
  await page.getByText(/^Complete since/).waitFor();
  await closePage(page);
});

test('who waits is taken out of the line; who is banned loses his seat and is refused in words', async () => {
  // ben's seat came free, so cat has it by now: two others wait.
  await play('dan', '/v1/allocations', { ticketId: 'd1', fleet: 'arena', playerId: 'dan', joinOnIds: ['anna'] }, 202);
  const page = await openPage(muster, { at: '#/players/dan' });
  await page.getByText('for a seat in').waitFor();
  await page.getByRole('button', { name: 'Remove from the queue' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Take dan out of the line' }).click();
  await page.getByText('dan waits no more.').waitFor();
  await page.getByText('He is nowhere').waitFor();
  assert.ok((await muster.get('/v1/audit')).items.some((e) => e.action === 'dequeue'));

  await page.getByRole('button', { name: 'Ban', exact: true }).click();
  await page.getByRole('dialog').getByLabel(/^Reason/).fill('cheats');
  await page.getByRole('dialog').getByRole('button', { name: 'Ban dan' }).click();
  await page.getByText('dan is banned.').waitFor();
  await page.getByText('cheats').first().waitFor();
  await play('dan', '/create/arena/main/1.0', {}, 423);
  await until(async () => (await steps(page))[0] === 'refused', 'the refusal');
  await page.getByText(/was refused.*banned/).waitFor();
  await shot(page, 'player-banned');
  await page.getByRole('button', { name: 'Lift' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Lift the ban of dan' }).click();
  await page.getByText('he may join').first().waitFor();
  await closePage(page);
});

test('who may only read sees it all and changes nothing', async () => {
  const page = await openPage(muster, { token: await muster.tokenFor('looker', 'muster_read'), at: '#/players/anna' });
  await until(async () => (await steps(page)).length > 0, 'the journey');
  const ban = page.getByRole('button', { name: 'Ban', exact: true });
  assert.ok(await ban.isDisabled());
  assert.match(await ban.getAttribute('title'), /game_ban/);
  await closePage(page);
});

test('a name is text, whatever is in it', async () => {
  await play(NASTY, '/create/arena/main/1.0', { info: { name: NASTY } });
  const page = await openPage(muster, { at: '#/players' });
  await row(page, NASTY).getByRole('link', { name: NASTY }).click();
  await page.getByRole('heading', { name: NASTY }).waitFor();
  await until(async () => (await steps(page)).includes('reserved'), 'the journey');
  assert.equal(await page.locator('img[src="x"]').count(), 0);
  await goTo(page, '#/players/a%2Fb%25c');
  await page.getByRole('heading', { name: 'a/b%c' }).waitFor();
  await page.getByText('He is nowhere').waitFor();
  await closePage(page);
});
