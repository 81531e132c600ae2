/* `muster backup FILE` and `muster restore FILE`: what a node needs to go on, as one file, and
 * back. */
#include "base/clock.h"
#include "base/err.h"
#include "base/full.h"
#include "cli/remote.h"
#include "cli/when.h"
#include "store/restore_unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DRAW_MS = 200, MIB = 1 << 20, END_ZEROS = 1024 };

static struct {
    const char *file;
    bool force;
} set;

static struct {
    const char *file;
    const char *data;
    bool force;
} back = {.data = "data"};

const struct arg backup_options[] = {
    {.name = "FILE", .kind = ARG_WORD, .into = &set.file},
    {.name = "--force",
     .kind = ARG_FLAG,
     .into = &set.force,
     .help = "replace FILE when it is there already"},
    {0},
};

const struct arg restore_options[] = {
    {.name = "FILE", .kind = ARG_WORD, .into = &back.file},
    {.name = "--data",
     .kind = ARG_TEXT,
     .into = &back.data,
     .value = "DIR",
     .help = "the data folder (./data; made when absent)"},
    {.name = "--force",
     .kind = ARG_FLAG,
     .into = &back.force,
     .help = "also into a folder that holds data, which is moved aside in it, not deleted"},
    {0},
};

/* ── taking one ────────────────────────────────────────────────────────────────────────────── */

struct taking {
    struct remote *r;
    int fd;
    int64_t bytes;
    int64_t zeros; /* at its end: a whole archive ends with two blocks of them */
    int64_t next_ms;
    bool draws;
    bool failed; /* it cannot be written: errno then */
    int error;
};

static void draw(struct taking *t, bool last)
{
    int64_t now_ms = clock_monotonic_ms();
    if (!t->draws || (now_ms < t->next_ms && !last))
        return;
    t->next_ms = now_ms + DRAW_MS;
    fprintf(stderr, last ? "\r\033[K" : "\r\033[K%.1f MiB", (double)t->bytes / MIB);
}

static void count_zeros(struct taking *t, struct str piece)
{
    size_t n = 0;
    while (n < piece.len && piece.at[piece.len - 1 - n] == 0)
        n++;
    t->zeros = n == piece.len ? t->zeros + (int64_t)n : (int64_t)n;
}

static bool on_piece(void *user, struct str piece)
{
    struct taking *t = user;
    count_zeros(t, piece);
    t->bytes += (int64_t)piece.len;
    while (piece.len > 0) {
        ssize_t n = write(t->fd, piece.at, piece.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            t->error = errno;
            t->failed = true;
            return false;
        }
        piece = (struct str){piece.at + n, piece.len - (size_t)n};
    }
    draw(t, false);
    return true;
}

static int fetch(struct taking *t, const struct ask *ask)
{
    struct buf path = {0};
    ask_put_path(ask, &path);
    buf_append(&path, "", 1);
    enum client_result result =
        client_read(t->r->client, (const char *)path.data, on_piece, t, &t->r->answer);
    buf_done(&path);
    draw(t, true);
    if (t->failed) {
        fprintf(stderr, "muster backup: cannot write: %s\n", full_reason(t->error));
        return EXIT_REFUSED;
    }
    if (result == CLIENT_STOPPED)
        return EXIT_REFUSED;
    if (result != CLIENT_DONE) {
        remote_complain(t->r);
        return result == CLIENT_REFUSED ? EXIT_REFUSED : EXIT_UNREACHABLE;
    }
    if (t->zeros >= END_ZEROS)
        return EXIT_DONE;
    fprintf(stderr, "muster backup: what came is cut off; take it again\n");
    return EXIT_REFUSED;
}

