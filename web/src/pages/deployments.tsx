// Deployments: what players can join, which archive it is started from, and a way to bring a new one.
import { useRef, useState } from 'preact/hooks';
import { change, upload, withQuery } from '../api';
import { sentenceOf, useAnswer, useList } from '../data';
import { bytes, count, dateTime, duration } from '../format';
import { useMe } from '../me';
import { link, Place, setQuery } from '../router';
import { Act } from '../ui/act';
import { say } from '../ui/notice';
import { Ago, Badge, Card, Choice, Facts, PageHead } from '../ui/parts';
import { Empty, Failed, Loading } from '../ui/state';
import { Column, Table } from '../ui/table';
import { Deployment, ready, sentence, Version, versionState, VersionVerbs } from '../version';

interface Fleet {
  name: string;
  provider: string;
}

const stateOf = (d: Deployment, v: Version): string =>
  d.current ? 'in use' : d.wanted ? 'on its way' : d.id === v.previous ? 'the one before' : 'kept';

const columns = (v: Version, after: () => void): Column<Deployment>[] => [
  { key: 'id', title: 'Deployment', cell: (d) => d.id, sort: (d) => Number(d.id) },
  { key: 'state', title: 'State', cell: (d) => <span class={d.current ? 'good' : d.wanted ? 'busy' : 'dim'}>{stateOf(d, v)}</span> },
  { key: 'hosts', title: 'Hosts that have it', cell: ready },
  { key: 'size', title: 'Size', cell: (d) => bytes(d.size), sort: (d) => d.size, right: true, wide: true },
  { key: 'digest', title: 'SHA-256', cell: (d) => <code title={d.digest}>{d.digest.slice(0, 12)}</code>, wide: true },
  { key: 'created', title: 'Uploaded', cell: (d) => <Ago at={d.created_at} />, sort: (d) => d.created_at, wide: true },
  { key: 'who', title: 'By', cell: (d) => <span title={d.who}>{d.who}</span>, wide: true },
  { key: 'verbs', title: '', cell: (d) => (d.current || d.wanted ? null : <Switch d={d} after={after} />) },
];

function Switch({ d, after }: { d: Deployment; after: () => void }) {
  return (
    <Act verb={`Switch ${d.fleet} ${d.version} to deployment ${d.id}`} label="Switch" small
      text={(
        <>
          New rooms of {d.fleet} {d.version} are started from deployment {d.id} (uploaded {dateTime(d.created_at)} by {d.who})
          as soon as every healthy host has it: {ready(d)} now. Rooms that run go on as they are.
        </>
      )}
      run={() => change(`/v1/deployments/${d.id}/switch`)}
      done={`Deployment ${d.id} is used as soon as every healthy host has it.`} after={after} />
  );
}

function VersionCard({ v, archives, after }: { v: Version; archives: Deployment[]; after: () => void }) {
  return (
    <Card wide title={<><a href={link('fleets', v.fleet)}>{v.fleet}</a> {v.name}</>}
      aside={(
        <span class="row-verbs">
          <Badge state={versionState(v, archives.length)} />
          <VersionVerbs v={v} after={after} />
        </span>
      )}>
      {v.quarantined && (
        <div class="quarantine" role="note">
          <p><strong>Quarantined: {sentence(v.reason ?? 'its servers do not start')}</strong> Nobody can join it there until a server that Muster starts without a player is ready.</p>
          <p>Upload an archive that works and switch to it; or, when the failures had another cause that is mended, enable it at once.
            What the servers printed last is on the <a href={`#/servers?fleet=${encodeURIComponent(v.fleet)}&status=gone`}>servers that are gone</a>.</p>
        </div>
      )}
      {!v.quarantined && v.reason && (
        <p class="stale" role="note">The deployment that came last was taken back for the one before: {sentence(v.reason)}</p>
      )}
      <Facts of={[
        ['Started from', v.deployment ? `deployment ${v.deployment}` : archives.length > 0 ? 'nothing yet: switch to a deployment' : 'a program that is on the hosts already'],
        ...(v.wanted && v.wanted !== v.deployment ? [['On its way', `deployment ${v.wanted}: ${ready(v)} have it`] as [string, string]] : []),
        ['Rooms', <a href={`#/rooms?fleet=${encodeURIComponent(v.fleet)}`}>{count(v.rooms, 'room')}</a>],
      ]} />
      {archives.length > 0 && (
        <div class="inner-table">
          <Table name={`Deployments of ${v.fleet} ${v.name}`} rows={archives} columns={columns(v, after)} initial={{ key: 'id', down: true }} tall={false} />
        </div>
      )}
    </Card>
  );
}

interface Sending {
  name: string;
  sent: number;
  total: number;
  since: number;
  stop: AbortController;
}

function progressWords(s: Sending): string {
  const share = s.total > 0 ? Math.floor((s.sent / s.total) * 100) : 0;
  if (s.sent >= s.total && s.total > 0) return 'Sent. Muster looks into it and keeps it …';
  const elapsed = Date.now() - s.since;
  const left = s.sent > 0 && elapsed > 1000 ? `, about ${duration((elapsed / s.sent) * (s.total - s.sent))} left` : '';
  return `${share} %, ${bytes(s.sent)} of ${bytes(s.total)}${left}`;
}

