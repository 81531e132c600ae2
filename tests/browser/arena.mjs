// The arena, a real game, with players who really connect to it.
import assert from 'node:assert/strict';
import { createConnection } from 'node:net';
import { dirname, join } from 'node:path';
import { MUSTER } from './world.mjs';

/** What a player may call himself, and a page must show as it is. */
export const NASTY = `<img src=x onerror=alert(1)>"'&{{`;

/** A configuration with a fleet of game servers that register, and the arena for agents. */
export const arena = ({ players = 4, reserve = 600, empty = 600 } = {}) => JSON.stringify({
  default_region: 'EU',
  fleets: [{ name: 'default' }, {
    name: 'arena', provider: 'agent', game: 'arena', server: 'main', binary: join(dirname(MUSTER), 'arena'),
    max_players: players, empty_timeout_s: empty, reserve_s: reserve, versions: [{ name: '1.0' }],
  }],
});

/** A seat, as a player asks for it: verb is "create" or "join". */
export async function seat(muster, verb, account, body = {}) {
  const token = await muster.tokenFor(account, 'game');
  const answer = await muster.ask('POST', `/${verb}/arena/main/1.0`, body, token);
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return answer.body;
}

/** The player goes there with his key; `heard` is all that the arena has told him. */
export async function enter(placed) {
  const socket = createConnection(placed.location.ports[0], placed.location.host);
  const player = { socket, heard: '', over: new Promise((r) => socket.on('close', r)) };
  socket.on('error', () => {});
  await new Promise((resolve) => {
    socket.on('data', (data) => {
      player.heard += data;
      resolve();
    });
    socket.write(`${placed.key}\n`);
  });
  return player;
}

/** As many pictures as the page itself has: its icon, and none that somebody brought in. */
export async function noForeignImages(page) {
  assert.equal(await page.locator('img:not([src="/console/icon.svg"])').count(), 0);
}
