/* A process as a node of a cell: it stands by, leads, and stands by again, until it is told to end.
 *
 *   start ──▶ STANDING BY ──nobody leads──▶ LEADING ──stepped down, lease lost──▶ STANDING BY
 *                 └────────── SIGTERM ─────────┴──▶ end
 *
 * Its ports are opened once and stay open. Owned by `muster serve`. */
#pragma once

#include "api/service.h"
#include "cli/running.h"

struct store;

/* A leadership, as whoever serves in it needs to know it. */
struct node_term {
    const char *cell;
    const char *node;
    int64_t epoch;
    int64_t since_ms; /* monotonic: when the lease was ours and all of the journal applied */
    bool changed;     /* the configuration is another than the core was loaded with */
};

/* What serves: described by `muster serve`, which knows the configuration. */
struct node_plan {
    const char *data; /* the folder */
    struct running *running;
    uint8_t *secret; /* CORE_SECRET_SIZE bytes, filled here; in `wanted`, too */

    /* The service as the configuration in force wants it; valid until it is asked again. */
    struct service_config *(*describe)(void *user);

    /* Serves with this store, which is taken over, as it was described last, until it is over.
     * Returns an exit code. */
    int (*lead)(void *user, struct store *store, const struct node_term *term,
                enum service_end *ret_end);

    /* Before anything is served: what else is kept in the folder. */
    void (*prepare)(void *user);
    void *user;
};

/* Returns an exit code; when it is not EXIT_DONE, why has been printed. */
int node_run(const struct node_plan *plan);
