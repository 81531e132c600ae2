/* GET /v1/backup: a copy of what a node needs to go on, as one archive. It is copied, and read
 * block by block, on one of libuv's threads: a slow disk holds up nobody else. The loop hands out
 * each block as fast as the client takes it. One at a time: a copy takes room on the disk.
 *
 *   OPERATE_BACKUP (the audit) ──▶ COPYING ──▶ READING ◀──▶ GIVING ──▶ REMOVING ──▶ its end
 *   at any time: the client is gone, or too slow; then what was copied is removed at once.
 * Its end is only told when the copy is removed: whoever has a backup can take the next one. */
#include "store/backup.h"

#include "api/backup.h"
#include "api/call.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "net/loop.h"

#include <stdlib.h>

enum { SEND_BLOCK = 256 * 1024 };

struct backup_job {
    uv_work_t work;
    struct rest *rest;
    struct call *call; /* NULL: the client is gone */
    bool deployments;
    int64_t wall_ms; /* when it was begun */
    _Atomic bool stop;
    bool working; /* on another thread: only stop may be touched */
    struct backup *made;

    struct buf block; /* what was read of it last */
    size_t given;     /* … and how much of that the client has */
    bool more;        /* something follows the block */
    int64_t gave_ms;  /* monotonic: since when the client has what it was given; 0 = nothing yet */
    struct backup_pace pace;
};

bool backup_pace_holds(struct backup_pace *p, int64_t bytes, int64_t waited_ms)
{
    p->bytes += bytes;
    p->waited_ms += waited_ms;
    if (p->waited_ms > BACKUP_STRIDE_MS)
        return false;
    if (p->bytes >= BACKUP_STRIDE)
        *p = (struct backup_pace){0};
    return true;
}

static void copy(uv_work_t *work)
{
    struct backup_job *job = work->data;
    struct backup_wanted wanted = {.folder = job->rest->data,
                                   .version = MUSTER_VERSION,
                                   .wall_ms = job->wall_ms,
                                   .deployments = job->deployments};
    backup_make(job->rest->store, &wanted, &job->stop, &job->made);
    job->more = true;
}

static void read_block(uv_work_t *work)
{
    struct backup_job *job = work->data;
    buf_clear(&job->block);
    job->more = backup_read(job->made, &job->block, SEND_BLOCK) > 0;
}

static void throw_away(uv_work_t *work)
{
    struct backup_job *job = work->data;
    backup_free(job->made);
}

static void after_throwing(uv_work_t *work, int status)
{
    (void)status;
    struct backup_job *job = work->data;
    job->rest->backup = NULL;
    if (job->call) {
        job->call->backup = NULL;
        http_wake(job->call->http);
    }
    buf_done(&job->block);
    free(job);
}

static void begin_removing(struct backup_job *job)
{
    job->working = true;
    (void)uv_queue_work(&job->rest->doors->loop->uv, &job->work, throw_away, after_throwing);
}

void backup_drop(struct backup_job *job)
{
    if (!job)
        return;
    job->call = NULL;
    job->stop = true;
    if (!job->working)
        begin_removing(job);
}

static void go_on(struct backup_job *job)
{
    job->working = false;
    if (job->call)
        http_wake(job->call->http);
    else
        begin_removing(job);
}

static void after_copy(uv_work_t *work, int status)
{
    (void)status;
    struct backup_job *job = work->data;
    const char *why = NULL;
    char quoted[LOG_QUOTE_MAX + 8];
    if (backup_failed(job->made, &why) && job->call)
        log_line(LOG_WARN, "backup failed", "why=%s", log_quote(quoted, str_of(why)));
    go_on(job);
}

static void after_reading(uv_work_t *work, int status)
{
    (void)status;
    struct backup_job *job = work->data;
    job->given = 0;
    go_on(job);
}

static void begin_reading(struct backup_job *job)
{
    job->gave_ms = 0; /* the client waits for us */
    job->working = true;
    (void)uv_queue_work(&job->rest->doors->loop->uv, &job->work, read_block, after_reading);
}

/* False when the client has been too slow for too long: the next one must not wait for it. */
static bool keeps_up(struct backup_job *job, int64_t now_ms, size_t taken)
{
    int64_t waited_ms = job->gave_ms ? now_ms - job->gave_ms : 0;
    job->gave_ms = now_ms;
    return backup_pace_holds(&job->pace, (int64_t)taken, waited_ms);
}

/* The client has taken all that it was given. */
static bool pull(void *user, struct http_request *http, struct buf *out, size_t max)
{
    (void)user;
    struct call *c = http_data(http);
    struct backup_job *job = c->backup;
    if (!job || job->working)
        return job != NULL; /* until it is copied or read */
    size_t left = job->block.len - job->given;
    size_t n = left < max ? left : max;
    if (!keeps_up(job, clock_monotonic_ms(), n)) {
        log_line(LOG_WARN, "backup cut off", "account=%s why=\"the client reads too slowly\"",
                 c->who.account);
        c->backup = NULL;
        backup_drop(job);
        return false;
    }
    if (n > 0) {
        buf_append(out, job->block.data + job->given, n);
        job->given += n;
        return true;
    }
    if (job->more)
        begin_reading(job);
    else
        begin_removing(job);
    return true;
}

/* It is in the audit, durably: now it may leave. */
static void begin(struct call *c)
{
    struct backup_job *job = c->backup;
    job->wall_ms = c->rest->doors->wall_ms;
    job->working = true;
    call_stream(c, BACKUP_CONTENT_TYPE, pull);
    (void)uv_queue_work(&c->rest->doors->loop->uv, &job->work, copy, after_copy);
}

/* From here on nobody else can begin one, so that each in the audit is one that was begun. */
static void reserve(struct call *c)
{
    struct backup_job *job = xcalloc(1, sizeof(*job));
    job->work.data = job;
    job->rest = c->rest;
    job->call = c;
    job->deployments = call_argument(c, "deployments")->number != 0;
    c->rest->backup = c->backup = job;
}

void handle_backup(struct call *c)
{
    if (!c->rest->data || !store_can_copy(c->rest->store)) {
        call_refuse(c, ERR_NOT_FOUND, NULL, "This Muster keeps nothing, so there is no backup.");
        call_answer(c);
        return;
    }
    if (c->rest->backup) {
        call_refuse(c, ERR_BUSY, NULL, "Another backup is being made. Try again when it is done.");
        call_answer(c);
        return;
    }
    reserve(c);
    struct operate o = {.verb = OPERATE_BACKUP,
                        .detail = c->backup->deployments ? STR("with deployments")
                                                         : STR("without deployments")};
    call_operate(c, &o, begin);
}
