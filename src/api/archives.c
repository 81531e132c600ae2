/*   IDLE ──one is missing──▶ DOWNLOADING ──▶ SETTLING (on libuv's threads) ──▶ IDLE
 *     ▲                           └──────────────┴──failed: the next node, or when all have──▶
 * LATER └─────────────────────────────────────────────────────the next try is due────────────────┘
 */
#include "api/archives.h"

#include "api/access.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/full.h"
#include "base/log.h"
#include "net/http_client.h"
#include "net/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LOOK_MS = 500,
    DOWNLOAD_MS = 15 * 60 * 1000,
    TOKEN_MS = 20 * 60 * 1000,
    RETRY_MIN_MS = 1000,
    RETRY_MAX_MS = 30 * 1000,
    BLOCK = 256 * 1024,
    STRIDE = 8 << 20, /* hashed and brought to disk before it is asked whether to go on */
    REASON_MAX = 256,
    URL_MAX = ARCHIVES_URL + 128,
};
static const int64_t archive_bytes_max = INT64_C(4) << 30;

/* One archive on its way. */
struct fetch {
    struct archives *owner; /* NULL: nobody waits for it any more */
    uv_work_t work;
    struct http_call *call;
    uint8_t digest[ARCHIVE_DIGEST];
    char hex[ARCHIVE_HEX];
    char folder[PATH_MAX - 128];
    char path[PATH_MAX]; /* what has come so far; "" = it has its name, or there is nothing */
    int fd;
    _Atomic bool stop;
    bool settling; /* on another thread: only stop may be touched */
    bool kept;
    int64_t bytes;
    char why[REASON_MAX]; /* a clause */
};

struct archives {
    struct archives_config config;
    struct http_client *client;
    size_t source;                   /* the node that is asked, or is asked next */
    char from[ARCHIVES_URL];         /* … and its address; "" = there was none */
    uint8_t (*here)[ARCHIVE_DIGEST]; /* those that were seen */
    size_t n_here;
    uint8_t (*wanted)[ARCHIVE_DIGEST]; /* of the last look */
    size_t n_wanted;
    size_t max_wanted;
    size_t n_missing;
    struct fetch *fetch; /* NULL = none is on its way */
    int64_t look_ms;     /* monotonic: when the next look is due */
    int64_t retry_ms;    /* … and the next try */
    int64_t wait_ms;     /* how long the last one that failed was followed by a pause */
    char why[REASON_MAX + 128];
    bool stopped;
};

/* ── on another thread ─────────────────────────────────────────────────────────────────────── */

static void failed(struct fetch *f, const char *what)
{
    (void)snprintf(f->why, sizeof(f->why), "it cannot be %s: %s", what, full_reason(errno));
}

/* A stride at a time, so that whoever waits for the end of this need not wait for the disk to take
 * gigabytes. */
static bool settle_bytes(struct fetch *f, crypto_hash_sha256_state *hash)
{
    uint8_t *block = xcalloc(1, BLOCK);
    off_t synced = 0;
    ssize_t n = 0;
    while (!f->stop && (n = pread(f->fd, block, BLOCK, f->bytes)) > 0) {
        crypto_hash_sha256_update(hash, block, (size_t)n);
        f->bytes += n;
        if (f->bytes - synced < STRIDE)
            continue;
        (void)sync_file_range(f->fd, synced, f->bytes - synced,
                              SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                                  SYNC_FILE_RANGE_WAIT_AFTER);
        synced = f->bytes;
    }
    if (n < 0)
        failed(f, "read again");
    free(block);
    return n == 0 && !f->stop;
}

static bool sync_folder(const char *path)
{
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool synced = folder >= 0 && fsync(folder) == 0;
    if (folder >= 0)
        close(folder);
    return synced;
}

static void settle(uv_work_t *job)
{
    struct fetch *f = job->data;
    char final[PATH_MAX];
    uint8_t digest[ARCHIVE_DIGEST];
    crypto_hash_sha256_state hash;
    crypto_hash_sha256_init(&hash);
    if (!settle_bytes(f, &hash))
        return;
    crypto_hash_sha256_final(&hash, digest);
    if (memcmp(digest, f->digest, sizeof(digest)) != 0) {
        (void)snprintf(f->why, sizeof(f->why), "what came is something else");
        return;
    }
    (void)snprintf(final, sizeof(final), "%s/%s", f->folder, f->hex);
    if (fsync(f->fd) != 0 || fchmod(f->fd, 0400) != 0 || rename(f->path, final) != 0) {
        failed(f, "stored");
        return;
    }
    f->path[0] = '\0';
    f->kept = sync_folder(f->folder);
    if (!f->kept)
        failed(f, "stored");
}

