// The figures on top, each of which leads to its page, and the store in full.
import { ComponentChildren } from 'preact';
import { bytes, count, decimal, duration, number, percent, words } from '../format';
import { Finding } from '../health';
import { SICK } from '../host';
import { Ago, Card, Facts, Figure } from '../ui/parts';
import { hostsOf, serversOf, Status } from './status';

type Tone = 'good' | 'busy' | 'bad';

function Joins({ s }: { s: Status }) {
  const { done, failed } = s.joins;
  const share = done + failed > 0 ? done / (done + failed) : null;
  const state: Tone | undefined = share === null || share >= 0.9 ? undefined : share >= 0.5 ? 'busy' : 'bad';
  return (
    <Figure name="Joins that worked" href="#/refusals" value={share === null ? '–' : percent(100 * share)}
      note={share === null ? 'nobody asked in the last minute' : `${number(done)} of ${number(done + failed)} in the last minute`}
      {...(state ? { state } : {})} />
  );
}

function Hosts({ s }: { s: Status }) {
  const all = hostsOf(s.hosts);
  const healthy = s.hosts.healthy ?? 0;
  const others = Object.entries(s.hosts).filter(([k, n]) => k !== 'healthy' && n > 0).map(([k, n]) => `${n} ${words(k)}`);
  const sick = SICK.some((k) => (s.hosts[k] ?? 0) > 0);
  const state: Tone | undefined = all > 0 && healthy === 0 ? 'bad' : sick ? 'busy' : undefined;
  return (
    <Figure name="Hosts healthy" href="#/hosts" value={`${number(healthy)} of ${number(all)}`}
      note={all === 0 ? 'no agent runs' : others.join(', ') || 'all of them'} {...(state ? { state } : {})} />
  );
}

const STORE_CODES = ['store_read_only', 'store_hangs', 'commits_slow', 'fold_behind', 'disk_full'];

/** What GET /v1/health has to say of the store; null: it was not asked yet. */
const ofStore = (findings: Finding[] | null): Finding[] | null =>
  findings && findings.filter((f) => STORE_CODES.includes(f.code));

const toneOf = (findings: Finding[] | null): Tone | undefined =>
  !findings || findings.length === 0 ? undefined : findings.some((f) => f.severity === 'critical') ? 'bad' : 'busy';

export function Figures({ s, players, findings }: { s: Status; players: number | null; findings: Finding[] | null }) {
  const servers = serversOf(s.servers);
  const { queues: q, allocations: a, storage } = s;
  const broken = s.brokers.filter((b) => !b.connected);
  const store = toneOf(ofStore(findings));
  return (
    <div class="figures" role="group" aria-label="Figures">
      <Figure name="Players" href="#/players" value={number(players ?? s.rooms.taken + s.rooms.reserved)} note="seated or on their way" />
      <Figure name="Matches" href="#/matches" value={number(s.sessions)} note={s.lobbies.loading > 0 ? `${number(s.lobbies.loading)} loading in lobbies` : 'open'} />
      <Figure name="Rooms" href="#/rooms" value={number(s.rooms.open)} note={`${number(s.rooms.starting)} starting, ${number(s.rooms.ending)} ending`} />
      <Figure name="Servers" href="#/servers" value={number(servers)} {...(s.servers.offline > 0 ? { state: 'busy' as const } : {})}
        note={s.servers.offline > 0 ? `${number(s.servers.offline)} offline` : `${number(s.servers.available)} available`} />
      <Figure name="Slots used" href="#/servers?status=full" value={`${number(s.slots.used)} of ${number(s.slots.total)}`}
        note={s.slots.total > 0 ? percent((100 * s.slots.used) / s.slots.total) : 'no server registered'}
        {...(s.slots.total > 0 && s.slots.used >= 0.95 * s.slots.total ? { state: 'bad' as const } : {})} />
      <Figure name="Allocations" href="#/tickets" value={`${decimal(a.per_s)} /s`}
        note={a.p50_ms === null ? 'none in the last minute' : `p50 ${duration(a.p50_ms)}, p95 ${duration(a.p95_ms)}, p99 ${duration(a.p99_ms)}`} />
      <Joins s={s} />
      <Figure name="Waiting in line" href="#/queue" value={number(q.players)} {...(q.oldest_ms > 60000 ? { state: 'busy' as const } : {})}
        note={q.entries === 0 ? 'nobody waits' : `oldest waits ${duration(q.oldest_ms)}`} />
      <Hosts s={s} />
      <Figure name="Store" href="#/?show=store" value={s.store === 'read_only' ? 'read-only' : duration(storage.commit_p99_ms)}
        note={`commit p99; tables ${storage.fold_lag === 0 ? 'up to date' : `${duration(storage.fold_lag_ms)} behind`}; ${bytes(storage.disk_free_bytes)} free`} {...(store ? { state: store } : {})} />
      {s.brokers.length > 0 && (
        <Figure name="Brokers" href="#/queue" value={`${s.brokers.length - broken.length} of ${s.brokers.length}`} {...(broken.length > 0 ? { state: 'bad' as const } : {})}
          note={broken.length > 0 ? `${broken.map((b) => b.name).join(', ')} not connected` : 'connected'} />
      )}
    </div>
  );
}

/** Is the store keeping up? */
export function Store({ s, findings }: { s: Status; findings: Finding[] | null }) {
  const st = s.storage;
  const trouble = ofStore(findings);
  const word: ComponentChildren = trouble === null ? '–' : trouble.length === 0
    ? <strong class="good">Yes.</strong>
    : <strong class={toneOf(trouble)}>{trouble.map((f) => `${f.sentence} ${f.advice}`).join(' ')}</strong>;
  return (
    <Card title="Store" id="store">
      <Facts of={[
        ['Keeps up?', word],
        ['Commits', `${number(st.commits)} in the last minute; half within ${duration(st.commit_p50_ms)}, 99 of 100 within ${duration(st.commit_p99_ms)}`],
        ['Waiting', st.batches_waiting === 0 ? 'nothing' : `${count(st.batches_waiting, 'batch', 'batches')}, ${bytes(st.backlog_bytes)}`],
        ['Tables', st.fold_lag === 0 ? 'up to date' : `${count(st.fold_lag, 'batch', 'batches')} behind, the oldest ${duration(st.fold_lag_ms)}`],
        ['Journal', bytes(st.journal_bytes)],
        ['Tables on disk', bytes(st.state_bytes)],
        ['Disk free', st.disk_bytes ? `${bytes(st.disk_free_bytes)} of ${bytes(st.disk_bytes)}` : bytes(st.disk_free_bytes)],
        ['Muster', <>version {s.version}, started <Ago at={s.started_at} /></>],
      ]} />
    </Card>
  );
}
