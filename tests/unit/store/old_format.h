/* A data folder as Muster wrote it when its format was 1 (seven kinds of rows), 2 (ten at
 * first, seventeen when there were rooms), 3 (nineteen) or 4 (twenty-one). The statements are those
 * of these versions, word for word; do not bring them up to date. */
#pragma once

#include "fixture.h"

#include "store/schema.h"

/* What a version wrote. */
struct old_version {
    int format;
    unsigned kinds;
};

static const struct old_version old_1 = {1, 7};
static const struct old_version old_2 = {2, 10};
static const struct old_version old_2_rooms = {2, 17};
static const struct old_version old_3 = {3, 19};
static const struct old_version old_4 = {4, 21};

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

/* What came with format 2: operators first, then rooms. */
static const char *const old_operators =
    "CREATE TABLE \"enrolment\" (\"id\" INTEGER PRIMARY KEY, \"name\" TEXT NOT NULL, "
    "\"role\" INTEGER NOT NULL, \"fleet\" TEXT NOT NULL, \"regions\" INTEGER NOT NULL, "
    "\"generation\" INTEGER NOT NULL, \"created_wall_ms\" INTEGER NOT NULL, "
    "\"expires_wall_ms\" INTEGER NOT NULL, \"revoked_wall_ms\" INTEGER NOT NULL, "
    "\"previous_until_wall_ms\" INTEGER NOT NULL, \"hash\" BLOB NOT NULL, "
    "\"previous_hash\" BLOB NOT NULL) STRICT;"
    "CREATE TABLE \"audit\" (\"id\" INTEGER PRIMARY KEY, \"at_wall_ms\" INTEGER NOT NULL,"
    " \"who\" TEXT NOT NULL, \"address\" TEXT NOT NULL, \"verb\" INTEGER NOT NULL, "
    "\"target\" INTEGER NOT NULL, \"detail\" TEXT NOT NULL) STRICT;"
    "CREATE TABLE \"request\" (\"id\" INTEGER PRIMARY KEY, \"verb\" INTEGER NOT NULL, "
    "\"object\" INTEGER NOT NULL, \"generation\" INTEGER NOT NULL, \"asked_wall_ms\" "
    "INTEGER NOT NULL, \"deadline_core_ms\" INTEGER NOT NULL, \"key\" BLOB NOT NULL, "
    "\"arguments\" BLOB NOT NULL) STRICT;";

static const char *const old_rooms =
    "CREATE TABLE \"host\" (\"id\" INTEGER PRIMARY KEY, \"name\" TEXT NOT NULL, "
    "\"account\" TEXT NOT NULL, \"address\" TEXT NOT NULL, \"url\" TEXT NOT NULL, "
    "\"region\" INTEGER NOT NULL, \"slots\" INTEGER NOT NULL, \"disabled\" INTEGER NOT "
    "NULL, \"registered_wall_ms\" INTEGER NOT NULL) STRICT;"
    "CREATE TABLE \"deployment\" (\"id\" INTEGER PRIMARY KEY, \"fleet\" INTEGER NOT NULL,"
    " \"version\" TEXT NOT NULL, \"digest\" BLOB NOT NULL, \"size\" INTEGER NOT NULL, "
    "\"created_wall_ms\" INTEGER NOT NULL, \"who\" TEXT NOT NULL) STRICT;"
    "CREATE TABLE \"version\" (\"id\" INTEGER PRIMARY KEY, \"fleet\" INTEGER NOT NULL, "
    "\"name\" TEXT NOT NULL, \"disabled\" INTEGER NOT NULL, \"quarantined\" INTEGER NOT "
    "NULL, \"deployment\" INTEGER NOT NULL, \"previous\" INTEGER NOT NULL, \"wanted\" "
    "INTEGER NOT NULL, \"reason\" TEXT NOT NULL) STRICT;"
    "CREATE TABLE \"ban\" (\"id\" INTEGER PRIMARY KEY, \"account\" TEXT NOT NULL, "
    "\"address\" TEXT NOT NULL, \"reason\" TEXT NOT NULL, \"expires_wall_ms\" INTEGER NOT"
    " NULL, \"issued_wall_ms\" INTEGER NOT NULL, \"who\" TEXT NOT NULL) STRICT;"
    "CREATE TABLE \"room_ticket\" (\"id\" INTEGER PRIMARY KEY, \"verb\" INTEGER NOT NULL,"
    " \"fleet\" INTEGER NOT NULL, \"version\" INTEGER NOT NULL, \"account\" TEXT NOT "
    "NULL, \"players\" INTEGER NOT NULL, \"region\" INTEGER NOT NULL, \"state\" INTEGER "
    "NOT NULL, \"error\" INTEGER NOT NULL, \"room\" INTEGER NOT NULL, \"opened_core_ms\" "
    "INTEGER NOT NULL, \"deadline_core_ms\" INTEGER NOT NULL, \"answered_wall_ms\" "
    "INTEGER NOT NULL, \"key\" BLOB NOT NULL, \"arguments\" BLOB NOT NULL, \"tries\" BLOB"
    " NOT NULL, \"why\" BLOB NOT NULL) STRICT;"
    "CREATE TABLE \"room\" (\"id\" INTEGER PRIMARY KEY, \"ticket\" INTEGER NOT NULL, "
    "\"server\" INTEGER NOT NULL, \"fleet\" INTEGER NOT NULL, \"version\" INTEGER NOT "
    "NULL, \"deployment\" INTEGER NOT NULL, \"host\" INTEGER NOT NULL, \"region\" INTEGER"
    " NOT NULL, \"state\" INTEGER NOT NULL, \"end_reason\" INTEGER NOT NULL, "
    "\"max_players\" INTEGER NOT NULL, \"ports\" BLOB NOT NULL, \"pid\" INTEGER NOT NULL,"
    " \"exit_code\" INTEGER NOT NULL, \"exit_signal\" INTEGER NOT NULL, \"peak_memory\" "
    "INTEGER NOT NULL, \"run_ms\" INTEGER NOT NULL, \"created_core_ms\" INTEGER NOT NULL,"
    " \"opened_core_ms\" INTEGER NOT NULL, \"empty_core_ms\" INTEGER NOT NULL, "
    "\"deadline_core_ms\" INTEGER NOT NULL, \"settings\" BLOB NOT NULL, \"tail\" BLOB NOT"
    " NULL) STRICT;"
    "CREATE TABLE \"room_seat\" (\"id\" INTEGER PRIMARY KEY, \"room\" INTEGER NOT NULL, "
    "\"ticket\" INTEGER NOT NULL, \"fleet\" INTEGER NOT NULL, \"account\" TEXT NOT NULL, "
    "\"address\" TEXT NOT NULL, \"state\" INTEGER NOT NULL, \"multi\" INTEGER NOT NULL, "
    "\"joined_seq\" INTEGER NOT NULL, \"reserved_core_ms\" INTEGER NOT NULL, "
    "\"joined_core_ms\" INTEGER NOT NULL, \"deadline_core_ms\" INTEGER NOT NULL, "
    "\"left_ms\" INTEGER NOT NULL, \"info\" BLOB NOT NULL, \"sealed\" BLOB NOT NULL) "
    "STRICT;";

