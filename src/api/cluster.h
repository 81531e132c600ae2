/* A cell over HTTP: who leads it, its nodes, stepping down, and what a standby says to whatever it
 * does not answer itself. Where the store is this node's own there is no cell, and it leads.
 * Answers are filled from copies; nothing is owned. */
#pragma once

#include "api/shape.h"
#include "store/cell.h"
#include "store/follower.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct call;

enum {
    CLUSTER_WHY_MAX = 512,
    CLUSTER_AWAY_MS = 5000, /* a node speaks each second */
};

/* How a standby is, for those who ask over HTTP. */
struct cluster_standby {
    void (*look)(void *user, struct cell_view *ret);
    void (*follow)(void *user, struct follower_view *ret);
    bool (*is_ready)(void *user, char why[CLUSTER_WHY_MAX]); /* false: why is a sentence */
    void *user;
};

struct node_answer {
    const char *name;
    const char *state;
    const char *http;
    const char *version;
    int64_t seq;
    int64_t behind;
    bool ready;
    int64_t heard_ms;
};

struct cluster_answer {
    const struct cell_view *view; /* NULL = there is no cell */
    const char *store;
    const char *cell; /* "" = there is none */
    int64_t epoch;
    int64_t lease_ms;
    struct node_answer nodes[CELL_NODES_MAX];
    size_t n_nodes;
    size_t n_standbys; /* that are there … */
    size_t n_ready;    /* … and could lead at once */
    char text[CLUSTER_WHY_MAX];
    const char *sentence;
};

struct leader_answer {
    bool leads;
    const char *cell; /* this and the next may be "" */
    const char *name;
    const char *http;
    const char *server;
    const char *manager;
    const char *client;
    int64_t epoch;
    const char *sentence;
};

extern const struct shape node_shape;        /* struct node_answer */
extern const struct shape cell_leader_shape; /* struct cell_node */
extern const struct shape cluster_shape;     /* struct cluster_answer */
extern const struct shape leader_shape;      /* struct leader_answer */

/* What is to be said of the cell; NULL = there is none. Points into *view. */
void cluster_describe(const struct cell_view *view, struct cluster_answer *ret);

/* The HTTP port of the i-th other node that can be asked for something: the leader first, then
 * standbys that are there. False = there is none. */
enum { CLUSTER_URL = 256 };
bool cluster_source(const struct cell_view *view, int64_t self, size_t i, char ret[CLUSTER_URL]);

/* Where to go instead: 307 with the leader's address, or 503 when there is none. A standby's answer
 * to all but the operations of any node. Ends the call. */
void cluster_send_on(struct call *c);
