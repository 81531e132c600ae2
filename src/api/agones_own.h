/* What the files of the Agones provider share; agones*.c only.
 *
 *   agones.c           life, and the way between core's events and effects and the rest
 *   agones_identity.c  where the API server is, and who we are there
 *   agones_watch.c     a fleet: list, then watch, and again
 *   agones_server.c    the GameServers as they were last seen, and what plays on them
 *   agones_allocate.c  spawns: one POST each
 *   agones_route.c     tokens on their way to GameServers
 *   agones_mend.c      what is not as core has it, found and mended
 *   agones_write.c     patches of a GameServer: tokens, and its end
 *   agones_object.c    the JSON of all that
 *
 * Nothing here calls core at once: what is to be told is kept as news until the end of the turn,
 * and whatever is due by time is done there, too. */
#pragma once

#include "api/agones.h"
#include "api/agones_object.h"
#include "base/chain.h"
#include "base/list.h"
#include "base/map.h"

#include <sys/stat.h>

enum {
    AGONES_URL_MAX = 4096, /* a `continue` of a list may be long */
    AGONES_TOKEN_MAX = 64,
    AGONES_KEPT_MAX = 64 * 1024,   /* GameServers of others that are kept, over all fleets */
    AGONES_SPAWNS_MAX = 16 * 1024, /* under way; one more has failed */
    AGONES_POSTS_AT_ONCE = 32,
    AGONES_WRITES_AT_ONCE = 32,
    AGONES_ANSWER_MAX = 16 * 1024 * 1024,
};

struct agones_identity {
    char url[512];
    char *ca_file;
    char *token_file; /* NULL = none */
    char *certificate;
    char *key;
    int64_t looked_ms;
    int64_t read_ms;
    struct stat file; /* as it was when it was read */
    bool complained;
};

/*            first, or asked for              all pages are here
 *   WAITING ────────────────────▶ LISTING ─────────────────────▶ WATCHING
 *      ▲   it failed, or too old     │                              │ its time is over:
 *      └─────────────────────────────┴──────────────────────────────┘ watches on from there */
enum fleet_phase { FLEET_WAITING, FLEET_LISTING, FLEET_WATCHING };

struct cluster_fleet {
    struct agones *agones;
    struct agones_fleet config;
    size_t index;
    char host[80]; /* its name to core: "agones/<fleet>" */
    char url[80];  /* … "agones:<fleet>" */

    enum fleet_phase phase;
    struct http_call *call;
    int64_t due_ms;
    int failures;     /* in a row; 0: what we know is how things are */
    bool list_next;   /* … else watch */
    bool too_old;     /* the watch said so, or we did not understand it */
    bool synced;      /* one list was complete */
    bool good;        /* the watch under way has given something */
    int64_t began_ms; /* the call under way */
    uint64_t listing; /* number of the list that began last … */
    uint64_t listed;  /* … that was complete last */
    struct buf version;
    struct buf more; /* `continue` of the list under way */
    struct watch_lines lines;
    char why[AGONES_WHY_MAX]; /* of the last failure */

    struct list servers;      /* struct gameserver */
    struct list playing_ones; /* … those that play */
    size_t playing;
    bool changed; /* since the last heartbeat */
    int64_t beat_ms;
    int64_t beats;
};

/* A token where it was last seen. */
struct token_place {
    struct chain_link by_token;
    struct gameserver *server;
    struct str token; /* in server->tokens */
};

struct gameserver {
    struct cluster_fleet *fleet;
    struct link in_fleet;
    struct link in_playing;
    struct chain_link by_name;
    char *name;
    char *version; /* NULL = unknown: it must be read before it is written */
    char *tokens;
    struct token_place *places;
    size_t n_places;
    enum gameserver_state state;
    uint64_t seen;  /* number of the list it was last seen in, or after */
    bool presumed;  /* only the answer to our allocation says so; the watch has not */
    bool playing;   /* a server of ours */
    int64_t server; /* … its number */
    int64_t session;
    char address[AGONES_NAME_MAX];
    uint16_t ports[HOST_PORTS_MAX];
    int n_ports;

