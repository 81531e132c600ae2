// The sentence on top of every page: healthy, or what is wrong.
import { ComponentChildren, createContext } from 'preact';
import { useContext, useState } from 'preact/hooks';
import { Loaded, useAnswer } from './data';
import { usePlace } from './router';
import { Command } from './ui/parts';

export interface Finding {
  code: string;
  severity: 'hint' | 'warning' | 'critical';
  sentence: string;
  advice: string;
  command: string;
  page: string;
}

export interface Health {
  status: 'healthy' | 'degraded' | 'broken';
  sentence: string;
  findings: Finding[];
  hints: Finding[]; // what to do first where nothing has come yet
}

export const toneOf = (status: Health['status']): string =>
  ({ healthy: 'good', degraded: 'busy', broken: 'bad' })[status];

const HealthContext = createContext<Loaded<Health> | null>(null);

/** Asks how Muster is, once for the sentence on top and for every page that wants to know. */
export function HealthProvider({ children }: { children: ComponentChildren }) {
  const health = useAnswer<Health>('/v1/health', {}, 2000);
  return <HealthContext.Provider value={health}>{children}</HealthContext.Provider>;
}

export const useHealth = (): Health | null => useContext(HealthContext)?.data ?? null;

const TONES = { critical: 'bad', warning: 'busy', hint: 'calm' };

/** What is wrong, and what to do. */
export function Findings({ of, leave }: { of: Finding[]; leave?: () => void }) {
  return (
    <ul class="findings">
      {of.map((f) => (
        <li key={f.code + f.sentence} class={TONES[f.severity]}>
          <p><strong>{f.sentence}</strong> {f.advice}</p>
          <div class="finding-ways">
            {f.page && <a href={f.page} onClick={() => leave?.()}>Look at it</a>}
            {f.command && <Command text={f.command} />}
          </div>
        </li>
      ))}
    </ul>
  );
}

export function HealthBar() {
  const health = useContext(HealthContext);
  const overview = usePlace().page === ''; // shows them open
  const [open, set] = useState(false);
  const h = health?.data;
  if (!h) return <p class="health calm" role="status">{health?.error ? health.error.message : 'Looking how Muster is …'}</p>;
  if (health?.error) { // the last word of one who is silent since is no good news
    return <p class="health calm" role="status">Muster does not answer. Last it said: {h.sentence}</p>;
  }
  const foldable = h.findings.length > 0 && !overview;
  return (
    <div class={`health ${toneOf(h.status)}`}>
      <p role="status"><span class="dot" aria-hidden="true" /> {h.sentence}</p>
      {foldable && (
        <button class="small" aria-expanded={open} aria-controls="findings" onClick={() => set(!open)}>
          {open ? 'Close' : `What to do (${h.findings.length})`}
        </button>
      )}
      {foldable && open && <div id="findings" class="findings-drop"><Findings of={h.findings} leave={() => set(false)} /></div>}
    </div>
  );
}
