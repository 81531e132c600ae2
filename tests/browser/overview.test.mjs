// The overview: what is wrong, where, how much, since when, and who got nothing.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { accessible, closeBrowser, closePage, fitsPhone, Hosts, Muster, MUSTER, openBrowser, openPage, shot, source, until } from './world.mjs';

const EVIL = `<img src=x onerror=alert(1)>"'&{{`;
let muster;

before(async () => {
  await openBrowser();
  muster = await new Muster().start();
});

after(async () => {
  await closeBrowser();
  await muster.stop();
});

const allocate = (...args) => muster.run('allocate', '--manager', `127.0.0.1:${muster.ports.manager}`, ...args);
const figure = (page, name) => page.getByRole('group', { name: 'Figures' }).locator('.figure', { hasText: name });
const regionRow = (page, name) => page.getByRole('region', { name: 'Servers by region and state' }).getByRole('row', { name: new RegExp(`^${name} `) });

test('a fresh Muster shows first steps with commands that work, and fills as soon as one is done', async () => {
  const page = await openPage(muster);
  await page.getByText('no game server and no agent has come yet').waitFor();
  assert.equal(await page.getByRole('group', { name: 'Figures' }).count(), 0);
  const commands = page.locator('.steps code');
  assert.equal(await commands.first().textContent(), `muster game-server --region EU --server 127.0.0.1:${muster.ports.server}`);
  await accessible(page, 'first-steps');
  await fitsPhone(page, 'first-steps');

  const [forServer, forMatch] = (await commands.allTextContents()).map((c) => c.split(' ').slice(1));
  await muster.run(...forServer).says(/registered/);
  await figure(page, 'Servers').getByText('1 available').waitFor(); // without a reload
  await regionRow(page, 'EU').waitFor();
  await muster.run(...forMatch).over;
  await figure(page, 'Matches').getByText('1', { exact: true }).waitFor();
  await closePage(page);
});

test('regions stand on the map at their places, and near ones cover each other nowhere', async () => {
  for (const region of ['MY', 'SG', 'TH', 'VN', 'USE'])
    await muster.gameServer('--region', region, '--max', '5').says(/registered/);
  const page = await openPage(muster);
  for (const region of ['MY', 'SG', 'TH', 'VN', 'USE']) await regionRow(page, region).waitFor();
  const mark = (name) => page.locator('a.mark', { has: page.locator('.mark-name', { hasText: new RegExp(`^${name}$`) }) });
  const place = async (name) => mark(name).locator('.mark-circle').boundingBox();
  const [use, eu, sg, my] = [await place('USE'), await place('EU'), await place('SG'), await place('MY')];
  assert.ok(use.x < eu.x && eu.x < sg.x, 'west to east');
  assert.ok(eu.y < sg.y, 'north to south');
  assert.ok(my.y + my.height <= sg.y + 1 || my.x + my.width <= sg.x + 1 || sg.x + sg.width <= my.x + 1 || sg.y + sg.height <= my.y + 1, 'Kuala Lumpur is not under Singapore');
  assert.equal(await page.locator('a.mark.idle').count(), 17 - 6, 'the others are faint');

  await mark('SG').focus();
  await page.getByText(/SG: fine\. 1 server \(1 available, 0 full, 0 draining, 0 offline\)/).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Servers' }).waitFor();
  assert.match(page.url(), /region=SG/);
  await closePage(page);
});

