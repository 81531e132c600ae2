/* libarchive reads; the files are written here, each under openat2 with RESOLVE_BENEATH, so that no
 * name and no link can lead outside whatever the checks before it thought of the name.
 *
 * The library brings sixteen others and is needed once per deployment, so it is loaded then. */
#include "store/archive.h"

#include "base/err.h"
#include "base/full.h"

#include <archive.h>
#include <archive_entry.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    READ_BLOCK = 64 * 1024,
    DEPTH_MAX = 32,
    RATIO_FROM = 16 << 20, /* bytes below which nobody calls it a bomb */
    WALK_FDS = 16,
};

#define LIBRARY "libarchive.so.13"
#define FUNCTIONS(X)                                                                               \
    X(read_new)                                                                                    \
    X(read_free)                                                                                   \
    X(read_support_filter_gzip)                                                                    \
    X(read_support_format_tar)                                                                     \
    X(read_support_format_zip)                                                                     \
    X(read_open_filename)                                                                          \
    X(read_next_header)                                                                            \
    X(read_data_block)                                                                             \
    X(filter_bytes)                                                                                \
    X(error_string)                                                                                \
    X(entry_pathname)                                                                              \
    X(entry_filetype)                                                                              \
    X(entry_symlink)                                                                               \
    X(entry_hardlink)                                                                              \
    X(entry_mode)

static struct {
#define X(name) __typeof__(archive_##name) *name;
    FUNCTIONS(X)
#undef X
    bool whole;
} lib;

static void load(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    bool whole = library != NULL;
#define X(name) whole = whole && (*(void **)&lib.name = dlsym(library, "archive_" #name)) != NULL;
    FUNCTIONS(X)
#undef X
    lib.whole = whole;
}

const char *archive_load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, load);
    return lib.whole ? NULL : LIBRARY " cannot be loaded; install the package libarchive13";
}

const struct archive_limits archive_limits_default = {
    .unpacked_bytes = INT64_C(16) << 30,
    .files = 200 * 1000,
    .ratio = 200,
};

struct unpacking {
    struct archive *archive;
    int root; /* the folder that is being filled */
    const struct archive_limits *limits;
    int64_t files;
    int64_t bytes;
    char *why;
};

__attribute__((format(printf, 3, 4))) static int refuse(struct unpacking *u, int err,
                                                        const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(u->why, ARCHIVE_WHY_MAX, format, args);
    va_end(args);
    return err;
}

/* ── names ─────────────────────────────────────────────────────────────────────────────────── */

static bool is_bad_part(const char *part, size_t len)
{
    return len > NAME_MAX || (len == 2 && memcmp(part, "..", 2) == 0);
}

/* Whether a name stays inside, says something, and can be shown to a person. */
static const char *wrong_with(const char *name)
{
    size_t len = strlen(name);
    int depth = 0;
    if (len == 0 || len > ARCHIVE_NAME_MAX)
        return len == 0 ? "has an empty name" : "has a name that is too long";
    if (name[0] == '/' || strchr(name, '\\'))
        return name[0] == '/' ? "has an absolute name" : "has a backslash in its name";
    for (const char *p = name; *p; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7F)
            return "has a control character in its name";
    }
    for (const char *part = name; part; depth++) {
        const char *end = strchr(part, '/');
        if (is_bad_part(part, end ? (size_t)(end - part) : strlen(part)))
            return "has a name that leads out of the archive";
        part = end ? end + 1 : NULL;
    }
    return depth > DEPTH_MAX ? "lies too deep" : NULL;
}

/* The name as it is given to the kernel: without "./" in front and "/" behind. Empty for the
 * folder itself. */
static const char *plain_name(const char *name, char dst[ARCHIVE_NAME_MAX + 1])
{
    while (strncmp(name, "./", 2) == 0)
        name += 2;
    size_t len = strlen(name);
    while (len > 0 && name[len - 1] == '/')
        len--;
    if (len == 1 && name[0] == '.')
        len = 0;
    memcpy(dst, name, len);
    dst[len] = '\0';
    return dst;
}

