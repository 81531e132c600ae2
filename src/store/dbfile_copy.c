/* Copying a database file that is in use. */
#include "base/clock.h"
#include "base/err.h"
#include "base/full.h"
#include "store/dbfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { STEP_PAGES = (1 << 20) / DBFILE_PAGE_SIZE };

/* SQLite would give it a wider mode, and would open one that is there. */
static int make_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}

/* A copy that is not whole is thrown away, so it needs no log of its own; it is synced at the end.
 */
static int open_copy(const char *path, sqlite3 **ret)
{
    int rc = sqlite3_open_v2(path, ret, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(*ret, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;", NULL, NULL,
                          NULL);
    return rc;
}

static int sync_copy(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int err = fd >= 0 && fsync(fd) == 0 ? 0 : -errno;
    if (fd >= 0)
        close(fd);
    return err;
}

/* The others have the disk for as long as we had it; writing now what was copied keeps a commit
 * from having to wait for all of it. */
static void make_way(int fd, int64_t began_us)
{
    (void)fdatasync(fd);
    int64_t us = clock_monotonic_us() - began_us;
    struct timespec pause = {us / 1000000, us % 1000000 * 1000};
    (void)nanosleep(&pause, NULL);
}

static int copy_pages(sqlite3 *from, sqlite3 *to, int fd, const _Atomic bool *stop)
{
    sqlite3_backup *b = sqlite3_backup_init(to, "main", from, "main");
    int rc = b ? SQLITE_OK : sqlite3_errcode(to);
    while (rc == SQLITE_OK && !*stop) {
        int64_t began_us = clock_monotonic_us();
        rc = sqlite3_backup_step(b, STEP_PAGES);
        if (rc == SQLITE_OK)
            make_way(fd, began_us);
    }
    if (b)
        (void)sqlite3_backup_finish(b);
    return rc;
}

/* A transaction holds the moment: without one the copy would begin anew with every write. */
static int copy_within(sqlite3 *from, const char *path, const _Atomic bool *stop)
{
    sqlite3 *to = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int rc = open_copy(path, &to);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(from, "BEGIN; SELECT count(*) FROM sqlite_master;", NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = copy_pages(from, to, fd, stop);
    dbfile_close(to);
    if (fd >= 0)
        close(fd);
    return rc;
}

int dbfile_copy(const char *from, const char *name, const char *to, const _Atomic bool *stop,
                struct why *why)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/%s", to, name);
    int err = make_file(path);
    if (err != 0) {
        why_set(why, "%s cannot be made: %s.", path, full_reason(-err));
        return ERR_IO;
    }
    sqlite3 *db = NULL;
    int rc = dbfile_connect(from, name, &db);
    if (rc == SQLITE_OK)
        rc = copy_within(db, path, stop);
    dbfile_close(db);
    if (rc == SQLITE_DONE)
        err = sync_copy(path);
    if (rc == SQLITE_DONE && err == 0)
        return 0;
    why_set(why, "%s/%s cannot be copied: %s.", from, name,
            *stop      ? "it was stopped"
            : err != 0 ? full_reason(-err)
                       : sqlite3_errstr(rc));
    return ERR_IO;
}