/* ── on the loop ───────────────────────────────────────────────────────────────────────────── */

static void fetch_free(struct fetch *f)
{
    if (f->call)
        http_call_drop(f->call);
    if (f->fd >= 0)
        close(f->fd);
    if (f->path[0])
        (void)unlink(f->path);
    free(f);
}

static bool is_here(const struct archives *a, const uint8_t digest[ARCHIVE_DIGEST])
{
    for (size_t i = 0; i < a->n_here; i++) {
        if (memcmp(a->here[i], digest, ARCHIVE_DIGEST) == 0)
            return true;
    }
    return false;
}

static void add_here(struct archives *a, const uint8_t digest[ARCHIVE_DIGEST])
{
    a->here = xrealloc(a->here, (a->n_here + 1) * sizeof(*a->here));
    memcpy(a->here[a->n_here++], digest, ARCHIVE_DIGEST);
}

/* What is here under its name is whole. */
static bool find(struct archives *a, const uint8_t digest[ARCHIVE_DIGEST])
{
    char hex[ARCHIVE_HEX];
    char path[PATH_MAX];
    if (is_here(a, digest))
        return true;
    (void)snprintf(path, sizeof(path), "%s/%s", a->config.folder, archive_hex(digest, hex));
    if (access(path, R_OK) != 0)
        return false;
    add_here(a, digest);
    return true;
}

static void finish(struct fetch *f)
{
    struct archives *a = f->owner;
    char quoted[LOG_QUOTE_MAX + 8];
    a->fetch = NULL;
    if (f->kept) {
        log_line(LOG_INFO, "deployment taken", "digest=%.16s bytes=%lld from=%s", f->hex,
                 (long long)f->bytes, a->from);
        add_here(a, f->digest);
        archives_try_again(a);
    } else {
        (void)snprintf(a->why, sizeof(a->why),
                       "Deployment %.16s cannot be fetched from %.80s: %.200s.", f->hex, a->from,
                       f->why);
        if (a->wait_ms == 0)
            log_line(LOG_WARN, "deployment not taken", "digest=%.16s from=%s reason=%s", f->hex,
                     a->from, log_quote(quoted, str_of(f->why)));
        a->source++;
    }
    fetch_free(f);
    archives_look(a);
    a->config.changed(a->config.user);
}

static void after_settling(uv_work_t *job, int status)
{
    (void)status;
    struct fetch *f = job->data;
    f->settling = false;
    if (f->owner)
        finish(f);
    else
        fetch_free(f);
}

static void on_downloaded(void *user, const struct http_reply *reply)
{
    struct fetch *f = user;
    f->call = NULL;
    if (reply->status == 200) {
        f->settling = true;
        (void)uv_queue_work(&f->owner->config.loop->uv, &f->work, settle, after_settling);
        return;
    }
    if (reply->status == 0)
        (void)snprintf(f->why, sizeof(f->why), "%.200s", reply->why);
    else
        (void)snprintf(f->why, sizeof(f->why), "it answered %d", reply->status);
    finish(f);
}

/* A file for what comes; false with a clause. */
static bool open_file(struct fetch *f)
{
    if (mkdir(f->folder, 0700) != 0 && errno != EEXIST) {
        failed(f, "stored");
        return false;
    }
    (void)snprintf(f->path, sizeof(f->path), "%s/.pull-XXXXXX", f->folder);
    f->fd = mkostemp(f->path, O_CLOEXEC);
    if (f->fd >= 0)
        return true;
    f->path[0] = '\0';
    failed(f, "stored");
    return false;
}

/* The secret is all nodes', so each can show the other a token that holds. */
static void show_token(struct archives *a)
{
    struct buf token = {0};
    char account[96];
    int64_t now_ms = clock_wall_ms();
    (void)snprintf(account, sizeof(account), "node:%.40s", a->config.node);
    access_issue(a->config.access, account, ACCESS_HOST, now_ms, now_ms + TOKEN_MS, &token);
    buf_append(&token, "", 1);
    http_client_set_token(a->client, (const char *)token.data);
    buf_done(&token);
}

/* The one to ask next; false when all were asked, or there is none. */
static bool find_source(struct archives *a)
{
    if (a->config.source(a->config.user, a->source, a->from))
        return true;
    if (a->source == 0)
        (void)snprintf(a->why, sizeof(a->why), "There is no other node that could give them.");
    a->from[0] = '\0';
    a->source = 0;
    a->wait_ms = a->wait_ms == 0 ? RETRY_MIN_MS : 2 * a->wait_ms;
    a->wait_ms = a->wait_ms > RETRY_MAX_MS ? RETRY_MAX_MS : a->wait_ms;
    a->retry_ms = clock_monotonic_ms() + a->wait_ms;
    return false;
}

