/*   asked ──there──▶ told, in the next turn
 *     └──▶ DOWNLOADING ──▶ UNPACKING (on libuv's threads) ──▶ told
 *           │ ▲  └──────────────┴──▶ told why not; whoever asks next tries again
 *           ▼ │
 *          WAITING, a moment, for a control plane that changes its leader */
#include "agent/deployments.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/full.h"
#include "base/list.h"
#include "base/log.h"
#include "net/http_client.h"
#include "net/loop.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    DOWNLOAD_MS = 15 * 60 * 1000,
    URL_MAX = 512,
    TRIES_MAX = 20,
    AGAIN_MS = 500,

    STATUS_OK = 200,
    STATUS_ELSEWHERE = 307,
    STATUS_UNKNOWN = 404,
    STATUS_UNAVAILABLE = 503,
};
static const int64_t archive_bytes_max = INT64_C(4) << 30;

struct waiter {
    struct link link;
    deployments_done *done;
    void *user;
};

/* One deployment on its way. */
struct pull {
    struct link link;
    struct deployments *owner; /* NULL: closed meanwhile */
    struct list waiters;
    uint8_t digest[ARCHIVE_DIGEST];
    char hex[ARCHIVE_HEX];
    char folder[PATH_MAX - 128]; /* of all deployments */
    char file[PATH_MAX];         /* what is downloaded; "" = nothing */
    int fd;
    struct http_call *call;
    int tries;
    bool waits;
    int64_t again_ms; /* monotonic: when it is tried again; 0 = the next tick sets it */
    uv_work_t work;
    int err;
    char why[ARCHIVE_WHY_MAX];
};

struct deployments {
    struct loop *loop;
    struct http_client *client;
    deployments_where *where;
    void *user;
    char folder[PATH_MAX - 128];
    uint8_t digests[DEPLOYMENTS_MAX][ARCHIVE_DIGEST];
    size_t n;
    struct list pulls;
};

/* ── what is there ─────────────────────────────────────────────────────────────────────────── */

static bool has(const struct deployments *d, const uint8_t digest[ARCHIVE_DIGEST])
{
    for (size_t i = 0; i < d->n; i++) {
        if (memcmp(d->digests[i], digest, ARCHIVE_DIGEST) == 0)
            return true;
    }
    return false;
}

static void add(struct deployments *d, const uint8_t digest[ARCHIVE_DIGEST])
{
    if (d->n < DEPLOYMENTS_MAX && !has(d, digest))
        memcpy(d->digests[d->n++], digest, ARCHIVE_DIGEST);
}

/* Folders by their names; anything else is what a crash has left. */
static void look_around(struct deployments *d, DIR *dir)
{
    struct dirent *e = NULL;
    while ((e = readdir(dir))) {
        uint8_t digest[ARCHIVE_DIGEST];
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (archive_from_hex(str_of(e->d_name), digest))
            add(d, digest);
        else
            archive_remove(d->folder, e->d_name);
    }
}

/* A shim enters what we name, and may be elsewhere. */
static void be_absolute(struct deployments *d)
{
    char path[PATH_MAX];
    if (realpath(d->folder, path))
        (void)str_copy(d->folder, sizeof(d->folder), str_of(path));
}

int deployments_open(struct loop *loop, struct http_client *client, deployments_where *where,
                     void *user, const char *folder, struct deployments **ret,
                     char why[ARCHIVE_WHY_MAX])
{
    struct deployments *d = xcalloc(1, sizeof(*d));
    d->loop = loop;
    d->client = client;
    d->where = where;
    d->user = user;
    list_init(&d->pulls);
    (void)snprintf(d->folder, sizeof(d->folder), "%s/deployments", folder);
    /* Servers run with other uids and must be able to read. */
    DIR *dir = mkdir(d->folder, 0755) == 0 || errno == EEXIST ? opendir(d->folder) : NULL;
    if (!dir) {
        (void)snprintf(why, ARCHIVE_WHY_MAX, "Cannot use %.300s: %s.", d->folder, strerror(errno));
        free(d);
        return ERR_IO;
    }
    look_around(d, dir);
    closedir(dir);
    be_absolute(d);
    *ret = d;
    return 0;
}

size_t deployments_count(const struct deployments *d)
{
    return d->n;
}

const uint8_t *deployments_at(const struct deployments *d, size_t i)
{
    return d->digests[i];
}

/* ── pulling ───────────────────────────────────────────────────────────────────────────────── */

static void pull_free(struct pull *p)
{
    struct link *n = NULL;
    while ((n = list_first(&p->waiters))) {
        list_remove(n);
        free(container_of(n, struct waiter, link));
    }
    list_remove(&p->link);
    if (p->call)
        http_call_drop(p->call);
    if (p->fd >= 0)
        close(p->fd);
    if (p->file[0])
        (void)unlink(p->file);
    free(p);
}

static void tell(struct pull *p)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/%s", p->folder, p->hex);
    list_remove(&p->link); /* who asks from within is a new one */
    struct link *n = NULL;
    while ((n = list_first(&p->waiters))) {
        struct waiter *w = container_of(n, struct waiter, link);
        list_remove(n);
        w->done(w->user, p->err ? NULL : path, p->err, p->why);
        free(w);
    }
}

