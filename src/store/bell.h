/* A bell: a thread sleeps until somebody rings, until its time is over, or until it shall end. What
 * is rung while it is awake wakes it the next time. Embedded by the thread's owner. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct bell {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool rung;
    _Atomic bool stop; /* also for whoever looks at it while he works */
};

void bell_init(struct bell *b);
void bell_done(struct bell *b);

/* Any thread. */
void bell_ring(struct bell *b);
void bell_stop(struct bell *b);

/* The thread that sleeps. deaf: ringing does not cut it short. False when it is time to end. */
bool bell_wait(struct bell *b, int64_t wait_ms, bool deaf);
