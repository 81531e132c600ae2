// Changes: what is other than it was, and who did it.
import { sentenceOf, usePages } from '../data';
import { dateTime, number, words } from '../format';
import { useMe } from '../me';
import { link, Place, setQuery } from '../router';
import { Ago, Choice, Find, PageHead, SPANS } from '../ui/parts';
import { Empty, Failed, Loading } from '../ui/state';
import { Column, Table } from '../ui/table';

/** What operators did, with the address it came from. Administrators may see it. */
interface Entry {
  id: string;
  at: string;
  who: string;
  address: string;
  action: string;
  target: { kind: string; id: string } | null;
  detail: string;
}

/** What operators did and what happened by itself, from the history. */
interface Change {
  at: string;
  what: string;
  who: string | null; // null: nobody, it happened
  sentence: string;
  host: string | null;
  server: string | null;
  target_kind: string | null;
  target: string | null;
}

interface Row {
  id: string;
  at: string;
  what: string;
  who: string; // '': nobody
  sentence: string;
  address: string;
  href: string | null;
}

const MOST = 5000;
const SPAN_MS: Record<string, number> = { '15m': 900e3, '1h': 3600e3, '1d': 86400e3, '7d': 604800e3 };

const DID: Record<string, string> = {
  drain: 'drained', undrain: 'gave matches again to', end: 'ended', enrol: 'made the enrolment', revoke: 'revoked', rotate: 'renewed',
  issue: 'made an access token', configure: 'changed the configuration', terminate: 'terminated', kick: 'kicked', enable: 'enabled',
  disable: 'disabled', deploy: 'uploaded', switch: 'switched to', ban: 'issued', update: 'changed', lift: 'lifted',
  stdin: 'wrote a line to the input of', dequeue: 'took out of the line', abort: 'aborted',
};

function pageOf(kind: string, id: string): string | null {
  switch (kind) {
    case 'server': case 'host': return link(`${kind}s`, id);
    case 'session': return link('rooms', id);
    case 'lobby': return link('lobbies', id);
    case 'version': case 'deployment': return '#/deployments';
    case 'ban': return `#/bans?state=all&find=${id}`;
    default: return null;
  }
}

function ofAudit(e: Entry): Row {
  const thing = e.target ? ` ${words(e.target.kind)} ${e.target.id}` : '';
  return {
    id: `audit ${e.id}`, at: e.at, what: e.action, who: e.who, address: e.address,
    sentence: `${DID[e.action] ?? words(e.action)}${thing}${e.detail ? `: ${e.detail}` : ''}`,
    href: e.target ? pageOf(e.target.kind, e.target.id) : null,
  };
}

function ofChange(c: Change, i: number): Row {
  const kind = c.target_kind ?? (c.host ? 'host' : c.server ? 'server' : '');
  const id = c.target ?? c.host ?? c.server ?? '';
  // Its sentence begins with who did it, which has a column of its own here.
  const said = c.who && c.sentence.startsWith(`${c.who}: `) ? c.sentence.slice(c.who.length + 2) : c.sentence;
  return { id: `${c.at} ${i}`, at: c.at, what: c.what, who: c.who ?? '', sentence: said, address: '', href: id ? pageOf(kind, id) : null };
}

/** Programs make tokens by the dozen; that is one thing, and must not hide the others. */
function fold(rows: Row[]): Row[] {
  const out: (Row & { times?: number })[] = [];
  for (const row of rows) {
    const last = out[out.length - 1];
    if (last && row.what === 'issue' && last.what === 'issue' && last.who === row.who) {
      last.times = (last.times ?? 1) + 1;
      last.sentence = `made ${number(last.times)} access tokens`;
    } else out.push({ ...row });
  }
  return out;
}

