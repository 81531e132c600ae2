/* Views: what core shows to people, as plain values. A view is a copy; its strings belong to core
 * and are valid until the next core_step. Nothing here changes anything.
 *
 * Whoever shows a view to somebody steps an EVENT_READ after taking it and waits for EFFECT_READ:
 * then what was seen is durable. */
#pragma once

#include "core/core.h"
#include "wire/envelope.h"

enum { VIEW_TRIES = 4, ROUTE_TOKEN_SIZE = 25 };

/* Why a server is not a candidate; one reason per server at a time, the first that applies. */
enum passed_over {
    PASSED_NOT, /* it is one */
    PASSED_OFFLINE,
    PASSED_AWAY,     /* not connected, not yet Offline */
    PASSED_UNLISTED, /* returned; its match list is awaited */
    PASSED_DRAINING,
    PASSED_FAILING, /* refused, timed out or dropped lately */
    PASSED_FULL,
    PASSED_REASONS
};

/* Servers of one fleet in one region, or sums of such. */
struct view_group {
    int32_t servers[4]; /* by enum server_status */
    int32_t passed[PASSED_REASONS];
    int64_t slots_used; /* of servers that are not Offline */
    int64_t slots_total;
    int32_t sessions_open;
    double cpu_percent; /* means over the servers that are connected; 0 when none is */
    double memory_percent;
    double load_mean;   /* of load / max_sessions */
    double load_spread; /* its standard deviation */
    int32_t connected;
};

struct view_region {
    int8_t code;
    const char *name;
    bool located;
    double latitude;
    double longitude;
    struct view_group group;
};

struct view_fleet {
    int64_t id;
    const char *name;
    bool configured; /* false: taken out of the configuration, so it drains */
    bool ready_required;
    struct view_group group;
};

struct view_server {
    int64_t id;
    int64_t fleet_id;
    const char *fleet;
    const char *ip;
    int32_t port;
    int8_t region;
    const char *region_name;
    enum server_status status;
    enum passed_over passed_over;
    bool connected;
    bool draining_by_server;
    bool draining_by_operator;
    int32_t max_sessions;
    int32_t load;     /* slots it has no more */
    int32_t reported; /* matches by its last heartbeat */
    int32_t sessions; /* opening, open and lost */
    int32_t open;
    int32_t unknown_matches; /* it listed them, nobody here knows them */
    float cpu_percent;
    float memory_percent;
    double score;
    int64_t backoff_left_ms; /* 0 = not passed over for a failure */
    int64_t round_trip_us;   /* 0 = not known yet */
    int64_t heard_wall_ms;   /* its last heartbeat or PONG; 0 = not since this process started */
    int64_t registered_wall_ms;
    int64_t connected_wall_ms; /* since when without a break; 0 = not connected */
};

struct view_session {
    int64_t id;
    int64_t ticket;
    int64_t server;
    int64_t fleet_id;
    const char *fleet;
    const char *chat_server;
    int32_t lobby;
    int8_t game_type;
    int8_t game_mode;
    int8_t player_count;
    int32_t seated;
    const char *state;      /* "opening" "open" "lost" "cancelling" "ended" */
    const char *end_reason; /* "" while it lasts */
    bool ready;
    int64_t created_wall_ms;
    int64_t opened_wall_ms; /* 0 = not yet */
    int64_t deadline_wall_ms;
};

struct view_try {
    int64_t server;
    const char *outcome; /* "pending" "acknowledged" "refused" "timed_out" "dropped" "not_ready"
                            "given_up" */
    float score;
    int32_t load;
    int32_t max_sessions;
    float cpu_percent;
    float memory_percent;
};

