/* Archives: every node of a cell has what agents fetch from the one that leads. What is missing is
 * pulled from the other nodes, one after the other, and has its name only when it is whole, on
 * disk, and what its digest says. Owned by the standby, or by the service of a leader that took
 * over before it had them all; used on the loop's thread. */
#pragma once

#include "api/cluster.h"
#include "store/archive.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct access;
struct archives;
struct loop;

enum { ARCHIVES_URL = CLUSTER_URL };

struct archives_config {
    struct loop *loop;
    const char *folder;          /* of archives; made when needed */
    const struct access *access; /* makes the token we show to the other nodes */
    const char *node;            /* our name */
    const char *ca_file;         /* who may sign their certificates; "" = the system's */

    /* The digests of those that there should be, each once: as follower_deployments. */
    size_t (*wanted)(void *user, uint8_t (*ret)[ARCHIVE_DIGEST], size_t max);

    /* The HTTP port of the i-th node that may have them, the likeliest first; false = no more. */
    bool (*source)(void *user, size_t i, char ret[ARCHIVES_URL]);

    /* What archives_are_here says may be another; from the loop. */
    void (*changed)(void *user);
    void *user;
};

/* All that it is given is borrowed until archives_free. */
struct archives *archives_new(const struct archives_config *config);

/* There are other nodes than before: what failed is tried again at once. */
void archives_try_again(struct archives *a);

/* Looks which there are and which there should be, and begins to pull. */
void archives_look(struct archives *a);

/* The loop's tick: looks from time to time, and tries again what failed. */
void archives_tick(struct archives *a, int64_t monotonic_ms);

/* Whether none was missing at the last look; else why is a sentence. */
bool archives_are_here(const struct archives *a, char why[CLUSTER_WHY_MAX]);

/* Breaks off what is under way: the loop is to end soon. */
void archives_stop(struct archives *a);

/* NULL is fine. What is on another thread ends with the loop. */
void archives_free(struct archives *a);
