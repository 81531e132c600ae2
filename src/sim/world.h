/* The simulated world: visible inside src/sim only.
 *
 * Everything that happens is an entry in one queue ordered by time (then by the order of
 * insertion). A connection keeps the order of its messages in each direction; delays, stalls and
 * cuts are per connection. Actors (game.c, chat.c) hear messages and schedule their own wake-ups;
 * the control plane (plane.c) is a node with the real pipeline on a simulated disk (node.c), or two
 * of them and a database (cell.c). Hosts
 * (machine.c, one of them perhaps a cluster: cluster.c), players (player.c) and those who seek
 * places for players (seeker.c) speak HTTP, one request per connection, so they have no wires: a
 * request or its answer gets lost as a whole. Some of the seekers speak through a broker
 * (broker.c), which loses nothing. A matchmaker (matchmaker.c) posts accepted matches, whose
 * players (client.c) have wires. */
#pragma once

#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "core/core.h"
#include "sim/node.h"
#include "sim/random.h"
#include "sim/sim.h"
#include "store/store.h"

enum {
    MAX_NODES = 2,
    MAX_UNTOLD = PIPELINE_DEPTH_MAX,
    MAX_GAMES = 10,
    MAX_CHATS = 4,
    MAX_MATCHES = 64,
    MAX_LOBBIES = 4096,
    TEXT_MAX = 96,
    MAX_WISHES = 32,
    MAX_REVOKED = 256,
    MAX_MACHINES = 3,
    MAX_HOSTS = MAX_MACHINES + 1, /* with the cluster */
    MAX_PROCESSES = 24,
    MAX_REPORTS = 12,
    MAX_PLAYERS = 16,
    LONG_NAMED = 4, /* players whose names begin alike, in the cluster only */
    MAX_PARTY = 3,
    MAX_SEEKERS = 10,
    MAX_ASKS = 256,
    ASK_OTHERS = 3, /* friends, and who comes along */
    MAX_TOKENS = 12,
    TOKEN_SIZE = 28,
    NAME_SIZE = 24,
    MAX_CLIENTS = 12,
    MAX_ROSTER = 5,
    MAX_POSTS = 32,
    OWN_LOBBIES = 1 << 30, /* from here on lobbies are the control plane's own */
    DEPLOYMENTS = 5, /* different archives there are; the first byte of a digest tells which */
};

/* ── messages ──────────────────────────────────────────────────────────────────────────────── */

/* An event on its way to the control plane, or an effect on its way to a peer, with its own text.
 */
struct letter {
    bool to_plane;
    int chat; /* the chat server it is for, or -1 */
    struct event event;
    struct effect effect;
    char text[TEXT_MAX];
    uint8_t list[4 * MAX_MATCHES];
};

/* A request over HTTP on its way to the control plane, with its own texts. */
struct parcel {
    struct event event;
    struct host_server servers[MAX_PROCESSES];
    uint8_t deployments[DEPLOYMENTS][OPERATE_DIGEST];
    struct place_player players[MAX_PARTY];
    char accounts[MAX_PARTY][24];
    char addresses[MAX_PARTY][32];
    char text[TEXT_MAX];
    char url[TEXT_MAX];
    char names[2 * ASK_OTHERS + 1][NAME_SIZE]; /* EVENT_SEEK */
    struct str friends[ASK_OTHERS];
    struct str party[ASK_OTHERS];
};

/* What comes back, or a command to a host. */
struct reply {
    enum effect_kind kind;
    conn_id conn;
    int32_t err;
    int machine;    /* of a command */
    int deployment; /* of a spawn; -1 = none */
    bool tower;     /* … of that fleet */
    bool hangs;     /* … with settings that keep a server from being ready */
    bool unheard;   /* … whoever sent it waits for its answer no more */
    int64_t server;
    int64_t session;
    char text[TEXT_MAX]; /* JOINED: whose seat it is; KICK_SEAT: the key; ROUTE: the token */
    bool on;             /* ROUTE; RESULT: as in the effect */
    int8_t state;        /* RESULT */
    int8_t bus;          /* … */
    int8_t status;       /* SOUGHT, RESULT: enum envelope_status; -1 = there is no result */
    int64_t object;      /* … the allocation; ROUTE: the seat */
    char tokens[(ASK_OTHERS + 1) * TOKEN_SIZE]; /* SPAWN in a cluster */
    int n_seats;
    struct reply_seat {
        int64_t seat;
        char account[24];
        char key[TEXT_MAX];
    } seats[ASK_OTHERS + 1];
};

