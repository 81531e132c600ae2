// Sentences that come and go at the edge of the page, read out by screen readers.
import { useEffect, useState } from 'preact/hooks';

interface Notice {
  id: number;
  text: string;
  bad: boolean;
}

let notices: Notice[] = [];
let next = 1;
let changed: () => void = () => {};

function drop(id: number): void {
  notices = notices.filter((n) => n.id !== id);
  changed();
}

/** Good news goes by itself; bad news stays until it was read. */
export function say(text: string, bad = false): void {
  const id = next++;
  notices = [...notices.slice(-4), { id, text, bad }];
  changed();
  if (!bad) window.setTimeout(() => drop(id), 6000);
}

export function Notices() {
  const [, turn] = useState(0);
  useEffect(() => {
    changed = () => turn((n) => n + 1);
    return () => { changed = () => {}; };
  }, []);
  return (
    <div class="notices" aria-live="polite">
      {notices.map((n) => (
        <div class={`notice ${n.bad ? 'bad' : ''}`} key={n.id} role={n.bad ? 'alert' : 'status'}>
          <span>{n.text}</span>
          <button class="plain" aria-label="Dismiss" onClick={() => drop(n.id)}>×</button>
        </div>
      ))}
    </div>
  );
}
