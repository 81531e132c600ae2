// Hosts as a heat map: one cell each. The colour is how loaded it is, and so is the number in it; a
// letter and a hatch say that it gets nothing new.
import { useRef } from 'preact/hooks';
import { ListState } from '../data';
import { count, percent, words } from '../format';
import { Host, hostHeat, hostState } from '../host';
import { link } from '../router';
import { Card } from '../ui/parts';
import { Failed, Loading } from '../ui/state';

const CELLS_MAX = 2000; // beyond, the worst of them
const LETTERS: Record<string, string> = { silent: 'S', leaving: 'L', disabled: 'D', failing: 'F', overloaded: 'O' };
const STEPS = [40, 60, 80, 92];

const step = (heat: number): number => STEPS.filter((s) => heat >= s).length;

function textOf(h: Host): string {
  return `${h.name}: ${words(hostState(h))}, CPU ${percent(h.cpu_percent)}, memory ${percent(h.memory_percent)}, ${count(h.rooms, 'room')}`;
}

function Cell({ host, first }: { host: Host; first: boolean }) {
  const state = hostState(host);
  const letter = LETTERS[state];
  return (
    <li>
      <a href={link('hosts', host.id)} tabIndex={first ? 0 : -1} title={textOf(host)} aria-label={textOf(host)}
        class={`cell ${letter ? `cell-off cell-${state}` : `heat-${step(hostHeat(host))}`}`}>
        {letter ?? Math.round(hostHeat(host))}
      </a>
    </li>
  );
}

function worstFirst(a: Host, b: Host): number {
  return Number(b.passed_over !== null) - Number(a.passed_over !== null) || hostHeat(b) - hostHeat(a);
}

/** One stop for the tab key; the arrows go on from there. */
function Cells({ hosts }: { hosts: Host[] }) {
  const box = useRef<HTMLDivElement>(null);
  const cut = hosts.length > CELLS_MAX ? [...hosts].sort(worstFirst).slice(0, CELLS_MAX) : hosts;
  const regions = [...new Set(cut.map((h) => h.region))].sort();
  const move = (e: KeyboardEvent) => {
    const cells = [...(box.current?.querySelectorAll<HTMLElement>('.cell') ?? [])];
    const at = cells.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: cells.length - 1 }[e.key];
    if (at < 0 || to === undefined) return;
    e.preventDefault();
    cells[Math.max(0, Math.min(cells.length - 1, to))]?.focus();
  };
  return (
    <div ref={box} onKeyDown={move}>
      {cut.length < hosts.length && <p class="dim small-text">The worst {count(cut.length, 'host')} of {count(hosts.length, 'host')}.</p>}
      {regions.map((region, r) => (
        <div class="heat-region" key={region}>
          <h3>{region} <span class="dim">{cut.filter((h) => h.region === region).length}</span></h3>
          <ul class="cells">
            {cut.filter((h) => h.region === region).map((h, i) => <Cell key={h.id} host={h} first={r === 0 && i === 0} />)}
          </ul>
        </div>
      ))}
    </div>
  );
}

function Key() {
  const names = [`below ${STEPS[0]} %`, ...STEPS.map((s) => `${s} % and more`)];
  return (
    <p class="heat-key dim small-text">
      The larger of CPU and memory:{' '}
      {names.map((n, i) => <span key={n}><span class={`cell cell-sample heat-${i}`} aria-hidden="true" /> {n}</span>)}
      {Object.entries(LETTERS).map(([state, letter]) => <span key={state}><span class="cell cell-sample cell-off" aria-hidden="true">{letter}</span> {words(state)}</span>)}
    </p>
  );
}

export function HeatMap({ list }: { list: ListState<Host> }) {
  const hot = list.rows.filter((h) => h.passed_over !== null).length;
  return (
    <Card title="Hosts" wide aside={list.rows.length > 0
      ? <a href="#/hosts">{hot === 0 ? `${count(list.rows.length, 'host')}, all healthy` : `${hot} of ${count(list.rows.length, 'host')} get nothing new`}</a>
      : undefined}>
      {list.error && list.rows.length === 0 ? <Failed error={list.error} retry={list.refresh} />
        : list.loading ? <Loading what="hosts" />
          : list.rows.length === 0
            ? <p class="dim">No agent runs. Rooms need one: an agent on each machine starts game servers when players ask for rooms.</p>
            : <><Cells hosts={list.rows} /><Key /></>}
    </Card>
  );
}
