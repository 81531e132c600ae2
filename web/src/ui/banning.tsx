// Bans as they are issued, changed and lifted, wherever one sees a player.
import { useRef, useState } from 'preact/hooks';
import { change } from '../api';
import { Act } from './act';

export interface Ban {
  id: string;
  account: string;
  address: string | null;
  reason: string;
  issued_at: string;
  expires_at: string;
  expired: boolean;
  who: string;
}

const SCOPE = 'game_ban';
const FOREVER = '9999-12-31 23:59:59'; // the last date that the API can say
const HOUR_MS = 3600000;
const SPANS: [string, string, number][] = [
  ['1h', '1 hour', HOUR_MS],
  ['1d', '1 day', 24 * HOUR_MS],
  ['7d', '7 days', 7 * 24 * HOUR_MS],
  ['30d', '30 days', 30 * 24 * HOUR_MS],
];

export const isForever = (ban: Ban): boolean => ban.expires_at.startsWith('9999-');

/** What is typed into the dialog until it is sent. */
interface Words {
  account: string;
  reason: string;
  span: string; // of SPANS, or 'forever', 'date', '' = as it is
  date: string; // of datetime-local, in the looker's own time
}

/** As the API wants it; a date that cannot be is left to the API to refuse in words. */
function expiresOf(words: Words, now = Date.now()): string {
  if (words.span === 'forever') return FOREVER;
  const span = SPANS.find(([key]) => key === words.span);
  const at = span ? now + span[2] : Date.parse(words.date);
  if (Number.isNaN(at)) return words.date || 'no date';
  return new Date(at).toISOString().slice(0, 19).replace('T', ' ');
}

function BanFields({ words, asksAccount, mayStay }: { words: Words; asksAccount: boolean; mayStay: boolean }) {
  const [span, set] = useState(words.span);
  return (
    <div class="form">
      {asksAccount && (
        <label>Account
          <input required maxLength={64} autoFocus defaultValue={words.account} spellcheck={false}
            onInput={(e) => { words.account = e.currentTarget.value; }} />
        </label>
      )}
      <label>Reason, which he sees when he is refused
        <input required maxLength={255} autoFocus={!asksAccount} defaultValue={words.reason}
          onInput={(e) => { words.reason = e.currentTarget.value; }} />
      </label>
      <label>Until
        <select value={span} onChange={(e) => {
          words.span = e.currentTarget.value;
          set(words.span);
        }}>
          {mayStay && <option value="">as it is</option>}
          {SPANS.map(([key, name]) => <option key={key} value={key}>{name} from now</option>)}
          <option value="forever">forever</option>
          <option value="date">a date …</option>
        </select>
      </label>
      {span === 'date' && (
        <label>Date, in your own time
          <input type="datetime-local" required defaultValue={words.date} onInput={(e) => { words.date = e.currentTarget.value; }} />
        </label>
      )}
    </div>
  );
}

/** A button that bans; with `account` this one. */
export function IssueBan({ account = '', after, small = false }: { account?: string; after?: () => void; small?: boolean }) {
  const words = useRef<Words>({ account, reason: '', span: '1d', date: '' });
  words.current.account = account || words.current.account;
  return (
    <Act verb={account ? `Ban ${account}` : 'Ban a player'} label={account ? 'Ban' : 'Ban a player'} danger small={small} scope={SCOPE}
      text={(
        <>
          <p>He loses the seats he has. The address that he next tries to join from is banned with him.</p>
          <BanFields words={words.current} asksAccount={!account} mayStay={false} />
        </>
      )}
      run={() => change('/ban/issue', {
        account: words.current.account, reason: words.current.reason, expires: expiresOf(words.current),
      })}
      done={account ? `${account} is banned.` : 'The player is banned.'}
      after={() => {
        words.current = { account, reason: '', span: '1d', date: '' };
        after?.();
      }} />
  );
}

export function EditBan({ ban, after }: { ban: Ban; after?: () => void }) {
  const words = useRef<Words>({ account: ban.account, reason: ban.reason, span: '', date: '' });
  return (
    <Act verb={`Change the ban of ${ban.account}`} label="Edit" small scope={SCOPE}
      text={<BanFields words={words.current} asksAccount={false} mayStay />}
      run={() => change(`/ban/${ban.id}`, {
        reason: words.current.reason, ...(words.current.span ? { expires: expiresOf(words.current) } : {}),
      })}
      done={`The ban of ${ban.account} is changed.`} {...(after ? { after } : {})} />
  );
}

export function LiftBan({ ban, after }: { ban: Ban; after?: () => void }) {
  return (
    <Act verb={`Lift the ban of ${ban.account}`} label="Lift" small scope={SCOPE}
      text={<p>He may join again at once{ban.address ? <>, and so may everybody at <code>{ban.address}</code></> : null}.</p>}
      run={() => change(`/ban/${ban.id}`, undefined, 'DELETE')}
      done={`${ban.account} may join again.`} {...(after ? { after } : {})} />
  );
}
