// Changes: asked once where it hurts, done, and said.
import { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { sentenceOf } from '../data';
import { useMe } from '../me';
import { say } from './notice';

interface Question {
  title: string;
  text: ComponentChildren;
  verb: string; // what the button says: "Terminate server 12"
  danger: boolean;
  run: () => Promise<unknown>;
  done: string;
  after?: (() => void) | undefined;
}

let ask: (q: Question) => void = () => {};

/** The one dialog of the console. Its text may have fields of a form, which `run` then reads. */
export function Confirmation() {
  const [question, set] = useState<Question | null>(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState('');
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    ask = (q) => {
      setError('');
      set(q);
    };
    return () => { ask = () => {}; };
  }, []);
  useEffect(() => {
    if (question && dialog.current && !dialog.current.open) dialog.current.showModal();
  }, [question]);
  if (!question) return null;
  const close = () => {
    dialog.current?.close();
    set(null);
  };
  const held = (e: Event) => { if (busy) e.preventDefault(); }; // its answer is to be seen
  const run = async (e: Event) => {
    e.preventDefault();
    setBusy(true);
    try {
      await question.run();
      say(question.done);
      question.after?.();
      close();
    } catch (e) {
      setError(sentenceOf(e as Error)); // it stays open, so that it can be tried again
    }
    setBusy(false);
  };
  return (
    <dialog ref={dialog} onCancel={held} onClose={() => set(null)} aria-labelledby="question-title">
      <form onSubmit={(e) => void run(e)}>
        <h2 id="question-title">{question.title}</h2>
        <div class="dialog-text">{question.text}</div>
        {error && <p class="dialog-error" role="alert">{error}</p>}
        <div class="dialog-buttons">
          <button type="button" onClick={close} disabled={busy} autoFocus>Leave it</button>
          <button class={question.danger ? 'danger' : 'primary'} disabled={busy}>
            {busy ? '…' : question.verb}
          </button>
        </div>
      </form>
    </dialog>
  );
}

/** A button that changes something. Who may not sees it, with the reason, and cannot press it.
 * With `text` it asks first. */
export function Act({ verb, label, of, text, danger = false, run, done, after, scope = 'muster_admin', small, disabled, why }: {
  verb: string; label?: string; text?: ComponentChildren; danger?: boolean; run: () => Promise<unknown>;
  done: string; after?: () => void; scope?: string; small?: boolean; disabled?: boolean; why?: string;
  of?: string; // whom or what, where many buttons have the same label: a screen reader says it
}) {
  const me = useMe();
  const [busy, setBusy] = useState(false);
  const may = me.may(scope);
  const press = async () => {
    if (text !== undefined) {
      ask({ title: `${verb}?`, text, verb, danger, run, done, after });
      return;
    }
    setBusy(true);
    try {
      await run();
      say(done);
      after?.();
    } catch (e) {
      say(sentenceOf(e as Error), true);
    }
    setBusy(false);
  };
  return (
    <button class={`${danger ? 'danger' : ''} ${small ? 'small' : ''}`}
      aria-label={of && `${label ?? verb} ${of}`}
      disabled={!may || busy || disabled} onClick={() => void press()}
      title={may ? (why ?? '') : `This needs the scope ${scope}, which your token has not.`}>
      {label ?? verb}
    </button>
  );
}

/** A line of text inside the question of an Act. */
export function Line({ name, into, placeholder, max = 120 }: {
  name: string; into: (text: string) => void; placeholder?: string; max?: number;
}) {
  return (
    <label class="dialog-line">{name}
      <input maxLength={max} placeholder={placeholder ?? ''} onInput={(e) => into(e.currentTarget.value)} />
    </label>
  );
}
