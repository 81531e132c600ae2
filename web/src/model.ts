// What the API answers with, as far as more than one page shows it, and its words as sentences.

export interface Exit {
  code: number | null;
  signal: number | null;
  why: string | null;
  peak_memory: number;
  run_ms: number;
  dropped_bytes: number;
  tail: string;
}

export interface Server {
  id: string;
  fleet: string;
  ip: string;
  port: number;
  region: string;
  provider: string;
  status: string;
  connected: boolean;
  draining_by: string[];
  max_sessions: number;
  load: number;
  sessions: number;
  open: number;
  reported: number;
  unknown_matches: number;
  cpu_percent: number;
  memory_percent: number;
  score: number;
  passed_over: string | null;
  backoff_left_ms: number;
  round_trip_us: number | null;
  heard_at: string | null;
  registered_at: string;
  connected_at: string | null;
  host: string | null;
  host_name: string | null;
  room: string | null;
  pid: number | null;
  ports: number[];
  exit: Exit | null;
}

export interface Session {
  id: string;
  ticket: string;
  server: string;
  fleet: string;
  kind: 'match' | 'room';
  chat_server: string | null;
  lobby: number | null;
  version: string | null;
  host: string | null;
  state: string;
  ready: boolean;
  game_type: number | null;
  game_mode: number | null;
  player_count: number;
  seated: number;
  created_at: string;
  opened_at: string | null;
  deadline_at: string | null;
  end_reason: string | null;
}

export interface Room {
  id: string;
  ticket: string | null;
  server: string;
  fleet: string;
  version: string;
  deployment: string | null;
  host: string | null;
  host_name: string | null;
  address: string | null;
  host_away: boolean;
  region: string;
  state: string;
  end_reason: string | null;
  max_players: number;
  reserved: number;
  taken: number;
  ports: number[];
  settings: Record<string, unknown>;
  created_at: string;
  opened_at: string | null;
  deadline_at: string | null;
}

export interface Seat {
  id: string;
  room: string;
  ticket: string | null;
  fleet: string;
  account: string;
  address: string | null;
  state: 'reserved' | 'taken';
  multi: string | null;
  info: Record<string, unknown>;
  reserved_at: string;
  joined_at: string | null;
  deadline_at: string | null;
}

export interface Allocation {
  id: string;
  ticket_id: string;
  fleet: string;
  player: string;
  bus: string;
  state: string;
  error: string | null;
  why: string | null;
  owed: boolean;
  priority: number;
  region: string | null;
  room: string | null;
  position: number;
  ahead: number;
  eta_ms: number;
  waited_ms: number;
  players: number;
  party: string | null;
  opened_at: string;
  queued_at: string | null;
  answered_at: string | null;
  deadline_at: string | null;
}

/** The chat server under which Muster asks for its own lobbies. */
export const OWN_LOBBIES = '@lobbies';

const ENDS: Record<string, string> = {
  match_ended: 'Its server said that it is over.',
  server_lost: 'Its server was lost and did not come back in time.',
  not_listed: 'Its server came back and no longer held it.',
  too_long: 'It had lasted as long as it may.',
  not_reported: 'Its server had reported for a while that it holds no match.',
  by_operator: 'An operator ended it.',
  spawn_failed: 'Its server could not be started.',
  spawn_timeout: 'Its server was not ready in time.',
  exited: 'The process of its server ended.',
  empty: 'Nobody had been in it for a while.',
  given_up: 'Nobody waited for it any more.',
  host_lost: 'Its host was silent for too long.',
  hung: 'Its server did not answer any more and was ended.',
};

export const endSentence = (reason: string | null): string =>
  (reason === null ? 'It goes on.' : ENDS[reason] ?? reason);

const PASSED: Record<string, string> = {
  offline: 'It has not been heard of for too long.',
  away: 'It is not connected just now.',
  unlisted: 'It came back, and the list of its matches is awaited.',
  draining: 'It drains.',
  failing: 'It refused, timed out or dropped lately.',
  full: 'It has no free slot.',
};

export const passedSentence = (reason: string | null): string =>
  (reason === null ? 'No: it is a candidate.' : PASSED[reason] ?? reason);

const SIGNALS: Record<number, string> = {
  1: 'SIGHUP', 2: 'SIGINT', 3: 'SIGQUIT', 4: 'SIGILL', 6: 'SIGABRT', 7: 'SIGBUS', 8: 'SIGFPE', 9: 'SIGKILL',
  10: 'SIGUSR1', 11: 'SIGSEGV', 12: 'SIGUSR2', 13: 'SIGPIPE', 14: 'SIGALRM', 15: 'SIGTERM', 24: 'SIGXCPU', 25: 'SIGXFSZ', 31: 'SIGSYS',
};
const SIGNAL_HINTS: Record<number, string> = {
  6: 'It gave up by itself: an assertion failed, or it called abort.',
  7: 'It crashed: it used memory that is not there.',
  8: 'It crashed: a wrong calculation, such as a division by zero.',
  9: 'It was killed: it did not end when it was asked to, or memory ran out on the host.',
  11: 'It crashed: it used memory that is not its own.',
  15: 'It was asked to end.',
  25: 'It wrote a larger file than it may.',
  31: 'It made a system call that it may not.',
};

/** How a process ended, and what that usually means. */
export function exitSentence(e: Exit): string {
  if (e.why !== null) return `Its process was never started: ${e.why}`;
  if (e.signal !== null) {
    const name = SIGNALS[e.signal];
    return `Signal ${e.signal}${name ? ` (${name})` : ''} ended it. ${SIGNAL_HINTS[e.signal] ?? ''}`.trim();
  }
  if (e.code === null) return 'Nobody saw how it ended.';
  return e.code === 0 ? 'It ended by itself, as it should (exit code 0).'
    : `It ended by itself with exit code ${e.code}, which says that something was wrong.`;
}
