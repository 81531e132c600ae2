// Changes as they happen: one connection to GET /v1/events for the whole console, which goes on
// where it was after Muster was away, and says how fresh everything is.
import { Refusal, stream, withQuery } from './api';

export type Change = { kind: string; id: string; data: Record<string, unknown> };
export type Freshness = { connected: boolean; heardAt: number; why: string };

type Listener = { kinds: string[]; hear: (changes: Change[]) => void; anew: () => void };

const listeners = new Set<Listener>();
const watchers = new Set<(f: Freshness) => void>();
let freshness: Freshness = { connected: false, heardAt: 0, why: 'connecting' };
let lastId = '';
let asked = '';
let running: AbortController | null = null;
let pending: Change[] = [];
let scheduled = false;

const ALWAYS = ['load']; // once a second: the pulse
const BACKOFF_MS = [250, 500, 1000, 2000, 4000];
const SILENCE_MS = 5000; // `load` comes each second, so this long without it is a dead connection
const PENDING_MAX = 20000; // a tab in the background must not collect for ever

function say(next: Partial<Freshness>): void {
  freshness = { ...freshness, ...next };
  for (const w of watchers) w(freshness);
}

export const currentFreshness = (): Freshness => freshness;

export function watchFreshness(then: (f: Freshness) => void): () => void {
  watchers.add(then);
  return () => watchers.delete(then);
}

/** `then` is called each time Muster is heard again after it was away. */
export function whenBack(then: () => void): () => void {
  let was = freshness.connected;
  return watchFreshness(({ connected }) => {
    const back = connected && !was;
    was = connected;
    if (back) then();
  });
}

/** `hear` is called with changes of these kinds, a frame's worth at once; `anew` when some were
 * missed and lists must be read again. */
export function listen(
  kinds: string[], hear: (changes: Change[]) => void, anew: () => void,
): () => void {
  const listener = { kinds, hear, anew };
  listeners.add(listener);
  reconnectIfOtherKinds();
  return () => {
    listeners.delete(listener);
    reconnectIfOtherKinds();
  };
}

function wanted(): string {
  return [...new Set([...ALWAYS, ...[...listeners].flatMap((l) => l.kinds)])].sort().join(',');
}

let settle = 0;
function reconnectIfOtherKinds(): void {
  if (!running) return;
  window.clearTimeout(settle); // a page that is left and one that is entered are one change
  settle = window.setTimeout(() => {
    if (running && wanted() !== asked) running.abort();
  }, 50);
}

function flush(): void {
  scheduled = false;
  const changes = pending;
  pending = [];
  for (const l of listeners) {
    const mine = changes.filter((c) => l.kinds.includes(c.kind));
    if (mine.length > 0) l.hear(mine);
  }
}

function allAnew(): void {
  pending = [];
  for (const l of listeners) l.anew();
}

function take(kind: string, id: string, text: string): void {
  if (id) lastId = id;
  if (kind === 'gap') return allAnew();
  if (!text) return;
  pending.push({ kind, id, data: JSON.parse(text) as Record<string, unknown> });
  if (pending.length > PENDING_MAX) return allAnew();
  if (!scheduled) {
    scheduled = true;
    window.setTimeout(flush, 100); // not a frame: a hidden tab has none
  }
}

/** Server-sent events out of pieces of text. */
export function sseReader(event: (kind: string, id: string, data: string) => void) {
  let rest = '';
  let kind = '';
  let id = '';
  let data: string[] = [];
  return (piece: string): void => {
    rest += piece;
    let end: number;
    while ((end = rest.indexOf('\n')) >= 0) {
      const line = rest.slice(0, end).replace(/\r$/, '');
      rest = rest.slice(end + 1);
      if (line === '') {
        if (kind || id || data.length > 0) event(kind, id, data.join('\n'));
        kind = '';
        id = '';
        data = [];
      } else if (line.startsWith('event:')) kind = line.slice(6).trim();
      else if (line.startsWith('id:')) id = line.slice(3).trim();
      else if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''));
    }
  };
}

async function once(): Promise<void> {
  const mine = (running = new AbortController());
  asked = wanted();
  const read = sseReader(take);
  let heard = Date.now();
  const watchdog = window.setInterval(() => {
    if (Date.now() - heard > SILENCE_MS) mine.abort();
  }, 1000);
  try {
    await stream(withQuery('/v1/events', { kinds: asked }), (text) => {
      heard = Date.now();
      if (!freshness.connected || heard - freshness.heardAt > 500)
        say({ connected: true, heardAt: heard, why: '' });
      read(text);
    }, mine.signal, lastId ? { 'Last-Event-ID': lastId } : {});
  } finally {
    window.clearInterval(watchdog);
  }
}

let generation = 0;

/** From now on, until stop. */
export async function start(): Promise<void> {
  const mine = ++generation;
  for (let failed = 0; mine === generation; ) {
    const before = Date.now();
    let why = 'the connection ended';
    const kinds = wanted();
    try {
      await once();
    } catch (e) {
      if (e instanceof Refusal && (e.status === 401 || e.status === 403)) {
        say({ connected: false, why: e.message });
        return;
      }
      if (e instanceof Refusal && e.status === 400) lastId = '';
      if (e instanceof Error && e.name !== 'AbortError') why = e.message;
    }
    if (mine !== generation) return;
    if (kinds !== wanted()) continue; // ended by ourselves, to ask for something else
    say({ connected: false, why });
    if (Date.now() - before > 5000) failed = 0;
    await new Promise((r) => window.setTimeout(r, BACKOFF_MS[Math.min(failed++, 4)]));
  }
}

export function stop(): void {
  generation++;
  running?.abort();
  running = null;
  lastId = '';
  say({ connected: false, heardAt: 0, why: '' });
}