struct view_ticket {
    int64_t id;
    int64_t fleet_id;
    const char *fleet;
    const char *chat_server;
    int32_t lobby;
    uint64_t regions; /* bit per code */
    int8_t game_type;
    int8_t game_mode;
    int8_t player_count;
    int32_t average_rating;
    const char *state; /* "open" "done" "failed" "cancelled" "ended" */
    bool open;         /* its answer is still to come */
    int err;           /* when failed or cancelled */
    int64_t session;   /* 0 = none */
    int64_t server;    /* of that session; 0 = none */
    int64_t opened_wall_ms;
    int64_t answered_wall_ms; /* 0 = not yet */
    int64_t deadline_wall_ms; /* open: when it fails; final: when it is forgotten; 0 = none */
    int n_tries;
    struct view_try tries[VIEW_TRIES];
    int32_t passed[PASSED_REASONS]; /* at the last choice: the others, by reason */
};

struct view_token {
    int64_t id;
    const char *name; /* what its maker calls it; may be "" */
    enum enrolment_role role;
    const char *fleet;
    uint64_t regions;
    int32_t generation;
    int32_t connections; /* open now with this token */
    int64_t created_wall_ms;
    int64_t expires_wall_ms;        /* 0 = never */
    int64_t revoked_wall_ms;        /* 0 = not */
    int64_t previous_until_wall_ms; /* the token before the last rotation works until then */
};

struct view_audit {
    int64_t id;
    int64_t wall_ms;
    const char *who;
    const char *address;
    const char *action; /* "drain" "undrain" "end" "enrol" "revoke" "rotate" "issue" "configure" */
    const char *target_kind; /* "server" "session" "token" "" */
    int64_t target;
    const char *detail;
};

/* ── rooms ───────────────────────────────────────────────────────────────────────────────────── */

/* Why a host gets nothing new; one reason at a time, the first that applies. */
enum host_passed_over {
    HOST_PASSED_NOT,
    HOST_PASSED_SILENT, /* no heartbeat for host_ms */
    HOST_PASSED_LEAVING,
    HOST_PASSED_DISABLED,
    HOST_PASSED_FAILING,    /* a spawn failed there lately */
    HOST_PASSED_OVERLOADED, /* memory above 95 %, or no slot left */
    HOST_PASSED_REASONS
};

struct view_host {
    int64_t id;
    const char *name;
    const char *address;
    const char *url;
    int8_t region;
    const char *region_name;
    int32_t slots;
    bool disabled;
    enum host_passed_over passed_over;
    float cpu_percent;
    float memory_percent;
    float load_percent; /* max of both, with what was placed since the last heartbeat */
    int32_t rooms;      /* starting, open and ending there, as we know it */
    int32_t servers;    /* … by its last heartbeat */
    int32_t strangers;  /* of these, servers that are not ours */
    int32_t deployments;
    int64_t backoff_left_ms;
    const char *failed_why; /* "" = it is not failing */
    int64_t heard_wall_ms;  /* 0 = not since this process started */
    int64_t registered_wall_ms;
};

/* May a host be taken away now? */
struct view_removal {
    bool now;
    char sentence[400];
};

struct view_version {
    int64_t id; /* 0: in the configuration only */
    int64_t fleet_id;
    const char *fleet;
    const char *name;
    bool enabled; /* players can join it */
    bool quarantined;
    const char *reason;
    int64_t deployment;
    int64_t previous;
    int64_t wanted;
    int32_t rooms;
    int32_t hosts_ready; /* healthy hosts of the fleet that have `wanted`, or `deployment` */
    int32_t hosts;
};

struct view_deployment {
    int64_t id;
    int64_t fleet_id;
    const char *fleet;
    const char *version;
    const uint8_t *digest; /* 32 bytes */
    int64_t size;
    int64_t created_wall_ms;
    const char *who;
    int32_t hosts_ready;
    int32_t hosts;
    bool current;
    bool wanted;
};

struct view_ban {
    int64_t id;
    const char *account;
    const char *address; /* "" = none yet */
    const char *reason;
    int64_t expires_wall_ms;
    int64_t issued_wall_ms;
    const char *who;
    bool expired;
};

