#include "base/full.h"
#include "base/suggest.h"
#include "cli/cli.h"
#include "cli/help.h"
#include "cli/remote.h"
#include "cli/term.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *cli_program = "muster";

const struct command commands[] = {
    {.name = "serve",
     .group = GROUP_RUN,
     .run = serve_run,
     .summary = "run Muster",
     .synopsis = "[OPTIONS]",
     .about =
         "Runs Muster: game servers connect to the server port, chat servers to the manager port,\n"
         "players to the client port.\n"
         "When it serves it prints one line: ready http=A:P server=A:P manager=A:P client=A:P\n"
         "With --store it is a node of a cell, whose nodes lead it in turn. It prints the same "
         "line\n"
         "with the word standby while it stands by, and with ready each time it begins to lead.\n"
         "SIGTERM finishes what is under way and exits; SIGHUP reads the configuration file "
         "again.\n",
     .options = serve_options,
     .example = "muster serve --config muster.yaml --data /var/lib/muster\n"
                "muster serve --data node1 --store postgres://muster@db/muster --cell eu --bind "
                "10.0.0.1\n",
     .exit = "0 stopped, 1 it could not start (why is said), 2 wrong usage."},
    {.name = "agent",
     .group = GROUP_RUN,
     .run = agent_verb_run,
     .summary = "run on a host and start game servers there",
     .synopsis = "--control URL --token-file FILE --region EU [OPTIONS]",
     .about = "Runs on a host and starts game servers there, as the control plane asks for them. "
              "When it\n"
              "listens it prints one line: ready http=A:P name=NAME servers=N\n"
              "SIGTERM ends the agent and no game server: they run on, and the next agent with the "
              "same\n"
              "--data takes them over. So does one that is started after a crash.\n",
     .options = agent_options,
     .example = "muster agent --control http://10.0.0.5:9508 --token-file host.token --region EU\n",
     .exit = "0 stopped, 1 it could not start (why is said), 2 wrong usage."},
    {.name = "dev",
     .group = GROUP_RUN,
     .run = dev_run,
     .summary = "run Muster with demo game servers, rooms, players and a demo chat server",
     .synopsis = "[OPTIONS]",
     .about = "Runs Muster with six demo game servers in three regions and a demo chat server that "
              "asks\n"
              "for a match every second; with an agent that starts a process for each room of the "
              "example\n"
              "game 'arena' (when it stands beside this program), and players who come and go "
              "there. On a\n"
              "terminal it shows them live: regions, rooms, allocations, the last refusals, what "
              "happens.\n"
              "Elsewhere it prints one line per event. Ctrl-c stops all of them.\n",
     .options = dev_options,
     .example = "muster dev --lobby --for 10m\n",
     .exit = "0 stopped, 1 Muster ended by itself or did not start, or a lobby did not end as it "
             "must, 2 wrong usage."},
    {.name = "game-server",
     .group = GROUP_RUN,
     .run = game_server_run,
     .summary = "be a game server, well-behaved or not",
     .synopsis = "--region EU [OPTIONS]",
     .about = "Registers with Muster as a game server, takes matches and plays them by waiting. "
              "SIGTERM\n"
              "or ctrl-c: says goodbye.\n",
     .options = game_server_options,
     .example = "muster game-server --region EU --match-seconds 20\n",
     .exit = "0 stopped, 1 its --door cannot be opened, 2 wrong usage, 3 the name in --server "
             "cannot be looked up."},
    {.name = "player-client",
     .group = GROUP_RUN,
     .run = player_client_run,
     .summary = "be a player's game client in a match lobby, who loads, never does, or leaves",
     .synopsis = "--account N [OPTIONS]",
     .about = "Connects to Muster's client port as a player, waits for a match lobby, loads, and "
              "says each\n"
              "thing it hears in one line, until its match starts or is aborted.\n",
     .options = player_client_options,
     .example = "muster player-client --account 7 --stay\n",
     .exit = "0 the match started, or it left or was stopped as it should; 1 the match was "
             "aborted, or Muster does not want it (a wrong token, a newer connection of the "
             "account); 2 wrong usage; 3 Muster cannot be reached, or hung up."},
    {.name = "matchmaker",
     .group = GROUP_RUN,
     .run = matchmaker_run,
     .summary = "be a matchmaker and its players: lobbies form, start and end, and are checked",
     .synopsis = "[OPTIONS]",
     .about = "Players connect to the client port; a matchmaker posts lobbies for those who are\n"
              "free; they load and, with --enter, go into their match. At the end, which is\n"
              "ctrl-c or --for, it says what became of every lobby, compares that with what\n"
              "Muster says and with what each player heard, and exits with 1 when one neither\n"
              "started nor was aborted, did both, or was told to its players otherwise. Needs an\n"
              "administrator's token, since each player gets one of his own.\n",
     .options = matchmaker_options,
     .remote = true,
     .example = "muster matchmaker --players 40 --for 1m\n"},
    {.name = "bots",
     .group = GROUP_RUN,
     .run = bots_run,
     .summary = "be players of the arena, who come and go",
     .synopsis = "[FLEET] [OPTIONS]",
     .about = "Players who ask for seats, connect with their keys over TCP, chat, leave and come\n"
              "again: rooms appear, fill and vanish. FLEET is one whose game is examples/arena\n"
              "(arena). Needs an administrator's token, since each player gets one of his own.\n",
     .options = bots_options,
     .remote = true,
     .example = "muster bots arena --players 8\n"},
    {.name = "status",
     .group = GROUP_LOOK,
     .run = status_run,
     .summary = "everything at a glance: regions, allocations, the last refusals",
     .synopsis = "[OPTIONS]",
     .about =
         "How Muster is: what is wrong and what to do about it, its store, the servers of each\n"
         "region, how allocations went in the last minute, and whom it refused lately.\n"
         "-o wide shows more regions and refusals.\n",
     .shared = remote_list_options,
     .operation = "get_status",
     .example = "muster status --watch\n"},
    {.name = "top",
     .group = GROUP_LOOK,
     .run = top_run,
     .summary = "live on the whole screen: what is wrong, rates, regions, worst hosts, refusals",
     .synopsis = "[OPTIONS]",
     .about =
         "On a terminal it follows the window, and the keys: q quits, p pauses, r shows one "
         "region\n"
         "alone, s sorts the hosts, h says more. When Muster is away it says so, and how old is\n"
         "what it shows, and comes back by itself. Elsewhere it prints lines.\n",
     .options = top_options,
     .shared = remote_live_options,
     .remote = true,
     .example = "muster top\nmuster top --once -o json\n"},
    {.name = "cluster status",
     .group = GROUP_LOOK,
     .run = cluster_status_run,
     .summary = "the nodes that can stand in for each other, and who leads",
     .synopsis = "[OPTIONS]",
     .about = "Who leads the cell, and of each node whether it could. Every node answers, a "
              "standby too.\n"
              "BEHIND are batches that a node did not have when it was heard last.\n",
     .shared = remote_list_options,
     .operation = "get_cluster",
     .example = "muster cluster status --watch\n"},
    {.name = "servers",
     .group = GROUP_LOOK,
     .run = list_run,
     .summary = "game servers, with their load and why one is passed over",
     .synopsis = "[OPTIONS]",
     .options = list_options,
     .shared = remote_list_options,
     .operation = "list_servers",
     .example = "muster servers --region EU --status available -o wide\n"},
    {.name = "server",
     .group = GROUP_LOOK,
     .run = inspect_run,
     .summary = "one game server, the matches it holds, or how it ended",
     .synopsis = "SERVER [OPTIONS]",
     .about = "Shows every field of one game server, and the matches it holds now. Of one that an "
              "agent\n"
              "started and that is gone: how it ended, and the last lines of its output.\n",
     .shared = remote_list_options,
     .operation = "get_server",
     .example = "muster server 3\n"},
    {.name = "logs",
     .group = GROUP_LOOK,
     .run = logs_run,
     .summary = "what a game server prints",
     .synopsis = "SERVER [OPTIONS]",
     .options = logs_options,
     .shared = remote_output_options,
     .operation = "server_logs",
     .example = "muster logs 3 -f\n"},
    {.name = "rooms",
     .group = GROUP_LOOK,
     .run = list_run,
     .summary = "rooms, running and lately ended",
     .synopsis = "[OPTIONS]",
     .options = list_options,
     .shared = remote_list_options,
     .operation = "list_rooms",
     .example = "muster rooms --state open --watch\n"},
    {.name = "room show",
     .group = GROUP_LOOK,
     .run = inspect_run,
     .summary = "one room and who sits in it",
     .synopsis = "ROOM [OPTIONS]",
     .about = "Shows every field of one room, who sits in it, and how its server ended.\n",
     .shared = remote_list_options,
     .operation = "get_room",
     .example = "muster room show 12 --watch\n"},
    {.name = "hosts",
     .group = GROUP_LOOK,
     .run = list_run,
     .summary = "machines that run an agent, with their load and why one is passed over",
     .synopsis = "[OPTIONS]",
     .about =
         "LOAD is the larger of CPU and MEMORY, with a guess at the rooms that were placed there\n"
         "since it was last heard. A new room goes to the host with the lowest.\n",
     .options = list_options,
     .shared = remote_list_options,
     .operation = "list_hosts",
     .example = "muster hosts --region EU\n"},
    {.name = "host",
     .group = GROUP_LOOK,
     .run = inspect_run,
     .summary = "one host and the rooms on it",
     .synopsis = "HOST [OPTIONS]",
     .about =
         "Shows whether the host may be taken away now, its fields, and the rooms that are there.\n"
         "HOST is its name or its number.\n",
     .shared = remote_list_options,
     .operation = "get_host",
     .example = "muster host eu-7\n"},
    {.name = "versions",
     .group = GROUP_LOOK,
     .run = list_run,
     .summary = "versions of games, what is spawned for each, and why one is not",
     .synopsis = "[FLEET] [OPTIONS]",
     .options = list_options,
     .shared = remote_list_options,
     .operation = "list_versions",
     .example = "muster versions arena\n"},
    {.name = "version where",
     .group = GROUP_LOOK,
     .run = version_where_run,
     .summary = "which version runs on which host",
     .synopsis = "[FLEET] [OPTIONS]",
     .about = "Rooms that are not over, counted by version and host.\n",
     .shared = remote_list_options,
     .operation = "list_rooms",
     .example = "muster version where arena\n"},
    {.name = "deployments",
     .group = GROUP_LOOK,
     .run = list_run,
     .summary = "archives that were uploaded, and which hosts have them",
     .synopsis = "[OPTIONS]",
     .options = list_options,
     .shared = remote_list_options,
     .operation = "list_deployments",
     .example = "muster deployments --fleet arena\n"},
    {.name = "players",
     .group = GROUP_LOOK,
     .run = list_run,
     .summary = "who sits or waits where",
     .synopsis = "[OPTIONS]",
     .about =
         "Seats in rooms, then who stands in line, who is in a match, and whose lobby loads.\n",
     .options = list_options,
     .shared = remote_list_options,
     .operation = "list_players",
     .example = "muster players --fleet arena\nmuster players --search ali\n"},
    {.name = "seats",
     .group = GROUP_LOOK,
     .run = list_run,
     .summary = "seats in rooms, and what their players brought",
     .synopsis = "[OPTIONS]",
     .options = list_options,
     .shared = remote_list_options,
     .operation = "list_seats",
     .example = "muster seats --room 12\n"},
    {.name = "player",
     .group = GROUP_LOOK,
     .run = player_run,
     .summary = "where one player is, his bans, and what happened to him",
     .synopsis = "ACCOUNT [OPTIONS]",
     .about = "Shows where a player is and for what he waits, his bans, and his journey, newest "
              "first:\n"
              "when he asked, stood in line, got a seat, joined, left, was moved, thrown out or\n"
              "refused. Times are UTC.\n",
     .options = player_options,
     .shared = remote_list_options,
     .remote = true,
     .example = "muster player alice --since 2h\nmuster player alice --at 03:12\n"},
    {.name = "refusals",
     .group = GROUP_LOOK,
     .run = refusals_run,
     .summary = "who is refused, why, and who again and again",
     .synopsis = "[OPTIONS]",
     .shared = remote_list_options,
     .operation = "get_refusals",
     .example = "muster refusals --since 10m\n"},
    {.name = "changes",
     .group = GROUP_LOOK,
     .run = list_run,
     .summary = "what changed here: starts, reloads, operators, hosts and servers, versions",
     .synopsis = "[OPTIONS]",
     .about = "Newest first. Times are UTC.\n",
     .options = list_options,
     .shared = remote_list_options,
     .operation = "list_changes",
     .example = "muster changes --since 1d\n"},
    {.name = "allocations",
     .group = GROUP_LOOK,
     .run = list_run,
     .summary = "requests of players for places, with what came of them",
     .synopsis = "[OPTIONS]",
     .options = list_options,
     .shared = remote_list_options,
     .operation = "list_allocations",
     .example = "muster allocations --state failed\n"},
    {.name = "queue",
     .group = GROUP_LOOK,
     .run = queue_run,
     .summary = "who stands in line for a place",
     .synopsis = "[OPTIONS]",
     .about =
         "The lines of rooms and of fleets, then who stands in them. HELD are empty seats that "
         "are kept\n"
         "for the oldest of a line, who comes with others and has waited for 30 s.\n"
         "'muster queue remove PLAYER' takes somebody out of line.\n",
     .shared = remote_list_options,
     .operation = "list_queues",
     .example = "muster queue --watch\n"},
    {.name = "party",
     .group = GROUP_LOOK,
     .run = party_run,
     .summary = "who came together and is still there",
     .synopsis = "PARTY [OPTIONS]",
     .about = "PARTY is what 'muster allocate-player' said when they came, partyId of the result, "
              "and the\n"
              "number under TOGETHER in 'muster players -o wide'.\n",
     .shared = remote_list_options,
     .operation = "get_party",
     .example = "muster party 12\n"},
    {.name = "routes",
     .group = GROUP_LOOK,
     .run = list_run,
     .summary = "routing tokens and where a proxy sends their packets",
     .synopsis = "[OPTIONS]",
     .options = list_options,
     .shared = remote_list_options,
     .operation = "list_routes",
     .example = "muster routes --fleet arena\n"},
    {.name = "ban list",
     .group = GROUP_LOOK,
     .run = list_run,
     .summary = "who may not play, and until when",
     .synopsis = "[OPTIONS]",
     .options = list_options,
     .shared = remote_list_options,
     .operation = "list_bans",
     .example = "muster ban list --state held\n"},
    {.name = "ban show",
     .group = GROUP_LOOK,
     .run = ban_run,
     .summary = "one ban",
     .synopsis = "BAN [OPTIONS]",
     .about = "BAN is its number in 'muster ban list'.\n",
     .shared = remote_list_options,
     .operation = "get_played_ban",
     .example = "muster ban show 3\n"},
    {.name = "sessions",
     .group = GROUP_LOOK,
     .run = list_run,
     .summary = "matches, running and lately ended",
     .synopsis = "[OPTIONS]",
     .options = list_options,
     .shared = remote_list_options,
     .operation = "list_sessions",
     .example = "muster sessions --server 3 --state open\n"},
    {.name = "session",
     .group = GROUP_LOOK,
     .run = inspect_run,
     .summary = "one match",
     .synopsis = "SESSION [OPTIONS]",
     .about = "Shows every field of one match.\n",
     .shared = remote_list_options,
     .operation = "get_session",
     .example = "muster session 12 -o json\n"},
    {.name = "lobbies",
     .group = GROUP_LOOK,
     .run = list_run,
     .summary = "accepted matches whose players load, and what came of them",
     .synopsis = "[OPTIONS]",
     .about = "QUEUE is where the groups of a lobby stand: queued when it was aborted and they are "
              "to be\n"
              "queued again.\n",
     .options = list_options,
     .shared = remote_list_options,
     .operation = "list_lobbies",
     .example = "muster lobbies --state loading --watch\n"},
    {.name = "lobby",
     .group = GROUP_LOOK,
     .run = lobby_run,
     .summary = "one lobby: what it waits for, who is missing, why it is over",
     .synopsis = "LOBBY [OPTIONS]",
     .about = "Says how a lobby is, who is in it and who has loaded, then every other field. "
              "'muster why\n"
              "--lobby LOBBY' says why there was no server for it.\n",
     .shared = remote_list_options,
     .operation = "get_lobby",
     .example = "muster lobby 1073741824 --watch\n"},
    {.name = "tickets",
     .group = GROUP_LOOK,
     .run = list_run,
     .summary = "requests for a match, with their answers",
     .synopsis = "[OPTIONS]",
     .options = list_options,
     .shared = remote_list_options,
     .operation = "list_tickets",
     .example = "muster tickets --state failed\n"},
    {.name = "ticket",
     .group = GROUP_LOOK,
     .run = inspect_run,
     .summary = "one request, now or when it is answered",
     .synopsis = "TICKET [OPTIONS]",
     .about = "Shows every field of one request.\n",
     .shared = remote_list_options,
     .operation = "get_ticket",
     .example = "muster ticket 7 --wait 30\n"},
    {.name = "why",
     .group = GROUP_LOOK,
     .run = why_run,
     .summary = "why a request ended as it did",
     .synopsis = "TICKET | --lobby N [OPTIONS]",
     .about =
         "Says in a sentence how a request came to its answer; then which servers were asked, how\n"
         "they looked at that moment, and how many others were passed over for which reason.\n"
         "TICKET is its number, or what the sender of an allocation calls it.\n",
     .options = why_options,
     .shared = remote_list_options,
     .operation = "why_ticket",
     .example = "muster why 7\nmuster why --lobby 4711\nmuster why player-123-req-1\n"},
    {.name = "fleets",
     .group = GROUP_LOOK,
     .run = list_run,
     .summary = "fleets and how many servers each has",
     .synopsis = "[OPTIONS]",
     .options = list_options,
     .shared = remote_list_options,
     .operation = "list_fleets",
     .example = "muster fleets\n"},
    {.name = "regions",
     .group = GROUP_LOOK,
     .run = list_run,
     .summary = "regions and how loaded each is",
     .synopsis = "[OPTIONS]",
     .options = list_options,
     .shared = remote_list_options,
     .operation = "list_regions",
     .example = "muster regions --watch\n"},
    {.name = "events",
     .group = GROUP_LOOK,
     .run = events_run,
     .summary = "changes as they happen",
     .synopsis = "[OPTIONS]",
     .about =
         "Prints a line for each change from now on. When the connection is lost it is made "
         "again,\n"
         "and goes on after the last line. Notes (the log in short) and load (every second) are\n"
         "shown when --kinds names them.\n",
     .options = events_options,
     .shared = remote_live_options,
     .operation = "stream_events",
     .example = "muster events --kinds ticket,server\n"},
    {.name = "audit",
     .group = GROUP_LOOK,
     .run = list_run,
     .summary = "what operators did, newest first",
     .synopsis = "[OPTIONS]",
     .options = list_options,
     .shared = remote_list_options,
     .operation = "list_audit",
     .example = "muster audit --limit 20\n"},
    {.name = "allocate",
     .group = GROUP_CHANGE,
     .run = allocate_run,
     .summary = "ask for a match, as a chat server would",
     .synopsis = "--lobby N --region EU [OPTIONS]",
     .about =
         "Asks Muster for a game server, as a chat server does for a match all players accepted.\n",
     .options = allocate_options,
     .example = "muster allocate --lobby 1 --region EU\n",
     .exit = "0 done, 1 refused, 2 wrong usage, 3 Muster cannot be reached or does not answer."},
    {.name = "drain",
     .group = GROUP_CHANGE,
     .run = drain_run,
     .summary = "give a server no new match, and wait until it holds none",
     .synopsis = "SERVER [OPTIONS]",
     .about = "The server's matches go on to their end; what is left is shown until there is none. "
              "Ctrl-c\n"
              "ends only the waiting.\n",
     .options = drain_options,
     .shared = remote_output_options,
     .operation = "drain_server",
     .example = "muster drain 3 --timeout 20m\n"},
    {.name = "undrain",
     .group = GROUP_CHANGE,
     .run = undrain_run,
     .summary = "give a server matches again",
     .synopsis = "SERVER [OPTIONS]",
     .shared = remote_output_options,
     .operation = "undrain_server",
     .example = "muster undrain 3\n"},
    {.name = "end",
     .group = GROUP_CHANGE,
     .run = end_run,
     .summary = "end a match",
     .synopsis = "SESSION [OPTIONS]",
     .shared = remote_output_options,
     .operation = "end_session",
     .example = "muster end 12\n"},
    {.name = "room create",
     .group = GROUP_CHANGE,
     .run = room_create_run,
     .summary = "make a room and get a seat in it, as a player would",
     .synopsis = "FLEET [OPTIONS]",
     .about = "FLEET is a fleet's name, or GAME/SERVER as players name it. Prints where the room "
              "is and\n"
              "the key that lets one player in, once its server is ready; or why there is none.\n",
     .options = room_create_options,
     .shared = remote_output_options,
     .operation = "create",
     .example = "muster room create arena --watch\n"
                "muster room create shooter/main --version 1.0 --settings '{\"map\": \"dust\"}'\n"},
    {.name = "room join",
     .group = GROUP_CHANGE,
     .run = room_join_run,
     .summary = "get a seat in a room that fits, or in that one",
     .synopsis = "FLEET | ROOM [OPTIONS]",
     .about =
         "FLEET is a fleet's name, or GAME/SERVER as players name it: the best room that fits is\n"
         "taken, or made. ROOM is a room's number: of the options then only --account, --info and\n"
         "--watch mean something. Prints where the room is and the key that lets one player in.\n",
     .options = room_join_options,
     .shared = remote_output_options,
     .operation = "join",
     .example = "muster room join arena --filter '{\"map\": \"dust\"}' --region EU\n"
                "muster room join 12 --account alice\n"},
    {.name = "ban issue",
     .group = GROUP_CHANGE,
     .run = ban_run,
     .summary = "let a player play no more",
     .synopsis = "ACCOUNT --reason TEXT --expires TIME [OPTIONS]",
     .about =
         "He loses his seats. When he tries to join, his address is banned too. TIME is a time\n"
         "from now such as 12h or 30d, or a date as \"2026-12-31 23:59:59\" in UTC.\n",
     .shared = remote_output_options,
     .operation = "issue_ban",
     .example = "muster ban issue alice --reason cheating --expires 30d\n"},
    {.name = "ban update",
     .group = GROUP_CHANGE,
     .run = ban_run,
     .summary = "change until when a ban holds, or its reason",
     .synopsis = "BAN [OPTIONS]",
     .about = "BAN is its number in 'muster ban list'. What is not given stays.\n",
     .shared = remote_output_options,
     .operation = "update_played_ban",
     .example = "muster ban update 3 --expires 7d\n"},
    {.name = "ban lift",
     .group = GROUP_CHANGE,
     .run = ban_run,
     .summary = "end a ban",
     .synopsis = "BAN [OPTIONS]",
     .about = "BAN is its number in 'muster ban list'.\n",
     .shared = remote_output_options,
     .operation = "lift_played_ban",
     .example = "muster ban lift 3\n"},
    {.name = "allocate-player",
     .group = GROUP_CHANGE,
     .run = allocate_player_run,
     .summary = "get a player a place, with his friends where he has some",
     .synopsis = "--fleet FLEET --player PLAYER [OPTIONS]",
     .about = "Asks as a matchmaker would, and says where the player goes, or where he stands in "
              "line.\n",
     .options = allocate_player_options,
     .shared = remote_output_options,
     .remote = true,
     .example = "muster allocate-player --fleet arena --player ann --friends bob --wait\n"},
    {.name = "queue remove",
     .group = GROUP_CHANGE,
     .run = queue_remove_run,
     .summary = "take a player out of the line he stands in",
     .synopsis = "PLAYER [OPTIONS]",
     .shared = remote_output_options,
     .operation = "dequeue_player",
     .example = "muster queue remove ann\n"},
    {.name = "lobby create",
     .group = GROUP_CHANGE,
     .run = lobby_create_run,
     .summary = "make a lobby, as a matchmaker would",
     .synopsis = "--teams JSON [OPTIONS]",
     .about = "The players are told on the client port, and a server is asked for at once.\n",
     .shared = remote_output_options,
     .operation = "create_lobby",
     .example =
         "muster lobby create --region EU --teams '[[{\"account\": 7}], [{\"account\": 8}]]'\n"},
    {.name = "lobby abort",
     .group = GROUP_CHANGE,
     .run = lobby_abort_run,
     .summary = "abort a lobby, or end its match when it has started",
     .synopsis = "LOBBY [OPTIONS]",
     .about = "Its players are told.\n",
     .shared = remote_output_options,
     .operation = "abort_lobby",
     .example = "muster lobby abort 1073741824 --reason \"Wrong map\"\n"},
    {.name = "kick",
     .group = GROUP_CHANGE,
     .run = kick_run,
     .summary = "throw a player out of a room",
     .synopsis = "SEAT [OPTIONS]",
     .about = "SEAT is its number in 'muster players'. The player may come back at once: to keep "
              "him out,\n"
              "see 'muster ban issue'.\n",
     .shared = remote_output_options,
     .operation = "kick_seat",
     .example = "muster kick 12 --reason \"asleep\"\n"},
    {.name = "host enable",
     .group = GROUP_CHANGE,
     .run = host_enable_run,
     .summary = "start game servers on a host again",
     .synopsis = "HOST [OPTIONS]",
     .about = "HOST is its name or its number.\n",
     .shared = remote_output_options,
     .operation = "enable_host",
     .example = "muster host enable 1\n"},
    {.name = "host disable",
     .group = GROUP_CHANGE,
     .run = host_disable_run,
     .summary = "start nothing new on a host",
     .synopsis = "HOST [OPTIONS]",
     .about =
         "What runs there goes on to its end. With --wait it shows the rooms and players that\n"
         "are left until there are none; ctrl-c ends only the waiting. HOST is its name or its\n"
         "number.\n",
     .options = host_disable_options,
     .shared = remote_output_options,
     .operation = "disable_host",
     .example = "muster host disable 1 --wait\n"},
    {.name = "version enable",
     .group = GROUP_CHANGE,
     .run = version_enable_run,
     .summary = "let players join a version again",
     .synopsis = "FLEET VERSION [OPTIONS]",
     .about = "Also ends its quarantine. What the configuration turns off stays off.\n",
     .shared = remote_output_options,
     .operation = "enable_version",
     .example = "muster version enable arena 1.0\n"},
    {.name = "version disable",
     .group = GROUP_CHANGE,
     .run = version_disable_run,
     .summary = "let nobody join a version any more",
     .synopsis = "FLEET VERSION [OPTIONS]",
     .about = "Its rooms go on to their end.\n",
     .shared = remote_output_options,
     .operation = "disable_version",
     .example = "muster version disable arena 0.9\n"},
    {.name = "stdin",
     .group = GROUP_CHANGE,
     .run = stdin_run,
     .summary = "write a line to the input of a game server",
     .synopsis = "SERVER LINE [OPTIONS]",
     .about = "For servers that an agent started. The audit keeps the line.\n",
     .shared = remote_output_options,
     .operation = "server_stdin",
     .example = "muster stdin 3 \"say the server restarts soon\"\n"},
    {.name = "terminate",
     .group = GROUP_CHANGE,
     .run = terminate_run,
     .summary = "end a game server that an agent started",
     .synopsis = "SERVER [OPTIONS]",
     .shared = remote_output_options,
     .operation = "terminate_server",
     .example = "muster terminate 3\n"},
    {.name = "deploy",
     .group = GROUP_CHANGE,
     .run = deploy_run,
     .summary = "upload an archive as a deployment of a version",
     .synopsis = "FLEET VERSION ARCHIVE [OPTIONS]",
     .about =
         "The archive is a tar.gz or zip; agents fetch it before they start a server from it.\n"
         "Servers that run are never stopped by a switch.\n",
     .options = deploy_options,
     .shared = remote_output_options,
     .operation = "deploy",
     .example = "muster deploy arena 1.0 arena.tar.gz --switch\n"},
    {.name = "token enrol",
     .group = GROUP_CHANGE,
     .run = token_run,
     .summary = "make a token that game servers or chat servers are let in with",
     .synopsis = "--role server|chat --fleet F [OPTIONS]",
     .about = "Prints the new token on standard output. Muster keeps only its hash.\n",
     .shared = remote_output_options,
     .operation = "enrol",
     .example = "muster token enrol --role server --fleet arena --regions EU,USE --expires 30d\n"},
    {.name = "token list",
     .group = GROUP_CHANGE,
     .run = list_run,
     .summary = "the tokens that were made so, without the tokens themselves",
     .synopsis = "[OPTIONS]",
     .about = "Lists enrolment tokens; those of the configuration file are not among them.\n",
     .options = list_options,
     .shared = remote_list_options,
     .operation = "list_tokens",
     .example = "muster token list\n"},
    {.name = "token revoke",
     .group = GROUP_CHANGE,
     .run = token_run,
     .summary = "end a token; whoever is connected with it is cut off",
     .synopsis = "TOKEN [OPTIONS]",
     .about = "TOKEN is its number in 'muster token list'.\n",
     .shared = remote_output_options,
     .operation = "revoke_token",
     .example = "muster token revoke 2\n"},
    {.name = "token rotate",
     .group = GROUP_CHANGE,
     .run = token_run,
     .summary = "replace a token by a new one; the old works a while longer",
     .synopsis = "TOKEN [OPTIONS]",
     .about = "TOKEN is its number in 'muster token list'. Prints the new token.\n",
     .shared = remote_output_options,
     .operation = "rotate_token",
     .example = "muster token rotate 2 --grace 1h\n"},
    {.name = "token issue",
     .group = GROUP_CHANGE,
     .run = token_run,
     .summary = "make an access token for this API",
     .synopsis = "--account A --scopes S [OPTIONS]",
     .about =
         "Prints the new token on standard output. It cannot be taken back before it expires.\n",
     .shared = remote_output_options,
     .operation = "issue_access_token",
     .example = "muster token issue --account dashboard --scopes muster_read --expires 12h\n"},
    {.name = "cluster step-down",
     .group = GROUP_CHANGE,
     .run = step_down_run,
     .summary = "let a standby lead, and wait until it does",
     .synopsis = "[OPTIONS]",
     .about = "The node that leads answers what is under way and becomes a standby; one that is "
              "ready\n"
              "takes over. Prints who leads then, and after how long.\n",
     .options = step_down_options,
     .shared = remote_output_options,
     .remote = true,
     .example = "muster cluster step-down\n"},
    {.name = "backup",
     .group = GROUP_TOOLS,
     .run = backup_run,
     .summary = "take a copy of what a node needs to go on, while it serves",
     .synopsis = "FILE [OPTIONS]",
     .about = "FILE is a tar archive with the tables, the secret that tokens are derived from and\n"
              "the archives of deployments, of one moment. The history is not in it: copy\n"
              "data/history yourself to keep that. FILE appears when it is whole and checked;\n"
              "- is standard output. Whoever has it can make valid tokens: it is yours\n"
              "alone to read, and should stay so.\n",
     .options = backup_options,
     .operation = "backup",
     .example = "muster backup /backup/muster-$(date +%F).tar\n"
                "muster backup - | ssh elsewhere 'cat > muster.tar'\n"},
    {.name = "restore",
     .group = GROUP_TOOLS,
     .run = restore_verb_run,
     .summary = "make a data folder of a backup, where no Muster runs",
     .synopsis = "FILE [OPTIONS]",
     .about =
         "Checks all of FILE (- is standard input) before anything is touched; a crash on the\n"
         "way leaves the folder as it was or as it will be. Numbers, tokens and ids of\n"
         "changes that were given after the backup are never given again. docs/backup.md\n"
         "says what else to expect.\n",
     .options = restore_options,
     .example = "muster restore /backup/muster-2026-11-16.tar --data /var/lib/muster --force\n"},
    {.name = "migrate",
     .group = GROUP_TOOLS,
     .run = migrate_run,
     .summary = "move a data folder into PostgreSQL, or back, where no Muster runs",
     .synopsis = "--from PLACE --to PLACE [OPTIONS]",
     .about =
         "One place is a data folder, the other a PostgreSQL database in which a cell keeps\n"
         "everything (docs/guides/cluster.md). What was written is read again and compared by\n"
         "a digest before it counts; then the old place is served no more, but nothing in it is\n"
         "deleted. The secret and the archives of deployments stay in the data folder.\n",
     .options = migrate_options,
     .example = "muster migrate --from /var/lib/muster --to postgres://muster@db/muster\n"
                "muster migrate --from postgres://muster@db/muster --to /var/lib/muster\n"},
    {.name = "doctor",
     .group = GROUP_TOOLS,
     .run = doctor_run,
     .summary = "look at this machine and say what would keep Muster from working well",
     .synopsis = "[OPTIONS]",
     .about =
         "Ports, disk, limits, clock, kernel, cgroups, libraries, certificates, the\n"
         "configuration, the database of a cell, and the Muster that runs here, if one does.\n"
         "Each check says what was seen and what to do. Changes nothing; writes a few pages into\n"
         "the data folder to see how fast its disk is, and a few messages into the log of the\n"
         "database. Exits with 1 when something is a problem.\n",
     .options = doctor_options,
     .example = "muster doctor --config /etc/muster/muster.yaml --data /var/lib/muster\n"},
    {.name = "console",
     .group = GROUP_CHANGE,
     .run = console_run,
     .summary = "print a link that opens the console in a browser, logged in",
     .synopsis = "[OPTIONS]",
     .about =
         "The link stands alone on standard output. It holds a token of its own behind the #, so\n"
         "that no server or proxy ever sees it. Whoever has the link may do what you asked for:\n"
         "treat it as a password. Needs an administrator's token. Nothing is opened by itself.\n",
     .options = console_options,
     .shared = remote_output_options,
     .remote = true,
     .example = "muster console\nmuster console --read-only --expires 30d\n"},
    {.name = "config check",
     .group = GROUP_TOOLS,
     .run = config_check_run,
     .summary = "say whether a configuration file is fine, or what is wrong with it",
     .synopsis = "FILE",
     .about = "Reads FILE and every file it names; each mistake is named with its line.\n",
     .options = config_check_options,
     .example = "muster config check /etc/muster.yaml\n"},
    {.name = "config show",
     .group = GROUP_TOOLS,
     .run = config_show_run,
     .summary = "print the effective configuration as YAML",
     .synopsis = "[--config FILE]",
     .about =
         "Defaults and what FILE says, with units and meanings, as a file that can be loaded.\n"
         "Tokens are shown as hashes.\n",
     .options = config_show_options,
     .example = "muster config show --config muster.yaml | muster config check -\n"},
    {.name = "config keys",
     .group = GROUP_TOOLS,
     .run = config_keys_run,
     .summary = "list every key of the configuration file",
     .synopsis = "",
     .about =
         "A Markdown table: key, default, values, whether a reload (SIGHUP) takes it, meaning.\n",
     .options = config_keys_options},
    {.name = "openapi",
     .group = GROUP_TOOLS,
     .run = openapi_run,
     .summary = "describe the HTTP API",
     .synopsis = "[OPTIONS]",
     .about = "Prints what GET /openapi.json answers, without a running Muster.\n",
     .options = openapi_options,
     .example = "muster openapi > openapi.json\n"},
    {.name = "completion",
     .group = GROUP_TOOLS,
     .run = completion_run,
     .summary = "let a shell complete verbs, options and names",
     .synopsis = "bash|zsh|fish",
     .about =
         "Prints a script for the shell. It asks this program what could be meant, so it never\n"
         "knows less than --help; names of fleets, regions, hosts and the like come from a\n"
         "running Muster, where one answers within a second.\n",
     .options = completion_options,
     .example = "source <(muster completion bash)\n"
                "muster completion zsh > \"${fpath[1]}/_muster\"\n"
                "muster completion fish > ~/.config/fish/completions/muster.fish\n"},
    {.name = "man",
     .group = GROUP_TOOLS,
     .run = man_run,
     .summary = "print a manual page",
     .synopsis = "1|5",
     .about =
         "1 is muster(1), every verb; 5 is muster.yaml(5), every key of the configuration. In\n"
         "roff, as 'man' and 'mandoc' read it.\n",
     .options = man_options,
     .example = "muster man 5 | man -l -\n"},
    {.name = "dump",
     .group = GROUP_TOOLS,
     .run = dump_run,
     .summary = "print captured frames",
     .synopsis = "[--hex] FILE",
     .about = "Prints the frames in captured bytes of a chat port, one line each:\n"
              "offset, value of the length field, command, name and fields. FILE may be -.\n",
     .options = dump_options,
     .example = "xxd -p capture.bin | muster dump --hex -\n",
     .exit =
         "0 all of it was frames, 1 not (what and where is said), 2 wrong usage, 3 cannot read."},
    {.name = "cert dev",
     .group = GROUP_TOOLS,
     .run = cert_dev_run,
     .summary = "make certificates to try TLS with",
     .synopsis = "--out DIR [OPTIONS]",
     .about =
         "Makes an authority, and a server and a client certificate signed by it, valid for 90\n"
         "days, and prints how they are used. The authority's key is not kept. Not for\n"
         "production: there your own authority, or a public one, signs the certificate.\n",
     .options = cert_dev_options,
     .example = "muster cert dev --out certs --host muster.lan,10.0.0.5\n"},
    {.name = "sim",
     .group = GROUP_TOOLS,
     .run = sim_run,
     .summary = "run the core in a simulated world and check its promises",
     .synopsis = "[OPTIONS]",
     .about = "Runs the real core in a simulated world of game servers, chat servers, hosts, a "
              "cluster,\n"
              "players who seek places, a broker, and players in lobbies, with loss, delay, "
              "partitions,\n"
              "crashes, failing disks, clock jumps and stopped processes, and looks at the "
              "invariants after\n"
              "every step. In a third of the worlds two nodes share a database and take over from "
              "each\n"
              "other. The same seed gives the same trace hash.\n",
     .options = sim_options,
     .example = "muster sim --seed 42 --seeds 1 --trace\n",
     .exit = "0 no violation, 1 at least one, 2 wrong usage."},
    {.name = "bench allocate",
     .group = GROUP_TOOLS,
     .run = bench_allocate_run,
     .summary = "measure durable allocations per second beside two bare echo hops",
     .synopsis = "[OPTIONS]",
     .about =
         "Starts Muster, game servers that acknowledge at once and chat servers that always have\n"
         "requests under way; says how many are answered, how fast, and at what processor time.\n",
     .options = bench_allocate_options,
     .example = "muster bench allocate --json\n"},
    {.name = "bench single",
     .group = GROUP_TOOLS,
     .run = bench_single_run,
     .summary = "measure one allocation at a time beside its bare steps",
     .synopsis = "[OPTIONS]",
     .about =
         "How long an allocation takes when nothing else is under way, and what two writes to the\n"
         "disk and two round trips take without Muster.\n",
     .options = bench_single_options},
    {.name = "bench echo",
     .group = GROUP_TOOLS,
     .run = bench_echo_run,
     .summary = "measure two bare echo hops: what the network alone costs",
     .synopsis = "[OPTIONS]",
     .about = "Two processes that only pass frames of the sizes an allocation has.\n",
     .options = bench_echo_options},
    {.name = "bench connections",
     .group = GROUP_TOOLS,
     .run = bench_connections_run,
     .summary = "measure game servers that only heartbeat",
     .synopsis = "[OPTIONS]",
     .about =
         "What many connections cost in processor time and memory when nothing else happens.\n",
     .options = bench_connections_options},
    {.name = "bench core",
     .group = GROUP_TOOLS,
     .run = bench_core_run,
     .summary = "measure core alone, with few and with many servers",
     .synopsis = "[OPTIONS]",
     .about = "Core in this process, without sockets, threads and disk: an allocation with its "
              "end, and a\n"
              "heartbeat.\n",
     .options = bench_core_options},
    {.name = "bench friends",
     .group = GROUP_TOOLS,
     .run = bench_friends_run,
     .summary = "measure joining a friend in core, with few and with many players",
     .synopsis = "[OPTIONS]",
     .about = "Core in this process: a player joins a friend, who is somewhere among the others, "
              "and leaves.\n",
     .options = bench_friends_options},
    {.name = "bench store",
     .group = GROUP_TOOLS,
     .run = bench_store_run,
     .summary = "measure commits beside bare synced appends",
     .synopsis = "[OPTIONS]",
     .about = "The store on the disk of --data-root, with batches of 1, 100 and 1,000 changes.\n",
     .options = bench_store_options},
    {.name = "bench http",
     .group = GROUP_TOOLS,
     .run = bench_http_run,
     .summary = "measure requests over HTTP beside a constant answer",
     .synopsis = "[OPTIONS]",
     .about = "Reads one server by its number, with an access token, as fast as it is answered;\n"
              "beside it the same HTTP server answers /healthz.\n",
     .options = bench_http_options},
    {.name = "bench join",
     .group = GROUP_TOOLS,
     .run = bench_join_run,
     .summary = "measure players who join rooms over HTTP beside a constant answer",
     .synopsis = "[OPTIONS]",
     .about =
         "Each request gives a player a durable seat in one of a few large rooms, as fast as it\n"
         "is answered; beside it the same HTTP server answers /healthz.\n",
     .options = bench_join_options},
    {.name = "bench lobby",
     .group = GROUP_TOOLS,
     .run = bench_lobby_run,
     .summary = "measure match lobbies end to end beside the same frames alone",
     .synopsis = "[OPTIONS]",
     .about = "Lobbies are posted over HTTP; their players are connected to the client port and\n"
              "load at once, servers get ready at once and end the match when the last player\n"
              "has heard that it started. Beside it a process only passes the same frames.\n",
     .options = bench_lobby_options},
    {.name = "bench nats",
     .group = GROUP_TOOLS,
     .run = bench_nats_run,
     .summary = "measure allocations through NATS beside plain publish-and-ack",
     .synopsis = "[OPTIONS]",
     .about = "Starts nats-server with JetStream. Each request moves a player to a friend's room;\n"
              "beside it a relay in Muster's place only publishes as much and acknowledges.\n",
     .options = bench_nats_options},
    {.name = "bench postgres",
     .group = GROUP_TOOLS,
     .run = bench_postgres_run,
     .summary = "measure allocations of a node on PostgreSQL beside one on the embedded store",
     .synopsis = "[OPTIONS]",
     .about =
         "Starts PostgreSQL (package postgresql-15) with its own defaults on the same disk, and\n"
         "two Musters: one keeps everything there, one in its folder. They take turns under\n"
         "the load of `bench allocate`.\n",
     .options = bench_postgres_options},
    {.name = "bench agones",
     .group = GROUP_TOOLS,
     .run = bench_agones_run,
     .summary = "measure allocations in Agones fleets beside plain patches of GameServers",
     .synopsis = "[OPTIONS]",
     .about =
         "There is no cluster: a stand-in for the API server, in memory and far faster than a\n"
         "real one, lists, watches, allocates and patches. Measured are Muster's own work and the\n"
         "number of its writes: for players who come, and for players who move to a friend. First\n"
         "with the stand-in held to a rate of writes, as a real one is by its disk, then without.\n"
         "Beside it plain clients patch GameServers, over as many connections as Muster has.\n",
     .options = bench_agones_options},
    {.name = "bench spawn",
     .group = GROUP_TOOLS,
     .run = bench_spawn_run,
     .summary = "measure how soon a new room's server is ready beside starting it bare",
     .synopsis = "[OPTIONS]",
     .about =
         "Asks for rooms of the example game one at a time, with a real agent; beside it starts\n"
         "the same program by itself and waits for its first word.\n",
     .options = bench_spawn_options},
    {.name = "bench restart",
     .group = GROUP_TOOLS,
     .run = bench_restart_run,
     .summary = "measure how soon a killed Muster serves again",
     .synopsis = "[OPTIONS]",
     .about =
         "A folder with many servers, matches and seats; Muster is killed and started on it.\n",
     .options = bench_restart_options},
    {.name = "bench footprint",
     .group = GROUP_TOOLS,
     .run = bench_footprint_run,
     .summary = "measure size, start and idle memory",
     .synopsis = "[OPTIONS]",
     .about = "The stripped program, the time until the ready line, resident memory at rest.\n",
     .options = bench_footprint_options},
    {.name = "bench all",
     .group = GROUP_TOOLS,
     .run = bench_all_run,
     .summary = "run every benchmark and write the table of results",
     .synopsis = "[OPTIONS]",
     .about = "What 'make bench' runs; about four minutes. Writes RESULTS.md and results.svg.\n",
     .options = bench_all_options},
    {0},
};