test('a region whose servers are full says so in words, and in the table', async () => {
  await allocate('--lobby', '11', '--region', 'USE', '--count', '5', '--every', '1').over;
  const page = await openPage(muster);
  await regionRow(page, 'USE').getByText('5 of 5').waitFor();
  await page.locator('a.mark.bad', { hasText: 'USE' }).waitFor();
  await page.locator('a.mark.bad', { hasText: 'USE' }).hover();
  await page.getByText(/USE: takes nothing new\. 1 server \(0 available, 1 full/).waitFor();
  await closePage(page);
});

test('where seconds are missing the line stops, and what was known before is kept', async () => {
  const { merge, withGaps } = await source('overview/trends.tsx');
  const point = (s) => ({ at: new Date(1e12 + s * 1000).toISOString(), players: s });
  const known = merge([point(1), point(2)], [point(2), point(9), point(10)], 600);
  assert.deepEqual(known.map((p) => p.players), [1, 2, 9, 10]);
  assert.deepEqual(merge(known, [point(11)], 3).map((p) => p.players), [9, 10, 11], 'bounded');
  assert.deepEqual(withGaps(known, 1000).map((p) => p.players ?? null), [1, 2, null, 9, 10]);
  assert.deepEqual(withGaps([point(1), point(3)], 1000).length, 2, 'a second that came late is no gap');
});

test('findings stand open on the overview, with what to do', async () => {
  const finding = (await muster.get('/v1/health')).findings.find((f) => f.code === 'region_full');
  assert.ok(finding, 'USE is full');
  const page = await openPage(muster);
  const card = page.locator('.card', { hasText: 'What is wrong, and what to do' });
  await card.getByText(finding.sentence).first().waitFor();
  await card.getByText(finding.command, { exact: true }).first().waitFor();
  assert.equal(await page.getByRole('button', { name: /^What to do/ }).count(), 0, 'once is enough');
  await shot(page, 'overview-findings');
  await card.getByRole('link', { name: 'Look at it' }).first().click();
  await page.getByRole('button', { name: /^What to do/ }).click(); // elsewhere they are folded
  await page.locator('#findings').getByText(finding.sentence).waitFor();
  await closePage(page);
});

test('who was refused is listed with the reason in words, and leads to the why of his ticket', async () => {
  await allocate('--lobby', '77', '--region', 'USE', '--chat-server', 'lobbies-2').over;
  const { refusals } = await muster.get('/v1/status');
  const page = await openPage(muster);
  const row = page.locator('.refusals li').first();
  await row.getByText(refusals[0].message).waitFor();
  await row.getByText('region USE, lobby number 77, asked by lobbies-2').waitFor();
  await row.getByRole('link', { name: `why ticket ${refusals[0].ticket}` }).click();
  assert.match(page.url(), new RegExp(`#/tickets/${refusals[0].ticket}$`));
  await closePage(page);
});

test('500 hosts are 500 cells with a number or a letter, and the arrow keys go from one to the next', async () => {
  const hosts = new Hosts(muster);
  const all = Array.from({ length: 500 }, (_, i) => ({
    name: i === 0 ? EVIL : `host-${i}`, region: ['EU', 'USE', 'SG'][i % 3], slots: 20,
    cpu_percent: (i * 37) % 101, memory_percent: (i * 13) % 70, leaving: i === 5,
  }));
  await hosts.beat(all.slice(0, 12));
  const page = await openPage(muster, { height: 1600 });
  await until(async () => await page.locator('.cells .cell').count() === 12, '12 cells');
  await page.locator('a.mark.busy', { hasText: 'USE' }).waitFor(); // its hosts are well, its server is full
  await accessible(page, 'overview');
  await hosts.beat(all);
  await until(async () => await page.locator('.cells .cell').count() === 500, '500 cells');
  await page.locator('.cell-leaving', { hasText: 'L' }).waitFor();
  const named = await page.locator('.cells .cell').evaluateAll((all) => all.map((c) => [c.getAttribute('aria-label'), c.textContent]));
  assert.ok(named.some(([name, text]) => name.startsWith('host-4: healthy, CPU 47 %, memory 52 %') && text === '52'));
  assert.ok(named.some(([name]) => name.startsWith(`${EVIL}: healthy`)));

  const { id } = (await muster.get('/v1/hosts?limit=1')).items[0];
  await muster.ask('POST', `/v1/hosts/${id}/disable`);
  await page.locator('.cell-disabled', { hasText: 'D' }).waitFor(); // without a reload
  await figure(page, 'Hosts healthy').getByText('of 500').waitFor();
  await shot(page, 'overview-500-hosts');
  await fitsPhone(page, 'overview-500-hosts');

  assert.equal(await page.locator('.cells .cell[tabindex="0"]').count(), 1, 'one stop for the tab key');
  await page.locator('.cells .cell').first().focus();
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: /host/i }).first().waitFor();
  assert.match(page.url(), /#\/hosts\/\d+$/);
  await closePage(page);
});

test('charts draw what was, by the second or by the minute, and the choice is in the address', async () => {
  await until(async () => (await muster.get('/v1/trends?window=ten_minutes')).points.length > 2, 'points');
  const page = await openPage(muster, { height: 1600 });
  await page.locator('.chart canvas').first().waitFor();
  const chart = page.getByRole('img', { name: /^Game servers\. Now: not offline \d+/ });
  await chart.waitFor();
  await page.getByText('Allocations per second').waitFor();
  await page.getByRole('button', { name: 'a day' }).click();
  assert.match(page.url(), /window=day/);
  await page.getByText(/Allocations per minute|the first point comes in a minute/).waitFor();
  await page.getByRole('button', { name: 'ten minutes' }).click();
  await page.getByText('Allocations per second').waitFor();
  await closePage(page);
});

test('what was seen stays while Muster is away, with a word on top', async () => {
  const page = await openPage(muster, { height: 1600 });
  const chart = page.getByRole('img', { name: /^Game servers/ });
  await chart.waitFor();
  await muster.kill9();
  await page.getByText(/This is how it was last/).first().waitFor();
  await shot(page, 'overview-away');
  await muster.start();
  await page.getByText(/This is how it was last/).first().waitFor({ state: 'hidden' });
  await chart.waitFor();
  await closePage(page);
});

test('every figure leads somewhere, and the store tells whether it keeps up', async () => {
  const page = await openPage(muster);
  await figure(page, 'Store').waitFor();
  const figures = page.getByRole('group', { name: 'Figures' }).locator('.figure');
  const links = await figures.evaluateAll((all) => all.map((f) => f.getAttribute('href')));
  assert.ok(links.length >= 10 && links.every((l) => l?.startsWith('#/')), String(links));
  await figure(page, 'Store').click();
  await page.getByText('Keeps up?').waitFor();
  await until(() => page.locator('#store').evaluate((e) => e.getBoundingClientRect().top < innerHeight), 'the store in sight');
  await closePage(page);
});

test('who may not look is told so', async () => {
  const token = await muster.tokenFor('player', 'game');
  const page = await openPage(muster, { token });
  await page.getByText('Your token may not see this').waitFor();
  await closePage(page);
});

test('the console is small', () => {
  const folder = join(dirname(MUSTER), 'web');
  const page = readFileSync(join(folder, 'index.html'), 'utf8');
  const [, script] = page.match(/src="\/console\/([^"]+\.js)"/);
  assert.ok(readdirSync(folder).includes(script));
  const size = gzipSync(readFileSync(join(folder, script)), { level: 9 }).length;
  assert.ok(size < 120 * 1024, `${size} bytes of JavaScript, packed`);
});
