/* The core itself: every object in memory, who speaks on which connection, and the batch being
 * filled. Visible inside src/core only; other rooms see core.h.
 *
 * Durable objects are a row (rows.def) plus soft state around it. The row is what the store keeps;
 * everything else is rebuilt from rows, from peers that speak again, or from deadlines. Each noun
 * has its own header and file. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "base/slab.h"
#include "core/allocation.h"
#include "core/allocation_detail.h"
#include "core/audit.h"
#include "core/ban.h"
#include "core/chat_server.h"
#include "core/choice.h"
#include "core/core.h"
#include "core/deadline.h"
#include "core/enrolment.h"
#include "core/fault.h"
#include "core/fleet.h"
#include "core/host.h"
#include "core/lobby.h"
#include "core/object.h"
#include "core/placement.h"
#include "core/queue.h"
#include "core/rate.h"
#include "core/region.h"
#include "core/request.h"
#include "core/restore.h"
#include "core/room.h"
#include "core/room_detail.h"
#include "core/room_seat.h"
#include "core/room_ticket.h"
#include "core/route.h"
#include "core/seat.h"
#include "core/seek.h"
#include "core/server.h"
#include "core/session.h"
#include "core/ticket.h"
#include "core/ticket_regions.h"
#include "core/token.h"
#include "core/token_mode.h"
#include "core/version.h"

#include <assert.h>

enum peer_role { PEER_SERVER = 1, PEER_CHAT, PEER_CLIENT };

/* Who speaks on a connection. */
struct peer {
    enum peer_role role;
    bool challenging; /* its hello waits for the old connection's PONG */
    conn_id conn;
    int64_t enrolment; /* the stored one it came with; 0 = none of those */
    struct server *server;
    struct chat_server *chat;
    int32_t account; /* PEER_CLIENT */
    bool impostor;   /* … who spoke for another: that was said */
};

/* Where a row that is being loaded stands among the others. */
static inline uint64_t staged_key(enum row_kind kind, int64_t id)
{
    return (uint64_t)id << 5 | (uint64_t)kind;
}

struct core {
    struct core_config config;
    uint8_t secret[CORE_SECRET_SIZE];
    struct token_guid guids[TOKEN_GUIDS]; /* by session id */

    struct instant now;
    int64_t asleep_ms;    /* how much of core time this process did not run */
    int64_t woke_core_ms; /* when the last time ended in which it did not */
    int64_t last_tick_ms; /* core time of the last tick; 0 = none yet */
    bool read_only;
    bool fleets_owed;     /* configured fleets may lack their rows */
    bool audit_owed;      /* of a configuration that was read again */
    bool only_struck_off; /* all that is dirty is what is owed no more */
    bool hasty;           /* and it is not to wait */
    bool tickets_stirred; /* some fleet is: see there */
    int64_t seq;          /* of the last sealed batch with changes */
    int64_t left_seq;     /* of the newest batch whose effects have left */
    struct batch *out;    /* the open batch, during core_step */
    int64_t at_us;        /* of the event being handled: for measuring, decides nothing */
    struct list dirty;
    int64_t struck_off_ms; /* core time: since when the oldest of what is owed no more waits */

    struct row_counter counter_rows[ROW_KINDS];
    struct object counters[ROW_KINDS];
    int64_t next_id[ROW_KINDS];

    struct map staged; /* rows being loaded */
    struct map peers;  /* conn → struct peer */
    struct map fleets;
    struct map servers;
    struct map servers_by_endpoint;
    struct map chat_servers;
    struct map chat_servers_by_name;
    int32_t chat_servers_own;     /* of them, ours */
    struct map sessions_by_lobby; /* lobby → those that are not over */
    struct map sessions_over;     /* (server, lobby) → those that are */
    struct map seats;
    struct map seats_by_player; /* (fleet, account) → seat that is TAKEN */
    struct map tickets_by_key;  /* (chat server, lobby) → its newest ticket */
    struct list finished;       /* final tickets, oldest first */
    struct list lists_asked;    /* servers whose LIST_ASK has not left yet */
    struct list events_sent;    /* sessions whose events left with an earlier batch */
    int32_t tickets_open;
    int32_t tickets_finished;