enum happening_kind {
    HAPPENS_LETTER,       /* arrives */
    HAPPENS_PEER_CLOSED,  /* an actor learns that its connection is gone */
    HAPPENS_PLANE_CLOSED, /* the control plane learns it */
    HAPPENS_GAME,         /* an actor wakes up */
    HAPPENS_CHAT,
    HAPPENS_TICK,
    HAPPENS_COMMITTED,
    HAPPENS_CRASH,
    HAPPENS_RESTART,
    HAPPENS_FAULT,
    HAPPENS_OPERATOR,
    HAPPENS_REPEAT, /* a chat server asks again for what it just asked */
    HAPPENS_SPEAK,  /* a game server answers a letter after some thought */
    HAPPENS_DROP,   /* … or drops its connection */
    HAPPENS_PARCEL,
    HAPPENS_REPLY,
    HAPPENS_MACHINE,
    HAPPENS_PLAYER,
    HAPPENS_CONNECT, /* a player shows his key to the server he was sent to */
    HAPPENS_PART,    /* … and goes */
    HAPPENS_SEEKER,
    HAPPENS_BROKER,
    HAPPENS_RESULT, /* the control plane publishes one */
    HAPPENS_LEAVE,  /* a player leaves the cluster */
    HAPPENS_CLIENT,
    HAPPENS_LOADS, /* a client says how far he is in the lobby he was told of */
    HAPPENS_MATCHMAKER,
    HAPPENS_ERRAND,  /* arrives at the cell, or back at its node */
    HAPPENS_GIVE_UP, /* a node waits no longer for commits */
    HAPPENS_CLAIM,   /* … has another connection for them */
    HAPPENS_RENEW,   /* … renews its lease */
    HAPPENS_WATCH,   /* … looks at the lease and the journal */
    HAPPENS_NOTIFY,  /* … is told to */
    HAPPENS_CELL,    /* does somebody lead? */
};

struct happening {
    struct heap_node place;
    int64_t at_ms;
    uint64_t order;
    enum happening_kind kind;
    conn_id conn;
    int actor;
    int node;
    int64_t life; /* of the node, reign or actor it was meant for; stale ones are dropped */
    struct letter *letter;
    struct parcel *parcel;
    struct reply *reply;
    struct errand *errand;
};

/* ── actors ────────────────────────────────────────────────────────────────────────────────── */

struct held_match {
    int32_t lobby;
    char token[TEXT_MAX];
    bool acknowledged;
    bool ready;
    bool ending; /* MATCH_ENDED was sent and is repeated until answered */
    int64_t since_ms;
    int64_t ends_ms;
};

/* A game server: its process, not our record of it. */
struct game {
    int index;
    int64_t life; /* raised when its process restarts */
    int8_t region;
    int32_t max;
    int32_t port;
    conn_id conn;
    int64_t wired_ms; /* when it last found somebody who leads */
    bool registered;
    int32_t server_id;
    char enrolment[TEXT_MAX]; /* the token it says; empty = the configured one */
    int64_t enrolment_id;
    int64_t said_enrolment_id; /* … with its last hello; 0 = the configured one */
    bool must_be_refused;      /* that came with a token that had been revoked */
    struct held_match matches[MAX_MATCHES];
    int n_matches;

    /* temper */
    bool knows_list;
    bool says_ready;
    int refuse_percent;
    int silent_percent;  /* chance that an ALLOCATE is never answered */
    int drop_percent;    /* … that it drops its connection while the players of a lobby load */
    int64_t away_max_ms; /* … and for how long */
    int64_t ack_max_ms;
    int64_t match_max_ms;
    int32_t lies_by; /* added to what it reports */

    int64_t last_beat_arrived_ms; /* at the control plane */
    int64_t slept_at_beat_ms;     /* how long the node had been stopped by then */
    int64_t registered_ms;        /* since when it is connected and known */
    int64_t long_out_ms;          /* when it may last have been given up for lost */
};

enum lobby_state { LOBBY_NEW, LOBBY_ASKED, LOBBY_GIVEN, LOBBY_REFUSED, LOBBY_CANCELLED };

