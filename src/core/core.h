/* Core: the whole of Muster's judgement. core_step() is a function of what core holds, the event
 * and the time; it changes memory and appends to the batch. It has no socket, clock, thread, file
 * or random source, so the same input gives the same output, bit for bit, on the loop and in the
 * simulator.
 *
 * Owned by whoever called core_new. Used from one thread. */
#pragma once

#include "core/batch.h"
#include "core/event.h"
#include "core/row.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CORE_SECRET_SIZE = 32,
    CORE_HASH_SIZE = 32,
    REGION_CODES = 64, /* region codes are 0..63, without REGION_AUTO */
    REGION_AUTO = 17,
    CORE_MAX_FLEETS = 256,
    CORE_MAX_ENROLMENTS = 1024,
};

/* Core time is monotonic while running and continued across restarts; see core_resume_ms. */
struct instant {
    int64_t core_ms;
    int64_t wall_ms;
};

enum enrolment_role { ROLE_SERVER = 1, ROLE_CHAT = 2 };

struct enrolment {
    uint8_t hash[CORE_HASH_SIZE]; /* core_hash_token() of the token */
    enum enrolment_role role;
    char fleet[64];
    uint64_t regions; /* bit per region code */
    int64_t stored;   /* the id of one that an operator made; 0 in the configuration */
};

enum fleet_provider { PROVIDER_CHAT, PROVIDER_AGENT, PROVIDER_AGONES };

/* What a proxy knows players by. */
enum fleet_token {
    TOKEN_OPAQUE,    /* derived: another for each seat */
    TOKEN_PLAYER_ID, /* the first 16 bytes of the player's id */
};

enum { FLEET_VERSIONS_MAX = 16 };

/* A version as the configuration knows it; what operators did to it since is in its row. */
struct version_config {
    char name[33];
    bool disabled;
};

struct fleet_config {
    char name[64];
    bool ready_required; /* a match counts as allocated only when its server has said READY */
    bool ready_lobbies;  /* the same for matches of lobbies */

    /* Rooms (PROVIDER_AGENT). game and server are what players name in a path. How a server is
     * started is the door's business. */
    enum fleet_provider provider;
    char game[64];
    char server[64];
    uint64_t regions;   /* bit per region code where it may run; 0 = everywhere */
    bool other_regions; /* no place in the first region: the next nearest, by distance */
    int32_t max_players;
    int64_t spawn_ms;   /* from the spawn to INITED */
    int64_t reserve_ms; /* a reservation */
    int64_t empty_ms;   /* a room without a seat is ended after this */
    int64_t session_ms; /* the longest a room may be open */
    struct version_config versions[FLEET_VERSIONS_MAX];
    size_t n_versions;

    /* Allocations. */
    bool taken_at_once;   /* confirm: none. A seat counts as taken when it is given */
    bool spread;          /* the emptiest room first, else the fullest */
    bool queue_when_full; /* nothing is free and nothing can be started: wait, else fail */
    int64_t queue_ms;     /* the longest anybody waits in line */
    enum fleet_token token;
};

/* At most `count` in `ms`; count 0 = no limit. */
struct rate_limit {
    int32_t count;
    int64_t ms;
};

enum { RATE_LIMITS_MAX = 4 };

struct region_config {
    char name[16]; /* "" = this code is not configured */
    bool located;
    double latitude; /* degrees */
    double longitude;
};

