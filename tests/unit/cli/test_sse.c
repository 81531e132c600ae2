/* Server-sent events, whole and in pieces. */
#include "cli/sse.h"

#include "lib/unit.h"

#include <stdio.h>
#include <string.h>

/* What was handed out, as "kind=data;". */
struct heard {
    char text[512];
    int left; /* so many more are wanted; 0 = all */
};

static bool on_event(void *user, const struct sse_event *e)
{
    struct heard *h = user;
    size_t n = strlen(h->text);
    snprintf(h->text + n, sizeof(h->text) - n, "%.*s=%.*s;", (int)e->kind.len, e->kind.at,
             (int)e->data.len, e->data.at);
    return h->left == 0 || --h->left > 0;
}

static bool take(struct sse *s, struct heard *h, const char *text)
{
    return sse_take(s, str_of(text), on_event, h);
}

static const char STREAM[] = ": hello\n\n"
                             "id: 1.0\nevent: ticket\ndata: {\"a\":1}\n\n"
                             "id: 2\n\n"
                             "data: one\r\ndata:two\r\n\r\n"
                             "retry: 5\nid: 3.1\nevent: note\ndata: x\n\n";

static void test_events_and_ids(void **state)
{
    (void)state;
    struct sse s = {0};
    struct heard h = {0};
    assert_true(take(&s, &h, STREAM));
    assert_string_equal(h.text, "ticket={\"a\":1};message=one\ntwo;note=x;");
    assert_string_equal(s.id, "3.1");
    sse_done(&s);
}

static void test_any_cut_gives_the_same(void **state)
{
    (void)state;
    for (size_t cut = 0; cut <= strlen(STREAM); cut++) {
        struct sse s = {0};
        struct heard h = {0};
        assert_true(sse_take(&s, (struct str){STREAM, cut}, on_event, &h));
        assert_true(take(&s, &h, STREAM + cut));
        assert_string_equal(h.text, "ticket={\"a\":1};message=one\ntwo;note=x;");
        assert_string_equal(s.id, "3.1");
        sse_done(&s);
    }
}

static void test_id_alone_moves_on(void **state)
{
    (void)state;
    struct sse s = {0};
    struct heard h = {0};
    assert_true(take(&s, &h, "id: 41\n\n"));
    assert_string_equal(h.text, "");
    assert_string_equal(s.id, "41");
    sse_done(&s);
}

/* What was cut off in its middle comes again after a reconnect, so its id must not count. */
static void test_half_event_is_forgotten(void **state)
{
    (void)state;
    struct sse s = {0};
    struct heard h = {0};
    assert_true(take(&s, &h, "id: 1\ndata: a\n\nid: 2\nevent: x\ndata: b\n"));
    assert_string_equal(s.id, "1");
    sse_restart(&s);
    assert_true(take(&s, &h, "id: 2\ndata: b\n\n"));
    assert_string_equal(h.text, "message=a;message=b;");
    assert_string_equal(s.id, "2");
    sse_done(&s);
}

static void test_whoever_has_enough_is_left_alone(void **state)
{
    (void)state;
    struct sse s = {0};
    struct heard h = {.left = 1};
    assert_false(take(&s, &h, "id: 1\ndata: a\n\nid: 2\ndata: b\n\n"));
    assert_string_equal(h.text, "message=a;");
    assert_string_equal(s.id, "1");
    sse_done(&s);
}

static void test_line_without_end_is_refused(void **state)
{
    (void)state;
    struct sse s = {0};
    struct heard h = {0};
    static char piece[64 * 1024];
    memset(piece, 'x', sizeof(piece) - 1);
    int pieces = 0;
    while (take(&s, &h, piece)) {
        pieces++;
        assert_true(pieces <= SSE_LINE_MAX / (int)(sizeof(piece) - 1));
    }
    sse_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events_and_ids),
        cmocka_unit_test(test_any_cut_gives_the_same),
        cmocka_unit_test(test_id_alone_moves_on),
        cmocka_unit_test(test_half_event_is_forgotten),
        cmocka_unit_test(test_whoever_has_enough_is_left_alone),
        cmocka_unit_test(test_line_without_end_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
