// Tickets: every request to be placed, and why it ended as it did: who was tried, with which score,
// how fast he answered, and how many others were passed over for what.
import { ComponentChildren } from 'preact';
import { ListState, useAnswer, useList } from '../data';
import { count, decimal, duration, wholeMs, words } from '../format';
import { Allocation, OWN_LOBBIES, Room, Session } from '../model';
import { link, Place, setQuery } from '../router';
import { Ago, Badge, Bars, Card, Choice, Command, Facts, Find, PageHead, TimeLine, Until } from '../ui/parts';
import { Answer, Empty } from '../ui/state';
import { Column, List, Table } from '../ui/table';
import { Remove } from './queue';

interface Ticket {
  id: string;
  fleet: string;
  kind: 'match' | 'room' | 'allocation';
  verb: string | null;
  version: string | null;
  account: string | null;
  chat_server: string | null;
  lobby: number | null;
  regions: string[];
  state: string;
  error: { code: string; message: string } | null;
  session: string | null;
  server: string | null;
  game_type: number | null;
  game_mode: number | null;
  player_count: number;
  average_rating: number | null;
  opened_at: string;
  answered_at: string | null;
  deadline_at: string | null;
  tries: number;
}

interface Try {
  server: string;
  outcome: string;
  score: number;
  load: number;
  max_sessions: number;
  cpu_percent: number;
  memory_percent: number;
}

interface HostTry {
  host: string;
  room: string | null;
  outcome: string;
  load_percent: number;
}

interface Why {
  ticket: Ticket;
  sentence: string;
  tries: Try[];
  hosts: HostTry[];
  passed_over: Record<string, number>;
}

// ── the list ─────────────────────────────────────────────────────────────────────────────────

const NEWEST = 2000; // so many are read at first; each list keeps that many

const took = (t: Ticket) => (t.answered_at ? Date.parse(t.answered_at) - Date.parse(t.opened_at) : null);

/** "a match", "to create a room": what was asked for. */
function wish(t: Ticket): string {
  if (t.kind === 'match') return 'match';
  if (t.kind === 'allocation') return t.player_count > 1 ? `place for ${t.player_count}` : 'place';
  return { create: 'new room', join: 'any room', enter: 'that room' }[t.verb ?? ''] ?? 'room';
}

/** Unlike an open room, an open request is still waited for. */
function State({ of }: { of: string }) {
  return of === 'open' ? <span class="badge busy">open</span> : <Badge state={of} />;
}

function Asker({ t }: { t: Ticket }) {
  if (t.account !== null) return <a href={link('players', t.account)}>{t.account}</a>;
  if (t.chat_server === OWN_LOBBIES && t.lobby !== null) return <a href={link('lobbies', t.lobby)}>lobby {t.lobby}</a>;
  return <>{t.chat_server ?? '–'}{t.lobby !== null && <span class="dim"> {t.lobby}</span>}</>;
}

function Got({ t }: { t: Ticket }) {
  if (t.error) return <span title={t.error.message}>{t.error.message}</span>;
  if (t.session === null) return <span class="dim">–</span>;
  if (t.state === 'open') return <span class="dim">{t.server ? `asks server ${t.server} …` : 'its server starts …'}</span>;
  return t.kind === 'match'
    ? <><a href={link('matches', t.session)}>match {t.session}</a>{t.server && <> on <a href={link('servers', t.server)}>server {t.server}</a></>}</>
    : <a href={link('rooms', t.session)}>room {t.session}</a>;
}