/* Its name appears when it is whole, checked and on the disk. */
static int keep(int fd, const char *part, struct taking *t)
{
    struct restore_report report = {0};
    struct why why;
    char folder[PATH_MAX];
    if (lseek(fd, 0, SEEK_SET) != 0 || restore_unpack(fd, NULL, &report, &why) != 0) {
        fprintf(stderr, "muster backup: %s\n", why.text);
        return EXIT_REFUSED;
    }
    (void)snprintf(folder, sizeof(folder), "%s", set.file);
    int dir = open(dirname(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool kept = fsync(fd) == 0 && rename(part, set.file) == 0 && dir >= 0 && fsync(dir) == 0;
    if (!kept)
        fprintf(stderr, "muster backup: cannot keep %s: %s\n", set.file, full_reason(errno));
    if (dir >= 0)
        close(dir);
    if (!kept)
        return EXIT_REFUSED;
    char when[WHEN_MAX];
    printf("%s: %.1f MiB, %s, checked. It holds the secret that tokens come from: keep it safe.\n",
           set.file, (double)t->bytes / MIB, when_date(report.made_wall_ms, when));
    return EXIT_DONE;
}

static int take_into_file(struct taking *t, const struct ask *ask)
{
    char part[PATH_MAX];
    struct stat st;
    if (!set.force && lstat(set.file, &st) == 0) {
        fprintf(stderr, "muster backup: %s is there already; --force replaces it\n", set.file);
        return EXIT_REFUSED;
    }
    (void)snprintf(part, sizeof(part), "%s.part", set.file);
    (void)unlink(part);
    t->fd = open(part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (t->fd < 0) {
        fprintf(stderr, "muster backup: cannot make %s: %s\n", part, strerror(errno));
        return EXIT_REFUSED;
    }
    t->draws = isatty(STDERR_FILENO);
    int code = fetch(t, ask);
    if (code == EXIT_DONE)
        code = keep(t->fd, part, t);
    close(t->fd);
    if (code != EXIT_DONE)
        (void)unlink(part);
    return code;
}

int backup_run(int argc, char **argv)
{
    struct remote r;
    struct ask ask;
    ask_init(&ask, "backup", NULL);
    int code = remote_open(&r, argc, argv, &ask, backup_options, NULL, true);
    if (code != EXIT_DONE)
        return code;
    struct taking t = {.r = &r, .fd = STDOUT_FILENO};
    if (!set.file)
        code =
            args_refuse(argv[0], "needs a FILE, or - for standard output") ? EXIT_DONE : EXIT_USAGE;
    else if (strcmp(set.file, "-") == 0)
        code = fetch(&t, &ask);
    else
        code = take_into_file(&t, &ask);
    remote_close(&r);
    return code;
}

/* ── and back ──────────────────────────────────────────────────────────────────────────────── */

static void tell(const struct restore_report *report, int64_t now_ms)
{
    char when[WHEN_MAX];
    printf("%s stands as it was at %s (batch %" PRId64 "); epoch %" PRId64 " begins.\n", back.data,
           when_date(report->wall_ms, when), report->batch, report->epoch);
    if (report->aside[0])
        printf("What was there is in %s/%s; remove it when you miss nothing.\n", back.data,
               report->aside);
    if (!report->with_deployments)
        printf("The backup came without archives of deployments: copy them to %s/deployments, or "
               "deploy again.\n",
               back.data);
    if (report->unread[0])
        printf(
            "What was there could not be read: %s So only the clock says how far numbers must go "
            "ahead: see that the date is right before you start.\n",
            report->unread);
    if (now_ms < report->wall_ms)
        printf(
            "The backup is of a later moment than it is now by the clock of this machine. Set the "
            "clock right and restore again.\n");
    printf("Bans, tokens that were revoked and all else that was done after that moment are not "
           "known here: do them again.\n"
           "Now start it: %s serve --data %s\n",
           cli_program, back.data);
}

static int restore_from(int fd)
{
    struct why why = {{0}};
    struct restore_report report;
    char who[64];
    char aside[64];
    int lock = -1;
    if (store_lock_folder(back.data, &lock, &why) != 0 ||
        restore_finish(back.data, aside, &why) != 0) {
        fprintf(stderr, "muster restore: %s\n", why.text);
        if (lock >= 0)
            close(lock);
        return EXIT_REFUSED;
    }
    int64_t now_ms = clock_wall_ms();
    int code = EXIT_REFUSED;
    const struct passwd *user = getpwuid(getuid());
    (void)snprintf(who, sizeof(who), "%.63s", user ? user->pw_name : "?");
    if (!back.force && restore_finds_data(back.data))
        fprintf(stderr,
                "muster restore: %s holds data already; choose an empty folder with --data, or "
                "--force moves what is there aside\n",
                back.data);
    else if (restore_run(back.data, fd, str_of(who), now_ms, &report, &why) != 0)
        fprintf(stderr, "muster restore: %s\n", why.text);
    else
        code = EXIT_DONE;
    close(lock);
    if (code == EXIT_DONE)
        tell(&report, now_ms);
    return code;
}

int restore_verb_run(int argc, char **argv)
{
    if (!args_parse(argc, argv, restore_options))
        return EXIT_USAGE;
    if (!back.file)
        return args_refuse(argv[0], "needs a FILE, or - for standard input") ? EXIT_DONE
                                                                             : EXIT_USAGE;
    bool from_input = strcmp(back.file, "-") == 0;
    int fd = from_input ? STDIN_FILENO : open(back.file, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        fprintf(stderr, "muster restore: cannot read %s: %s\n", back.file, strerror(errno));
        return EXIT_REFUSED;
    }
    int code = restore_from(fd);
    if (!from_input)
        close(fd);
    return code;
}
