#include "store/bell.h"

#include <errno.h>
#include <time.h>

void bell_init(struct bell *b)
{
    b->rung = false;
    b->stop = false;
    pthread_mutex_init(&b->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&b->changed, &attr);
    pthread_condattr_destroy(&attr);
}

void bell_done(struct bell *b)
{
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->lock);
}

void bell_ring(struct bell *b)
{
    pthread_mutex_lock(&b->lock);
    b->rung = true;
    pthread_cond_signal(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

void bell_stop(struct bell *b)
{
    pthread_mutex_lock(&b->lock);
    b->stop = true;
    pthread_cond_signal(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

static struct timespec moment_in(int64_t wait_ms)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += wait_ms / 1000;
    at.tv_nsec += wait_ms % 1000 * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return at;
}

bool bell_wait(struct bell *b, int64_t wait_ms, bool deaf)
{
    struct timespec until = moment_in(wait_ms > 0 ? wait_ms : 0);
    pthread_mutex_lock(&b->lock);
    while (!b->stop && (deaf || !b->rung)) {
        if (pthread_cond_timedwait(&b->changed, &b->lock, &until) == ETIMEDOUT)
            break;
    }
    b->rung = false;
    bool stop = b->stop;
    pthread_mutex_unlock(&b->lock);
    return !stop;
}
