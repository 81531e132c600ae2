// Matches: the list, and one of them with where it is, its times and who is in it.
import { ComponentChildren } from 'preact';
import { change } from '../api';
import { useAnswer, useList } from '../data';
import { number } from '../format';
import { endSentence, OWN_LOBBIES, Server, Session } from '../model';
import { link, Place, setQuery } from '../router';
import { Act } from '../ui/act';
import { Ago, Badge, Card, Choice, Facts, Find, PageHead, Since, TimeLine, Until } from '../ui/parts';
import { Answer, Empty } from '../ui/state';
import { Column, List } from '../ui/table';
import { FullLobby, LobbyPlayers } from './lobbies';

/** A lobby of Muster's own has a page; the numbers of chat servers are theirs. */
function LobbyName({ m }: { m: Session }) {
  if (m.lobby === null) return <span class="dim">–</span>;
  return m.chat_server === OWN_LOBBIES
    ? <a href={link('lobbies', m.lobby)}>{m.lobby}</a>
    : <>{m.lobby} of {m.chat_server}</>;
}

const COLUMNS: Column<Session>[] = [
  { key: 'id', title: 'Match', cell: (m) => m.id, sort: (m) => Number(m.id) },
  { key: 'state', title: 'State', cell: (m) => <Badge state={m.state} />, sort: (m) => m.state },
  { key: 'server', title: 'Server', cell: (m) => <a href={link('servers', m.server)}>{m.server}</a>, sort: (m) => Number(m.server) },
  { key: 'fleet', title: 'Fleet', cell: (m) => m.fleet, sort: (m) => m.fleet, wide: true },
  { key: 'lobby', title: 'Lobby', cell: (m) => <LobbyName m={m} />, sort: (m) => m.lobby, wide: true },
  { key: 'players', title: 'Players', cell: (m) => `${m.seated} of ${m.player_count}`, sort: (m) => m.seated, right: true, wide: true },
  { key: 'age', title: 'Age', cell: (m) => <Since at={m.created_at} />, sort: (m) => -Date.parse(m.created_at), right: true },
  { key: 'deadline', title: 'Deadline', cell: (m) => <Until at={m.deadline_at} />, sort: (m) => m.deadline_at, right: true, wide: true },
];

const STATES: [string, string][] = [['all', 'all'], ['opening', 'opening'], ['open', 'open'], ['lost', 'lost'], ['cancelling', 'cancelling'], ['ended', 'ended']];

/** An event of a match leaves out what only rooms have, and who is in it. */
const whole = (data: Record<string, unknown>) =>
  ({ kind: 'match', version: null, host: null, seated: 0, ...data }) as unknown as Session;

export function MatchesPage({ place }: { place: Place }) {
  return place.rest[0] ? <MatchPage id={place.rest[0]} key={place.rest[0]} /> : <MatchesList place={place} />;
}

function MatchesList({ place }: { place: Place }) {
  const q = (name: string) => place.query.get(name) ?? '';
  const fleets = useAnswer<{ items: { name: string; provider: string }[] }>('/v1/fleets', { limit: 1000 }, 30000);
  const [state, fleet, server, text] = [q('state'), q('fleet'), q('server'), q('find')];
  const asked = state === 'all' ? '' : state;
  const list = useList<Session>('/v1/sessions', { kind: 'match', state: asked, fleet, server, order: 'newest' }, 'session', (m) =>
    (!asked || m.state === asked) && (!fleet || m.fleet === fleet) && (!server || m.server === server), undefined, { whole });
  const shown = list.rows.filter((m) => (state !== '' || m.state !== 'ended') &&
    (!text || `${m.id} ${m.lobby ?? ''} ${m.chat_server ?? ''}`.includes(text)));
  return (
    <>
      <PageHead title="Matches" lead="What players share on a server that registered by itself." />
      <div class="filters">
        <Choice name="State" value={state} all="not over" options={STATES} onChange={(v) => setQuery({ state: v })} />
        <Choice name="Fleet" value={fleet} options={(fleets.data?.items ?? []).filter((f) => f.provider === 'chat').map((f) => f.name)} onChange={(v) => setQuery({ fleet: v })} />
        <Find name="Find" value={text} placeholder="number, lobby or chat server" onChange={(v) => setQuery({ find: v })} />
        {server && <button onClick={() => setQuery({ server: '' })}>Only on server {server} ×</button>}
      </div>
      <List list={list} shown={shown} what="matches" columns={COLUMNS} initial={{ key: 'id', down: true }}
        href={(m) => link('matches', m.id)}
        none={!text && state === '' ? <Empty title="No match now"><button onClick={() => setQuery({ state: 'all' })}>Show those that ended lately</button></Empty> : undefined}
        empty={asked || fleet || server
          ? <Empty title="No match fits">Change the filters above to see more.</Empty>
          : <Empty title="No match yet">A chat server asks for the first one, or a <a href="#/lobbies">lobby</a> does. Try: <code>muster allocate --lobby 1 --region EU</code></Empty>} />
    </>
  );
}

