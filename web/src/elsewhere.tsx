// A node that stands by serves nothing but this: who leads, and how to get there.
import { useEffect, useState } from 'preact/hooks';
import { leader, Leader, tokenLink, whenElsewhere } from './api';

const LOOK_MS = 1000;

/** What a standby says of its cell; null while this node leads. Asked at the start, when a request was
 * sent on, and then again until it leads. */
export function useElsewhere(): Leader | null {
  const [found, set] = useState<Leader | null>(null);
  useEffect(() => {
    let timer = 0;
    let over = false;
    const look = async (): Promise<void> => {
      window.clearTimeout(timer);
      const said = await leader();
      if (over) return;
      if (said) set(said.leader ? null : said); // nobody answers: what was seen last stays
      if (!said || !said.leader) timer = window.setTimeout(() => void look(), LOOK_MS);
    };
    whenElsewhere(() => void look());
    void look();
    return () => {
      over = true;
      window.clearTimeout(timer);
      whenElsewhere(() => {});
    };
  }, []);
  return found;
}

export function Elsewhere({ of }: { of: Leader }) {
  const there = tokenLink(of.http);
  return (
    <main class="door">
      <section>
        <img src="/console/icon.svg" alt="" width="48" height="48" />
        <h1>This node stands by</h1>
        <p class="lead" role="status">{of.sentence}</p>
        {there
          ? <p><a class="button primary" href={there}>Open the console of {of.name ?? 'the leader'}</a></p>
          : <p>As soon as somebody leads, the way there appears here.</p>}
        <p class="dim">When this node leads, its console opens here.</p>
      </section>
    </main>
  );
}