static bool is_family(const char *word)
{
    const struct command *c = commands;
    while (c->name && !help_of_family(c, word))
        c++;
    return c->name != NULL;
}

static int unknown_verb(const char *word)
{
    struct suggestion near = suggest_for(word);
    for (const struct command *c = commands; c->name; c++)
        suggest_offer(&near, c->name);
    fprintf(stderr, "muster: there is no verb '%s'.", word);
    if (near.best)
        fprintf(stderr, " Did you mean '%.*s'?", (int)strcspn(near.best, " "), near.best);
    fprintf(stderr, " 'muster --help' lists them.\n");
    return EXIT_USAGE;
}

/* The second word of the verb that may have been meant; NULL when none is near. */
static const char *nearest_in_family(const char *family, const char *word)
{
    struct suggestion near = suggest_for(word);
    for (const struct command *c = commands; c->name; c++) {
        const char *second = help_of_family(c, family);
        if (second)
            suggest_offer(&near, second);
    }
    return near.best;
}

static int unknown_in_family(const char *family, const char *word)
{
    const char *near = nearest_in_family(family, word);
    fprintf(stderr, "muster: there is no verb '%s %s'.", family, word);
    if (near)
        fprintf(stderr, " Did you mean '%s %s'?", family, near);
    fprintf(stderr, " 'muster %s --help' lists them.\n", family);
    return EXIT_USAGE;
}