function MatchPage({ id }: { id: string }) {
  const match = useAnswer<Session>(`/v1/sessions/${encodeURIComponent(id)}`, {}, 2000, ['session', 'seat']);
  const over = match.data?.state === 'ended' || match.data?.state === 'cancelling';
  const server = useAnswer<Server>(match.data && !over ? `/v1/servers/${match.data.server}` : null, {}, 2000, ['server']);
  const away = server.data?.connected === false;
  return (
    <>
      <PageHead title={`Match ${id}`} lead={<a href="#/matches">All matches</a>}>
        {match.data && !over && (
          <Act verb={`End match ${id}`} label="End" danger
            text="Its server is told to let go of it, and its chat server that it has ended. Whoever plays is thrown out."
            run={() => change(`/v1/sessions/${encodeURIComponent(id)}/end`)} done={`Match ${id} is over.`} after={match.refresh} />
        )}
      </PageHead>
      <Answer of={match} what={`match ${id}`}>{(m) => <MatchCards m={m} away={away} />}</Answer>
    </>
  );
}

/** `away`: its server has no connection, and has a while to come back before the match counts as lost. */
function matchSentence(m: Session, away: boolean): string {
  if (away && m.state === 'open') return 'Its server has no connection. The match counts as lost if it stays away.';
  switch (m.state) {
    case 'opening': return 'Its server was asked and has not acknowledged it yet.';
    case 'open': return m.ready ? 'Its server holds it and is ready.' : 'Its server has acknowledged it and has not said READY yet.';
    case 'lost': return 'Its server is gone. It is kept in case the server comes back before the deadline.';
    case 'cancelling': return `Its server is told to let go of it. ${m.end_reason ? endSentence(m.end_reason) : ''}`;
    default: return `It is over. ${endSentence(m.end_reason)}`;
  }
}

const DEADLINES: Record<string, string> = {
  opening: 'Next server asked', open: 'Ends by itself', lost: 'Given up', cancelling: 'Tried until', ended: 'Forgotten',
};

function MatchCards({ m, away }: { m: Session; away: boolean }) {
  const at = (time: string | null) => (time ? Date.parse(time) : null);
  const facts: [string, ComponentChildren][] = [
    ['State', <Badge state={m.state} />],
    ['Fleet', <a href={link('fleets', m.fleet)}>{m.fleet}</a>],
    ['Server', <a href={link('servers', m.server)}>{m.server}</a>],
    ['Asked by', m.chat_server === OWN_LOBBIES ? 'a lobby of Muster' : m.chat_server],
    ['Lobby', <LobbyName m={m} />],
    ['Made for', <a href={link('tickets', m.ticket)}>ticket {m.ticket}</a>],
    ['Type, mode', `${number(m.game_type)}, ${number(m.game_mode)}`],
    ['Players', `${m.seated} of ${m.player_count} are in it`],
    ['Created', <Ago at={m.created_at} />],
    [DEADLINES[m.state] ?? 'Deadline', <Until at={m.deadline_at} />],
  ];
  return (
    <>
      <p class={`sentence ${m.state === 'lost' || (away && m.state === 'open') ? 'bad' : ''}`}>{matchSentence(m, away)}</p>
      <div class="cards">
        <Card title="What it is"><Facts of={facts} /></Card>
        <Card title="How it came to be">
          <TimeLine steps={[
            { name: `Server ${m.server} asked`, at: at(m.created_at) },
            { name: 'Acknowledged', at: at(m.opened_at) },
          ]} />
          <p class="dim">{m.ready ? 'It has said READY.' : 'It has not said READY.'}</p>
        </Card>
        {m.chat_server === OWN_LOBBIES && m.lobby !== null && <Roster lobby={m.lobby} />}
      </div>
    </>
  );
}

/** The players of a match that a lobby of ours became. */
function Roster({ lobby }: { lobby: number }) {
  const answer = useAnswer<FullLobby>(`/v1/lobbies/${lobby}`, {}, 5000, ['lobby']);
  return (
    <Card title="Who plays" wide>
      <Answer of={answer} what="its players">{(l) => <LobbyPlayers l={l} />}</Answer>
    </Card>
  );
}
