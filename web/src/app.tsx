// The frame around every page: who looks, where he is, how Muster is, how fresh that is.
import { useEffect, useRef, useState } from 'preact/hooks';
import { get, Me, setToken, whenSignedOut } from './api';
import { Elsewhere, useElsewhere } from './elsewhere';
import { HealthBar, HealthProvider } from './health';
import { currentFreshness, start, stop, watchFreshness } from './live';
import { LogIn } from './login';
import { Looker, lookerOf, MeContext, useMe } from './me';
import { PAGES, pageOf } from './pages';
import { go, link, usePlace } from './router';
import { Shortcuts } from './shortcuts';
import { currentTheme, setTheme, Theme } from './theme';
import { Confirmation } from './ui/act';
import { Notices } from './ui/notice';
import { useSecond } from './ui/parts';
import { Empty } from './ui/state';
import { duration } from './format';

/** A link as `muster console` prints it brings its token behind the #, which no server ever sees.
 * It is taken out of the address at once. */
function tokenOfAddress(): string {
  const match = location.hash.match(/^#token=([A-Za-z0-9._-]+)$/);
  if (!match) return '';
  history.replaceState(null, '', location.pathname);
  return match[1] ?? '';
}

export function App() {
  const [me, setMe] = useState<Looker | null>(null);
  const [why, setWhy] = useState('');
  const [brought] = useState(tokenOfAddress);
  const elsewhere = useElsewhere();
  const enter = async (token: string) => {
    setToken(token);
    const found = await get<Me>('/v1/me');
    setMe(lookerOf(found));
    setWhy('');
    void start();
  };
  const leave = (reason: string) => {
    stop();
    setToken('');
    setMe(null);
    setWhy(reason);
  };
  useEffect(() => {
    whenSignedOut((reason) => leave(reason));
    const bring = (token: string) => {
      if (token) enter(token).catch((e: Error) => leave(e.message));
    };
    bring(brought);
    const pasted = () => bring(tokenOfAddress()); // a link opened where the console is open already
    window.addEventListener('hashchange', pasted);
    return () => window.removeEventListener('hashchange', pasted);
  }, []);
  if (elsewhere) return <Elsewhere of={elsewhere} />;
  if (!me) return <><LogIn why={why} enter={enter} trying={brought !== '' && why === ''} /><Notices /></>;
  return (
    <MeContext.Provider value={me}>
      <HealthProvider><Frame signOut={() => leave('')} /></HealthProvider>
    </MeContext.Provider>
  );
}

function Frame({ signOut }: { signOut: () => void }) {
  const place = usePlace();
  const page = pageOf(place.page);
  const [menu, setMenu] = useState(false);
  const main = useRef<HTMLElement>(null);
  const address = `${place.page}/${place.rest.join('/')}`;
  const arrived = useRef(false);
  useEffect(() => {
    setMenu(false);
    document.title = page ? `${page.title} · Muster` : 'Muster';
    main.current?.scrollTo(0, 0);
    if (arrived.current) document.getElementById('page-title')?.focus({ preventScroll: true }); // screen readers hear where they are
    arrived.current = true; // who has just come begins at the top
  }, [address]);
  return (
    <div class={`frame ${menu ? 'menu-open' : ''}`}>
      <a class="skip" href="#page-title" onClick={(e) => {
        e.preventDefault();
        document.getElementById('page-title')?.focus();
      }}>Skip to the page</a>
      <aside class="side">
        <div class="brand">
          <a href="#/"><img src="/console/icon.svg" alt="" width="24" height="24" /> Muster</a>
          <button class="menu-button" aria-expanded={menu} aria-controls="menu" onClick={() => setMenu(!menu)}>Menu</button>
        </div>
        <nav id="menu" aria-label="Pages">
          {PAGES.map((p) => (
            <a key={p.path} href={`#/${p.path}`} class={p.group ? 'first-of-group' : ''}
              aria-current={(page ?? null) === p ? 'page' : undefined}>{p.title}</a>
          ))}
        </nav>
        <Identity signOut={signOut} />
      </aside>
      <div class="top">
        <HealthBar />
        <div class="top-right">
          <Jump />
          <Fresh />
        </div>
      </div>
      <main ref={main}>
        {page
          ? <page.view key={place.page} place={place} />
          : <Empty title="There is no such page"><a href="#/">Back to the overview</a></Empty>}
      </main>
      <Confirmation />
      <Notices />
      <Shortcuts />
    </div>
  );
}

function Identity({ signOut }: { signOut: () => void }) {
  const me = useMe();
  const [theme, set] = useState<Theme>(currentTheme);
  return (
    <div class="identity">
      <span>{me.account} <span class="dim">{me.may('muster_admin') ? 'administrator' : 'read-only'}</span></span>
      <div class="identity-row">
        <label class="choice"><span class="hidden">Colours</span>
          <select value={theme} onChange={(e) => {
            const t = e.currentTarget.value as Theme;
            set(t);
            setTheme(t);
          }}>
            <option value="auto">system</option>
            <option value="light">light</option>
            <option value="dark">dark</option>
          </select>
        </label>
        <button class="small" onClick={signOut}>Log out</button>
      </div>
      <a class="dim small-text" href="/console/licences.txt" target="_blank" rel="noreferrer">Licences</a>
    </div>
  );
}

/** Whether what one sees is what is. */
function Fresh() {
  const now = useSecond();
  const [fresh, set] = useState(currentFreshness);
  useEffect(() => watchFreshness(set), []);
  const age = fresh.heardAt ? duration(now - fresh.heardAt) : '';
  return fresh.connected
    ? <span class="fresh good" role="status"><span class="dot" aria-hidden="true" />live</span>
    : (
      <span class="fresh bad" role="status" title={fresh.why}>
        <span class="dot" aria-hidden="true" />
        {fresh.heardAt ? `disconnected; what you see is ${age} old` : 'connecting …'}
      </span>
    );
}

/** One box that leads to a thing by its number or a player by his name. */
function Jump() {
  const [text, set] = useState('');
  const jump = (e: Event) => {
    e.preventDefault();
    const wanted = text.trim();
    if (!wanted) return;
    const [, kind = '', id = ''] = wanted.match(/^(server|host|room|match|ticket|lobby|player)\s+(.+)$/) ?? [];
    const page = { server: 'servers', host: 'hosts', room: 'rooms', match: 'matches', ticket: 'tickets', lobby: 'lobbies', player: 'players' }[kind];
    go(page ? link(page, id) : link('players', wanted));
    set('');
  };
  return (
    <form role="search" onSubmit={jump}>
      <input id="jump" type="search" placeholder="player, or: server 12, ticket 7 …" aria-label="Go to a player, server, host, room, match, ticket or lobby"
        value={text} onInput={(e) => set(e.currentTarget.value)} />
    </form>
  );
}

