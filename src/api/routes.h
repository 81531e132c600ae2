/* Routes: keeps the file of a proxy (routes_file.h) as core has the seats. What core holds may not
 * be durable yet, so it is read like anybody reads it (EVENT_READ) and written when that is; what
 * changes meanwhile is written together, afterwards. Writing is done off the loop's thread.
 *
 * Owned by the service. On the loop's thread. */
#pragma once

#include "api/door.h"
#include "core/effect.h"

struct routes;

/* Writes once in any case. path: of the file; copied. filters: those that route by token stand in
 * it, too. What it works with must outlive it. */
struct routes *routes_new(struct doors *doors, const char *path, bool filters);

/* What is being written is still finished, by the loop's last turns. NULL is fine. */
void routes_free(struct routes *r);

/* pipeline_world's release, and the end of a turn before the pipeline is flushed. r may be NULL. */
void routes_release(struct routes *r, const struct effect *effects, size_t n);
void routes_before_flush(struct routes *r);

/* For metrics. */
struct routes_figures {
    int64_t routes; /* in the file */
    int64_t written;
    int64_t failed;
};
void routes_figures(const struct routes *r, struct routes_figures *ret);