/* ── files ─────────────────────────────────────────────────────────────────────────────────── */

static int open_beneath(int root, const char *name, uint64_t flags, uint64_t mode)
{
    struct open_how how = {
        .flags = flags | O_CLOEXEC,
        .mode = mode,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    return (int)syscall(SYS_openat2, root, name, &how, sizeof(how));
}

/* One folder inside another that is there. Two entries may name it. */
static int make_folder(struct unpacking *u, const char *name)
{
    char parent[ARCHIVE_NAME_MAX + 1];
    const char *slash = strrchr(name, '/');
    size_t len = slash ? (size_t)(slash - name) : 0;
    memcpy(parent, name, len);
    parent[len] = '\0';
    int fd = len > 0 ? open_beneath(u->root, parent, O_PATH | O_DIRECTORY, 0) : u->root;
    if (fd < 0)
        return refuse(u, ERR_BAD_ARCHIVE,
                      "\"%s\" in the archive lies inside something that is no "
                      "folder.",
                      name);
    int made = mkdirat(fd, slash ? slash + 1 : name, 0755);
    int why = errno;
    if (fd != u->root)
        close(fd);
    if (made == 0 || why == EEXIST)
        return 0;
    return refuse(u, ERR_IO, "Cannot make the folder \"%s\": %s.", name, strerror(why));
}

/* Every folder on the way to name; archives need not list them. */
static int make_way(struct unpacking *u, const char *name)
{
    char way[ARCHIVE_NAME_MAX + 1];
    int err = 0;
    for (const char *slash = strchr(name, '/'); slash && !err; slash = strchr(slash + 1, '/')) {
        size_t len = (size_t)(slash - name);
        memcpy(way, name, len);
        way[len] = '\0';
        err = make_folder(u, way);
    }
    return err;
}

static int grew(struct unpacking *u, size_t n)
{
    u->bytes += (int64_t)n;
    int64_t packed = lib.filter_bytes(u->archive, -1);
    if (u->bytes > u->limits->unpacked_bytes)
        return refuse(u, ERR_BAD_ARCHIVE, "The archive unpacks to more than %lld bytes.",
                      (long long)u->limits->unpacked_bytes);
    if (u->bytes > RATIO_FROM && packed > 0 && u->bytes / packed > u->limits->ratio)
        return refuse(u, ERR_BAD_ARCHIVE,
                      "The archive unpacks to more than %lld times its size: that is a bomb.",
                      (long long)u->limits->ratio);
    return 0;
}

static int write_all(int fd, const uint8_t *data, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, data, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return errno;
        data += done;
        n -= (size_t)done;
    }
    return 0;
}

static int read_failed(struct unpacking *u)
{
    const char *text = lib.error_string(u->archive);
    return refuse(u, ERR_BAD_ARCHIVE, "The archive cannot be read: %s.", text ? text : "damaged");
}

static int fill_file(struct unpacking *u, int fd, const char *name)
{
    for (;;) {
        const void *block = NULL;
        size_t n = 0;
        la_int64_t at = 0;
        int r = lib.read_data_block(u->archive, &block, &n, &at);
        if (r == ARCHIVE_EOF)
            return 0;
        if (r != ARCHIVE_OK)
            return read_failed(u);
        int err = grew(u, n);
        if (err)
            return err;
        /* A sparse entry leaves holes; what it skips was not written and reads as zeros. */
        int failed = lseek(fd, at, SEEK_SET) < 0 ? errno : write_all(fd, block, n);
        if (failed)
            return refuse(u, ERR_IO, "Cannot write \"%s\": %s.", name, full_reason(failed));
    }
}

