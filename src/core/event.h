/* Events: everything that can happen to core. A door decodes a frame into one of these; the strings
 * and lists in it belong to the door and are valid only during core_step. */
#pragma once

#include "base/str.h"
#include "wire/chat.h"

#include <stdint.h>

/* A connection's number, given by the door, never used twice in a process: it is the generation
 * of whoever speaks on it. 0 is no connection. */
typedef uint64_t conn_id;

enum event_kind {
    EVENT_TICK, /* time has passed; sent at least four times a second */

    /* server port */
    EVENT_SERVER_HELLO,
    EVENT_HEARTBEAT,
    EVENT_ALLOCATE_ACK,
    EVENT_READY,
    EVENT_CANCEL_ACK,
    EVENT_VALIDATE,
    EVENT_MATCH_ENDED,
    EVENT_PLAYER_LEFT,
    EVENT_DRAIN,
    EVENT_DRAIN_ACK,
    EVENT_MATCH_LIST,

    /* manager port */
    EVENT_CHAT_HELLO,
    EVENT_CHAT_HEARTBEAT,
    EVENT_ALLOCATE,
    EVENT_CANCEL,

    /* client port */
    EVENT_CLIENT_HELLO, /* whose access token the door has found valid */
    EVENT_LOADING,

    /* any port */
    EVENT_PONG, /* the peer answered a PING */
    EVENT_GONE, /* the connection is closed, by whomever */

    /* operators */
    EVENT_READ,      /* somebody looked: answered when what he saw is durable */
    EVENT_OPERATE,   /* somebody changes something */
    EVENT_CONFIGURE, /* the configuration was read again */

    /* players and agents */
    EVENT_PLACE,      /* somebody wants seats in rooms: answered with EFFECT_PLACED, maybe later */
    EVENT_HOST_BEAT,  /* an agent's heartbeat */
    EVENT_AGENT,      /* something happened on a host */
    EVENT_HOST_HEARD, /* what an agent said to a spawn or a terminate */

    /* allocations */
    EVENT_SEEK,      /* a player wants a place in a fleet */
    EVENT_UNSEEK,    /* … no more */
    EVENT_PUBLISHED, /* a bus has a result */
    EVENT_ROUTED,    /* a proxy has a token, or cannot have it: the answer to EFFECT_ROUTE */

    /* the store (sent by the pipeline only) */
    EVENT_STORE_DOWN, /* commits fail: refuse what would change anything */
    EVENT_STORE_UP,   /* commits work again: settle what is owed */

    EVENT_KINDS
};

/* What an operator can do. */
enum operate_verb {
    OPERATE_DRAIN,
    OPERATE_UNDRAIN,
    OPERATE_END,       /* a session */
    OPERATE_ENROL,     /* makes an enrolment token */
    OPERATE_REVOKE,    /* … ends one and cuts those who came with it */
    OPERATE_ROTATE,    /* … replaces one; the old one works for grace_ms more */
    OPERATE_ISSUE,     /* an access token was made: core keeps the request and the audit */
    OPERATE_CONFIGURE, /* for the audit only: see EVENT_CONFIGURE */
    OPERATE_TERMINATE, /* a spawned server, by its id; the room on it ends */
    OPERATE_KICK,      /* a seat of a room, by its id */
    OPERATE_ENABLE_HOST,
    OPERATE_DISABLE_HOST, /* gets nothing new; what runs there goes on */
    OPERATE_ENABLE_VERSION,
    OPERATE_DISABLE_VERSION,
    OPERATE_DEPLOY, /* an archive was unpacked: keeps it as a deployment of fleet and version */
    OPERATE_SWITCH, /* makes a deployment its version's, when every healthy host has it */
    OPERATE_BAN,
    OPERATE_UPDATE_BAN,
    OPERATE_LIFT_BAN,
    OPERATE_STDIN,        /* a line was written to a server's input: for the audit only */
    OPERATE_DEQUEUE,      /* takes the player `account` out of the queue he stands in */
    OPERATE_CREATE_LOBBY, /* fleet, lobby: leaves no line in the audit, for it is what all do */
    OPERATE_ABORT_LOBBY,  /* reason: what its players hear; one that started ends */
    OPERATE_BACKUP,       /* somebody takes a copy of all there is: for the audit only */
    OPERATE_RESTORE,      /* for the audit only: see core_restore */
    OPERATE_STEP_DOWN,    /* this node lets another lead: for the audit only */
    OPERATE_VERBS
};

