/* The data folder: whether it can be used, how much room there is, how fast its disk syncs. */
#include "base/clock.h"
#include "base/full.h"
#include "cli/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    SYNCS = 100,
    SYNC_BYTES = 4096,
    SLOW_P99_US = 20 * 1000, /* an answer waits for two of them */
    SLOW_P50_US = 50 * 1000,
    FEW_INODES = 1000,
    MIB = 1 << 20,
};
static const int64_t little_bytes = INT64_C(256) * MIB;
static const int64_t some_bytes = INT64_C(2048) * MIB;

/* Of the process that has the file locked, by /proc/locks; 0 when nobody has, -1 when somebody whom
 * we cannot see. */
static pid_t holder_of(const char *path)
{
    struct stat st;
    char line[256];
    pid_t found = -1;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return 0;
    bool is_free = flock(fd, LOCK_EX | LOCK_NB) == 0;
    bool known = fstat(fd, &st) == 0;
    close(fd);
    FILE *locks = is_free || !known ? NULL : fopen("/proc/locks", "re");
    while (locks && found < 0 && fgets(line, sizeof(line), locks)) {
        unsigned long inode = doctor_number(line, 5, ':', 10);
        if (strstr(line, " FLOCK ") && inode == st.st_ino)
            found = (pid_t)doctor_number(line, 4, 0, 10);
    }
    if (locks)
        (void)fclose(locks);
    return is_free ? 0 : found;
}

static void check_space(struct doctor *d, const char *folder)
{
    struct statvfs fs;
    if (statvfs(folder, &fs) != 0)
        return;
    int64_t free_bytes = (int64_t)fs.f_bavail * (int64_t)fs.f_frsize;
    bool few = fs.f_files > 0 && fs.f_favail < FEW_INODES;
    enum doctor_level level = free_bytes < little_bytes || few ? DOCTOR_PROBLEM
                              : free_bytes < some_bytes        ? DOCTOR_WARNING
                                                               : DOCTOR_OK;
    doctor_say(d, "disk space", level, "%" PRId64 " MiB and %lu inodes are free on the disk of %s.",
               free_bytes / MIB, (unsigned long)fs.f_favail, d->data);
    if (level != DOCTOR_OK)
        doctor_advise(d,
                      "Make room: when it is full Muster refuses every change, and a backup needs "
                      "as much again as the tables take for a while.");
}

static void check_kind(struct doctor *d, const char *folder)
{
    struct statfs fs;
    if (statfs(folder, &fs) != 0)
        return;
    if (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC) {
        doctor_say(d, "disk kind", DOCTOR_WARNING, "%s is in memory.", folder);
        doctor_advise(d, "Everything is lost when this machine stops: choose a folder on a disk.");
    } else if (fs.f_type == NFS_SUPER_MAGIC ||
               fs.f_type == (__typeof__(fs.f_type))SMB_SUPER_MAGIC ||
               fs.f_type == (__typeof__(fs.f_type))CIFS_SUPER_MAGIC) {
        doctor_say(d, "disk kind", DOCTOR_PROBLEM, "%s is on a network file system.", folder);
        doctor_advise(d, "SQLite's locks and syncs are not safe there: choose a local disk.");
    }
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Appends as a journal does: 0, or errno. */
static int measure(int fd, int64_t us[SYNCS])
{
    static const char page[SYNC_BYTES];
    for (int i = 0; i < SYNCS; i++) {
        int64_t began_us = clock_monotonic_us();
        ssize_t n = write(fd, page, sizeof(page));
        if (n != (ssize_t)sizeof(page))
            return n < 0 ? errno : ENOSPC;
        if (fdatasync(fd) != 0)
            return errno;
        us[i] = clock_monotonic_us() - began_us;
    }
    qsort(us, SYNCS, sizeof(*us), by_size);
    return 0;
}

static void tell_speed(struct doctor *d, const int64_t us[SYNCS])
{
    int64_t p50_us = us[SYNCS / 2];
    int64_t p99_us = us[SYNCS * 99 / 100];
    enum doctor_level level = p50_us > SLOW_P50_US   ? DOCTOR_PROBLEM
                              : p99_us > SLOW_P99_US ? DOCTOR_WARNING
                                                     : DOCTOR_OK;
    doctor_say(d, "disk sync", level,
               "Appending %d bytes durably takes %.2f ms (p50), %.2f ms (p99), n = %d.", SYNC_BYTES,
               (double)p50_us / 1000, (double)p99_us / 1000, SYNCS);
    if (level != DOCTOR_OK)
        doctor_advise(d, "Every answer waits for the disk: put the data folder on a local SSD that "
                         "does nothing else, and look whether somebody writes much right now.");
}

static void check_sync(struct doctor *d, const char *folder)
{
    char path[PATH_MAX];
    int64_t us[SYNCS] = {0};
    (void)snprintf(path, sizeof(path), "%.4000s/.doctor-XXXXXX", folder);
    int fd = mkostemp(path, O_CLOEXEC);
    int err = fd < 0 ? errno : 0;
    if (fd >= 0) {
        (void)unlink(path);
        err = measure(fd, us);
        close(fd);
    }
    if (err == 0) {
        tell_speed(d, us);
        return;
    }
    doctor_say(d, "data folder", DOCTOR_PROBLEM, "%s cannot be written: %s.", folder,
               full_reason(err));
    doctor_advise(d, full_is(err)
                         ? "Make room there, or choose another folder with --data."
                         : "Give it to the user that runs Muster (chown), or choose another folder "
                           "with --data.");
}

static void tell_folder(struct doctor *d, const struct stat *st)
{
    char lock[PATH_MAX];
    (void)snprintf(lock, sizeof(lock), "%.4000s/lock", d->data);
    d->holder = holder_of(lock);
    if (d->holder)
        doctor_say(d, "data folder", DOCTOR_OK, "%s is used by a Muster that runs (pid %d).",
                   d->data, (int)d->holder);
    else if (st->st_mode & (S_IRWXG | S_IRWXO))
        doctor_say(d, "data folder", DOCTOR_WARNING, "%s can be looked into by others (mode %04o).",
                   d->data, st->st_mode & 07777u);
    else
        doctor_say(d, "data folder", DOCTOR_OK, "%s is there, and no Muster uses it.", d->data);
    if (!d->holder && st->st_mode & (S_IRWXG | S_IRWXO))
        doctor_advise(d, "Do: chmod 700 %s", d->data);
}

void doctor_check_disk(struct doctor *d)
{
    char parent[PATH_MAX];
    struct stat st;
    const char *folder = d->data;
    int err = stat(d->data, &st) == 0 ? 0 : errno;
    if (err == 0 && S_ISDIR(st.st_mode)) {
        tell_folder(d, &st);
    } else if (err == ENOENT) {
        (void)snprintf(parent, sizeof(parent), "%s", d->data);
        char *slash = strrchr(parent, '/');
        if (slash && slash != parent)
            *slash = '\0';
        folder = slash ? parent : ".";
        doctor_say(d, "data folder", DOCTOR_OK, "%s is not there yet; 'muster serve' makes it.",
                   d->data);
    } else {
        doctor_say(d, "data folder", DOCTOR_PROBLEM, "%s is no folder that we may look into.",
                   d->data);
        doctor_advise(d, "Choose another one with --data.");
        return;
    }
    check_kind(d, folder);
    check_space(d, folder);
    check_sync(d, folder);
}
