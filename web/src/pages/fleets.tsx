// Fleets: the servers of each game, how many places they have, and which version runs where.
import { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import { useAnswer, useList } from '../data';
import { bytes, count, number, percent } from '../format';
import { Room } from '../model';
import { ServerCounts, serversOf } from '../overview/status';
import { link, Place } from '../router';
import { Ago, Badge, Card, Facts, Figure, Meter, PageHead } from '../ui/parts';
import { Answer, Empty } from '../ui/state';
import { Column, List, Table } from '../ui/table';
import { Deployment, ready, sentence, Version, versionState, VersionVerbs } from '../version';

interface Fleet {
  id: string;
  name: string;
  configured: boolean;
  ready_required: boolean;
  provider: 'chat' | 'agent' | 'agones';
  game: string | null;
  server: string | null;
  max_players: number | null;
  servers: ServerCounts;
  slots: { used: number; total: number };
  sessions: number;
  rooms: number;
}

const PROVIDERS = { chat: 'register by themselves', agent: 'started by agents', agones: 'started by Agones' };
const STATES: (keyof ServerCounts)[] = ['available', 'full', 'draining', 'offline'];

/** "3 available, 1 offline" */
function statesOf(c: ServerCounts): string {
  const some = STATES.filter((s) => c[s] > 0).map((s) => `${number(c[s])} ${s}`);
  return some.join(', ') || 'none';
}

const share = (f: Fleet): number => (f.slots.total > 0 ? f.slots.used / f.slots.total : 0);

const columns = (versions: Version[]): Column<Fleet>[] => [
  { key: 'name', title: 'Fleet', cell: (f) => f.name, sort: (f) => f.name },
  { key: 'provider', title: 'Its servers', cell: (f) => (f.configured ? PROVIDERS[f.provider] : <span class="busy">no longer configured</span>), sort: (f) => f.provider, wide: true },
  { key: 'servers', title: 'Registered', cell: (f) => (f.provider === 'chat' ? statesOf(f.servers) : <span class="dim">–</span>), sort: (f) => serversOf(f.servers), wide: true },
  { key: 'slots', title: 'Slots used', cell: (f) => (f.slots.total > 0 ? <Meter value={share(f)} text={`${number(f.slots.used)} of ${number(f.slots.total)}`} /> : <span class="dim">–</span>), sort: share },
  { key: 'sessions', title: 'Matches', cell: (f) => number(f.sessions), sort: (f) => f.sessions, right: true },
  { key: 'rooms', title: 'Rooms', cell: (f) => number(f.rooms), sort: (f) => f.rooms, right: true },
  { key: 'versions', title: 'Versions', cell: (f) => <VersionsInShort of={versions.filter((v) => v.fleet === f.name)} />, wide: true },
];

function VersionsInShort({ of }: { of: Version[] }) {
  if (of.length === 0) return <span class="dim">–</span>;
  return <>{of.slice(0, 3).map((v) => <span key={v.name}>{v.name} {(v.quarantined || !v.enabled) && <Badge state={v.quarantined ? 'quarantined' : 'disabled'} />} </span>)}{of.length > 3 && `and ${of.length - 3} more`}</>;
}

export function FleetsPage({ place }: { place: Place }) {
  return place.rest[0] ? <FleetPage name={place.rest[0]} key={place.rest[0]} /> : <FleetsList />;
}

function FleetsList() {
  const list = useList<Fleet>('/v1/fleets', {}, 'fleet');
  const versions = useAnswer<{ items: Version[] }>('/v1/versions', {}, 5000, ['version']);
  const shape = useMemo(() => columns(versions.data?.items ?? []), [versions.data]);
  return (
    <>
      <PageHead title="Fleets" lead="The interchangeable servers of one game: how they are started and how much fits on them." />
      <List list={list} what="fleets" columns={shape} initial={{ key: 'name' }} href={(f) => link('fleets', f.name)}
        empty={<Empty title="No fleet yet">Fleets stand in the configuration. <code>muster config keys</code> says how, and <code>muster config check FILE</code> whether it is right.</Empty>} />
    </>
  );
}

function FleetPage({ name }: { name: string }) {
  const fleet = useAnswer<Fleet>(`/v1/fleets/${encodeURIComponent(name)}`, {}, 2000, ['fleet', 'server', 'room']);
  const f = fleet.data;
  const by = f ? `?fleet=${encodeURIComponent(f.name)}` : '';
  return (
    <>
      <PageHead title={`Fleet ${name}`} lead={<a href="#/fleets">All fleets</a>}>
        {f && <span class="links">
          <a href={`#/servers${by}`}>its servers</a>
          {f.provider === 'chat' ? <a href={`#/matches${by}`}>its matches</a> : <a href={`#/rooms${by}`}>its rooms</a>}
          <a href={`#/queue${by}`}>its queue</a>
          <a href={`#/tickets${by}`}>its tickets</a>
        </span>}
      </PageHead>
      <Answer of={fleet} what={`fleet ${name}`}>
        {(found) => <FleetParts f={found} by={by} />}
      </Answer>
    </>
  );
}

function FleetParts({ f, by }: { f: Fleet; by: string }) {
  return (
    <>
      {!f.configured && <p class="stale" role="note">This fleet is no longer in the configuration: its servers drain, and nothing new is placed there.</p>}
      <div class="figures" role="group" aria-label="Figures">
        {f.provider === 'chat' && STATES.map((s) => (
          <Figure key={s} name={`Servers ${s}`} href={`#/servers${by}&status=${s}`} value={number(f.servers[s])} {...(s === 'offline' && f.servers[s] > 0 ? { state: 'bad' as const } : {})} />
        ))}
        {f.provider === 'chat' && <Figure name="Slots used" value={`${number(f.slots.used)} of ${number(f.slots.total)}`}
          note={f.slots.total > 0 ? percent(100 * share(f)) : 'no server registered'} {...(f.slots.total > 0 && share(f) >= 0.95 ? { state: 'bad' as const } : {})} />}
        {f.provider === 'chat'
          ? <Figure name="Matches" href={`#/matches${by}`} value={number(f.sessions)} note="open" />
          : <Figure name="Rooms" href={`#/rooms${by}`} value={number(f.rooms)} note="that are not over" />}
      </div>
      <div class="cards">
        <Card title="What it is" wide>
          <Facts of={[
            ['Number', f.id],
            ['Its servers', PROVIDERS[f.provider]],
            ...(f.provider === 'chat' ? [
              ['A match counts', f.ready_required ? 'when its server has said READY' : 'when its server has accepted it'] as [string, ComponentChildren],
            ] : [
              ['Players name', <code>{f.game}/{f.server}</code>] as [string, ComponentChildren],
              ['Players in a room', number(f.max_players)] as [string, ComponentChildren],
            ]),
          ]} />
        </Card>
        {f.provider !== 'chat' && <Versions fleet={f.name} by={by} />}
      </div>
    </>
  );
}

function Versions({ fleet, by }: { fleet: string; by: string }) {
  const versions = useAnswer<{ items: Version[] }>('/v1/versions', { fleet }, 2000, ['version', 'deployment']);
  const rooms = useList<Room>('/v1/rooms', { fleet, state: 'open' }, 'room', (r) => r.fleet === fleet && r.state === 'open');
  const archives = useList<Deployment>('/v1/deployments', { fleet }, 'deployment', (d) => d.fleet === fleet);
  return (
    <>
      <Card title="Versions" wide aside={<a href={`#/deployments${by}`}>upload or switch</a>}>
        <Answer of={versions} what="its versions">
          {(v) => (v.items.length === 0
            ? <p class="dim">Players can join nothing of it yet: no version is configured or uploaded.</p>
            : <ul class="versions">{v.items.map((one) => (
              <VersionRow key={one.name} v={one} after={versions.refresh}
              archives={archives.rows.filter((d) => d.version === one.name).length} />))}</ul>)}
        </Answer>
      </Card>
      <Card title="Which version runs where" wide aside={rooms.rows.length > 0 ? count(rooms.rows.length, 'open room') : undefined}>
        <Where rooms={rooms.rows} />
      </Card>
      {archives.rows.length > 0 && (
        <Card title="Deployments" wide aside={<a href={`#/deployments${by}`}>all about them</a>}>
          <Table name="Deployments" rows={archives.rows} columns={ARCHIVE_COLUMNS} initial={{ key: 'id', down: true }} tall={false} />
        </Card>
      )}
    </>
  );
}

function VersionRow({ v, archives, after }: { v: Version; archives: number; after: () => void }) {
  const moving = v.wanted !== null && v.wanted !== v.deployment;
  return (
    <li>
      <div class="version-head">
        <h3>{v.name}</h3> <Badge state={versionState(v, archives)} />
        <span class="dim">{count(v.rooms, 'room')}</span>
        <span class="version-verbs"><VersionVerbs v={v} after={after} /></span>
      </div>
      {v.quarantined && <p class="bad">{sentence(v.reason ?? 'Its servers do not start')} Muster tries it without a player from time to time; enable it to try at once, or switch to another deployment.</p>}
      <p>
        {v.deployment ? `New rooms are started from deployment ${v.deployment}.`
          : archives > 0 ? 'No deployment is in use yet: switch to one.' : 'New rooms are started from a program that is on the hosts.'}
        {v.previous && <span class="dim"> Before: deployment {v.previous}.</span>}
      </p>
      {moving && <p class="busy">Deployment {v.wanted} is on its way and is used when every healthy host has it.</p>}
      {(moving || v.deployment) && (
        <p class="roll-out"><span class="dim">On the hosts</span> <Meter value={v.hosts > 0 ? v.hosts_ready / v.hosts : 0} even text={ready(v)} /></p>
      )}
    </li>
  );
}

interface Standing {
  id: string;
  version: string;
  deployment: string | null;
  host: string | null;
  hostName: string;
  region: string;
  rooms: number;
  players: number;
}

/** Rooms counted by what they were started from and where. */
export function standings(rooms: Room[]): Standing[] {
  const found = new Map<string, Standing>();
  for (const r of rooms) {
    const id = JSON.stringify([r.version, r.deployment, r.host]);
    const s = found.get(id) ?? { id, version: r.version, deployment: r.deployment, host: r.host, hostName: r.host_name ?? '', region: r.region, rooms: 0, players: 0 };
    s.rooms++;
    s.players += r.taken;
    found.set(id, s);
  }
  return [...found.values()];
}

const WHERE_COLUMNS: Column<Standing>[] = [
  { key: 'version', title: 'Version', cell: (s) => s.version, sort: (s) => s.version },
  { key: 'deployment', title: 'Deployment', cell: (s) => s.deployment ?? <span class="dim">on the host</span>, sort: (s) => Number(s.deployment ?? 0) },
  { key: 'host', title: 'Host', cell: (s) => (s.host ? <a href={link('hosts', s.host)}>{s.hostName || s.host}</a> : <span class="dim">–</span>), sort: (s) => s.hostName },
  { key: 'region', title: 'Region', cell: (s) => s.region, sort: (s) => s.region, wide: true },
  { key: 'rooms', title: 'Open rooms', cell: (s) => number(s.rooms), sort: (s) => s.rooms, right: true },
  { key: 'players', title: 'Players', cell: (s) => number(s.players), sort: (s) => s.players, right: true, wide: true },
];

function Where({ rooms }: { rooms: Room[] }) {
  const rows = useMemo(() => standings(rooms), [rooms]);
  return rows.length === 0
    ? <p class="dim">No room is open.</p>
    : <Table name="Which version runs where" rows={rows} columns={WHERE_COLUMNS} initial={{ key: 'version' }} tall={false} />;
}

const ARCHIVE_COLUMNS: Column<Deployment>[] = [
  { key: 'id', title: 'Deployment', cell: (d) => d.id, sort: (d) => Number(d.id) },
  { key: 'version', title: 'Version', cell: (d) => d.version, sort: (d) => d.version },
  { key: 'state', title: 'State', cell: (d) => (d.current ? <span class="good">in use</span> : d.wanted ? <span class="busy">on its way</span> : <span class="dim">kept</span>) },
  { key: 'hosts', title: 'Hosts that have it', cell: ready },
  { key: 'size', title: 'Size', cell: (d) => bytes(d.size), sort: (d) => d.size, right: true, wide: true },
  { key: 'created', title: 'Uploaded', cell: (d) => <Ago at={d.created_at} />, sort: (d) => d.created_at, right: true, wide: true },
];
