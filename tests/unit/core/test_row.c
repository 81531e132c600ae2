#include "core/row.h"

#include "lib/unit.h"
#include "wire/put.h"

#include <stdlib.h>
#include <string.h>

enum filling { ZEROS, LEAST, MOST, FILLINGS };

static void fill_field(char *row, const struct row_field *f, enum filling how)
{
    void *at = row + f->offset;
    switch (f->type) {
    case ROW_END:
        break;
    case ROW_i8:
        *(int8_t *)at = how == ZEROS ? 0 : how == LEAST ? INT8_MIN : INT8_MAX;
        break;
    case ROW_i32:
        *(int32_t *)at = how == ZEROS ? 0 : how == LEAST ? INT32_MIN : INT32_MAX;
        break;
    case ROW_i64:
        *(int64_t *)at = how == ZEROS ? 0 : how == LEAST ? INT64_MIN : INT64_MAX;
        break;
    case ROW_text:
        memset(at, 'x', how == MOST ? f->size - 1u : 0);
        break;
    case ROW_bytes:
        *(uint16_t *)(void *)(row + f->len_offset) = how == MOST ? f->size : 0;
        memset(at, 0xFF, how == MOST ? f->size : 0);
        break;
    case ROW_long: {
        static char bytes[UINT16_MAX];
        memset(bytes, 'y', sizeof(bytes));
        *(struct str *)at = (struct str){bytes, how == MOST ? f->size : 0};
        break;
    }
    }
}

/* The whole union is zeroed first, so that whole rows may be compared byte by byte. */
static void fill(struct change *ch, enum row_kind kind, enum filling how)
{
    memset(ch, 0, sizeof(*ch));
    for (const struct row_field *f = row_fields(kind); f->type != ROW_END; f++)
        fill_field((char *)&ch->row_id, f, how);
}

/* Decodes one change from memory of exactly that size; expects nothing behind it. */
static bool decode(const uint8_t *bytes, size_t len, struct change *ret, const char **ret_why)
{
    uint8_t *copy = malloc(len ? len : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, len);
    struct cursor c = cursor_of(copy, len);
    bool found = change_decode(&c, ret);
    if (found)
        cursor_end(&c);
    *ret_why = c.error;
    free(copy);
    return found && !cursor_failed(&c);
}

static void fields_begin_with_the_id(void **state)
{
    (void)state;
    for (int k = 0; k < ROW_KINDS; k++) {
        const struct row_field *f = row_fields((enum row_kind)k);
        assert_string_equal(f->name, "id");
        assert_int_equal(f->type, ROW_i64);
        assert_int_equal(f->offset, 0);
        for (; f->type != ROW_END; f++) {
            if (f->type == ROW_text || f->type == ROW_bytes)
                assert_in_range(f->size, 1, 1024);
        }
    }
}

static void assert_same_field(const struct row_field *f, const char *a, const char *b)
{
    static const size_t widths[] = {[ROW_i8] = 1, [ROW_i32] = 4, [ROW_i64] = 8};
    if (f->type == ROW_text) {
        assert_string_equal(a + f->offset, b + f->offset);
    } else if (f->type == ROW_bytes) {
        uint16_t len = *(const uint16_t *)(const void *)(a + f->len_offset);
        assert_int_equal(len, *(const uint16_t *)(const void *)(b + f->len_offset));
        assert_memory_equal(a + f->offset, b + f->offset, len);
    } else if (f->type == ROW_long) {
        assert_true(str_eq(*(const struct str *)(const void *)(a + f->offset),
                           *(const struct str *)(const void *)(b + f->offset)));
    } else {
        assert_memory_equal(a + f->offset, b + f->offset, widths[f->type]);
    }
}