struct view_room {
    int64_t id;
    int64_t ticket;
    int64_t server;
    int64_t fleet_id;
    const char *fleet;
    const char *game; /* as configured; "" when the fleet is not any more */
    const char *kind; /* the fleet's `server` */
    const char *version;
    int64_t deployment;
    int64_t host;
    const char *host_name;
    const char *address;
    bool host_away;
    int8_t region;
    const char *region_name;
    const char *state;      /* "starting" "open" "ending" "ended" */
    const char *end_reason; /* "" while it lasts */
    int32_t max_players;
    int32_t reserved;
    int32_t taken;
    uint16_t ports[HOST_PORTS_MAX];
    int n_ports;
    int32_t pid;
    bool exit_seen; /* exit_code or exit_signal says how it ended */
    int32_t exit_code;
    int32_t exit_signal;
    struct str never_ran; /* why no process was started; "" = one was */
    int64_t peak_memory;
    int64_t run_ms;
    int64_t dropped_bytes;
    struct str settings; /* a JSON object */
    struct str tail;     /* last lines of its output, once it is gone */
    int64_t created_wall_ms;
    int64_t opened_wall_ms;
    int64_t deadline_wall_ms;
};

struct view_room_seat {
    int64_t id;
    int64_t room;
    int64_t ticket;
    int64_t fleet_id;
    const char *fleet;
    const char *account;
    const char *address;
    const char *state; /* "reserved" "taken" */
    int64_t multi;
    int64_t reserved_wall_ms;
    int64_t joined_wall_ms;
    int64_t deadline_wall_ms; /* reserved: when it is given back; 0 = it stands still */
    struct str info;
    struct str sealed;
};

enum { VIEW_HOST_TRIES = 2 };

struct view_host_try {
    int64_t host;
    int64_t room;
    const char *outcome; /* "pending" "opened" "failed" "timed_out" "given_up" */
    float load_percent;
};

struct view_room_ticket {
    int64_t id;
    const char *verb; /* "create" "join" "enter" */
    int64_t fleet_id;
    const char *fleet;
    const char *version;
    const char *account;
    int32_t players;
    int8_t region;
    const char *region_name;
    const char *state; /* "open" "done" "failed" */
    bool open;
    int err;
    struct str why; /* the sentence of its refusal */
    int64_t room;
    int64_t opened_wall_ms;
    int64_t answered_wall_ms;
    int64_t deadline_wall_ms;
    int n_tries;
    struct view_host_try tries[VIEW_HOST_TRIES];
};

struct view_allocation {
    int64_t id;
    const char *name;
    int64_t fleet_id;
    const char *fleet;
    const char *player;
    const char *bus;   /* "http" "player" "nats" "pubsub" "nats+pubsub" */
    bool own;          /* its name is the player's own */
    const char *state; /* "open" "queued" "done" "failed" "cancelled" */
    bool open;         /* open or queued: its last result is still to come */
    bool owed;         /* its result has not left yet */
    int err;
    struct str why;
    int32_t priority;
    int8_t region;
    const char *region_name;
    char where[96];    /* queued for any place: in which regions; "" = wherever its fleet is */
    int64_t room;      /* where, or whose queue it stands in; 0 = none, or the fleet's */
    int32_t position;  /* queued: from 1 */
    int32_t ahead;     /* … players who come before */
    int64_t eta_ms;    /* … by the rate at which seats came free lately; 0 = unknown */
    int64_t waited_ms; /* in line, until now or until it was over */
    int32_t players;   /* his party and he */
    int32_t friends;   /* whom he wants to be with */
    int64_t party;     /* 0 = he came alone */
    int64_t opened_wall_ms;
    int64_t queued_wall_ms; /* 0 = never was */
    int64_t answered_wall_ms;
    int64_t deadline_wall_ms;
};

