#include "fixture.h"

#include "store/memory.h"
#include "store/writer.h"

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

static void post(void *user)
{
    sem_post(user);
}

static void await(sem_t *sem)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 10;
    assert_int_equal(sem_timedwait(sem, &until), 0);
}

static struct store_batch batch_of(int64_t seq, const struct buf *changes)
{
    return (struct store_batch){.seq = seq,
                                .core_ms = seq * 10,
                                .wall_ms = seq * 100,
                                .changes = changes->data,
                                .len = changes->len};
}

static void commits_one_after_the_other(void **state)
{
    (void)state;
    sem_t ended;
    sem_init(&ended, 0, 0);
    struct store *store = store_open_memory();
    struct writer *w = writer_start(store, post, &ended);
    struct buf changes = {0};
    int result = -1;
    assert_false(writer_poll(w, &result));
    for (int64_t seq = 1; seq <= 500; seq++) {
        model_batch(&changes, seq);
        struct store_batch batch = batch_of(seq, &changes);
        writer_submit(w, &batch);
        if (seq % 2)
            await(&ended);
        else
            writer_wait(w);
        assert_true(writer_poll(w, &result));
        assert_int_equal(result, 0);
        assert_false(writer_poll(w, &result));
        if (seq % 2 == 0)
            await(&ended);
    }
    writer_wait(w);
    writer_stop(w);
    model_check(store, 500);
    store_close(store);
    buf_done(&changes);
    sem_destroy(&ended);
}

static void hands_a_failure_back(void **state)
{
    (void)state;
    sem_t ended;
    sem_init(&ended, 0, 0);
    struct store *store = store_open_memory();
    struct writer *w = writer_start(store, post, &ended);
    struct buf changes = {0};
    model_batch(&changes, 1);
    struct store_batch batch = batch_of(1, &changes);
    int result = 0;

    store_memory_fail(store, STORE_MEMORY_FAILS);
    writer_submit(w, &batch);
    await(&ended);
    assert_true(writer_poll(w, &result));
    assert_int_equal(result, ERR_IO);

    store_memory_fail(store, STORE_MEMORY_WORKS);
    writer_submit(w, &batch);
    await(&ended);
    assert_true(writer_poll(w, &result));
    assert_int_equal(result, 0);
    writer_stop(w);
    model_check(store, 1);
    store_close(store);
    buf_done(&changes);
    sem_destroy(&ended);
}

/* A store whose commit lasts until the test says so. */
struct slow_store {
    struct store base;
    sem_t begun;
    sem_t may_end;
    _Atomic int commits;
};

static int slow_commit(struct store *s, const struct store_batch *batch)
{
    (void)batch;
    struct slow_store *slow = (struct slow_store *)s;
    sem_post(&slow->begun);
    sem_wait(&slow->may_end);
    slow->commits++;
    return 0;
}

static void *release_later(void *arg)
{
    sem_post(&((struct slow_store *)arg)->may_end);
    return NULL;
}

static void stopping_waits_for_the_commit_under_way(void **state)
{
    (void)state;
    static const struct store_ops ops = {.commit = slow_commit};
    struct slow_store slow = {.base = {&ops}};
    sem_init(&slow.begun, 0, 0);
    sem_init(&slow.may_end, 0, 0);
    sem_t ended;
    sem_init(&ended, 0, 0);
    struct writer *w = writer_start(&slow.base, post, &ended);
    struct buf empty = {0};
    struct store_batch batch = batch_of(1, &empty);
    writer_submit(w, &batch);
    await(&slow.begun);
    int result;
    assert_false(writer_poll(w, &result));
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, release_later, &slow), 0);
    writer_stop(w);
    assert_int_equal(slow.commits, 1);
    assert_int_equal(sem_trywait(&ended), 0);
    pthread_join(thread, NULL);
}

/* A store to which three batches can be on their way; what becomes of the oldest is written into a
 * pipe by the test. */
struct deep_store {
    struct store base;
    sem_t begun;
    int outcomes[2];
    int64_t seqs[16];
    _Atomic int n_begun;
    int refused; /* the number of the batch that cannot be begun */
};

static int deep_begin(struct store *s, const struct store_batch *batch)
{
    struct deep_store *deep = (struct deep_store *)s;
    deep->seqs[deep->n_begun++] = batch->seq;
    sem_post(&deep->begun);
    return batch->seq == deep->refused ? ERR_IO : 0;
}

static bool deep_end(struct store *s, int wake_fd, int *ret_result)
{
    struct deep_store *deep = (struct deep_store *)s;
    struct pollfd fds[2] = {{.fd = deep->outcomes[0], .events = POLLIN},
                            {.fd = wake_fd, .events = POLLIN}};
    assert_true(poll(fds, 2, 10000) > 0);
    if (!fds[0].revents)
        return false;
    assert_int_equal(read(deep->outcomes[0], ret_result, sizeof(*ret_result)), sizeof(*ret_result));
    return true;
}

static void ends_with(struct deep_store *deep, int outcome)
{
    assert_int_equal(write(deep->outcomes[1], &outcome, sizeof(outcome)), sizeof(outcome));
}

static void the_next_is_begun_while_the_last_is_under_way(void **state)
{
    (void)state;
    static const struct store_ops ops = {.depth = 3, .begin = deep_begin, .end = deep_end};
    struct deep_store deep = {.base = {&ops}, .refused = 6};
    sem_t ended;
    struct buf empty = {0};
    int result = -1;
    sem_init(&deep.begun, 0, 0);
    sem_init(&ended, 0, 0);
    assert_int_equal(pipe(deep.outcomes), 0);
    struct writer *w = writer_start(&deep.base, post, &ended);
    for (int64_t seq = 1; seq <= 3; seq++) {
        struct store_batch batch = batch_of(seq, &empty);
        writer_submit(w, &batch);
        await(&deep.begun); /* none has ended */
        assert_int_equal(deep.seqs[seq - 1], seq);
    }
    assert_false(writer_poll(w, &result));
    for (int64_t seq = 4; seq <= 6; seq++) {
        ends_with(&deep, seq == 5 ? ERR_IO : 0);
        await(&ended);
        assert_true(writer_poll(w, &result));
        assert_int_equal(result, seq == 5 ? ERR_IO : 0);
        assert_true(writer_commit_us(w) > 0);
        struct store_batch batch = batch_of(seq, &empty);
        writer_submit(w, &batch);
        await(&deep.begun);
    }
    ends_with(&deep, 0);
    ends_with(&deep, 0);
    writer_wait(w); /* the last could not be begun: that is its end, in its turn */
    for (int i = 0; i < 3; i++) {
        assert_true(writer_poll(w, &result));
        assert_int_equal(result, i == 2 ? ERR_IO : 0);
    }
    writer_stop(w);
    assert_int_equal(deep.n_begun, 6);
    close(deep.outcomes[0]);
    close(deep.outcomes[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_is_begun_while_the_last_is_under_way),
        cmocka_unit_test(commits_one_after_the_other),
        cmocka_unit_test(hands_a_failure_back),
        cmocka_unit_test(stopping_waits_for_the_commit_under_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