struct core_timeouts {
    int64_t ack_ms;           /* a chosen server's time to acknowledge */
    int64_t ready_ms;         /* ACK to READY where READY is required */
    int64_t ticket_ms;        /* a whole ticket */
    int64_t heartbeat_ms;     /* silence after which a server is Offline */
    int64_t chat_ms;          /* silence after which a chat server is gone */
    int64_t challenge_ms;     /* an old connection's time to answer the PING of a doubted hello */
    int64_t list_ms;          /* a returned server's time to list its matches */
    int64_t lost_ms;          /* how long a LOST match waits for its server */
    int64_t session_ms;       /* the longest a match may be open */
    int64_t token_ms;         /* a match token's time to admit an account first */
    int64_t keep_ms;          /* how long finished tickets are kept */
    int64_t forget_ms;        /* an Offline server without matches is forgotten after this */
    int64_t cancel_repeat_ms; /* an unacknowledged CANCEL is repeated after this */
    int64_t backoff_first_ms; /* a failing server is passed over for this, doubling … */
    int64_t backoff_max_ms;   /* … up to this */
    int64_t zero_report_ms;   /* sessions older than this end when a server that cannot list
                                 its matches twice reports none */
    int64_t host_ms;          /* silence after which a host gets nothing new: three heartbeats */
    int64_t host_lost_ms;     /* … after which its rooms are over */
    int64_t place_ms;         /* a room's ticket */
    int64_t spawn_retry_ms;   /* a spawn that fails within this is tried once on another host */
    int64_t host_backoff_ms;  /* a host that failed is passed over for this, doubling … */
    int64_t host_backoff_max_ms; /* … up to this */
    int64_t loading_ms;          /* a lobby's time until all have loaded */
    int64_t player_gone_ms;      /* … that a player may be gone before it starts */
};

struct core_limits {
    int32_t tickets_open; /* more are refused with "Too many open requests" */
    int32_t tickets_kept; /* the newest so many finished tickets are kept */
    int32_t servers;      /* more are refused with "Internal error" */
    int32_t chat_servers;
    int32_t enrolments; /* stored ones; more are refused with "Too many open requests" */
    int32_t audit_kept; /* the newest so many lines of the audit are kept */
    int32_t hosts;
    int32_t rooms;       /* not ended; more are refused with "Too many open requests" */
    int32_t bans;        /* the oldest that has expired makes room */
    int32_t deployments; /* of one fleet */
    int32_t queued;      /* allocations in line */
    int32_t lobbies;     /* loading and started; more are refused with "Too many open requests" */
};

struct core_config {
    struct region_config regions[REGION_CODES];
    struct fleet_config fleets[CORE_MAX_FLEETS];
    size_t n_fleets;
    struct enrolment enrolments[CORE_MAX_ENROLMENTS];
    size_t n_enrolments;
    bool any_token; /* --dev: any token, any configured region, fleet "default" */
    int8_t buses;   /* a set of enum seek_bus: those there are */
    struct core_timeouts timeouts;
    struct core_limits limits;
    int8_t default_region; /* for players of whom nothing is known; -1 = the first configured */
    struct rate_limit create_rates[RATE_LIMITS_MAX]; /* per account */
    struct rate_limit join_rates[RATE_LIMITS_MAX];
};

struct core;

/* Seventeen regions, fleet "default", the timeouts of the protocol; no enrolments. */
void core_config_default(struct core_config *ret);

/* The one way a token is compared: only its hash is ever kept. */
void core_hash_token(struct str token, uint8_t ret[CORE_HASH_SIZE]);

/* config is copied. secret is what credentials are derived from. */
struct core *core_new(const struct core_config *config, const uint8_t secret[CORE_SECRET_SIZE]);
void core_free(struct core *core);

/* Starting: hand in every stored row and change in order, then core_loaded once, then step.
 * core_load returns 0, or ERR_FORMAT for a row that cannot be. seq is the last committed batch. */
int core_load(struct core *core, const struct change *change);
int core_loaded(struct core *core, int64_t seq, struct instant now);

/* How these rows came to be gone back to. */
struct core_back {
    int64_t seq;               /* the batch they are of … */
    struct instant then;       /* … and its time */
    int64_t wall_ms;           /* the time now */
    struct str who;            /* for the audit */
    const struct core *before; /* core_load has given it the rows that were served here last, as far
                                  as they could be read; NULL = there are none */
    int64_t before_seq;
};

