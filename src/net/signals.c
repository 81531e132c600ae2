#include "net/signals.h"

#include "base/log.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#include <uv.h>

static void hear(bool on)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    (void)pthread_sigmask(on ? SIG_UNBLOCK : SIG_BLOCK, &set, NULL);
}

static void nothing(uv_work_t *work)
{
    (void)work;
}

static void nothing_done(uv_work_t *work, int status)
{
    (void)work;
    (void)status;
}

static void start_pool(void)
{
    uv_loop_t loop;
    uv_work_t work;
    (void)uv_loop_init(&loop);
    (void)uv_queue_work(&loop, &work, nothing, nothing_done);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&loop);
}

/* A thread that hears them while no loop does would end the process. */
void signals_hold(void)
{
    hear(false);
    start_pool();
    log_gather(true);
    log_gather(false);
}

void signals_run(struct loop *loop)
{
    hear(true);
    loop_run(loop);
    hear(false);
    (void)uv_run(&loop->uv, UV_RUN_NOWAIT);
}

void signals_stop(int number, bool *before)
{
    if (*before) {
        log_gather(false);
        _exit(1);
    }
    *before = true;
    log_line(LOG_INFO, "stopping", "signal=%s", number == SIGTERM ? "SIGTERM" : "SIGINT");
}
