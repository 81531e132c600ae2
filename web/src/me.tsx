// Who looks, and what he may do.
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { Me } from './api';

export interface Looker {
  account: string;
  scopes: string[];
  expiresAt: string | null;
  may: (scope: string) => boolean;
}

export function lookerOf(me: Me): Looker {
  return {
    account: me.account,
    scopes: me.scopes,
    expiresAt: me.expires_at,
    may: (scope) => me.scopes.includes(scope) ||
      (scope === 'muster_read' && me.scopes.includes('muster_admin')),
  };
}

export const MeContext = createContext<Looker>({ account: '', scopes: [], expiresAt: null, may: () => false });
export const useMe = (): Looker => useContext(MeContext);
