#include "fixture.h"

#include "store/schema.h"

static void the_tables_read_like_the_rows(void **state)
{
    (void)state;
    struct buf sql = {0};
    schema_create(&sql, ROW_seat);
    assert_string_equal(
        (char *)sql.data,
        "CREATE TABLE IF NOT EXISTS \"seat\" (\"id\" INTEGER PRIMARY KEY, \"session\" INTEGER NOT "
        "NULL, \"fleet\" INTEGER NOT NULL, \"account\" INTEGER NOT NULL, "
        "\"state\" INTEGER NOT NULL) STRICT");
    schema_upsert(&sql, ROW_fleet);
    assert_string_equal((char *)sql.data, "INSERT OR REPLACE INTO \"fleet\" VALUES (?, ?)");
    schema_delete(&sql, ROW_fleet);
    assert_string_equal((char *)sql.data, "DELETE FROM \"fleet\" WHERE \"id\" = ?");
    schema_select(&sql, ROW_fleet);
    assert_string_equal((char *)sql.data, "SELECT \"id\", \"name\" FROM \"fleet\" ORDER BY \"id\"");
    buf_done(&sql);
}

static sqlite3_stmt *prepare(sqlite3 *db, const struct buf *sql)
{
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, (const char *)sql->data, -1, &stmt, NULL), SQLITE_OK);
    return stmt;
}

static void assert_same_row(const struct change *a, const struct change *b)
{
    struct buf one = {0};
    struct buf two = {0};
    change_encode_row(&one, a->kind, &a->row_id);
    change_encode_row(&two, b->kind, &b->row_id);
    assert_int_equal(one.len, two.len);
    assert_memory_equal(one.data, two.data, one.len);
    buf_done(&one);
    buf_done(&two);
}

static void every_kind_goes_in_and_comes_out(void **state)
{
    (void)state;
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    struct buf sql = {0};
    for (int i = 0; i < ROW_KINDS; i++) {
        enum row_kind kind = (enum row_kind)i;
        struct change in;
        struct change out;
        schema_create(&sql, kind);
        assert_int_equal(sqlite3_exec(db, (const char *)sql.data, NULL, NULL, NULL), SQLITE_OK);
        schema_upsert(&sql, kind);
        sqlite3_stmt *upsert = prepare(db, &sql);
        for (unsigned salt = 1; salt <= 2; salt++) {
            fixture_row(&in, kind, 11, salt);
            assert_int_equal(schema_bind(upsert, &in), SQLITE_OK);
            assert_int_equal(sqlite3_step(upsert), SQLITE_DONE);
            sqlite3_reset(upsert);
        }
        sqlite3_finalize(upsert);
        schema_select(&sql, kind);
        sqlite3_stmt *select = prepare(db, &sql);
        assert_int_equal(sqlite3_step(select), SQLITE_ROW);
        assert_int_equal(schema_read(select, kind, &out), 0);
        assert_int_equal(out.kind, in.kind);
        assert_true(out.id == in.id);
        assert_same_row(&in, &out);
        assert_int_equal(sqlite3_step(select), SQLITE_DONE);
        sqlite3_finalize(select);
    }
    sqlite3_close(db);
    buf_done(&sql);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tables_read_like_the_rows),
        cmocka_unit_test(every_kind_goes_in_and_comes_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
