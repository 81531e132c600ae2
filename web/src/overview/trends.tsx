// Charts over time, from GET /v1/trends. The whole window is read once, then only what is new; what
// was seen before Muster was away stays, with a gap.
import { useEffect, useMemo, useState } from 'preact/hooks';
import { get, Refusal } from '../api';
import { Loaded } from '../data';
import { setQuery } from '../router';
import { Chart, Line } from '../ui/chart';
import { Card } from '../ui/parts';
import { Answer } from '../ui/state';

export interface Point {
  at: string;
  allocations: number;
  refused: number;
  p50_ms: number | null;
  p95_ms: number | null;
  p99_ms: number | null;
  joins: number;
  joins_failed: number;
  queue: number;
  oldest_wait_ms: number;
  players: number;
  sessions: number;
  rooms: number;
  servers: number;
  commit_p99_ms: number | null;
}

export interface Trends {
  step_ms: number;
  points: Point[];
}

export type Window = 'ten_minutes' | 'day';
const WINDOWS: Record<Window, { points: number; stepMs: number; refreshMs: number }> = {
  ten_minutes: { points: 600, stepMs: 1000, refreshMs: 2000 },
  day: { points: 1440, stepMs: 60000, refreshMs: 15000 },
};

/** What is known and what is new, oldest first, at most `most`. */
export function merge(old: Point[], fresh: Point[], most: number): Point[] {
  const last = old[old.length - 1]?.at ?? '';
  return [...old, ...fresh.filter((p) => p.at > last)].slice(-most);
}

export function useTrends(window_: Window): Loaded<Trends> {
  const [state, set] = useState<{ of: Window; data: Trends | null; error: Error | null }>({ of: window_, data: null, error: null });
  const [turn, again] = useState(0);
  useEffect(() => {
    const { points: most, stepMs, refreshMs } = WINDOWS[window_];
    const leaving = new AbortController();
    let timer = 0;
    let known: Point[] = [];
    let readAt = 0;
    const read = async (): Promise<void> => {
      const limit = readAt ? Math.min(most, Math.ceil((Date.now() - readAt) / stepMs) + 3) : null;
      try {
        const fresh = await get<Trends>('/v1/trends', { window: window_, limit }, leaving.signal);
        readAt = Date.now();
        known = merge(known, fresh.points, most);
        set({ of: window_, data: { step_ms: fresh.step_ms, points: known }, error: null });
      } catch (e) {
        if (e instanceof DOMException && e.name === 'AbortError') return;
        set((s) => ({ of: window_, data: s.of === window_ ? s.data : null, error: e as Error }));
        if (e instanceof Refusal && e.status < 500) return;
      }
      timer = window.setTimeout(() => void read(), document.hidden ? 15000 : refreshMs);
    };
    void read();
    return () => {
      leaving.abort();
      window.clearTimeout(timer);
    };
  }, [window_, turn]);
  const mine = state.of === window_;
  return {
    data: mine ? state.data : null, error: mine ? state.error : null,
    loading: !mine || (state.data === null && state.error === null), refresh: () => again((n) => n + 1),
  };
}

/** The same points with an empty one wherever some are missing, so that the line stops there. */
export function withGaps(points: Point[], stepMs: number): (Point | { at: string })[] {
  const out: (Point | { at: string })[] = [];
  let last = NaN;
  for (const p of points) {
    const at = Date.parse(p.at);
    if (at - last > 2.5 * stepMs) out.push({ at: new Date(last + stepMs).toISOString() });
    out.push(p);
    last = at;
  }
  return out;
}

type Key = Exclude<keyof Point, 'at'>;
interface Drawn {
  title: string;
  unit?: string;
  lines: [Key, string, string][]; // what, its name, its colour
  divide?: number;
}

const CHARTS: Drawn[] = [
  { title: 'Allocations', lines: [['allocations', 'allocated', '--green'], ['refused', 'refused', '--red']] },
  { title: 'How long allocations take', unit: ' ms', lines: [['p50_ms', 'p50', '--green'], ['p95_ms', 'p95', '--orange'], ['p99_ms', 'p99', '--red']] },
  { title: 'Joins', lines: [['joins', 'got a seat', '--green'], ['joins_failed', 'refused', '--red']] },
  { title: 'Waiting in line', lines: [['queue', 'allocations in line', '--orange']] },
  { title: 'Longest wait', unit: ' s', divide: 1000, lines: [['oldest_wait_ms', 'oldest in line', '--orange']] },
  { title: 'Players, matches and rooms', lines: [['players', 'players', '--blue'], ['sessions', 'matches', '--purple'], ['rooms', 'rooms', '--green']] },
  { title: 'Game servers', lines: [['servers', 'not offline', '--blue']] },
  { title: 'Commits of the store, p99', unit: ' ms', lines: [['commit_p99_ms', 'commit p99', '--purple']] },
];
const PER_STEP = ['Allocations', 'Joins'];

function Charts({ trends }: { trends: Trends }) {
  const { at, drawn } = useMemo(() => {
    const points = withGaps(trends.points, trends.step_ms) as Partial<Point>[];
    const values = (key: Key, divide = 1) => points.map((p) => (typeof p[key] === 'number' ? p[key] / divide : null));
    return {
      at: points.map((p) => Date.parse(p.at ?? '') / 1000),
      drawn: CHARTS.map((c) => ({
        ...c,
        title: PER_STEP.includes(c.title) ? `${c.title} per ${trends.step_ms === 1000 ? 'second' : 'minute'}` : c.title,
        lines: c.lines.map(([key, name, colour]): Line => ({ name, colour, values: values(key, c.divide) })),
      })),
    };
  }, [trends]);
  const span = trends.step_ms === 1000 ? 600 : 86400;
  return (
    <div class="charts">
      {drawn.map((c) => (
        <figure key={c.title} class="chart-box">
          <figcaption>{c.title}</figcaption>
          <Chart name={c.title} at={at} lines={c.lines} unit={c.unit ?? ''} span={span} height={130} />
        </figure>
      ))}
    </div>
  );
}

export function TrendCard({ trends, window: chosen }: { trends: Loaded<Trends>; window: Window }) {
  const choice = (value: Window, text: string) => (
    <button class="small" aria-pressed={chosen === value} onClick={() => setQuery({ window: value === 'day' ? 'day' : '' })}>{text}</button>
  );
  return (
    <Card title="Over time" wide aside={<span class="switch" role="group" aria-label="How far back">{choice('ten_minutes', 'ten minutes')}{choice('day', 'a day')}</span>}>
      <Answer of={trends} what="how it went">
        {(t) => (t.points.length === 0
          ? <p class="dim">Muster has just started: the first point comes {t.step_ms === 1000 ? 'in a second' : 'in a minute'}.</p>
          : <Charts trends={t} />)}
      </Answer>
    </Card>
  );
}
