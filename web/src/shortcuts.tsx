// Keys for who does not want the mouse: / searches, g and a letter goes to a page, ? lists them.
import { useEffect, useRef } from 'preact/hooks';
import { PAGES } from './pages';
import { go } from './router';

export function Shortcuts() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    let waiting = 0;
    const pressed = (e: KeyboardEvent) => {
      const target = e.target as HTMLElement;
      if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) return;
      if (document.querySelector('dialog[open]')) return;
      const page = waiting > Date.now() ? PAGES.find((p) => p.letter === e.key) : undefined;
      waiting = 0;
      if (page) go(`#/${page.path}`);
      else if (e.key === 'g') waiting = Date.now() + 1500;
      else if (e.key === '/') document.getElementById('jump')?.focus();
      else if (e.key === '?') dialog.current?.showModal();
      else return;
      e.preventDefault();
    };
    document.addEventListener('keydown', pressed);
    return () => document.removeEventListener('keydown', pressed);
  }, []);
  return (
    <dialog ref={dialog} aria-labelledby="keys-title">
      <h2 id="keys-title">Keys</h2>
      <dl class="facts keys">
        <div><dt><kbd>/</kbd></dt><dd>find a player or a thing</dd></div>
        {PAGES.map((p) => <div key={p.path}><dt><kbd>g</kbd> <kbd>{p.letter}</kbd></dt><dd>{p.title}</dd></div>)}
        <div><dt><kbd>?</kbd></dt><dd>this list</dd></div>
      </dl>
      <div class="dialog-buttons"><button onClick={() => dialog.current?.close()}>Close</button></div>
    </dialog>
  );
}
