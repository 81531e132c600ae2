// What pages are made of: answers of the API that keep themselves fresh.
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { Away, get, Query, Refusal, withQuery } from './api';
import { Change, listen, whenBack } from './live';

export interface Loaded<T> {
  data: T | null; // the last good answer, also while Muster is away
  error: Error | null;
  loading: boolean;
  refresh: () => void;
}

const AGAIN_MS = 200; // between a read and the one that changes asked for meanwhile

const isAbort = (e: unknown) => e instanceof DOMException && e.name === 'AbortError';
const asError = (e: unknown): Error => (e instanceof Error ? e : new Error(String(e)));

/** What `read` gives, read again every refreshMs (0 = never), when one of `kinds` changes, and when it
 * failed and Muster is back. The same `key` is the same question; null asks nothing. A refresh never ends a read that is under way, but
 * follows it: changes that come faster than answers must not keep these away for ever. */
function useRead<T>(
  key: string | null, read: (signal: AbortSignal) => Promise<T>, refreshMs: number, kinds: string[],
): Loaded<T> {
  const [state, set] = useState<{ key: string | null; data: T | null; error: Error | null }>(
    { key, data: null, error: null });
  const ask = useRef<() => void>(() => {});
  const refresh = useCallback(() => ask.current(), []);
  useEffect(() => {
    if (key === null) return undefined;
    const leaving = new AbortController();
    let timer = 0;
    let reading = false;
    let again = false;
    let failed = false;
    const look = async (): Promise<void> => {
      if (reading) {
        again = true;
        return;
      }
      reading = true;
      again = false;
      window.clearTimeout(timer);
      let useless = false; // asking again changes nothing
      try {
        const data = await read(leaving.signal);
        set({ key, data, error: null });
        failed = false;
      } catch (e) {
        if (isAbort(e)) return;
        failed = true;
        set((s) => ({ key, data: s.key === key ? s.data : null, error: asError(e) }));
        useless = e instanceof Refusal && e.status < 500;
      }
      reading = false;
      const pause = document.hidden ? Math.max(refreshMs, 10000) : refreshMs;
      if (again) timer = window.setTimeout(() => void look(), AGAIN_MS);
      else if (refreshMs > 0 && !useless) timer = window.setTimeout(() => void look(), pause);
    };
    ask.current = () => void look();
    const off = whenBack(() => failed && void look());
    void look();
    return () => {
      off();
      leaving.abort();
      window.clearTimeout(timer);
      ask.current = () => {};
    };
  }, [key, refreshMs]);
  useKinds(kinds, refresh);
  const mine = state.key === key;
  return {
    data: mine ? state.data : null,
    error: mine ? state.error : null,
    loading: !mine || (state.data === null && state.error === null),
    refresh,
  };
}

/** One answer of the API. */
export function useAnswer<T>(
  path: string | null, query: Query = {}, refreshMs = 2000, kinds: string[] = [],
): Loaded<T> {
  const url = path === null ? null : withQuery(path, query);
  return useRead<T>(url, (signal) => get<T>(url ?? '', {}, signal), refreshMs, kinds);
}

/** The first `most` of a list whose items have no id, or that few of many fit into; or up to the one
 * that is `enough`. */
export function usePages<T>(
  path: string | null, query: Query, most: number, refreshMs = 2000, kinds: string[] = [],
  enough: (last: T) => boolean = () => false,
): Loaded<{ items: T[]; complete: boolean }> {
  const url = path === null ? null : withQuery(path, query);
  return useRead(url, async (signal) => {
    const items: T[] = [];
    let cursor: string | null = null;
    do {
      const page: Page<T> = await get<Page<T>>(path ?? '', { ...query, limit: Math.min(most, PAGE), cursor }, signal);
      items.push(...page.items);
      const last = page.items[page.items.length - 1];
      cursor = last !== undefined && enough(last) ? null : page.next;
    } while (cursor !== null && items.length < most);
    return { items, complete: cursor === null };
  }, refreshMs, kinds);
}

