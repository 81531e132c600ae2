// Machines that run an agent: the list, and one of them with what runs there and whether it may go.
import { useMemo } from 'preact/hooks';
import { change } from '../api';
import { useAnswer, useList, usePages } from '../data';
import { ago, count, duration, percent } from '../format';
import { Host, HOST_STATES, HOST_WORDS, hostHeat, hostState } from '../host';
import { endSentence, Room } from '../model';
import { link, Place, setQuery } from '../router';
import { Act } from '../ui/act';
import { Ago, Badge, Card, Choice, Facts, Find, Meter, PageHead } from '../ui/parts';
import { Answer, Empty, Failed, Loading } from '../ui/state';
import { Column, List, Table } from '../ui/table';

const Percent = ({ of }: { of: number }) => <Meter value={of / 100} text={percent(of)} />;
const slotsOf = (h: Host): string => (h.slots > 0 ? `${h.rooms} of ${h.slots}` : String(h.rooms));

const COLUMNS: Column<Host>[] = [
  { key: 'name', title: 'Host', cell: (h) => h.name, sort: (h) => h.name },
  { key: 'status', title: 'Status', cell: (h) => <Badge state={hostState(h)} title={HOST_WORDS[hostState(h)] ?? ''} />, sort: (h) => HOST_STATES.indexOf(hostState(h)) },
  { key: 'region', title: 'Region', cell: (h) => h.region, sort: (h) => h.region, wide: true },
  { key: 'cpu', title: 'CPU', cell: (h) => <Percent of={h.cpu_percent} />, sort: (h) => h.cpu_percent },
  { key: 'memory', title: 'Memory', cell: (h) => <Percent of={h.memory_percent} />, sort: (h) => h.memory_percent, wide: true },
  { key: 'rooms', title: 'Rooms', cell: slotsOf, sort: (h) => h.rooms, right: true },
  { key: 'address', title: 'Address', cell: (h) => h.address, sort: (h) => h.address, wide: true },
  { key: 'heard', title: 'Heard', cell: (h) => ago(h.heard_at), sort: (h) => h.heard_at, right: true, wide: true },
];

export function HostsPage({ place }: { place: Place }) {
  const [id] = place.rest;
  if (!id) return <HostsList place={place} />;
  return /^\d+$/.test(id) ? <HostPage id={id} key={id} /> : <ByName name={id} key={id} />;
}

function HostsList({ place }: { place: Place }) {
  const q = (name: string) => place.query.get(name) ?? '';
  const [status, region, text] = [q('status'), q('region'), q('find')];
  const regions = useAnswer<{ items: { name: string }[] }>('/v1/regions', {}, 30000);
  const list = useList<Host>('/v1/hosts', { status, region }, 'host', (h) =>
    (!status || hostState(h) === status) && (!region || h.region === region));
  const shown = text ? list.rows.filter((h) => `${h.name} ${h.address} ${h.id}`.includes(text)) : list.rows;
  return (
    <>
      <PageHead title="Hosts" lead="Machines that run an agent, which starts game servers for rooms." />
      <div class="filters">
        <Choice name="Status" value={status} options={HOST_STATES} onChange={(v) => setQuery({ status: v })} />
        <Choice name="Region" value={region} options={(regions.data?.items ?? []).map((r) => r.name)} onChange={(v) => setQuery({ region: v })} />
        <Find name="Find" value={text} placeholder="name, address or number" onChange={(v) => setQuery({ find: v })} />
      </div>
      <List list={list} shown={shown} what="hosts" columns={COLUMNS} initial={{ key: 'name' }} href={(h) => link('hosts', h.id)}
        empty={
          <Empty title={status || region ? 'No host fits' : 'No host yet'}>
            {status || region
              ? 'Change the filters above to see more.'
              : <>An agent on a machine makes it a host:{' '}
                <code>muster agent --control {location.origin} --token-file agent.token --region EU</code>. Its token comes from{' '}
                <code>muster token issue --account agents --scopes game_host</code>.</>}
          </Empty>
        } />
    </>
  );
}

function Verbs({ h, after }: { h: Host; after: () => void }) {
  const path = `/v1/hosts/${h.id}`;
  const goOn = h.rooms > 0 ? `Its ${count(h.rooms, 'room')} and who is in them go on to their end.` : 'No room is there now.';
  return h.enabled
    ? <Act verb={`Disable host ${h.name}`} label="Disable" danger text={`Nothing new is started there. ${goOn}`}
      run={() => change(`${path}/disable`)} done={`Host ${h.name} gets nothing new.`} after={after} />
    : <Act verb={`Enable host ${h.name}`} label="Enable" run={() => change(`${path}/enable`)} done={`Host ${h.name} gets new servers again.`} after={after} />;
}

/** May I take it away now? The one question one comes here with. */
function Removal({ h }: { h: Host }) {
  if (!h.removal) return null;
  return (
    <section class={`verdict-card ${h.removal.now ? 'good' : 'busy'}`} aria-labelledby="removal-title">
      <h2 id="removal-title">May I take it away now?</h2>
      <p>{h.removal.sentence}</p>
    </section>
  );
}

/** A host by its name, as one types it. */
function ByName({ name }: { name: string }) {
  const found = usePages<Host>('/v1/hosts', { name }, 1, 2000, ['host']);
  if (found.data && found.data.items[0]) return <HostPage id={found.data.items[0].id} />;
  return (
    <>
      <PageHead title={`Host ${name}`} lead={<a href="#/hosts">All hosts</a>} />
      <Answer of={found} what={`host ${name}`}>
        {() => <Empty title="There is no such thing">No host has that name.</Empty>}
      </Answer>
    </>
  );
}

