#include "store/backup.h"

#include "base/err.h"
#include "base/full.h"
#include "core/row.h"
#include "store/archive.h"
#include "store/state.h"
#include "wire/tar.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define COPY_PREFIX ".backup-"

static const int64_t spare_bytes = INT64_C(64) << 20; /* the running store goes on to need room */

static const char readme[] =
    "This is a backup of a Muster node: 'muster restore FILE' makes a data folder of it.\n"
    "Keep it as you keep a password: with the file 'secret' anybody can make valid tokens.\n"
    "state.db is an SQLite database; 'sha256sum -c SHA256SUMS' checks what was unpacked.\n";

/* A file in the archive: of the disk, or text. */
struct entry {
    char name[TAR_NAME_MAX];
    char *path; /* NULL = text */
    struct buf text;
    int64_t size;
};

struct backup {
    char *folder;
    char copy[sizeof(COPY_PREFIX) + 8]; /* the copy's folder in it; "" = none */
    int64_t wall_ms;
    struct entry *entries;
    size_t n;
    struct buf sums;
    struct why why; /* "" = it is whole */

    /* Where the reader stands. */
    size_t at;
    int fd;
    int64_t done; /* bytes of the entry; -1 = its head has not been read */
};

static struct entry *add(struct backup *b, const char *name)
{
    b->entries = xrealloc(b->entries, (b->n + 1) * sizeof(*b->entries));
    struct entry *e = &b->entries[b->n++];
    *e = (struct entry){0};
    (void)snprintf(e->name, sizeof(e->name), "%s", name);
    return e;
}

/* A line that `sha256sum -c` takes. */
static void add_sum(struct backup *b, const char *name, const uint8_t digest[ARCHIVE_DIGEST])
{
    char hex[ARCHIVE_HEX];
    char line[ARCHIVE_HEX + TAR_NAME_MAX + 4];
    int n = snprintf(line, sizeof(line), "%s  %s\n", archive_hex(digest, hex), name);
    buf_append(&b->sums, line, (size_t)n);
}

static void add_text(struct backup *b, const char *name, const void *text, size_t len)
{
    uint8_t digest[ARCHIVE_DIGEST];
    struct entry *e = add(b, name);
    buf_append(&e->text, text, len);
    e->size = (int64_t)len;
    (void)crypto_hash_sha256(digest, text, len);
    add_sum(b, name, digest);
}

static int add_file(struct backup *b, const char *name, const char *path,
                    const uint8_t *digest_known, const _Atomic bool *stop)
{
    struct stat st;
    uint8_t digest[ARCHIVE_DIGEST];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int err = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? 0 : ERR_IO;
    if (err == 0 && !digest_known)
        err = archive_digest(fd, stop, digest);
    if (err != 0)
        why_set(&b->why, "%s cannot be read: %s.", path,
                *stop ? "it was stopped" : full_reason(errno));
    if (fd >= 0)
        close(fd);
    if (err != 0)
        return err;
    struct entry *e = add(b, name);
    e->path = xstrdup(path);
    e->size = st.st_size;
    add_sum(b, name, digest_known ? digest_known : digest);
    return 0;
}

static void add_manifest(struct backup *b, const struct backup_wanted *wanted,
                         const struct store_tip *tip)
{
    char text[512];
    int n = snprintf(text, sizeof(text),
                     "muster: %s\nformat: %d\nbatch: %" PRId64 "\nwall_ms: %" PRId64
                     "\nmade_wall_ms: %" PRId64 "\ndeployments: %s\n",
                     wanted->version, ROW_FORMAT, tip->seq, tip->wall_ms, wanted->wall_ms,
                     wanted->deployments ? "yes" : "no");
    add_text(b, BACKUP_MANIFEST, text, (size_t)n);
}

