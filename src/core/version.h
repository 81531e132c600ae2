/* Versions of a fleet's game, and the deployments they run. Visible inside src/core only. */
#pragma once

#include "base/list.h"
#include "core/core.h"
#include "core/object.h"
#include "core/shelf.h"

struct fleet;
struct host;
struct room;

enum { VERSION_CRASHES = 5, VERSION_CRASHES_MS = 60 * 1000 };

struct version {
    struct object object;
    struct row_version row;
    struct fleet *fleet;
    int32_t rooms;                      /* starting, open and ending */
    struct shelf shelves[REGION_CODES]; /* its open rooms, by region */
    struct link in_fleet;
    struct link in_switching; /* core->switching: row.wanted is not 0 */

    /* The last crashes of its deployment, core time. Soft: what crashes will do so again. */
    int64_t crashed_core_ms[VERSION_CRASHES];
    int n_crashes;
};

struct deployment {
    struct object object;
    struct row_deployment row;
    struct fleet *fleet;
    struct link in_fleet;
};

struct version *version_find(const struct core *core, int64_t id);
struct deployment *deployment_find(const struct core *core, int64_t id);

/* The row of a fleet's version, or NULL: one that is only in the configuration has none yet. */
struct version *version_row_of(const struct fleet *fleet, struct str name);

/* 0, ERR_NO_VERSION or ERR_VERSION_DISABLED. */
int version_judge(const struct fleet *fleet, struct str name);

/* The version, with a row from now on; version_judge() must have said 0. */
struct version *version_use(struct core *core, struct fleet *fleet, struct str name);

/* 0, ERR_NO_VERSION, ERR_VERSION_DISABLED or ERR_OUTDATED for a server that runs that. */
int version_check_deployment(const struct core *core, const struct room *room);

/* A server of that version, running that deployment (0 = none), ended before it was ready; why is
 * the sentence. Too many of them in a short time: the version goes back to the deployment before,
 * or is quarantined when there was none. */
void version_crashed(struct core *core, struct version *version, int64_t deployment,
                     struct str why);

/* Healthy hosts where the fleet may run, and those of them that have the archive (NULL: all do).
 * A host that gets nothing new need not have it. */
void version_count_hosts(const struct core *core, const struct fleet *fleet, const uint8_t *digest,
                         int32_t *ret_ready, int32_t *ret_all);

/* On a tick, when changes can be stored: deployments that are wanted and by now on every healthy
 * host become their version's. */
void versions_settle(struct core *core);

/* ENABLE_VERSION, DISABLE_VERSION, DEPLOY and SWITCH: 0 and what it was about, or why not. */
int operate_version(struct core *core, const struct operate *o, int64_t *ret_object);

int version_load_row(struct core *core, const struct row_version *row);
int deployment_load_row(struct core *core, const struct row_deployment *row);
void version_done(struct version *version); /* what it owns besides itself */
