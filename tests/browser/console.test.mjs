// The frame around the pages: the door, what is live, who may what.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { accessible, closeBrowser, closePage, fitsPhone, goTo, Muster, openBrowser, openPage, shot } from './world.mjs';

let muster;

before(async () => {
  await openBrowser();
  muster = await new Muster().start();
  await muster.gameServer('--region', 'EU', '--max', '4').says(/registered/);
});

after(async () => {
  await closeBrowser();
  await muster.stop();
});

test('the door: a wrong token is refused in words, the right one opens, and a reload forgets it', async () => {
  const page = await openPage(muster, { token: null });
  await shot(page, 'door');
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByText('Paste an access token first.').waitFor();
  await page.getByLabel('Access token').fill('guess');
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByText(/access token is not valid/).waitFor();
  await page.getByLabel('Access token').fill(muster.token);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  const kept = await page.evaluate(() => JSON.stringify([localStorage, sessionStorage, document.cookie, location.href]));
  assert.ok(!kept.includes(muster.token));
  await page.reload();
  await page.getByLabel('Access token').waitFor();
  await closePage(page);
});

test('a link that brings its token logs in and leaves no trace of it in the address', async () => {
  const page = await openPage(muster);
  assert.ok(!page.url().includes('token'));
  await closePage(page);
});

test('it says that it is disconnected and how old its data is, and comes back by itself', async () => {
  const page = await openPage(muster, { at: '#/servers' });
  await page.getByText('live', { exact: true }).waitFor();
  await page.getByRole('row').nth(1).waitFor();
  await muster.kill9();
  await page.getByText(/disconnected; what you see is .* old/).waitFor();
  await page.getByText('Muster does not answer. Last it said:').waitFor();
  await shot(page, 'disconnected');
  assert.equal(await page.getByRole('row').count(), 2, 'what was seen last stays');
  await muster.start();
  await page.getByText('live', { exact: true }).waitFor();
  await closePage(page);
});

test('what could not be read while Muster was away is read when it is back, also what is read but once', async () => {
  const page = await openPage(muster, { at: '#/servers' });
  await page.getByText('live', { exact: true }).waitFor();
  await muster.kill9();
  await page.getByText(/disconnected; what you see is .* old/).waitFor();
  await goTo(page, '#/tickets/alloc:no-such-name');
  await page.getByText('The console asks again by itself.').waitFor();
  await muster.start();
  await page.getByText('There is no such thing').waitFor();
  await closePage(page);
});

test('a server that comes is seen without a reload', async () => {
  const page = await openPage(muster, { at: '#/servers' });
  await page.getByRole('row').nth(1).waitFor();
  const had = await page.getByRole('row').count();
  await muster.gameServer('--region', 'USE', '--max', '9').says(/registered/);
  await page.getByText('0 of 9').waitFor();
  assert.equal(await page.getByRole('row').count(), had + 1);
  await accessible(page, 'servers');
  await fitsPhone(page, 'servers');
  await closePage(page);
});

test('who may only read sees the buttons, cannot press them, and is told why', async () => {
  const token = await muster.tokenFor('looker', 'muster_read');
  const page = await openPage(muster, { token, at: '#/servers/1' });
  const drain = page.getByRole('button', { name: 'Drain' });
  await drain.waitFor();
  assert.ok(await drain.isDisabled());
  assert.match(await drain.getAttribute('title'), /needs the scope muster_admin/);
  await page.getByText('read-only').waitFor();
  await closePage(page);
});

test('a token that may not look gets a page that says so', async () => {
  const token = await muster.tokenFor('player', 'game');
  const page = await openPage(muster, { token, at: '#/servers' });
  await page.getByText('Your token may not see this').waitFor();
  await shot(page, 'forbidden');
  await closePage(page);
});

test('a change is asked for once, done, and in the audit', async () => {
  const page = await openPage(muster, { at: '#/servers/1' });
  await page.getByRole('button', { name: 'Drain' }).click();
  await page.getByRole('dialog').getByText('It gets no new match').waitFor();
  await shot(page, 'confirm');
  await page.getByRole('button', { name: 'Leave it' }).click();
  assert.equal((await muster.get('/v1/servers/1')).draining_by.length, 0);
  await page.getByRole('button', { name: 'Drain' }).click();
  await page.getByRole('button', { name: 'Drain server 1' }).click();
  await page.getByText('Server 1 is draining.').waitFor();
  assert.deepEqual((await muster.get('/v1/servers/1')).draining_by, ['operator']);
  assert.equal((await muster.get('/v1/audit')).items[0].action, 'drain');
  await page.getByRole('button', { name: 'Undrain' }).click();
  await page.getByText('Server 1 gets matches again.').waitFor();
  await closePage(page);
});

test('the keyboard is enough: skip link, shortcuts, search, dialog', async () => {
  const page = await openPage(muster);
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to the page');
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'page-title');
  await page.keyboard.press('g');
  await page.keyboard.press('s');
  await page.getByRole('heading', { name: 'Servers' }).waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('server 1');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Server 1' }).waitFor();
  await page.getByRole('button', { name: 'Drain' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'hidden' });
  await closePage(page);
});

test('there is no such page, no such server', async () => {
  const page = await openPage(muster, { at: '#/nowhere' });
  await page.getByText('There is no such page').waitFor();
  await goTo(page, '#/servers/999');
  await page.getByText('There is no server 999.').waitFor();
  await closePage(page);
});

test('a link that is opened where the console is open already logs in, and is gone from the address', async () => {
  const page = await openPage(muster, { token: null });
  await page.getByLabel('Access token').waitFor();
  await goTo(page, `#token=${muster.token}`);
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  assert.ok(!page.url().includes('token'));
  await goTo(page, `#token=${await muster.tokenFor('looker', 'muster_read')}`);
  await page.getByText('read-only').waitFor();
  assert.ok(!page.url().includes('token'));
  await closePage(page);
});

test('a long list is read to its end while things change all the time', async () => {
  const page = await openPage(muster);
  const sample = (await muster.get('/v1/servers/1'));
  await page.route('**/v1/servers?*', async (route) => {
    const from = Number(new URL(route.request().url()).searchParams.get('cursor') ?? 0);
    const items = Array.from({ length: 1000 }, (_, i) => ({ ...sample, id: String(from + i + 1) }));
    await new Promise((r) => setTimeout(r, 200)); // the answer is slow: this is what is tested
    await route.fulfill({ json: { items, next: from < 7000 ? String(from + 1000) : null } });
  });
  await goTo(page, '#/servers');
  let over = false;
  const restless = (async () => {
    for (let on = true; !over; on = !on) {
      await muster.ask('POST', `/v1/servers/1/${on ? 'drain' : 'undrain'}`);
      await new Promise((r) => setTimeout(r, 100));
    }
    await muster.ask('POST', '/v1/servers/1/undrain');
  })();
  try {
    await page.getByText(/^8,000 servers(?! so far)/).waitFor();
  } finally {
    over = true;
    await restless;
  }
  await closePage(page);
});
