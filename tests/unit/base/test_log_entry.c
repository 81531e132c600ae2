/* Lines of the log: well-formed whatever is put in, the same content in both formats. */
#include "base/log_entry.h"

#include "lib/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Exactly as much room as the header asks for, so that a sanitizer sees one byte more. */
static char *quote(const char *bytes, size_t len)
{
    char *dst = malloc(LOG_QUOTE_MAX + 8);
    assert_non_null(dst);
    assert_ptr_equal(log_quote(dst, (struct str){bytes, len}), dst);
    return dst;
}

static void expect(const char *bytes, size_t len, const char *quoted)
{
    char *text = quote(bytes, len);
    assert_string_equal(text, quoted);
    free(text);
}

#define EXPECT(literal, quoted) expect(literal, sizeof(literal) - 1, quoted)

static void plain_text_is_only_quoted(void **state)
{
    (void)state;
    EXPECT("", "\"\"");
    EXPECT("eu-1", "\"eu-1\"");
    EXPECT("caf\xC3\xA9 \xF0\x9F\x8E\xAE", "\"caf\xC3\xA9 \xF0\x9F\x8E\xAE\"");
    expect(NULL, 0, "\"\"");
}

static void quotes_and_control_characters_are_escaped(void **state)
{
    (void)state;
    EXPECT("a\"b", "\"a\\\"b\"");
    EXPECT("a\\b", "\"a\\\\b\"");
    EXPECT("a\nb\r", "\"a\\nb\\r\"");
    EXPECT("\0\x01\x1F\x7F\t", "\"\\u0000\\u0001\\u001f\\u007f\\t\"");
    EXPECT("\x1B[31m", "\"\\u001b[31m\"");
}

/* U+009B opens a terminal escape just as ESC [ does; a broken sequence is no text at all. */
static void c1_controls_and_broken_utf8_are_escaped(void **state)
{
    (void)state;
    EXPECT("\xC2\x9B"
           "31m",
           "\"\\u009b31m\"");
    EXPECT("\xC2\x80\xC2\x9F\xC2\xA0", "\"\\u0080\\u009f\xC2\xA0\"");
    EXPECT("\x9B", "\"\\ufffd\"");
    EXPECT("a\xFFz", "\"a\\ufffdz\"");
    EXPECT("\xE2\x82", "\"\\ufffd\\ufffd\"");
    EXPECT("\xED\xA0\x80", "\"\\ufffd\\ufffd\\ufffd\"");
}

static void long_text_is_cut_inside_the_limit(void **state)
{
    (void)state;
    char bytes[5000];
    const char fills[] = {'a', '"', '\n', '\x7F', '\xFF'};
    for (size_t f = 0; f < sizeof(fills); f++) {
        memset(bytes, fills[f], sizeof(bytes));
        for (size_t lead = 0; lead < 6; lead++) {
            memset(bytes, 'x', lead);
            char *text = quote(bytes, sizeof(bytes));
            size_t n = strlen(text);
            assert_in_range(n, LOG_QUOTE_MAX - 6, LOG_QUOTE_MAX + 7);
            assert_int_equal(text[0], '"');
            assert_int_equal(text[n - 1], '"');
            free(text);
        }
    }
}

static void a_cut_never_splits_a_character(void **state)
{
    (void)state;
    char bytes[LOG_QUOTE_MAX * 2];
    for (size_t lead = 0; lead < 4; lead++) {
        memset(bytes, 'x', lead);
        for (size_t i = lead; i + 4 <= sizeof(bytes); i += 4)
            memcpy(bytes + i, "\xF0\x9F\x8E\xAE", 4);
        char *text = quote(bytes, sizeof(bytes) - 4);
        assert_true(str_is_utf8(str_of(text)));
        free(text);
    }
}

/* 2026-11-16T08:15:30.123Z */
#define NOW_MS INT64_C(1794816930123)

/* The line without its time. */
static const char *line_of(struct log_entry *e)
{
    log_entry_close(e);
    e->text[e->len] = '\0';
    return e->text + (e->format == LOG_JSON ? strlen("{\"ts\":\"2026-11-16T08:15:30.123Z\",")
                                            : strlen("ts=2026-11-16T08:15:30.123Z "));
}

static void open_line(struct log_entry *e, enum log_format format)
{
    log_entry_open(e, format, NOW_MS, "info", "x");
}

