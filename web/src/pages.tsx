// Every page there is, in the order of the menu.
import { FunctionComponent } from 'preact';
import { OverviewPage } from './pages/overview';
import { FleetsPage } from './pages/fleets';
import { ServersPage } from './pages/servers';
import { HostsPage } from './pages/hosts';
import { RoomsPage } from './pages/rooms';
import { MatchesPage } from './pages/matches';
import { LobbiesPage } from './pages/lobbies';
import { QueuePage } from './pages/queue';
import { TicketsPage } from './pages/tickets';
import { PlayersPage } from './pages/players';
import { BansPage } from './pages/bans';
import { RefusalsPage } from './pages/refusals';
import { DeploymentsPage } from './pages/deployments';
import { AuditPage } from './pages/audit';
import { PlaygroundPage } from './pages/playground';
import { Place } from './router';

export interface PageEntry {
  path: string; // behind #/
  title: string;
  letter: string; // after g
  group?: boolean; // a little space above it
  view: FunctionComponent<{ place: Place }>;
}

export const PAGES: PageEntry[] = [
  { path: '', title: 'Overview', letter: 'o', view: OverviewPage },
  { path: 'fleets', title: 'Fleets', letter: 'f', group: true, view: FleetsPage },
  { path: 'servers', title: 'Servers', letter: 's', view: ServersPage },
  { path: 'hosts', title: 'Hosts', letter: 'h', view: HostsPage },
  { path: 'deployments', title: 'Deployments', letter: 'd', view: DeploymentsPage },
  { path: 'rooms', title: 'Rooms', letter: 'r', group: true, view: RoomsPage },
  { path: 'matches', title: 'Matches', letter: 'm', view: MatchesPage },
  { path: 'lobbies', title: 'Lobbies', letter: 'l', view: LobbiesPage },
  { path: 'queue', title: 'Queue', letter: 'q', view: QueuePage },
  { path: 'tickets', title: 'Tickets', letter: 't', view: TicketsPage },
  { path: 'players', title: 'Players', letter: 'p', group: true, view: PlayersPage },
  { path: 'bans', title: 'Bans', letter: 'b', view: BansPage },
  { path: 'refusals', title: 'Refusals', letter: 'x', view: RefusalsPage },
  { path: 'audit', title: 'Changes', letter: 'c', group: true, view: AuditPage },
  { path: 'playground', title: 'Playground', letter: 'y', view: PlaygroundPage },
];

export const pageOf = (path: string): PageEntry | undefined => PAGES.find((p) => p.path === path);
