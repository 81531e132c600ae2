// The playground: act as a player or a chat server, and see the very request that does it.
import { useEffect, useRef, useState } from 'preact/hooks';
import { asCurl, askAs, change } from '../api';
import { sentenceOf, useAnswer } from '../data';
import { duration } from '../format';
import { useMe } from '../me';
import { link, Place, setQuery } from '../router';
import { Card, Command, PageHead } from '../ui/parts';
import { Call, CALLS, Field, Request, Values } from './playground-calls';

interface Actor {
  name: string;
  token: string; // '' until he first acts
}

/** Names that later calls are about. */
interface Last {
  ticket: string;
  lobby: string;
}

interface Done {
  id: number;
  title: string;
  who: string;
  status: number;
  ms: number;
  body: unknown;
  request: Request;
}

interface Fleet {
  name: string;
  provider: string;
  game: string | null;
  server: string | null;
}

interface Offers {
  fleets: Fleet[];
  versions: { fleet: string; name: string; enabled: boolean }[];
  regions: string[];
  rooms: { id: string; fleet: string }[];
  loading: boolean; // not all of it is known yet
}

const TOKEN_S = 3600;
const KEPT = 10;
let nextDone = 1;

/** A name that nobody used before, for tickets: each is good for one request. */
const newTicket = (): string => `try-${Date.now().toString(36)}`;

function useOffers(): Offers {
  const fleets = useAnswer<{ items: Fleet[] }>('/v1/fleets', { limit: 1000 }, 10000, ['fleet']);
  const versions = useAnswer<{ items: Offers['versions'] }>('/v1/versions', {}, 10000, ['version']);
  const regions = useAnswer<{ items: { name: string; servers: Record<string, number> }[] }>('/v1/regions', {}, 30000);
  const hosts = useAnswer<{ items: { region: string }[] }>('/v1/hosts', { limit: 1000 }, 30000);
  const rooms = useAnswer<{ items: Offers['rooms'] }>('/v1/rooms', { state: 'open', order: 'newest', limit: 50 }, 5000, ['room']);
  const lived = new Set((hosts.data?.items ?? []).map((h) => h.region));
  const all = regions.data?.items ?? [];
  const used = all.filter((r) => lived.has(r.name) || Object.values(r.servers).some((n) => n > 0));
  return {
    fleets: fleets.data?.items ?? [],
    versions: versions.data?.items ?? [],
    regions: (used.length > 0 ? used : all).map((r) => r.name),
    rooms: rooms.data?.items ?? [],
    loading: [fleets, versions, regions, rooms].some((a) => a.loading),
  };
}

/** What a field may be chosen from; null: it is typed. */
function choicesOf(field: Field, offers: Offers): [string, string][] | null {
  switch (field.kind) {
    case 'game':
      return offers.versions.flatMap((v) => {
        const fleet = offers.fleets.find((f) => f.name === v.fleet);
        if (!fleet?.game || !fleet.server) return [];
        return [[`${fleet.game}/${fleet.server}/${v.name}`, `${fleet.game} / ${fleet.server} / ${v.name}${v.enabled ? '' : ' (disabled)'}`]];
      });
    case 'agentFleet': return offers.fleets.filter((f) => f.provider !== 'chat').map((f) => [f.name, f.name]);
    case 'chatFleet': return offers.fleets.filter((f) => f.provider === 'chat').map((f) => [f.name, f.name]);
    case 'region': return [['', 'any: it is chosen'], ...offers.regions.map((r) => [r, r] as [string, string])];
    case 'room': return offers.rooms.map((r) => [r.id, `room ${r.id} of ${r.fleet}`]);
    default: return null;
  }
}

/** What was typed, and for the rest what the form begins with. */
function valuesOf(call: Call, typed: Values, offers: Offers, ticket: string, last: Last): Values {
  const known: Partial<Record<Field['kind'], string>> = { ticket, lastTicket: last.ticket, lastLobby: last.lobby };
  return Object.fromEntries(call.fields.map((f) =>
    [f.name, typed[f.name] ?? known[f.kind] ?? f.value ?? choicesOf(f, offers)?.[0]?.[0] ?? '']));
}

