// Small pieces that every page uses.
import { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { ago, dateTime, duration, number, until, wholeMs, words } from '../format';
import { say } from './notice';

const GOOD = ['available', 'open', 'running', 'healthy', 'done', 'started', 'taken', 'joined', 'connected', 'enabled', 'ready', 'acknowledged', 'playing', 'leads'];
const BUSY = ['starting', 'opening', 'loading', 'queued', 'reserved', 'draining', 'ending', 'leaving', 'full', 'cancelling', 'running_out', 'waiting', 'routing'];
const BAD = ['offline', 'silent', 'failing', 'overloaded', 'failed', 'lost', 'aborted', 'quarantined', 'refused', 'banned', 'kicked'];

export function tone(state: string): 'good' | 'busy' | 'bad' | 'calm' {
  return GOOD.includes(state) ? 'good' : BUSY.includes(state) ? 'busy' : BAD.includes(state) ? 'bad' : 'calm';
}

/** A state in words and colour; the words alone say it, too. */
export function Badge({ state, title }: { state: string; title?: string }) {
  return <span class={`badge ${tone(state)}`} title={title}>{words(state)}</span>;
}

/** A time that stays true while one looks at it; the exact one on hover. */
export function Ago({ at }: { at: string | null | undefined }) {
  useSecond();
  return at ? <time dateTime={at} title={dateTime(at)}>{ago(at)}</time> : <span class="dim">–</span>;
}

export function Until({ at }: { at: string | null | undefined }) {
  useSecond();
  return at ? <time dateTime={at} title={dateTime(at)}>{until(at)}</time> : <span class="dim">–</span>;
}

/** For how long already, counting. */
export function Since({ at }: { at: string | null | undefined }) {
  const now = useSecond();
  return at ? <time dateTime={at} title={dateTime(at)}>{duration(Math.max(0, now - Date.parse(at)))}</time> : <span class="dim">–</span>;
}

export function useSecond(): number {
  const [now, set] = useState(Date.now());
  useEffect(() => {
    const timer = window.setInterval(() => set(Date.now()), 1000);
    return () => window.clearInterval(timer);
  }, []);
  return now;
}

export function PageHead({ title, lead, children }: {
  title: ComponentChildren; lead?: ComponentChildren; children?: ComponentChildren;
}) {
  return (
    <header class="page-head">
      <div>
        <h1 tabIndex={-1} id="page-title">{title}</h1>
        {lead && <p class="lead">{lead}</p>}
      </div>
      {children && <div class="page-actions">{children}</div>}
    </header>
  );
}

export function Card({ title, aside, children, wide, id }: {
  title?: ComponentChildren; aside?: ComponentChildren; children: ComponentChildren; wide?: boolean; id?: string;
}) {
  return (
    <section class={`card${wide ? ' card-wide' : ''}`} id={id}>
      {title && <div class="card-head"><h2>{title}</h2>{aside && <div class="card-aside">{aside}</div>}</div>}
      {children}
    </section>
  );
}

/** A figure with its name. */
export function Figure({ name, value, note, state, href }: {
  name: string; value: ComponentChildren; note?: ComponentChildren; state?: 'good' | 'busy' | 'bad'; href?: string;
}) {
  const inside = (
    <>
      <span class="figure-name">{name}</span>
      <span class={`figure-value ${state ?? ''}`}>{value}</span>
      {note && <span class="figure-note">{note}</span>}
    </>
  );
  return href ? <a class="figure" href={href}>{inside}</a> : <div class="figure">{inside}</div>;
}

/** Names and values of one thing. */
export function Facts({ of }: { of: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {of.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value ?? <span class="dim">–</span>}</dd></div>)}
    </dl>
  );
}

/** How full something is, 0 to 1; `even`: being full is nothing bad. */
export function Meter({ value, text, even }: { value: number; text?: string; even?: boolean }) {
  const share = Math.max(0, Math.min(1, value));
  const level = even ? 'good' : share >= 0.95 ? 'bad' : share >= 0.8 ? 'busy' : 'good';
  return (
    <span class="meter">
      <svg viewBox="0 0 100 8" preserveAspectRatio="none" class={level} aria-hidden="true">
        <rect class="meter-back" width="100" height="8" rx="2" />
        <rect class="meter-fill" width={share * 100} height="8" rx="2" />
      </svg>
      <span>{text ?? `${Math.round(share * 100)} %`}</span>
    </span>
  );
}

