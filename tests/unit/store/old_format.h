/* A data folder as Muster wrote it when its format was 1: seven kinds of rows. The statements are
 * those of that version, word for word; do not bring them up to date. */
#pragma once

#include "fixture.h"

#include "store/schema.h"

static const char *const old_marks = "PRAGMA application_id = 1299542900; PRAGMA user_version = 1;";

static const char *const old_journal =
    "PRAGMA page_size = 8192; PRAGMA journal_mode = WAL;"
    "CREATE TABLE journal (seq INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, core_ms INTEGER NOT "
    "NULL, wall_ms INTEGER NOT NULL, changes BLOB NOT NULL) STRICT;";

static const char *const old_state =
    "PRAGMA page_size = 8192; PRAGMA journal_mode = WAL;"
    "CREATE TABLE \"counter\" (\"id\" INTEGER PRIMARY KEY, \"next\" INTEGER NOT NULL) STRICT;"
    "CREATE TABLE \"fleet\" (\"id\" INTEGER PRIMARY KEY, \"name\" TEXT NOT NULL) STRICT;"
    "CREATE TABLE \"chat_server\" (\"id\" INTEGER PRIMARY KEY, \"fleet\" INTEGER NOT NULL, "
    "\"name\" TEXT NOT NULL) STRICT;"
    "CREATE TABLE \"server\" (\"id\" INTEGER PRIMARY KEY, \"fleet\" INTEGER NOT NULL, \"ip\" TEXT "
    "NOT NULL, \"port\" INTEGER NOT NULL, \"region\" INTEGER NOT NULL, \"max_sessions\" INTEGER "
    "NOT NULL, \"draining\" INTEGER NOT NULL, \"registered_core_ms\" INTEGER NOT NULL) STRICT;"
    "CREATE TABLE \"ticket\" (\"id\" INTEGER PRIMARY KEY, \"chat_server\" INTEGER NOT NULL, "
    "\"fleet\" INTEGER NOT NULL, \"lobby\" INTEGER NOT NULL, \"regions\" INTEGER NOT NULL, "
    "\"game_type\" INTEGER NOT NULL, \"game_mode\" INTEGER NOT NULL, \"player_count\" INTEGER NOT "
    "NULL, \"average_rating\" INTEGER NOT NULL, \"state\" INTEGER NOT NULL, \"error\" INTEGER NOT "
    "NULL, \"session\" INTEGER NOT NULL, \"opened_core_ms\" INTEGER NOT NULL, "
    "\"deadline_core_ms\" INTEGER NOT NULL, \"answered_wall_ms\" INTEGER NOT NULL, \"tries\" BLOB "
    "NOT NULL) STRICT;"
    "CREATE TABLE \"session\" (\"id\" INTEGER PRIMARY KEY, \"ticket\" INTEGER NOT NULL, "
    "\"server\" INTEGER NOT NULL, \"chat_server\" INTEGER NOT NULL, \"fleet\" INTEGER NOT NULL, "
    "\"lobby\" INTEGER NOT NULL, \"game_type\" INTEGER NOT NULL, \"game_mode\" INTEGER NOT NULL, "
    "\"player_count\" INTEGER NOT NULL, \"state\" INTEGER NOT NULL, \"acknowledged\" INTEGER NOT "
    "NULL, \"ready\" INTEGER NOT NULL, \"end_reason\" INTEGER NOT NULL, \"events_owed\" INTEGER "
    "NOT NULL, \"token_unix_s\" INTEGER NOT NULL, \"created_core_ms\" INTEGER NOT NULL, "
    "\"opened_core_ms\" INTEGER NOT NULL, \"deadline_core_ms\" INTEGER NOT NULL) STRICT;"
    "CREATE TABLE \"seat\" (\"id\" INTEGER PRIMARY KEY, \"session\" INTEGER NOT NULL, \"fleet\" "
    "INTEGER NOT NULL, \"account\" INTEGER NOT NULL, \"state\" INTEGER NOT NULL) STRICT;"
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;";

static inline sqlite3 *old_open(const char *folder, const char *file, const char *schema)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s/%s", folder, file);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, schema, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, old_marks, NULL, NULL, NULL), SQLITE_OK);
    return db;
}

static inline void old_batch(sqlite3 *db, int64_t seq)
{
    struct buf changes = {0};
    sqlite3_stmt *insert = NULL;
    model_batch(&changes, seq);
    assert_int_equal(
        sqlite3_prepare_v2(db, "INSERT INTO journal VALUES (?, 1, ?, ?, ?)", -1, &insert, NULL),
        SQLITE_OK);
    sqlite3_bind_int64(insert, 1, seq);
    sqlite3_bind_int64(insert, 2, seq * 10);
    sqlite3_bind_int64(insert, 3, seq * 100);
    sqlite3_bind_blob(insert, 4, changes.data, (int)changes.len, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(insert), SQLITE_DONE);
    sqlite3_finalize(insert);
    buf_done(&changes);
}

static inline void old_row(sqlite3 *db, const struct buf *encoded)
{
    struct cursor c = cursor_of(encoded->data, encoded->len);
    struct change change;
    struct buf sql = {0};
    sqlite3_stmt *upsert = NULL;
    assert_true(change_decode(&c, &change));
    schema_upsert(&sql, change.kind);
    assert_int_equal(sqlite3_prepare_v2(db, (const char *)sql.data, -1, &upsert, NULL), SQLITE_OK);
    assert_int_equal(schema_bind(upsert, &change), SQLITE_OK);
    assert_int_equal(sqlite3_step(upsert), SQLITE_DONE);
    sqlite3_finalize(upsert);
    buf_done(&sql);
}

/* Fills the folder with batches 1 .. last of the model, of which those up to `folded` are in the
 * tables. model_old_until must be at least `last`. */
static inline void old_folder(const char *folder, int64_t folded, int64_t last)
{
    assert_true(model_old_until >= last);
    sqlite3 *db = old_open(folder, JOURNAL_FILE, old_journal);
    for (int64_t seq = folded > 3 ? folded - 3 : 1; seq <= last; seq++)
        old_batch(db, seq);
    sqlite3_close(db);

    struct model model = {0};
    model_until(&model, folded);
    db = old_open(folder, STATE_FILE, old_state);
    for (int kind = 0; kind < ROW_KINDS; kind++)
        for (int id = 0; id < MODEL_IDS; id++)
            if (model.rows[kind][id].len > 0)
                old_row(db, &model.rows[kind][id]);
    char sql[200];
    snprintf(sql, sizeof(sql),
             "INSERT INTO meta VALUES ('folded_seq', %lld), ('folded_core_ms', %lld), "
             "('folded_wall_ms', %lld)",
             (long long)folded, (long long)folded * 10, (long long)folded * 100);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    model_done(&model);
}
