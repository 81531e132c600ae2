/* Hosts: machines whose agents run the servers of rooms. Visible inside src/core only. */
#pragma once

#include "base/chain.h"
#include "base/list.h"
#include "core/core.h"
#include "core/deadline.h"
#include "core/fault.h"
#include "core/object.h"
#include "core/view.h"

/*            host_ms without a heartbeat        host_lost_ms
 *   HEARD ─────────────────────────────▶ SILENT ────────────▶ LOST ──forget_ms──▶ (deleted)
 *     ▲                                     │                  │
 *     └──────────── a heartbeat ────────────┴──────────────────┘
 *
 * Soft: after a start every host is HEARD and has one full host_ms to say so. What runs on a SILENT
 * host is unknown, not dead; on a LOST one it is over. */
enum host_quiet { HOST_HEARD, HOST_SILENT, HOST_LOST };

struct fleet;

enum { HOST_WHY_SIZE = 100 };

struct host {
    struct object object;
    struct row_host row;
    float cpu_percent;
    float memory_percent;
    int32_t servers;      /* by its last heartbeat */
    int32_t strangers;    /* … of these not ours */
    int32_t placed;       /* rooms put there since: its figures do not show them yet */
    int64_t beat;         /* of its last heartbeat: counts up while its agent runs */
    struct pause failing; /* its agent did something wrong */
    char failed_why[HOST_WHY_SIZE];
    int64_t worked_core_ms; /* when a server last became ready there; 0 = none did */
    struct list faults;     /* versions that failed to start there */
    int64_t heard_core_ms;  /* its last heartbeat; 0 = none since this process started */
    int64_t quiet_core_ms;  /* since when it is quiet: the last heartbeat, or our start */
    enum host_quiet quiet;
    bool leaving;
    uint8_t (*deployments)[OPERATE_DIGEST]; /* those it has */
    size_t n_deployments;
    struct list rooms; /* starting, open and ending there */
    int32_t n_rooms;
    struct deadline silence; /* of what `quiet` says comes next */
    struct link in_region;   /* core->hosts_in */
    struct chain_link by_name;
};

struct host *host_find(const struct core *core, int64_t id);
struct host *host_named(const struct core *core, struct str name);

/* An agent's heartbeat, answered with EFFECT_HOST_BEAT. */
void host_beat(struct core *core, conn_id conn, const struct host_beat *beat);

/* True when that account registered it, or took it over. */
bool host_is_of(const struct host *host, struct str account);

/* The sentence for who speaks as a host that is not his; kept with the effects. */
struct str host_belongs_to_another(struct core *core, const struct host *host);

/* True when nothing of the heartbeat has to be stored to take it. */
bool host_beat_changes_nothing(const struct core *core, const struct host_beat *beat);

/* Compares what the host says it runs with what we know, in host_list.c. */
void host_take_list(struct core *core, struct host *host, const struct host_beat *beat);

/* A note about it: object is its id, chat its name. */
struct effect *host_note(struct core *core, const struct host *host, enum note kind);

/* It failed to start the server of that room, by its own fault: it is passed over for a while. */
void host_failed(struct core *core, const struct room *room, struct str why);

/* Why it gets nothing new. */
enum host_passed_over host_passed_over(const struct core *core, const struct host *host);

/* max(cpu, memory) with a guess at what was placed there since its last heartbeat: 0 to 100. */
float host_load_percent(const struct host *host);

/* True when that fleet's servers run there: a cluster's fleet only on its own. */
bool host_serves(const struct host *host, const struct fleet *fleet);

bool host_has_deployment(const struct host *host, const uint8_t digest[OPERATE_DIGEST]);
bool host_is_away(const struct host *host); /* NULL is: nobody knows it any more */

/* True when a heartbeat is overdue: its agent may be dead, though it is not silent yet. */
bool host_is_late(const struct core *core, const struct host *host);

/* What an agent has queued is said within this when it is back. */
enum { HOST_QUEUED_MS = 5 * 1000 };

/* However long we could not store anything: it has its time to speak. */
void host_give_time(struct core *core, struct host *host);

int host_load_row(struct core *core, const struct row_host *row);
void host_loaded(struct core *core, struct host *host);
void host_take_over(struct core *core, struct host *fresh, const struct host *old);
void host_deadline(struct core *core, struct host *host);
void host_done(struct host *host); /* what it owns besides itself */
int operate_host(struct core *core, const struct operate *o);
