// The queue: who waits, where, for how long; taking somebody out; being served.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { arena, NASTY, noForeignImages } from './arena.mjs';
import { accessible, closeBrowser, closePage, fitsPhone, Muster, openBrowser, openPage } from './world.mjs';

let muster;

async function allocate(player, more = {}) {
  const { body } = await muster.ask('POST', '/v1/allocations', { ticketId: `t-${player}`, fleet: 'arena', playerId: player, ...more });
  return body;
}

/** One host with one slot: a room of two, and then a line. */
before(async () => {
  await openBrowser();
  muster = await new Muster({ config: arena({ players: 2 }) }).start();
  await muster.agent('host-1', '--slots', '1');
});

after(async () => {
  await closeBrowser();
  await muster.stop();
});

test('nobody waits; then who comes is seen, the longest wait first', async () => {
  const page = await openPage(muster, { at: '#/queue' });
  await page.getByText('Nobody waits', { exact: true }).waitFor();
  await accessible(page, 'queue-empty');
  assert.equal((await allocate('ann')).status, 'Success');
  assert.equal((await allocate('bob')).status, 'Success');
  assert.equal((await allocate(NASTY)).status, 'Queued');
  assert.equal((await allocate('dan', { priority: 3, partyIds: ['eve'] })).status, 'Queued');
  assert.equal((await allocate('fay', { joinOnIds: ['ann'] })).status, 'Queued');
  const rows = page.getByRole('region', { name: 'requests' }).getByRole('row');
  await rows.filter({ hasText: 'fay' }).waitFor();
  const texts = (await rows.allTextContents()).slice(1);
  assert.ok(texts[0].startsWith(NASTY) && texts[1].startsWith('dan') && texts[2].startsWith('fay'), texts.join('\n'));
  assert.match(texts[1], /of 2/);
  await rows.filter({ hasText: 'fay' }).getByRole('link', { name: /^room \d+ of arena$/ }).waitFor();
  await rows.filter({ hasText: 'dan' }).getByRole('link', { name: 'any room of arena' }).waitFor();
  assert.equal(await page.getByRole('region', { name: 'lines' }).getByRole('row').count(), 3);
  await page.getByText('4', { exact: true }).first().waitFor(); // players waiting
  await noForeignImages(page);
  await accessible(page, 'queue');
  await fitsPhone(page, 'queue');
  await closePage(page);
});

test('taking a player out asks first, is told, live, and in the audit', async () => {
  const page = await openPage(muster, { at: '#/queue' });
  const remove = page.getByRole('button', { name: `Remove ${NASTY}` });
  await remove.click();
  await page.getByRole('dialog').getByText('stands at the end').waitFor();
  await page.getByRole('button', { name: 'Leave it' }).click();
  assert.equal((await muster.get('/v1/allocations?state=queued')).items.length, 3);
  await remove.click();
  await page.getByRole('dialog').getByRole('button', { name: `Take ${NASTY} out of the line` }).click();
  await page.getByText(`${NASTY} is out of the line.`).waitFor();
  await remove.waitFor({ state: 'detached' });
  assert.equal((await muster.get('/v1/allocations?state=queued')).items.length, 2);
  assert.equal((await muster.get('/v1/audit')).items[0].action, 'dequeue');
  await noForeignImages(page);
  await closePage(page);
});

test('who is served leaves the list by himself', async () => {
  const page = await openPage(muster, { at: '#/queue?find=fay' });
  await page.getByText('1 of 2 requests').waitFor();
  const [seat] = (await muster.get('/v1/seats?account=ann')).items;
  await muster.ask('POST', `/v1/seats/${seat.id}/kick`);
  const [second] = (await muster.get('/v1/seats?account=bob')).items;
  await muster.ask('POST', `/v1/seats/${second.id}/kick`);
  await page.getByText('1 of 2 requests').waitFor({ state: 'detached' });
  await closePage(page);
});

test('who may only read cannot take anybody out', async () => {
  await allocate('gil');
  await allocate('hal');
  const page = await openPage(muster, { token: await muster.tokenFor('looker', 'muster_read'), at: '#/queue' });
  const remove = page.getByRole('button', { name: 'Remove hal' });
  await remove.waitFor();
  assert.ok(await remove.isDisabled());
  await closePage(page);
});