    uint64_t odd; /* what was not as core has it, when it was last compared; 0 = nothing */

    /* What is to be written, and the one request about it that may be under way. */
    struct link in_busy;
    struct list changes; /* struct route_change, in order */
    struct list flying;  /* … those of the patch under way */
    struct http_call *call;
    bool stale;    /* read it again first */
    bool shutdown; /* it must end */
    bool wipe;     /* it plays no more for us, and carries our marks still */
    int tries;
    int64_t due_ms;
};

/* One token to be added to a GameServer or taken from it. */
struct route_change {
    struct link in_list;
    bool on;
    bool asked;     /* by core, not for something else's sake */
    int64_t seat;   /* who is told when it is done; 0 = nobody */
    int64_t server; /* where */
    int64_t give_up_ms;
    struct route_change *then; /* to be done when this one is */
    int64_t spawn;             /* that waits for it, by its server's number; 0 = none */
    char *back;                /* the GameServer that it was taken from; NULL = none */
    struct cluster_fleet *back_fleet;
    char token[AGONES_TOKEN_MAX];
};

/* A spawn. */
struct allocating {
    struct agones *agones;
    struct link in_list;
    struct cluster_fleet *fleet;
    int64_t server;
    int64_t session;
    char *ticket;
    char *tokens;
    int64_t due_ms;
    int64_t give_up_ms;
    struct http_call *call;
    uint64_t needs; /* number of the list that must be complete before it is asked again */
    int tries;      /* without an answer */
    int contended;
    bool doomed;         /* nobody wants it any more */
    bool settled;        /* the watch was faster than the answer */
    struct list changes; /* struct route_change that came meanwhile */
    bool cleared;        /* its tokens are being taken from where they were … */
    int waits;           /* … so many still are */
    struct list taken;   /* struct route_change: to be put back when it comes to nothing */
};

enum news_kind { NEWS_INITED, NEWS_FAILED, NEWS_EXITED, NEWS_HEARD, NEWS_ROUTED };

/* What core is to be told. */
struct news {
    struct link in_list;
    enum news_kind kind;
    const struct cluster_fleet *fleet;
    int64_t server;
    int64_t seat;
    int err;
    bool timed_out;
    char text[AGONES_WHY_MAX];
    char name[AGONES_NAME_MAX];
    char address[AGONES_NAME_MAX];
    uint16_t ports[HOST_PORTS_MAX];
    int n_ports;
};

struct agones {
    struct doors *doors;
    struct metrics *metrics;
    struct agones_identity identity;
    struct http_client *client;
    struct http_client *watching; /* a watch must not keep a write waiting */
    conn_id conn;                 /* who we are to core */
    char *instance;
    struct cluster_fleet *fleets;
    size_t n_fleets;
    struct map by_name;   /* fleet and name -> chain of struct gameserver */
    struct map by_token;  /* token -> chain of struct token_place */
    struct map by_server; /* number -> struct gameserver that plays */
    struct map spawns;    /* number -> struct allocating */
    struct list allocating;
    struct list busy; /* struct gameserver with something to write */
    struct list held; /* struct route_change for servers that the first list will show */
    struct list news;
    size_t n_kept;
    size_t n_posts;
    size_t n_writes;
    int64_t now_ms; /* monotonic, of this turn */
    int64_t mended_ms;
    int64_t seq;
    uint32_t dice;
    struct agones_figures figures;
    struct buf body; /* scratch */
};

/* ── agones.c ──────────────────────────────────────────────────────────────────────────────── */

/* An empty one, at the end of what core will be told. */
struct news *news_add(struct agones *a, enum news_kind kind, const struct cluster_fleet *fleet,
                      int64_t server);

/* first_ms, doubled with each try, at most most_ms; by chance up to half of it less. */
int64_t agones_pause_ms(struct agones *a, int tries, int64_t first_ms, int64_t most_ms);

/* ── agones_identity.c ─────────────────────────────────────────────────────────────────────── */

/* False with a sentence. */
bool identity_init(struct agones_identity *id, const struct agones_config *config, char why[256]);
void identity_done(struct agones_identity *id);

/* Reads the token again when it may be another, or at once. */
void identity_refresh(struct agones *a, bool at_once);

