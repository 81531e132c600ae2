// GET /v1/status, as far as the overview shows it, and what it says of each region.
import { Host, isSick } from '../host';

export interface ServerCounts {
  available: number;
  full: number;
  draining: number;
  offline: number;
}

export interface Region {
  code: number;
  name: string;
  latitude: number | null;
  longitude: number | null;
  servers: ServerCounts;
  slots: { used: number; total: number };
  sessions: number;
}

export interface Refused {
  at: string;
  code: string;
  message: string;
  ticket: string | null;
  lobby: number | null;
  chat_server: string | null;
  region: string | null;
}

export interface Status {
  version: string;
  started_at: string;
  store: 'writable' | 'read_only';
  servers: ServerCounts;
  slots: { used: number; total: number };
  sessions: number;
  tickets_open: number;
  chat_servers: number;
  hosts: Record<string, number>;
  rooms: { starting: number; open: number; ending: number; reserved: number; taken: number };
  queues: { entries: number; players: number; oldest_ms: number };
  lobbies: { loading: number; started: number };
  brokers: { name: string; connected: boolean; lag: number | null; unsent: number }[];
  allocations: { per_s: number; done: number; failed: number; p50_ms: number | null; p95_ms: number | null; p99_ms: number | null };
  joins: { done: number; failed: number };
  storage: {
    commits: number;
    commit_p50_ms: number | null;
    commit_p99_ms: number | null;
    batches_waiting: number;
    backlog_bytes: number;
    fold_lag: number;
    fold_lag_ms: number;
    journal_bytes: number;
    state_bytes: number;
    disk_bytes: number | null;
    disk_free_bytes: number | null;
  };
  regions: Region[];
  refusals: Refused[];
}

export const serversOf = (c: ServerCounts): number => c.available + c.full + c.draining + c.offline;
export const hostsOf = (c: Record<string, number>): number => Object.values(c).reduce((a, b) => a + b, 0);

/** Nobody has come yet: no server, no host, and so nothing to show figures of. */
export const isEmpty = (s: Status): boolean =>
  serversOf(s.servers) === 0 && hostsOf(s.hosts) === 0 && s.sessions === 0 &&
  s.rooms.open + s.rooms.starting + s.rooms.ending === 0;

export type Mood = 'good' | 'busy' | 'bad' | 'idle';

/** A region with everything that stands there: servers that registered, and hosts. */
export interface Spot {
  id: string;
  region: Region;
  servers: number;
  hosts: number;
  healthy: number;
  sick: number; // hosts that get nothing new, and nobody wanted that
  rooms: number;
  used: number;
  total: number; // slots, as far as they are known
  mood: Mood;
  word: string; // the mood for who sees no colour
}

function moodOf(r: Region, hosts: number, healthy: number, sick: number, share: number): [Mood, string] {
  const servers = serversOf(r.servers);
  if (servers + hosts === 0) return ['idle', 'nothing is there'];
  const full = servers > 0 && r.servers.available === 0;
  const closed = hosts > 0 && healthy === 0;
  if ((full || servers === 0) && (closed || hosts === 0))
    return ['bad', servers > 0 && servers === r.servers.offline && hosts === 0 ? 'every server is offline' : 'takes nothing new'];
  if (full) return ['busy', 'no registered server can take a match'];
  if (closed) return ['busy', 'no host gets anything new'];
  if (r.servers.offline > 0) return ['busy', `${r.servers.offline} of ${servers} servers offline`];
  if (sick > 0) return ['busy', `${sick} of ${hosts} hosts in trouble`];
  if (share >= 0.8) return ['busy', 'nearly full'];
  return ['good', 'fine'];
}

export function spotsOf(regions: Region[], hosts: Host[]): Spot[] {
  return regions.map((region) => {
    const mine = hosts.filter((h) => h.region === region.name);
    const healthy = mine.filter((h) => h.passed_over === null).length;
    const sick = mine.filter(isSick).length;
    const rooms = mine.reduce((n, h) => n + h.rooms, 0);
    const used = region.slots.used + rooms;
    const total = region.slots.total + mine.reduce((n, h) => n + Math.max(h.slots, h.rooms), 0);
    const [mood, word] = moodOf(region, mine.length, healthy, sick, total > 0 ? used / total : 0);
    return {
      id: region.name, region, servers: serversOf(region.servers), hosts: mine.length, healthy, sick,
      rooms, used, total, mood, word,
    };
  });
}