const COLUMNS: Column<Ticket>[] = [
  { key: 'id', title: 'Ticket', cell: (t) => t.id, sort: (t) => Number(t.id) },
  { key: 'state', title: 'State', cell: (t) => <State of={t.state} />, sort: (t) => t.state },
  { key: 'wish', title: 'Asked for', cell: wish, sort: wish, wide: true },
  { key: 'asker', title: 'By', cell: (t) => <Asker t={t} />, sort: (t) => t.account ?? `${t.chat_server} ${t.lobby}` },
  { key: 'fleet', title: 'Fleet', cell: (t) => t.fleet, sort: (t) => t.fleet, wide: true },
  { key: 'got', title: 'Got', cell: (t) => <Got t={t} />, sort: (t) => t.error?.message ?? t.session, wide: true },
  { key: 'took', title: 'Took', cell: (t) => wholeMs(took(t)), sort: took, right: true, wide: true },
  { key: 'at', title: 'When', cell: (t) => <Ago at={t.opened_at} />, sort: (t) => t.opened_at, right: true },
];

const STATES = ['open', 'queued', 'done', 'failed', 'cancelled', 'ended'];
const KINDS: [string, string][] = [['match', 'matches'], ['room', 'rooms'], ['allocation', 'places for players']];

/** Events leave out what is the same for all of their kind. */
const whole = (data: Record<string, unknown>, kind: string) => ({
  kind: kind === 'ticket' ? 'match' : 'room', verb: null, version: null, account: null, chat_server: null, lobby: null,
  server: null, game_type: null, game_mode: null, average_rating: null, tries: 0, ...data,
}) as unknown as Ticket;

/** An allocation in the words of the other tickets. */
const asTicket = (a: Allocation): Ticket => ({
  id: a.id, fleet: a.fleet, kind: 'allocation', verb: null, version: null, account: a.player, chat_server: null, lobby: null,
  regions: a.region ? [a.region] : [], state: a.state, error: a.error ? { code: a.error, message: a.why ?? words(a.error) } : null,
  session: a.state === 'done' ? a.room : null, server: null, game_type: null, game_mode: null, player_count: a.players,
  average_rating: null, opened_at: a.opened_at, answered_at: a.answered_at, deadline_at: a.deadline_at, tries: 0,
});

function both(a: ListState<Ticket>, b: ListState<Allocation>): ListState<Ticket> {
  return {
    rows: [...a.rows, ...b.rows.map(asTicket)],
    error: a.error ?? b.error,
    loading: a.loading || b.loading,
    growing: a.growing || b.growing,
    complete: a.complete && b.complete,
    more: () => {
      if (!a.complete) a.more();
      if (!b.complete) b.more();
    },
    refresh: () => {
      a.refresh();
      b.refresh();
    },
  };
}

export function TicketsPage({ place }: { place: Place }) {
  const [id] = place.rest;
  if (!id) return <TicketsList place={place} />;
  return id.startsWith('alloc:')
    ? <ByName name={id.slice(6)} player={place.query.get('player') ?? ''} key={id} />
    : <TicketPage id={id} key={id} />;
}

function TicketsList({ place }: { place: Place }) {
  const q = (name: string) => place.query.get(name) ?? '';
  const fleets = useAnswer<{ items: { name: string }[] }>('/v1/fleets', { limit: 1000 }, 30000);
  const [state, kind, fleet, account, chat] = [q('state'), q('kind'), q('fleet'), q('account'), q('chat_server')];
  const allocations = (kind === '' || kind === 'allocation') && state !== 'ended' && chat === '';
  const tickets = kind !== 'allocation' && state !== 'queued';
  const fits = (t: { state: string; fleet: string }) => (!state || t.state === state) && (!fleet || t.fleet === fleet);
  const first = useList<Ticket>(tickets ? '/v1/tickets' : null, { state, kind, fleet, account, chat_server: chat, order: 'newest' },
    ['ticket', 'room_ticket'], (t) => fits(t) && (!kind || t.kind === kind) && (!account || t.account === account) && (!chat || t.chat_server === chat), NEWEST, { whole });
  const second = useList<Allocation>(allocations ? '/v1/allocations' : null, { state, fleet, player: account, order: 'newest' },
    'allocation', (a) => fits(a) && (!account || a.player === account), NEWEST);
  const list = both(first, second);
  const filtered = Boolean(state || kind || fleet || account || chat);
  return (
    <>
      <PageHead title="Tickets" lead="Requests to be placed, the newest first. Each one says why it ended as it did." />
      <div class="filters">
        <Choice name="State" value={state} options={STATES} onChange={(v) => setQuery({ state: v })} />
        <Choice name="For" value={kind} options={KINDS} onChange={(v) => setQuery({ kind: v })} />
        <Choice name="Fleet" value={fleet} options={(fleets.data?.items ?? []).map((f) => f.name)} onChange={(v) => setQuery({ fleet: v })} />
        <Find name="Player" value={account} placeholder="the whole name" onChange={(v) => setQuery({ account: v })} />
        <Find name="Chat server" value={chat} placeholder="the whole name" onChange={(v) => setQuery({ chat_server: v })} />
      </div>
      <List list={list} what="tickets" columns={COLUMNS} initial={{ key: 'id', down: true }} href={(t) => link('tickets', t.id)}
        empty={filtered
          ? <Empty title="No ticket fits">Change the filters above to see more. What was refused at once has left no ticket: see <a href="#/refusals">Refusals</a>.</Empty>
          : <Empty title="No ticket yet">Every request of a chat server or a player shows up here. Make one in the <a href="#/playground">playground</a>.</Empty>} />
    </>
  );
}