static int add_secret(struct backup *b)
{
    char path[PATH_MAX];
    uint8_t secret[BACKUP_SECRET_SIZE];
    (void)snprintf(path, sizeof(path), "%s/" BACKUP_SECRET, b->folder);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool whole = fd >= 0 && read(fd, secret, sizeof(secret)) == (ssize_t)sizeof(secret);
    if (fd >= 0)
        close(fd);
    if (!whole) {
        why_set(&b->why, "%s cannot be read, and nothing is worth much without it.", path);
        return ERR_IO;
    }
    add_text(b, BACKUP_SECRET, secret, sizeof(secret));
    sodium_memzero(secret, sizeof(secret));
    return 0;
}

/* They never change and never go while a Muster runs, so they are read where they are. */
static int add_deployments(struct backup *b, const _Atomic bool *stop)
{
    char folder[PATH_MAX - ARCHIVE_HEX];
    char path[PATH_MAX];
    char name[TAR_NAME_MAX];
    uint8_t digest[ARCHIVE_DIGEST];
    int err = 0;
    (void)snprintf(folder, sizeof(folder), "%s/" BACKUP_DEPLOYMENTS, b->folder);
    DIR *dir = opendir(folder);
    for (struct dirent *e = NULL; dir && err == 0 && (e = readdir(dir));) {
        if (!archive_from_hex(str_of(e->d_name), digest))
            continue; /* one that is still coming */
        (void)snprintf(path, sizeof(path), "%s/%.64s", folder, e->d_name);
        (void)snprintf(name, sizeof(name), BACKUP_DEPLOYMENTS "/%.64s", e->d_name);
        err = add_file(b, name, path, digest, stop);
    }
    if (dir)
        closedir(dir);
    return err;
}

/* The copy must not take the room that the running store needs. The tables of a cell are elsewhere,
 * and their copy is here. */
static int check_space(struct backup *b, struct store *store)
{
    static const char *const files[] = {STATE_FILE, STATE_FILE "-wal", "journal.db"};
    struct store_figures figures = {0};
    struct statvfs fs;
    int64_t needed = spare_bytes;
    if (store_is_shared(store) && store_figures(store, &figures))
        needed += figures.state_bytes;
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        char path[PATH_MAX];
        struct stat st;
        (void)snprintf(path, sizeof(path), "%s/%s", b->folder, files[i]);
        needed += stat(path, &st) == 0 ? st.st_size : 0;
    }
    int64_t free_bytes =
        statvfs(b->folder, &fs) == 0 ? (int64_t)fs.f_bavail * (int64_t)fs.f_frsize : INT64_MAX;
    if (free_bytes >= needed)
        return 0;
    why_set(&b->why,
            "There is not enough room for a copy in %s: it needs up to %" PRId64
            " MiB for a while, and %" PRId64 " MiB are free. Make room there.",
            b->folder, needed >> 20, free_bytes >> 20);
    return ERR_IO;
}

static int make(struct backup *b, struct store *store, const struct backup_wanted *wanted,
                const _Atomic bool *stop)
{
    char copy[PATH_MAX - sizeof("/" STATE_FILE)];
    char path[PATH_MAX];
    struct store_tip tip = {0};
    int err = check_space(b, store);
    if (err != 0)
        return err;
    (void)snprintf(copy, sizeof(copy), "%s/" COPY_PREFIX "XXXXXX", b->folder);
    if (!mkdtemp(copy)) {
        why_set(&b->why, "A copy cannot be made in %s: %s.", b->folder, strerror(errno));
        return ERR_IO;
    }
    (void)snprintf(b->copy, sizeof(b->copy), "%s", strrchr(copy, '/') + 1);
    err = store_copy(store, copy, stop, &tip, &b->why);
    if (err != 0)
        return err;
    add_text(b, BACKUP_README, readme, sizeof(readme) - 1);
    add_manifest(b, wanted, &tip);
    (void)snprintf(path, sizeof(path), "%s/" STATE_FILE, copy);
    err = add_secret(b);
    if (err == 0)
        err = add_file(b, STATE_FILE, path, NULL, stop);
    if (err == 0 && wanted->deployments)
        err = add_deployments(b, stop);
    return err;
}

static void clear_entries(struct backup *b)
{
    for (size_t i = 0; i < b->n; i++) {
        if (b->entries[i].text.data)
            sodium_memzero(b->entries[i].text.data, b->entries[i].text.len);
        buf_done(&b->entries[i].text);
        free(b->entries[i].path);
    }
    b->n = 0;
}

