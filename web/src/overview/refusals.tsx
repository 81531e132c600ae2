// The last requests that got nothing, and why.
import { words } from '../format';
import { link } from '../router';
import { Ago, Card } from '../ui/parts';
import { Refused } from './status';

function About({ r }: { r: Refused }) {
  const parts = [
    r.region && `region ${r.region}`,
    r.lobby !== null && `lobby number ${r.lobby}`,
    r.chat_server && `asked by ${r.chat_server}`,
  ].filter(Boolean);
  return <span class="dim">{parts.join(', ')}</span>;
}

export function LastRefusals({ of }: { of: Refused[] }) {
  return (
    <Card title="Last refusals" aside={<a href="#/refusals">by reason</a>}>
      {of.length === 0
        ? <p class="dim">Nobody was refused since Muster started.</p>
        : (
          <ol class="refusals">
            {of.map((r, i) => (
              <li key={`${r.at} ${i}`}>
                <span class="refusal-when dim"><Ago at={r.at} /></span>
                <span class="refusal-what">
                  {r.message || words(r.code)} <About r={r} />{' '}
                  {r.ticket && <a href={link('tickets', r.ticket)}>why ticket {r.ticket}</a>}
                </span>
              </li>
            ))}
          </ol>
        )}
    </Card>
  );
}
