// A version of a game and its archives, as the API shows them, with what can be done about it.
import { change } from './api';
import { count } from './format';
import { Act } from './ui/act';

export interface Version {
  id: string | null;
  fleet: string;
  name: string;
  enabled: boolean;
  quarantined: boolean;
  reason: string | null;
  deployment: string | null;
  previous: string | null;
  wanted: string | null;
  rooms: number;
  hosts_ready: number;
  hosts: number;
}

export interface Deployment {
  id: string;
  fleet: string;
  version: string;
  digest: string;
  size: number;
  current: boolean;
  wanted: boolean;
  hosts_ready: number;
  hosts: number;
  created_at: string;
  who: string;
}

export const ready = (d: { hosts_ready: number; hosts: number }): string =>
  d.hosts === 0 ? 'no healthy host' : `${d.hosts_ready} of ${count(d.hosts, 'host')}`;

export const sentence = (text: string): string => (text.endsWith('.') ? text : `${text}.`);

/** `archives` were uploaded for it: when none of them is in use, nobody turned it off. */
export const versionState = (v: Version, archives: number): string =>
  v.quarantined ? 'quarantined' : v.enabled ? 'enabled' : archives > 0 && v.deployment === null ? 'nothing in use' : 'disabled';

export function VersionVerbs({ v, after }: { v: Version; after: () => void }) {
  const of = { fleet: v.fleet, version: v.name };
  return v.enabled && !v.quarantined
    ? <Act verb={`Disable ${v.fleet} ${v.name}`} label="Disable" small danger
      text={`Nobody can join ${v.name} any more. ${v.rooms > 0 ? `Its ${count(v.rooms, 'room')} and who is in them go on to their end.` : 'It has no room now.'}`}
      run={() => change('/v1/versions/disable', of)} done={`Nobody can join ${v.fleet} ${v.name} any more.`} after={after} />
    : <Act verb={`Enable ${v.fleet} ${v.name}`} label="Enable" small
      {...(v.quarantined ? { text: 'This ends the quarantine, and players can join again. If its servers still fail to start, it is quarantined again.' } : {})}
      run={() => change('/v1/versions/enable', of)} done={`Players can join ${v.fleet} ${v.name}.`} after={after} />;
}