function Upload({ fleets, versions, after }: { fleets: Fleet[]; versions: Version[]; after: () => void }) {
  const me = useMe();
  const [fleet, setFleet] = useState('');
  const [version, setVersion] = useState('');
  const [file, setFile] = useState<File | null>(null);
  const [go, setGo] = useState(false);
  const [over, setOver] = useState(false);
  const [sending, setSending] = useState<Sending | null>(null);
  const [error, setError] = useState('');
  const input = useRef<HTMLInputElement>(null);
  const may = me.may('muster_admin');
  const chosen = fleet || (fleets[0]?.name ?? '');
  const drop = (e: DragEvent) => {
    e.preventDefault();
    setOver(false);
    const dropped = e.dataTransfer?.files[0];
    if (dropped && may && !sending) setFile(dropped);
  };
  const send = async (e: Event) => {
    e.preventDefault();
    if (!file) {
      setError('Choose an archive first: a .tar.gz or .zip.');
      return;
    }
    setError('');
    const stop = new AbortController();
    const state = { name: file.name, sent: 0, total: file.size, since: Date.now(), stop };
    setSending(state);
    try {
      const made = await upload<Deployment>(withQuery('/v1/deployments', { fleet: chosen, version }), file,
        (sent, total) => setSending({ ...state, sent, total }), stop.signal);
      if (go) await change(`/v1/deployments/${made.id}/switch`);
      say(go ? `Deployment ${made.id} is kept, and used as soon as every healthy host has it.`
        : `Deployment ${made.id} is kept. Nothing uses it until you switch to it.`);
      setFile(null);
      if (input.current) input.current.value = '';
    } catch (refused) {
      setError((refused as Error).name === 'AbortError' ? 'The upload was stopped. Nothing was kept.' : sentenceOf(refused as Error));
    }
    setSending(null);
    after();
  };
  return (
    <Card title="Upload an archive" wide>
      <form class="upload" onSubmit={(e) => void send(e)}>
        <div class={`drop ${over ? 'over' : ''}`} onDrop={drop}
          onDragOver={(e) => {
            e.preventDefault();
            setOver(true);
          }} onDragLeave={() => setOver(false)}>
          <label for="archive">Archive (.tar.gz or .zip, at most 4 GiB): drop it here, or</label>
          <input id="archive" ref={input} type="file" accept=".tar.gz,.tgz,.zip,.gz" disabled={!may || sending !== null}
            onChange={(e) => setFile(e.currentTarget.files?.[0] ?? null)} />
          {file && <p><strong>{file.name}</strong>, {bytes(file.size)}</p>}
        </div>
        <div class="filters">
          <label class="choice"><span>Fleet</span>
            <select value={chosen} disabled={!may || sending !== null} onChange={(e) => setFleet(e.currentTarget.value)}>
              {fleets.map((f) => <option key={f.name} value={f.name}>{f.name}</option>)}
            </select>
          </label>
          <label class="choice"><span>Version, made when it is new</span>
            <input required maxLength={32} list="versions" value={version} disabled={!may || sending !== null} onInput={(e) => setVersion(e.currentTarget.value)} />
          </label>
          <datalist id="versions">{versions.filter((v) => v.fleet === chosen).map((v) => <option key={v.name} value={v.name} />)}</datalist>
          <label class="tick"><input type="checkbox" checked={go} disabled={!may || sending !== null} onChange={(e) => setGo(e.currentTarget.checked)} /> switch to it at once</label>
          <button class="primary" disabled={!may || sending !== null} title={may ? '' : 'This needs the scope muster_admin, which your token has not.'}>Upload</button>
        </div>
        {sending && (
          <div class="sending">
            <progress max={1} value={sending.total > 0 ? sending.sent / sending.total : 0} aria-label={`Upload of ${sending.name}`} />
            <span role="status">{progressWords(sending)}</span>
            <button type="button" class="small" onClick={() => sending.stop.abort()}>Cancel</button>
          </div>
        )}
        {error && <p class="dialog-error" role="alert">{error}</p>}
      </form>
    </Card>
  );
}

export function DeploymentsPage({ place }: { place: Place }) {
  const fleet = place.query.get('fleet') ?? '';
  const fleets = useAnswer<{ items: Fleet[] }>('/v1/fleets', { limit: 1000 }, 30000, ['fleet']);
  const versions = useAnswer<{ items: Version[] }>('/v1/versions', {}, 2000, ['version', 'deployment']);
  const archives = useList<Deployment>('/v1/deployments', {}, 'deployment');
  const agentFleets = (fleets.data?.items ?? []).filter((f) => f.provider === 'agent');
  const shown = (versions.data?.items ?? []).filter((v) => !fleet || v.fleet === fleet);
  const after = () => {
    versions.refresh();
    archives.refresh();
  };
  return (
    <>
      <PageHead title="Deployments" lead="Versions of games that players can join, and the archives their servers are started from." />
      {agentFleets.length > 1 && (
        <div class="filters">
          <Choice name="Fleet" value={fleet} options={agentFleets.map((f) => [f.name, f.name])} onChange={(v) => setQuery({ fleet: v })} />
        </div>
      )}
      {versions.data === null && (versions.error ? <Failed error={versions.error} retry={versions.refresh} /> : <Loading what="versions" />)}
      {versions.data && versions.error && <p class="stale" role="status">{sentenceOf(versions.error)} This is how it was last.</p>}
      {fleets.data && agentFleets.length === 0
        ? (
          <Empty title="No fleet is started by agents">
            Deployments are for fleets with <code>provider: agent</code> in the configuration, whose servers agents start.
            Servers that register by themselves bring their own program.
          </Empty>
        ) : fleets.data && <Upload fleets={agentFleets} versions={versions.data?.items ?? []} after={after} />}
      <div class="cards">
        {shown.map((v) => (
          <VersionCard key={`${v.fleet} ${v.name}`} v={v} after={after}
            archives={archives.rows.filter((d) => d.fleet === v.fleet && d.version === v.name)} />
        ))}
      </div>
      {versions.data && shown.length === 0 && agentFleets.length > 0 && (
        <Empty title="No version yet">Upload an archive above, or in a terminal: <code>muster deploy FLEET VERSION ARCHIVE --switch</code></Empty>
      )}
    </>
  );
}
