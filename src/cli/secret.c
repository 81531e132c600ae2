#include "cli/secret.h"

#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static const char file_name[] = "secret";
static const char draft_name[] = "secret.new";

static int fail(char *why, const char *folder, const char *what)
{
    if (errno == EMFILE || errno == ENFILE) {
        snprintf(why, SECRET_WHY_MAX,
                 "Cannot %s %s/%s: too few file descriptors. Raise the limit (ulimit -n)", what,
                 folder, file_name);
        return ERR_IO;
    }
    snprintf(why, SECRET_WHY_MAX, "Cannot %s %s/%s: %s", what, folder, file_name, strerror(errno));
    return ERR_IO;
}

/* Written beside, synced, then renamed: after a crash there is a whole secret or none, never a
 * piece of one. */
static int write_draft(int dir, const uint8_t secret[CORE_SECRET_SIZE])
{
    int fd = openat(dir, draft_name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -1;
    bool written = fchmod(fd, 0600) == 0 &&
                   write(fd, secret, CORE_SECRET_SIZE) == (ssize_t)CORE_SECRET_SIZE &&
                   fsync(fd) == 0;
    int kept = errno;
    close(fd);
    errno = kept;
    return written ? 0 : -1;
}

static int make_secret(int dir, const char *folder, uint8_t ret[CORE_SECRET_SIZE], char *why)
{
    if (getrandom(ret, CORE_SECRET_SIZE, 0) != CORE_SECRET_SIZE)
        return fail(why, folder, "draw");
    if (write_draft(dir, ret) != 0 || renameat(dir, draft_name, dir, file_name) != 0 ||
        fsync(dir) != 0)
        return fail(why, folder, "make");
    return 0;
}

static int read_secret(int fd, const char *folder, uint8_t ret[CORE_SECRET_SIZE], char *why)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return fail(why, folder, "look at");
    if (!S_ISREG(st.st_mode) || st.st_size != CORE_SECRET_SIZE) {
        snprintf(why, SECRET_WHY_MAX,
                 "%s/%s is not a file of %d bytes. Restore it from a backup; without it the tokens "
                 "of running matches are not valid",
                 folder, file_name, CORE_SECRET_SIZE);
        return ERR_FORMAT;
    }
    if (st.st_mode & (S_IRWXG | S_IRWXO)) {
        snprintf(why, SECRET_WHY_MAX,
                 "%s/%s can be read by others (mode %04o). Do: chmod 600 %s/%s", folder, file_name,
                 st.st_mode & 07777u, folder, file_name);
        return ERR_FORMAT;
    }
    if (read(fd, ret, CORE_SECRET_SIZE) != CORE_SECRET_SIZE)
        return fail(why, folder, "read");
    return 0;
}

static int missing(const char *folder, char *why)
{
    snprintf(why, SECRET_WHY_MAX,
             "%s/%s is missing, and the folder holds matches whose tokens come from it. Restore it "
             "from the backup, or move the folder away to start empty",
             folder, file_name);
    return ERR_FORMAT;
}

int secret_load(const char *folder, bool may_make, uint8_t ret[CORE_SECRET_SIZE],
                char why[SECRET_WHY_MAX])
{
    int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return fail(why, folder, "open the folder of");
    int err = 0;
    int fd = openat(dir, file_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0) {
        err = read_secret(fd, folder, ret, why);
        close(fd);
    } else if (errno == ENOENT) {
        err = may_make ? make_secret(dir, folder, ret, why) : missing(folder, why);
    } else {
        err = fail(why, folder, "open");
    }
    close(dir);
    return err;
}