enum { OPERATE_DIGEST = 32 };

enum { GAME_TYPE_MAX = 10 };

enum {
    LOBBY_PLAYERS_MAX = 100,
    LOBBY_NAME_MAX = 64,    /* bytes of a player's or a map's name */
    LOBBY_REASON_MAX = 120, /* … of why it was aborted, as somebody says it */
};

/* One player of a lobby that is wanted. */
struct lobby_entry {
    struct str name;
    int32_t account; /* above 0 */
    int8_t team;     /* 0 or 1 */
    int8_t slot;     /* another for each of a team */
    int8_t group;    /* who came together has the same: 0 … LOBBY_PLAYERS_MAX - 1 */
};

/* CREATE_LOBBY: an accepted match. */
struct lobby_wanted {
    int8_t game_type;
    int8_t game_mode;
    int8_t region; /* a code, or REGION_AUTO */
    int32_t average_rating;
    struct str map;
    bool requeue; /* when it is aborted, its groups are queued again */
    const struct lobby_entry *players;
    size_t n_players;
};

/* The answer is EFFECT_OPERATED. A key makes a repeat of the same request give the same answer; the
 * same key with other arguments (another digest) is refused. */
struct operate {
    enum operate_verb verb;
    int64_t target;     /* a server, session or token by its id */
    struct str who;     /* the account that asks, at most 64 bytes */
    struct str address; /* … from there */
    struct str key;     /* empty = none */
    uint8_t arguments[OPERATE_DIGEST];
    struct str detail; /* for the audit: what cannot be seen from target, at most 127 bytes */

    /* ENROL */
    struct str name;
    int role; /* enum enrolment_role */
    struct str fleet;
    uint64_t regions;
    int64_t expires_wall_ms; /* 0 = never */

    int64_t grace_ms; /* ROTATE */

    /* BAN, UPDATE_BAN: expires_wall_ms and */
    struct str account;
    struct str reason; /* UPDATE_BAN: NULL = stays; expires_wall_ms 0 = stays. KICK, too */

    /* DEPLOY: fleet, name (the version) and */
    uint8_t digest[OPERATE_DIGEST];
    int64_t size;

    const struct lobby_wanted *lobby; /* CREATE_LOBBY: fleet and */
};

struct filter;

enum place_verb {
    PLACE_CREATE = 1, /* a new room */
    PLACE_JOIN,       /* a room that the filter lets through, else (auto_create) a new one */
    PLACE_ENTER,      /* that room */
};

enum { PLACE_PLAYERS_MAX = 64 };

struct place_player {
    struct str account; /* 1..64 bytes */
    struct str address; /* as text; may be empty */
    struct str info;    /* a JSON object, at most 4 KiB */
    struct str sealed;  /* his access token as only the door can read it */
};

/* All of the players get seats in one room, or none does. */
struct place {
    enum place_verb verb;
    struct str fleet;   /* CREATE, JOIN: by name */
    struct str version; /* … */
    int64_t room;       /* ENTER */
    const struct place_player *players;
    size_t n_players;
    bool multi;                  /* several were asked for together, be it one */
    struct str settings;         /* of a room that is made: a JSON object */
    const struct filter *filter; /* JOIN; NULL = any room */
    bool auto_create;
    bool my_region_only;
    int8_t region;        /* -1 = not given */
    uint64_t latencies;   /* bit per region code that has one */
    float latency_ms[64]; /* by region code */
    bool located;         /* the player's address is on the map */
    double latitude;
    double longitude;
    struct str key; /* Idempotency-Key; empty = none */
    uint8_t arguments[OPERATE_DIGEST];
};

