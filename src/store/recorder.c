/* Writing: the loop fills one buffer, the thread writes another, and they are swapped. */
#include "store/recorder.h"

#include "base/clock.h"
#include "base/date.h"
#include "base/full.h"
#include "base/log.h"
#include "store/segment.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum {
    SEGMENTS_OF_WHOLE = 64, /* a segment is so small a part of all … */
    SEGMENT_MIN = 16 * 1024,
    SEGMENT_MAX = 32 * 1024 * 1024,
    SEGMENT_AGE_MS = 6 * 3600 * 1000, /* … and no longer than this, so that days can be counted */
    SWEEP_MS = 10 * 60 * 1000,
    STOP_MS = 2000,
    BUSY_BYTES = 4096, /* after so many, lines wait for company … */
    REST_MS = 10,      /* … that long at most */
    ENOUGH_BYTES = 256 * 1024,
};

/* Lines, each with its end. */
struct lines {
    struct buf text;
    int64_t n;
};

struct recorder {
    char folder[PATH_MAX];
    struct recorder_limits limits;
    int64_t segment_max;
    pthread_t thread;

    /* the loop's */
    struct lines added;
    int64_t lost_here;
    int64_t second; /* what `head` says */
    char head[DATE_SIZE];

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t work;
    pthread_cond_t settled;
    struct lines waiting;
    int64_t handed; /* lines, written or lost or waiting */
    int64_t done;   /* … of which the thread is done with so many */
    bool resting;   /* it has just written, and is woken for what is urgent only */
    bool hurry;     /* somebody waits until all is written */
    bool stop;
    struct recorder_figures figures;

    /* the thread's */
    int fd;                       /* -1 = none is open */
    char name[SEGMENT_NAME_SIZE]; /* of it */
    int64_t size;
    int64_t opened_ms; /* monotonic */
    int64_t swept_ms;
    int64_t number;   /* of the last segment */
    int64_t gap;      /* lines that were lost and of which no line tells */
    int64_t gap_told; /* lost lines of which one does */
    int64_t retry_ms; /* monotonic: what failed is not tried again before this */
    bool complained;
};

const char *recorder_at(int64_t wall_ms, char dst[RECORDER_AT_SIZE])
{
    char date[DATE_SIZE];
    int64_t ms = wall_ms > 0 ? wall_ms % 1000 : 0;
    (void)snprintf(dst, RECORDER_AT_SIZE, "%.19s.%03dZ", date_print(wall_ms, date), (int)ms);
    return dst;
}

/* ── the loop's side ───────────────────────────────────────────────────────────────────────── */

/* Dates are walked to, so a second is printed once. */
static void put_head(struct recorder *r, int64_t wall_ms)
{
    if (r->second != wall_ms / 1000) {
        r->second = wall_ms / 1000;
        (void)date_print(wall_ms, r->head);
    }
    int ms = (int)(wall_ms % 1000);
    char tail[] = {'.', (char)('0' + ms / 100), (char)('0' + ms / 10 % 10), (char)('0' + ms % 10)};
    buf_append(&r->added.text, "{\"at\":\"", 7);
    buf_append(&r->added.text, r->head, 19);
    buf_append(&r->added.text, tail, sizeof(tail));
    buf_append(&r->added.text, "Z\",", 3);
}

void recorder_add(struct recorder *r, int64_t wall_ms, struct str members)
{
    if (members.len > RECORDER_LINE_MAX ||
        r->added.text.len + members.len > RECORDER_WAITING_MAX / 2) {
        r->lost_here++;
        return;
    }
    put_head(r, wall_ms > 0 ? wall_ms : 0);
    buf_append(&r->added.text, members.at, members.len);
    buf_append(&r->added.text, "}\n", 2);
    r->added.n++;
}

/* With the lock held. The buffers are swapped as long as the thread keeps up. */
static void hand_over(struct recorder *r)
{
    if (r->waiting.text.len == 0) {
        struct lines empty = r->waiting;
        r->waiting = r->added;
        r->added = empty;
    } else if (r->waiting.text.len + r->added.text.len <= RECORDER_WAITING_MAX) {
        buf_append(&r->waiting.text, r->added.text.data, r->added.text.len);
        r->waiting.n += r->added.n;
    } else {
        r->figures.lost += r->added.n;
        r->done += r->added.n;
    }
}

