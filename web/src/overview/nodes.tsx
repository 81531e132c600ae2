// The nodes of a cell: who leads, who could, and who cannot.
import { useEffect } from 'preact/hooks';
import { useAnswer } from '../data';
import { duration, number } from '../format';
import { Badge, Card } from '../ui/parts';

interface Node {
  name: string;
  state: 'leader' | 'standby' | 'away';
  http: string;
  version: string;
  seq: number;
  behind: number;
  ready: boolean;
  heard_ms: number;
}

interface Cluster {
  cell: string | null;
  epoch: number;
  nodes: Node[];
  sentence: string;
}

const stateOf = (n: Node): string => (n.state === 'standby' ? (n.ready ? 'ready' : 'waiting') : n.state === 'away' ? 'lost' : 'leads');

/** Nothing where the store is this node's own. `show`: somebody came to look at them. */
export function Nodes({ show }: { show: boolean }) {
  const cluster = useAnswer<Cluster>('/v1/cluster').data;
  const there = cluster !== null && cluster.cell !== null;
  useEffect(() => {
    if (show && there) document.getElementById('nodes')?.scrollIntoView({ block: 'center' });
  }, [show, there]);
  if (!cluster || cluster.cell === null) return null;
  return (
    <Card title="Nodes" id="nodes" wide aside={<span class="dim">cell {cluster.cell}, epoch {number(cluster.epoch)}</span>}>
      <p>{cluster.sentence}</p>
      <table aria-label="Nodes">
        <thead><tr><th>Node</th><th>State</th><th class="right">Behind</th><th class="right wide">Heard</th></tr></thead>
        <tbody>
          {cluster.nodes.map((n) => (
            <tr key={n.name + n.http}>
              <td>{n.name} <span class="dim small-text wide">{n.http}</span></td>
              <td><Badge state={stateOf(n)} title={n.state} /></td>
              <td class="right">{n.state === 'leader' ? '–' : `${number(n.behind)}`}</td>
              <td class="right wide">{duration(n.heard_ms)} ago</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}
