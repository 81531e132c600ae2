#include "store/restore_unpack.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/full.h"
#include "core/row.h"
#include "store/archive.h"
#include "store/backup.h"
#include "store/dbfile.h"
#include "store/state.h"
#include "wire/tar.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 64 * 1024, TEXT_MAX = 1 << 20, WALK_FDS = 16 };

struct unpacking {
    int fd;
    const char *folder;
    struct restore_report *report;
    struct why *why;
    struct buf sums; /* of what came, as the archive's own should be */
    struct buf manifest;
    bool has_secret;
    bool has_state;
    bool ended; /* its sums came, and they are right */
};

static int refuse(struct unpacking *u, const char *what)
{
    why_set(u->why, "This is no whole backup: %s. Nothing was changed; take another one.", what);
    return ERR_FORMAT;
}

/* Exactly len bytes. */
static int take(struct unpacking *u, uint8_t *to, size_t len)
{
    size_t done = 0;
    while (done < len) {
        ssize_t n = read(u->fd, to + done, len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            why_set(u->why, "The backup cannot be read: %s.", strerror(errno));
            return ERR_IO;
        }
        if (n == 0)
            return refuse(u, "it is cut off");
        done += (size_t)n;
    }
    return 0;
}

static int pass_padding(struct unpacking *u, int64_t size)
{
    uint8_t zeros[TAR_BLOCK];
    return take(u, zeros, tar_padding(size));
}

static void note_sum(struct unpacking *u, const char *name, const uint8_t digest[ARCHIVE_DIGEST])
{
    char hex[ARCHIVE_HEX];
    char line[ARCHIVE_HEX + TAR_NAME_MAX + 4];
    int n = snprintf(line, sizeof(line), "%s  %.99s\n", archive_hex(digest, hex), name);
    buf_append(&u->sums, line, (size_t)n);
}

static int take_text(struct unpacking *u, const struct tar_entry *e, struct buf *ret)
{
    if (e->size > TEXT_MAX)
        return refuse(u, "a short file in it is long");
    buf_clear(ret);
    int err = take(u, buf_extend(ret, (size_t)e->size), (size_t)e->size);
    return err == 0 ? pass_padding(u, e->size) : err;
}

static int write_all(struct unpacking *u, int fd, const uint8_t *at, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            why_set(u->why, "The backup cannot be unpacked into %s: %s. Nothing was changed.",
                    u->folder, full_reason(errno));
            return ERR_IO;
        }
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

static int copy_file(struct unpacking *u, const struct tar_entry *e, int fd,
                     uint8_t ret_digest[ARCHIVE_DIGEST])
{
    uint8_t *block = xmalloc(BLOCK);
    crypto_hash_sha256_state hash;
    int err = 0;
    crypto_hash_sha256_init(&hash);
    for (int64_t left = e->size; left > 0 && err == 0;) {
        size_t n = left < BLOCK ? (size_t)left : BLOCK;
        err = take(u, block, n);
        if (err == 0) {
            crypto_hash_sha256_update(&hash, block, n);
            err = u->folder ? write_all(u, fd, block, n) : 0;
        }
        left -= (int64_t)n;
    }
    crypto_hash_sha256_final(&hash, ret_digest);
    sodium_memzero(block, BLOCK);
    free(block);
    return err;
}

static int take_file(struct unpacking *u, const struct tar_entry *e, mode_t mode,
                     uint8_t ret_digest[ARCHIVE_DIGEST])
{
    char path[PATH_MAX];
    if (!u->folder) {
        int seen = copy_file(u, e, -1, ret_digest);
        note_sum(u, e->name, ret_digest);
        return seen == 0 ? pass_padding(u, e->size) : seen;
    }
    (void)snprintf(path, sizeof(path), "%s/%s", u->folder, e->name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 && errno == EEXIST)
        return refuse(u, "a file is in it twice");
    if (fd < 0) {
        why_set(u->why, "%s cannot be made: %s.", path, strerror(errno));
        return ERR_IO;
    }
    int err = copy_file(u, e, fd, ret_digest);
    if (err == 0 && (fchmod(fd, mode) != 0 || fsync(fd) != 0)) {
        why_set(u->why, "%s cannot be written: %s.", path, full_reason(errno));
        err = ERR_IO;
    }
    close(fd);
    if (err == 0)
        note_sum(u, e->name, ret_digest);
    return err == 0 ? pass_padding(u, e->size) : err;
}

static int take_secret(struct unpacking *u, const struct tar_entry *e)
{
    uint8_t digest[ARCHIVE_DIGEST];
    u->has_secret = true;
    return e->size == BACKUP_SECRET_SIZE ? take_file(u, e, 0600, digest)
                                         : refuse(u, "its secret has another length");
}

static int take_deployment(struct unpacking *u, const struct tar_entry *e, const char *hex)
{
    char path[PATH_MAX];
    uint8_t named[ARCHIVE_DIGEST];
    uint8_t digest[ARCHIVE_DIGEST];
    if (!archive_from_hex(str_of(hex), named))
        return refuse(u, "it holds a file that does not belong there");
    (void)snprintf(path, sizeof(path), "%s/" BACKUP_DEPLOYMENTS, u->folder ? u->folder : "");
    if (u->folder && mkdir(path, 0700) != 0 && errno != EEXIST) {
        why_set(u->why, "%s cannot be made: %s.", path, strerror(errno));
        return ERR_IO;
    }
    int err = take_file(u, e, 0400, digest);
    if (err == 0 && memcmp(named, digest, sizeof(digest)) != 0)
        err = refuse(u, "the archive of a deployment is damaged");
    u->report->deployments++;
    return err;
}