static int take_file(struct unpacking *u, const struct archive_entry *entry, const char *name)
{
    bool runs = lib.entry_mode((struct archive_entry *)entry) & 0111;
    int err = make_way(u, name);
    if (err)
        return err;
    int fd = open_beneath(u->root, name, O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (fd < 0 && errno == EEXIST)
        return refuse(u, ERR_BAD_ARCHIVE, "\"%s\" is in the archive twice.", name);
    if (fd < 0)
        return refuse(u, full_is(errno) ? ERR_IO : ERR_BAD_ARCHIVE, "Cannot make \"%s\": %s.", name,
                      strerror(errno));
    err = fill_file(u, fd, name);
    if (!err && (fchmod(fd, runs ? 0555 : 0444) != 0 || fsync(fd) != 0))
        err = refuse(u, ERR_IO, "Cannot finish \"%s\": %s.", name, full_reason(errno));
    if (close(fd) != 0 && !err)
        err = refuse(u, ERR_IO, "Cannot finish \"%s\": %s.", name, full_reason(errno));
    return err;
}

static int take_entry(struct unpacking *u, struct archive_entry *entry)
{
    char plain[ARCHIVE_NAME_MAX + 1];
    const char *name = lib.entry_pathname(entry);
    mode_t type = lib.entry_filetype(entry);
    const char *wrong = name ? wrong_with(name) : "has a name that cannot be read";
    if (wrong)
        return refuse(u, ERR_BAD_ARCHIVE, "An entry of the archive %s.", wrong);
    if (lib.entry_symlink(entry) || lib.entry_hardlink(entry) ||
        (type != AE_IFREG && type != AE_IFDIR))
        return refuse(u, ERR_BAD_ARCHIVE,
                      "\"%.200s\" in the archive is a link or a device; only files and folders "
                      "are taken.",
                      name);
    if (++u->files > u->limits->files)
        return refuse(u, ERR_BAD_ARCHIVE, "The archive holds more than %lld files.",
                      (long long)u->limits->files);
    (void)plain_name(name, plain);
    if (plain[0] == '\0')
        return 0;
    if (type == AE_IFREG)
        return take_file(u, entry, plain);
    int err = make_way(u, plain);
    return err ? err : make_folder(u, plain);
}

static int take_all(struct unpacking *u, const char *path)
{
    struct archive *a = u->archive;
    (void)lib.read_support_filter_gzip(a);
    (void)lib.read_support_format_tar(a);
    (void)lib.read_support_format_zip(a);
    if (lib.read_open_filename(a, path, READ_BLOCK) != ARCHIVE_OK)
        return refuse(u, ERR_BAD_ARCHIVE, "This is neither a tar.gz nor a zip archive: %s.",
                      lib.error_string(a));
    int err = 0;
    while (!err) {
        struct archive_entry *entry = NULL;
        int r = lib.read_next_header(a, &entry);
        if (r == ARCHIVE_EOF)
            break;
        err = r == ARCHIVE_OK ? take_entry(u, entry) : read_failed(u);
    }
    if (!err && u->files == 0)
        err = refuse(u, ERR_BAD_ARCHIVE, "The archive is empty.");
    return err;
}

/* ── folders ───────────────────────────────────────────────────────────────────────────────── */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)ftw;
    return type == FTW_DP ? rmdir(path) : unlink(path);
}

static int make_writable(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)ftw;
    return type == FTW_D ? chmod(path, 0700) : 0;
}

static int make_read_only(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)ftw;
    return type == FTW_DP ? chmod(path, 0555) : 0;
}

static void remove_tree(const char *path)
{
    (void)nftw(path, make_writable, WALK_FDS, FTW_PHYS);
    (void)nftw(path, remove_one, WALK_FDS, FTW_PHYS | FTW_DEPTH);
}

void archive_remove(const char *parent, const char *name)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/%s", parent, name) < (int)sizeof(path))
        remove_tree(path);
}

static int sync_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int err = fd < 0 || fsync(fd) != 0 ? ERR_IO : 0;
    if (fd >= 0)
        close(fd);
    return err;
}

