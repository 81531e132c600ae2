// Tickets: the list, and why one ended as it did.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { arena, NASTY, noForeignImages, seat } from './arena.mjs';
import { accessible, closeBrowser, closePage, fitsPhone, goTo, Muster, openBrowser, openPage, until } from './world.mjs';

let muster;

async function allocate(lobby, region = 'EU', ...more) {
  const asked = muster.run('allocate', '--lobby', lobby, '--region', region, '--manager', `127.0.0.1:${muster.ports.manager}`, ...more);
  await asked.over;
  const { items } = await muster.get(`/v1/tickets?lobby=${lobby}`);
  assert.ok(items[0], asked.out);
  return items[0];
}

/** One that refuses and looks best, one that takes the match, one that drains, and one that is full. */
before(async () => {
  await openBrowser();
  muster = await new Muster({ config: arena({ players: 1 }) }).start();
  await muster.agent('host-1', '--slots', '2');
  await muster.gameServer('--region', 'EU', '--max', '100', '--refuse', '--cpu', '10', '--memory', '10').says(/registered/);
  await muster.gameServer('--region', 'EU', '--max', '10', '--cpu', '50', '--memory', '30').says(/registered/);
  await muster.gameServer('--region', 'EU', '--max', '10').says(/registered/);
  await muster.gameServer('--region', 'EU', '--max', '1', '--lie-load', '1').says(/registered/);
  await muster.ask('POST', '/v1/servers/3/drain');
  await until(async () => (await muster.get('/v1/servers/4')).passed_over === 'full', 'a full server');
  await until(async () => (await muster.get('/v1/servers/1')).score > (await muster.get('/v1/servers/2')).score &&
    (await muster.get('/v1/servers/2')).cpu_percent === 50, 'their heartbeats');
});

after(async () => {
  await closeBrowser();
  await muster.stop();
});

test('why: who was tried, every term of his score, the times, and who was passed over', async () => {
  const ticket = await allocate(11, 'EU', '--chat-server', 'chat-1');
  const why = await muster.get(`/v1/tickets/${ticket.id}/why`);
  const page = await openPage(muster, { at: `#/tickets/${ticket.id}` });
  await page.getByText(why.sentence).waitFor();
  const tried = page.getByRole('region', { name: 'servers tried' });
  const rows = await tried.getByRole('row').allTextContents();
  assert.equal(rows.length, 3);
  assert.match(rows[1], /^11refused.*−2\.00.*−1\.00/);
  assert.match(rows[2], /^22acknowledged0 of 10 −0\.0050 % −10\.0030 % −3\.0087\.00$/);
  await page.getByText('It acknowledged').waitFor();
  await page.getByText('Answered', { exact: true }).waitFor();
  const passed = page.getByRole('list', { name: 'servers passed over' });
  assert.match((await passed.allTextContents()).join(), /full1.*draining1/);
  await noForeignImages(page);
  await accessible(page, 'ticket-why');
  await fitsPhone(page, 'ticket-why');
  await closePage(page);
});

test('why not: nothing in that region', async () => {
  const ticket = await allocate(12, 'SG');
  const page = await openPage(muster, { at: `#/tickets/${ticket.id}` });
  await page.getByText((await muster.get(`/v1/tickets/${ticket.id}/why`)).sentence).waitFor();
  await page.getByText('failed', { exact: true }).waitFor();
  await accessible(page, 'ticket-failed');
  await closePage(page);
});

test('a room: which host was asked, and when its server was ready', async () => {
  const placed = await seat(muster, 'create', NASTY);
  const { ticket } = await muster.get(`/v1/rooms/${placed.id}`);
  const page = await openPage(muster, { at: `#/tickets/${ticket}` });
  await page.getByRole('region', { name: 'hosts asked' }).getByText('started its server').waitFor();
  await page.getByText('Its server was ready').waitFor();
  await page.getByRole('link', { name: NASTY }).waitFor();
  await noForeignImages(page);
  await accessible(page, 'ticket-room');
  await closePage(page);
});

test('an allocation of a player, by its number and by the name its sender gave it', async () => {
  const name = 'a/b?c#d %41 <i>';
  const body = { ticketId: name, fleet: 'arena', playerId: 'zoe', info: {} };
  await muster.ask('POST', '/v1/allocations', { ...body, ticketId: 'first', playerId: 'yan' });
  const answer = await muster.ask('POST', '/v1/allocations', body);
  assert.equal(answer.body.status, 'Queued', JSON.stringify(answer.body));
  const page = await openPage(muster, { at: `#/tickets/${encodeURIComponent(`alloc:${name}`)}` });
  await page.getByText(/^Waits at position 1 for 1 seat/).waitFor();
  await page.getByText(name, { exact: true }).waitFor();
  await page.getByText('1, behind 0 players').waitFor();
  await accessible(page, 'ticket-allocation');
  await page.getByRole('button', { name: 'Remove zoe' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Take zoe out of the line' }).click();
  await page.getByText(/^(Cancelled|Failed)/).waitFor();
  await closePage(page);
});

test('the list has all kinds, the newest first, grows by itself, and filters are in the address', async () => {
  const page = await openPage(muster, { at: '#/tickets' });
  await page.getByRole('row').nth(4).waitFor();
  const ids = (await page.getByRole('row').allTextContents()).slice(1).map((r) => parseInt(r, 10));
  assert.deepEqual(ids, [...ids].sort((a, b) => b - a));
  const ticket = await allocate(21);
  await page.getByRole('link', { name: ticket.id, exact: true }).waitFor();
  await noForeignImages(page);
  await accessible(page, 'tickets');
  await fitsPhone(page, 'tickets');
  await page.getByLabel('State').selectOption('failed');
  await page.getByLabel('For').selectOption('match');
  await page.getByText(/^1 tickets?$/).waitFor();
  assert.match(page.url(), /state=failed&kind=match/);
  await goTo(page, '#/tickets?account=yan');
  await page.getByRole('row').filter({ hasText: 'yan' }).filter({ hasText: 'place' }).waitFor();
  assert.equal(await page.getByRole('row').filter({ hasNotText: 'yan' }).count(), 1, 'the head alone');
  await goTo(page, '#/tickets?fleet=arena&state=ended');
  await page.getByText('No ticket fits').waitFor();
  await closePage(page);
});

test('who may not look is told, and a ticket that is not there too', async () => {
  const page = await openPage(muster, { token: await muster.tokenFor('p', 'game'), at: '#/tickets' });
  await page.getByText('Your token may not see this').waitFor();
  await closePage(page);
  const other = await openPage(muster, { at: '#/tickets/99999' });
  await other.getByText('There is no ticket 99999.').waitFor();
  await closePage(other);
});