/* What came with format 4. */
static const char *const old_tokens =
    "CREATE TABLE \"token_mode\" (\"id\" INTEGER PRIMARY KEY, \"fleet\" INTEGER NOT NULL, "
    "\"from_seat\" INTEGER NOT NULL, \"mode\" INTEGER NOT NULL) STRICT;"
    "CREATE TABLE \"allocation_detail\" (\"id\" INTEGER PRIMARY KEY, \"allocation\" INTEGER NOT "
    "NULL, \"party\" INTEGER NOT NULL) STRICT;";

/* What came with format 3. */
static const char *const old_allocations =
    "CREATE TABLE \"allocation\" (\"id\" INTEGER PRIMARY KEY, \"name\" TEXT NOT "
    "NULL, \"fleet\" INTEGER NOT NULL, \"player\" TEXT NOT NULL, \"from\" TEXT NOT "
    "NULL, \"bus\" INTEGER NOT NULL, \"state\" INTEGER NOT NULL, \"owed\" INTEGER "
    "NOT NULL, \"error\" INTEGER NOT NULL, \"priority\" INTEGER NOT NULL, "
    "\"region\" INTEGER NOT NULL, \"any_room\" INTEGER NOT NULL, \"rejoin\" INTEGER"
    " NOT NULL, \"move_party\" INTEGER NOT NULL, \"room\" INTEGER NOT NULL, "
    "\"ticket\" INTEGER NOT NULL, \"opened_core_ms\" INTEGER NOT NULL, "
    "\"queued_core_ms\" INTEGER NOT NULL, \"deadline_core_ms\" INTEGER NOT NULL, "
    "\"answered_wall_ms\" INTEGER NOT NULL, \"expires_wall_ms\" INTEGER NOT NULL,"
    " \"address\" TEXT NOT NULL, \"ports\" BLOB NOT NULL, \"arguments\" BLOB NOT "
    "NULL, \"friends\" BLOB NOT NULL, \"party\" BLOB NOT NULL, \"seats\" BLOB NOT "
    "NULL, \"info\" BLOB NOT NULL, \"why\" BLOB NOT NULL) STRICT;"
    "CREATE TABLE \"room_detail\" (\"id\" INTEGER PRIMARY KEY, \"room\" INTEGER NOT"
    " NULL, \"address\" TEXT NOT NULL, \"name\" TEXT NOT NULL, \"dropped_bytes\" "
    "INTEGER NOT NULL) STRICT;";

static inline sqlite3 *old_open(const char *folder, const char *file, const char *schema,
                                const struct old_version *version)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s/%s", folder, file);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, schema, NULL, NULL, NULL), SQLITE_OK);
    char marks[96];
    snprintf(marks, sizeof(marks), "PRAGMA application_id = 1299542900; PRAGMA user_version = %d;",
             version->format);
    assert_int_equal(sqlite3_exec(db, marks, NULL, NULL, NULL), SQLITE_OK);
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
 * tables. The model knows from now on what that version wrote; old_done() ends that. */
static inline void old_folder(const char *folder, const struct old_version *version, int64_t folded,
                              int64_t last)
{
    model_old_until = last;
    model_old_kinds = version->kinds;
    sqlite3 *db = old_open(folder, JOURNAL_FILE, old_journal, version);
    for (int64_t seq = folded > 3 ? folded - 3 : 1; seq <= last; seq++)
        old_batch(db, seq);
    sqlite3_close(db);

    struct model model = {0};
    model_until(&model, folded);
    db = old_open(folder, STATE_FILE, old_state, version);
    if (version->kinds >= 10)
        assert_int_equal(sqlite3_exec(db, old_operators, NULL, NULL, NULL), SQLITE_OK);
    if (version->kinds >= 17)
        assert_int_equal(sqlite3_exec(db, old_rooms, NULL, NULL, NULL), SQLITE_OK);
    if (version->kinds >= 19)
        assert_int_equal(sqlite3_exec(db, old_allocations, NULL, NULL, NULL), SQLITE_OK);
    if (version->kinds >= 21)
        assert_int_equal(sqlite3_exec(db, old_tokens, NULL, NULL, NULL), SQLITE_OK);
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

static inline void old_done(void)
{
    model_old_until = 0;
}