export function PlaygroundPage({ place }: { place: Place }) {
  const me = useMe();
  const offers = useOffers();
  const call = CALLS.find((c) => c.key === place.query.get('do')) ?? (CALLS[0] as Call);
  const [actors, setActors] = useState<Actor[]>(['try-ann', 'try-ben', 'try-cat'].map((name) => ({ name, token: '' })));
  const [who, setWho] = useState('try-ann');
  const [typed, setTyped] = useState<Values>({});
  const [ticket, setTicket] = useState(newTicket);
  const [last, setLast] = useState<Last>({ ticket: '', lobby: '' });
  const [service, setService] = useState(''); // its token
  const [done, setDone] = useState<Done[]>([]);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState('');
  const actor = actors.find((a) => a.name === who) ?? (actors[0] as Actor);
  const values = valuesOf(call, typed, offers, ticket, last);
  const { request, wrong } = requestOf(call, values, actor.name);
  const why = whyNot(call, actor, me.may);

  const keep = (token: string) => {
    if (call.as === 'service') setService(token);
    else setActors((all) => all.map((a) => (a.name === actor.name ? { ...a, token } : a)));
  };
  const tokenOf = async (): Promise<string> => {
    const had = call.as === 'service' ? service : actor.token;
    if (had) return had;
    const [account, scope] = call.as === 'service' ? ['playground', 'muster_allocate'] : [actor.name, 'game'];
    const made = await change<{ token: string }>('/v1/access-tokens', { account, scopes: [scope], expires_in_s: TOKEN_S });
    keep(made.token);
    return made.token;
  };
  const take = (status: number, body: unknown, ms: number, sent: Request) => {
    const who = call.as === 'player' ? actor.name : 'a service';
    setDone((all) => [{ id: nextDone++, title: call.title, who, status, ms, body, request: sent }, ...all].slice(0, KEPT));
    if (status === 401) keep(''); // its hour is over; the next one gets a new one
    if (sent.method !== 'POST') return;
    if (sent.path === '/v1/allocations') setLast((l) => ({ ...l, ticket: values.ticketId ?? '' }));
    if (sent.path === '/v1/lobbies' && status < 300) setLast((l) => ({ ...l, lobby: String((body as { id?: string }).id ?? '') }));
    setTicket(newTicket());
    setTyped(({ ticketId: _used, ...rest }) => rest);
  };
  const send = async (e: Event) => {
    e.preventDefault();
    if (!request) return;
    setBusy(true);
    setError('');
    try {
      const token = await tokenOf();
      const before = performance.now();
      const { status, body } = await askAs(token, request.method, request.path, request.body);
      take(status, body, performance.now() - before, request);
    } catch (failed) {
      setError(sentenceOf(failed as Error));
    }
    setBusy(false);
  };
  return (
    <>
      <PageHead title="Playground" lead="Act as a player or a chat server. These are real requests: seats are taken, and servers are started, as if a game had asked." />
      <div class="playground">
        <Who actors={actors} who={actor.name} choose={setWho} admin={me.may('muster_admin')}
          add={(a) => {
            setActors((all) => [...all.filter((x) => x.name !== a.name), a]);
            setWho(a.name);
          }} />
        <Card title="What">
          <form class="form" onSubmit={(e) => void send(e)}>
            <label>Call
              <select value={call.key} onChange={(e) => {
                setTyped({});
                setError('');
                setQuery({ do: e.currentTarget.value });
              }}>
                <optgroup label="as a player">{CALLS.filter((c) => c.as === 'player').map((c) => <option key={c.key} value={c.key}>{c.title}</option>)}</optgroup>
                <optgroup label="as a chat server or matchmaker">{CALLS.filter((c) => c.as === 'service').map((c) => <option key={c.key} value={c.key}>{c.title}</option>)}</optgroup>
              </select>
            </label>
            <p class="dim">{call.about}</p>
            {call.fields.map((f) => (
              <FieldInput key={`${call.key} ${f.name}`} field={f} offers={offers} value={values[f.name] ?? ''} set={(v) => setTyped((t) => ({ ...t, [f.name]: v }))} />
            ))}
            {request
              ? <Curl call={call} who={actor.name} request={request} />
              : <p class="dialog-error" role="alert">{wrong}</p>}
            {error && <p class="dialog-error" role="alert">{error}</p>}
            {why && <p class="stale" role="status">{why}</p>}
            <div><button class="primary" disabled={busy || !request || why !== ''}>{busy ? 'Waiting for the answer …' : `Send as ${call.as === 'player' ? actor.name : 'a service'}`}</button></div>
          </form>
        </Card>
      </div>
      <section aria-label="Answers" class="answers" aria-live="polite">
        {done.map((d, i) => <Answered key={d.id} done={d} newest={i === 0} />)}
      </section>
    </>
  );
}

function requestOf(call: Call, values: Values, who: string): { request: Request | null; wrong: string } {
  try {
    return { request: call.make(values, who), wrong: '' };
  } catch (e) {
    return { request: null, wrong: (e as Error).message };
  }
}

/** Why it cannot be sent; '' when it can. */
function whyNot(call: Call, actor: Actor, may: (scope: string) => boolean): string {
  if (may('muster_admin') || (call.as === 'player' && actor.token)) return '';
  return call.as === 'player'
    ? 'Your token may not make tokens for players (that needs muster_admin). Paste one of scope game for him above, and it works.'
    : 'To act as a service your token needs the scope muster_admin, with which a short-lived one is made.';
}

