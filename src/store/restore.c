#include "store/restore.h"

#include "base/err.h"
#include "core/core.h"
#include "store/archive.h"
#include "store/backup.h"
#include "store/journal.h"
#include "store/latest.h"
#include "store/migrate.h"
#include "store/restore_unpack.h"
#include "store/state.h"

#include <dirent.h>
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

#define DRAFT "restore.tmp"
#define READY_PREFIX "restored-"
#define ASIDE_PREFIX "before-restore-"

/* What a data folder holds. The log of a database goes with it and before it: beside another it
 * would be taken for that one's. The administrator's token is made anew by the secret. */
static const char *const taken[] = {JOURNAL_FILE "-wal", JOURNAL_FILE "-shm", JOURNAL_FILE,
                                    STATE_FILE "-wal",   STATE_FILE "-shm",   STATE_FILE,
                                    BACKUP_SECRET,       BACKUP_DEPLOYMENTS,  "admin.token"};
enum { TAKEN = sizeof(taken) / sizeof(*taken) };

static bool is_there(const char *folder, const char *name)
{
    char path[PATH_MAX];
    struct stat st;
    return snprintf(path, sizeof(path), "%s/%s", folder, name) < (int)sizeof(path) &&
           lstat(path, &st) == 0;
}

bool restore_finds_data(const char *folder)
{
    for (size_t i = 0; i < TAKEN; i++) {
        if (is_there(folder, taken[i]))
            return true;
    }
    return false;
}

/* ── finishing ─────────────────────────────────────────────────────────────────────────────── */

static int move(const char *from_folder, const char *to_folder, const char *name, struct why *why)
{
    char from[PATH_MAX];
    char to[PATH_MAX];
    (void)snprintf(from, sizeof(from), "%s/%s", from_folder, name);
    (void)snprintf(to, sizeof(to), "%s/%s", to_folder, name);
    if (rename(from, to) == 0)
        return 0;
    why_set(why, "%s cannot be moved to %s: %s.", from, to, strerror(errno));
    return ERR_IO;
}

static bool is_log_of(const char *log, const char *name)
{
    size_t len = strlen(name);
    return strncmp(log, name, len) == 0 && log[len] == '-';
}

/* A file goes aside when the one that takes its place has not come yet. */
static bool goes_aside(const char *ready, const char *name)
{
    if (strcmp(name, "admin.token") == 0)
        return is_there(ready, BACKUP_SECRET);
    if (is_log_of(name, JOURNAL_FILE))
        return is_there(ready, JOURNAL_FILE);
    if (is_log_of(name, STATE_FILE))
        return is_there(ready, STATE_FILE);
    return is_there(ready, name);
}

/* What root makes is for whoever runs Muster, to whom the folder belongs. */
static void give_to_owner(const char *folder, const char *made)
{
    struct stat st;
    if (geteuid() != 0 || stat(folder, &st) != 0)
        return;
    (void)restore_give(made, st.st_uid, st.st_gid);
}

static int move_aside(const char *folder, const char *ready, const char *aside, const char *name,
                      struct why *why)
{
    if (!goes_aside(ready, name) || !is_there(folder, name))
        return 0;
    if (mkdir(aside, 0700) == 0) {
        give_to_owner(folder, aside);
    } else if (errno != EEXIST) {
        why_set(why, "%s cannot be made: %s.", aside, strerror(errno));
        return ERR_IO;
    }
    return move(folder, aside, name, why);
}

/* The secret comes last but for nothing: as long as it is among what is ready, admin.token may have
 * to go. Each step is done once, however often it is begun. */
static int put_in_place(const char *folder, const char *ready, const char *aside, struct why *why)
{
    int err = move_aside(folder, ready, aside, "admin.token", why);
    if (is_there(ready, JOURNAL_FILE))
        migrate_unmark(folder); /* whatever was moved away: now there is data again */
    for (size_t i = 0; i < TAKEN && err == 0; i++) {
        err = move_aside(folder, ready, aside, taken[i], why);
        if (err == 0 && is_there(ready, taken[i]))
            err = move(ready, folder, taken[i], why);
    }
    return err;
}