    struct map clients;           /* account → struct peer */
    struct map lobbies_by_number; /* as players and servers know them */
    struct map lobby_players;     /* account → his places in lobbies that have something to say */
    struct list lobbies_due;      /* to be looked at, at the end of this step */
    struct list lobbies_sent;     /* what they owe left with an earlier batch */
    struct list finished_lobbies; /* oldest first */
    int32_t lobbies_finished;
    int32_t lobbies_in[LOBBY_STATES];
    struct str refusal; /* of the operation in hand: more than its error says; may be empty */

    struct map enrolments;
    struct map enrolments_by_hash;
    struct map enrolments_by_previous;
    struct map audits;
    struct map requests;
    struct map requests_by_key;
    struct map bans_by_account;
    struct heap bans_held; /* by when they expire */
    struct map bans_by_address;
    struct list switching;   /* versions that want another deployment */
    struct list quarantined; /* regions where versions wait for a trial */
    bool quarantine_known;   /* what was stored of it before this start is lifted */
    struct map hosts_by_name;
    struct list hosts_in[REGION_CODES];
    struct map rooms_by_server;      /* the server's id → its room, ended ones too */
    struct map room_seats_by_player; /* by account */
    struct map room_tickets_by_key;
    struct list rooms_ended;           /* oldest first */
    struct list room_tickets_finished; /* oldest first */
    int32_t n_room_tickets_finished;
    int32_t room_tickets_open;
    int32_t rooms_in[ROOM_STATES];

    struct map allocations_by_name;
    struct map allocations_by_player; /* OPEN and QUEUED, by account */
    struct list allocations_finished; /* oldest first */
    struct list allocations_owed;
    struct list allocations_lost;  /* those whose seats were taken away in this step */
    struct list waiting;           /* QUEUED, in whichever line, by when they came */
    struct list allocations_lined; /* those who came to a line in this step, and are not told yet */
    int32_t n_allocations_finished;
    int32_t n_allocations_owed;
    int32_t allocations_in[ALLOCATION_STATES];
    int64_t tried_hosts_core_ms; /* when those in line last tried for a new room */
    struct arena view_memory;    /* of view_result */
    bool owe_again;              /* what is owed to buses and proxies was lost, or never said */
    bool tokens_indexed;         /* every seat is in seats_by_token */
    struct list to_serve;        /* rooms where a seat came free, at the end of this step */
    struct map seats_by_token;   /* routing token → seats; empty until two could meet */
    uint64_t routes;             /* counts up when one came or went */
    struct rates rates;
    struct roll rolls[ROW_KINDS];  /* every object, by id */
    struct slab memory[ROW_KINDS]; /* of those there are many of; the others come from malloc */

    struct wheel deadlines[DEADLINE_CLOCKS];
    int64_t spoofed;       /* frames that named somebody else's id */
    int64_t check_wall_ms; /* the latest wall time that core_check saw */
    char check_text[200];
};

/* Where a moment of core's clock stands on the wall's, by an instant of both; 0 stays 0. */
static inline int64_t wall_at(struct instant then, int64_t core_ms)
{
    return core_ms ? then.wall_ms - (then.core_ms - core_ms) : 0;
}

struct peer *peer_find(const struct core *core, conn_id conn);
void peer_bind(struct core *core, conn_id conn, struct peer peer);
void peer_unbind(struct core *core, conn_id conn);

/* Effects of the running step. */
struct effect *effect_add(struct core *core, enum effect_kind kind, conn_id conn);
struct effect *note_add(struct core *core, enum note note);

/* Somebody on that connection was refused something. Add it before the effect that closes it. */
struct effect *note_refused(struct core *core, conn_id conn, int err);

/* Fill in whom a note is about: those who asked. Return it. */
struct effect *note_of_players(struct core *core, const struct place *p, struct effect *note);
struct effect *note_of_seekers(struct core *core, const struct seek *s, struct effect *note);
void effect_close(struct core *core, conn_id conn, const char *why);
struct str text_keep(struct core *core, struct str s);