/** Calls `then` soon after something of these kinds has changed, at most twice a second. */
function useKinds(kinds: string[], then: () => void): void {
  const joined = kinds.join(',');
  useEffect(() => {
    if (joined === '') return undefined;
    let timer = 0;
    const soon = () => {
      if (timer) return;
      timer = window.setTimeout(() => {
        timer = 0;
        then();
      }, 500);
    };
    const off = listen(joined.split(','), soon, soon);
    return () => {
      off();
      window.clearTimeout(timer);
    };
  }, [joined, then]);
}

export interface Row {
  id: string;
}

export interface ListState<T> {
  rows: T[];
  error: Error | null;
  loading: boolean; // nothing is there yet
  growing: boolean; // more is on its way
  complete: boolean; // everything is there
  more: () => void; // get the rest
  refresh: () => void;
}

interface Page<T> {
  items: T[];
  next: string | null;
}

const PAGE = 1000; // the most that the API gives at once
export const LIST_AT_ONCE = 20000; // so many are read without being asked to
const SHOW_MS = 400;
const refreshOf = (n: number) =>
  (n <= 200 ? 2000 : n <= 1000 ? 4000 : n <= 5000 ? 15000 : n <= LIST_AT_ONCE ? 60000 : 0);

/** Events leave out what lives in memory alone. How such a row becomes whole, other than by reading the
 * list again: */
interface Wholeness<T> {
  whole?: (data: Record<string, unknown>, kind: string) => T; // by what is the same for all of its kind
  one?: boolean; // in a long list by GET path/id
}

const LONG = 1000; // a list that is read again seldom
const ONE_BY_ONE = 20; // more changes at once wait for the whole list

/** Takes out the oldest when a list that begins with the newest has grown by a fifth. */
function bound<T>(map: Map<string, T>, limit: number): boolean {
  if (map.size <= limit * 1.2) return false;
  const oldest = [...map.keys()].sort((a, b) => Number(a) - Number(b)).slice(0, map.size - limit);
  for (const id of oldest) map.delete(id);
  return true;
}

/** A list of the API as a whole: read page by page, kept true by the changes of `kinds`, and read
 * again now and then for what lives in memory alone (loads, waits). `keep` says whether a changed
 * object belongs into this list under its filters. A list with order=newest that was not read whole
 * stays that long. path null is a list of nothing. */
