#include "shim/output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { AGAIN_MS = 1000, FILE_BYTES_MIN = 4096 };

static void open_newest(struct output *o)
{
    struct stat st;
    o->fd = open(SHIM_LOG, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    o->size = o->fd >= 0 && fstat(o->fd, &st) == 0 ? st.st_size : 0;
}

/* All but one file, so that something of what was printed before a flood outlasts it. */
static int64_t burst(const struct output *o)
{
    return o->file_bytes * (o->files > 1 ? o->files - 1 : 1);
}

void output_init(struct output *o, int64_t file_bytes, int files, int64_t now_ms)
{
    *o = (struct output){.fd = -1, .files = files > 0 ? files : 1, .budget_ms = now_ms};
    o->file_bytes = file_bytes > FILE_BYTES_MIN ? file_bytes : FILE_BYTES_MIN;
    o->budget = burst(o);
    o->again_ms = INT64_MAX;
}

void output_open(struct output *o)
{
    o->again_ms = 0;
    open_newest(o);
}

static void name_of(int i, char name[32])
{
    if (i == 0)
        snprintf(name, 32, SHIM_LOG);
    else
        snprintf(name, 32, SHIM_LOG ".%d", i);
}

static void rotate(struct output *o)
{
    char from[32];
    char to[32];
    for (int i = o->files - 1; i > 0; i--) {
        name_of(i - 1, from);
        name_of(i, to);
        rename(from, to);
    }
    if (o->files == 1)
        unlink(SHIM_LOG);
    if (o->fd >= 0)
        close(o->fd);
    open_newest(o);
}

/* As much of it as the disk takes. A file holds whole pieces, so it may be short by one of them. */
static size_t write_some(struct output *o, const char *data, size_t n, int64_t now_ms)
{
    if (now_ms < o->again_ms)
        return 0;
    if (o->fd < 0 || (o->size > 0 && o->size + (int64_t)n > o->file_bytes))
        rotate(o);
    ssize_t done = o->fd >= 0 ? write(o->fd, data, n) : -1;
    o->failed = done < (ssize_t)n;
    if (o->failed)
        o->again_ms = now_ms + AGAIN_MS;
    if (done <= 0)
        return 0;
    o->size += done;
    o->mid_line = data[done - 1] != '\n';
    return (size_t)done;
}

static void tell_gap(struct output *o, int64_t now_ms)
{
    char line[120];
    int n = snprintf(line, sizeof(line),
                     "%s[muster: %" PRIu64 " lines, %" PRIu64 " bytes of output dropped]\n",
                     o->mid_line ? "\n" : "", o->gap_lines, o->gap);
    if (write_some(o, line, (size_t)n, now_ms) == (size_t)n)
        o->gap = o->gap_lines = 0;
}

static uint64_t count_lines(const char *data, size_t n)
{
    uint64_t lines = 0;
    for (size_t i = 0; i < n; i++)
        lines += data[i] == '\n';
    return lines;
}

static void remember(struct output *o, const char *data, size_t n)
{
    if (n >= SHIM_TAIL_MAX) {
        memcpy(o->tail, data + n - SHIM_TAIL_MAX, SHIM_TAIL_MAX);
        o->tail_len = SHIM_TAIL_MAX;
        return;
    }
    size_t keep = o->tail_len < SHIM_TAIL_MAX - n ? o->tail_len : SHIM_TAIL_MAX - n;
    memmove(o->tail, o->tail + o->tail_len - keep, keep);
    memcpy(o->tail + keep, data, n);
    o->tail_len = keep + n;
}

static void fill_budget(struct output *o, int64_t now_ms)
{
    int64_t more = o->file_bytes / 8 * (now_ms - o->budget_ms) / 1000;
    if (more <= 0)
        return;
    o->budget = o->budget + more < burst(o) ? o->budget + more : burst(o);
    o->budget_ms = now_ms;
}

void output_put(struct output *o, const char *data, size_t n, int64_t now_ms)
{
    remember(o, data, n);
    fill_budget(o, now_ms);
    /* After a gap it goes on with a good piece, or the log would be nothing but gaps. */
    if (o->gap > 0 && o->budget >= o->file_bytes / 8)
        tell_gap(o, now_ms);
    size_t may = o->gap > 0 || o->budget <= 0 ? 0 : n;
    if ((int64_t)may > o->budget)
        may = (size_t)o->budget;
    size_t done = may > 0 ? write_some(o, data, may, now_ms) : 0;
    o->budget -= (int64_t)done;
    o->gap += n - done;
    o->gap_lines += count_lines(data + done, n - done);
    o->dropped += n - done;
}

void output_end(struct output *o, int64_t now_ms)
{
    if (o->gap == 0)
        return;
    if (o->again_ms != INT64_MAX)
        o->again_ms = 0;
    size_t last = o->gap < o->tail_len ? (size_t)o->gap : o->tail_len;
    const char *end = o->tail + o->tail_len - last;
    o->gap -= last;
    o->gap_lines -= count_lines(end, last);
    if (o->gap > 0)
        tell_gap(o, now_ms);
    if (write_some(o, end, last, now_ms) == last)
        o->dropped -= last;
}