/* A folder that is being moved must be writable by its owner, who is not always root; so it loses
 * that last. */
static int put_in_place(struct unpacking *u, const char *from, const char *to, const char *parent)
{
    if (nftw(from, make_read_only, WALK_FDS, FTW_PHYS | FTW_DEPTH) != 0 || chmod(from, 0755) != 0 ||
        sync_folder(from) != 0)
        return refuse(u, ERR_IO, "Cannot finish %s: %s.", from, strerror(errno));
    if (rename(from, to) != 0 && errno != EEXIST && errno != ENOTEMPTY)
        return refuse(u, ERR_IO, "Cannot rename %s: %s.", from, strerror(errno));
    (void)chmod(to, 0555);
    return sync_folder(parent);
}

int archive_unpack(const char *path, const char *parent, const char *name,
                   const struct archive_limits *limits, char why[ARCHIVE_WHY_MAX])
{
    char final[PATH_MAX];
    char temporary[PATH_MAX];
    struct unpacking u = {.limits = limits, .why = why, .root = -1};
    why[0] = '\0';
    if (snprintf(final, sizeof(final), "%s/%s", parent, name) >= (int)sizeof(final) ||
        snprintf(temporary, sizeof(temporary), "%s/.%s.XXXXXX", parent, name) >=
            (int)sizeof(temporary))
        return refuse(&u, ERR_IO, "The name of the folder is too long.");
    if (access(final, F_OK) == 0)
        return 0;
    const char *missing = archive_load();
    if (missing)
        return refuse(&u, ERR_IO, "%s.", missing);
    if (!mkdtemp(temporary))
        return refuse(&u, ERR_IO, "Cannot make a folder in %s: %s.", parent, strerror(errno));
    u.root = open(temporary, O_PATH | O_DIRECTORY | O_CLOEXEC);
    u.archive = lib.read_new();
    int err = u.root >= 0 && u.archive ? take_all(&u, path)
                                       : refuse(&u, ERR_IO, "Cannot begin: %s.", strerror(errno));
    lib.read_free(u.archive);
    if (u.root >= 0)
        close(u.root);
    if (!err)
        err = put_in_place(&u, temporary, final, parent);
    if (access(temporary, F_OK) == 0)
        remove_tree(temporary);
    return err;
}

/* ── digests ───────────────────────────────────────────────────────────────────────────────── */

int archive_digest(int fd, const _Atomic bool *stop, uint8_t ret[ARCHIVE_DIGEST])
{
    uint8_t block[READ_BLOCK];
    crypto_hash_sha256_state state;
    crypto_hash_sha256_init(&state);
    off_t at = 0;
    for (;;) {
        if (stop && *stop)
            return ERR_IO;
        ssize_t n = pread(fd, block, sizeof(block), at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return ERR_IO;
        if (n == 0)
            break;
        crypto_hash_sha256_update(&state, block, (unsigned long long)n);
        at += n;
    }
    crypto_hash_sha256_final(&state, ret);
    return 0;
}

const char *archive_hex(const uint8_t digest[ARCHIVE_DIGEST], char dst[ARCHIVE_HEX])
{
    return sodium_bin2hex(dst, ARCHIVE_HEX, digest, ARCHIVE_DIGEST);
}

bool archive_from_hex(struct str hex, uint8_t ret[ARCHIVE_DIGEST])
{
    size_t n = 0;
    if (hex.len != ARCHIVE_HEX - 1 || memchr(hex.at, '\0', hex.len))
        return false;
    for (size_t i = 0; i < hex.len; i++) {
        if (!strchr("0123456789abcdef", hex.at[i]))
            return false;
    }
    return sodium_hex2bin(ret, ARCHIVE_DIGEST, hex.at, hex.len, NULL, &n, NULL) == 0 &&
           n == ARCHIVE_DIGEST;
}