export function useList<T extends Row>(
  path: string | null, query: Query, kinds: string | string[], keep: (row: T) => boolean = () => true,
  atOnce = LIST_AT_ONCE, { whole, one = false }: Wholeness<T> = {},
): ListState<T> {
  const url = path === null ? '' : withQuery(path, query);
  const [rows, setRows] = useState<T[]>([]);
  const [phase, setPhase] = useState({ url: path === null ? '' : '-', error: null as Error | null, growing: false, next: null as string | null });
  const limit = useRef(atOnce);
  const ask = useRef<() => void>(() => {});
  const refresh = useCallback(() => ask.current(), []);
  const kept = useRef(keep);
  kept.current = keep;
  const joined = [kinds].flat().join(',');

  useEffect(() => {
    limit.current = atOnce;
    setRows([]);
    if (path === null) {
      setPhase({ url, error: null, growing: false, next: null });
      return undefined;
    }
    const leaving = new AbortController();
    let byId = new Map<string, T>();
    let missed: Change[] = []; // what changes while the list is read
    let reading = false;
    let again = false;
    let failed = false;
    let [timer, soon, drawing] = [0, 0, 0];

    const apply = (changes: Change[]): boolean => {
      const sample = byId.values().next().value;
      let unknown = false;
      for (const { kind, data } of changes) {
        const id = String(data.id ?? '');
        const was = byId.get(id);
        const now = (was ? { ...was, ...data } : whole ? whole(data, kind) : data) as unknown as T;
        if (data.gone === true || !kept.current(now)) byId.delete(id);
        else if (was || whole || (sample && Object.keys(sample).every((k) => k in now))) byId.set(id, now);
        else unknown = true; // it is shown once it was read whole
      }
      if (query.order === 'newest' && bound(byId, limit.current))
        setPhase((p) => ({ ...p, next: p.next ?? 'older' }));
      return unknown;
    };
    const pages = async (): Promise<void> => {
      const fresh = new Map<string, T>();
      const first = byId.size === 0;
      let cursor: string | null = null;
      let shownAt = 0;
      do {
        const page: Page<T> = await get<Page<T>>(path, { ...query, limit: PAGE, cursor }, leaving.signal);
        for (const item of page.items) fresh.set(item.id, item);
        cursor = page.next;
        if (Date.now() - shownAt < SHOW_MS) continue; // sorting 100,000 for each page takes too long
        shownAt = Date.now();
        if (first) setRows([...fresh.values()]); // grow before the eyes
        setPhase({ url, error: null, growing: cursor !== null, next: cursor });
      } while (cursor !== null && fresh.size < limit.current);
      byId = fresh;
      setPhase({ url, error: null, growing: false, next: cursor });
      if (apply(missed)) again = true;
      setRows([...byId.values()]);
    };
    // As in useRead: a refresh follows a read that is under way, and never ends it.
    const read = async (): Promise<void> => {
      if (reading) {
        again = true;
        return;
      }
      reading = true;
      again = false;
      missed = [];
      window.clearTimeout(timer);
      let useless = false;
      try {
        await pages();
        failed = false;
      } catch (e) {
        if (isAbort(e)) return;
        failed = true;
        setPhase((p) => ({ ...p, url, error: asError(e), growing: false }));
        useless = e instanceof Refusal && e.status < 500;
      }
      reading = false;
      const pause = refreshOf(byId.size);
      if (again) readSoon();
      if (pause > 0 && !useless) timer = window.setTimeout(() => void read(), document.hidden ? Math.max(pause, 15000) : pause);
    };
    const readSoon = () => {
      if (soon) return;
      soon = window.setTimeout(() => {
        soon = 0;
        void read();
      }, Math.max(1000, byId.size * 2));
    };
    const drawSoon = () => { // a long list is drawn less often, so that it stays smooth
      if (drawing) return;
      drawing = window.setTimeout(() => {
        drawing = 0;
        setRows([...byId.values()]);
      }, byId.size / 20);
    };
    const readOne = async (id: string): Promise<void> => {
      const found = await get<T>(`${path}/${encodeURIComponent(id)}`, {}, leaving.signal).catch(() => null);
      if (found && kept.current(found)) byId.set(id, found);
      drawSoon();
    };
    const hear = (changes: Change[]) => {
      if (reading) missed.push(...changes);
      if (reading && byId.size === 0) return; // the first read is what is shown
      const unknown = apply(changes);
      const ids = new Set(changes.filter((c) => c.data.gone !== true).map((c) => String(c.data.id)));
      if (one && byId.size > LONG && ids.size <= ONE_BY_ONE) for (const id of ids) void readOne(id);
      else if (unknown) readSoon();
      drawSoon();
    };
    ask.current = () => void read();
    const off = listen(joined.split(','), hear, () => void read());
    const offBack = whenBack(() => failed && void read());
    void read();
    return () => {
      off();
      offBack();
      leaving.abort();
      for (const t of [timer, soon, drawing]) window.clearTimeout(t);
      ask.current = () => {};
    };
  }, [url, joined]);

  const mine = phase.url === url;
  return {
    rows: mine ? rows : [],
    error: mine ? phase.error : null,
    loading: !mine,
    growing: mine && phase.growing,
    complete: mine && phase.next === null && !phase.growing,
    more: () => {
      limit.current = Infinity;
      refresh();
    },
    refresh,
  };
}

/** In words, for a person. */
export function sentenceOf(e: Error): string {
  if (e instanceof Away) return 'Muster does not answer. The console asks again by itself.';
  return e.message;
}