/* What commit has named, and nothing of somebody else's that is called alike. */
static bool is_ready(int folder, const char *name)
{
    static const char shape[] = READY_PREFIX "########-######-###";
    struct stat st;
    if (strlen(name) != sizeof(shape) - 1)
        return false;
    for (size_t i = 0; shape[i]; i++) {
        bool fits = shape[i] == '#' ? name[i] >= '0' && name[i] <= '9' : name[i] == shape[i];
        if (!fits)
            return false;
    }
    return fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static bool find_ready(const char *folder, char ret[64])
{
    DIR *dir = opendir(folder);
    bool found = false;
    for (struct dirent *e = NULL; dir && !found && (e = readdir(dir));) {
        found = is_ready(dirfd(dir), e->d_name);
        if (found)
            (void)snprintf(ret, 64, "%.63s", e->d_name);
    }
    if (dir)
        closedir(dir);
    return found;
}

int restore_finish(const char *folder, char aside[64], struct why *why)
{
    char name[64];
    char ready[PATH_MAX];
    char old[PATH_MAX];
    aside[0] = '\0';
    if (!find_ready(folder, name))
        return 0;
    (void)snprintf(ready, sizeof(ready), "%s/%s", folder, name);
    (void)snprintf(aside, 64, ASIDE_PREFIX "%.40s", name + sizeof(READY_PREFIX) - 1);
    (void)snprintf(old, sizeof(old), "%s/%s", folder, aside);
    int err = put_in_place(folder, ready, old, why);
    if (err == 0 && dbfile_sync_folder(folder) != 0) {
        why_set(why, "%s cannot be synced: %s.", folder, strerror(errno));
        err = ERR_IO;
    }
    if (err != 0)
        return err;
    if (is_there(folder, aside))
        (void)dbfile_sync_folder(old);
    else
        aside[0] = '\0';
    archive_remove(folder, name); /* the empty folder, which says that something is to be done */
    return dbfile_sync_folder(folder) == 0 ? 0 : ERR_IO;
}

/* ── setting back ──────────────────────────────────────────────────────────────────────────── */

static int feed(void *user, const struct change *change)
{
    return core_load(user, change);
}

static struct core *empty_core(void)
{
    static const uint8_t nobody[CORE_SECRET_SIZE] = {0}; /* no credential is made or judged */
    struct core_config *config = xmalloc(sizeof(*config));
    core_config_default(config);
    struct core *core = core_new(config, nobody);
    free(config);
    return core;
}

/* Core with the rows of the tables, as they were. */
static int load(struct state *state, struct core **ret, struct why *why)
{
    struct core *core = empty_core();
    int err = state_load(state, feed, core);
    if (err != 0) {
        why_set(why, "The tables of the backup cannot be read. It is damaged: take another one.");
        core_free(core);
        return err;
    }
    *ret = core;
    return 0;
}

/* Gives core the tables and then the journal after them, as far as they can be read. */
static int read_folder(const char *folder, struct core *core, struct store_tip *tip,
                       struct why *why)
{
    struct state state = {0};
    struct journal journal = {0};
    int err = state_open(&state, folder, why);
    if (err != 0)
        return err;
    why_set(why, "its rows are damaged.");
    err = state_load(&state, feed, core);
    if (state_tip(&state, tip) != SQLITE_OK)
        err = ERR_IO;
    state_close(&state);
    int journal_err = journal_open(&journal, folder, why);
    if (journal_err == 0) {
        journal_err = journal_replay(&journal, feed, core, tip);
        journal_close(&journal);
    }
    return err ? err : journal_err;
}

/* The rows that were served from this folder, whose numbers must not be given again. NULL when
 * there are none. What cannot be read is no reason to refuse: that may be why it is restored. */
static struct core *load_last(const char *folder, struct store_tip *tip, struct restore_report *ret)
{
    struct why why = {{0}};
    bool tables = is_there(folder, STATE_FILE);
    bool journal = is_there(folder, JOURNAL_FILE);
    if (!tables && !journal)
        return NULL;
    struct core *core = empty_core();
    int err = ERR_IO;
    if (tables && journal)
        err = read_folder(folder, core, tip, &why);
    else
        why_set(&why, "%s/%s is not there.", folder, tables ? JOURNAL_FILE : STATE_FILE);
    if (err != 0)
        (void)snprintf(ret->unread, sizeof(ret->unread), "%s", why.text);
    return core;
}

static int store_rows(struct state *state, const char *draft, const struct store_batch *row,
                      struct why *why)
{
    char text[256];
    struct latest latest = {0};
    struct journal journal = {0};
    struct store_tip tip = {row->seq, row->core_ms, row->wall_ms};
    int err = latest_apply(&latest, row->changes, row->len);
    if (err == 0 && state_fold(state, &latest, &tip) != SQLITE_OK) {
        why_set(why, "%s/" STATE_FILE " cannot be written: %s.", draft,
                dbfile_error(state->db, text, sizeof(text)));
        err = ERR_IO;
    }
    latest_done(&latest);
    if (err == 0)
        err = journal_open(&journal, draft, why);
    if (err != 0)
        return err;
    err = journal_append(&journal, row, row->seq - 1);
    if (err != 0)
        why_set(why, "%s/" JOURNAL_FILE " cannot be written: %s.", draft, journal.complaint.text);
    journal_close(&journal);
    return err;
}

/* How far the rows must go ahead, and what else follows from their age: one batch. */
static int make_batch(const char *folder, struct core *core, struct core_back *how,
                      struct batch *batch, struct restore_report *ret, struct why *why)
{
    struct store_tip last = {0};
    struct core *before = load_last(folder, &last, ret);
    how->before = before;
    how->before_seq = last.seq;
    int err = core_restore(core, how, batch, &ret->epoch);
    if (err != 0)
        why_set(why, "The backup cannot be gone on from: %s.", err_sentence(err));
    core_free(before);
    return err;
}

static int set_back(const char *folder, const char *draft, struct core_back *how,
                    struct restore_report *ret, struct why *why)
{
    struct state state = {0};
    struct store_tip tip = {0};
    struct core *core = NULL;
    struct batch batch = {0};
    int err = state_open(&state, draft, why);
    if (err != 0)
        return err;
    err = load(&state, &core, why);
    if (err == 0 && state_tip(&state, &tip) != SQLITE_OK)
        err = ERR_FORMAT;
    how->seq = tip.seq;
    how->then = (struct instant){tip.core_ms, tip.wall_ms};
    if (err == 0)
        err = make_batch(folder, core, how, &batch, ret, why);
    if (err == 0) {
        struct store_batch row = {.seq = batch.seq,
                                  .epoch = ret->epoch,
                                  .core_ms = batch.core_ms,
                                  .wall_ms = batch.wall_ms,
                                  .changes = batch.changes.data,
                                  .len = batch.changes.len};
        err = store_rows(&state, draft, &row, why);
    }
    ret->batch = tip.seq;
    ret->wall_ms = tip.wall_ms;
    batch_done(&batch);
    core_free(core);
    state_close(&state);
    return err;
}

/* ── all of it ─────────────────────────────────────────────────────────────────────────────── */

/* Also the names of the archives: without them the rows speak of what is not there. */
static int sync_draft(const char *draft)
{
    char deployments[PATH_MAX + sizeof(BACKUP_DEPLOYMENTS)];
    (void)snprintf(deployments, sizeof(deployments), "%s/" BACKUP_DEPLOYMENTS, draft);
    int err = dbfile_sync_folder(deployments);
    return err == 0 || err == -ENOENT ? dbfile_sync_folder(draft) : err;
}

static int commit(const char *folder, const char *draft, int64_t wall_ms, struct why *why)
{
    char ready[PATH_MAX];
    char stamp[32];
    time_t s = (time_t)(wall_ms / 1000);
    struct tm tm;
    (void)strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", gmtime_r(&s, &tm));
    (void)snprintf(ready, sizeof(ready), "%s/" READY_PREFIX "%s-%03d", folder, stamp,
                   (int)(wall_ms % 1000));
    if (sync_draft(draft) == 0 && rename(draft, ready) == 0 && dbfile_sync_folder(folder) == 0)
        return 0;
    why_set(why, "%s cannot be renamed to %s: %s.", draft, ready, strerror(errno));
    return ERR_IO;
}

int restore_make_draft(const char *folder, char ret[PATH_MAX], struct why *why)
{
    (void)snprintf(ret, PATH_MAX, "%s/" DRAFT, folder);
    archive_remove(folder, DRAFT);
    if (mkdir(ret, 0700) == 0)
        return 0;
    why_set(why, "%s cannot be made: %s.", ret, strerror(errno));
    return ERR_IO;
}

int restore_keep_draft(const char *folder, int64_t wall_ms, char aside[64], struct why *why)
{
    char draft[PATH_MAX];
    (void)snprintf(draft, sizeof(draft), "%s/" DRAFT, folder);
    give_to_owner(folder, draft);
    int err = commit(folder, draft, wall_ms, why);
    if (err != 0) {
        archive_remove(folder, DRAFT);
        return err;
    }
    return restore_finish(folder, aside, why);
}

int restore_run(const char *folder, int fd, struct str who, int64_t wall_ms,
                struct restore_report *ret, struct why *why)
{
    char draft[PATH_MAX];
    *ret = (struct restore_report){0};
    int err = restore_make_draft(folder, draft, why);
    if (err != 0)
        return err;
    err = restore_unpack(fd, draft, ret, why);
    struct core_back how = {.wall_ms = wall_ms, .who = who};
    if (err == 0)
        err = set_back(folder, draft, &how, ret, why);
    if (err != 0) {
        archive_remove(folder, DRAFT);
        return err;
    }
    return restore_keep_draft(folder, wall_ms, ret->aside, why);
}
