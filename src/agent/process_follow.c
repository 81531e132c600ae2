#include "agent/process_follow.h"

#include "agent/process_parts.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOOK_BACK_MAX = 64 * 1024 };

/* Where the last lines of what fd holds begin. */
static off_t find_lines(int fd, int lines)
{
    char text[LOOK_BACK_MAX];
    struct stat st;
    if (lines <= 0 || fstat(fd, &st) != 0)
        return lines <= 0 ? lseek(fd, 0, SEEK_END) : 0;
    off_t from = st.st_size > LOOK_BACK_MAX ? st.st_size - LOOK_BACK_MAX : 0;
    ssize_t len = pread(fd, text, sizeof(text), from);
    for (ssize_t at = len; at > 0; at--) {
        bool after_newline = text[at - 1] == '\n' && at < len;
        if (after_newline && --lines == 0)
            return from + at;
    }
    return from;
}

void process_follow_init(struct process_follow *f, const struct process *p, int lines)
{
    char home[PATH_MAX];
    process_home(p->owner, p->spec.server, home);
    snprintf(f->path, sizeof(f->path), "%.*s/" SHIM_LOG, (int)sizeof(f->path) - 64, home);
    f->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (f->fd >= 0)
        (void)lseek(f->fd, find_lines(f->fd, lines), SEEK_SET);
}

void process_follow_done(struct process_follow *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}

/* The log has another file of that name now: ours was moved aside, and is read to its end. */
static bool was_moved(const struct process_follow *f)
{
    struct stat ours;
    struct stat theirs;
    return f->fd < 0 || (fstat(f->fd, &ours) == 0 && stat(f->path, &theirs) == 0 &&
                         (ours.st_ino != theirs.st_ino || ours.st_dev != theirs.st_dev));
}

static size_t read_some(struct process_follow *f, struct buf *out, size_t max)
{
    if (f->fd < 0 || max == 0)
        return 0;
    ssize_t n = read(f->fd, buf_extend(out, max), max);
    out->len -= max - (size_t)(n > 0 ? n : 0);
    return n > 0 ? (size_t)n : 0;
}

void process_follow_read(struct process_follow *f, struct buf *out, size_t max)
{
    bool moved = was_moved(f); /* asked first: what is written until then is in ours */
    size_t n = read_some(f, out, max);
    if (n > 0 || !moved)
        return;
    process_follow_done(f);
    f->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    (void)read_some(f, out, max);
}