/* Where an allocation came from, and so where its results go. Each bus is a bit, for a request may
 * be repeated through another; whoever asks over HTTP waits for his answer there. Stored: a new one
 * is the next bit. BUS_OWN is none: the player asked himself, over HTTP, and the name is his own.
 */
enum seek_bus {
    BUS_HTTP = 0,
    BUS_NATS = 1,
    BUS_PUBSUB = 2,
    BUSES_ALL = BUS_NATS | BUS_PUBSUB,
    BUS_OWN = 64
};

enum { SEEK_NAME_MAX = 128, SEEK_FRIENDS_MAX = 64, SEEK_PRIORITY_MAX = 100 };

/* EVENT_SEEK. With BUS_HTTP and BUS_OWN the answer is EFFECT_SOUGHT on conn; otherwise conn is 0
 * and every result is an EFFECT_RESULT. The name is the key: a repeat gets the same result and
 * takes nothing twice; the same name with other arguments is refused. Names of BUS_OWN are those of
 * its player, and never the same as anybody else's. */
struct seek {
    struct str name;
    enum seek_bus bus;
    struct str player; /* 1..64 bytes */
    struct str info;   /* a JSON object, at most 4 KiB; may be empty */
    struct str from;   /* his address as text; may be empty */
    const struct str *friends;
    size_t n_friends;
    const struct str *party; /* who comes along; he himself may be among them */
    size_t n_party;
    bool any_room;      /* canJoinNotFound */
    bool rejoin;        /* who has a seat keeps it, unless he asks for friends or a party */
    bool move_party;    /* his whole party comes along, or nobody */
    int32_t priority;   /* 0..SEEK_PRIORITY_MAX: each step is worth a minute in line */
    struct place where; /* of it only fleet, region, latencies and the place on the map are read */
    uint8_t arguments[OPERATE_DIGEST];
};

/* EVENT_PUBLISHED: that bus has the result of that allocation in that state (enum
 * allocation_state). */
struct published {
    int64_t allocation;
    int8_t state;
    enum seek_bus bus;
};

/* EVENT_ROUTED */
struct routed {
    int64_t seat;
    int err; /* 0: the token is in place */
    struct str text;
};

/* As the agent sees a server of its. */
enum host_server_state { HOST_SERVER_STARTING = 1, HOST_SERVER_RUNNING, HOST_SERVER_ENDING };

enum {
    HOST_PORTS_MAX = 4,
    HOST_SERVERS_MAX = 4096,
    CLUSTER_SERVERS_MAX = 64 * 1024, /* of a host that is a cluster's fleet */
    HOST_DEPLOYMENTS_MAX = 256,
};

/* Whose fault it is that a server did not start. */
enum fault_cause {
    FAULT_UNKNOWN,
    FAULT_OF_GAME,   /* its process ran, and ended or was not ready in time */
    FAULT_OF_HOST,   /* its agent refused, could not start a process, or was not there */
    FAULT_OF_CONFIG, /* there is no deployment, or no such binary */
    FAULT_OF_NOBODY,
};

struct host_server {
    int64_t server;
    int64_t session;
    int32_t pid;
    enum host_server_state state;
    uint16_t ports[HOST_PORTS_MAX];
    int n_ports;
};

