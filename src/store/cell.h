/* A cell: a set of fleets with one journal and one lease, in one schema of PostgreSQL. Its nodes,
 * how they are seen, and what each needs to know to be one of them. Nothing here is owned. */
#pragma once

#include "store/lease.h"
#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CELL_NAME_MAX = 48, /* with its NUL; the schema is "muster_" and this */
    CELL_PRINT = 16,    /* bytes of a secret's print */
    CELL_NODES_MAX = 32 /* that are shown; there may be more */
};

/* Addresses are as others reach them: http is "http://10.0.0.1:9508", the others "10.0.0.1:11031".
 */
struct cell_node {
    int64_t id; /* of this life of the node; not 0 */
    char name[64];
    char http[256];
    char server[64];
    char manager[64];
    char client[64];
    char version[32];
};

/* Texts are borrowed for as long as whoever was given it lives. */
struct cell_config {
    const char *url;
    const char *cell;
    struct cell_node self;
    int64_t lease_ms;
    uint8_t secret_print[CELL_PRINT]; /* of the secret that all nodes share */
};

/* A leadership that was taken. The times of the lease are those of clock_boot_ms(), which goes on
 * while the machine sleeps: a leader that wakes up knows that it is none. */
struct cell_term {
    int64_t epoch;
    struct lease lease;
    int64_t heard_ms; /* when the newest batch came, by clock_boot_ms; 0 = it was there before us */
};

/* A row of the table of nodes. */
struct cell_seen_node {
    struct cell_node node;
    int64_t seq; /* the newest batch it has */
    bool ready;
    int64_t heard_ms; /* so long ago, by the database's clock */
};

/* A cell as one of its nodes sees it. */
struct cell_view {
    char cell[CELL_NAME_MAX];
    int64_t epoch;
    int64_t seq; /* the newest batch of the journal */
    int64_t lease_ms;
    int64_t left_ms; /* of the leader's lease, should nobody renew it, as this node counts */
    struct cell_node leader; /* id 0 = nobody leads */
    struct cell_seen_node nodes[CELL_NODES_MAX];
    size_t n_nodes;
};

/* 1 to 32 characters of a-z, 0-9 and _. */
bool cell_name_is_good(const char *name);

/* Connects, makes the schema when it is absent or brings it up (forward only; a newer one is
 * refused), and checks the secret's print. ERR_IO or ERR_FORMAT with a sentence, which never shows
 * the password of the URL. Several callers at once are fine. */
int cell_prepare(const struct cell_config *c, struct why *why);
