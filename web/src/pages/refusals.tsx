// Refusals: who was told no, why, how often, and whether somebody is told so again and again.
import { useAnswer } from '../data';
import { count, dateTime, number, words } from '../format';
import { link, Place, setQuery } from '../router';
import { Ago, Bars, Card, Choice, PageHead, SPANS } from '../ui/parts';
import { Answer, Empty } from '../ui/state';
import { Column, Table } from '../ui/table';

interface Reason {
  reason: string;
  sentence: string;
  count: number;
  players: number;
}

interface Repeated {
  account: string;
  count: number;
  reason: string;
  first_at: string;
  last_at: string;
}

interface Refusals {
  since: string;
  total: number;
  by_reason: Reason[];
  repeated: Repeated[];
  complete_since: string | null; // null: all of it is there
}

/** What nobody else can mend: players asked for something that was there, and did not get it. */
const OURS = ['no_servers', 'no_host', 'no_place', 'no_capacity', 'spawn_failed', 'spawn_timeout', 'host_away', 'queue_timeout',
  'allocation_timeout', 'allocation_failed', 'servers_failed', 'no_ack', 'busy', 'internal', 'io', 'version_disabled', 'friend_unavailable'];

function verdict(r: Refusals): string {
  if (r.total === 0) return 'Nobody was refused.';
  const ours = r.by_reason.filter((b) => OURS.includes(b.reason)).reduce((sum, b) => sum + b.count, 0);
  const again = r.repeated.filter((p) => OURS.includes(p.reason)).length;
  const first = ours === 0
    ? `${count(r.total, 'refusal')}, all of them for something that was asked wrongly or is not allowed.`
    : `${number(ours)} of ${count(r.total, 'refusal')} are our doing: the place was missing, not the right to it.`;
  return again > 0
    ? `${first} ${count(again, 'player')} got that answer again and again: look at them first.`
    : first;
}

const COLUMNS: Column<Repeated & { id: string }>[] = [
  { key: 'account', title: 'Player', cell: (r) => r.account, sort: (r) => r.account },
  { key: 'count', title: 'Refused', cell: (r) => `${number(r.count)} times`, sort: (r) => r.count, right: true },
  { key: 'reason', title: 'Reason', cell: (r) => words(r.reason), sort: (r) => r.reason },
  { key: 'whose', title: 'Whose doing', cell: (r) => (OURS.includes(r.reason) ? <span class="bad">ours</span> : <span class="dim">his</span>), sort: (r) => (OURS.includes(r.reason) ? 0 : 1), wide: true },
  { key: 'last', title: 'Last', cell: (r) => <span title={`for the first time ${dateTime(r.first_at)}`}><Ago at={r.last_at} /></span>, sort: (r) => r.last_at, right: true },
];

export function RefusalsPage({ place }: { place: Place }) {
  const span = place.query.get('in') || '1h';
  const reason = place.query.get('reason') ?? '';
  const refusals = useAnswer<Refusals>('/v1/refusals', { since: span }, 5000);
  return (
    <>
      <PageHead title="Refusals" lead="Requests that got no place. Is anyone being refused unfairly?" />
      <div class="filters">
        <Choice name="Window" value={span === '1h' ? '' : span} all="last hour" options={SPANS.filter(([key]) => key !== '1h')}
          onChange={(v) => setQuery({ in: v })} />
        <Choice name="Reason" value={reason} options={(refusals.data?.by_reason ?? []).map((b) => b.reason)} onChange={(v) => setQuery({ reason: v })} />
      </div>
      <Answer of={refusals} what="refusals">
        {(r) => (r.total === 0
          ? <Empty title="Nobody was refused">Since <Ago at={r.since} /> everybody who asked got a place. Look at a longer window above.</Empty>
          : (
            <>
              <p class="verdict" role="status">{verdict(r)}</p>
              {r.complete_since && r.complete_since > r.since && (
                <p class="dim">What was before {dateTime(r.complete_since)} is not counted: so far back the history does not reach.</p>
              )}
              <div class="cards">
                <Card title="Why" aside={`${number(r.total)} since ${dateTime(r.since)}`}>
                  <Bars name="Refusals by reason" of={r.by_reason.filter((b) => !reason || b.reason === reason).map((b) => ({
                    key: b.reason, title: words(b.reason), text: b.sentence, count: b.count,
                    note: b.players > 0 ? `of ${count(b.players, 'player')}` : '',
                  }))} />
                </Card>
                <Card title="Again and again" aside="players who were refused most often">
                  <Again rows={r.repeated.filter((p) => !reason || p.reason === reason)} />
                </Card>
              </div>
            </>
          ))}
      </Answer>
    </>
  );
}

function Again({ rows }: { rows: Repeated[] }) {
  if (rows.length === 0) return <p class="dim">Nobody was refused several times.</p>;
  return (
    <Table name="Players who were refused again and again" rows={rows.map((r) => ({ ...r, id: `${r.account} ${r.reason}` }))}
      columns={COLUMNS} initial={{ key: 'count', down: true }} href={(r) => link('players', r.account)} tall={false} />
  );
}