/* What a chat server was told of one of its lobbies: the history that must hold. */
struct lobby {
    int32_t id;
    enum lobby_state state;
    bool ended;  /* a MATCH_EVENT said so, or an answer */
    bool lost;   /* a MATCH_EVENT said so, and none that it is back */
    bool unsure; /* a cancel was sent and its answer never came */
    int32_t server_id;
    int64_t given_core_ms;
    char token[TEXT_MAX];
};

struct chat {
    int index;
    conn_id conn;
    bool registered;
    int64_t ask_every_ms;
    struct lobby lobbies[MAX_LOBBIES];
    int n_lobbies;
};

/* Something a server's agent must tell, until it is answered. */
struct report {
    enum agent_verb verb;
    int64_t seq;
    int player; /* JOINED: who showed the key */
    bool wrong; /* … and it is no key of this server */
    char key[TEXT_MAX];
};

enum process_state { PROCESS_STARTING = 1, PROCESS_RUNNING, PROCESS_ENDING, PROCESS_GONE };

/* A spawned game server. It outlives its agent. */
struct process {
    int64_t server;
    int64_t session;
    enum process_state state;
    bool fails;                /* it will never be ready */
    bool prepared;             /* nobody has asked for it yet, and nobody hears of it … */
    int64_t prepared_until_ms; /* … and it goes when nobody does */
    int64_t changes_ms;        /* when it is ready, or ends */
    int64_t seq;               /* of its last report */
    struct report reports[MAX_REPORTS];
    int n_reports;
    conn_id asking; /* the first report is under way */
    int64_t asked_ms;
    struct report accepted[MAX_REPORTS]; /* the newest keys that opened a seat */
    int n_accepted;
    char tokens[MAX_TOKENS][TOKEN_SIZE]; /* that a proxy sends there, once it is RUNNING */
    int n_tokens;
};

/* A host: its agent and what runs on it. */
struct machine {
    int index;
    bool cluster; /* its servers are GameServers, of which there are `slots` */
    int8_t region;
    int32_t slots;
    int64_t beat;
    bool agent_down;
    bool old;    /* its agent does not say whose fault a failure was */
    int faulted; /* fleets whose servers failed there since anything worked: 1 arena, 2 tower */
    int64_t agent_back_ms;
    int64_t cut_until_ms;            /* nothing reaches it and nothing leaves it */
    int64_t stalled_until_ms;        /* … but it stays there until then */
    int64_t silent_ms;               /* when the control plane last found it silent */
    int64_t blamed_core_ms;          /* when a failure was last held against it … */
    int64_t blamed_there_core_ms[2]; /* … and against a version there: of the arena, of the tower */
    int64_t next_beat_ms;
    conn_id beating;          /* the last heartbeat */
    int64_t host;             /* its id there; 0 = not told yet */
    int64_t beat_ms;          /* since when it may be silent */
    int64_t slept_at_beat_ms; /* how long the plane had been stopped by then */
    bool leaving;
    bool has[DEPLOYMENTS];
    bool lacks[DEPLOYMENTS]; /* it was told to fetch */
    int slow_percent;        /* of its servers are not ready in time */
    int fail_percent;
    struct process processes[MAX_PROCESSES];
    int n_processes;
    int64_t past[MAX_PROCESSES]; /* servers that ran here, newest last */
    int n_past;
};

enum { WHITHER_REGIONS = 3 }; /* where there are hosts: 0, 1, 2 */

/* In which region a place is wanted. */
struct whither {
    int8_t region; /* -1 = none is named */
    bool only;     /* my_region_only */
    bool alone;    /* a region that is named is the only one */
    uint64_t latencies;
    float ms[WHITHER_REGIONS];
};

/* A request for a place in the arena, and what there was when it came. */
struct whither_seen {
    bool judged;
    struct whither whither;
    char account[NAME_SIZE]; /* of the first player */
    int32_t players;
    bool rooms; /* it takes a room that is open … */
    bool hosts; /* … a new one */
    int64_t newest_seat;
    uint64_t had; /* regions with a place for it */
};

struct player {
    int index;
    conn_id conn; /* he waits for an answer; 0 = no */
    int64_t asked_ms;
    struct whither whither; /* what the player asked for last … */
    bool enters;            /* … was a room by its number */
    int64_t seat;           /* the player was given */
    int64_t server;
    int64_t room;
    char key[TEXT_MAX];
};

