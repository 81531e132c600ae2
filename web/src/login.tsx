// The door: a token, kept in memory.
import { useState } from 'preact/hooks';
import { sentenceOf } from './data';

export function LogIn({ why, enter, trying }: {
  why: string; enter: (token: string) => Promise<void>; trying: boolean;
}) {
  const [text, set] = useState('');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState('');
  const submit = async (e: Event) => {
    e.preventDefault();
    if (text.trim() === '') {
      setError('Paste an access token first.');
      return;
    }
    setBusy(true);
    try {
      await enter(text.trim());
    } catch (refused) {
      setError(sentenceOf(refused as Error));
      setBusy(false);
    }
  };
  return (
    <main class="door">
      <form onSubmit={(e) => void submit(e)}>
        <img src="/console/icon.svg" alt="" width="48" height="48" />
        <h1>Muster</h1>
        <p class="lead">Players on the right game server.</p>
        {(error || why) && <p class="dialog-error" role="alert">{error || why}</p>}
        <label for="token">Access token</label>
        <input id="token" type="password" autocomplete="off" spellcheck={false} value={text} autoFocus
          onInput={(e) => set(e.currentTarget.value)} />
        <button class="primary" disabled={busy || trying}>{busy || trying ? 'Looking …' : 'Log in'}</button>
        <p class="dim">
          The administrator's is in <code>admin.token</code> of the data folder;{' '}
          <code>muster console</code> prints a link that logs you in. The token stays in this page's
          memory and is gone when you close or reload it.
        </p>
      </form>
    </main>
  );
}