struct host_beat {
    struct str name;    /* who it is: 1..64 bytes */
    struct str account; /* whose access token it showed */
    struct str address; /* where players reach its servers */
    struct str url;     /* where we reach it */
    int8_t region;
    int32_t slots; /* servers it will run at once; 0 = as many as it has ports for */
    float cpu_percent;
    float memory_percent;
    const struct host_server *servers;
    size_t n_servers;
    const uint8_t (*deployments)[OPERATE_DIGEST]; /* those it has unpacked */
    size_t n_deployments;
    int64_t beat;     /* counts up while the agent runs; from 1 when it starts */
    bool leaving;     /* it is being stopped: nothing new, please */
    struct str fleet; /* the only one it runs (a cluster's fleet); empty = any of PROVIDER_AGENT */
};

enum agent_verb {
    AGENT_INITED = 1,      /* settings: merged into the room's; may be empty */
    AGENT_FAILED,          /* it never was ready: text is a sentence; as EXITED when it ran */
    AGENT_EXITED,          /* exit_code or exit_signal, peak_memory, run_ms, dropped_bytes, tail */
    AGENT_JOINED,          /* key */
    AGENT_LEFT,            /* key */
    AGENT_UPDATE_SETTINGS, /* settings: replace the room's */
    AGENT_CHECK_DEPLOYMENT,
    AGENT_VERBS
};

/* One of a server's events. seq counts up per server: a repeat gets the same answer. */
struct agent_event {
    enum agent_verb verb;
    struct str host;    /* who says so */
    struct str account; /* whose access token it showed */
    int64_t server;
    int64_t seq;
    struct str key;
    struct str settings;
    struct str text;
    struct str tail;
    uint16_t ports[HOST_PORTS_MAX]; /* INITED */
    int n_ports;
    int32_t pid;
    int32_t exit_code;   /* -1 = nobody could tell */
    int32_t exit_signal; /* 0 = it exited by itself */
    int64_t peak_memory; /* bytes */
    int64_t run_ms;
    int64_t dropped_bytes;  /* of its output */
    enum fault_cause fault; /* FAILED */
    bool ran;           /* FAILED: its process ran and ended, as exit_code or exit_signal says */
    bool timed_out;     /* FAILED: its agent ended it because it took too long */
    bool hung;          /* EXITED: … because it did not answer */
    struct str address; /* INITED: where players reach it; empty = at its host */
    struct str name;    /* INITED: what its provider calls it; may be empty */
};

/* A command reached a host, or did not. */
struct host_heard {
    int64_t server;
    bool spawn; /* of a spawn; else of a terminate */
    int err; /* 0: taken; ERR_IO: nobody answered; ERR_LOGIN_FAILED: nobody was asked, for there is
                no token for the server; else it was refused */
    enum fault_cause fault; /* … refused: why */
    struct str text;        /* the refusal in words */
};

struct core_config;

struct event {
    enum event_kind kind;
    conn_id conn;
    int64_t at_us; /* monotonic, when it came; only handed back in effects, to be measured */
    union {
        struct chat_sv_handshake server_hello;
        struct chat_sv_heartbeat heartbeat;
        struct chat_sv_allocate_match_ack allocate_ack;
        struct chat_sv_ready_for_match ready;
        struct chat_sv_cancel_match_ack cancel_ack;
        struct chat_sv_validate_token validate;
        struct chat_sv_match_ended match_ended;
        struct chat_sv_player_left player_left;
        struct chat_sv_drain drain;
        struct chat_sv_match_list match_list;
        struct chat_mgr_handshake chat_hello;
        struct chat_mgr_server_allocation_request allocate;
        struct chat_mgr_allocation_cancel cancel;
        struct chat_cl_connect client_hello;
        struct chat_cl_player_loading_status loading;
        struct operate operate;
        const struct core_config *configure;
        struct place place;
        struct host_beat host_beat;
        struct agent_event agent;
        struct host_heard host_heard;
        struct seek seek;
        struct {
            struct str owner; /* whose own name it is; empty = nobody's */
            struct str name;  /* of the allocation */
        } unseek;
        struct published published;
        struct routed routed;
        struct {
            int64_t round_trip_us; /* 0 = not measured */
        } pong;
    };
};
