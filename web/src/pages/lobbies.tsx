// Lobbies: the players of accepted matches, what each waits for, and why it was called off.
import { ComponentChildren } from 'preact';
import { change } from '../api';
import { useAnswer, useList } from '../data';
import { count, words } from '../format';
import { useMe } from '../me';
import { link, Place, setQuery } from '../router';
import { Act, Line } from '../ui/act';
import { Ago, Badge, Card, Choice, Facts, Find, Meter, PageHead, Since, Until } from '../ui/parts';
import { Answer, Empty } from '../ui/state';
import { Column, List, Table } from '../ui/table';

interface Lobby {
  id: string;
  fleet: string;
  region: string;
  type: number;
  mode: number;
  map: string;
  rating: number;
  state: 'loading' | 'started' | 'ended' | 'aborted';
  cause: string | null;
  reason: string | null;
  error: string | null;
  gone: number | null;
  requeue: boolean;
  queue: string;
  size: number;
  loaded: number;
  connected: number;
  untold: number;
  moves: number;
  ticket: string | null;
  session: string | null;
  server: string | null;
  allocated: boolean;
  created_at: string;
  started_at: string | null;
  over_at: string | null;
  deadline_at: string | null;
}

interface LobbyPlayer {
  account: number;
  name: string;
  team: number;
  slot: number;
  group: number;
  loaded: boolean;
  connected: boolean;
}

export interface FullLobby extends Lobby {
  players: LobbyPlayer[];
  groups: { group: number; players: number[]; queue: string }[];
}

/** "a server and 3 of 10 players" */
function waitsFor(l: Lobby): string {
  if (l.state !== 'loading') return '';
  const left = l.size - l.loaded;
  const parts = [
    ...(l.allocated ? [] : [l.server ? `server ${l.server} to be ready` : 'a server']),
    ...(left > 0 ? [`${left} of ${count(l.size, 'player')} to load`] : []),
  ];
  return parts.join(' and ') || 'nothing: it is about to start';
}

/** Why it was called off, or ended otherwise than by its server's word. */
function causeSentence(l: Lobby): string {
  switch (l.cause) {
    case 'allocation': return `No server took it${l.error ? ` (${words(l.error)})` : ''}.`;
    case 'loading': return `Not everybody had loaded in time: ${count(l.size - l.loaded, 'player')} had not.`;
    case 'disconnected': return l.error === 'banned' ? `Player ${l.gone} was banned.` : `Player ${l.gone} was gone for too long.`;
    case 'operator': return 'Somebody called it off.';
    case 'server': return 'Its server was lost, and there was no time for another.';
    case 'too_long': return 'Its match had lasted as long as it may.';
    default: return '';
  }
}

function lobbySentence(l: Lobby): string {
  switch (l.state) {
    case 'loading': return `It waits for ${waitsFor(l)}.`;
    case 'started': return `It started on server ${l.server}, and its match goes on.`;
    case 'aborted': return `It was called off. ${causeSentence(l)}`;
    default: return l.cause ? `Its match is over. ${causeSentence(l)}` : 'Its match is over: its server said so.';
  }
}

const COLUMNS: Column<Lobby>[] = [
  { key: 'id', title: 'Lobby', cell: (l) => l.id, sort: (l) => Number(l.id) },
  { key: 'state', title: 'State', cell: (l) => <Badge state={l.state} />, sort: (l) => l.state },
  { key: 'loaded', title: 'Loaded', cell: (l) => <Meter value={l.size ? l.loaded / l.size : 0} text={`${l.loaded} of ${l.size}`} even />, sort: (l) => (l.size ? l.loaded / l.size : 0) },
  { key: 'waits', title: 'Waits for, or why', cell: (l) => <span title={lobbySentence(l)}>{waitsFor(l) || causeSentence(l) || <span class="dim">–</span>}</span>, wide: true },
  { key: 'map', title: 'Map', cell: (l) => l.map || <span class="dim">–</span>, sort: (l) => l.map, wide: true },
  { key: 'fleet', title: 'Fleet', cell: (l) => l.fleet, sort: (l) => l.fleet, wide: true },
  { key: 'server', title: 'Server', cell: (l) => (l.server ? <a href={link('servers', l.server)}>{l.server}</a> : <span class="dim">–</span>), sort: (l) => (l.server ? Number(l.server) : null), right: true, wide: true },
  { key: 'moves', title: 'Moves', cell: (l) => l.moves, sort: (l) => l.moves, right: true, wide: true },
  { key: 'age', title: 'Age', cell: (l) => <Since at={l.created_at} />, sort: (l) => -Date.parse(l.created_at), right: true },
];