const COLUMNS: Column<Row>[] = [
  { key: 'at', title: 'When', cell: (r) => <><span class="wide">{dateTime(r.at)} · </span><Ago at={r.at} /></>, sort: (r) => r.at },
  { key: 'who', title: 'Who', cell: (r) => (r.who ? <span title={r.who}>{r.who}</span> : <span class="dim">by itself</span>), sort: (r) => r.who },
  { key: 'sentence', title: 'What', cell: (r) => (r.href ? <a href={r.href} title={r.sentence}>{r.sentence}</a> : <span title={r.sentence}>{r.sentence}</span>) },
  { key: 'address', title: 'From', cell: (r) => (r.address ? <code>{r.address}</code> : <span class="dim">–</span>), sort: (r) => r.address, wide: true },
];

export function AuditPage({ place }: { place: Place }) {
  const me = useMe();
  const q = (name: string) => place.query.get(name) ?? '';
  const [span, who, what, text] = [q('in') || '1d', q('who'), q('what'), q('find').toLowerCase()];
  const admin = me.may('muster_admin');
  const changes = usePages<Change>('/v1/changes', { since: span }, MOST, 5000, ['host', 'version', 'deployment']);
  const from = new Date(Date.now() - (SPAN_MS[span] ?? 86400e3)).toISOString();
  const audit = usePages<Entry>(admin ? '/v1/audit' : null, {}, MOST, 5000, admin ? ['audit'] : [], (e) => e.at < from);
  // The audit knows more of what operators did than the history, and keeps it when there is none.
  const rows = [
    ...(changes.data?.items ?? []).filter((c) => !audit.data || c.who === null).map(ofChange),
    ...(audit.data?.items ?? []).filter((e) => e.at >= from).map(ofAudit),
  ].sort((a, b) => (a.at < b.at ? 1 : a.at > b.at ? -1 : 0));
  const shown = fold(rows.filter((r) => (!who || (who === '-' ? r.who === '' : r.who === who)) && (!what || r.what === what) &&
    (!text || `${r.who} ${r.sentence} ${r.address}`.toLowerCase().includes(text))));
  const people = [...new Set(rows.map((r) => r.who).filter(Boolean))].sort();
  const kinds = [...new Set(rows.map((r) => r.what))].sort();
  const failed = changes.error && (!admin || audit.error) ? changes.error : null;
  return (
    <>
      <PageHead title="Changes" lead="What changed, and who did it: operators, hosts that came or went, starts of Muster, its configuration." />
      <div class="filters">
        <Choice name="Since" value={span === '1d' ? '' : span} all="last day" options={SPANS.filter(([key]) => key !== '1d')} onChange={(v) => setQuery({ in: v })} />
        <Choice name="Who" value={who} options={[['-', 'by itself'], ...people.map((p) => [p, p] as [string, string])]} onChange={(v) => setQuery({ who: v })} />
        <Choice name="What" value={what} options={kinds} onChange={(v) => setQuery({ what: v })} />
        <Find name="Find" value={q('find')} placeholder="host-1, ban, 10.0.0.7" onChange={(v) => setQuery({ find: v })} />
      </div>
      {changes.error && !failed && <p class="stale" role="status">{sentenceOf(changes.error)} Only what operators did is shown.</p>}
      {audit.error && !failed && <p class="stale" role="status">{sentenceOf(audit.error)} What operators did is shown as the history has it.</p>}
      {failed ? <Failed error={failed} retry={changes.refresh} />
        : (!changes.data && !changes.error) || (admin && !audit.data && !audit.error) ? <Loading what="changes" />
        : rows.length === 0 ? <Empty title="Nothing changed">Nobody did anything, and nothing came or went. Look further back above.</Empty>
        : (
          <>
            <p class="list-count" role="status">
              {number(shown.length)} {shown.length === rows.length ? '' : `of ${number(rows.length)} `}changes
              {(changes.data?.complete === false || audit.data?.complete === false) && '; there were more, choose a shorter time to see all of it'}
            </p>
            {shown.length === 0
              ? <Empty title="Nothing fits">Change the filters above to see more.</Empty>
              : <Table name="changes" rows={shown} columns={COLUMNS} />}
          </>
        )}
    </>
  );
}
