// A table of any length: only the rows one can see are in the page. A real <table>, so that screen
// readers and the keyboard work; its rows have one height, so that the scroll bar tells the truth.
import { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { LIST_AT_ONCE, ListState, Row } from '../data';
import { countOf, number } from '../format';
import { Empty, Failed, Loading } from './state';

export interface Column<T> {
  key: string;
  title: string;
  cell: (row: T) => ComponentChildren;
  sort?: (row: T) => string | number | null; // absent: cannot be sorted by
  right?: boolean;
  wide?: boolean; // left out on a phone
}

const ROW_PX = 37;
const AROUND = 12; // rows beyond the edges, so that fast scrolling finds some

const collator = new Intl.Collator('en', { numeric: true });

function compare(a: string | number | null, b: string | number | null): number {
  if (a === b) return 0;
  if (a === null) return 1; // what is not known stands last
  if (b === null) return -1;
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return collator.compare(String(a), String(b));
}

function useWindow(total: number) {
  const box = useRef<HTMLDivElement>(null);
  const [seen, set] = useState({ from: 0, to: 60 });
  useEffect(() => {
    const el = box.current;
    if (!el) return undefined;
    const look = () => {
      const from = Math.max(0, Math.floor(el.scrollTop / ROW_PX) - AROUND);
      const to = Math.ceil((el.scrollTop + el.clientHeight) / ROW_PX) + AROUND;
      set((s) => (s.from === from && s.to === to ? s : { from, to }));
    };
    look();
    el.addEventListener('scroll', look, { passive: true });
    const resized = new ResizeObserver(look);
    resized.observe(el);
    return () => {
      el.removeEventListener('scroll', look);
      resized.disconnect();
    };
  }, [total === 0]);
  return { box, from: Math.min(seen.from, Math.max(0, total - 1)), to: Math.min(seen.to, total) };
}

export function Table<T extends Row>({ name, rows, columns, initial, href, tall = true }: {
  name: string; // what a screen reader calls it
  rows: T[];
  columns: Column<T>[];
  initial?: { key: string; down?: boolean }; // without it rows stay as they come
  href?: (row: T) => string; // the first column leads there
  tall?: boolean; // fills the page; else as high as its rows, 400 px at most
}) {
  const [order, setOrder] = useState(initial ?? null);
  const sorted = useMemo(() => {
    const by = columns.find((c) => c.key === order?.key)?.sort;
    if (!by) return rows;
    const sign = order?.down ? -1 : 1;
    return rows.map((row) => ({ row, value: by(row) }))
      .sort((a, b) => (a.value === null || b.value === null
        ? compare(a.value, b.value) : sign * compare(a.value, b.value)))
      .map((s) => s.row);
  }, [rows, order, columns]);
  const { box, from, to } = useWindow(sorted.length);
  const turn = (key: string) =>
    setOrder((o) => (o?.key !== key ? { key } : o.down ? (initial ?? null) : { key, down: true }));
  const ariaSort = (key: string) =>
    order?.key !== key ? undefined : order.down ? ('descending' as const) : ('ascending' as const);
  return (
    <div class={`table-box ${tall ? 'tall' : ''}`} ref={box} tabIndex={0} role="region" aria-label={name}>
      <table aria-rowcount={sorted.length + 1}>
        <thead>
          <tr>
            {columns.map((c) => (
              <th key={c.key} scope="col" aria-sort={ariaSort(c.key)}
                class={`${c.right ? 'right' : ''} ${c.wide ? 'wide' : ''}`}>
                {c.sort
                  ? <button class="sort" onClick={() => turn(c.key)}>
                    {c.title}<span aria-hidden="true">{order?.key === c.key ? (order.down ? ' ↓' : ' ↑') : ''}</span>
                  </button>
                  : c.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {from > 0 && <tr class="gap" aria-hidden="true"><td colSpan={columns.length} style={{ height: `${from * ROW_PX}px` }} /></tr>}
          {sorted.slice(from, to).map((row, i) => (
            <tr key={row.id} aria-rowindex={from + i + 2}>
              {columns.map((c, n) => (
                <td key={c.key} class={`${c.right ? 'right' : ''} ${c.wide ? 'wide' : ''}`}>
                  {n === 0 && href ? <a href={href(row)}>{c.cell(row)}</a> : c.cell(row)}
                </td>
              ))}
            </tr>
          ))}
          {to < sorted.length && <tr class="gap" aria-hidden="true"><td colSpan={columns.length} style={{ height: `${(sorted.length - to) * ROW_PX}px` }} /></tr>}
        </tbody>
      </table>
    </div>
  );
}

/** A long list says how old what lives in memory alone, as loads, may be. */
function Freshness({ of }: { of: { rows: unknown[]; refresh: () => void } }) {
  if (of.rows.length <= 5000) return null;
  return of.rows.length <= LIST_AT_ONCE
    ? <> · loads are read again each minute</>
    : <> · loads are as they were read <button class="small" onClick={of.refresh}>Read again</button></>;
}

/** A list with all its states. `shown` are its rows after filters of the page itself. */
export function List<T extends Row>({ list, shown, what, empty, none, ...table }: {
  list: ListState<T>;
  shown?: T[];
  what: string; // "servers"
  empty: ComponentChildren;
  none?: ComponentChildren; // there are some, and the filters of the page hide all of them
  columns: Column<T>[];
  initial?: { key: string; down?: boolean };
  href?: (row: T) => string;
}) {
  const rows = shown ?? list.rows;
  if (list.error && list.rows.length === 0) return <Failed error={list.error} retry={list.refresh} />;
  if (list.loading) return <Loading what={what} />;
  if (list.rows.length === 0 && !list.growing) return <>{empty}</>;
  return (
    <>
      <p class="list-count" role="status">
        {rows.length === list.rows.length
          ? countOf(rows.length, what)
          : `${number(rows.length)} of ${countOf(list.rows.length, what)}`}
        {list.growing && ' so far, reading on …'}
        {!list.growing && !list.complete && (
          <> read; there are more. <button class="small" onClick={list.more}>Read all</button></>
        )}
        {list.complete && <Freshness of={list} />}
      </p>
      {rows.length === 0
        ? none ?? <Empty title="Nothing fits">Change the filters above to see more.</Empty>
        : <Table name={what} rows={rows} {...table} />}
    </>
  );
}