/* Instead of core_loaded, when these rows are of an older moment than the last that was served, so
 * that answers were given of which they know nothing: writes into batch what must be stored with
 * them before anybody starts from them (restore.c says what and why), as the batch after how->seq,
 * far ahead of it, and in *ret_epoch the epoch that begins with it. 0; ERR_FORMAT when rows cannot
 * be; ERR_TOO_MANY when there are no numbers left. Only core_free may follow. */
int core_restore(struct core *core, const struct core_back *how, struct batch *batch,
                 int64_t *ret_epoch);

/* 1, and more each time the folder was set back. Journal rows carry it. */
int64_t core_epoch(const struct core *core);

/* The core time to continue with: the stored one plus the wall clock's difference, clamped to
 * [0, 10 min] so that a clock that was set does not expire everything at once. */
int64_t core_resume_ms(int64_t stored_core_ms, int64_t stored_wall_ms, int64_t wall_ms);

/* After a failed commit: a freshly loaded core takes over the connections and soft state of the old
 * one, whose last changes were never stored. `lost` are the effects that will now never leave.
 * Every request they would have answered, and every open request the fresh core does not know, is
 * refused into batch->effects, which rest on nothing and may leave at once; connections they would
 * have closed are closed. The old core is freed. */
void core_take_over(struct core *fresh, struct core *old, const struct effects *const lost[],
                    size_t n_lost, struct batch *batch, struct instant now);

void core_step(struct core *core, const struct event *event, struct instant now,
               struct batch *batch);

/* Closes a batch: encodes every object changed since the last seal and numbers it when there are
 * any. What is owed is struck off in it only for batches of which core_left was told. When that is
 * all there is, and nothing is to be said either, it waits for company, CORE_STRUCK_OFF_MS at most.
 */
enum { CORE_STRUCK_OFF_MS = 50 };
void core_seal(struct core *core, struct batch *batch);

/* From now on nothing waits for company: Muster is about to end. */
void core_hasten(struct core *core);

/* The effects of a sealed batch have left, and so have those of all before it. Of one without a
 * number: it was sealed last, and nothing has happened since. */
void core_left(struct core *core, const struct batch *batch);

/* True when sealing now would find no object that was touched. */
bool core_is_clean(const struct core *core);

/* The number of the last batch with changes, and the way to say that an empty one took a number. */
int64_t core_seq(const struct core *core);
void core_numbered(struct core *core, int64_t seq);

/* Asserts nothing, changes nothing: looks for a broken invariant (docs/ARCHITECTURE.md lists them).
 * Returns NULL, or a sentence naming the first one found, valid until the next call. */
const char *core_check(struct core *core);

/* True when that server holds (or is being told to let go of) a match of that lobby id. */
bool core_knows_match(const struct core *core, int32_t server_id, int32_t lobby);

/* For people and metrics; costs nothing however many servers there are. */
struct core_counts {
    int32_t servers[4]; /* by enum server_status */
    int32_t sessions_open;
    int32_t players; /* who sit in matches; those of rooms are room_seats */
    int32_t tickets_open;
    int32_t tickets_kept;
    int32_t chat_servers;
    int32_t hosts;
    int32_t rooms_starting;
    int32_t rooms_open;
    int32_t rooms_ending;
    int32_t room_seats; /* reserved and taken */
    int32_t room_tickets_open;
    int32_t bans; /* that hold; an expired one counts until the next tick */
    int32_t allocations_open;
    int32_t allocations_queued;
    int64_t queue_oldest_ms;  /* how long the oldest of those queued waits; 0 = nobody does */
    int32_t allocations_owed; /* results that no bus has confirmed */
    int32_t lobbies_loading;
    int32_t lobbies_started;
    int32_t clients; /* players who are connected */
};
void core_count(const struct core *core, struct core_counts *ret);

/* As game servers and operators see it. */
enum server_status {
    SERVER_AVAILABLE = 0,
    SERVER_FULL = 1,
    SERVER_DRAINING = 2,
    SERVER_OFFLINE = 3
};
