// Everything at a glance: what is wrong first, then where, how much, since when, and who got nothing.
import { useEffect, useMemo } from 'preact/hooks';
import { useAnswer, useList } from '../data';
import { Finding, Findings, useHealth } from '../health';
import { Host } from '../host';
import { Figures, Store } from '../overview/figures';
import { FirstSteps } from '../overview/first_steps';
import { HeatMap } from '../overview/heat';
import { Regions } from '../overview/map';
import { Nodes } from '../overview/nodes';
import { LastRefusals } from '../overview/refusals';
import { isEmpty, spotsOf, Status } from '../overview/status';
import { TrendCard, useTrends, Window } from '../overview/trends';
import { Place } from '../router';
import { Card, PageHead } from '../ui/parts';
import { Answer } from '../ui/state';

export function OverviewPage({ place }: { place: Place }) {
  const status = useAnswer<Status>('/v1/status', {}, 2000, ['server', 'host']);
  const health = useHealth();
  return (
    <>
      <PageHead title="Overview" />
      {health && health.findings.length > 0 && (
        <Card title="What is wrong, and what to do" wide><Findings of={health.findings} /></Card>
      )}
      {health && health.hints.length > 0 && status.data && !isEmpty(status.data) && (
        <Card title="Not set up yet" wide><Findings of={health.hints} /></Card>
      )}
      <Answer of={status} what="how Muster is">
        {(s) => (isEmpty(s)
          ? <><FirstSteps />{s.refusals.length > 0 && <LastRefusals of={s.refusals} />}</>
          : <Glance s={s} place={place} findings={health?.findings ?? null} />)}
      </Answer>
      <Nodes show={place.query.get('show') === 'nodes'} />
    </>
  );
}

function Glance({ s, place, findings }: { s: Status; place: Place; findings: Finding[] | null }) {
  const chosen: Window = place.query.get('window') === 'day' ? 'day' : 'ten_minutes';
  const hosts = useList<Host>('/v1/hosts', {}, 'host');
  const trends = useTrends(chosen);
  const spots = useMemo(() => spotsOf(s.regions, hosts.rows), [s.regions, hosts.rows]);
  const points = trends.data?.points ?? [];
  const show = place.query.get('show');
  useEffect(() => {
    if (show === 'store') document.getElementById('store')?.scrollIntoView({ block: 'center' });
  }, [show]);
  return (
    <>
      <Figures s={s} players={points[points.length - 1]?.players ?? null} findings={findings} />
      <Regions spots={spots} />
      <TrendCard trends={trends} window={chosen} />
      <HeatMap list={hosts} />
      <div class="cards">
        <LastRefusals of={s.refusals} />
        <Store s={s} findings={findings} />
      </div>
    </>
  );
}