static void every_kind_survives_with_extreme_values(void **state)
{
    (void)state;
    struct buf b = {0};
    for (int k = 0; k < ROW_KINDS; k++) {
        for (enum filling how = ZEROS; how < FILLINGS; how++) {
            struct change want;
            struct change got;
            fill(&want, (enum row_kind)k, how);
            buf_clear(&b);
            change_encode_row(&b, (enum row_kind)k, &want.row_id);
            struct cursor c = cursor_of(b.data, b.len);
            assert_true(change_decode(&c, &got));
            cursor_end(&c);
            assert_false(cursor_failed(&c));
            assert_int_equal(got.kind, k);
            assert_false(got.gone);
            assert_true(got.id == want.row_id);
            for (const struct row_field *f = row_fields(got.kind); f->type != ROW_END; f++)
                assert_same_field(f, (const char *)&got.row_id, (const char *)&want.row_id);
        }
    }
    buf_done(&b);
}

static void every_truncation_fails(void **state)
{
    (void)state;
    struct buf b = {0};
    for (int k = 0; k < ROW_KINDS; k++) {
        struct change ch;
        const char *why = NULL;
        fill(&ch, (enum row_kind)k, MOST);
        buf_clear(&b);
        change_encode_row(&b, (enum row_kind)k, &ch.row_id);
        for (size_t len = 1; len < b.len; len++) {
            assert_false(decode(b.data, len, &ch, &why));
            assert_non_null(why);
        }
        buf_clear(&b);
        change_encode_gone(&b, (enum row_kind)k, -1);
        for (size_t len = 1; len < b.len; len++) {
            assert_false(decode(b.data, len, &ch, &why));
            assert_non_null(why);
        }
    }
    buf_done(&b);
}

/* Passing over a change refuses what decoding refuses, at every length. */
static void passing_over_judges_alike(void **state)
{
    (void)state;
    struct buf b = {0};
    for (int k = 0; k < ROW_KINDS; k++) {
        struct change ch;
        fill(&ch, (enum row_kind)k, MOST);
        buf_clear(&b);
        change_encode_row(&b, (enum row_kind)k, &ch.row_id);
        for (size_t len = 0; len <= b.len; len++) {
            struct cursor decoding = cursor_of(b.data, len);
            struct cursor passing = decoding;
            struct change_name name;
            bool decoded = change_decode(&decoding, &ch);
            assert_int_equal(change_skip(&passing, &name), decoded);
            assert_int_equal(cursor_failed(&passing), cursor_failed(&decoding));
            if (!decoded)
                continue;
            assert_ptr_equal(passing.at, decoding.at);
            assert_int_equal(name.kind, k);
            assert_true(name.id == ch.id);
        }
    }
    buf_done(&b);
}

static void the_end_is_no_damage(void **state)
{
    (void)state;
    struct cursor c = cursor_of(NULL, 0);
    struct change ch;
    assert_false(change_decode(&c, &ch));
    assert_false(cursor_failed(&c));
}

static void expect_damage(const void *bytes, size_t len, const char *why)
{
    struct change ch;
    const char *got = NULL;
    assert_false(decode(bytes, len, &ch, &got));
    assert_non_null(got);
    assert_string_equal(got, why);
}

static void damage_is_named(void **state)
{
    (void)state;
    uint8_t unknown[] = {ROW_KINDS, 1, 0, 0, 0, 0, 0, 0, 0, 0};
    expect_damage(unknown, sizeof(unknown), "unknown kind of row");
    unknown[0] = 255;
    expect_damage(unknown, sizeof(unknown), "unknown kind of row");
    expect_damage("\x00\x02\0\0\0\0\0\0\0\0", 10, "a flag must be 0 or 1");

    struct buf b = {0};
    put_u8(&b, ROW_fleet);
    put_u8(&b, 0);
    put_i64(&b, 1);
    put_str(&b, STR("0123456789012345678901234567890123456789012345678901234567890123"));
    expect_damage(b.data, b.len, "text longer than its column");
    buf_clear(&b);
    put_u8(&b, ROW_fleet);
    put_u8(&b, 0);
    put_i64(&b, 1);
    put_str(&b, STR("\xFF"));
    expect_damage(b.data, b.len, "string is not UTF-8");
    buf_done(&b);
}