const STATES: [string, string][] = [['all', 'all'], ['loading', 'loading'], ['started', 'started'], ['aborted', 'aborted'], ['ended', 'ended']];

export function LobbiesPage({ place }: { place: Place }) {
  return place.rest[0] ? <LobbyPage id={place.rest[0]} key={place.rest[0]} /> : <LobbiesList place={place} />;
}

function LobbiesList({ place }: { place: Place }) {
  const q = (name: string) => place.query.get(name) ?? '';
  const fleets = useAnswer<{ items: { name: string; provider: string }[] }>('/v1/fleets', { limit: 1000 }, 30000);
  const [state, fleet, account] = [q('state'), q('fleet'), q('account')];
  const asked = state === 'all' ? '' : state;
  const list = useList<Lobby>('/v1/lobbies', { state: asked, fleet, account, order: 'newest' }, 'lobby', (l) =>
    (!asked || l.state === asked) && (!fleet || l.fleet === fleet), undefined, { one: account === '' }); // whose it is only the API knows
  const shown = list.rows.filter((l) => state !== '' || l.state === 'loading' || l.state === 'started');
  return (
    <>
      <PageHead title="Lobbies" lead="The players of accepted matches, until all have loaded and a server holds them." />
      <div class="filters">
        <Choice name="State" value={state} all="not over" options={STATES} onChange={(v) => setQuery({ state: v })} />
        <Choice name="Fleet" value={fleet} options={(fleets.data?.items ?? []).filter((f) => f.provider === 'chat').map((f) => f.name)} onChange={(v) => setQuery({ fleet: v })} />
        <Find name="Player" value={account} placeholder="account number" onChange={(v) => setQuery({ account: v.replace(/\D/g, '') })} />
      </div>
      <List list={list} shown={shown} what="lobbies" columns={COLUMNS} initial={{ key: 'id', down: true }}
        href={(l) => link('lobbies', l.id)}
        none={state === '' ? <Empty title="No lobby now"><button onClick={() => setQuery({ state: 'all' })}>Show those that are over</button></Empty> : undefined}
        empty={asked || fleet || account
          ? <Empty title="No lobby fits">Change the filters above to see more.</Empty>
          : <Empty title="No lobby yet">A matchmaker makes one for each accepted match with <code>POST /v1/lobbies</code>. Try: <code>muster matchmaker --for 1m</code></Empty>} />
    </>
  );
}

function LobbyPage({ id }: { id: string }) {
  const lobby = useAnswer<FullLobby>(`/v1/lobbies/${encodeURIComponent(id)}`, {}, 2000, ['lobby']);
  const l = lobby.data;
  return (
    <>
      <PageHead title={`Lobby ${id}`} lead={<a href="#/lobbies">All lobbies</a>}>
        {l && (l.state === 'loading' || l.state === 'started') && <Abort l={l} after={lobby.refresh} />}
      </PageHead>
      <Answer of={lobby} what={`lobby ${id}`}>{(found) => <LobbyCards l={found} />}</Answer>
    </>
  );
}

function Abort({ l, after }: { l: Lobby; after: () => void }) {
  const me = useMe();
  let reason = '';
  return (
    <Act verb={`Abort lobby ${l.id}`} label="Abort" danger scope={me.may('muster_allocate') ? 'muster_allocate' : 'muster_admin'}
      text={l.state === 'started' ? 'Its match ends, and whoever plays is thrown out.' : <>
        <p>Its {count(l.size, 'player')} are told{l.requeue ? ', and their groups are to be queued again' : ''}.</p>
        <Line name="What they hear" placeholder="Ended by an operator" into={(v) => { reason = v; }} />
      </>}
      run={() => change(`/v1/lobbies/${l.id}/abort`, reason.trim() ? { reason: reason.trim() } : undefined)}
      done={`Lobby ${l.id} is called off.`} after={after} />
  );
}