// ── one of them ──────────────────────────────────────────────────────────────────────────────

/** An allocation by the name that its sender gave it. */
function ByName({ name, player }: { name: string; player: string }) {
  const found = useAnswer<Allocation & { sentence: string }>(`/v1/allocations/${encodeURIComponent(name)}/why`, { player }, 0);
  return found.data ? <TicketPage id={found.data.id} />
    : <><PageHead title={`Request ${name}`} lead={<a href="#/tickets">All tickets</a>} /><Answer of={found} what={`the request ${name}`}>{() => null}</Answer></>;
}

function TicketPage({ id }: { id: string }) {
  const why = useAnswer<Why>(`/v1/tickets/${encodeURIComponent(id)}/why`, {}, 2000, ['ticket', 'room_ticket', 'allocation']);
  return (
    <>
      <PageHead title={`Ticket ${id}`} lead={<a href="#/tickets">All tickets</a>} />
      <Answer of={why} what={`ticket ${id}`}>{(w) => <WhyCards w={w} after={why.refresh} />}</Answer>
    </>
  );
}

function WhyCards({ w, after }: { w: Why; after: () => void }) {
  const t = w.ticket;
  return (
    <>
      <p class={`sentence ${t.state === 'failed' ? 'bad' : ''}`}>{w.sentence}</p>
      <div class="cards">
        <Card title="What was asked"><Facts of={askedFacts(t)} /></Card>
        <Timing w={w} />
        {t.kind === 'allocation' && t.account !== null && <Standing id={t.id} account={t.account} after={after} />}
        {w.tries.length > 0 && <Tries tries={w.tries} />}
        {w.hosts.length > 0 && <Hosts hosts={w.hosts} />}
        {t.kind === 'match' && <PassedOver passed={w.passed_over} />}
        <Card title="The same in a terminal"><Command text={`muster why ${t.id}`} /></Card>
      </div>
    </>
  );
}

function askedFacts(t: Ticket): [string, ComponentChildren][] {
  const facts: [string, ComponentChildren][] = [
    ['State', <State of={t.state} />],
    ['Asked for', wish(t)],
    ['By', <Asker t={t} />],
    ['Fleet', <a href={link('fleets', t.fleet)}>{t.fleet}</a>],
    ['Version', t.version],
    ['Regions', t.regions.length > 0 ? t.regions.join(', ') : 'any'],
    ['Players', t.player_count],
    ['Type, mode', t.kind === 'match' ? `${t.game_type}, ${t.game_mode}` : null],
    ['Rating', t.average_rating],
    ['Got', t.error || t.session ? <Got t={t} /> : null],
    ['Asked', <Ago at={t.opened_at} />],
    [t.state === 'open' || t.state === 'queued' ? 'Fails' : 'Forgotten', t.deadline_at && <Until at={t.deadline_at} />],
  ];
  return facts.filter(([, v]) => v !== null);
}

