// What the tests of the console stand on: a real Muster with demo servers, rooms and players, and a
// real Chromium. Everything is started here on free ports in a temporary folder, and ended by id.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const require = createRequire(join(root, 'web/package.json'));
const { chromium } = require('playwright-core');

export const MUSTER = process.env.MUSTER_BIN ?? join(root, 'build/muster');
export const SCREENSHOTS = process.env.MUSTER_SCREENSHOTS ?? join(root, 'build/screenshots');
const PATIENCE_MS = 30000;

/** Until `look` gives something true, which is returned; looks again every few ms. */
export async function until(look, what, ms = PATIENCE_MS) {
  const deadline = Date.now() + ms;
  for (;;) {
    const found = await look();
    if (found) return found;
    assert.ok(Date.now() < deadline, `waited ${ms} ms for ${what}`);
    await new Promise((r) => setTimeout(r, 20));
  }
}

/** A program that runs until it is stopped; `out` is all it said. */
export class Child {
  constructor(command, args, options = {}) {
    this.out = '';
    this.process = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
    for (const pipe of [this.process.stdout, this.process.stderr])
      pipe.on('data', (data) => { this.out += data; });
    this.over = new Promise((r) => this.process.on('exit', r));
  }

  async says(pattern, ms = PATIENCE_MS) {
    return until(() => {
      assert.ok(this.process.exitCode === null || pattern.test(this.out), `it ended: ${this.out}`);
      return this.out.match(pattern);
    }, `${pattern} in: ${this.out.slice(-2000)}`, ms);
  }

  async stop(signal = 'SIGTERM') {
    if (this.process.exitCode === null && this.process.signalCode === null) this.process.kill(signal);
    const late = setTimeout(() => this.process.kill('SIGKILL'), 10000);
    await this.over;
    clearTimeout(late);
  }
}

/** A Muster. `config` is YAML; ports are free ones and stay the same over restarts. */
export class Muster {
  constructor({ config = '', args = [] } = {}) {
    this.folder = mkdtempSync(join(tmpdir(), 'muster-browser-'));
    this.config = join(this.folder, 'muster.yaml');
    writeFileSync(this.config, config);
    this.args = args;
    this.ports = { http: 0, server: 0, manager: 0, client: 0 };
    this.children = [];
  }

  async start() {
    const p = this.ports;
    this.child = new Child(MUSTER, ['serve', '--dev', '--config', this.config, '--data', join(this.folder, 'data'),
      '--http', `127.0.0.1:${p.http}`, '--server-port', p.server, '--manager-port', p.manager, '--client-port', p.client, ...this.args]
      .map(String));
    const [, http, server, manager, client] = await this.child.says(
      /ready http=\S*:(\d+) server=\S*:(\d+) manager=\S*:(\d+) client=\S*:(\d+)/);
    this.ports = { http, server, manager, client };
    return this;
  }

  get url() { return `http://127.0.0.1:${this.ports.http}`; }
  get token() { return readFileSync(join(this.folder, 'data/admin.token'), 'utf8').trim(); }

  /** Another program beside it, which ends with it: run('game-server', '--region', 'EU'). */
  run(...args) {
    const child = new Child(MUSTER, args.map(String), { env: { ...process.env, MUSTER_URL: this.url, MUSTER_TOKEN: this.token } });
    this.children.push(child);
    return child;
  }

  gameServer(...args) {
    return this.run('game-server', '--server', `127.0.0.1:${this.ports.server}`, ...args);
  }

  /** A host whose agent starts the servers of rooms; they end with it. */
  async agent(name = 'host-1', ...args) {
    const first = 12000 + Math.floor(Math.random() * 300) * 60; // below those that connections get
    const agent = new Child(MUSTER, ['agent', '--control', this.url, '--region', 'EU', '--name', name, '--data', join(this.folder, name),
      '--listen', '127.0.0.1:0', '--uids', 'none', '--end-servers', '--heartbeat-ms', '200', '--ports', `${first}-${first + 59}`, ...args].map(String),
    { env: { ...process.env, MUSTER_TOKEN: await this.tokenFor(name, 'game_host') } });
    this.children.push(agent);
    await agent.says(/ready http=/);
    await until(async () => (await this.get('/v1/hosts')).items.some((h) => h.name === name), `the first heartbeat of ${name}`);
    return agent;
  }

