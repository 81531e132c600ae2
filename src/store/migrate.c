#include "store/migrate.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/full.h"
#include "store/archive.h"
#include "store/backup.h"
#include "store/cell_lease.h"
#include "store/cell_link.h"
#include "store/cell_read.h"
#include "store/cell_write.h"
#include "store/digests.h"
#include "store/journal.h"
#include "store/restore.h"
#include "store/state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MARK "moved"
#define ASIDE_PREFIX "moved-"

enum {
    CONNECT_MS = 5000,
    ANSWER_MS = 600 * 1000, /* one statement may wait for another's end */
    LOOK_MS = 200,
    ALIVE_MS = 4000, /* a node speaks each second */
};

/* ── the cell, held ────────────────────────────────────────────────────────────────────────── */

/* Two connections: one keeps the lease and the head locked in a transaction, so that nobody can
 * lead or write until it ends, and does what is to be done; the other one looks. */
struct hold {
    const struct cell_config *cell;
    struct pg *pg;
    struct pg *eye;
};

static void let_go(struct hold *h)
{
    pg_close(h->pg); /* what was not committed did not happen */
    pg_close(h->eye);
}

/* Whoever leads renews the lease; whoever follows says so each second. */
static int refuse_running(struct hold *h, struct why *why)
{
    struct cell_seen_node nodes[CELL_NODES_MAX];
    size_t n = 0;
    int err = cell_nodes_read(h->eye, nodes, CELL_NODES_MAX, &n, why);
    for (size_t i = 0; i < n && err == 0; i++) {
        if (nodes[i].heard_ms > ALIVE_MS)
            continue;
        why_set(why, "Node %s of cell %s is running. Stop all its nodes first.", nodes[i].node.name,
                h->cell->cell);
        err = ERR_FORMAT;
    }
    return err;
}

/* A leader that was killed holds the lease still: it is waited for as a standby would. */
static int await_nobody(struct hold *h, struct why *why)
{
    struct lease watch;
    struct cell_lease_seen seen;
    lease_init(&watch, 1, h->cell->lease_ms);
    for (;;) {
        int err = refuse_running(h, why);
        if (err == 0)
            err = cell_lease_read(h->eye, &seen, why);
        if (err != 0)
            return err;
        if (lease_watch(&watch, &seen.row, clock_monotonic_ms()))
            return 0;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000}, NULL);
    }
}

/* Whoever led it before can write nothing more: its epoch is over. */
static int lock_cell(struct hold *h, struct why *why)
{
    return pg_script(h->pg,
                     "BEGIN; UPDATE lease SET epoch = epoch + 1, beat = beat + 1, holder = 0,"
                     " name = '', http = '', server = '', manager = '', client = '', version = '';"
                     "UPDATE head SET epoch = (SELECT epoch FROM lease), writer = 0",
                     why);
}

static int hold_cell(const struct cell_config *c, struct hold *h, struct why *why)
{
    *h = (struct hold){.cell = c};
    int err = cell_prepare(c, why);
    if (err == 0)
        err = cell_connect(c, "muster migrate", CONNECT_MS, ANSWER_MS, &h->pg, why);
    if (err == 0)
        err = cell_connect(c, "muster migrate", CONNECT_MS, ANSWER_MS, &h->eye, why);
    if (err == 0)
        err = cell_lease_prepare(h->eye, why);
    if (err == 0)
        err = cell_read_prepare(h->eye, why);
    if (err == 0)
        err = cell_read_prepare(h->pg, why);
    if (err == 0)
        err = await_nobody(h, why);
    return err == 0 ? lock_cell(h, why) : err;
}

static int compare(const struct moment *one, const struct moment *other, struct why *why)
{
    if (strcmp(one->digest, other->digest) == 0 && one->tip.seq == other->tip.seq)
        return 0;
    why_set(why,
            "What was written is not what was read: %" PRId64 " rows with digest %s at batch "
            "%" PRId64 ", then %" PRId64 " with %s at %" PRId64 ". Nothing was moved.",
            one->rows, one->digest, one->tip.seq, other->rows, other->digest, other->tip.seq);
    return ERR_FORMAT;
}

/* ── the folder ────────────────────────────────────────────────────────────────────────────── */

static int read_folder(const char *folder, struct moment *m, struct why *why)
{
    struct state state = {0};
    struct journal journal = {0};
    int err = state_open(&state, folder, why);
    if (err != 0)
        return err;
    why_set(why, "The data in %s is damaged. The log says where.", folder);
    err = state_load(&state, moment_add, m);
    if (err == 0 && state_tip(&state, &m->tip) != SQLITE_OK)
        err = ERR_IO;
    state_close(&state);
    if (err == 0)
        err = journal_open(&journal, folder, why);
    if (err != 0)
        return err;
    err = journal_replay(&journal, moment_add, m, &m->tip);
    journal_close(&journal);
    return err == 0 ? moment_seal(m) : err;
}