static void unpack(uv_work_t *job)
{
    struct pull *p = job->data;
    uint8_t digest[ARCHIVE_DIGEST];
    if (!p->file[0])
        return; /* it was there */
    p->err = archive_digest(p->fd, NULL, digest);
    if (p->err) {
        (void)snprintf(p->why, sizeof(p->why), "The archive cannot be read again.");
    } else if (memcmp(digest, p->digest, sizeof(digest)) != 0) {
        p->err = ERR_BAD_ARCHIVE;
        (void)snprintf(p->why, sizeof(p->why), "What came for deployment %.16s is something else.",
                       p->hex);
    } else {
        p->err = archive_unpack(p->file, p->folder, p->hex, &archive_limits_default, p->why);
    }
}

static void unpacked(uv_work_t *job, int status)
{
    (void)status;
    struct pull *p = job->data;
    char quoted[LOG_QUOTE_MAX + 8];
    if (p->owner && !p->err)
        add(p->owner, p->digest);
    if (p->owner && p->err)
        log_line(LOG_WARN, "deployment not taken", "digest=%.16s reason=%s", p->hex,
                 log_quote(quoted, str_of(p->why)));
    else if (p->owner && p->file[0])
        log_line(LOG_INFO, "deployment taken", "digest=%.16s", p->hex);
    if (p->owner)
        tell(p);
    pull_free(p);
}

static void work(struct pull *p)
{
    (void)uv_queue_work(&p->owner->loop->uv, &p->work, unpack, unpacked);
}

/* Of what has come of it. */
static void discard(struct pull *p)
{
    if (p->file[0])
        (void)unlink(p->file);
    p->file[0] = '\0';
    if (p->fd >= 0)
        close(p->fd);
    p->fd = -1;
}

static void give_up(struct pull *p, int err, const char *why)
{
    p->err = err;
    (void)snprintf(p->why, sizeof(p->why), "Deployment %.16s cannot be fetched: %.200s.", p->hex,
                   why);
    discard(p);
    work(p); /* told from the loop, as everything is */
}

static void downloaded(void *user, const struct http_reply *reply)
{
    struct pull *p = user;
    p->call = NULL;
    char status[64];
    (void)snprintf(status, sizeof(status), "the control plane answered %d", reply->status);
    bool soon = reply->status == 0 || reply->status == STATUS_ELSEWHERE ||
                reply->status == STATUS_UNAVAILABLE;
    if (reply->status == STATUS_OK) {
        work(p);
    } else if (soon && p->tries < TRIES_MAX) {
        p->waits = true;
        p->again_ms = 0;
        discard(p);
    } else {
        give_up(p, reply->status == STATUS_UNKNOWN ? ERR_NOT_FOUND : ERR_IO,
                reply->status == 0 ? reply->why : status);
    }
}

static void download(struct pull *p)
{
    char url[URL_MAX];
    p->tries++;
    (void)snprintf(p->file, sizeof(p->file), "%s/.pull-XXXXXX", p->folder);
    p->fd = mkostemp(p->file, O_CLOEXEC);
    if (p->fd < 0) {
        p->file[0] = '\0';
        give_up(p, ERR_IO, full_reason(errno));
        return;
    }
    (void)snprintf(url, sizeof(url), "%s/v1/deployments/%s/archive",
                   p->owner->where(p->owner->user), p->hex);
    p->call = http_client_download(p->owner->client, url, p->fd, archive_bytes_max, DOWNLOAD_MS,
                                   downloaded, p);
    if (!p->call)
        give_up(p, ERR_IO, "it cannot be asked for");
}

static struct pull *find(const struct deployments *d, const uint8_t digest[ARCHIVE_DIGEST])
{
    LIST_EACH(&d->pulls, p, struct pull, link)
    {
        if (memcmp(p->digest, digest, ARCHIVE_DIGEST) == 0)
            return p;
    }
    return NULL;
}

bool deployments_is_coming(const struct deployments *d, const uint8_t digest[ARCHIVE_DIGEST])
{
    return has(d, digest) || find(d, digest);
}

void deployments_tick(struct deployments *d, int64_t monotonic_ms)
{
    LIST_EACH(&d->pulls, p, struct pull, link)
    {
        if (!p->waits)
            continue;
        if (p->again_ms == 0)
            p->again_ms = monotonic_ms + AGAIN_MS;
        if (monotonic_ms < p->again_ms)
            continue;
        p->waits = false;
        download(p);
    }
}

void deployments_get(struct deployments *d, const uint8_t digest[ARCHIVE_DIGEST],
                     deployments_done *done, void *user)
{
    struct pull *p = find(d, digest);
    bool begun = p != NULL;
    struct waiter *w = xcalloc(1, sizeof(*w));
    *w = (struct waiter){.done = done, .user = user};
    if (!begun) {
        p = xcalloc(1, sizeof(*p));
        p->owner = d;
        p->fd = -1;
        p->work.data = p;
        memcpy(p->digest, digest, sizeof(p->digest));
        (void)archive_hex(digest, p->hex);
        (void)snprintf(p->folder, sizeof(p->folder), "%s", d->folder);
        list_init(&p->waiters);
        list_append(&d->pulls, &p->link);
    }
    list_append(&p->waiters, &w->link);
    if (!begun && has(d, digest))
        work(p);
    else if (!begun)
        download(p);
}

void deployments_drop(struct deployments *d, const void *user)
{
    LIST_EACH(&d->pulls, p, struct pull, link)
    {
        LIST_EACH(&p->waiters, w, struct waiter, link)
        {
            if (w->user == user) {
                list_remove(&w->link);
                free(w);
            }
        }
    }
}

void deployments_close(struct deployments *d)
{
    if (!d)
        return;
    LIST_EACH(&d->pulls, p, struct pull, link)
    {
        list_remove(&p->link);
        p->owner = NULL;
        if (p->call || p->waits)
            pull_free(p); /* else it is on another thread, and frees itself */
    }
    free(d);
}
