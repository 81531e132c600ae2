/* Versions of a fleet's game, and the deployments they run. Visible inside src/core only. */
#pragma once

#include "base/list.h"
#include "core/core.h"
#include "core/object.h"
#include "core/shelf.h"

struct fleet;
struct room;

struct version {
    struct object object;
    struct row_version row;
    struct fleet *fleet;
    int32_t rooms;                      /* starting, open and ending */
    struct shelf shelves[REGION_CODES]; /* its open rooms, by region */
    struct link in_fleet;
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

int version_load_row(struct core *core, const struct row_version *row);
int deployment_load_row(struct core *core, const struct row_deployment *row);
void version_done(struct version *version); /* what it owns besides itself */
