// Game servers: the list, and one of them with what runs on it, its log, its input and how it ended.
import { change } from '../api';
import { useAnswer, useList } from '../data';
import { ago, count, decimal, duration, percent, words } from '../format';
import { passedSentence, Server, Session } from '../model';
import { link, Place, setQuery } from '../router';
import { Act } from '../ui/act';
import { ExitReport, LogTail } from '../ui/log';
import { Ago, Badge, Card, Choice, Facts, Find, Meter, PageHead, Since } from '../ui/parts';
import { Answer, Empty } from '../ui/state';
import { Column, List, Table } from '../ui/table';

const STATUSES = ['available', 'full', 'draining', 'offline', 'starting', 'running', 'ending', 'gone'];

const loadOf = (s: Server) => (s.max_sessions ? s.load / s.max_sessions : 0);
/** A server that was started for its one room is full as it should be. */
const Load = ({ s }: { s: Server }) => <Meter value={loadOf(s)} text={`${s.load} of ${s.max_sessions}`} even={s.provider !== 'chat'} />;

const COLUMNS: Column<Server>[] = [
  { key: 'id', title: 'Server', cell: (s) => s.id, sort: (s) => Number(s.id) },
  { key: 'status', title: 'Status', cell: (s) => <Badge state={s.status} />, sort: (s) => s.status },
  { key: 'fleet', title: 'Fleet', cell: (s) => s.fleet, sort: (s) => s.fleet },
  { key: 'region', title: 'Region', cell: (s) => s.region, sort: (s) => s.region, wide: true },
  { key: 'address', title: 'Address', cell: (s) => `${s.ip}:${s.port}`, sort: (s) => `${s.ip}:${s.port}`, wide: true },
  { key: 'load', title: 'Load', cell: (s) => <Load s={s} />, sort: loadOf },
  { key: 'cpu', title: 'CPU', cell: (s) => percent(s.cpu_percent), sort: (s) => s.cpu_percent, right: true, wide: true },
  { key: 'memory', title: 'Memory', cell: (s) => percent(s.memory_percent), sort: (s) => s.memory_percent, right: true, wide: true },
  { key: 'passed', title: 'Passed over', cell: (s) => (s.passed_over ? words(s.passed_over) : <span class="dim">–</span>), sort: (s) => s.passed_over, wide: true },
  { key: 'heard', title: 'Heard', cell: (s) => ago(s.heard_at), sort: (s) => s.heard_at, right: true, wide: true },
];

export function ServersPage({ place }: { place: Place }) {
  return place.rest[0] ? <ServerPage id={place.rest[0]} key={place.rest[0]} /> : <ServersList place={place} />;
}

function ServersList({ place }: { place: Place }) {
  const q = (name: string) => place.query.get(name) ?? '';
  const fleets = useAnswer<{ items: { name: string }[] }>('/v1/fleets', { limit: 1000 }, 30000);
  const regions = useAnswer<{ items: { name: string }[] }>('/v1/regions', {}, 30000);
  const [status, fleet, region, text] = [q('status'), q('fleet'), q('region'), q('find')];
  const list = useList<Server>('/v1/servers', { status, fleet, region }, 'server', (s) =>
    (!status || s.status === status) && (!fleet || s.fleet === fleet) && (!region || s.region === region), undefined, { one: true });
  const shown = text
    ? list.rows.filter((s) => `${s.id} ${s.ip}:${s.port} ${s.host_name ?? ''}`.includes(text))
    : list.rows;
  return (
    <>
      <PageHead title="Servers" lead="Game server processes that players can reach." />
      <div class="filters">
        <Choice name="Status" value={status} options={STATUSES} onChange={(v) => setQuery({ status: v })} />
        <Choice name="Fleet" value={fleet} options={(fleets.data?.items ?? []).map((f) => f.name)} onChange={(v) => setQuery({ fleet: v })} />
        <Choice name="Region" value={region} options={(regions.data?.items ?? []).map((r) => r.name)} onChange={(v) => setQuery({ region: v })} />
        <Find name="Find" value={text} placeholder="number, address or host" onChange={(v) => setQuery({ find: v })} />
      </div>
      <List list={list} shown={shown} what="servers" columns={COLUMNS} initial={{ key: 'id' }}
        href={(s) => link('servers', s.id)}
        empty={
          <Empty title={status || fleet || region ? 'No server fits' : 'No server yet'}>
            {status || fleet || region
              ? 'Change the filters above to see more.'
              : <>A game server registers by itself, or an agent starts one when a room is asked for. Try:{' '}
                <code>muster game-server --region EU</code></>}
          </Empty>
        } />
    </>
  );
}

function ServerPage({ id }: { id: string }) {
  const server = useAnswer<Server>(`/v1/servers/${encodeURIComponent(id)}`, {}, 2000, ['server']);
  return (
    <>
      <PageHead title={`Server ${id}`} lead={<a href="#/servers">All servers</a>}>
        {server.data && <Verbs s={server.data} after={server.refresh} />}
      </PageHead>
      <Answer of={server} what={`server ${id}`}>{(s) => <ServerCards s={s} />}</Answer>
    </>
  );
}

/** Who wants it empty, and how far that is. */
function Draining({ s }: { s: Server }) {
  const by = s.draining_by.map((d) => (d === 'operator' ? 'An operator' : 'The server itself')).join(' and ');
  return (
    <p class="stale" role="status">
      {by} wants it drained: it gets no new match.{' '}
      {s.sessions > 0 ? `${count(s.sessions, 'match', 'matches')} left.` : 'No match is left: it can be stopped now.'}
    </p>
  );
}