/* ── agones_watch.c ────────────────────────────────────────────────────────────────────────── */

void cluster_fleet_init(struct cluster_fleet *f, struct agones *a, size_t index,
                        const struct agones_fleet *config);
void cluster_fleet_done(struct cluster_fleet *f);
void cluster_fleet_run(struct cluster_fleet *f);

/* What we know of it is how things are. */
bool cluster_fleet_is_current(const struct cluster_fleet *f);

/* Lists it anew, unless a list with that number or a later one is under way. */
void cluster_fleet_list(struct cluster_fleet *f, uint64_t number);

/* ── agones_server.c ───────────────────────────────────────────────────────────────────────── */

struct gameserver *gameserver_named(struct cluster_fleet *f, struct str name);

enum seen_in { SEEN_IN_LIST, SEEN_IN_WATCH, SEEN_IN_ANSWER };

/* This is how it is. It may end what plays there and begin something else. NULL when it is kept
 * not. */
struct gameserver *gameserver_seen(struct cluster_fleet *f, const struct gameserver_object *o,
                                   enum seen_in where);

/* The answer to a spawn of ours names it. */
void gameserver_presume(const struct allocating *spawn, const struct allocated *answer);

/* It is no more: it is freed. */
void gameserver_gone(struct gameserver *g);

/* A list is complete: those that were not in it are no more. */
void gameservers_sweep(struct cluster_fleet *f);
void gameservers_free(struct cluster_fleet *f);

/* Where a token was last seen, but for one; NULL = nowhere else. */
struct gameserver *gameserver_with_token(struct agones *a, struct str token,
                                         const struct gameserver *but);

/* ── agones_allocate.c ─────────────────────────────────────────────────────────────────────── */

void allocate(struct agones *a, struct cluster_fleet *f, const struct spawn *s);
void allocating_run(struct agones *a);
void allocating_free(struct allocating *spawn);

/* Its server is there: it waits for nothing more. NULL is fine. */
void allocating_over(struct allocating *spawn);

/* ── agones_route.c ────────────────────────────────────────────────────────────────────────── */

/* EFFECT_ROUTE. */
void route(struct agones *a, const struct effect *e);
void route_run(struct agones *a);

/* Takes a spawn's tokens from wherever they are; not while another spawn has one of them. */
bool route_may_clear(struct allocating *spawn);
void route_clear(struct allocating *spawn);

/* The spawn is over: what was taken stays so, or is put back. */
void route_cleared(struct allocating *spawn, bool undo);

/* Nothing is under way with that token. */
bool route_is_quiet(struct agones *a, struct str token);

/* Core has it there, or has it not, and the GameServer is otherwise. */
void route_mend(struct gameserver *g, struct str token, bool on);

/* A change has come about, or came to nothing. It is freed. */
void route_done(struct agones *a, struct route_change *c);
void route_failed(struct agones *a, struct route_change *c, int err, const char *why);

/* Takes it over: it is done in its turn. */
void gameserver_change(struct gameserver *g, struct route_change *c);

/* Those that came before it was known. */
void gameserver_take_changes(struct gameserver *g, struct list *changes);

/* It is gone, or will be: what waits for it comes to nothing. */
void gameserver_drop_changes(struct gameserver *g, int err, const char *why);

/* A request failed: what has waited for too long comes to nothing. */
void gameserver_drop_late(struct gameserver *g, const char *why);

/* … for what we are or sent, not for how things are: nothing can be added. */
void gameserver_drop_additions(struct gameserver *g, int err, const char *why);

/* ── agones_mend.c ─────────────────────────────────────────────────────────────────────────── */

/* Compares some GameServers with core, and mends what is not so. */
void mend_run(struct agones *a);

/* ── agones_write.c ────────────────────────────────────────────────────────────────────────── */

/* EFFECT_TERMINATE. */
void terminate(struct agones *a, struct cluster_fleet *f, int64_t server);

void gameserver_end(struct gameserver *g); /* it must be shut down */
void gameserver_make_busy(struct gameserver *g);

/* Does what is to be done next, if that can be. */
void gameserver_run(struct gameserver *g);