  async ask(method, path, body, token = this.token) {
    const answer = await fetch(this.url + path, {
      method,
      headers: { Authorization: `Bearer ${token}`, ...(body ? { 'Content-Type': 'application/json' } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const text = await answer.text();
    let parsed = text;
    try { parsed = JSON.parse(text); } catch { /* a log */ }
    return { status: answer.status, body: parsed };
  }

  async get(path) {
    const { status, body } = await this.ask('GET', path);
    assert.equal(status, 200, `${path}: ${JSON.stringify(body)}`);
    return body;
  }

  /** A token that may do only this. */
  async tokenFor(account, ...scopes) {
    const { status, body } = await this.ask('POST', '/v1/access-tokens', { account, scopes });
    assert.ok(status < 300, JSON.stringify(body));
    return body.access_token ?? body.token;
  }

  async kill9() {
    await this.child.stop('SIGKILL');
  }

  async stop() {
    await Promise.all(this.children.map((c) => c.stop()));
    if (this.child) await this.child.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** The demo that `make run` shows: servers, a chat server, an agent with rooms, players. */
export class Demo extends Muster {
  async start() {
    this.child = new Child(MUSTER, ['dev', '--plain', '--any-port', '--data', join(this.folder, 'data'), ...this.args].map(String), { cwd: this.folder });
    const [, http] = await this.child.says(/ready http=\S*:(\d+)/);
    this.ports.http = http;
    return this;
  }
}

/** Hosts that only say how they are: as many as one likes, without a machine. Each beat of each is
 * one more than the last, as an agent counts. */
export class Hosts {
  constructor(muster) {
    this.muster = muster;
    this.beats = 0;
  }

  async beat(hosts) {
    this.token ??= await this.muster.tokenFor('hosts', 'game_host');
    this.beats++;
    const send = async (host) => {
      const { status, body } = await this.muster.ask('POST', '/v1/agent/heartbeat', {
        address: '127.0.0.1', url: 'http://127.0.0.1:9', region: 'EU', slots: 4, cpu_percent: 10,
        memory_percent: 20, servers: [], ...host, beat: this.beats,
      }, this.token);
      assert.equal(status, 200, JSON.stringify(body));
    };
    for (let i = 0; i < hosts.length; i += 50) await Promise.all(hosts.slice(i, i + 50).map(send));
  }
}

let browser = null;

export async function openBrowser() {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-dev-shm-usage'] });
  mkdirSync(SCREENSHOTS, { recursive: true });
}

export async function closeBrowser() {
  await browser?.close();
}

/** A page of the console for somebody with this token. What must never happen is collected:
 * violations of the content security policy, errors, requests to elsewhere, dialogs of scripts. */
export async function openPage(muster, { token = muster.token, at = '#/', width = 1280, height = 900, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, ...options });
  const page = await context.newPage();
  page.wrong = [];
  page.places = [muster.url, 'data:']; // what it may ask
  page.on('pageerror', (e) => page.wrong.push(`error: ${e.stack}`));
  page.on('console', (m) => {
    // The browser says by itself when an answer is a refusal or Muster is away; that is no fault.
    if (m.type() === 'error' && !/Failed to load resource|net::ERR/.test(m.text())) page.wrong.push(`console: ${m.text()}`);
  });
  page.on('dialog', (d) => { page.wrong.push(`dialog: ${d.message()}`); void d.dismiss(); });
  page.on('request', (r) => {
    if (!page.places.some((place) => r.url().startsWith(place))) page.wrong.push(`asks elsewhere: ${r.url()}`);
  });
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (e) => console.error(`policy: ${e.violatedDirective} ${e.blockedURI}`));
  });
  if (token) {
    await page.goto(`${muster.url}/#token=${token}`);
    await page.getByRole('navigation', { name: 'Pages' }).waitFor({ state: width > 760 ? 'visible' : 'attached' });
    if (at !== '#/') await goTo(page, at);
  } else {
    await page.goto(muster.url);
  }
  return page;
}

/** As a click on a link would, so that the token stays. */
export async function goTo(page, hash) {
  await page.evaluate((to) => { location.hash = to; }, hash);
}

export async function shot(page, name) {
  await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`) });
}

/** Closes it, and fails when something happened that must not. */
export async function closePage(page) {
  const { wrong } = page;
  await page.context().close();
  assert.deepEqual(wrong, []);
}

export const axeSource = () => readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

/** A module of the console by itself, for functions that need no page: source('overview/layout.ts'). */
export async function source(path) {
  const { build } = require('esbuild');
  const made = await build({
    entryPoints: [join(root, 'web/src', path)], bundle: true, write: false, format: 'esm', jsx: 'automatic',
    jsxImportSource: 'preact', loader: { '.css': 'empty' }, logLevel: 'silent',
  });
  return import(`data:text/javascript;base64,${Buffer.from(made.outputFiles[0].contents).toString('base64')}`);
}

/** In light and in dark: a picture `name-light.png`, `name-dark.png`, and nothing that axe finds
 * serious or critical for who uses a keyboard or a screen reader, or sees little contrast. */
export async function accessible(page, name) {
  if (!await page.evaluate(() => 'axe' in window)) await page.evaluate(axeSource());
  const found = [];
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    await shot(page, `${name}-${colorScheme}`);
    const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
    found.push(...violations.filter((v) => ['serious', 'critical'].includes(v.impact)).flatMap((v) =>
      v.nodes.map((n) => `${colorScheme}: ${v.id}: ${n.html.slice(0, 200)}: ${n.failureSummary}`)));
  }
  await page.emulateMedia({ colorScheme: 'light' });
  assert.deepEqual(found, []);
}

/** On a phone: a picture `name-phone.png`, and nothing sticks out to the side. */
export async function fitsPhone(page, name) {
  const before = page.viewportSize();
  await page.setViewportSize({ width: 390, height: 844 });
  await shot(page, `${name}-phone`);
  const over = await page.evaluate(() => [...document.querySelectorAll('html, main')]
    .filter((e) => e.scrollWidth > e.clientWidth).map((e) => `${e.tagName} ${e.scrollWidth} > ${e.clientWidth}`));
  await page.setViewportSize(before);
  assert.deepEqual(over, []);
}
assert.ok(existsSync(MUSTER), `${MUSTER} is not built`);