struct view_lobby {
    int64_t id; /* what players and servers know it by, too */
    int64_t fleet_id;
    const char *fleet;
    int8_t game_type;
    int8_t game_mode;
    int8_t region; /* REGION_AUTO: any */
    const char *region_name;
    const char *map;
    int32_t average_rating;
    bool requeue;
    const char *state; /* "loading" "started" "ended" "aborted" */
    bool live;         /* loading or started */
    const char *queue; /* of its groups: "in_lobby" "in_match" "not_queued" "queued" */
    const char *cause; /* "" "allocation" "loading" "disconnected" "operator" "server" "too_long" */
    const char *reason; /* the sentence its players heard; "" = none */
    int err;            /* "allocation": which error */
    int32_t gone;       /* "disconnected": who; else 0 */
    int32_t moves;      /* servers that were lost before the start */
    int64_t ticket;
    int64_t session; /* 0 = none yet */
    int64_t server;  /* … */
    bool allocated;  /* a server holds it and is there */
    int32_t players;
    int32_t loaded;
    int32_t connected;
    int32_t untold; /* … have not been told that it is over */
    int64_t opened_wall_ms;
    int64_t started_wall_ms;  /* 0 = not */
    int64_t over_wall_ms;     /* 0 = not */
    int64_t deadline_wall_ms; /* loading: when it is aborted; over: when it is forgotten; else 0 */
};

struct view_lobby_player {
    int32_t account;
    const char *name;
    int8_t team; /* 0 or 1 */
    int8_t slot;
    int8_t group;
    bool loaded;
    bool connected; /* now, or when it was over */
    bool owed;      /* that it was aborted he has not been told */
};

/* A queue: of a room, or of a fleet when room is 0. */
struct view_queue {
    int64_t fleet_id;
    const char *fleet;
    int64_t room;
    int32_t entries;
    int32_t players;
    int32_t held;         /* seats that are kept for the oldest of them */
    int64_t oldest_ms;    /* how long its oldest entry waits */
    double freed_per_min; /* seats that came free lately */
};

/* One token on one endpoint. */
struct view_route {
    int64_t seat;
    int64_t room;
    int64_t fleet_id;
    const char *fleet;
    const char *player;
    const char *address;
    uint16_t port;
    char token[ROUTE_TOKEN_SIZE];
};

/* Who speaks on a connection; a player is nobody here, he came without an enrolment token. */
struct view_peer {
    enum enrolment_role role;
    int64_t server; /* ROLE_SERVER */
    int64_t fleet_id;
    const char *fleet;
    int8_t region; /* ROLE_SERVER; otherwise -1 */
};

/* The smallest id above `after` among the objects of that kind, or 0. Kinds: ROW_fleet, ROW_server,
 * ROW_session, ROW_ticket, ROW_enrolment, ROW_audit, ROW_host, ROW_version, ROW_deployment,
 * ROW_ban, ROW_room, ROW_room_seat, ROW_room_ticket, ROW_allocation. Ids only grow, so a list read
 * page by page shows each object that was there all the time exactly once. */
int64_t core_next(const struct core *core, enum row_kind kind, int64_t after);

/* The largest id below `before` (0: the largest of all), or 0. Newest first, for the audit. */
int64_t core_previous(const struct core *core, enum row_kind kind, int64_t before);

/* Each returns false, and leaves *ret alone, when there is no such object. */
bool view_region(const struct core *core, int8_t code, struct view_region *ret);
bool view_fleet(const struct core *core, int64_t id, struct view_fleet *ret);
bool view_server(const struct core *core, int64_t id, struct view_server *ret);
bool view_session(const struct core *core, int64_t id, struct view_session *ret);
bool view_ticket(const struct core *core, int64_t id, struct view_ticket *ret);
bool view_token(const struct core *core, int64_t id, struct view_token *ret);
bool view_audit(const struct core *core, int64_t id, struct view_audit *ret);
bool view_peer(const struct core *core, conn_id conn, struct view_peer *ret);
bool view_host(const struct core *core, int64_t id, struct view_host *ret);
bool view_removal(const struct core *core, int64_t host, struct view_removal *ret);
bool view_deployment(const struct core *core, int64_t id, struct view_deployment *ret);
bool view_ban(const struct core *core, int64_t id, struct view_ban *ret);
bool view_room(const struct core *core, int64_t id, struct view_room *ret);
bool view_room_seat(const struct core *core, int64_t id, struct view_room_seat *ret);
bool view_room_ticket(const struct core *core, int64_t id, struct view_room_ticket *ret);
bool view_allocation(const struct core *core, int64_t id, struct view_allocation *ret);
bool view_lobby(const struct core *core, int64_t id, struct view_lobby *ret);