/* One request for a place, and all that was ever said of it. */
struct ask {
    int64_t number; /* which is its name; 0 = none */
    enum seek_bus bus;
    bool pods; /* in the cluster, else in the arena */
    int player;
    int friends[ASK_OTHERS];
    int n_friends;
    int party[ASK_OTHERS];
    int n_party;
    bool any_room;
    bool rejoin;
    bool move_party;
    int32_t priority;
    struct whither whither;
    bool had_seat; /* its player had one when it was asked, once at least */
    int64_t asked_ms;
    int64_t asked_core_ms;

    /* its sender's side */
    int64_t sent_ms;  /* 0 = not yet */
    int8_t doors;     /* the buses it was given to; each is owed its last result */
    int8_t unacked;   /* … those that say it again */
    int8_t published; /* … and have that result */
    int64_t said_ms;  /* when one of them last said it */
    conn_id conn;     /* who waits for its answer, 0 = nobody */
    conn_id disputed; /* … the one that came with other arguments */
    bool heard_queued;
    bool heard_final;

    /* what left the control plane, and what the disk has */
    bool told_final;
    uint64_t final_digest;
    int64_t allocation; /* 0 = none yet */
    bool over;
    bool owed;
    bool forgotten; /* from now on its name is a new one */
};

struct seeker {
    int index;
    enum seek_bus bus;
    int64_t ask; /* he is at */
};

/* A player at the client port. */
struct client {
    int index; /* his account is one more */
    conn_id conn;
    bool greeted;
    int64_t greeted_ms;
    int32_t lobby;     /* he was told of on this connection, and not how it went on; 0 = none */
    int32_t loading;   /* the one he is in, as far as he knows */
    bool loaded;       /* … he has said so */
    int flips;         /* … he will still change his mind that often */
    int away_percent;  /* how often he drops out */
    int slow_percent;  /* chance that he needs most of the time to load */
    int never_percent; /* … and loads never */
};

/* An accepted match, as the matchmaker posted it. */
struct post {
    int number; /* which is its key */
    bool keyed;
    int players[MAX_ROSTER];
    int n_players;
    int8_t region;
    bool requeue;
    int64_t asked_core_ms;
    conn_id conn; /* asked and not answered yet; 0 = no */
    int64_t told; /* the lobby that the first answer named; 0 = none */
};

struct matchmaker {
    bool one_region; /* that of the first server, where there are few */
    int64_t every_ms;
    int abort_percent;
    struct post posts[MAX_POSTS];
    int n_posts;
};

/* What the operator asked for once. */
struct wish {
    int number;
    enum operate_verb verb;
    int64_t target;
    bool keyed;
    int64_t asked_core_ms;
    conn_id conn;     /* asked and not answered yet; 0 = no */
    bool conflicting; /* … with other arguments under the same key */
    bool answered;
    int64_t object;
    char token[TEXT_MAX];
};

struct operator
{
    struct wish wishes[MAX_WISHES];
    int n_wishes;
    int64_t revoked[MAX_REVOKED];
    int n_revoked;
    int64_t lifted[MAX_REVOKED]; /* bans of which he asked that */
    int n_lifted;
    conn_id reading; /* 0 = not */
    int64_t seen_session;
    bool seen_opened;
};

enum { READER_WINDOW = 256 }; /* more than the store's history */

/* Somebody who follows the changes. */
struct reader {
    int64_t seen_seq;
    int64_t stored_seq;
    uint64_t stored[READER_WINDOW]; /* digests of the newest batches on the disk */
};

/* ── what the disk holds ───────────────────────────────────────────────────────────────────── */

/* One that is gone stays for a batch more: its promise may leave with the batch that ended it. */
struct shadow_seat {
    struct row_room_seat row;
    bool fresh;      /* it came with this batch */
    bool reopened;   /* with this batch his key, which had been shown, opens it again */
    int asked_again; /* how often he got a place and it was this one */
    bool gone;
    bool early;             /* nothing on the disk says why; the note of its end must */
    char token[TOKEN_SIZE]; /* as a proxy was told of it; "" = not yet */
};

/* An allocation that is open or in line; one that is over stays for a batch more. */
struct shadow_allocation {
    struct row_allocation row; /* without its long fields */
    char party[ASK_OTHERS + 1 + ASK_OTHERS][NAME_SIZE];
    int n_party;
    bool over;
    bool ended;          /* in this batch */
    bool shrank;         /* … somebody dropped out */
    bool written;        /* … at all */
    int8_t state_before; /* … before it */
    int64_t room_before;
    int64_t late_ms; /* since when it should be over; 0 = no */
};