/** Over plain HTTP browsers have no clipboard, but the old way. */
async function copy(text: string): Promise<boolean> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text).then(() => true, () => false);
  const box = document.createElement('textarea');
  box.value = text;
  document.body.append(box);
  box.select();
  const done = document.execCommand('copy');
  box.remove();
  return done;
}

/** What happened when, in ms after the first of it; null: it has not happened. */
export function TimeLine({ steps }: { steps: { name: string; at: number | null; note?: string }[] }) {
  const known = steps.filter((s) => s.at !== null).map((s) => s.at as number);
  const from = Math.min(...known);
  const span = Math.max(1, Math.max(...known) - from);
  let before = from;
  return (
    <ol class="timeline">
      {steps.map((s, i) => {
        const start = before;
        if (s.at !== null) before = Math.max(before, s.at);
        return (
          <li key={i}>
            <span class="timeline-name">{s.name}{s.note && <span class="dim"> {s.note}</span>}</span>
            <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
              <rect class="meter-back" width="100" height="8" rx="2" />
              {s.at !== null && <rect class="meter-fill" x={((start - from) / span) * 98} width={Math.max(2, ((s.at - start) / span) * 100)} height="8" rx="2" />}
            </svg>
            <span class="timeline-at">{s.at === null ? 'not yet' : i === 0 ? '0 ms' : `+ ${wholeMs(s.at - from)}`}</span>
          </li>
        );
      })}
    </ol>
  );
}

/** JSON as people read it. */
export function Json({ of }: { of: unknown }) {
  return <pre class="json" tabIndex={0}>{JSON.stringify(of, null, 2)}</pre>;
}

export function Copy({ text, name = 'Copy' }: { text: string; name?: string }) {
  return (
    <button class="small" type="button" onClick={() => {
      void copy(text).then((done) => (done ? say('Copied.') : say('The browser does not let us copy.', true)));
    }}>{name}</button>
  );
}

/** Something for a terminal. */
export function Command({ text }: { text: string }) {
  return <div class="command"><code>{text}</code><Copy text={text} /></div>;
}

/** Choices of one filter; '' is all. */
export function Choice({ name, value, options, onChange, all = 'all' }: {
  name: string; value: string; options: (string | [string, string])[]; onChange: (v: string) => void; all?: string;
}) {
  return (
    <label class="choice">
      <span>{name}</span>
      <select value={value} onChange={(e) => onChange(e.currentTarget.value)}>
        <option value="">{all}</option>
        {options.map((o) => typeof o === 'string'
          ? <option value={o} key={o}>{words(o)}</option>
          : <option value={o[0]} key={o[0]}>{o[1]}</option>)}
      </select>
    </label>
  );
}

/** A text filter that waits until one stops typing. */
export function Find({ name, value, onChange, placeholder }: {
  name: string; value: string; onChange: (v: string) => void; placeholder?: string;
}) {
  const [text, set] = useState(value);
  useEffect(() => set(value), [value]);
  useEffect(() => {
    if (text === value) return undefined;
    const timer = window.setTimeout(() => onChange(text), 250);
    return () => window.clearTimeout(timer);
  }, [text]);
  return (
    <label class="choice">
      <span>{name}</span>
      <input type="search" value={text} placeholder={placeholder ?? ''} maxLength={64} size={Math.max(20, (placeholder ?? '').length)}
        onInput={(e) => set(e.currentTarget.value)} />
    </label>
  );
}

/** Spans of time that lists look back, as the API takes them for `since`. */
export const SPANS: [string, string][] = [
  ['15m', 'last 15 minutes'], ['1h', 'last hour'], ['1d', 'last day'], ['7d', 'last 7 days'],
];

/** How many of each, as bars; the numbers stand beside them. */
export function Bars({ name, of }: {
  name: string;
  of: { key: string; title: ComponentChildren; text?: ComponentChildren; count: number; note?: ComponentChildren }[];
}) {
  const most = Math.max(1, ...of.map((b) => b.count));
  return (
    <ul class="bars" aria-label={name}>
      {of.map((b) => (
        <li key={b.key}>
          <div class="bar-head"><strong>{b.title}</strong><span>{number(b.count)}{b.note && <span class="dim"> {b.note}</span>}</span></div>
          <svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
            <rect class="meter-back" width="100" height="6" rx="1" />
            <rect class="bar-fill" width={(b.count / most) * 100} height="6" rx="1" />
          </svg>
          {b.text && <p class="dim">{b.text}</p>}
        </li>
      ))}
    </ul>
  );
}