/* With the lock held. */
static bool is_urgent(const struct recorder *r)
{
    return r->hurry || r->stop || r->waiting.text.len >= ENOUGH_BYTES;
}

void recorder_turn(struct recorder *r)
{
    if (r->added.n == 0 && r->lost_here == 0)
        return;
    pthread_mutex_lock(&r->lock);
    r->handed += r->added.n;
    r->figures.lost += r->lost_here;
    hand_over(r);
    bool call = !r->resting || is_urgent(r);
    pthread_mutex_unlock(&r->lock);
    if (call)
        pthread_cond_signal(&r->work);
    buf_clear(&r->added.text);
    r->added.n = 0;
    r->lost_here = 0;
}

void recorder_figures(struct recorder *r, struct recorder_figures *ret)
{
    pthread_mutex_lock(&r->lock);
    *ret = r->figures;
    pthread_mutex_unlock(&r->lock);
}

static struct timespec in_ms(int64_t ms)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    int64_t ns = t.tv_nsec + ms % 1000 * 1000000;
    t.tv_sec += (time_t)(ms / 1000 + ns / 1000000000);
    t.tv_nsec = (long)(ns % 1000000000);
    return t;
}

void recorder_settle(struct recorder *r, int64_t wait_ms)
{
    struct timespec until = in_ms(wait_ms);
    pthread_mutex_lock(&r->lock);
    int64_t target = r->handed;
    r->hurry = r->done < target;
    if (r->hurry)
        pthread_cond_signal(&r->work);
    while (r->done < target && pthread_cond_timedwait(&r->settled, &r->lock, &until) == 0)
        ;
    pthread_mutex_unlock(&r->lock);
}

/* ── the thread: which segments there are ──────────────────────────────────────────────────── */

static void set_figures(struct recorder *r, int64_t bytes, int64_t segments)
{
    pthread_mutex_lock(&r->lock);
    r->figures.bytes = bytes;
    r->figures.segments = segments;
    pthread_mutex_unlock(&r->lock);
}

static void segment_path(const struct recorder *r, const char *name,
                         char dst[PATH_MAX + SEGMENT_NAME_SIZE])
{
    (void)snprintf(dst, PATH_MAX + SEGMENT_NAME_SIZE, "%s/%s", r->folder, name);
}

static void drop(const struct recorder *r, const struct segment *s)
{
    char path[PATH_MAX + SEGMENT_NAME_SIZE];
    segment_path(r, s->name, path);
    (void)unlink(path);
}

/* Drops the oldest, so that `room` bytes more fit. The open segment is counted and stays. */
static void sweep(struct recorder *r, int64_t room)
{
    struct segment *all = NULL;
    size_t n = segments_list(r->folder, &all);
    int64_t old_ms = clock_wall_ms() - r->limits.age_max_ms;
    int64_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += segment_weight(&all[i]);
    size_t gone = 0;
    for (; gone < n; gone++) {
        bool mine = r->fd >= 0 && all[gone].number == r->number;
        if (mine || (bytes + room <= r->limits.bytes_max && all[gone].until_ms >= old_ms))
            break;
        drop(r, &all[gone]);
        bytes -= segment_weight(&all[gone]);
    }
    if (n > 0 && all[n - 1].number > r->number)
        r->number = all[n - 1].number;
    r->swept_ms = clock_monotonic_ms();
    set_figures(r, bytes, (int64_t)(n - gone));
    free(all);
}

/* One in which nothing could be written does not stay. */
static void close_segment(struct recorder *r)
{
    char path[PATH_MAX + SEGMENT_NAME_SIZE];
    if (r->fd < 0)
        return;
    segment_path(r, r->name, path);
    if (r->size == 0)
        (void)unlink(path);
    close(r->fd);
    r->fd = -1;
}

/* 0, or an errno. */
static int open_segment(struct recorder *r)
{
    char path[PATH_MAX + SEGMENT_NAME_SIZE];
    if (mkdir(r->folder, 0700) != 0 && errno != EEXIST)
        return errno;
    sweep(r, r->segment_max);
    segment_path(r, segment_name(r->number + 1, clock_wall_ms(), r->name), path);
    r->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
    if (r->fd < 0)
        return errno;
    r->number++;
    r->size = 0;
    r->opened_ms = clock_monotonic_ms();
    return 0;
}

