// Rooms: the list, and one of them with who sits in it, its settings, its log and how it ended.
import { ComponentChildren } from 'preact';
import { change } from '../api';
import { useAnswer, useList } from '../data';
import { count } from '../format';
import { endSentence, Exit, Room, Seat } from '../model';
import { link, Place, setQuery } from '../router';
import { Act, Line } from '../ui/act';
import { ExitReport, LogTail } from '../ui/log';
import { Ago, Badge, Card, Choice, Facts, Find, Json, Meter, PageHead, Since, Until } from '../ui/parts';
import { Answer, Empty } from '../ui/state';
import { Column, List, Table } from '../ui/table';
import { Terminate } from './servers';

interface FullRoom extends Room {
  exit: Exit | null;
  seats: Seat[];
}

const playersOf = (r: Room) => `${r.taken}${r.reserved > 0 ? ` + ${r.reserved} coming` : ''} of ${r.max_players}`;
const fullness = (r: Room) => (r.max_players > 0 ? (r.taken + r.reserved) / r.max_players : 0);
const addressOf = (r: Room) => (r.address ? `${r.address}:${r.ports.join(', ')}` : '–');

const COLUMNS: Column<Room>[] = [
  { key: 'id', title: 'Room', cell: (r) => r.id, sort: (r) => Number(r.id) },
  { key: 'state', title: 'State', cell: (r) => <><Badge state={r.state} />{r.host_away && <span class="bad"> host away</span>}</>, sort: (r) => r.state },
  { key: 'players', title: 'Players', cell: (r) => (r.state === 'ended' ? <span class="dim">–</span> : <Meter value={fullness(r)} text={playersOf(r)} even />), sort: (r) => (r.state === 'ended' ? null : fullness(r)) },
  { key: 'fleet', title: 'Fleet', cell: (r) => r.fleet, sort: (r) => r.fleet, wide: true },
  { key: 'version', title: 'Version', cell: (r) => r.version, sort: (r) => r.version, wide: true },
  { key: 'region', title: 'Region', cell: (r) => r.region, sort: (r) => r.region, wide: true },
  { key: 'host', title: 'Host', cell: (r) => (r.host ? <a href={link('hosts', r.host)}>{r.host_name ?? r.host}</a> : <span class="dim">–</span>), sort: (r) => r.host_name, wide: true },
  { key: 'address', title: 'Address', cell: addressOf, sort: addressOf, wide: true },
  { key: 'age', title: 'Age', cell: (r) => <Since at={r.created_at} />, sort: (r) => -Date.parse(r.created_at), right: true },
];

const STATES: [string, string][] = [['all', 'all'], ['starting', 'starting'], ['open', 'open'], ['ending', 'ending'], ['ended', 'ended']];

export function RoomsPage({ place }: { place: Place }) {
  return place.rest[0] ? <RoomPage id={place.rest[0]} key={place.rest[0]} /> : <RoomsList place={place} />;
}

function RoomsList({ place }: { place: Place }) {
  const q = (name: string) => place.query.get(name) ?? '';
  const fleets = useAnswer<{ items: { name: string; provider: string }[] }>('/v1/fleets', { limit: 1000 }, 30000);
  const regions = useAnswer<{ items: { name: string }[] }>('/v1/regions', {}, 30000);
  const [state, fleet, region, version, host, text] = [q('state'), q('fleet'), q('region'), q('version'), q('host'), q('find')];
  const asked = state === 'all' ? '' : state;
  const list = useList<Room>('/v1/rooms', { state: asked, fleet, region, version, host, order: 'newest' }, 'room', (r) =>
    (!asked || r.state === asked) && (!fleet || r.fleet === fleet) && (!region || r.region === region) &&
    (!version || r.version === version) && (!host || r.host === host), undefined, { one: true });
  const shown = list.rows.filter((r) => (state !== '' || r.state !== 'ended') &&
    (!text || `${r.id} ${r.host_name ?? ''} ${addressOf(r)} ${JSON.stringify(r.settings ?? {})}`.includes(text)));
  return (
    <>
      <PageHead title="Rooms" lead="What players share on a server that an agent started for them." />
      <div class="filters">
        <Choice name="State" value={state} all="not over" options={STATES} onChange={(v) => setQuery({ state: v })} />
        <Choice name="Fleet" value={fleet} options={(fleets.data?.items ?? []).filter((f) => f.provider !== 'chat').map((f) => f.name)} onChange={(v) => setQuery({ fleet: v })} />
        <Choice name="Region" value={region} options={(regions.data?.items ?? []).map((r) => r.name)} onChange={(v) => setQuery({ region: v })} />
        <Find name="Version" value={version} onChange={(v) => setQuery({ version: v })} />
        <Find name="Find" value={text} placeholder="number, host, address, setting" onChange={(v) => setQuery({ find: v })} />
        {host && <button onClick={() => setQuery({ host: '' })}>Only on host {host} ×</button>}
      </div>
      <List list={list} shown={shown} what="rooms" columns={COLUMNS} initial={{ key: 'id', down: true }}
        href={(r) => link('rooms', r.id)}
        none={!text && state === '' ? <Empty title="No room now"><button onClick={() => setQuery({ state: 'all' })}>Show those that ended lately</button></Empty> : undefined}
        empty={asked || fleet || region || version || host
          ? <Empty title="No room fits">Change the filters above to see more.</Empty>
          : <Empty title="No room yet">A player who creates or joins one makes the first. Try the <a href="#/playground">playground</a>, or: <code>muster room create FLEET</code></Empty>} />
    </>
  );
}