function HostPage({ id }: { id: string }) {
  const host = useAnswer<Host>(`/v1/hosts/${encodeURIComponent(id)}`, {}, 2000, ['host', 'room']);
  const h = host.data;
  return (
    <>
      <PageHead title={h ? `Host ${h.name}` : `Host ${id}`} lead={<a href="#/hosts">All hosts</a>}>
        {h && <Verbs h={h} after={host.refresh} />}
      </PageHead>
      <Answer of={host} what={`host ${id}`}>
        {(found) => <HostParts h={found} />}
      </Answer>
    </>
  );
}

function HostParts({ h }: { h: Host }) {
  const state = hostState(h);
  return (
    <>
      <Removal h={h} />
      <div class="cards">
        <Card title="How it is">
          <p class="host-word">{HOST_WORDS[state]}{state === 'failing' && h.backoff_left_ms > 0 && ` In ${duration(h.backoff_left_ms)}.`}</p>
          <Facts of={[
            ['Status', <Badge state={state} />],
            ['CPU', <Percent of={h.cpu_percent} />],
            ['Memory', <Percent of={h.memory_percent} />],
            ['Counts as', <>{percent(h.load_percent)} loaded <span class="dim">the lowest gets the next server; now {percent(hostHeat(h))} and a guess at what was placed since</span></>],
            ['Rooms', h.slots > 0 ? <Meter value={h.rooms / h.slots} text={`${h.rooms} of ${h.slots} slots`} /> : `${h.rooms}; as many as there are ports`],
            ['Servers', h.strangers > 0 ? <>{h.servers}, <strong class="bad">{h.strangers} of them not ours</strong></> : h.servers],
            ['Heard', <Ago at={h.heard_at} />],
          ]} />
        </Card>
        <Card title="What it is">
          <Facts of={[
            ['Number', h.id],
            ['Name', h.name],
            ['Region', <a href={`#/hosts?region=${encodeURIComponent(h.region)}`}>{h.region}</a>],
            ['Address', <code>{h.address}</code>],
            ['Agent', <code>{h.url}</code>],
            ['Deployments', `${count(h.deployments, 'archive')} unpacked`],
            ['Registered', <Ago at={h.registered_at} />],
          ]} />
        </Card>
        <RoomsThere h={h} />
      </div>
    </>
  );
}

const ROOM_COLUMNS: Column<Room>[] = [
  { key: 'id', title: 'Room', cell: (r) => r.id, sort: (r) => Number(r.id) },
  { key: 'state', title: 'State', cell: (r) => <Badge state={r.state} />, sort: (r) => r.state },
  { key: 'fleet', title: 'Fleet', cell: (r) => <a href={link('fleets', r.fleet)}>{r.fleet}</a>, sort: (r) => r.fleet },
  { key: 'version', title: 'Version', cell: (r) => r.version, sort: (r) => r.version, wide: true },
  { key: 'server', title: 'Server', cell: (r) => <a href={link('servers', r.server)}>{r.server}</a>, sort: (r) => Number(r.server), wide: true },
  { key: 'players', title: 'Players', cell: (r) => `${r.taken + r.reserved} of ${r.max_players}`, sort: (r) => r.taken + r.reserved, right: true },
  { key: 'created', title: 'Since', cell: (r) => ago(r.created_at), sort: (r) => r.created_at, right: true, wide: true },
];

const FAILED_COLUMNS: Column<Room>[] = [
  { key: 'id', title: 'Room', cell: (r) => r.id, sort: (r) => Number(r.id) },
  { key: 'why', title: 'What went wrong', cell: (r) => endSentence(r.end_reason) },
  { key: 'what', title: 'Of', cell: (r) => `${r.fleet} ${r.version}`, wide: true },
  { key: 'log', title: 'Last output', cell: (r) => <a href={link('servers', r.server)}>server {r.server}</a> },
  { key: 'created', title: 'When', cell: (r) => ago(r.created_at), sort: (r) => r.created_at, right: true },
];

const FAILURES = ['spawn_failed', 'spawn_timeout', 'hung', 'host_lost'];

function RoomsThere({ h }: { h: Host }) {
  const list = useList<Room>('/v1/rooms', { host: h.id }, 'room', (r) => r.host === h.id);
  const { running, failed } = useMemo(() => ({
    running: list.rows.filter((r) => r.state !== 'ended'),
    failed: list.rows.filter((r) => r.state === 'ended' && FAILURES.includes(r.end_reason ?? '')).reverse().slice(0, 50),
  }), [list.rows]);
  const state = list.error && list.rows.length === 0 ? <Failed error={list.error} retry={list.refresh} />
    : list.loading ? <Loading what="its rooms" /> : null;
  return (
    <>
      <Card title="Rooms on it" wide aside={<a href={`#/rooms?host=${h.id}`}>in the list of rooms</a>}>
        {state ?? (running.length === 0
          ? <p class="dim">No room is on it now.</p>
          : <Table name="Rooms on it" rows={running} columns={ROOM_COLUMNS} initial={{ key: 'id' }} href={(r) => link('rooms', r.id)} tall={false} />)}
      </Card>
      <Card title="Last failures" wide>
        {state ?? (failed.length === 0
          ? <p class="dim">Every server that was asked of it lately was started.</p>
          : <Table name="Last failures" rows={failed} columns={FAILED_COLUMNS} href={(r) => link('rooms', r.id)} tall={false} />)}
      </Card>
    </>
  );
}