/* ── network ───────────────────────────────────────────────────────────────────────────────── */

enum wire_kind { WIRE_GAME, WIRE_CHAT, WIRE_CLIENT };

struct wire {
    conn_id id;
    enum wire_kind kind;
    int actor;
    int node;        /* of the control plane, which it leads to */
    bool plane_open; /* that one holds its end */
    bool peer_open;
    int64_t to_plane_ms; /* arrival of the last letter, each way */
    int64_t to_peer_ms;
    int64_t stalled_until_ms; /* nothing arrives before */
};

/* ── the world ─────────────────────────────────────────────────────────────────────────────── */

struct world {
    struct random random;
    int64_t now_ms;
    int64_t core_offset_ms; /* core time minus simulated time, at the last commit */
    struct heap queue;
    uint64_t order;
    uint64_t hash;
    FILE *trace;
    struct sim_result *result;
    bool broken;
    bool quiet;       /* no more faults, no more requests */
    bool arena_ended; /* with the newest batch a room of the fleet did */
    bool pods_ended;
    bool in_parties; /* those who seek often come with others */
    bool pods;       /* there is a cluster, the last of the machines */

    /* Faults of versions have a die of their own, so that the worlds without stay as they are. */
    struct random fault_random;
    size_t tower; /* the fleet of that name, whose version is broken at times; 0 = none */
    int64_t tower_broken_until_ms;
    int hostile; /* so many players ask for what no server gets ready with */

    struct core_config config;
    int64_t configured;       /* how often it has changed */
    struct store *store;      /* the disk, or the database */
    struct cell cell;         /* of two nodes */
    struct store *backup;     /* that may be restored; NULL = none was taken */
    bool backs_up;            /* backups are taken and restored in this world */
    bool restores;            /* the next start is from the backup */
    int64_t restored_wall_ms; /* when the last one was */
    int64_t set_back_ms;      /* … then; 0 = never. What was promised before may be broken */
    struct map given;         /* credential → to whom or for what it was given, both hashed */
    struct node nodes[MAX_NODES];
    int n_nodes;
    struct untold {               /* stored, and not told yet */
        struct store_batch batch; /* with bytes of its own */
        int64_t before_ms;        /* when the one before it was given to the disk */
    } untold[MAX_UNTOLD];
    int n_untold;
    struct node *leader; /* who speaks for the control plane; NULL = nobody */
    int64_t reign;       /* raised each time that somebody begins to */
    int64_t disk_slow_until_ms;
    int64_t disk_fails_until_ms;
    int disk_mode;
    int32_t moved_fleet;

    struct map shadow;          /* session id → struct shadow */
    struct map shadow_servers;  /* server id → struct shadow_server */
    struct map shadow_refusals; /* ticket id → struct shadow_refusal */
    struct map shadow_rooms;    /* room id → struct row_room */
    struct map shadow_seats;    /* seat id → struct shadow_seat */
    struct map shadow_bans;     /* ban id → struct row_ban */
    struct map shadow_asked;    /* id of a ticket for a room → struct row_room_ticket */
    struct map shadow_lines;    /* allocation id → struct shadow_allocation */
    struct map shadow_versions; /* version id → struct row_version */
    int64_t stored_core_ms;     /* of the newest batch */
    int64_t before_core_ms;     /* … of the one before */
    int32_t arena_id;           /* the fleets' ids; 0 = not known yet */
    int32_t pods_id;
    struct map starts; /* server id → struct sim_start */
    struct map wires;  /* conn id → struct wire */
    conn_id next_conn;
    int n_games;
    int n_chats;
    int n_machines; /* 0: no rooms in this world */
    int n_players;
    int n_seekers; /* 0: nobody seeks in this world */
    int n_clients; /* 0: no lobbies in this world */
    struct game games[MAX_GAMES];
    struct chat chats[MAX_CHATS];
    struct machine machines[MAX_HOSTS];
    struct player players[MAX_PLAYERS];
    struct seeker seekers[MAX_SEEKERS];
    struct ask asks[MAX_ASKS]; /* by their number */
    int64_t n_asks;
    int64_t broker_away_until_ms;
    size_t n_fleets; /* that are always configured */
    struct client clients[MAX_CLIENTS];
    struct matchmaker matchmaker;
    struct map shadow_lobbies;   /* their number → struct shadow_lobby */
    int64_t submitted_ms;        /* when the newest batch was given to the disk */
    int64_t submitted_before_ms; /* … the one before that which was told last */
    int64_t submitted_reign;     /* … in which reign */
    int64_t commit_failed_ms;    /* the last time that one was lost */
    struct operator operator;
    struct reader reader;
    char moved[NAME_SIZE]; /* whose seat was given up for another, not heard of yet; "" = none */
    bool was_banned[MAX_CLIENTS + 1]; /* at some time, by account */
};

