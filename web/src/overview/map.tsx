// The regions on a map of the world, and the same as a table.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import land from 'virtual:land';
import { count, number } from '../format';
import { Card, Meter } from '../ui/parts';
import { Column, Table } from '../ui/table';
import { Mark, marksOf, viewOf } from './layout';
import { Mood, Spot } from './status';

const hrefOf = (s: Spot): string =>
  `#/${s.servers === 0 && s.hosts > 0 ? 'hosts' : 'servers'}?region=${encodeURIComponent(s.id)}`;

function sentenceOf(s: Spot): string {
  if (s.mood === 'idle') return `${s.id}: ${s.word}.`;
  const parts = [];
  if (s.servers > 0) {
    const c = s.region.servers;
    parts.push(`${count(s.servers, 'server')} (${c.available} available, ${c.full} full, ${c.draining} draining, ${c.offline} offline)`);
    parts.push(count(s.region.sessions, 'match', 'matches'));
  }
  if (s.hosts > 0) parts.push(`${s.healthy} of ${count(s.hosts, 'host')} healthy, ${count(s.rooms, 'room')}`);
  if (s.total > 0) parts.push(`${number(s.used)} of ${number(s.total)} slots used`);
  return `${s.id}: ${s.word}. ${parts.join('; ')}.`;
}

const MOODS: [Mood, string][] = [
  ['good', 'fine'], ['busy', 'nearly full, or part of it in trouble'], ['bad', 'takes nothing new'], ['idle', 'nothing there'],
];

/** One region. A mark that had to move aside is tied to its place with a line. */
function MarkView({ mark, show }: { mark: Mark; show: (s: Spot | null) => void }) {
  const { spot, x, y, radius, placeX, placeY, lines, west } = mark;
  const aside = Math.hypot(x - placeX, y - placeY) > radius;
  const top = y + 4 - (lines.length - 1) * 6.5;
  return (
    <a href={hrefOf(spot)} class={`mark ${spot.mood}`} aria-label={sentenceOf(spot)}
      onMouseEnter={() => show(spot)} onMouseLeave={() => show(null)} onFocus={() => show(spot)} onBlur={() => show(null)}>
      {aside && <line x1={placeX} y1={placeY} x2={x} y2={y} />}
      {aside && <circle class="mark-place" cx={placeX} cy={placeY} r="1.5" />}
      <circle class="mark-circle" cx={x} cy={y} r={radius} />
      {(spot.mood === 'bad' || spot.mood === 'busy') && <text class="mark-sign" x={x} y={y + 4}>!</text>}
      {lines.map((line, i) => (
        <text key={i} class={i === 0 ? 'mark-name' : 'mark-count'} x={west ? x - radius - 3 : x + radius + 3} y={top + i * 13} text-anchor={west ? 'end' : 'start'}>{line}</text>
      ))}
    </a>
  );
}

export function WorldMap({ spots }: { spots: Spot[] }) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(600);
  const [shown, show] = useState<Spot | null>(null);
  useEffect(() => {
    const el = box.current;
    if (!el) return undefined;
    const resized = new ResizeObserver(() => setWidth(Math.max(240, el.clientWidth)));
    resized.observe(el);
    return () => resized.disconnect();
  }, []);
  const view = useMemo(() => viewOf(spots, width), [spots, width]);
  const marks = useMemo(() => marksOf(spots, view), [spots, view]);
  const lost = spots.filter((s) => s.region.latitude === null && s.mood !== 'idle');
  const now = shown && (spots.find((s) => s.id === shown.id) ?? shown);
  return (
    <div ref={box} class="world">
      <svg viewBox={`0 0 ${view.width} ${view.height}`} role="group" aria-label="Regions on the map of the world">
        <path class="land" d={land} aria-hidden="true"
          transform={`scale(${view.scale}) translate(${-view.west} ${view.north})`} />
        {marks.map((m) => m.spot.mood === 'idle' && <MarkView key={m.spot.id} mark={m} show={show} />)}
        {marks.map((m) => m.spot.mood !== 'idle' && <MarkView key={m.spot.id} mark={m} show={show} />)}
      </svg>
      <p class="world-says">
        {now
          ? sentenceOf(now)
          : MOODS.map(([mood, word]) => <span key={mood} class={`key ${mood}`}><span class="dot" aria-hidden="true" /> {word}</span>)}
      </p>
      {lost.length > 0 && (
        <p class="dim small-text">
          Not on the map, because the configuration gives no latitude and longitude: {lost.map((s) => s.id).join(', ')}.
        </p>
      )}
    </div>
  );
}

const some = (n: number) => (n === 0 ? <span class="dim">0</span> : number(n));
const COLUMNS: Column<Spot>[] = [
  { key: 'name', title: 'Region', cell: (s) => s.id, sort: (s) => s.id },
  { key: 'available', title: 'Available', cell: (s) => some(s.region.servers.available), sort: (s) => s.region.servers.available, right: true },
  { key: 'full', title: 'Full', cell: (s) => some(s.region.servers.full), sort: (s) => s.region.servers.full, right: true },
  { key: 'draining', title: 'Draining', cell: (s) => some(s.region.servers.draining), sort: (s) => s.region.servers.draining, right: true, wide: true },
  { key: 'offline', title: 'Offline', cell: (s) => (s.region.servers.offline > 0 ? <strong class="bad">{number(s.region.servers.offline)}</strong> : some(0)), sort: (s) => s.region.servers.offline, right: true },
  { key: 'hosts', title: 'Hosts', cell: (s) => (s.healthy < s.hosts ? <span class={s.sick > 0 ? 'bad' : ''}>{s.healthy} of {s.hosts}</span> : some(s.hosts)), sort: (s) => s.hosts, right: true, wide: true },
  { key: 'rooms', title: 'Rooms', cell: (s) => some(s.rooms), sort: (s) => s.rooms, right: true, wide: true },
  { key: 'slots', title: 'Slots', cell: (s) => <Meter value={s.total ? s.used / s.total : 0} text={s.total > 0 ? `${s.used} of ${s.total}` : '–'} />, sort: (s) => (s.total ? s.used / s.total : 0) },
];

export function Regions({ spots }: { spots: Spot[] }) {
  const used = spots.filter((s) => s.mood !== 'idle');
  const idle = spots.length - used.length;
  return (
    <div class="overview-regions">
      <Card title="Regions"><WorldMap spots={spots} /></Card>
      <Card title="Servers by region and state">
        <Table name="Servers by region and state" rows={used} columns={COLUMNS} href={hrefOf} tall={false} />
        {idle > 0 && <p class="dim small-text">{count(idle, 'other region has', 'other regions have')} nothing.</p>}
      </Card>
    </div>
  );
}
