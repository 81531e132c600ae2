// What one can do in the playground: each call with its fields, and the request that comes of them.
import { Method, Query, withQuery } from '../api';

export interface Request {
  method: Method;
  path: string;
  body?: unknown;
}

export type Values = Record<string, string>;

export interface Field {
  name: string;
  title: string;
  kind: 'game' | 'agentFleet' | 'chatFleet' | 'region' | 'text' | 'json' | 'tick' | 'room' | 'ticket' | 'lastTicket' | 'lastLobby';
  value?: string; // at first
  optional?: boolean;
  help?: string;
}

export interface Call {
  key: string;
  title: string;
  as: 'player' | 'service'; // whose token it takes
  about: string;
  fields: Field[];
  make: (v: Values, player: string) => Request;
}

/** A sentence about a field that cannot be sent. */
export class BadField extends Error {}

function json(v: Values, name: string): unknown {
  const text = (v[name] ?? '').trim();
  if (text === '') return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch (e) {
    throw new BadField(`${name} is no JSON: ${(e as Error).message}.`);
  }
}

const names = (text: string | undefined): string[] => (text ?? '').split(/[\s,]+/).filter(Boolean);

function accounts(v: Values, name: string): { account: number }[] {
  return names(v[name]).map((n) => {
    if (!/^[1-9]\d{0,9}$/.test(n)) throw new BadField(`${name}: ${n} is no number. In lobbies players are numbers.`);
    return { account: Number(n) };
  });
}

/** Only what was filled in. */
function filled(of: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(of).filter(([, value]) => value !== undefined && value !== ''));
}

function need(v: Values, name: string, title: string): string {
  const text = (v[name] ?? '').trim();
  if (text === '') throw new BadField(`${title} is missing.`);
  return text;
}

/** "game/server/version" as paths have it. */
const gamePath = (v: Values): string => need(v, 'game', 'The game').split('/').map(encodeURIComponent).join('/');

const GAME: Field = { name: 'game', title: 'Game, server and version', kind: 'game' };
const REGION: Field = { name: 'region', title: 'Region', kind: 'region', optional: true };
const INFO: Field = { name: 'info', title: 'Info for the game server (JSON)', kind: 'json', optional: true };
const TICKET: Field = { name: 'ticketId', title: 'Name of the ticket', kind: 'ticket' };
const LAST_TICKET: Field = { ...TICKET, kind: 'lastTicket' };

const SEAT_NOTE = 'He gets a seat and its key; as nobody comes with the key here, the seat is given back after half a minute.';