function Curl({ call, who, request }: { call: Call; who: string; request: Request }) {
  const quoted = /^[\w.@-]+$/.test(who) ? who : `'${who.replace(/'/g, `'\\''`)}'`;
  const [account, scopes] = call.as === 'player' ? [quoted, 'game'] : ['chat', 'muster_allocate'];
  const text = `MUSTER_TOKEN=$(muster token issue --account ${account} --scopes ${scopes})\n${asCurl(request.method, request.path, request.body)}`;
  return (
    <div>
      <p class="dim small-text">The same in a terminal</p>
      <Command text={text} />
    </div>
  );
}

function FieldInput({ field, offers, value, set }: { field: Field; offers: Offers; value: string; set: (v: string) => void }) {
  const choices = choicesOf(field, offers);
  if (field.kind === 'tick') {
    return <label class="tick"><input type="checkbox" checked={value === 'true'} onChange={(e) => set(e.currentTarget.checked ? 'true' : 'false')} /> {field.title}</label>;
  }
  if (choices && choices.length === 0 && offers.loading) {
    return <label>{field.title}<select disabled><option>reading …</option></select></label>;
  }
  return (
    <label>{field.title}
      {choices && choices.length > 0
        ? <select value={value} onChange={(e) => set(e.currentTarget.value)}>{choices.map(([v, name]) => <option key={v} value={v}>{name}</option>)}</select>
        : field.kind === 'json'
          ? <textarea rows={2} spellcheck={false} value={value} placeholder={field.help ?? ''} onInput={(e) => set(e.currentTarget.value)} />
          : <input required={!field.optional} maxLength={256} value={value} spellcheck={false} onInput={(e) => set(e.currentTarget.value)} />}
      {choices && choices.length === 0 && <span class="small-text">There is none that could be chosen; type one.</span>}
    </label>
  );
}

function Who({ actors, who, choose, add, admin }: {
  actors: Actor[]; who: string; choose: (name: string) => void; add: (a: Actor) => void; admin: boolean;
}) {
  const [name, setName] = useState('');
  const [token, setToken] = useState('');
  const submit = (e: Event) => {
    e.preventDefault();
    if (!name.trim()) return;
    add({ name: name.trim(), token: token.trim() });
    setName('');
    setToken('');
  };
  return (
    <Card title="Who">
      <div class="actors" role="radiogroup" aria-label="Player who acts">
        {actors.map((a) => (
          <label key={a.name} class="actor">
            <input type="radio" name="actor" checked={a.name === who} onChange={() => choose(a.name)} />
            <span>{a.name}</span>
            <a class="small-text" href={link('players', a.name)}>journey</a>
          </label>
        ))}
      </div>
      <form class="form" onSubmit={submit}>
        <label>Another player<input maxLength={64} value={name} placeholder="try-dan" spellcheck={false} onInput={(e) => setName(e.currentTarget.value)} /></label>
        {!admin && <label>His token, of scope game<input type="password" autocomplete="off" value={token} onInput={(e) => setToken(e.currentTarget.value)} /></label>}
        <div><button class="small" disabled={!name.trim()}>Add</button></div>
      </form>
      <p class="dim small-text">
        Take names that nobody plays under: a player has one seat in a fleet, and a new one moves him.
        {admin ? ' Each gets a token for an hour when he first acts.' : ''} All of it is forgotten when you leave this page; what was done stays.
      </p>
    </Card>
  );
}

/** Pages that an answer leads to. */
function linksOf(d: Done): [string, string][] {
  const body = (typeof d.body === 'object' && d.body !== null ? d.body : {}) as Record<string, unknown>;
  const error = (typeof body.error === 'object' && body.error !== null ? body.error : {}) as Record<string, unknown>;
  const out: [string, string][] = [];
  const room = body.sessionId ?? (/^\/(create|join|room)\//.test(d.request.path) ? body.id : undefined);
  if (room !== undefined) out.push([`room ${String(room)}`, link('rooms', String(room))]);
  if (d.request.path.startsWith('/v1/lobbies') && body.id !== undefined) out.push([`lobby ${String(body.id)}`, link('lobbies', String(body.id))]);
  if (error.ticket) out.push([`why: ticket ${String(error.ticket)}`, link('tickets', String(error.ticket))]);
  if (error.ban_id) out.push(['his ban', `#/bans?find=${String(error.ban_id)}`]);
  if (body.status === 'Queued') out.push(['the queue', '#/queue']);
  if (d.who !== 'a service') out.push([`${d.who}'s journey`, link('players', d.who)]);
  return out;
}

function Answered({ done, newest }: { done: Done; newest: boolean }) {
  const good = done.status < 300;
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    if (newest) box.current?.scrollIntoView({ block: 'nearest' });
  }, []);
  return (
    <article class="card answered" ref={box}>
      <div class="card-head">
        <h2><span class={`badge ${good ? 'good' : 'bad'}`}>{done.status}</span> {done.title} <span class="dim">as {done.who}</span></h2>
        <span class="card-aside">{duration(done.ms)}</span>
      </div>
      <p class="things">{linksOf(done).map(([name, href]) => <a key={href} href={href}>{name}</a>)}</p>
      <pre class="answer">{typeof done.body === 'string' ? done.body : JSON.stringify(done.body, null, 2)}</pre>
    </article>
  );
}