const OUTCOMES: Record<string, [string, string]> = {
  pending: ['has not answered yet', 'busy'],
  acknowledged: ['acknowledged', 'good'],
  refused: ['refused', 'bad'],
  timed_out: ['did not answer in time', 'bad'],
  dropped: ['lost its connection', 'bad'],
  not_ready: ['acknowledged, was not ready in time', 'bad'],
  given_up: ['asked in vain: given up', 'calm'],
  opened: ['started its server', 'good'],
  failed: ['could not start a server', 'bad'],
};

function Outcome({ of }: { of: string }) {
  const [text, tone] = OUTCOMES[of] ?? [words(of), 'calm'];
  return <span class={`badge ${tone}`}>{text}</span>;
}

/** score = 100 − 50·load/max − 0.2·cpu − 0.1·memory */
const SCORE: Column<Try & { id: string; turn: number }>[] = [
  { key: 'turn', title: 'Try', cell: (t) => t.turn, sort: (t) => t.turn },
  { key: 'server', title: 'Server', cell: (t) => <a href={link('servers', t.server)}>{t.server}</a>, sort: (t) => Number(t.server) },
  { key: 'outcome', title: 'It', cell: (t) => <Outcome of={t.outcome} />, sort: (t) => t.outcome },
  { key: 'load', title: 'Load', cell: (t) => <Term minus={t.max_sessions ? (50 * t.load) / t.max_sessions : 0} of={`${t.load} of ${t.max_sessions}`} />, right: true },
  { key: 'cpu', title: 'CPU', cell: (t) => <Term minus={0.2 * t.cpu_percent} of={`${Math.round(t.cpu_percent)} %`} />, right: true, wide: true },
  { key: 'memory', title: 'Memory', cell: (t) => <Term minus={0.1 * t.memory_percent} of={`${Math.round(t.memory_percent)} %`} />, right: true, wide: true },
  { key: 'score', title: 'Score', cell: (t) => <strong>{decimal(t.score, 2)}</strong>, sort: (t) => t.score, right: true },
];

function Term({ minus, of }: { minus: number; of: string }) {
  return <><span class="dim">{of}</span> −{decimal(minus, 2)}</>;
}

function Tries({ tries }: { tries: Try[] }) {
  return (
    <Card title="Who was tried" wide aside="of 100, each taken slot, CPU and memory cost points; the highest score is asked first">
      <Table name="servers tried" rows={tries.map((t, i) => ({ ...t, id: String(i), turn: i + 1 }))} columns={SCORE} tall={false} />
    </Card>
  );
}

const HOSTS: Column<HostTry & { id: string; turn: number }>[] = [
  { key: 'turn', title: 'Try', cell: (h) => h.turn, sort: (h) => h.turn },
  { key: 'host', title: 'Host', cell: (h) => <a href={link('hosts', h.host)}>{h.host}</a>, sort: (h) => Number(h.host) },
  { key: 'outcome', title: 'It', cell: (h) => <Outcome of={h.outcome} />, sort: (h) => h.outcome },
  { key: 'load', title: 'Load', cell: (h) => `${Math.round(h.load_percent)} %`, sort: (h) => h.load_percent, right: true },
  { key: 'room', title: 'Room', cell: (h) => (h.room ? <a href={link('rooms', h.room)}>{h.room}</a> : <span class="dim">–</span>), right: true },
];

function Hosts({ hosts }: { hosts: HostTry[] }) {
  return (
    <Card title="Which hosts were asked" wide aside="the lowest load is asked first">
      <Table name="hosts asked" rows={hosts.map((h, i) => ({ ...h, id: String(i), turn: i + 1 }))} columns={HOSTS} tall={false} />
    </Card>
  );
}