static const char *pairs_line(enum log_format format, const char *pairs)
{
    static struct log_entry e;
    open_line(&e, format);
    log_pairs(&e, pairs, false);
    return line_of(&e);
}

static void a_line_has_time_level_and_what_happened(void **state)
{
    (void)state;
    struct log_entry e;
    log_entry_open(&e, LOG_LOGFMT, NOW_MS, "info", "ticket \"done\"");
    log_entry_close(&e);
    e.text[e.len] = '\0';
    assert_string_equal(e.text,
                        "ts=2026-11-16T08:15:30.123Z level=info msg=\"ticket \\\"done\\\"\"\n");
    log_entry_open(&e, LOG_JSON, NOW_MS, "warn", "ticket \"done\"");
    log_entry_close(&e);
    e.text[e.len] = '\0';
    assert_string_equal(e.text, "{\"ts\":\"2026-11-16T08:15:30.123Z\",\"level\":\"warn\",\"msg\":"
                                "\"ticket \\\"done\\\"\"}\n");
}

/* The time is printed anew only where it differs from the last one. */
static void the_time_is_right_in_any_order(void **state)
{
    (void)state;
    static const struct {
        int64_t wall_ms;
        const char *text;
    } rows[] = {
        {0, "1970-01-01T00:00:00.000Z"},
        {999, "1970-01-01T00:00:00.999Z"},
        {1000, "1970-01-01T00:00:01.000Z"},
        {NOW_MS, "2026-11-16T08:15:30.123Z"},
        {NOW_MS, "2026-11-16T08:15:30.123Z"},
        {NOW_MS + 1, "2026-11-16T08:15:30.124Z"},
        {NOW_MS - 1, "2026-11-16T08:15:30.122Z"},
        {NOW_MS + 900, "2026-11-16T08:15:31.023Z"},
        {INT64_C(1709251199999), "2024-02-29T23:59:59.999Z"},
        {INT64_C(1709251200000), "2024-03-01T00:00:00.000Z"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct log_entry e;
        log_entry_open(&e, LOG_LOGFMT, rows[i].wall_ms, "info", "x");
        assert_memory_equal(e.text + 3, rows[i].text, 24);
    }
}

static void pairs_of_each_kind(void **state)
{
    (void)state;
    struct log_entry e;
    for (enum log_format f = LOG_LOGFMT; f <= LOG_JSON; f++) {
        open_line(&e, f);
        log_int(&e, "zero", 0);
        log_int(&e, "least", INT64_MIN);
        log_int(&e, "most", INT64_MAX);
        log_text(&e, "chat", STR("12\n"));
        log_text(&e, "none", STR(""));
        log_word(&e, "peer", "[::1]:80");
        assert_string_equal(
            line_of(&e),
            f == LOG_JSON
                ? "\"level\":\"info\",\"msg\":\"x\",\"zero\":0,\"least\":-9223372036854775808,"
                  "\"most\":9223372036854775807,\"chat\":\"12\\n\",\"none\":\"\","
                  "\"peer\":\"[::1]:80\"}\n"
                : "level=info msg=\"x\" zero=0 least=-9223372036854775808 "
                  "most=9223372036854775807 chat=\"12\\n\" none=\"\" peer=[::1]:80\n");
    }
}

static void printed_pairs_are_taken_over(void **state)
{
    (void)state;
    const char *pairs =
        " n=7 f=-1.50  peer=1.2.3.4:5 zip=007 d=1. e=1e5 neg=-x why=\"a \\\"b\\\" =\"";
    assert_string_equal(pairs_line(LOG_LOGFMT, pairs),
                        "level=info msg=\"x\" n=7 f=-1.50 peer=1.2.3.4:5 zip=007 d=1. e=1e5 neg=-x "
                        "why=\"a \\\"b\\\" =\"\n");
    assert_string_equal(
        pairs_line(LOG_JSON, pairs),
        "\"level\":\"info\",\"msg\":\"x\",\"n\":7,\"f\":-1.50,\"peer\":\"1.2.3.4:5\","
        "\"zip\":\"007\",\"d\":\"1.\",\"e\":\"1e5\",\"neg\":\"-x\","
        "\"why\":\"a \\\"b\\\" =\"}\n");
    assert_string_equal(pairs_line(LOG_LOGFMT, ""), "level=info msg=\"x\"\n");
}

/* A caller that forgot log_quote still makes one well-formed line, and nothing is lost. */
static void careless_pairs_are_repaired(void **state)
{
    (void)state;
    static const struct {
        const char *pairs;
        const char *made;
    } rows[] = {
        {"a=\"tab\there\"", "a=\"tab\\there\""},
        {"a=\"C:\\dir\"", "a=\"C:\\\\dir\""},
        {"a=\"\\u00e\"", "a=\"\\\\u00e\""},
        {"a=\"\\u00e9\"", "a=\"\\u00e9\""},
        {"a=\"\\ud800\"", "a=\"\\\\ud800\""},
        {"a=b=c", "a=\"b=c\""},
        {"a=b\"c", "a=\"b\\\"c\""},
        {"a=x\ny", "a=\"x\\ny\""},
        {"a=", "a=\"\""},
        {"a=\xFF", "a=\"\\ufffd\""},
        {"a=1 dir/two b=3", "a=1 malformed=\"dir/two b=3\""},
        {"=5", "malformed=\"=5\""},
        {"word", "malformed=\"word\""},
        {"Key=1", "malformed=\"Key=1\""},
        {"a=\"x\"y=2", "a=\"x\" y=2"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *line = pairs_line(LOG_LOGFMT, rows[i].pairs);
        char expected[200];
        snprintf(expected, sizeof(expected), "level=info msg=\"x\" %s\n", rows[i].made);
        assert_string_equal(line, expected);
    }
}

/* A reader's 64 bits would overflow. */
static void a_number_too_long_is_a_text(void **state)
{
    (void)state;
    assert_string_equal(pairs_line(LOG_JSON, "a=999999999999999999 b=1000000000000000000"),
                        "\"level\":\"info\",\"msg\":\"x\",\"a\":999999999999999999,"
                        "\"b\":\"1000000000000000000\"}\n");
}

static void a_pair_that_is_cut_is_dropped(void **state)
{
    (void)state;
    static const char *const cuts[] = {"a=1 b", "a=1 b=", "a=1 b=2", "a=1 b=\"two",
                                       "a=1 b=\"two\""};
    for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
        struct log_entry e;
        open_line(&e, LOG_LOGFMT);
        log_pairs(&e, cuts[i], true);
        assert_string_equal(line_of(&e), "level=info msg=\"x\" a=1\n");
    }
}

/* However full the line is, it ends well and later, shorter pairs may still find room. */
static void a_pair_that_does_not_fit_is_left_out_whole(void **state)
{
    (void)state;
    char text[LOG_QUOTE_MAX];
    memset(text, 't', sizeof(text));
    for (size_t what_len = 1; what_len < 1200; what_len++) {
        for (enum log_format f = LOG_LOGFMT; f <= LOG_JSON; f++) {
            char what[1200];
            struct log_entry *e = malloc(sizeof(*e));
            memset(what, 'w', what_len);
            what[what_len] = '\0';
            log_entry_open(e, f, NOW_MS, "info", what);
            log_text(e, "text", (struct str){text, sizeof(text)});
            log_pairs(e, "why=\"some more words\" number=123456789", false);
            log_int(e, "n", 5);
            log_entry_close(e);
            assert_in_range(e->len, 40, LOG_LINE_MAX);
            assert_int_equal(e->text[e->len - 1], '\n');
            size_t quotes = 0;
            for (size_t i = 0; i < e->len; i++)
                quotes += e->text[i] == '"';
            assert_int_equal(quotes % 2, 0);
            if (f == LOG_JSON)
                assert_int_equal(e->text[e->len - 2], '}');
            free(e);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_text_is_only_quoted),
        cmocka_unit_test(quotes_and_control_characters_are_escaped),
        cmocka_unit_test(c1_controls_and_broken_utf8_are_escaped),
        cmocka_unit_test(long_text_is_cut_inside_the_limit),
        cmocka_unit_test(a_cut_never_splits_a_character),
        cmocka_unit_test(a_line_has_time_level_and_what_happened),
        cmocka_unit_test(the_time_is_right_in_any_order),
        cmocka_unit_test(pairs_of_each_kind),
        cmocka_unit_test(printed_pairs_are_taken_over),
        cmocka_unit_test(careless_pairs_are_repaired),
        cmocka_unit_test(a_number_too_long_is_a_text),
        cmocka_unit_test(a_pair_that_is_cut_is_dropped),
        cmocka_unit_test(a_pair_that_does_not_fit_is_left_out_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
