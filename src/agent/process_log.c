/* The end of a game server's log, from the files its shim writes. */
#include "agent/process_parts.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_MAX = 256 * 1024 };

/* Puts the last of file i, at most `room` bytes, before what b holds. False when there is none. */
static bool read_end(int folder, int i, size_t room, struct buf *b)
{
    char name[32] = SHIM_LOG;
    struct stat st;
    if (i > 0)
        snprintf(name, sizeof(name), SHIM_LOG ".%d", i);
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return false;
    size_t size = fstat(fd, &st) == 0 && st.st_size > 0 ? (size_t)st.st_size : 0;
    size_t want = size < room ? size : room;
    size_t had = b->len;
    buf_extend(b, want);
    memmove(b->data + want, b->data, had);
    ssize_t n = want > 0 ? pread(fd, b->data, want, (off_t)(size - want)) : 0;
    close(fd);
    if (n < (ssize_t)want) { /* rotated meanwhile */
        memmove(b->data, b->data + want, had);
        b->len = had;
    }
    return true;
}

static size_t count_lines(const struct buf *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->len; i++)
        n += b->data[i] == '\n';
    return n;
}

static void append_last_lines(const uint8_t *data, size_t len, int lines, struct buf *out)
{
    size_t from = len;
    for (; from > 0; from--) {
        bool after_newline = data[from - 1] == '\n' && from < len;
        if (after_newline && --lines == 0)
            break;
    }
    if (len > 0)
        buf_append(out, data + from, len - from);
}

static void read_files(const struct process *p, int lines, struct buf *b)
{
    char home[PATH_MAX];
    process_home(p->owner, p->spec.server, home);
    int folder = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return;
    for (int i = 0; b->len < READ_MAX && count_lines(b) <= (size_t)lines; i++) {
        if (!read_end(folder, i, READ_MAX - b->len, b))
            break;
    }
    close(folder);
}

void process_tail(const struct process *p, int lines, struct buf *out)
{
    struct buf b = {.data = NULL};
    if (lines <= 0)
        return;
    bool lost = p->state == PROCESS_OVER && p->shim.log_failed;
    if (!lost)
        read_files(p, lines, &b);
    if (b.len > 0)
        append_last_lines(b.data, b.len, lines, out);
    else
        append_last_lines(p->tail.data, p->tail.len, lines, out);
    buf_done(&b);
}
