// What a server prints, as it prints it; a line for its input; and how it ended.
import { useEffect, useRef, useState } from 'preact/hooks';
import { change, stream, withQuery } from '../api';
import { sentenceOf } from '../data';
import { bytes, duration } from '../format';
import { useMe } from '../me';
import { Exit, exitSentence } from '../model';
import { say } from './notice';
import { Facts } from './parts';

const LINES_MAX = 2000;

/** The last lines, and while it lives those that come. */
export function LogTail({ id, live }: { id: string; live: boolean }) {
  const [lines, set] = useState<string[]>([]);
  const [error, setError] = useState('');
  const [turn, again] = useState(0);
  const box = useRef<HTMLPreElement>(null);
  useEffect(() => {
    const leaving = new AbortController();
    let rest = '';
    set([]);
    setError('');
    stream(withQuery(`/v1/servers/${encodeURIComponent(id)}/logs`, { lines: 200, follow: live }), (text) => {
      const parts = (rest + text).split('\n');
      rest = parts.pop() ?? '';
      set((old) => [...old, ...parts].slice(-LINES_MAX));
    }, leaving.signal).then(
      () => live && setError('Nothing more comes: the server has ended, or its host is out of reach.'),
      (e: Error) => e.name !== 'AbortError' && setError(sentenceOf(e)));
    return () => leaving.abort();
  }, [id, live, turn]);
  useEffect(() => {
    const el = box.current;
    if (el && el.scrollHeight - el.scrollTop - el.clientHeight < 80) el.scrollTop = el.scrollHeight;
  }, [lines]);
  return (
    <>
      {error && <p class="stale" role="status">{error} <button class="small" onClick={() => again(turn + 1)}>Read it again</button></p>}
      <pre class="log" ref={box} tabIndex={0} role="log" aria-label={`Log of server ${id}`}>{lines.join('\n') || 'Nothing printed yet.'}</pre>
      {live && <InputLine id={id} />}
    </>
  );
}

function InputLine({ id }: { id: string }) {
  const [line, set] = useState('');
  const me = useMe();
  const may = me.may('muster_admin');
  const send = async (e: Event) => {
    e.preventDefault();
    try {
      await change(`/v1/servers/${encodeURIComponent(id)}/stdin`, { line });
      set('');
      say(`Server ${id} was given that line.`);
    } catch (refused) {
      say(sentenceOf(refused as Error), true);
    }
  };
  return (
    <form class="console-line" onSubmit={(e) => void send(e)}>
      <label for="line">Line for its input</label>
      <input id="line" value={line} maxLength={4096} disabled={!may} spellcheck={false} onInput={(e) => set(e.currentTarget.value)} />
      <button disabled={!may || line === ''} title={may ? '' : 'This needs the scope muster_admin, which your token has not.'}>Send</button>
    </form>
  );
}

export function ExitReport({ exit }: { exit: Exit }) {
  return (
    <>
      <p class="sentence">{exitSentence(exit)}</p>
      <Facts of={[
        ['It ran for', duration(exit.run_ms)],
        ['Most memory', exit.peak_memory > 0 ? bytes(exit.peak_memory) : 'not known'],
        ['Output lost', exit.dropped_bytes > 0 ? `${bytes(exit.dropped_bytes)}, which its log has not` : 'none'],
      ]} />
      {exit.tail && <><h3>Its last lines</h3><pre class="log short" tabIndex={0} aria-label="Its last lines">{exit.tail.trimEnd()}</pre></>}
    </>
  );
}