/* `queue` is a verb that takes no word, so `queue remvoe` is a slip of `queue remove`; `lobby`
 * takes a number, so `lobby abrot` is one of `lobby abort`. */
static bool is_slip(const struct command *c, int argc, char **argv)
{
    static const char no_word[] = "[OPTIONS]";
    if (argc < 2 || argv[1][0] == '-' || !c->synopsis)
        return false;
    const struct operation *o = c->operation ? operation_find(c->operation) : NULL;
    bool takes_number = o && o->fields[0].name && o->fields[0].kind == FIELD_ID;
    bool takes_none = strncmp(c->synopsis, no_word, sizeof(no_word) - 1) == 0;
    bool is_number = argv[1][0] >= '0' && argv[1][0] <= '9';
    return (takes_none || (takes_number && !is_number)) && nearest_in_family(argv[0], argv[1]);
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static bool wants_help(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (is_help(argv[i]))
            return true;
    }
    return false;
}

/* argv[0] is the last word of the verb. */
static int run(const struct command *c, int argc, char **argv)
{
    if (wants_help(argc, argv)) {
        help_verb(stdout, c);
        return EXIT_DONE;
    }
    argv[0] = (char *)c->name;
    return c->run(argc, argv);
}

static const struct command *find_in_family(const char *family, const char *word)
{
    for (const struct command *c = commands; c->name; c++) {
        const char *second = help_of_family(c, family);
        if (second && strcmp(second, word) == 0)
            return c;
    }
    return NULL;
}