/* What root makes is for whoever runs Muster. */
static void give(const char *folder, const char *path)
{
    struct stat st;
    if (geteuid() == 0 && stat(folder, &st) == 0)
        (void)!lchown(path, st.st_uid, st.st_gid);
}

static int mark_moved(const char *folder, const struct cell_config *c, struct why *why)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/" MARK, folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool written = fd >= 0 && dprintf(fd, "%s\n", c->cell) > 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    give(folder, path);
    if (written && dbfile_sync_folder(folder) == 0)
        return 0;
    why_set(why, "%s cannot be written: %s.", path, full_reason(errno));
    return ERR_IO;
}

void migrate_unmark(const char *folder)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/" MARK, folder);
    (void)unlink(path);
    (void)dbfile_sync_folder(folder);
}

bool migrate_is_moved(const char *folder, struct why *why)
{
    char path[PATH_MAX];
    char cell[64] = "";
    (void)snprintf(path, sizeof(path), "%s/" MARK, folder);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, cell, sizeof(cell) - 1);
    close(fd);
    cell[n > 0 ? strcspn(cell, "\n") : 0] = '\0';
    why_set(why,
            "The data of %s was moved to cell %s of a PostgreSQL database. Start with --store and "
            "--cell %s, or bring it back with 'muster migrate'.",
            folder, cell, cell);
    return true;
}

/* Its databases are kept beside what is served from now on. */
static int set_aside(const char *folder, int64_t wall_ms, char ret[80], struct why *why)
{
    static const char *const files[] = {JOURNAL_FILE "-wal", JOURNAL_FILE "-shm", JOURNAL_FILE,
                                        STATE_FILE "-wal",   STATE_FILE "-shm",   STATE_FILE};
    char to_folder[PATH_MAX];
    char stamp[32];
    time_t s = (time_t)(wall_ms / 1000);
    struct tm tm;
    (void)strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", gmtime_r(&s, &tm));
    (void)snprintf(ret, 80, ASIDE_PREFIX "%s", stamp);
    (void)snprintf(to_folder, sizeof(to_folder), "%s/%s", folder, ret);
    bool done = mkdir(to_folder, 0700) == 0 || errno == EEXIST;
    give(folder, to_folder);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]) && done; i++) {
        char from[PATH_MAX + 32];
        char to[PATH_MAX + 32];
        (void)snprintf(from, sizeof(from), "%s/%s", folder, files[i]);
        (void)snprintf(to, sizeof(to), "%s/%s", to_folder, files[i]);
        done = rename(from, to) == 0 || errno == ENOENT;
    }
    if (done && dbfile_sync_folder(to_folder) == 0 && dbfile_sync_folder(folder) == 0)
        return 0;
    why_set(why,
            "All is moved, but the databases in %s cannot be set aside: %s. Remove journal.db and "
            "state.db there by hand.",
            folder, strerror(errno));
    return ERR_IO;
}

/* ── into a cell ───────────────────────────────────────────────────────────────────────────── */

struct carrying {
    struct hold *hold;
    struct journal *journal; /* the other way */
    struct why *why;
    int64_t last;
    int64_t n;
};

static int put_batch(void *user, const struct store_batch *batch)
{
    struct carrying *c = user;
    c->n++;
    return cell_write_batch(c->hold->pg, batch, c->why);
}

/* What readers of changes may ask for goes along. */
static int carry_history(const char *folder, struct hold *h, int64_t *ret_n, struct why *why)
{
    struct journal journal = {0};
    struct carrying c = {.hold = h, .why = why};
    int err = journal_open(&journal, folder, why);
    if (err != 0)
        return err;
    err = journal_history(&journal, STORE_HISTORY_BYTES, put_batch, &c);
    journal_close(&journal);
    *ret_n = c.n;
    return err;
}

static int read_cell(struct hold *h, struct moment *m, struct why *why)
{
    int err = cell_read_within(h->pg, moment_add, m, &m->tip, NULL, why);
    return err == 0 ? moment_seal(m) : err;
}

