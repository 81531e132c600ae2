/* Deployments come in as archives of up to 4 GiB and go out to agents as they came. What is
 * written, hashed and unpacked for a look is done on libuv's threads; the loop only hands pieces
 * on.
 *
 *   RECEIVING ──last piece──▶ CHECKING ──▶ OPERATE_DEPLOY ──▶ shown
 *   at any time: refused with a sentence, or the client is gone; then nothing stays. */
#include "api/agents.h"
#include "api/call.h"
#include "api/launch.h"
#include "api/resource_room.h"
#include "base/err.h"
#include "base/full.h"
#include "net/loop.h"
#include "store/archive.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ANSWER_MS = 15 * 60 * 1000, SEND_BLOCK = 64 * 1024 };
static const int64_t archive_bytes_max = INT64_C(4) << 30;

struct upload {
    uv_work_t work;
    struct call *call; /* NULL: the client is gone */
    char folder[PATH_MAX - 128];
    char path[PATH_MAX]; /* of what has come so far; "" = it has its name */
    int fd;
    int64_t fleet;
    char binary[LAUNCH_TEXT_MAX]; /* that must be in it; "" = it is on the hosts */
    struct buf piece;
    bool last;
    bool working; /* on another thread: nothing here may be touched */
    int64_t size;
    crypto_hash_sha256_state hash;
    uint8_t digest[ARCHIVE_DIGEST];
    int err;
    char why[ARCHIVE_WHY_MAX];
};

static void upload_free(struct upload *u)
{
    if (u->path[0])
        (void)unlink(u->path);
    if (u->fd >= 0)
        close(u->fd);
    buf_done(&u->piece);
    free(u);
}

void deploy_drop(struct upload *u)
{
    if (!u)
        return;
    u->call = NULL;
    if (!u->working)
        upload_free(u);
}

/* ── on another thread ─────────────────────────────────────────────────────────────────────── */

static void failed(struct upload *u, const char *what)
{
    u->err = ERR_IO;
    (void)snprintf(u->why, sizeof(u->why), "The archive cannot be %s: %s.", what,
                   full_reason(errno));
}

static void write_piece(struct upload *u)
{
    const uint8_t *at = u->piece.data;
    size_t left = u->piece.len;
    crypto_hash_sha256_update(&u->hash, at, left);
    while (left > 0 && !u->err) {
        ssize_t n = write(u->fd, at, left);
        if (n < 0 && errno != EINTR)
            failed(u, "written");
        if (n > 0) {
            at += n;
            left -= (size_t)n;
        }
    }
    u->size += (int64_t)u->piece.len;
    buf_clear(&u->piece);
}

/* Servers of the fleet can be started from what is unpacked there. */
static void deploy_check_binary(struct upload *u, const char *trial)
{
    char path[PATH_MAX];
    struct stat st;
    int n = snprintf(path, sizeof(path), "%s/%s/%s", u->folder, trial, u->binary);
    bool there = n < (int)sizeof(path) && lstat(path, &st) == 0 && S_ISREG(st.st_mode);
    if (!u->binary[0] || (there && st.st_mode & 0100))
        return;
    u->err = ERR_BAD_ARCHIVE;
    (void)snprintf(u->why, sizeof(u->why), "The fleet starts %s, which is not %s.", u->binary,
                   there ? "executable" : "in the archive");
}

/* Unpacked once to see that agents can, then kept as it came. */
static void check_archive(struct upload *u)
{
    bool known; /* the same came before, perhaps for another fleet */
    char hex[ARCHIVE_HEX];
    char trial[ARCHIVE_HEX + 8];
    char final[PATH_MAX];
    crypto_hash_sha256_final(&u->hash, u->digest);
    (void)archive_hex(u->digest, hex);
    (void)snprintf(trial, sizeof(trial), "trial-%s", hex);
    (void)snprintf(final, sizeof(final), "%s/%s", u->folder, hex);
    if (fsync(u->fd) != 0) {
        failed(u, "stored");
        return;
    }
    known = access(final, F_OK) == 0;
    u->err = archive_unpack(u->path, u->folder, trial, &archive_limits_default, u->why);
    if (!u->err)
        deploy_check_binary(u, trial);
    archive_remove(u->folder, trial);
    if (u->err || known)
        return;
    if (fchmod(u->fd, 0400) != 0 || rename(u->path, final) != 0) {
        failed(u, "stored");
        return;
    }
    u->path[0] = '\0';
    int folder = open(u->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0 || fsync(folder) != 0)
        failed(u, "stored");
    if (folder >= 0)
        close(folder);
}

static void work(uv_work_t *job)
{
    struct upload *u = job->data;
    if (u->last)
        check_archive(u);
    else
        write_piece(u);
}

/* ── on the loop ───────────────────────────────────────────────────────────────────────────── */

static void show_deployment(struct call *c)
{
    struct view_deployment v;
    if (!view_deployment(call_core(c), c->object, &v))
        call_refuse(c, ERR_NOT_FOUND, NULL, "It was taken, but is forgotten already.");
    else
        call_render(c, &deployment_shape, &v);
    call_read(c);
}

