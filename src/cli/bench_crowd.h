/* A crowd: core in this process with game servers and one chat server that are nothing but events,
 * so that core is measured without sockets, threads and disks. Owned by the benchmark. */
#pragma once

#include "core/batch.h"
#include "core/core.h"

#include <stdbool.h>
#include <stdint.h>

enum { CROWD_HELD_MAX = 4096 };

struct crowd {
    struct core *core;
    struct batch batch;
    struct instant now;
    int servers;
    int32_t lobby; /* the last one used */

    /* Matches that are open, oldest first. */
    struct crowd_match {
        conn_id conn;
        int32_t server_id;
        int32_t lobby;
    } held[CROWD_HELD_MAX];
    int first;
    int n_held;

    /* Called with each sealed batch before it is forgotten; may be NULL. */
    void (*sealed)(void *user, const struct batch *batch);
    void *user;
};

/* All servers register, in one region, and a chat server for it. secret may be NULL. */
void crowd_init(struct crowd *c, int servers, const uint8_t *secret,
                void (*sealed)(void *user, const struct batch *batch), void *user);
void crowd_done(struct crowd *c);

/* n times: a request, its server's ACK in the batch after it, the answer; where hold matches are
 * open the oldest one ends. players of each match come in, each with its seat. */
void crowd_allocate(struct crowd *c, int n, int hold, int players);

/* Every server heartbeats once, spread over period_ms of core time, with ticks. */
void crowd_beat(struct crowd *c, int64_t period_ms);