const PASSED: [string, string, string][] = [
  ['full', 'full', ''],
  ['draining', 'draining', ''],
  ['failing', 'failed lately', 'refused, timed out or dropped'],
  ['away', 'not connected', 'not yet offline'],
  ['unlisted', 'just back', 'the list of their matches is awaited'],
  ['offline', 'offline', ''],
];

function PassedOver({ passed }: { passed: Record<string, number> }) {
  const sum = Object.values(passed).reduce((a, b) => a + b, 0);
  return (
    <Card title="Who was passed over" aside={sum > 0 ? `${count(sum, 'server')}, at the last choice` : ''}>
      {sum > 0
        ? <Bars name="servers passed over" of={PASSED.filter(([key]) => (passed[key] ?? 0) > 0).map(([key, title, text]) => ({ key, title, text, count: passed[key] ?? 0 }))} />
        : <p class="dim">No server: every one there was a candidate.</p>}
    </Card>
  );
}

const ms = (at: string | null | undefined) => (at ? Date.parse(at) : null);

/** When what happened, in ms after the request. */
function Timing({ w }: { w: Why }) {
  const t = w.ticket;
  const match = useAnswer<Session>(t.kind === 'match' && t.session ? `/v1/sessions/${t.session}` : null, {}, 5000);
  const room = useAnswer<Room>(t.kind === 'room' && t.session && w.hosts.length > 0 ? `/v1/rooms/${t.session}` : null, {}, 5000);
  const m = match.data;
  const r = room.data;
  const steps = [{ name: 'Asked', at: ms(t.opened_at) }];
  if (m) {
    steps.push({ name: `Server ${m.server} asked`, at: ms(m.created_at) });
    steps.push({ name: 'It acknowledged', at: ms(m.opened_at) });
  }
  if (r) {
    steps.push({ name: `Host ${r.host_name ?? r.host ?? ''} asked`, at: ms(r.created_at) });
    steps.push({ name: 'Its server was ready', at: ms(r.opened_at) });
  }
  steps.push({ name: 'Answered', at: ms(t.answered_at) });
  return (
    <Card title="When" aside={t.answered_at ? `answered after ${wholeMs(took(t))}` : 'not answered yet'}>
      <TimeLine steps={steps} />
      {m && <p class="dim">{m.ready ? 'The server has said READY.' : 'The server has not said READY.'}</p>}
    </Card>
  );
}

/** What only an allocation has: its name, its place in line, its party. */
function Standing({ id, account, after }: { id: string; account: string; after: () => void }) {
  const answer = useAnswer<{ items: Allocation[] }>('/v1/allocations', { player: account, order: 'newest', limit: 1000 }, 2000, ['allocation']);
  return (
    <Card title="Place in line">
      <Answer of={answer} what="where it stands">
        {({ items }) => {
          const a = items.find((i) => i.id === id);
          if (!a) return <p class="dim">It is known no more.</p>;
          return (
            <>
              <Facts of={[
                ['Its name', <code>{a.ticket_id}</code>],
                ['Came by', a.bus === 'player' ? 'the player himself' : a.bus],
                ['Waited', a.queued_at ? duration(a.waited_ms) : 'not in line'],
                ...(a.state === 'queued' ? [
                  ['Position', `${a.position}, behind ${count(a.ahead, 'player')}`],
                  ['Still about', a.eta_ms > 0 ? duration(a.eta_ms) : 'not known'],
                  ['Line', a.room ? <a href={link('rooms', a.room)}>room {a.room}</a> : `any room of ${a.fleet}`],
                ] as [string, ComponentChildren][] : []),
                ['Priority', a.priority > 0 ? `${a.priority}: worth ${a.priority} min of waiting` : 'none'],
                ['Party', a.players > 1 ? `of ${a.players}${a.party ? `, number ${a.party}` : ''}` : 'alone'],
                ['Result', a.owed ? 'not yet delivered' : 'delivered'],
              ]} />
              {a.state === 'queued' && <Remove a={a} after={after} />}
            </>
          );
        }}
      </Answer>
    </Card>
  );
}