static int take_sums(struct unpacking *u, const struct tar_entry *e)
{
    struct buf given = {0};
    int err = take_text(u, e, &given);
    if (err == 0 && (given.len != u->sums.len ||
                     (given.len > 0 && memcmp(given.data, u->sums.data, given.len) != 0)))
        err = refuse(u, "its sums are not those of its files, so something in it is damaged");
    buf_done(&given);
    u->ended = err == 0;
    return err;
}

static int take_failed(struct unpacking *u, const struct tar_entry *e)
{
    struct buf text = {0};
    int err = take_text(u, e, &text);
    if (err == 0) {
        why_set(u->why, "This backup could not be made: %.*s", (int)text.len,
                text.len ? (const char *)text.data : "");
        err = ERR_FORMAT;
    }
    buf_done(&text);
    return err;
}

static int take_noted_text(struct unpacking *u, const struct tar_entry *e, struct buf *ret)
{
    uint8_t digest[ARCHIVE_DIGEST];
    int err = take_text(u, e, ret);
    (void)crypto_hash_sha256(digest, ret->data, err == 0 ? ret->len : 0);
    note_sum(u, e->name, digest);
    return err;
}

static int take_entry(struct unpacking *u, const struct tar_entry *e)
{
    static const char deployments[] = BACKUP_DEPLOYMENTS "/";
    uint8_t digest[ARCHIVE_DIGEST];
    struct buf readme = {0};
    int err;
    if (strcmp(e->name, BACKUP_README) == 0)
        err = take_noted_text(u, e, &readme);
    else if (strcmp(e->name, BACKUP_MANIFEST) == 0)
        err = take_noted_text(u, e, &u->manifest);
    else if (strcmp(e->name, BACKUP_SECRET) == 0)
        err = take_secret(u, e);
    else if (strcmp(e->name, STATE_FILE) == 0)
        u->has_state = (err = take_file(u, e, 0600, digest)) == 0;
    else if (strncmp(e->name, deployments, sizeof(deployments) - 1) == 0)
        err = take_deployment(u, e, e->name + sizeof(deployments) - 1);
    else if (strcmp(e->name, BACKUP_SUMS) == 0)
        err = take_sums(u, e);
    else if (strcmp(e->name, BACKUP_FAILED) == 0)
        err = take_failed(u, e);
    else
        err = refuse(u, "it holds a file that does not belong there");
    buf_done(&readme);
    return err;
}

/* "name: value" of the manifest; "" when it is not there. */
static void manifest_value(const struct unpacking *u, const char *name, char *dst, size_t cap)
{
    const char *at = u->manifest.len ? (const char *)u->manifest.data : "";
    const char *end = at + u->manifest.len;
    size_t len = strlen(name);
    dst[0] = '\0';
    while (at < end) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        if (!line_end)
            break;
        if ((size_t)(line_end - at) > len + 2 && memcmp(at, name, len) == 0 && at[len] == ':') {
            (void)snprintf(dst, cap, "%.*s", (int)(line_end - at - (ptrdiff_t)len - 2),
                           at + len + 2);
            return;
        }
        at = line_end + 1;
    }
}

/* Before the tables are looked at: what a newer Muster wrote is none of our business. */
static int check_manifest(struct unpacking *u)
{
    char format[32];
    char with[8];
    char made[32];
    manifest_value(u, "muster", u->report->version, sizeof(u->report->version));
    manifest_value(u, "format", format, sizeof(format));
    manifest_value(u, "deployments", with, sizeof(with));
    manifest_value(u, "made_wall_ms", made, sizeof(made));
    u->report->made_wall_ms = strtoll(made, NULL, 10);
    u->report->with_deployments = strcmp(with, "yes") == 0;
    long version = strtol(format, NULL, 10);
    if (version >= DBFILE_FORMAT_OLDEST && version <= ROW_FORMAT)
        return 0;
    why_set(u->why,
            "This backup has format version %s of Muster %s, and this Muster understands %d to %d. "
            "Restore it with that version.",
            format, u->report->version, DBFILE_FORMAT_OLDEST, ROW_FORMAT);
    return ERR_FORMAT;
}

static int unpack(struct unpacking *u)
{
    uint8_t block[TAR_BLOCK];
    struct tar_entry entry;
    int err = 0;
    while (err == 0 && !u->ended) {
        err = take(u, block, sizeof(block));
        if (err == 0 && !tar_decode(block, &entry))
            err = refuse(u, "it is damaged, or another kind of file");
        if (err == 0 && !entry.name[0])
            err = refuse(u, "it ends without its sums");
        if (err == 0)
            err = take_entry(u, &entry);
    }
    if (err == 0 && (!u->has_secret || !u->has_state || u->manifest.len == 0))
        err = refuse(u, "it lacks what every backup has");
    return err == 0 ? check_manifest(u) : err;
}

int restore_unpack(int fd, const char *folder, struct restore_report *ret, struct why *why)
{
    struct unpacking u = {.fd = fd, .folder = folder, .report = ret, .why = why};
    int err = unpack(&u);
    buf_done(&u.sums);
    buf_done(&u.manifest);
    return err;
}

static _Thread_local struct {
    uid_t user;
    gid_t group;
} owner;

static int give(const char *path, const struct stat *st, int type, struct FTW *walk)
{
    (void)st;
    (void)type;
    (void)walk;
    return lchown(path, owner.user, owner.group);
}

int restore_give(const char *folder, uid_t user, gid_t group)
{
    owner.user = user;
    owner.group = group;
    return nftw(folder, give, WALK_FDS, FTW_PHYS) == 0 ? 0 : ERR_IO;
}
