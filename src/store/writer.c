#include "store/writer.h"

#include "base/buf.h"
#include "base/clock.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

/*            submit               commit ends             poll
 *   WRITER_IDLE ──▶ WRITER_COMMITTING ──▶ WRITER_ENDED ──▶ WRITER_IDLE
 */
enum writer_state { WRITER_IDLE, WRITER_COMMITTING, WRITER_ENDED };

struct writer {
    struct store *store;
    void (*notify)(void *user);
    void *user;
    pthread_t thread;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    enum writer_state state;
    bool stop;
    struct store_batch batch;
    int result;
    int64_t commit_us;

    int64_t polled_us; /* the loop's side: commit_us of the last result handed out */
};

/* With the lock held. False when it is time to end. */
static bool wait_for_work(struct writer *w)
{
    while (w->state != WRITER_COMMITTING && !w->stop)
        pthread_cond_wait(&w->changed, &w->lock);
    return w->state == WRITER_COMMITTING;
}

static void *writer_run(void *arg)
{
    struct writer *w = arg;
    pthread_mutex_lock(&w->lock);
    while (wait_for_work(w)) {
        struct store_batch batch = w->batch;
        pthread_mutex_unlock(&w->lock);
        int64_t start_us = clock_monotonic_us();
        int result = store_commit(w->store, &batch);
        int64_t end_us = clock_monotonic_us();
        pthread_mutex_lock(&w->lock);
        w->result = result;
        w->commit_us = end_us - start_us;
        w->state = WRITER_ENDED;
        pthread_cond_broadcast(&w->changed);
        /* Not under the lock: the loop may wake at once and ask. */
        pthread_mutex_unlock(&w->lock);
        w->notify(w->user);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

struct writer *writer_start(struct store *store, void (*notify)(void *user), void *user)
{
    struct writer *w = xcalloc(1, sizeof(*w));
    w->store = store;
    w->notify = notify;
    w->user = user;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    int err = pthread_create(&w->thread, NULL, writer_run, w);
    assert(err == 0);
    (void)pthread_setname_np(w->thread, "commit");
    return w;
}

void writer_stop(struct writer *w)
{
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

void writer_submit(struct writer *w, const struct store_batch *batch)
{
    pthread_mutex_lock(&w->lock);
    assert(w->state == WRITER_IDLE);
    w->batch = *batch;
    w->state = WRITER_COMMITTING;
    pthread_mutex_unlock(&w->lock);
    pthread_cond_broadcast(&w->changed); /* not under the lock, which the thread wants at once */
}

bool writer_poll(struct writer *w, int *ret_result)
{
    pthread_mutex_lock(&w->lock);
    bool ended = w->state == WRITER_ENDED;
    if (ended) {
        *ret_result = w->result;
        w->polled_us = w->commit_us;
        w->state = WRITER_IDLE;
    }
    pthread_mutex_unlock(&w->lock);
    return ended;
}

int64_t writer_commit_us(const struct writer *w)
{
    return w->polled_us;
}

void writer_wait(struct writer *w)
{
    pthread_mutex_lock(&w->lock);
    while (w->state == WRITER_COMMITTING)
        pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
}