static void begin(struct archives *a, const uint8_t digest[ARCHIVE_DIGEST])
{
    char url[URL_MAX];
    if (!find_source(a))
        return;
    struct fetch *f = xcalloc(1, sizeof(*f));
    f->owner = a;
    f->fd = -1;
    f->work.data = f;
    memcpy(f->digest, digest, ARCHIVE_DIGEST);
    (void)archive_hex(digest, f->hex);
    (void)snprintf(f->folder, sizeof(f->folder), "%s", a->config.folder);
    a->fetch = f;
    if (open_file(f)) {
        show_token(a);
        size_t len = strlen(a->from);
        (void)snprintf(url, sizeof(url), "%.*s/v1/deployments/%s/archive",
                       (int)(len > 0 && a->from[len - 1] == '/' ? len - 1 : len), a->from, f->hex);
        f->call = http_client_download(a->client, url, f->fd, archive_bytes_max, DOWNLOAD_MS,
                                       on_downloaded, f);
        if (f->call)
            return;
        (void)snprintf(f->why, sizeof(f->why), "it cannot be asked for");
    }
    a->fetch = NULL;
    (void)snprintf(a->why, sizeof(a->why), "Deployment %.16s cannot be fetched: %s.", f->hex,
                   f->why);
    a->retry_ms = clock_monotonic_ms() + RETRY_MAX_MS;
    fetch_free(f);
}

/* ── which are missing ─────────────────────────────────────────────────────────────────────── */

static void ask_wanted(struct archives *a)
{
    size_t n = a->config.wanted(a->config.user, a->wanted, a->max_wanted);
    while (n > a->max_wanted) { /* more may come while we ask again */
        a->max_wanted = n + 16;
        a->wanted = xrealloc(a->wanted, a->max_wanted * sizeof(*a->wanted));
        n = a->config.wanted(a->config.user, a->wanted, a->max_wanted);
    }
    a->n_wanted = n;
}

void archives_look(struct archives *a)
{
    const uint8_t *first = NULL;
    int64_t now_ms = clock_monotonic_ms();
    if (a->stopped)
        return;
    a->look_ms = now_ms + LOOK_MS;
    a->n_missing = 0;
    ask_wanted(a);
    for (size_t i = 0; a->wanted && i < a->n_wanted; i++) {
        if (find(a, a->wanted[i]))
            continue;
        first = first ? first : a->wanted[i];
        a->n_missing++;
    }
    if (first && !a->fetch && now_ms >= a->retry_ms)
        begin(a, first);
}

bool archives_are_here(const struct archives *a, char why[CLUSTER_WHY_MAX])
{
    if (a->n_missing == 0)
        return true;
    int n = snprintf(why, CLUSTER_WHY_MAX, "This node lacks the archives of %zu deployment%s.",
                     a->n_missing, a->n_missing == 1 ? "" : "s");
    if (a->why[0])
        (void)snprintf(why + n, CLUSTER_WHY_MAX - (size_t)n, " %s", a->why);
    return false;
}

void archives_tick(struct archives *a, int64_t monotonic_ms)
{
    size_t missing = a->n_missing;
    if (monotonic_ms < a->look_ms)
        return;
    archives_look(a);
    if (a->n_missing != missing)
        a->config.changed(a->config.user);
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

struct archives *archives_new(const struct archives_config *config)
{
    struct archives *a = xcalloc(1, sizeof(*a));
    a->config = *config;
    a->client = http_client_new(
        config->loop, &(struct http_client_config){.ca_file = config->ca_file && config->ca_file[0]
                                                                  ? config->ca_file
                                                                  : NULL});
    return a;
}

void archives_try_again(struct archives *a)
{
    a->source = 0;
    a->retry_ms = 0;
    a->wait_ms = 0;
    a->why[0] = '\0';
}

void archives_stop(struct archives *a)
{
    struct fetch *f = a->fetch;
    a->stopped = true;
    a->fetch = NULL;
    if (!f)
        return;
    f->owner = NULL;
    f->stop = true;
    if (!f->settling)
        fetch_free(f);
}

void archives_free(struct archives *a)
{
    if (!a)
        return;
    archives_stop(a);
    http_client_free(a->client);
    free(a->here);
    free(a->wanted);
    free(a);
}