/* ── … and writing ─────────────────────────────────────────────────────────────────────────── */

/* What the disk has left belongs to the store first. */
static bool is_nearly_full(const struct recorder *r)
{
    struct statvfs fs;
    return r->limits.reserve_bytes > 0 && fstatvfs(r->fd, &fs) == 0 &&
           (int64_t)(fs.f_bavail * fs.f_frsize) < r->limits.reserve_bytes;
}

/* All of it, or nothing and an errno. */
static int put(struct recorder *r, const uint8_t *data, size_t n)
{
    size_t sent = 0;
    int err = is_nearly_full(r) ? ENOSPC : 0;
    while (sent < n && err == 0) {
        ssize_t k = write(r->fd, data + sent, n - sent);
        if (k > 0)
            sent += (size_t)k;
        else if (k == 0 || errno != EINTR)
            err = k == 0 ? EIO : errno;
    }
    if (err == 0) {
        r->size += (int64_t)n;
        return 0;
    }
    /* Half a line would spoil the next one. */
    if (sent > 0 && ftruncate(r->fd, (off_t)r->size) != 0)
        close_segment(r);
    return err;
}

static int put_gap(struct recorder *r)
{
    char at[RECORDER_AT_SIZE];
    char line[128];
    int n = snprintf(line, sizeof(line),
                     "{\"at\":\"%s\",\"change\":\"history_lost\",\"lines\":%" PRId64 "}\n",
                     recorder_at(clock_wall_ms(), at), r->gap);
    int err = put(r, (const uint8_t *)line, (size_t)n);
    if (err != 0)
        return err;
    r->gap_told += r->gap;
    r->gap = 0;
    return 0;
}

/* How much of the lines goes into the open segment: whole ones. 0 = it is full. */
static size_t portion(const struct recorder *r, const uint8_t *data, size_t n)
{
    size_t room = r->size < r->segment_max ? (size_t)(r->segment_max - r->size) : 0;
    if (n <= room)
        return n;
    const uint8_t *end = room > 0 ? memrchr(data, '\n', room) : NULL;
    if (!end && r->size == 0)
        end = memchr(data, '\n', n);
    return end ? (size_t)(end - data) + 1 : 0;
}

static bool is_old(const struct recorder *r)
{
    return clock_monotonic_ms() - r->opened_ms > SEGMENT_AGE_MS;
}

/* 0, or an errno; *ret_done is how much was written. */
static int write_lines(struct recorder *r, const uint8_t *data, size_t n, size_t *ret_done)
{
    int err = 0;
    while (*ret_done < n && err == 0) {
        if (r->fd >= 0 && is_old(r))
            close_segment(r);
        if (r->fd < 0)
            err = open_segment(r);
        if (err == 0 && r->gap > 0)
            err = put_gap(r);
        if (err != 0)
            break;
        size_t k = portion(r, data + *ret_done, n - *ret_done);
        if (k == 0)
            close_segment(r);
        else if ((err = put(r, data + *ret_done, k)) == 0)
            *ret_done += k;
    }
    return err;
}

static int64_t count_lines(const uint8_t *data, size_t n)
{
    int64_t lines = 0;
    const uint8_t *end = data + n;
    for (const uint8_t *p = data; p < end && (p = memchr(p, '\n', (size_t)(end - p))); p++)
        lines++;
    return lines;
}

/* Said once when it begins, and once when it is over. */
static void say(struct recorder *r, int err)
{
    char quoted[LOG_QUOTE_MAX + 8];
    if (err != 0 && !r->complained)
        log_line(LOG_WARN, "the history cannot be written; its lines are lost until it can",
                 "folder=%s why=\"%s\"", log_quote(quoted, str_of(r->folder)), full_reason(err));
    if (err == 0 && r->complained)
        log_line(LOG_INFO, "the history is written again", "folder=%s",
                 log_quote(quoted, str_of(r->folder)));
    r->complained = err != 0;
}

