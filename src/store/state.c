#include "store/state.h"

#include "base/err.h"
#include "base/log.h"
#include "store/schema.h"

#include <inttypes.h>

static const char meta_schema[] =
    ";CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
    "INSERT INTO meta VALUES ('folded_seq', 0), ('folded_core_ms', 0), ('folded_wall_ms', 0)";

static const char mark_sql[] = "INSERT OR REPLACE INTO meta VALUES"
                               " ('folded_seq', ?), ('folded_core_ms', ?), ('folded_wall_ms', ?)";

static const char read_mark_sql[] = "SELECT (SELECT value FROM meta WHERE key = 'folded_seq'),"
                                    " (SELECT value FROM meta WHERE key = 'folded_core_ms'),"
                                    " (SELECT value FROM meta WHERE key = 'folded_wall_ms')";

/* Without the NUL at its end. */
static void tables_schema(struct buf *out)
{
    struct buf one = {0};
    for (int kind = 0; kind < ROW_KINDS; kind++) {
        schema_create(&one, (enum row_kind)kind);
        if (kind > 0)
            buf_append(out, ";", 1);
        buf_append(out, one.data, one.len - 1);
    }
    buf_done(&one);
}

static int open_file(const char *folder, sqlite3 **ret, struct why *why)
{
    struct buf upgrade = {0};
    struct buf create = {0};
    tables_schema(&upgrade);
    buf_append(&create, upgrade.data, upgrade.len);
    buf_append(&create, meta_schema, sizeof(meta_schema));
    buf_append(&upgrade, "", 1);
    struct dbfile_schema schema = {(const char *)create.data, (const char *)upgrade.data};
    int err = dbfile_open(folder, STATE_FILE, &schema, ret, why);
    buf_done(&create);
    buf_done(&upgrade);
    return err;
}

static int prepare(struct state *s)
{
    s->begin = dbfile_prepare(s->db, "BEGIN IMMEDIATE");
    s->commit = dbfile_prepare(s->db, "COMMIT");
    s->mark = dbfile_prepare(s->db, mark_sql);
    s->read_mark = dbfile_prepare(s->db, read_mark_sql);
    bool all = s->begin && s->commit && s->mark && s->read_mark;
    struct buf sql = {0};
    for (int i = 0; i < ROW_KINDS && all; i++) {
        enum row_kind kind = (enum row_kind)i;
        schema_upsert(&sql, kind);
        s->upsert[i] = dbfile_prepare(s->db, (const char *)sql.data);
        schema_delete(&sql, kind);
        s->delete[i] = dbfile_prepare(s->db, (const char *)sql.data);
        schema_select(&sql, kind);
        s->select[i] = dbfile_prepare(s->db, (const char *)sql.data);
        all = s->upsert[i] && s->delete[i] && s->select[i];
    }
    buf_done(&sql);
    return all ? SQLITE_OK : sqlite3_errcode(s->db);
}

int state_open(struct state *s, const char *folder, struct why *why)
{
    int err = open_file(folder, &s->db, why);
    if (err != 0)
        return err;
    if (prepare(s) == SQLITE_OK)
        return 0;
    char text[256];
    why_set(why,
            "%s/" STATE_FILE " cannot be read: %s. Restore the whole folder from a backup, or "
            "choose another data folder.",
            folder, dbfile_error(s->db, text, sizeof(text)));
    err = sqlite3_errcode(s->db) == SQLITE_IOERR ? ERR_IO : ERR_FORMAT;
    state_close(s);
    return err;
}

void state_close(struct state *s)
{
    dbfile_close(s->db);
    *s = (struct state){0};
}

int state_tip(struct state *s, struct store_tip *ret)
{
    int rc = sqlite3_step(s->read_mark);
    bool marked = rc == SQLITE_ROW && sqlite3_column_type(s->read_mark, 0) == SQLITE_INTEGER;
    if (marked)
        *ret = (struct store_tip){sqlite3_column_int64(s->read_mark, 0),
                                  sqlite3_column_int64(s->read_mark, 1),
                                  sqlite3_column_int64(s->read_mark, 2)};
    int end = sqlite3_reset(s->read_mark);
    if (marked)
        return SQLITE_OK;
    return rc == SQLITE_ROW ? SQLITE_CORRUPT : end;
}

static int read_failed(struct state *s, int rc)
{
    char text[256];
    char quoted[LOG_QUOTE_MAX + 8];
    log_line(LOG_ERROR, "state cannot be read", "why=%s",
             log_quote(quoted, str_of(dbfile_error(s->db, text, sizeof(text)))));
    return dbfile_is_damage(rc) ? ERR_FORMAT : ERR_IO;
}

static int load_table(struct state *s, enum row_kind kind, store_sink *sink, void *user)
{
    struct change change;
    int err = 0;
    int rc;
    while ((rc = sqlite3_step(s->select[kind])) == SQLITE_ROW && err == 0) {
        err = schema_read(s->select[kind], kind, &change);
        if (err == 0)
            err = sink(user, &change);
        else
            log_line(LOG_ERROR, "state row damaged", "table=%s id=%" PRId64, row_kind_name(kind),
                     change.row_id);
    }
    if (err == 0 && rc != SQLITE_DONE)
        err = read_failed(s, rc);
    sqlite3_reset(s->select[kind]);
    return err;
}

int state_load(struct state *s, store_sink *sink, void *user)
{
    int err = 0;
    for (int kind = 0; kind < ROW_KINDS && err == 0; kind++)
        err = load_table(s, (enum row_kind)kind, sink, user);
    return err;
}

/* A store_sink; its result is SQLite's code. */
static int apply(void *user, const struct change *change)
{
    struct state *s = user;
    sqlite3_stmt *stmt = change->gone ? s->delete[change->kind] : s->upsert[change->kind];
    int rc = change->gone ? sqlite3_bind_int64(stmt, 1, change->id) : schema_bind(stmt, change);
    return rc == SQLITE_OK ? dbfile_run(stmt) : rc;
}

static int write_mark(struct state *s, const struct store_tip *tip)
{
    sqlite3_bind_int64(s->mark, 1, tip->seq);
    sqlite3_bind_int64(s->mark, 2, tip->core_ms);
    sqlite3_bind_int64(s->mark, 3, tip->wall_ms);
    return dbfile_run(s->mark);
}

int state_fold(struct state *s, const struct latest *latest, const struct store_tip *tip)
{
    int rc = dbfile_run(s->begin);
    if (rc == SQLITE_OK)
        rc = latest_each(latest, apply, s);
    if (rc == SQLITE_OK)
        rc = write_mark(s, tip);
    if (rc == SQLITE_OK)
        rc = dbfile_run(s->commit);
    if (rc != SQLITE_OK && !sqlite3_get_autocommit(s->db))
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}