function LobbyCards({ l }: { l: FullLobby }) {
  const over = l.state === 'aborted' || l.state === 'ended';
  const facts: [string, ComponentChildren][] = [
    ['State', <Badge state={l.state} />],
    ['Fleet', <a href={link('fleets', l.fleet)}>{l.fleet}</a>],
    ['Region', l.region === 'AUTO' ? 'any' : l.region],
    ['Map', l.map || null],
    ['Type, mode', `${l.type}, ${l.mode}`],
    ['Rating', l.rating],
    ['Server', l.server ? <a href={link('servers', l.server)}>{l.server}</a> : l.state === 'loading' ? 'none yet' : null],
    ['Match', l.session && <a href={link('matches', l.session)}>{l.session}</a>],
    ['Request', l.ticket && <a href={link('tickets', l.ticket)}>ticket {l.ticket}: why that server</a>],
    ['Moves', l.moves > 0 ? `${count(l.moves, 'server was', 'servers were')} lost before the start` : 'none: no server was lost before the start'],
    ['Created', <Ago at={l.created_at} />],
    ['Started', l.started_at && <Ago at={l.started_at} />],
    ['Over', l.over_at && <Ago at={l.over_at} />],
    [l.state === 'loading' ? 'Called off' : 'Forgotten', l.deadline_at && <Until at={l.deadline_at} />],
  ];
  return (
    <>
      <p class={`sentence ${l.state === 'aborted' ? 'bad' : ''}`}>{lobbySentence(l)}</p>
      {l.reason && <p>Its players hear: <q>{l.reason}</q>{l.untold > 0 && ` ${count(l.untold, 'player has', 'players have')} not heard it yet.`}</p>}
      <div class="cards">
        <Card title="What it is"><Facts of={facts.filter(([, v]) => v !== null)} /></Card>
        <Groups l={l} />
        <Card title={over ? 'Who was in it' : 'Who is in it'} wide aside={`${l.loaded} of ${l.size} loaded, ${l.connected} connected`}>
          <LobbyPlayers l={l} />
        </Card>
      </div>
    </>
  );
}

type PlayerRow = LobbyPlayer & { id: string };

/** Loaded, on the way, or missing. */
function presence(p: LobbyPlayer, over: boolean): [string, string] {
  if (p.loaded && p.connected) return ['loaded', 'good'];
  if (p.loaded) return [over ? 'loaded, was gone' : 'loaded, gone now', 'busy'];
  if (p.connected) return [over ? 'had not loaded' : 'loading', 'busy'];
  return [over ? 'was missing' : 'missing', 'bad'];
}

export function LobbyPlayers({ l }: { l: FullLobby }) {
  const over = l.state === 'aborted' || l.state === 'ended';
  const rows: PlayerRow[] = l.players.map((p) => ({ ...p, id: String(p.account) }));
  const columns: Column<PlayerRow>[] = [
    { key: 'name', title: 'Player', cell: (p) => p.name, sort: (p) => p.name },
    { key: 'presence', title: 'Is', cell: (p) => { const [text, tone] = presence(p, over); return <span class={`badge ${tone}`}>{text}</span>; }, sort: (p) => presence(p, over)[0] },
    { key: 'team', title: 'Team', cell: (p) => p.team, sort: (p) => p.team, right: true },
    { key: 'slot', title: 'Slot', cell: (p) => p.slot, sort: (p) => p.slot, right: true, wide: true },
    { key: 'group', title: 'Group', cell: (p) => p.group, sort: (p) => p.group, right: true, wide: true },
    { key: 'account', title: 'Account', cell: (p) => p.account, sort: (p) => p.account, right: true, wide: true },
  ];
  return <Table name="players of the lobby" rows={rows} columns={columns} href={(p) => link('players', p.account)} tall={false} />;
}

const QUEUE: Record<string, string> = {
  in_lobby: 'in this lobby', in_match: 'in the match', not_queued: 'not queued', queued: 'to be queued again',
};

function Groups({ l }: { l: FullLobby }) {
  const names = new Map(l.players.map((p) => [p.account, p.name]));
  return (
    <Card title="Groups" aside="who came together">
      <Facts of={l.groups.map((g) => [`Group ${g.group}`,
        `${g.players.map((a) => names.get(a) ?? a).join(', ')}: ${QUEUE[g.queue] ?? words(g.queue)}`])} />
      <p class="dim">{l.requeue ? 'When it is called off, its groups are to be queued again.' : 'When it is called off, nobody is queued again.'}</p>
    </Card>
  );
}