/* An allocation by its name, or the one that a player stands in line with; 0 = none. */
int64_t view_allocation_named(const struct core *core, struct str owner, struct str name);
int64_t view_queued_player(const struct core *core, int64_t fleet_id, struct str account);

/* The result that an allocation has now: 0, or ERR_NO_SUCH when there is no such allocation. Its
 * strings are valid until the next core_step or view_result. */
int view_result(struct core *core, int64_t allocation, struct envelope_result *ret);

/* Every line in which somebody waits, those of fleets first. Begin with a zeroed place; false at
 * the end. Nothing may change meanwhile. */
struct view_queue_place {
    bool rooms;
    size_t next;
};
bool view_next_queue(const struct core *core, struct view_queue_place *at, struct view_queue *ret);

/* A party: the smallest seat above `after` of those who came as party `id`, or 0. */
int64_t view_next_in_party(const struct core *core, int64_t party, int64_t after);

/* The route of a seat; false when nobody is to be let through (no seat, its room is not open). */
bool view_route(const struct core *core, int64_t seat, struct view_route *ret);

/* Counts up whenever some route came or went. */
uint64_t view_routes_generation(const struct core *core);

/* True when nothing of some version of that fleet is started on that host, because it failed there.
 */
bool view_host_passes_over(const struct core *core, int64_t host_id, int64_t fleet_id);

/* The i-th version of a fleet, those of the configuration first. */
bool view_version(const struct core *core, int64_t fleet_id, size_t i, struct view_version *ret);

/* Ids, or 0: the room of a spawned server; a fleet by what players call it; a host by its name; the
 * ban that holds now for an account, or for an address; the newest ban of an account, held or not;
 * the seat that a key opens on that server. */
int64_t view_room_of_server(const struct core *core, int64_t server);
int64_t view_fleet_played(const struct core *core, const char *game, const char *server);
int64_t view_host_named(const struct core *core, struct str name);
int64_t view_banned(const struct core *core, struct str account, struct str address);
int64_t view_ban_of(const struct core *core, struct str account);
int64_t view_seat_of_key(const struct core *core, int64_t server, struct str key);

/* Deployments that a host should have and lacks, because a version runs them where the host stands
 * or will when every host has them: their digests, 32 bytes each, at most cap. Returns how many. */
size_t view_lacking(const struct core *core, int64_t host, const uint8_t *digests[], size_t cap);

/* A player's seats in rooms, one per fleet: the smallest id above `after`, or 0. */
int64_t view_next_seat_of(const struct core *core, struct str account, int64_t after);

/* Where a player is, or for what he waits. Ids are 0 where there is none. */
struct view_place {
    char account[65];
    const char *state; /* "reserved" "taken" in a room that is open; "starting" in one that is not
                          yet; "routing" until a proxy lets him in; "waiting" in line; "playing" in
                          a match; "loading" in a lobby, and "started" when that has */
    int64_t fleet_id;
    const char *fleet;
    int64_t room;
    int64_t match;
    int64_t server;
    int64_t seat;
    int64_t ticket;
    int64_t lobby;
    int64_t party;            /* who came together has the same; 0 = alone */
    const char *address;      /* where he came from; "" = not kept */
    int32_t position;         /* waiting: from 1 */
    int64_t since_wall_ms;    /* 0 = not kept */
    int64_t deadline_wall_ms; /* when it is given back, or he waits no longer; 0 = none */
};
typedef void view_place_each(void *user, const struct view_place *place);

/* Those that belong to one object of ROW_room_seat, ROW_allocation, ROW_session or ROW_lobby. */
void view_places_at(const struct core *core, enum row_kind kind, int64_t id, view_place_each *each,
                    void *user);