void backup_make(struct store *store, const struct backup_wanted *wanted, const _Atomic bool *stop,
                 struct backup **ret)
{
    struct backup *b = xcalloc(1, sizeof(*b));
    b->folder = xstrdup(wanted->folder);
    b->wall_ms = wanted->wall_ms;
    b->fd = -1;
    b->done = -1;
    if (make(b, store, wanted, stop) == 0) {
        struct entry *sums = add(b, BACKUP_SUMS);
        buf_append(&sums->text, b->sums.data, b->sums.len);
        sums->size = (int64_t)b->sums.len;
        b->why.text[0] = '\0'; /* of what did not work at first */
    } else {
        clear_entries(b);
        add_text(b, BACKUP_FAILED, b->why.text, strlen(b->why.text));
    }
    *ret = b;
}

bool backup_failed(const struct backup *b, const char **ret_why)
{
    *ret_why = b->why.text;
    return b->why.text[0] != '\0';
}

void backup_free(struct backup *b)
{
    if (!b)
        return;
    if (b->fd >= 0)
        close(b->fd);
    if (b->copy[0])
        archive_remove(b->folder, b->copy);
    clear_entries(b);
    free(b->entries);
    buf_done(&b->sums);
    free(b->folder);
    free(b);
}

void backup_sweep(const char *folder)
{
    DIR *dir = folder ? opendir(folder) : NULL;
    for (struct dirent *e = NULL; dir && (e = readdir(dir));) {
        if (strncmp(e->d_name, COPY_PREFIX, sizeof(COPY_PREFIX) - 1) == 0)
            archive_remove(folder, e->d_name);
    }
    if (dir)
        closedir(dir);
}

/* ── reading ───────────────────────────────────────────────────────────────────────────────── */

static void put_zeros(struct buf *out, size_t n)
{
    memset(buf_extend(out, n), 0, n);
}

static int begin_entry(struct backup *b, struct buf *out)
{
    const struct entry *e = &b->entries[b->at];
    struct tar_entry head = {.size = e->size, .modified_s = b->wall_ms / 1000};
    memcpy(head.name, e->name, sizeof(head.name));
    b->fd = e->path ? open(e->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    if (e->path && b->fd < 0)
        return ERR_IO;
    tar_encode(&head, buf_extend(out, TAR_BLOCK));
    b->done = 0;
    return 0;
}

static void end_entry(struct backup *b, struct buf *out)
{
    put_zeros(out, tar_padding(b->entries[b->at].size));
    if (b->fd >= 0)
        close(b->fd);
    b->fd = -1;
    b->done = -1;
    b->at++;
    if (b->at == b->n)
        put_zeros(out, 2 * (size_t)TAR_BLOCK);
}

/* A file that has become shorter cuts the archive off; one that has grown is taken as it was. */
static int read_entry(struct backup *b, struct buf *out, size_t max)
{
    struct entry *e = &b->entries[b->at];
    size_t left = (size_t)(e->size - b->done);
    size_t n = left < max ? left : max;
    if (!e->path) {
        buf_append(out, e->text.data + b->done, n);
    } else {
        uint8_t *at = buf_extend(out, n);
        ssize_t got = pread(b->fd, at, n, b->done);
        out->len -= n - (got > 0 ? (size_t)got : 0);
        if (got <= 0 && n > 0)
            return ERR_IO;
        n = got > 0 ? (size_t)got : 0;
    }
    b->done += (int64_t)n;
    return 0;
}

int backup_read(struct backup *b, struct buf *out, size_t max)
{
    size_t before = out->len;
    int err = 0;
    while (err == 0 && b->at < b->n && out->len - before < max) {
        if (b->done < 0)
            err = begin_entry(b, out);
        if (err == 0)
            err = read_entry(b, out, max - (out->len - before) + 1);
        if (err == 0 && b->done == b->entries[b->at].size)
            end_entry(b, out);
    }
    if (err != 0)
        return err;
    return b->at < b->n;
}