static void keep(struct call *c, struct upload *u)
{
    char detail[128];
    char hex[ARCHIVE_HEX];
    struct str version = call_argument(c, "version")->text;
    const char *name = view_fleet_name(call_core(c), u->fleet);
    int n = snprintf(detail, sizeof(detail), "%s %.32s, %.16s", name, version.at,
                     archive_hex(u->digest, hex));
    struct operate o = {
        .verb = OPERATE_DEPLOY,
        .fleet = str_of(name),
        .name = version,
        .size = u->size,
        .detail = {detail, n < (int)sizeof(detail) ? (size_t)n : sizeof(detail) - 1},
    };
    memcpy(o.digest, u->digest, sizeof(o.digest));
    c->noun = "version";
    call_operate(c, &o, show_deployment);
}

static void after_work(uv_work_t *job, int status)
{
    (void)status;
    struct upload *u = job->data;
    struct call *c = u->call;
    u->working = false;
    if (!c) {
        upload_free(u);
        return;
    }
    if (u->err) {
        call_refuse(c, u->err, NULL, "%s", u->why);
        c->upload = NULL; /* nothing of it stays when he hears of it */
        upload_free(u);
        call_answer(c);
    } else if (u->last) {
        keep(c, u);
    } else {
        http_more(c->http);
    }
}

static void on_piece(void *user, struct http_request *http, struct str piece, bool last)
{
    (void)user;
    struct call *c = http_data(http);
    struct upload *u = c->upload;
    u->last = last;
    if (u->size + (int64_t)piece.len > archive_bytes_max) {
        call_refuse(c, ERR_TOO_LARGE, NULL, "An archive has at most %lld bytes.",
                    (long long)archive_bytes_max);
        call_answer(c);
        return;
    }
    buf_append(&u->piece, piece.at, piece.len);
    u->working = true;
    (void)uv_queue_work(&c->rest->doors->loop->uv, &u->work, work, after_work);
}

void deploy_sweep(const char *folder)
{
    uint8_t digest[ARCHIVE_DIGEST];
    DIR *dir = folder ? opendir(folder) : NULL;
    for (struct dirent *e = NULL; dir && (e = readdir(dir));) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            !archive_from_hex(str_of(e->d_name), digest))
            archive_remove(folder, e->d_name);
    }
    if (dir)
        closedir(dir);
}

static int open_file(struct upload *u)
{
    if (mkdir(u->folder, 0700) != 0 && errno != EEXIST)
        return -1;
    (void)snprintf(u->path, sizeof(u->path), "%s/.upload-XXXXXX", u->folder);
    u->fd = mkostemp(u->path, O_CLOEXEC);
    if (u->fd < 0)
        u->path[0] = '\0';
    return u->fd;
}

static bool takes_deployments(const struct call *c, int64_t fleet)
{
    const char *name = view_fleet_name(call_core(c), fleet);
    const struct core_config *config = core_config(call_core(c));
    for (size_t i = 0; i < config->n_fleets; i++) {
        if (strcmp(config->fleets[i].name, name) == 0)
            return config->fleets[i].provider == PROVIDER_AGENT;
    }
    return false;
}

void handle_deploy(struct call *c)
{
    int64_t fleet = 0;
    if (call_fleet(c, "fleet", &fleet) != 0) {
        call_refuse_argument(c);
        call_answer(c);
        return;
    }
    if (!takes_deployments(c, fleet)) {
        call_refuse(c, ERR_WRONG_PROVIDER, "fleet",
                    "The servers of this fleet are not started by agents, so nothing can be "
                    "deployed to it.");
        call_answer(c);
        return;
    }
    struct upload *u = xcalloc(1, sizeof(*u));
    u->work.data = u;
    u->call = c;
    u->fleet = fleet;
    const char *binary = agents_binary_of(c->rest->agents, view_fleet_name(call_core(c), fleet));
    if (binary[0] != '/')
        (void)snprintf(u->binary, sizeof(u->binary), "%s", binary);
    crypto_hash_sha256_init(&u->hash);
    (void)snprintf(u->folder, sizeof(u->folder), "%s", c->rest->deployments);
    if (open_file(u) < 0) {
        call_refuse(c, ERR_IO, NULL, "The archive cannot be stored: %s.", strerror(errno));
        upload_free(u);
        call_answer(c);
        return;
    }
    c->upload = u;
    http_receive(c->http, on_piece, ANSWER_MS);
}

/* ── and out again ─────────────────────────────────────────────────────────────────────────── */

static bool pull_archive(void *user, struct http_request *http, struct buf *out, size_t max)
{
    (void)user;
    struct call *c = http_data(http);
    size_t want = max < SEND_BLOCK ? max : SEND_BLOCK;
    uint8_t *at = buf_extend(out, want);
    ssize_t n = read(c->file, at, want);
    out->len -= want - (n > 0 ? (size_t)n : 0);
    return n > 0;
}

void handle_get_archive(struct call *c)
{
    char path[PATH_MAX];
    uint8_t digest[ARCHIVE_DIGEST];
    struct str hex = call_argument(c, "digest")->text;
    bool sound = archive_from_hex(hex, digest);
    (void)snprintf(path, sizeof(path), "%s/%s", c->rest->deployments, sound ? hex.at : "");
    c->file = sound ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (c->file < 0) {
        call_refuse(c, ERR_NOT_FOUND, "digest", "There is no archive with this digest.");
        call_answer(c);
        return;
    }
    call_stream(c, "application/octet-stream", pull_archive);
}
