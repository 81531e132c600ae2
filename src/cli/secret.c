#include "cli/secret.h"

#include "base/err.h"
#include "base/full.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NODE_SIZE = 8 };

/* A file of random bytes, made once. */
struct drawn {
    const char *name;
    const char *draft;
    size_t size;
    const char *without; /* what is so when it is damaged */
};

static const struct drawn the_secret = {
    "secret", "secret.new", CORE_SECRET_SIZE,
    "Restore it from a backup; without it the tokens of running matches are not valid"};
static const struct drawn the_node = {"node", "node.new", NODE_SIZE,
                                      "Remove it; the node then counts as another one"};

static int fail(char *why, const char *folder, const struct drawn *file, const char *what)
{
    bool few = errno == EMFILE || errno == ENFILE;
    snprintf(why, SECRET_WHY_MAX, "Cannot %s %s/%s: %s", what, folder, file->name,
             few ? "too few file descriptors. Raise the limit (ulimit -n)" : full_reason(errno));
    return ERR_IO;
}

/* Written beside, synced, then renamed: after a crash there is a whole secret or none, never a
 * piece of one. */
static int write_draft(int dir, const struct drawn *file, const uint8_t *bytes)
{
    int fd = openat(dir, file->draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -1;
    bool written = fchmod(fd, 0600) == 0 && write(fd, bytes, file->size) == (ssize_t)file->size &&
                   fsync(fd) == 0;
    int kept = errno;
    close(fd);
    errno = kept;
    return written ? 0 : -1;
}

static int make(int dir, const char *folder, const struct drawn *file, uint8_t *ret, char *why)
{
    if (getrandom(ret, file->size, 0) != (ssize_t)file->size)
        return fail(why, folder, file, "draw");
    if (write_draft(dir, file, ret) != 0 || renameat(dir, file->draft, dir, file->name) != 0 ||
        fsync(dir) != 0)
        return fail(why, folder, file, "make");
    return 0;
}

static int read_back(int fd, const char *folder, const struct drawn *file, uint8_t *ret, char *why)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return fail(why, folder, file, "look at");
    if (!S_ISREG(st.st_mode) || st.st_size != (off_t)file->size) {
        snprintf(why, SECRET_WHY_MAX, "%s/%s is not a file of %zu bytes. %s", folder, file->name,
                 file->size, file->without);
        return ERR_FORMAT;
    }
    if (st.st_mode & (S_IRWXG | S_IRWXO)) {
        snprintf(why, SECRET_WHY_MAX,
                 "%s/%s can be read by others (mode %04o). Do: chmod 600 %s/%s", folder, file->name,
                 st.st_mode & 07777u, folder, file->name);
        return ERR_FORMAT;
    }
    if (read(fd, ret, file->size) != (ssize_t)file->size)
        return fail(why, folder, file, "read");
    return 0;
}

static int missing(const char *folder, char *why)
{
    snprintf(why, SECRET_WHY_MAX,
             "%s/%s is missing, and the folder holds matches whose tokens come from it. Restore it "
             "from the backup, or move the folder away to start empty",
             folder, the_secret.name);
    return ERR_FORMAT;
}

static int load(const char *folder, const struct drawn *file, bool may_make, uint8_t *ret,
                char *why)
{
    int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return fail(why, folder, file, "open the folder of");
    int err = 0;
    int fd = openat(dir, file->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0) {
        err = read_back(fd, folder, file, ret, why);
        close(fd);
    } else if (errno == ENOENT) {
        err = may_make ? make(dir, folder, file, ret, why) : missing(folder, why);
    } else {
        err = fail(why, folder, file, "open");
    }
    close(dir);
    return err;
}

int secret_load(const char *folder, bool may_make, uint8_t ret[CORE_SECRET_SIZE],
                char why[SECRET_WHY_MAX])
{
    return load(folder, &the_secret, may_make, ret, why);
}

int secret_node_id(const char *folder, int64_t *ret, char why[SECRET_WHY_MAX])
{
    uint8_t bytes[NODE_SIZE];
    int err = load(folder, &the_node, true, bytes, why);
    if (err != 0)
        return err;
    uint64_t id = 0;
    memcpy(&id, bytes, sizeof(id));
    *ret = (int64_t)(id >> 1) | 1; /* positive, and never 0, which is nobody */
    return 0;
}

void secret_print(const uint8_t secret[CORE_SECRET_SIZE], uint8_t ret[CELL_PRINT])
{
    crypto_generichash(ret, CELL_PRINT, (const uint8_t *)"muster.dev/print", 16, secret,
                       CORE_SECRET_SIZE);
}