export const CALLS: Call[] = [
  {
    key: 'create', title: 'Create a room', as: 'player',
    about: `Starts a real server process on a host. ${SEAT_NOTE}`,
    fields: [GAME, REGION, { name: 'settings', title: 'Settings (JSON)', kind: 'json', value: '{"map": "ice"}', optional: true }, INFO],
    make: (v) => ({ method: 'POST', path: `/create/${gamePath(v)}`, body: filled({ settings: json(v, 'settings'), region: v.region, info: json(v, 'info') }) }),
  },
  {
    key: 'join', title: 'Join a room that fits', as: 'player',
    about: `The best room that fits the filter, or a new one: then a real server process is started. ${SEAT_NOTE}`,
    fields: [GAME, REGION,
      { name: 'settings', title: 'Filter (JSON)', kind: 'json', value: '{}', optional: true, help: '{"map": "ice", "level": {"@func": ">=", "@value": 5}}' },
      { name: 'create_settings', title: 'Settings of a new room (JSON)', kind: 'json', value: '{"map": "ice"}', optional: true },
      { name: 'auto_create', title: 'make a room when none fits', kind: 'tick', value: 'true' },
      { name: 'my_region_only', title: 'only in my region', kind: 'tick', value: '' }],
    make: (v) => ({
      method: 'POST', path: `/join/${gamePath(v)}`,
      body: filled({
        settings: json(v, 'settings'), create_settings: json(v, 'create_settings'), region: v.region,
        auto_create: v.auto_create === 'true', my_region_only: v.my_region_only === 'true',
      }),
    }),
  },
  {
    key: 'rooms', title: 'List rooms', as: 'player', about: 'The rooms that he could join, the best for him first. Changes nothing.',
    fields: [GAME, REGION, { name: 'settings', title: 'Filter (JSON)', kind: 'json', value: '{}', optional: true },
      { name: 'show_full', title: 'those without a place, too', kind: 'tick', value: 'true' }],
    make: (v) => {
      const filter = json(v, 'settings');
      const query: Query = { settings: filter === undefined ? null : JSON.stringify(filter), region: v.region ?? null, show_full: v.show_full === 'true' };
      return { method: 'GET', path: withQuery(`/rooms/${gamePath(v)}`, query) };
    },
  },
  {
    key: 'room', title: 'Join that room', as: 'player', about: SEAT_NOTE,
    fields: [{ name: 'room', title: 'Room', kind: 'room' }, GAME, INFO],
    make: (v) => ({
      method: 'POST', path: `/room/${encodeURIComponent(need(v, 'game', 'The game').split('/')[0] ?? '')}/${encodeURIComponent(need(v, 'room', 'The number of the room'))}/join`,
      body: filled({ info: json(v, 'info') }),
    }),
  },
  {
    key: 'where', title: 'Where is he?', as: 'player', about: 'His seats, as his friends see them. Changes nothing.', fields: [],
    make: (_v, player) => ({ method: 'GET', path: `/player/${encodeURIComponent(player)}` }),
  },
  {
    key: 'allocate', title: 'Ask for a place', as: 'player',
    about: `Any place in a fleet; when all are taken he stands in line. ${SEAT_NOTE}`,
    fields: [{ name: 'fleet', title: 'Fleet', kind: 'agentFleet' }, REGION, TICKET],
    make: (v, player) => ({
      method: 'POST', path: '/v1/allocations',
      body: filled({ ticketId: need(v, 'ticketId', 'The name of the ticket'), fleet: need(v, 'fleet', 'The fleet'), playerId: player, region: v.region }),
    }),
  },
  {
    key: 'friends', title: 'Join friends', as: 'player',
    about: `A place where a friend sits; when that room is full he stands in its line. ${SEAT_NOTE}`,
    fields: [{ name: 'fleet', title: 'Fleet', kind: 'agentFleet' }, { name: 'joinOnIds', title: 'Friends, with commas between them', kind: 'text', value: 'try-ben' },
      { name: 'canJoinNotFound', title: 'when they are nowhere, any place will do', kind: 'tick', value: '' }, TICKET],
    make: (v, player) => ({
      method: 'POST', path: '/v1/allocations',
      body: {
        ticketId: need(v, 'ticketId', 'The name of the ticket'), fleet: need(v, 'fleet', 'The fleet'), playerId: player,
        joinOnIds: names(v.joinOnIds), canJoinNotFound: v.canJoinNotFound === 'true',
      },
    }),
  },
  {
    key: 'leave', title: 'Leave the line', as: 'player', about: 'He waits no more. A seat that he has got by then stays.', fields: [LAST_TICKET],
    make: (v) => ({ method: 'DELETE', path: `/v1/allocations/${encodeURIComponent(need(v, 'ticketId', 'The name of the ticket'))}` }),
  },
  {
    key: 'lobby', title: 'Create a lobby', as: 'service',
    about: 'As a matchmaker would: a match for two teams, which takes a slot on a real server. As nobody loads here it is aborted after its time to load.',
    fields: [{ name: 'fleet', title: 'Fleet', kind: 'chatFleet' }, REGION,
      { name: 'one', title: 'Team 1, as numbers', kind: 'text', value: '900001, 900002' }, { name: 'two', title: 'Team 2, as numbers', kind: 'text', value: '900003, 900004', optional: true },
      { name: 'map', title: 'Map', kind: 'text', value: 'ice', optional: true }],
    make: (v) => ({
      method: 'POST', path: '/v1/lobbies',
      body: filled({ fleet: v.fleet, region: v.region, map: v.map, teams: [accounts(v, 'one'), accounts(v, 'two')] }),
    }),
  },
  {
    key: 'abort', title: 'Abort a lobby', as: 'service', about: 'Its players are told; a match that has started ends. Take care that it is one of yours.',
    fields: [{ name: 'lobby', title: 'Number of the lobby', kind: 'lastLobby' }, { name: 'reason', title: 'What its players hear', kind: 'text', optional: true }],
    make: (v) => ({ method: 'POST', path: `/v1/lobbies/${encodeURIComponent(need(v, 'lobby', 'The number of the lobby'))}/abort`, body: filled({ reason: v.reason }) }),
  },
  {
    key: 'party', title: 'Ask for a place for a party', as: 'service',
    about: 'As a chat server would: all of them get seats in one room, or nobody does.',
    fields: [{ name: 'fleet', title: 'Fleet', kind: 'agentFleet' }, REGION, { name: 'partyIds', title: 'Who comes along, with commas between them', kind: 'text', value: 'try-ben, try-cat', optional: true },
      { name: 'priority', title: 'Priority, 0 to 100', kind: 'text', value: '0', optional: true }, TICKET],
    make: (v, player) => ({
      method: 'POST', path: '/v1/allocations',
      body: filled({
        ticketId: need(v, 'ticketId', 'The name of the ticket'), fleet: need(v, 'fleet', 'The fleet'), playerId: player, region: v.region,
        partyIds: names(v.partyIds).length > 0 ? names(v.partyIds) : undefined, priority: Number(v.priority || 0),
      }),
    }),
  },
  {
    key: 'cancel', title: 'Cancel a request', as: 'service', about: 'The request of that name that a service made waits no more. A seat that it has got stays.', fields: [LAST_TICKET],
    make: (v) => ({ method: 'DELETE', path: `/v1/allocations/${encodeURIComponent(need(v, 'ticketId', 'The name of the ticket'))}` }),
  },
];