function ServerCards({ s }: { s: Server }) {
  const spawned = s.provider === 'agent';
  return (
    <>
      {s.draining_by.length > 0 && s.status !== 'gone' && <Draining s={s} />}
      <div class="cards">
        <Card title="What it is">
          <Facts of={[
            ['Status', <Badge state={s.status} />],
            ['Fleet', <a href={link('fleets', s.fleet)}>{s.fleet}</a>],
            ['Region', s.region],
            ['Address', <code>{s.ip}:{s.ports.length > 0 ? s.ports.join(', ') : s.port}</code>],
            ['Started by', s.provider === 'chat' ? 'itself: it registered' : spawned ? 'an agent, for its room' : 'Agones'],
            ...(spawned ? [
              ['Host', s.host && <a href={link('hosts', s.host)}>{s.host_name ?? s.host}</a>],
              ['Room', s.room && <a href={link('rooms', s.room)}>{s.room}</a>],
              ['Process', s.pid],
            ] as [string, preact.ComponentChildren][] : []),
            [spawned ? 'Spawned' : 'Registered', <Ago at={s.registered_at} />],
          ]} />
        </Card>
        {s.exit
          ? <Card title="How it ended"><ExitReport exit={s.exit} /></Card>
          : !spawned && <HowItIs s={s} />}
        {!spawned && <Matches server={s.id} />}
        {spawned && <Card title="Log" wide><LogTail id={s.id} live={s.status !== 'gone'} /></Card>}
      </div>
    </>
  );
}

function HowItIs({ s }: { s: Server }) {
  return (
    <Card title="How it is">
      <Facts of={[
        ['Load', <Load s={s} />],
        ['Matches', `${count(s.sessions, 'match', 'matches')} here, ${s.open} of them open; by its last report it holds ${s.reported}`],
        ...(s.unknown_matches > 0 ? [['Unknown', `${count(s.unknown_matches, 'match', 'matches')} it holds that nobody here knows`] as [string, string]] : []),
        ['CPU', percent(s.cpu_percent)],
        ['Memory', percent(s.memory_percent)],
        ['Connected', s.connected ? <>for <Since at={s.connected_at} /></> : <span class="bad">no</span>],
        ['Heard', <Ago at={s.heard_at} />],
        ['Round trip', s.round_trip_us === null ? null : duration(s.round_trip_us / 1000)],
        ['Score', `${decimal(s.score, 2)} of 100; the highest of the candidates is chosen`],
        ['Passed over', <>
          {passedSentence(s.passed_over)}
          {s.backoff_left_ms > 0 && ` It is tried again in ${duration(s.backoff_left_ms)}.`}
        </>],
      ]} />
    </Card>
  );
}

const MATCHES: Column<Session>[] = [
  { key: 'id', title: 'Match', cell: (m) => m.id, sort: (m) => Number(m.id) },
  { key: 'state', title: 'State', cell: (m) => <Badge state={m.state} />, sort: (m) => m.state },
  { key: 'players', title: 'Players', cell: (m) => `${m.seated} of ${m.player_count}`, sort: (m) => m.seated, right: true },
  { key: 'age', title: 'Age', cell: (m) => <Since at={m.created_at} />, sort: (m) => m.created_at, right: true },
];

/** What is left of the server's matches is what a drain waits for. */
function Matches({ server }: { server: string }) {
  const answer = useAnswer<{ items: Session[]; next: string | null }>(
    '/v1/sessions', { server, order: 'newest', limit: 1000 }, 2000, ['session']);
  return (
    <Card title="Matches on it" wide>
      <Answer of={answer} what="its matches">
        {({ items }) => {
          const lasting = items.filter((m) => m.state !== 'ended');
          return lasting.length > 0
            ? <Table name="matches on it" rows={lasting} columns={MATCHES} initial={{ key: 'id' }} href={(m) => link('matches', m.id)} tall={false} />
            : <p class="dim">None now{items.length > 0 && `; ${count(items.length, 'match is', 'matches are')} over and not yet forgotten`}.</p>;
        }}
      </Answer>
    </Card>
  );
}

function Verbs({ s, after }: { s: Server; after: () => void }) {
  const path = `/v1/servers/${s.id}`;
  return (
    <>
      {s.provider === 'chat' && (s.draining_by.length > 0
        ? <Act verb="Undrain" run={() => change(`${path}/undrain`)} done={`Server ${s.id} gets matches again.`} after={after} />
        : <Act verb={`Drain server ${s.id}`} label="Drain" text="It gets no new match; those it holds go on to their end." run={() => change(`${path}/drain`)} done={`Server ${s.id} is draining.`} after={after} />)}
      {s.provider === 'agent' && s.status !== 'gone' && <Terminate server={s.id} after={after} />}
    </>
  );
}

export function Terminate({ server, after }: { server: string; after: () => void }) {
  return (
    <Act verb={`Terminate server ${server}`} label="Terminate" danger
      text="Its room ends and everybody in it is thrown out. The process gets SIGTERM and, 5 s later, SIGKILL."
      run={() => change(`/v1/servers/${server}/terminate`)} done={`Server ${server} is being ended.`} after={after} />
  );
}