/* Those of one player, who is a number to chat servers. */
void view_places_of(const struct core *core, struct str account, view_place_each *each, void *user);

/* All bans of an account, held or not: the smallest id above `after`, or 0. */
int64_t view_next_ban_of(const struct core *core, struct str account, int64_t after);

/* The seats of a room: the smallest id above `after`, or 0. */
int64_t view_next_seat_in(const struct core *core, int64_t room, int64_t after);

/* The rooms of a fleet's version that are open, best first for somebody in that region (-1 = no
 * matter), without those whose host is away: calls `each` until it says false. show_full: those
 * without a place too. */
struct rooms_wanted {
    int64_t fleet_id;
    const char *version;
    int8_t region;
    const struct filter *filter; /* NULL = any */
    bool show_full;
};
void view_rooms_open(const struct core *core, const struct rooms_wanted *wanted,
                     bool (*each)(void *user, int64_t room), void *user);

/* Where core would put a player of whom this is known: -1 = nowhere. Of p only region, latencies
 * and place on the map are read. */
int8_t view_region_for(const struct core *core, const struct place *p);

/* "silent" "overloaded" … ; "" for HOST_PASSED_NOT. */
const char *host_passed_over_name(enum host_passed_over reason);

/* What a stored row shows, as it was then, which is the time of the batch that wrote it. What no
 * row holds (loads, connections, players in a session) is 0. Strings belong to the row and to core;
 * the name of what core has forgotten is "". */
void view_row_server(const struct core *core, const struct row_server *row, struct instant then,
                     struct view_server *ret);
void view_row_session(const struct core *core, const struct row_session *row, struct instant then,
                      struct view_session *ret);
void view_row_ticket(const struct core *core, const struct row_ticket *row, struct instant then,
                     struct view_ticket *ret);
void view_row_token(const struct row_enrolment *row, struct view_token *ret);
void view_row_audit(const struct row_audit *row, struct view_audit *ret);
void view_row_host(const struct core *core, const struct row_host *row, struct view_host *ret);
void view_row_room(const struct core *core, const struct row_room *row, struct instant then,
                   struct view_room *ret);
void view_row_room_seat(const struct core *core, const struct row_room_seat *row,
                        struct instant then, struct view_room_seat *ret);
void view_row_room_ticket(const struct core *core, const struct row_room_ticket *row,
                          struct instant then, struct view_room_ticket *ret); /* without tries */

void view_row_allocation(const struct core *core, const struct row_allocation *row,
                         struct instant then, struct view_allocation *ret); /* without positions */

void view_row_lobby(const struct core *core, const struct row_lobby *row, struct instant then,
                    struct view_lobby *ret);

/* The i-th player of a lobby: false when there are fewer. */
bool view_lobby_player(const struct core *core, int64_t lobby, size_t i,
                       struct view_lobby_player *ret);

/* "loading" … as in struct view_lobby. */
const char *lobby_state_name(int8_t state);
const char *lobby_cause_name(int8_t cause);

/* The name of a fleet by its id; "" when there is none. */
const char *view_fleet_name(const struct core *core, int64_t id);

/* One fleet in one region; false when there is no server. */
bool view_group(const struct core *core, int64_t fleet_id, int8_t region, struct view_group *ret);

/* "offline" "away" … ; "" for PASSED_NOT. */
const char *passed_over_name(enum passed_over reason);

/* The words of a state as rows keep it: "open" …, and of why a session ended. */
const char *ticket_state_name(int8_t state);
const char *session_state_name(int8_t state);
const char *seat_state_name(int8_t state);
const char *end_reason_name(int8_t reason);

/* The kind of thing an enum operate_verb is about: "server"; "" = none. */
const char *audit_target_kind(int8_t verb);

/* "available" "full" "draining" "offline" */
const char *server_status_name(enum server_status status);

/* The configuration as core has it now. */
const struct core_config *core_config(const struct core *core);
bool core_is_read_only(const struct core *core);
int64_t core_spoofed(const struct core *core); /* frames that named somebody else's id */