/* argv[0] is the family; no verb of it was meant. */
static int refuse_in_family(int argc, char **argv)
{
    if (argc >= 2 && !is_help(argv[1]))
        return unknown_in_family(argv[0], argv[1]);
    help_family(argc < 2 ? stderr : stdout, argv[0]);
    return argc < 2 ? EXIT_USAGE : EXIT_DONE;
}

/* argv[0] is the first word of the verb. Two words go before one: `host enable` is a verb, and so
 * is `host`. */
static int run_verb(int argc, char **argv)
{
    const struct command *longer = argc > 1 ? find_in_family(argv[0], argv[1]) : NULL;
    if (longer)
        return run(longer, argc - 1, argv + 1);
    for (const struct command *c = commands; c->name; c++) {
        if (strcmp(argv[0], c->name) == 0)
            return is_slip(c, argc, argv) ? unknown_in_family(argv[0], argv[1])
                                          : run(c, argc, argv);
    }
    return is_family(argv[0]) ? refuse_in_family(argc, argv) : unknown_verb(argv[0]);
}

/* `muster help`, `muster help drain`, `muster help token enrol`, `muster help --markdown` */
static int run_help(int argc, char **argv)
{
    static char option[] = "--help";
    if (argc < 2 || is_help(argv[1])) {
        help_all(stdout);
        return EXIT_DONE;
    }
    if (strcmp(argv[1], "--markdown") == 0) {
        help_markdown(stdout);
        return EXIT_DONE;
    }
    bool two = argc > 2 && is_family(argv[1]);
    char *asked[] = {argv[1], two ? argv[2] : option, option, NULL};
    return run_verb(two ? 3 : 2, asked);
}

static int run_any(int argc, char **argv)
{
    if (argc < 2) {
        help_all(stderr);
        return EXIT_USAGE;
    }
    if (is_help(argv[1]) || strcmp(argv[1], "help") == 0)
        return run_help(argc - 1, argv + 1);
    if (strcmp(argv[1], "--version") == 0) {
        printf("muster %s\n", MUSTER_VERSION);
        return EXIT_DONE;
    }
    return run_verb(argc - 1, argv + 1);
}

/* Who reads our output may stop when he has enough; that is no failure. A full disk is: what was
 * to be kept there is lost. */
static int end_output(int code)
{
    int error = term_end_output();
    if (error == 0 || error == EPIPE)
        return code;
    fprintf(stderr, "muster: cannot write to standard output: %s\n",
            error == TERM_LOST ? "part of it is lost" : full_reason(error));
    return code == EXIT_DONE ? EXIT_REFUSED : code;
}

int cli_main(int argc, char **argv)
{
    if (argc > 0)
        cli_program = argv[0];
    return end_output(run_any(argc, argv));
}