/* The bytes field is a ticket's last; a length beyond its column must not be written there. */
static void bytes_longer_than_their_column_fail(void **state)
{
    (void)state;
    struct change ch;
    struct buf b = {0};
    fill(&ch, ROW_ticket, ZEROS);
    change_encode_row(&b, ROW_ticket, &ch.ticket);
    uint16_t longer = sizeof(ch.ticket.tries) + 1;
    b.len -= 2;
    put_u16(&b, longer);
    memset(buf_extend(&b, longer), 7, longer);
    expect_damage(b.data, b.len, "bytes longer than their column");
    buf_done(&b);
}

/* Data folders outlive the binary that wrote them. A changed byte here is a changed format: raise
 * ROW_FORMAT. */
static void the_bytes_on_disk_are_these(void **state)
{
    (void)state;
    struct buf b = {0};
    change_encode_row(&b, ROW_fleet, &(struct row_fleet){.id = 258, .name = "eu"});
    change_encode_gone(&b, ROW_fleet, -2);
    change_encode_row(
        &b, ROW_seat,
        &(struct row_seat){.id = 1, .session = 0x0102030405060708, .fleet = -1, .account = 1001});
    /* clang-format off */
    static const uint8_t want[] = {
        ROW_fleet, 0, /* id */ 0x02, 0x01, 0, 0, 0, 0, 0, 0, /* name */ 'e', 'u', 0,
        ROW_fleet, 1, /* id */ 0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
        ROW_seat, 0, /* id */ 0x01, 0, 0, 0, 0, 0, 0, 0,
        /* session */ 0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01,
        /* fleet, account, state */ 0xFF, 0xFF, 0xFF, 0xFF, 0xE9, 0x03, 0, 0, 0x00,
    };
    /* clang-format on */
    assert_int_equal(b.len, sizeof(want));
    assert_memory_equal(b.data, want, sizeof(want));
    buf_done(&b);
}

/* The kind is a byte on disk as well: new kinds come last. */
static void kinds_keep_their_numbers(void **state)
{
    (void)state;
    static const char *const names[] = {"counter", "fleet",   "chat_server", "server",
                                        "ticket",  "session", "seat"};
    for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
        assert_string_equal(row_kind_name((enum row_kind)k), names[k]);
}

static void changes_follow_each_other(void **state)
{
    (void)state;
    struct buf b = {0};
    for (int i = 0; i < 100; i++) {
        struct change ch;
        fill(&ch, (enum row_kind)(i % ROW_KINDS), (enum filling)(i % FILLINGS));
        ch.row_id = i;
        if (i % 4 == 0)
            change_encode_gone(&b, (enum row_kind)(i % ROW_KINDS), i);
        else
            change_encode_row(&b, (enum row_kind)(i % ROW_KINDS), &ch.row_id);
    }
    struct cursor c = cursor_of(b.data, b.len);
    struct change ch;
    int i = 0;
    for (; change_decode(&c, &ch); i++) {
        assert_int_equal(ch.kind, i % ROW_KINDS);
        assert_true(ch.id == i);
        assert_int_equal(ch.gone, i % 4 == 0);
    }
    assert_int_equal(i, 100);
    assert_false(cursor_failed(&c));
    buf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_begin_with_the_id),
        cmocka_unit_test(every_kind_survives_with_extreme_values),
        cmocka_unit_test(every_truncation_fails),
        cmocka_unit_test(passing_over_judges_alike),
        cmocka_unit_test(the_end_is_no_damage),
        cmocka_unit_test(damage_is_named),
        cmocka_unit_test(bytes_longer_than_their_column_fail),
        cmocka_unit_test(the_bytes_on_disk_are_these),
        cmocka_unit_test(kinds_keep_their_numbers),
        cmocka_unit_test(changes_follow_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
