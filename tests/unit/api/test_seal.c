#include "api/seal.h"

#include "base/err.h"
#include "core/core.h"
#include "lib/unit.h"

#include <stdlib.h>
#include <string.h>

static const uint8_t secret[CORE_SECRET_SIZE] = {1, 2, 3};

static struct str whole(const struct buf *b)
{
    return (struct str){(const char *)b->data, b->len};
}

static struct seal with(const uint8_t *from)
{
    struct seal s;
    seal_init(&s, from);
    return s;
}

static void what_is_sealed_can_be_opened(void **state)
{
    (void)state;
    static char longest[SEAL_TEXT_MAX];
    memset(longest, 'x', sizeof(longest));
    const struct str texts[] = {STR(""), STR("a token"), {longest, sizeof(longest)}};
    struct seal before = with(secret), after = with(secret); /* a restart between them */
    for (size_t i = 0; i < 3; i++) {
        struct buf sealed = {0}, text = {0};
        seal_close(&before, texts[i], &sealed);
        assert_int_equal(sealed.len, texts[i].len + SEAL_OVERHEAD);
        assert_int_equal(seal_open(&after, whole(&sealed), &text), 0);
        assert_true(str_eq(whole(&text), texts[i]));
        buf_done(&sealed);
        buf_done(&text);
    }
}

static void nothing_of_it_can_be_seen(void **state)
{
    (void)state;
    struct seal s = with(secret);
    struct buf first = {0}, second = {0};
    seal_close(&s, STR("a token"), &first);
    seal_close(&s, STR("a token"), &second);
    assert_null(memmem(first.data, first.len, "token", 5));
    assert_false(str_eq(whole(&first), whole(&second)));
    buf_done(&first);
    buf_done(&second);
}

static void what_was_changed_is_refused(void **state)
{
    (void)state;
    struct seal s = with(secret);
    struct buf sealed = {0}, text = {0};
    seal_close(&s, STR("a token"), &sealed);
    for (size_t i = 0; i < sealed.len; i++) {
        sealed.data[i] ^= 1;
        assert_int_equal(seal_open(&s, whole(&sealed), &text), ERR_FORMAT);
        assert_int_equal(text.len, 0);
        sealed.data[i] ^= 1;
    }
    for (size_t n = 0; n < sealed.len; n++)
        assert_int_equal(seal_open(&s, (struct str){(const char *)sealed.data, n}, &text),
                         ERR_FORMAT);
    buf_done(&sealed);
    buf_done(&text);
}

static void another_secret_opens_nothing(void **state)
{
    (void)state;
    static const uint8_t other[CORE_SECRET_SIZE] = {3, 2, 1};
    struct seal s = with(secret), o = with(other);
    struct buf sealed = {0}, text = {0};
    seal_close(&s, STR("a token"), &sealed);
    assert_int_equal(seal_open(&o, whole(&sealed), &text), ERR_FORMAT);
    buf_done(&sealed);
    buf_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_sealed_can_be_opened),
        cmocka_unit_test(nothing_of_it_can_be_seen),
        cmocka_unit_test(what_was_changed_is_refused),
        cmocka_unit_test(another_secret_opens_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