/* In the transaction that holds the cell; nobody sees any of it before that is committed. */
static int fill_cell(const char *folder, struct hold *h, const struct moment *m,
                     struct migrate_report *ret, struct why *why)
{
    struct moment there = {0};
    int err = read_cell(h, &there, why);
    if (err == 0 && there.tip.seq > 0) {
        why_set(why, "Cell %s holds data already, up to batch %" PRId64 ". Choose another one.",
                h->cell->cell, there.tip.seq);
        err = ERR_FORMAT;
    }
    moment_done(&there);
    struct tables_rows rows = {0};
    if (err == 0)
        err = cell_write_rows(h->pg, &m->latest, &rows, why);
    tables_rows_done(&rows);
    if (err == 0)
        err = cell_write_fold(h->pg, &m->tip, why);
    if (err == 0)
        err = carry_history(folder, h, &ret->history, why);
    if (err == 0)
        err = read_cell(h, &there, why);
    if (err == 0)
        err = compare(m, &there, why);
    moment_done(&there);
    return err;
}

static void report(struct migrate_report *ret, const struct moment *m)
{
    ret->batch = m->tip.seq;
    ret->rows = m->rows;
    memcpy(ret->digest, m->digest, sizeof(ret->digest));
}

/* From the mark on the folder is served no more; if the commit fails the mark goes again. Should
 * we die in between, the mark stays, and the next try finds out. */
static int commit_cell(const char *folder, struct hold *h, struct why *why)
{
    int err = mark_moved(folder, h->cell, why);
    if (err != 0)
        return err;
    err = pg_script(h->pg, "COMMIT", why);
    if (err != 0 && !pg_lost(h->pg))
        migrate_unmark(folder);
    else if (err != 0)
        why_set(why,
                "Nobody knows whether cell %s has the data: the database went away. Run this "
                "again.",
                h->cell->cell);
    return err;
}

/* An earlier try committed and died before the databases were set aside. */
static bool is_there_already(const char *folder, struct hold *h, const struct moment *m)
{
    struct why why;
    struct moment there = {0};
    bool same = migrate_is_moved(folder, &why) && read_cell(h, &there, &why) == 0 &&
                there.tip.seq >= m->tip.seq && m->tip.seq > 0;
    moment_done(&there);
    return same;
}

static int move_into(const char *folder, const struct moment *m, const struct cell_config *c,
                     struct migrate_report *ret, struct why *why)
{
    struct hold h;
    int err = hold_cell(c, &h, why);
    if (err == 0 && !is_there_already(folder, &h, m)) {
        err = fill_cell(folder, &h, m, ret, why);
        if (err == 0)
            err = commit_cell(folder, &h, why);
    }
    let_go(&h);
    return err;
}

static bool has_data(const char *folder)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/" JOURNAL_FILE, folder);
    return access(path, F_OK) == 0;
}

int migrate_to_cell(const char *folder, const struct cell_config *c, int64_t wall_ms,
                    struct migrate_report *ret, struct why *why)
{
    struct moment m = {0};
    char aside[64];
    *ret = (struct migrate_report){0};
    int err = restore_finish(folder, aside, why);
    if (err == 0 && !has_data(folder)) {
        if (!migrate_is_moved(folder, why))
            why_set(why, "%s holds no data: there is nothing to move.", folder);
        err = ERR_FORMAT;
    }
    if (err == 0)
        err = read_folder(folder, &m, why);
    report(ret, &m);
    if (err == 0)
        err = move_into(folder, &m, c, ret, why);
    moment_done(&m);
    return err == 0 ? set_aside(folder, wall_ms, ret->aside, why) : err;
}

/* ── into a folder ─────────────────────────────────────────────────────────────────────────── */

static int keep_batch(void *user, const struct store_batch *batch)
{
    struct carrying *c = user;
    int err = c->last != 0 && batch->seq != c->last + 1
                  ? ERR_FORMAT
                  : journal_append(c->journal, batch, batch->seq - 1);
    if (err != 0)
        why_set(c->why, "The journal of the folder cannot be written.");
    c->last = batch->seq;
    c->n++;
    return err;
}

/* The newest row is always there, or the two files would not belong together. */
static int write_journal(struct hold *h, const char *draft, const struct store_tip *tip,
                         int64_t *ret_n, struct why *why)
{
    struct journal journal = {0};
    struct carrying c = {.journal = &journal, .why = why};
    int err = journal_open(&journal, draft, why);
    if (err != 0)
        return err;
    journal.history_rows = STORE_HISTORY_ROWS;
    journal.history_bytes = STORE_HISTORY_BYTES;
    for (int n = 1; n > 0 && err == 0;)
        err = cell_read_journal(h->eye, c.last, keep_batch, &c, &n, why);
    struct store_batch empty = {
        .seq = tip->seq, .core_ms = tip->core_ms, .wall_ms = tip->wall_ms, .epoch = 1};
    if (err == 0 && c.last == 0)
        err = keep_batch(&c, &empty);
    journal_close(&journal);
    *ret_n = c.n;
    return err;
}

