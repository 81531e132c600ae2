// The queue: who waits for a seat, where in line, for how long already, and for how long still.
import { change } from '../api';
import { useAnswer, useList } from '../data';
import { count, decimal, duration, number } from '../format';
import { Allocation } from '../model';
import { link, Place, setQuery } from '../router';
import { Act } from '../ui/act';
import { Card, Choice, Figure, Find, PageHead, Since } from '../ui/parts';
import { Answer, Empty } from '../ui/state';
import { Column, List, Table } from '../ui/table';

interface Queue {
  fleet: string;
  room: string | null;
  entries: number;
  players: number;
  held: number;
  oldest_ms: number;
  freed_per_min: number;
}

type Waiting = { queues: { entries: number; players: number; oldest_ms: number } };

/** "room 7", or "any room of arena" */
function LineName({ fleet, room }: { fleet: string; room: string | null }) {
  return room ? <a href={link('rooms', room)}>room {room} of {fleet}</a> : <a href={link('fleets', fleet)}>any room of {fleet}</a>;
}

const LINES: Column<Queue & { id: string }>[] = [
  { key: 'line', title: 'Line for', cell: (l) => <LineName fleet={l.fleet} room={l.room} />, sort: (l) => `${l.fleet} ${l.room ?? ''}` },
  { key: 'players', title: 'Players', cell: (l) => number(l.players), sort: (l) => l.players, right: true },
  { key: 'oldest', title: 'Oldest waits', cell: (l) => duration(l.oldest_ms), sort: (l) => l.oldest_ms, right: true },
  { key: 'entries', title: 'Requests', cell: (l) => number(l.entries), sort: (l) => l.entries, right: true, wide: true },
  { key: 'freed', title: 'Seats freed a minute', cell: (l) => decimal(l.freed_per_min), sort: (l) => l.freed_per_min, right: true, wide: true },
  { key: 'held', title: 'Seats kept for the oldest', cell: (l) => number(l.held), sort: (l) => l.held, right: true, wide: true },
];

const WAITING: Column<Allocation>[] = [
  { key: 'player', title: 'Player', cell: (a) => a.player, sort: (a) => a.player },
  { key: 'line', title: 'Line for', cell: (a) => <LineName fleet={a.fleet} room={a.room} />, sort: (a) => `${a.fleet} ${a.room ?? ''}`, wide: true },
  { key: 'position', title: 'Place', cell: (a) => a.position || '…', sort: (a) => a.position, right: true },
  { key: 'waits', title: 'Waits', cell: (a) => <Since at={a.queued_at} />, sort: (a) => (a.queued_at ? -Date.parse(a.queued_at) : null), right: true },
  { key: 'eta', title: 'Still about', cell: (a) => (a.eta_ms > 0 ? duration(a.eta_ms) : <span class="dim">not known</span>), sort: (a) => a.eta_ms || null, right: true, wide: true },
  { key: 'priority', title: 'Priority', cell: (a) => a.priority, sort: (a) => a.priority, right: true, wide: true },
  { key: 'party', title: 'Party', cell: (a) => (a.players > 1 ? `of ${a.players}` : <span class="dim">alone</span>), sort: (a) => a.players, wide: true },
  { key: 'why', title: 'Why', cell: (a) => <a href={link('tickets', a.id)} aria-label={`Why ${a.player} waits`}>why</a>, wide: true },
  { key: 'remove', title: 'Change', cell: (a) => <Remove a={a} /> },
];

export function Remove({ a, after }: { a: { player: string; players: number }; after?: () => void }) {
  return (
    <Act verb={`Take ${a.player} out of the line`} label="Remove" of={a.player} danger small
      text={<>His request fails and he hears so{a.players > 1 ? `, with the ${count(a.players - 1, 'player')} who wait with him` : ''}. He may ask again, and then stands at the end.</>}
      run={() => change(`/v1/queues/players/${encodeURIComponent(a.player)}`, undefined, 'DELETE')}
      done={`${a.player} is out of the line.`} {...(after ? { after } : {})} />
  );
}

export function QueuePage({ place }: { place: Place }) {
  const q = (name: string) => place.query.get(name) ?? '';
  const [fleet, text] = [q('fleet'), q('find')];
  const status = useAnswer<Waiting>('/v1/status', {}, 2000);
  const lines = useAnswer<{ items: Queue[] }>('/v1/queues', { fleet }, 2000, ['allocation']);
  const fleets = useAnswer<{ items: { name: string; provider: string }[] }>('/v1/fleets', { limit: 1000 }, 30000);
  const list = useList<Allocation>('/v1/allocations', { state: 'queued', fleet }, 'allocation', (a) =>
    a.state === 'queued' && (!fleet || a.fleet === fleet));
  const shown = text ? list.rows.filter((a) => a.player.includes(text)) : list.rows;
  const waiting = status.data?.queues;
  return (
    <>
      <PageHead title="Queue" lead="Who waits for a seat, the longest first, across all lines." />
      {waiting && (
        <div class="figures">
          <Figure name="Players waiting" value={number(waiting.players)} note={count(waiting.entries, 'request')} />
          <Figure name="The oldest waits" value={waiting.entries > 0 ? duration(waiting.oldest_ms) : '–'} />
        </div>
      )}
      <div class="filters">
        <Choice name="Fleet" value={fleet} options={(fleets.data?.items ?? []).filter((f) => f.provider !== 'chat').map((f) => f.name)} onChange={(v) => setQuery({ fleet: v })} />
        <Find name="Player" value={text} onChange={(v) => setQuery({ find: v })} />
      </div>
      <List list={list} shown={shown} what="requests" columns={WAITING} initial={{ key: 'waits', down: true }}
        href={(a) => link('players', a.player)}
        empty={<Empty title="Nobody waits">When rooms are full and no server can be started, players stand in line here.</Empty>} />
      {list.rows.length > 0 && (
        <Card title="Lines" aside="in which order seats are given">
          <Answer of={lines} what="the lines">
            {({ items }) => (items.length > 0
              ? <Table name="lines" rows={items.map((l) => ({ ...l, id: `${l.fleet} ${l.room ?? ''}` }))} columns={LINES} tall={false} />
              : <p class="dim">None.</p>)}
          </Answer>
        </Card>
      )}
    </>
  );
}
