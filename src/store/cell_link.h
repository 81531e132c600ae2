/* Connections to a cell: whose names are looked up in its schema. A connection belongs to whoever
 * made it. */
#pragma once

#include "store/cell.h"
#include "store/libpq.h"

enum { CELL_SCHEMA_SIZE = CELL_NAME_MAX + 7 };

/* "muster_NAME": the schema, and the channel on which standbys hear of new batches. Returns dst. */
const char *cell_schema(const char *cell, char dst[CELL_SCHEMA_SIZE]);

/* As pg_connect. what: what it is for, in pg_stat_activity. */
int cell_connect(const struct cell_config *c, const char *what, int64_t connect_ms,
                 int64_t answer_ms, struct pg **ret, struct why *why);

/* cell_prepare for somebody who is connected. After a failure the connection must be closed. */
int cell_prepare_on(struct pg *pg, const struct cell_config *c, struct why *why);

/* From now on pg_wait hears of new batches, and of a lease that was given back. */
int cell_listen(struct pg *pg, const char *cell, struct why *why);