function RoomPage({ id }: { id: string }) {
  const room = useAnswer<FullRoom>(`/v1/rooms/${encodeURIComponent(id)}`, {}, 2000, ['room', 'room_seat']);
  return (
    <>
      <PageHead title={`Room ${id}`} lead={<a href="#/rooms">All rooms</a>}>
        {room.data && room.data.state !== 'ended' && <Terminate server={room.data.server} after={room.refresh} />}
      </PageHead>
      <Answer of={room} what={`room ${id}`}>{(r) => <RoomCards r={r} after={room.refresh} />}</Answer>
    </>
  );
}

function roomSentence(r: Room): string {
  if (r.state === 'starting') return 'Its server is being started; whoever asked for it waits.';
  if (r.state === 'ending') return `It is ending. ${endSentence(r.end_reason)}`;
  if (r.state === 'ended') return `It is over. ${endSentence(r.end_reason)}`;
  const free = r.max_players - r.taken - r.reserved;
  return `${count(r.taken, 'player is', 'players are')} in it${r.reserved > 0 ? `, ${r.reserved} on the way` : ''}; ` +
    (free > 0 ? `${count(free, 'place is', 'places are')} free.` : 'it is full.');
}

function RoomCards({ r, after }: { r: FullRoom; after: () => void }) {
  const over = r.state === 'ended';
  const facts: [string, ComponentChildren][] = [
    ['State', <Badge state={r.state} />],
    ['Fleet', <a href={link('fleets', r.fleet)}>{r.fleet}</a>],
    ['Version', r.deployment ? <>{r.version}, <a href="#/deployments">deployment {r.deployment}</a></> : r.version],
    ['Region', r.region],
    ['Address', r.address && <code>{addressOf(r)}</code>],
    ['Host', r.host && <a href={link('hosts', r.host)}>{r.host_name ?? r.host}</a>],
    ['Server', <a href={link('servers', r.server)}>{r.server}</a>],
    ['Made for', r.ticket && <a href={link('tickets', r.ticket)}>ticket {r.ticket}</a>],
    ['Created', <Ago at={r.created_at} />],
    ['Ready', r.opened_at ? <Ago at={r.opened_at} /> : 'not yet'],
    [over ? 'Forgotten' : 'Ends by itself', <Until at={r.deadline_at} />],
  ];
  return (
    <>
      {r.host_away && <p class="stale" role="status">Its host is silent: nobody knows how it is, and reservations stand still.</p>}
      <p class="sentence">{roomSentence(r)}</p>
      <div class="cards">
        <Card title="What it is"><Facts of={facts} /></Card>
        {(r.exit || over) && (
          <Card title="How it ended">
            {r.end_reason && <p class="sentence">{endSentence(r.end_reason)}</p>}
            {r.exit ? <ExitReport exit={r.exit} /> : <p class="dim">No report of its process has come.</p>}
          </Card>
        )}
        <Card title="Settings">
          {Object.keys(r.settings).length > 0 ? <Json of={r.settings} /> : <p class="dim">It has none.</p>}
        </Card>
        {!over && <Seats r={r} after={after} />}
        <Card title={<>Log of <a href={link('servers', r.server)}>server {r.server}</a></>} wide>
          <LogTail id={r.server} live={!over} />
        </Card>
      </div>
    </>
  );
}

function Seats({ r, after }: { r: FullRoom; after: () => void }) {
  const columns: Column<Seat>[] = [
    { key: 'account', title: 'Player', cell: (s) => s.account, sort: (s) => s.account },
    { key: 'state', title: 'Seat', cell: (s) => <Badge state={s.state} />, sort: (s) => s.state },
    { key: 'when', title: 'Since, or until', cell: (s) => <SeatTime s={s} />, sort: (s) => s.joined_at ?? s.reserved_at },
    { key: 'kick', title: 'Change', cell: (s) => <Kick s={s} after={after} /> },
    { key: 'address', title: 'Came from', cell: (s) => s.address ?? '–', sort: (s) => s.address, wide: true },
    { key: 'multi', title: 'Together', cell: (s) => (s.multi ? `party ${s.multi}` : <span class="dim">alone</span>), sort: (s) => s.multi, wide: true },
    { key: 'info', title: 'Info', cell: (s) => (Object.keys(s.info).length > 0 ? <code title={JSON.stringify(s.info, null, 2)}>{JSON.stringify(s.info)}</code> : <span class="dim">–</span>), wide: true },
  ];
  return (
    <Card title="Who sits in it" wide aside={playersOf(r)}>
      {r.seats.length > 0
        ? <Table name="seats" rows={r.seats} columns={columns} href={(s) => link('players', s.account)} tall={false} />
        : <p class="dim">Nobody.</p>}
    </Card>
  );
}

function SeatTime({ s }: { s: Seat }) {
  if (s.state === 'taken') return <>joined <Ago at={s.joined_at} /></>;
  return s.deadline_at ? <>given back <Until at={s.deadline_at} /></> : <>stands still</>;
}

function Kick({ s, after }: { s: Seat; after: () => void }) {
  let reason = '';
  return (
    <Act verb={`Kick ${s.account} out of room ${s.room}`} label="Kick" of={s.account} danger small
      text={<>
        <p>His seat is given back at once, and the game server is told to throw him out. He may come again; a <a href="#/bans">ban</a> would keep him out.</p>
        <Line name="What the game server may show him" placeholder="nothing" into={(v) => { reason = v; }} />
      </>}
      run={() => change(`/v1/seats/${s.id}/kick`, reason.trim() ? { reason: reason.trim() } : undefined)}
      done={`${s.account} is out of room ${s.room}.`} after={after} />
  );
}
