#include "net/loop.h"

#include "base/log.h"
#include "net/stream.h"

#include <assert.h>
#include <stdlib.h>

void loop_write(struct loop *loop)
{
    struct link *n;
    while ((n = list_first(&loop->dirty)))
        stream_write_now(n);
}

bool loop_may_write(const struct loop *loop)
{
    return !loop->hooks.may_write || loop->hooks.may_write(loop->hooks.user);
}

/* Handing on what was held back may resume other streams, and the hook may as well, so this goes
 * on until nobody is left: each stream is resumed a limited number of times by its owner. */
static void end_of_turn(struct loop *loop)
{
    do {
        struct link *n;
        while ((n = list_first(&loop->resumed)))
            stream_hand_on(n);
        loop->hooks.turn(loop->hooks.user);
    } while (!list_empty(&loop->resumed));
    loop_write(loop);
}

/* libuv knows how long it waited; the rest of the time was work. */
static void tell_work(struct loop *loop)
{
    uint64_t now_ns = uv_hrtime();
    uint64_t idle_ns = uv_metrics_idle_time(&loop->uv);
    uint64_t gone_ns = now_ns - loop->waited_ns;
    uint64_t waiting_ns = idle_ns - loop->idle_ns;
    bool first = loop->waited_ns == 0;
    loop->waited_ns = now_ns;
    loop->idle_ns = idle_ns;
    if (!first && gone_ns > waiting_ns)
        loop->hooks.worked(loop->hooks.user, (int64_t)((gone_ns - waiting_ns) / 1000));
}

/* Log lines come last: whoever writes them shall not take the processor from those who wait for
 * what was sent. */
static void on_before_poll(uv_prepare_t *handle)
{
    struct loop *loop = handle->data;
    end_of_turn(loop);
    log_flush();
    if (loop->hooks.worked)
        tell_work(loop);
}

static void on_hurry(uv_idle_t *handle)
{
    (void)handle;
}

static void shake_hands(struct loop *loop)
{
    struct link *n = list_first(&loop->shaking);
    uint64_t until_ns = n ? uv_hrtime() + (uint64_t)LOOP_SHAKING_US * 1000 : 0;
    while (n) {
        stream_shake_hands(n);
        n = list_first(&loop->shaking);
        if (n && uv_hrtime() >= until_ns) {
            uv_idle_start(&loop->hurry, on_hurry);
            return;
        }
    }
    uv_idle_stop(&loop->hurry);
}

static void on_after_poll(uv_check_t *handle)
{
    shake_hands(handle->data);
    end_of_turn(handle->data);
}

static void on_tick(uv_timer_t *handle)
{
    struct loop *loop = handle->data;
    struct link *n;
    while ((n = list_first(&loop->waiting)))
        stream_wait_no_more(n);
    while ((n = list_first(&loop->finishing)) && stream_cut_if_late(n))
        continue;
    loop->hooks.tick(loop->hooks.user);
}

void loop_init(struct loop *loop, const struct loop_hooks *hooks, const struct loop_limits *limits)
{
    *loop = (struct loop){
        .hooks = *hooks, .crowd = {.limits = *limits}, .streams_max = limits->streams};
    list_init(&loop->dirty);
    list_init(&loop->waiting);
    list_init(&loop->resumed);
    list_init(&loop->finishing);
    list_init(&loop->shaking);
    loop->read_buffer = xmalloc(LOOP_KEEP_MAX + LOOP_READ_SIZE);

    /* These fail only for want of descriptors or memory at the very start. */
    if (uv_loop_init(&loop->uv) != 0)
        abort();
    if (hooks->worked)
        uv_loop_configure(&loop->uv, UV_METRICS_IDLE_TIME);
    uv_timer_init(&loop->uv, &loop->tick);
    uv_prepare_init(&loop->uv, &loop->before_poll);
    uv_check_init(&loop->uv, &loop->after_poll);
    uv_idle_init(&loop->uv, &loop->hurry);
    loop->tick.data = loop->before_poll.data = loop->after_poll.data = loop;
    uv_timer_start(&loop->tick, on_tick, 0, LOOP_TICK_MS);
    uv_prepare_start(&loop->before_poll, on_before_poll);
    uv_check_start(&loop->after_poll, on_after_poll);
}

void loop_share(struct loop *loop, struct loop_crowd *crowd, const struct loop_limits *limits,
                size_t max)
{
    *crowd = (struct loop_crowd){.limits = *limits};
    loop->streams_max = max;
}

void loop_crowd_done(struct loop_crowd *crowd)
{
    assert(crowd->streams == 0);
    map_done(&crowd->by_address);
}

void loop_done(struct loop *loop)
{
    uv_close((uv_handle_t *)&loop->tick, NULL);
    uv_close((uv_handle_t *)&loop->before_poll, NULL);
    uv_close((uv_handle_t *)&loop->after_poll, NULL);
    uv_close((uv_handle_t *)&loop->hurry, NULL);
    uv_run(&loop->uv, UV_RUN_DEFAULT);
    int left = uv_loop_close(&loop->uv);
    assert(left == 0);
    (void)left;
    assert(loop->streams == 0);

    loop_crowd_done(&loop->crowd);
    for (size_t i = 0; i < loop->n_spares; i++)
        buf_done(&loop->spares[i]);
    free(loop->read_buffer);
    free(loop->sealed_buffer);
}

void loop_run(struct loop *loop)
{
    uv_run(&loop->uv, UV_RUN_DEFAULT);
}

void loop_stop(struct loop *loop)
{
    uv_stop(&loop->uv);
}

bool loop_may_complain(struct loop *loop)
{
    uint64_t now_ms = uv_now(&loop->uv);
    if (loop->complained_ms != 0 && now_ms - loop->complained_ms < 1000)
        return false;
    loop->complained_ms = now_ms;
    return true;
}

struct buf loop_take_spare(struct loop *loop)
{
    return loop->n_spares ? loop->spares[--loop->n_spares] : (struct buf){0};
}

void loop_give_spare(struct loop *loop, struct buf *b)
{
    assert(b->len == 0);
    if (loop->n_spares == LOOP_SPARES || b->cap == 0 || b->cap > LOOP_SPARE_MAX)
        buf_done(b);
    else
        loop->spares[loop->n_spares++] = *b;
    *b = (struct buf){0};
}