/* What is full may have room again; with any other failure the next try begins a new segment. */
static void give_up(struct recorder *r, int err)
{
    if (!full_is(err))
        close_segment(r);
    r->retry_ms = clock_monotonic_ms() + r->limits.retry_ms;
}

static void write_out(struct recorder *r, const struct lines *lines)
{
    size_t done = 0;
    int64_t lost = lines->n;
    if (clock_monotonic_ms() >= r->retry_ms) {
        int err = write_lines(r, lines->text.data, lines->text.len, &done);
        if (err != 0)
            give_up(r, err);
        say(r, err);
        lost = count_lines(lines->text.data + done, lines->text.len - done);
    }
    pthread_mutex_lock(&r->lock);
    r->figures.lost += lost;
    r->figures.written += lines->n - lost;
    r->figures.failing = r->complained;
    r->gap = r->figures.lost - r->gap_told;
    r->done += lines->n;
    pthread_cond_broadcast(&r->settled);
    pthread_mutex_unlock(&r->lock);
}

/* With the lock held: false when it is time to end. */
static bool wait_for_lines(struct recorder *r)
{
    struct timespec until = in_ms(SWEEP_MS);
    int err = 0;
    while (r->waiting.n == 0 && !r->stop && err == 0)
        err = pthread_cond_timedwait(&r->work, &r->lock, &until);
    return r->waiting.n > 0 || !r->stop;
}

/* With the lock held. A busy loop has lines with every turn, and to wake this thread for each takes
 * a processor from whoever does the work. */
static void rest(struct recorder *r)
{
    struct timespec until = in_ms(REST_MS);
    r->resting = true;
    while (!is_urgent(r) && pthread_cond_timedwait(&r->work, &r->lock, &until) == 0)
        continue;
    r->resting = false;
}

static void *record(void *arg)
{
    struct recorder *r = arg;
    struct lines mine = {0};
    pthread_mutex_lock(&r->lock);
    while (wait_for_lines(r)) {
        struct lines taken = r->waiting;
        r->hurry = false;
        r->waiting = mine;
        mine = taken;
        pthread_mutex_unlock(&r->lock);
        if (mine.n > 0)
            write_out(r, &mine);
        if (clock_monotonic_ms() - r->swept_ms >= SWEEP_MS)
            sweep(r, r->fd >= 0 ? r->segment_max - r->size : 0);
        bool busy = mine.text.len >= BUSY_BYTES;
        buf_clear(&mine.text);
        mine.n = 0;
        pthread_mutex_lock(&r->lock);
        if (busy)
            rest(r);
    }
    pthread_mutex_unlock(&r->lock);
    buf_done(&mine.text);
    close_segment(r);
    return NULL;
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

static void init_conditions(struct recorder *r)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->work, &monotonic);
    pthread_cond_init(&r->settled, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

struct recorder *recorder_start(const char *folder, const struct recorder_limits *limits)
{
    struct recorder *r = xcalloc(1, sizeof(*r));
    (void)str_copy(r->folder, sizeof(r->folder), str_of(folder));
    r->limits = *limits;
    r->segment_max = limits->bytes_max / SEGMENTS_OF_WHOLE;
    r->segment_max = r->segment_max < SEGMENT_MIN ? SEGMENT_MIN : r->segment_max;
    r->segment_max = r->segment_max > SEGMENT_MAX ? SEGMENT_MAX : r->segment_max;
    r->fd = -1;
    r->second = -1;
    init_conditions(r);
    int err = pthread_create(&r->thread, NULL, record, r);
    assert(err == 0);
    (void)pthread_setname_np(r->thread, "history");
    return r;
}

void recorder_stop(struct recorder *r)
{
    if (!r)
        return;
    recorder_turn(r);
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    pthread_cond_signal(&r->work);
    pthread_mutex_unlock(&r->lock);
    struct timespec until = in_ms(STOP_MS);
    if (pthread_clockjoin_np(r->thread, NULL, CLOCK_MONOTONIC, &until) != 0) {
        (void)pthread_detach(r->thread); /* it hangs in the disk, with what is its own */
        return;
    }
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->work);
    pthread_cond_destroy(&r->settled);
    buf_done(&r->added.text);
    buf_done(&r->waiting.text);
    free(r);
}
