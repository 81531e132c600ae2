// Game servers: one with its log and its input, how it ended, its matches, and a drain.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { arena, enter, NASTY, noForeignImages, seat } from './arena.mjs';
import { accessible, closeBrowser, closePage, fitsPhone, Muster, openBrowser, openPage, until } from './world.mjs';

let muster;
const players = [];

async function room(account) {
  const placed = await seat(muster, 'create', account);
  const player = await enter(placed);
  players.push(player);
  return { ...await muster.get(`/v1/rooms/${placed.id}`), player };
}

before(async () => {
  await openBrowser();
  muster = await new Muster({ config: arena() }).start();
  await muster.agent();
  await muster.gameServer('--region', 'EU', '--max', '4', '--cpu', '10', '--memory', '20').says(/registered/);
});

after(async () => {
  for (const p of players) p.socket.destroy();
  await closeBrowser();
  await muster.stop();
});

test('the log of a server that an agent started is followed, and markup in it is text', async () => {
  const { server } = await room(NASTY);
  const page = await openPage(muster, { at: `#/servers/${server}` });
  const log = page.getByRole('log');
  await log.getByText('ready for players').waitFor();
  await log.getByText(`${NASTY} joined`).waitFor();
  players.push(await enter(await seat(muster, 'join', 'anna')));
  await log.getByText('anna joined').waitFor();
  await noForeignImages(page);
  await accessible(page, 'server-log');
  await fitsPhone(page, 'server-log');
  await closePage(page);
});

test('a line for its input reaches the game and the audit', async () => {
  const { server, player } = await room('bob');
  const page = await openPage(muster, { at: `#/servers/${server}` });
  await page.getByLabel('Line for its input').fill(`hello ${NASTY}`);
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByText(`Server ${server} was given that line.`).waitFor();
  await until(() => player.heard.includes(`hello ${NASTY}`), 'the line at the player');
  const [entry] = (await muster.get('/v1/audit')).items;
  assert.deepEqual([entry.action, entry.target.id], ['stdin', server]);
  assert.equal(await page.getByLabel('Line for its input').inputValue(), '');
  await closePage(page);
});

test('a server that was killed says so in words', async () => {
  const { server } = await room('cleo');
  const page = await openPage(muster, { at: `#/servers/${server}` });
  await page.getByRole('log').getByText('cleo joined').waitFor();
  process.kill((await muster.get(`/v1/servers/${server}`)).pid, 'SIGKILL');
  await page.getByText(/^Signal 9 \(SIGKILL\) ended it\. It was killed:/).waitFor();
  await page.getByText('Its last lines').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Terminate' }).count(), 0);
  await accessible(page, 'server-ended');
  await closePage(page);
});

test('terminate asks first, ends it, and is in the audit', async () => {
  const { server } = await room('dan');
  const page = await openPage(muster, { at: `#/servers/${server}` });
  await page.getByRole('button', { name: 'Terminate' }).click();
  await page.getByRole('button', { name: 'Leave it' }).click();
  assert.equal((await muster.get(`/v1/servers/${server}`)).status, 'running');
  await page.getByRole('button', { name: 'Terminate' }).click();
  await page.getByRole('dialog').getByRole('button', { name: `Terminate server ${server}` }).click();
  await page.getByText('It ended by itself, as it should (exit code 0).').waitFor();
  const [entry] = (await muster.get('/v1/audit')).items;
  assert.deepEqual([entry.action, entry.target.id], ['terminate', server]);
  await closePage(page);
});

test('a drain shows how many matches are left, and when it can be stopped', async () => {
  const asked = muster.run('allocate', '--lobby', '7', '--region', 'EU', '--manager', `127.0.0.1:${muster.ports.manager}`);
  await asked.over;
  const [match] = (await muster.get('/v1/sessions?kind=match')).items;
  const page = await openPage(muster, { at: `#/servers/${match.server}` });
  await page.getByRole('region', { name: 'matches on it' }).getByRole('link', { name: match.id }).waitFor();
  await page.getByRole('button', { name: 'Drain' }).click();
  await page.getByRole('button', { name: `Drain server ${match.server}` }).click();
  await page.getByText('it gets no new match. 1 match left.').waitFor();
  await page.getByText('It drains.').waitFor();
  await accessible(page, 'server-draining');
  await fitsPhone(page, 'server-draining');
  await muster.ask('POST', `/v1/sessions/${match.id}/end`);
  await page.getByText('No match is left: it can be stopped now.').waitFor();
  await page.getByRole('button', { name: 'Undrain' }).click();
  await page.getByText('No: it is a candidate.').waitFor();
  await closePage(page);
});