static int write_state(const char *draft, const struct moment *m, struct why *why)
{
    char text[256];
    struct state state = {0};
    int err = state_open(&state, draft, why);
    if (err != 0)
        return err;
    if (state_fold(&state, &m->latest, &m->tip) != SQLITE_OK) {
        why_set(why, "%s/" STATE_FILE " cannot be written: %s.", draft,
                dbfile_error(state.db, text, sizeof(text)));
        err = ERR_IO;
    }
    state_close(&state);
    return err;
}

static int fill_draft(struct hold *h, const char *draft, const struct moment *m,
                      struct migrate_report *ret, struct why *why)
{
    struct moment there = {0};
    int err = write_state(draft, m, why);
    if (err == 0)
        err = write_journal(h, draft, &m->tip, &ret->history, why);
    if (err == 0)
        err = read_folder(draft, &there, why);
    if (err == 0)
        err = compare(m, &there, why);
    moment_done(&there);
    return err;
}

/* Under its old name nobody finds it any more. In the transaction that holds it. */
static int rename_cell(struct hold *h, int64_t wall_ms, char ret[80], struct why *why)
{
    char schema[CELL_SCHEMA_SIZE];
    char sql[2 * CELL_SCHEMA_SIZE + 64];
    (void)snprintf(ret, 80, "%s_moved_%" PRId64, cell_schema(h->cell->cell, schema),
                   wall_ms / 1000);
    (void)snprintf(sql, sizeof(sql), "ALTER SCHEMA \"%s\" RENAME TO \"%s\"", schema, ret);
    int err = pg_script(h->pg, sql, why);
    return err == 0 ? pg_script(h->pg, "COMMIT", why) : err;
}

/* The cell goes first: should we die in between nobody serves, instead of two. */
static int swap(struct hold *h, const char *folder, int64_t wall_ms, struct migrate_report *ret,
                struct why *why)
{
    int err = rename_cell(h, wall_ms, ret->aside, why);
    if (err != 0)
        return err;
    char aside[64];
    err = restore_keep_draft(folder, wall_ms, aside, why);
    if (err == 0)
        return 0;
    char said[256];
    (void)snprintf(said, sizeof(said), "%.255s", why->text);
    why_set(why,
            "%s The data is in schema %s of the database. Rename it back with ALTER SCHEMA and "
            "try again.",
            said, ret->aside);
    return err;
}

static int note_deployment(void *user, const struct change *change)
{
    if (change->kind == ROW_deployment)
        digests_note(user, change);
    return 0;
}

/* Archives are files of the node that was sent them. */
static int64_t count_missing(const char *folder, const struct moment *m)
{
    struct digests deployed = {0};
    (void)latest_each(&m->latest, note_deployment, &deployed);
    size_t n = digests_each_once(&deployed, NULL, 0);
    uint8_t(*all)[DIGEST_SIZE] = xcalloc(n + 1, sizeof(*all));
    (void)digests_each_once(&deployed, all, n);
    int64_t missing = 0;
    for (size_t i = 0; i < n; i++) {
        char hex[ARCHIVE_HEX];
        char path[PATH_MAX];
        (void)snprintf(path, sizeof(path), "%s/" BACKUP_DEPLOYMENTS "/%s", folder,
                       archive_hex(all[i], hex));
        missing += access(path, F_OK) != 0;
    }
    free(all);
    digests_done(&deployed);
    return missing;
}

static int move_out(struct hold *h, const char *folder, int64_t wall_ms, struct migrate_report *ret,
                    struct why *why)
{
    struct moment m = {0};
    char draft[PATH_MAX];
    int err = read_cell(h, &m, why);
    if (err == 0 && m.tip.seq == 0) {
        why_set(why, "Cell %s holds no data: there is nothing to move.", h->cell->cell);
        err = ERR_FORMAT;
    }
    if (err == 0)
        err = restore_make_draft(folder, draft, why);
    if (err == 0)
        err = fill_draft(h, draft, &m, ret, why);
    report(ret, &m);
    ret->missing = count_missing(folder, &m);
    moment_done(&m);
    return err == 0 ? swap(h, folder, wall_ms, ret, why) : err;
}

int migrate_to_folder(const struct cell_config *c, const char *folder, int64_t wall_ms,
                      struct migrate_report *ret, struct why *why)
{
    struct hold h;
    *ret = (struct migrate_report){0};
    if (has_data(folder)) {
        why_set(why, "%s holds data already. Choose an empty folder.", folder);
        return ERR_FORMAT;
    }
    int err = hold_cell(c, &h, why);
    if (err == 0)
        err = move_out(&h, folder, wall_ms, ret, why);
    let_go(&h);
    return err;
}