void world_init(struct world *w, const struct sim_options *options, struct sim_result *result);
void world_done(struct world *w);

/* Puts something into the queue; ownership of the letter goes with it. */
struct happening *world_after(struct world *w, int64_t delay_ms, enum happening_kind kind);

/* backup.c: backups are taken, and now and then one is restored after a crash. */
void backup_fault(struct world *w);
void backup_restore(struct world *w);
void backup_judge(struct world *w, const struct effect *e); /* no credential is given twice */
void backup_done(struct world *w);

/* Makes whatever happens next happen. False when nothing is left. */
bool world_next(struct world *w);

/* The index of the cluster's fleet, in a world that has one. */
size_t world_pods(const struct world *w);

void world_broken(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same for what must hold also where a backup was restored: then promises of before are
 * forgotten, and world_broken says nothing any more. */
void world_wrong(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
void world_trace(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
void world_mix(struct world *w, uint64_t value);
int64_t world_wall_ms(const struct world *w);

/* Core time now, as far as the last commit tells: a restart may add up to ten minutes. */
int64_t world_core_ms(const struct world *w);

/* network.c */
struct wire *wire_open(struct world *w, enum wire_kind kind, int actor);
struct wire *wire_find(const struct world *w, conn_id id);
struct letter *letter_new(enum event_kind kind, conn_id conn);
struct str letter_text(struct letter *l, const char *text);
void wire_to_plane(struct world *w, struct letter *l);
void wire_to_peer(struct world *w, const struct effect *effect);
void wire_arrive(struct world *w, struct letter *l);

/* Both ends will learn of it, each in its own time; what is under way is lost. */
void wire_cut(struct world *w, struct wire *wire, int64_t plane_learns_ms, int64_t peer_learns_ms);
void wire_closed_by_plane(struct world *w, conn_id id);
void wire_closed_by_peer(struct world *w, conn_id id);
void wire_plane_learns(struct world *w, conn_id id);
void wire_peer_learns(struct world *w, conn_id id);
void wires_node_died(struct world *w, const struct node *n);

/* plane.c: the control plane as everybody else sees it. Something leaves a node; nobody leads any
 * more. */
void plane_release(struct node *n, const struct effect *effects, size_t n_effects);
void plane_hear(struct node *n, const struct event *event);
void plane_falls(struct world *w);

/* Whom somebody tries who wants a connection. */
struct node *plane_door(struct world *w);

/* Nobody reaches that node, nor it anybody, until its peers_cut_until_ms. */
void plane_cut_off(struct node *n);

/* A batch is on the disk. Whoever wrote it has heard so, of this batch and all before it: only now
 * do the shadows have them, because what they caused leaves only now. */
void plane_stored(struct world *w, const struct store_batch *batch, int64_t before_ms);
void plane_told(struct world *w, int64_t seq);
void plane_done(struct world *w);

/* Who leads and can be spoken to; NULL = nobody. */
struct node *plane_awake(const struct world *w);

/* Something that will happen to whoever leads now; whoever does after him never hears of it. */
struct happening *plane_after(struct world *w, int64_t delay_ms, enum happening_kind kind);

/* What the leader holds; there must be one. */
struct core *plane_core(const struct world *w);

/* shadow.c: what the disk holds, decoded again by other code than the store's. */
void shadow_stored(struct world *w, const struct store_batch *batch);
void shadow_judge(struct world *w, const struct effect *effect);
bool shadow_has_session(const struct world *w, int64_t id, bool opened);
int32_t shadow_held_by(const struct world *w, int32_t server_id); /* that are not over, or were not
                                                                     before the newest batch */
void shadow_set_back(struct world *w); /* the store holds what a backup did */
void shadow_done(struct world *w);

/* shadow_ticket.c: servers, and tickets that nobody was asked for. */
void shadow_tickets_stored(struct world *w, const struct store_batch *batch);
void shadow_tickets_judge(struct world *w, const struct effect *note);
void shadow_tickets_set_back(struct world *w);
void shadow_tickets_done(struct world *w);

/* shadow_room.c: the same of rooms, their seats and bans. */
void shadow_rooms_stored(struct world *w, const struct store_batch *batch);
void shadow_rooms_judge(struct world *w, const struct effect *effect);
void shadow_rooms_released(struct world *w); /* all effects of a batch */
void shadow_rooms_crashed(struct world *w);
void shadow_rooms_restarted(struct world *w);
void shadow_rooms_set_back(struct world *w);
void shadow_rooms_done(struct world *w);

/* The seat where that account is in that fleet, 0 = none. */
int64_t shadow_seat_of(const struct world *w, int32_t fleet, const char *account);
bool shadow_sits(const struct world *w, const struct shadow_seat *s);

/* shadow_fault.c: starts that failed. A host was told to start a server; its agent did wrong. */
void shadow_faults_told(struct world *w, const struct spawn *spawn);
void shadow_faults_wrong(struct world *w, int64_t server);
void shadow_faults_judge(struct world *w, const struct effect *note);
void shadow_faults_crashed(struct world *w);
void shadow_faults_done(struct world *w);
/* shadow_region.c: in which region that is. */
void whither_draw(struct world *w, struct whither *ret);
void whither_fill(const struct whither *from, struct place *ret);
bool ask_may_be_in(const struct world *w, const struct ask *ask, int8_t region);
bool ask_is_nearest(const struct world *w, const struct ask *ask, int8_t region);
void shadow_region_before(struct node *n, const struct event *event, struct whither_seen *ret);
void shadow_region_after(struct node *n, const struct whither_seen *seen);
void shadow_region_done(struct world *w, const struct shadow_allocation *a);
void shadow_region_judge(struct world *w, const struct effect *effect);

/* shadow_line.c: the same of allocations and lines. */
void shadow_lines_stored(struct world *w, const struct store_batch *batch);
void shadow_lines_judge(struct world *w, const struct effect *effect);

void shadow_lines_check(struct world *w);
void shadow_lines_done(struct world *w);

/* machine.c */
void machine_init(struct world *w, struct machine *m, int index);
void machine_wake(struct world *w, struct machine *m);
void machine_command(struct world *w, const struct effect *effect);
void machine_hear(struct world *w, const struct reply *reply);
void machine_fault(struct world *w);

/* The control plane answers a heartbeat; it starts, or can store again: everybody has his time. */
void machine_beat(struct world *w, const struct effect *effect);
void machines_get_time(struct world *w);

/* True when that host has been late for so long that nothing on it may run out. */
bool machine_is_away(const struct world *w, int64_t host);
struct process *process_find(struct world *w, int64_t server);
struct process *process_some(struct world *w);
struct report *process_report(struct process *p, enum agent_verb verb);

/* Sends a request, or brings back its answer; both may get lost. */
struct parcel *parcel_new(enum event_kind kind, conn_id conn);
void parcel_send(struct world *w, struct parcel *parcel);
struct happening *reply_later(struct world *w, const struct effect *effect, int64_t delay_ms);

/* player.c */
void player_init(struct world *w, struct player *p, int index);
void player_wake(struct world *w, struct player *p);
void player_connect(struct world *w, struct player *p, int64_t seat);
void player_part(struct world *w, struct player *p, int64_t seat);
void player_joined(struct world *w, struct player *p);
void player_hear(struct world *w, const struct reply *reply);

/* A seat was given to him; taken: he is in it already. */
void player_given(struct world *w, struct player *p, const struct reply_seat *seat, int64_t server,
                  int64_t room, bool taken);

/* cluster.c: GameServers, and the tokens by which a proxy knows where to send. */
void cluster_init(struct world *w);
void cluster_route(struct world *w, const struct effect *effect);
void cluster_hear(struct world *w, const struct reply *reply);
void cluster_leave(struct world *w, int player);

/* Its tokens are there from now on, and nowhere else. */
void cluster_opened(struct world *w, struct process *p);
void cluster_judge_success(struct world *w, const struct ask *ask, const struct effect *effect);
void cluster_check(struct world *w);
void routes_check(struct world *w);
struct process *process_on(struct machine *m, int64_t server);

/* seeker.c */
void seekers_init(struct world *w);
void seeker_wake(struct world *w, struct seeker *s, bool once);

/* A place comes free: somebody may ask at that very moment. */
void seekers_rush(struct world *w);
void seeker_hear(struct world *w, const struct reply *reply);
void seekers_plane_died(struct world *w);
struct ask *ask_numbered(struct world *w, int64_t number);
struct ask *ask_named(struct world *w, struct str name);
void ask_send(struct world *w, struct ask *ask, enum seek_bus bus, conn_id conn, bool disputed);

/* He, as he is called in the arena and in the cluster. */
void seeker_name(int player, char dst[NAME_SIZE]);

/* What left: the same answer each time. */
void asks_judge(struct world *w, const struct effect *effect);

/* What came of a request, heard by whoever sent it. */
void ask_heard(struct world *w, struct ask *ask, const struct reply *reply);

/* At the end of the quiet time: everybody has his answer. */
void asks_check(struct world *w);

/* broker.c */
void broker_wake(struct world *w);
void broker_fault(struct world *w);
void broker_result(struct world *w, const struct effect *effect);
void broker_publish(struct world *w, struct happening *h);
void broker_ask(struct world *w, struct ask *ask, enum seek_bus bus);

/* reader.c */
void reader_stored(struct world *w, const struct store_batch *batch);
void reader_durable(struct world *w, const struct store_batch *batch);
void reader_catch_up(struct world *w);
void reader_check(struct world *w);

/* operator.c */
void operator_wake(struct world *w);
void operator_reads(struct world *w);
void operator_hear(struct world *w, const struct effect *effect);
void operator_plane_died(struct world *w);
void operator_check(struct world *w);

/* True when it was told that this token is revoked. */
bool operator_revoked(const struct world *w, int64_t enrolment);

/* game.c */
void game_init(struct world *w, struct game *g, int index);
void game_wake(struct world *w, struct game *g);
void game_hear(struct world *w, struct game *g, const struct effect *effect);
void game_speak(struct world *w, struct game *g, struct letter *letter);
void game_disconnected(struct world *w, struct game *g);
void game_restart(struct world *w, struct game *g);

/* It drops its connection, for a moment or for longer than players load, with what it holds or
 * without. */
void game_drop(struct world *w, struct game *g);

/* chat.c */
void chat_init(struct world *w, struct chat *c, int index);
void chat_wake(struct world *w, struct chat *c);
void chat_repeat(struct world *w, struct chat *c, int64_t lobby);
void chat_hear(struct world *w, struct chat *c, const struct effect *effect);
void chat_disconnected(struct world *w, struct chat *c);

/* A letter to it was lost with its connection: of that lobby it may not know the latest. */
void chat_missed(struct chat *c, const struct effect *effect);

/* At the end of the quiet time: does it believe of any match what is no longer so? */
void chat_check_beliefs(struct world *w, const struct chat *c);

/* client.c: players on their way into a match. */
void clients_init(struct world *w);
void client_wake(struct world *w, struct client *c);
void client_loads(struct world *w, struct client *c, int32_t lobby);
void client_hear(struct world *w, struct client *c, const struct effect *effect);
void client_disconnected(struct world *w, struct client *c, conn_id conn);

/* matchmaker.c */
void matchmaker_wake(struct world *w);
void matchmaker_hear(struct world *w, const struct effect *effect);
void matchmaker_plane_died(struct world *w);

/* shadow_lobby.c: lobbies as the disk has them, and what left about them. */
void shadow_lobbies_event(struct world *w, const struct event *event);
void shadow_lobbies_stored(struct world *w, const struct store_batch *batch);
void shadow_lobbies_judge(struct world *w, const struct effect *effect);

/* Was he told of every end that he is owed, and of the match he is in? */
void shadow_lobbies_owed(struct world *w, const struct client *c);

/* On the disk, or it was until the newest batch; where lobbies are hardly kept, perhaps. */
bool shadow_has_lobby(const struct world *w, int64_t id);

/* So long that no server should hold its match. */
bool shadow_lobby_is_over(const struct world *w, int32_t number);
void shadow_lobbies_check(struct world *w);
void shadow_lobbies_done(struct world *w);

/* fault.c */
void fault_next(struct world *w);
void faults_end(struct world *w);

/* Does that server hold a match that the control plane should know of and does not? */
void game_check_leaks(struct world *w, const struct game *g);
