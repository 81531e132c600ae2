#include "store/writer.h"

#include "base/buf.h"
#include "base/clock.h"

#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A batch on its way. Numbers of batches only grow; their place is their number's remainder:
 *
 *   polled ≤ ended ≤ begun ≤ submitted        ended: its result waits to be polled
 */
struct job {
    struct store_batch batch;
    int result; /* of begin, until it has ended */
    int64_t begun_us;
    int64_t commit_us;
};

struct writer {
    struct store *store;
    void (*notify)(void *user);
    void *user;
    pthread_t thread;
    int wake_fd; /* readable: something was submitted while the thread waits for the store */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    bool stop;
    struct job jobs[WRITER_DEPTH_MAX];
    uint64_t submitted;
    uint64_t begun;
    uint64_t ended;
    uint64_t polled;

    int64_t polled_us; /* the loop's side: commit_us of the last result handed out */
};

static struct job *job_of(struct writer *w, uint64_t number)
{
    return &w->jobs[number % WRITER_DEPTH_MAX];
}

/* With the lock held. False when it is time to end. */
static bool wait_for_work(struct writer *w)
{
    while (w->ended == w->submitted && !w->stop)
        pthread_cond_wait(&w->changed, &w->lock);
    return w->ended < w->submitted;
}

/* With the lock held, which is not held while the store works. For one that takes a batch at a
 * time this is the whole commit. */
static void begin_next(struct writer *w)
{
    struct job *job = job_of(w, w->begun);
    const struct store_ops *ops = w->store->ops;
    struct store_batch batch = job->batch;
    pthread_mutex_unlock(&w->lock);
    int64_t begun_us = clock_monotonic_us();
    int result = ops->depth > 0 ? ops->begin(w->store, &batch) : store_commit(w->store, &batch);
    pthread_mutex_lock(&w->lock);
    job->begun_us = begun_us;
    job->result = result;
    w->begun++;
}

/* With the lock held. False when there is something to begin before the oldest has ended. */
static bool await_oldest(struct writer *w)
{
    struct job *job = job_of(w, w->ended);
    if (w->store->ops->depth == 0 || job->result != 0)
        return true;
    uint64_t woken;
    int result = 0;
    pthread_mutex_unlock(&w->lock);
    bool ended = w->store->ops->end(w->store, w->wake_fd, &result);
    if (!ended)
        (void)!read(w->wake_fd, &woken, sizeof(woken));
    pthread_mutex_lock(&w->lock);
    job->result = result;
    return ended;
}

static void *writer_run(void *arg)
{
    struct writer *w = arg;
    const uint64_t depth = (uint64_t)store_depth(w->store);
    pthread_mutex_lock(&w->lock);
    while (wait_for_work(w)) {
        if (w->begun < w->submitted && w->begun - w->ended < depth) {
            begin_next(w);
            if (w->store->ops->depth > 0)
                continue;
        }
        if (!await_oldest(w))
            continue;
        struct job *job = job_of(w, w->ended);
        job->commit_us = clock_monotonic_us() - job->begun_us;
        w->ended++;
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
    assert(store_depth(store) <= WRITER_DEPTH_MAX);
    w->store = store;
    w->notify = notify;
    w->user = user;
    w->wake_fd = store->ops->depth > 0 ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
    assert(store->ops->depth == 0 || w->wake_fd >= 0);
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
    if (w->wake_fd >= 0)
        close(w->wake_fd);
    free(w);
}

void writer_submit(struct writer *w, const struct store_batch *batch)
{
    const uint64_t one = 1;
    pthread_mutex_lock(&w->lock);
    assert(w->submitted - w->polled < (uint64_t)store_depth(w->store));
    bool waits = w->begun > w->ended;
    job_of(w, w->submitted)->batch = *batch;
    w->submitted++;
    pthread_mutex_unlock(&w->lock);
    pthread_cond_broadcast(&w->changed); /* not under the lock, which the thread wants at once */
    if (waits && w->wake_fd >= 0)
        (void)!write(w->wake_fd, &one, sizeof(one));
}

bool writer_poll(struct writer *w, int *ret_result)
{
    pthread_mutex_lock(&w->lock);
    bool ended = w->polled < w->ended;
    if (ended) {
        const struct job *job = job_of(w, w->polled);
        *ret_result = job->result;
        w->polled_us = job->commit_us;
        w->polled++;
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
    while (w->ended < w->submitted)
        pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
}
