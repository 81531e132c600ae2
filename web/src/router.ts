// Addresses of pages: the part after #, so that one file of HTML serves all.
import { useEffect, useState } from 'preact/hooks';

export interface Place {
  page: string; // "servers"
  rest: string[]; // ["12"]
  query: URLSearchParams;
}

export function parsePlace(hash: string): Place {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  const [page = '', ...rest] = path.split('/').map((p) => {
    try {
      return decodeURIComponent(p);
    } catch {
      return p; // a lone % that somebody typed
    }
  });
  return { page, rest, query: new URLSearchParams(query) };
}

/** link('players', 'a/b') is an address that parsePlace takes apart again. */
export function link(page: string, ...rest: (string | number)[]): string {
  return `#/${[page, ...rest].map((p) => encodeURIComponent(String(p))).join('/')}`;
}

export function go(href: string): void {
  location.hash = href;
}

/** Changes the query of this page without leaving it, so that filters can be shared as a link. */
export function setQuery(values: Record<string, string>): void {
  const { page, rest, query } = parsePlace(location.hash);
  for (const [k, v] of Object.entries(values)) {
    if (v) query.set(k, v);
    else query.delete(k);
  }
  const text = query.toString();
  history.replaceState(null, '', `${link(page, ...rest)}${text ? `?${text}` : ''}`);
  window.dispatchEvent(new HashChangeEvent('hashchange'));
}

export function usePlace(): Place {
  const [place, set] = useState(() => parsePlace(location.hash));
  useEffect(() => {
    const moved = () => set(parsePlace(location.hash));
    window.addEventListener('hashchange', moved);
    return () => window.removeEventListener('hashchange', moved);
  }, []);
  return place;
}
