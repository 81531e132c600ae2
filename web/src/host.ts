// A host as the API shows it, and what the reasons mean for which it gets nothing new.
export interface Host {
  id: string;
  name: string;
  address: string;
  url: string;
  region: string;
  slots: number;
  enabled: boolean;
  passed_over: string | null;
  cpu_percent: number;
  memory_percent: number;
  load_percent: number;
  rooms: number;
  servers: number;
  strangers: number;
  deployments: number;
  backoff_left_ms: number;
  heard_at: string | null;
  registered_at: string;
  removal?: { now: boolean; sentence: string } | null; // only of one host
}

export const HOST_STATES = ['healthy', 'silent', 'leaving', 'disabled', 'failing', 'overloaded'];

/** Why it gets nothing new; an event that it was disabled comes before the rest is read again. */
export const hostState = (h: Host): string => (h.enabled ? h.passed_over ?? 'healthy' : h.passed_over ?? 'disabled');

/** It gets nothing new, and nobody wanted that: an operator who disables one, or stops its agent, does. */
export const SICK = ['silent', 'failing', 'overloaded'];
export const isSick = (h: Host): boolean => SICK.includes(hostState(h));

/** The larger of both, in percent: what a host runs out of first. */
export const hostHeat = (h: Host): number => Math.max(h.cpu_percent, h.memory_percent);

/** Why it is so, and what to do. */
export const HOST_WORDS: Record<string, string> = {
  healthy: 'It is heard of and gets new servers.',
  silent: 'Nothing was heard of its agent for too long: the agent, the machine or the network between is down. Its game servers may still run.',
  leaving: 'Its agent is being stopped. Its game servers run on, and the next agent takes them over.',
  disabled: 'An operator disabled it. What runs there goes on to its end; nothing new is started.',
  failing: 'A server could not be started there lately. It is tried again by itself after a pause.',
  overloaded: 'It has no memory or no slot left. It gets new servers again when some are free.',
};
