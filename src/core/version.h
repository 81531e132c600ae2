/* Versions of a fleet's game, and the deployments they run. Visible inside src/core only. */
#pragma once

#include "base/list.h"
#include "core/core.h"
#include "core/fault.h"
#include "core/object.h"
#include "core/shelf.h"

struct fleet;
struct host;
struct room;

struct version {
    struct object object;
    struct row_version row;
    struct fleet *fleet;
    int32_t rooms;                      /* starting, open and ending */
    struct shelf shelves[REGION_CODES]; /* its open rooms, by region */
    struct link in_fleet;
    struct link in_switching; /* core->switching: row.wanted is not 0 */

    struct list faults;                            /* hosts where it failed to start */
    struct list failing_in;                        /* … regions */
    struct fault_suspect suspects[FAULT_SUSPECTS]; /* since the last start that worked */
    int n_suspects;
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
