// Players: who is where, and what happened to one of them.
import { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { change } from '../api';
import { useAnswer, usePages } from '../data';
import { clock, count, dateTime, number, words } from '../format';
import { link, Place, setQuery } from '../router';
import { Act } from '../ui/act';
import { Ban, EditBan, isForever, IssueBan, LiftBan } from '../ui/banning';
import { Ago, Badge, Card, Choice, Facts, Find, PageHead, SPANS, tone, Until } from '../ui/parts';
import { Answer, Empty } from '../ui/state';
import { Column, Table } from '../ui/table';

/** Where somebody is, or for what he waits. */
interface Where {
  account: string;
  state: string;
  fleet: string;
  room: string | null;
  match: string | null;
  server: string | null;
  seat: string | null;
  ticket: string | null;
  lobby: string | null;
  position: number | null;
  since: string | null;
  deadline_at: string | null;
}

interface Known {
  account: string;
  banned: boolean;
  places: Where[];
  waiting: Where[];
  bans: Ban[];
}

interface Step {
  at: string;
  step: string;
  sentence: string;
  fleet: string | null;
  room: string | null;
  match: string | null;
  server: string | null;
  ticket: string | null;
  lobby: number | null;
  reason: string | null;
}

interface Journey {
  entries: Step[];
  complete_since: string | null;
  more: boolean;
}

const KINDS = ['room_seat', 'allocation', 'seat', 'lobby', 'ban'];
const MOST = 2000; // of a list of players; who looks for one types more of his name

const STATES: Record<string, string> = {
  reserved: 'on his way to a room', taken: 'in a room', starting: 'for a room that starts', routing: 'until a proxy lets him in',
  waiting: 'in line', playing: 'in a match', loading: 'in a lobby that loads', started: 'in a lobby that has started',
};

/** Links to the things that somebody is at, the nearest first. */
function Things({ of }: { of: Pick<Where, 'room' | 'match' | 'server' | 'ticket'> & { lobby: string | number | null } }) {
  const all: [string, string, string | number | null][] = [
    ['room', 'rooms', of.room], ['match', 'matches', of.match], ['lobby', 'lobbies', of.lobby], ['server', 'servers', of.server], ['ticket', 'tickets', of.ticket],
  ];
  const there = all.filter(([, , id]) => id !== null && id !== 0);
  if (there.length === 0) return null;
  return (
    <span class="things">
      {there.map(([name, page, id]) => (
        <a key={name} href={link(page, id as string)}>{name} {id}</a>
      ))}
    </span>
  );
}

const COLUMNS: Column<Where & { id: string }>[] = [
  { key: 'account', title: 'Player', cell: (p) => p.account, sort: (p) => p.account },
  { key: 'state', title: 'State', cell: (p) => <Badge state={p.state} title={STATES[p.state] ?? ''} />, sort: (p) => p.state },
  { key: 'fleet', title: 'Fleet', cell: (p) => p.fleet, sort: (p) => p.fleet, wide: true },
  { key: 'where', title: 'Where', cell: (p) => <Things of={{ ...p, ticket: null }} /> },
  { key: 'since', title: 'Since', cell: (p) => <Ago at={p.since} />, sort: (p) => p.since, right: true },
  { key: 'deadline', title: 'Until at most', cell: (p) => <Until at={p.deadline_at} />, sort: (p) => p.deadline_at, right: true, wide: true },
];

export function PlayersPage({ place }: { place: Place }) {
  return place.rest[0] ? <PlayerPage account={place.rest[0]} key={place.rest[0]} place={place} /> : <PlayersList place={place} />;
}

function PlayersList({ place }: { place: Place }) {
  const search = place.query.get('search') ?? '';
  const fleet = place.query.get('fleet') ?? '';
  const fleets = useAnswer<{ items: { name: string }[] }>('/v1/fleets', { limit: 1000 }, 30000);
  const players = usePages<Where>('/v1/players', { search, fleet }, MOST, 2000, KINDS);
  return (
    <>
      <PageHead title="Players" lead="Who sits or waits somewhere now, and since when." />
      <div class="filters">
        <Find name="Name begins with" value={search} placeholder="ann" onChange={(v) => setQuery({ search: v })} />
        <Choice name="Fleet" value={fleet} options={(fleets.data?.items ?? []).map((f) => [f.name, f.name])} onChange={(v) => setQuery({ fleet: v })} />
      </div>
      <Answer of={players} what="players">
        {({ items, complete }) => (items.length === 0
          ? (
            <Empty title={search || fleet ? 'Nobody fits' : 'Nobody is here'}>
              {search
                ? <>No player whose name begins with “{search}” sits or waits anywhere now. He may have been here before:{' '}
                  <a href={link('players', search)}>what happened to “{search}”</a></>
                : 'Players appear here when they ask for a place. Try it yourself in the playground.'}
            </Empty>
          ) : (
            <>
              <p class="list-count" role="status">
                {complete ? `${count(items.length, 'place')} of players` : `The first ${number(items.length)}; type more of a name to find the others.`}
              </p>
              <Table name="players" rows={items.map((p) => ({ ...p, id: `${p.account} ${p.seat ?? ''} ${p.ticket ?? ''} ${p.match ?? ''} ${p.lobby ?? ''}` }))}
                columns={COLUMNS} href={(p) => link('players', p.account)} />
            </>
          ))}
      </Answer>
    </>
  );
}

function PlayerPage({ account, place }: { account: string; place: Place }) {
  const path = `/v1/players/${encodeURIComponent(account)}`;
  const player = useAnswer<Known>(path, {}, 2000, KINDS);
  const after = player.refresh;
  return (
    <>
      <PageHead title={account} lead={<a href="#/players">All players</a>}>
        {player.data && !player.data.banned && <IssueBan account={account} after={after} />}
      </PageHead>
      <Answer of={player} what={account}>
        {(p) => (
          <div class="cards">
            <Card title="Now">
              {p.places.length === 0 && p.waiting.length === 0 && <p class="dim">He is nowhere, and waits for nothing.</p>}
              {p.places.map((at) => <Now key={at.seat ?? at.match ?? at.lobby} at={at} after={after} />)}
              {p.waiting.map((at) => <Line key={at.ticket} at={at} after={after} />)}
            </Card>
            <Card title="Bans" aside={p.banned ? <Badge state="banned" /> : 'he may join'}>
              {p.bans.length === 0
                ? <p class="dim">No ban of his is kept.</p>
                : [...p.bans].reverse().map((b) => <BanFacts key={b.id} ban={b} after={after} />)}
            </Card>
          </div>
        )}
      </Answer>
      <JourneyCard account={account} place={place} />
    </>
  );
}

function Now({ at, after }: { at: Where; after: () => void }) {
  const reason = useRef('');
  return (
    <div class="block">
      <Facts of={[
        ['State', <><Badge state={at.state} /> <span class="dim">{STATES[at.state] ?? ''}</span></>],
        ['Where', <Things of={at} />],
        ['Fleet', <a href={link('fleets', at.fleet)}>{at.fleet}</a>],
        ['Since', <Ago at={at.since} />],
        ...(at.deadline_at ? [['Given back', <Until at={at.deadline_at} />] as [string, ComponentChildren]] : []),
      ]} />
      {at.room && at.seat && (
        <Act verb={`Kick ${at.account} from room ${at.room}`} label="Kick" danger small
          text={(
            <>
              <p>His seat is given back at once, and the game server throws him out. He may join again; to keep him out, ban him.</p>
              <div class="form"><label>What he may be told<input maxLength={120} autoFocus onInput={(e) => { reason.current = e.currentTarget.value; }} /></label></div>
            </>
          )}
          run={() => change(`/v1/seats/${at.seat}/kick`, reason.current ? { reason: reason.current } : {})}
          done={`${at.account} is out of room ${at.room}.`} after={after} />
      )}
    </div>
  );
}

function Line({ at, after }: { at: Where; after: () => void }) {
  return (
    <div class="block">
      <Facts of={[
        ['Waits', at.room ? <>for a seat in <a href={link('rooms', at.room)}>room {at.room}</a></> : <>for any room of <a href={link('fleets', at.fleet)}>{at.fleet}</a></>],
        ['Position', at.position === null ? null : number(at.position)],
        ['Since', <Ago at={at.since} />],
        ['Gives up', <Until at={at.deadline_at} />],
      ]} />
      <Act verb={`Take ${at.account} out of the line`} label="Remove from the queue" small
        text="He loses his place in line, and is told that he waits no more. He may ask again."
        run={() => change(`/v1/queues/players/${encodeURIComponent(at.account)}`, undefined, 'DELETE')}
        done={`${at.account} waits no more.`} after={after} />
    </div>
  );
}

function BanFacts({ ban, after }: { ban: Ban; after: () => void }) {
  return (
    <div class="block">
      <Facts of={[
        ['Reason', ban.reason],
        ['Until', <>{isForever(ban) ? 'forever' : dateTime(ban.expires_at)}{ban.expired ? ', which is over' : ''}</>],
        ['By', <>{ban.who}, <Ago at={ban.issued_at} /></>],
        ['Address', ban.address ? <code>{ban.address}</code> : 'none yet: he has not tried to join since'],
      ]} />
      {!ban.expired && <span class="row-verbs"><EditBan ban={ban} after={after} /><LiftBan ban={ban} after={after} /></span>}
    </div>
  );
}

// ── the journey ──────────────────────────────────────────────────────────────────────────────

const AROUND_MS = 10 * 60 * 1000;
const STEP_TONES: Record<string, string> = {
  joined: 'good', placed: 'good', reconnected: 'good', lobby_started: 'good', lobby_back: 'good', unbanned: 'good',
  asked: 'calm', left: 'calm', moved: 'calm', cancelled: 'calm', released: 'calm', lobby_ended: 'calm', lobby_created: 'calm',
  reserved: 'busy', queued: 'busy', lobby_moved: 'busy', ban_changed: 'busy', dequeued: 'busy',
  refused: 'bad', expired: 'bad', kicked: 'bad', banned: 'bad', failed: 'bad', ended: 'bad', lobby_aborted: 'bad', lobby_lost: 'bad',
};

/** The window that the address asks for: "in" a span, or "at" a minute in the looker's own time. */
function windowOf(place: Place): { span: string; at: string; query: Record<string, string> } {
  const span = place.query.get('in') ?? '';
  const at = place.query.get('at') ?? '';
  const middle = at ? Date.parse(at) : NaN;
  if (!Number.isNaN(middle)) {
    const query = { from: new Date(middle - AROUND_MS).toISOString(), to: new Date(middle + AROUND_MS).toISOString() };
    return { span: '', at, query };
  }
  return { span, at: '', query: span ? { from: span } : {} };
}

function JourneyCard({ account, place }: { account: string; place: Place }) {
  const { span, at, query } = windowOf(place);
  const limit = place.query.get('more') ? 1000 : 100;
  const journey = useAnswer<Journey>(`/v1/players/${encodeURIComponent(account)}/journey`, { ...query, limit }, 5000); // each look reads the history: not at everybody's every step
  return (
    <Card title="Journey" wide aside="what happened to him, newest first">
      <div class="filters">
        <Choice name="When" value={at ? 'at' : span} all="all that is kept" options={[...SPANS, ...(at ? [['at', 'around a time'] as [string, string]] : [])]}
          onChange={(v) => setQuery({ in: v, at: '', more: '' })} />
        <label class="choice"><span>Around (10 minutes each way)</span>
          <input type="datetime-local" value={at} onChange={(e) => setQuery({ at: e.currentTarget.value, in: '', more: '' })} />
        </label>
      </div>
      <Answer of={journey} what={`the journey of ${account}`}>
        {(j) => <TimeLine journey={j} filtered={Boolean(at || span)} more={limit < 1000} />}
      </Answer>
    </Card>
  );
}

function TimeLine({ journey, filtered, more }: { journey: Journey; filtered: boolean; more: boolean }) {
  const complete = journey.complete_since && (
    <p class="dim">
      {journey.more ? 'There is more before ' : 'Complete since '}
      <time dateTime={journey.complete_since}>{dateTime(journey.complete_since)}</time>.{' '}
      {journey.more && more && <button class="small" onClick={() => setQuery({ more: '1' })}>Show more</button>}
    </p>
  );
  if (journey.entries.length === 0) {
    return (
      <>
        <p class="dim">{filtered ? 'Nothing happened to him in that time.' : 'Nothing is known of him: he has not been here, or so long ago that it is forgotten.'}</p>
        {complete}
      </>
    );
  }
  const days = new Map<string, Step[]>();
  for (const step of journey.entries) {
    const day = dateTime(step.at).slice(0, 10);
    days.set(day, [...(days.get(day) ?? []), step]);
  }
  return (
    <>
      {[...days].map(([day, steps]) => (
        <div key={day}>
          <h3 class="day">{day}</h3>
          <ol class="time-line">
            {steps.map((s, i) => (
              <li key={`${s.at} ${i}`} class={STEP_TONES[s.step] ?? tone(s.step)}>
                <time dateTime={s.at} title={dateTime(s.at)}>{clock(s.at)}</time>
                <span class="step">{words(s.step)}</span>
                <div><p>{s.sentence}</p><Things of={s} /></div>
              </li>
            ))}
          </ol>
        </div>
      ))}
      {complete}
    </>
  );
}

