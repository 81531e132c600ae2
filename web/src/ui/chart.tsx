// Lines over time, drawn by uPlot in the colours of the page.
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';

export interface Line {
  name: string;
  colour: string; // a custom property: "--blue"
  values: (number | null)[];
  fill?: boolean;
}

function colours() {
  const style = getComputedStyle(document.documentElement);
  return (name: string) => style.getPropertyValue(name).trim();
}

/** A point without neighbours has no line; it is drawn as a dot. */
function lonely(values: ArrayLike<number | null | undefined>): number[] {
  const out: number[] = [];
  for (let i = 0; i < values.length; i++)
    if (values[i] != null && values[i - 1] == null && values[i + 1] == null) out.push(i);
  return out;
}

/** While nobody points at it, the legend says how it is now. */
function showNow(u: uPlot): void {
  if ((u.cursor.left ?? -1) < 0) queueMicrotask(() => u.setLegend({ idx: u.data[0].length - 1 }, false));
}

function clockOf(seconds: number): string {
  const d = new Date(seconds * 1000);
  return `${String(d.getHours()).padStart(2, '0')}:${String(d.getMinutes()).padStart(2, '0')}`;
}

export function Chart({ at, lines, unit = '', height = 160, name, span }: {
  at: number[]; // seconds since 1970
  lines: Line[];
  unit?: string;
  height?: number;
  name: string; // for who cannot see it
  span?: number; // seconds that are always shown, also when there is less
}) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const shape = lines.map((l) => l.name + l.colour).join();
  useEffect(() => {
    const el = box.current;
    if (!el) return undefined;
    const make = () => {
      const colour = colours();
      const axis = { stroke: colour('--dim'), grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false }, font: '11px system-ui' };
      plot.current?.destroy();
      plot.current = new uPlot({
        width: el.clientWidth || 300, height, padding: [8, 18, 0, 0],
        hooks: { draw: [showNow], setCursor: [showNow] },
        legend: { live: true }, cursor: { y: false, points: { size: 6 } },
        scales: {
          x: span ? { range: (_u, _min, max) => [(max ?? Date.now() / 1000) - span, max ?? Date.now() / 1000] } : {},
          y: { range: (_u, _min, max) => [0, max > 0 ? max * 1.1 : 1] },
        },
        axes: [{ ...axis, size: 26, values: (_u, ticks) => ticks.map(clockOf) }, { ...axis, size: 48, values: (_u, ticks) => ticks.map((t) => `${t}${unit}`) }],
        series: [{ value: '{HH}:{mm}:{ss}' }, ...lines.map((l) => ({
          label: l.name, stroke: colour(l.colour), width: 1.5, spanGaps: false, points: { show: false, size: 4, filter: (u: uPlot, i: number) => lonely(u.data[i] ?? []) },
          value: (_u: uPlot, v: number | null) => (v === null || v === undefined ? '–' : `${Math.round(v * 100) / 100}${unit}`),
          ...(l.fill ? { fill: `${colour(l.colour)}22` } : {}),
        }))],
      }, [at, ...lines.map((l) => l.values)], el);
    };
    make();
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: el.clientWidth, height }));
    resized.observe(el);
    window.addEventListener('themechange', make);
    return () => {
      window.removeEventListener('themechange', make);
      resized.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [shape, height]);
  useEffect(() => {
    plot.current?.setData([at, ...lines.map((l) => l.values)]);
  }, [at, lines]);
  const last = lines.map((l) => `${l.name} ${l.values[l.values.length - 1] ?? 'nothing'}${unit}`).join(', ');
  return <div class="chart" ref={box} role="img" aria-label={`${name}. Now: ${last}`} />;
}
