#include "base/err.h"

#include "lib/unit.h"

#include <stdbool.h>

#include <string.h>

static const int all[] = {
#define X(name, code, sentence, status) ERR_##name,
#include "base/errors.def"
#undef X
};
enum { ALL = sizeof(all) / sizeof(all[0]) };

static void success_is_zero_and_has_words(void **state)
{
    (void)state;
    assert_int_equal(ERR_NONE, 0);
    assert_string_equal(err_code(0), "ok");
    assert_int_equal(err_status(0), 200);
}

/* The wording is part of the protocol, so the table may not drift from it. */
static void sentences_are_those_of_the_protocol(void **state)
{
    (void)state;
    assert_string_equal(err_sentence(ERR_INVALID_TOKEN), "Invalid token");
    assert_string_equal(err_sentence(ERR_INVALID_IP), "Invalid IP address");
    assert_string_equal(err_sentence(ERR_INVALID_PORT), "Invalid port");
    assert_string_equal(err_sentence(ERR_INVALID_REGION), "Invalid region");
    assert_string_equal(err_sentence(ERR_INVALID_CAPACITY), "Invalid capacity");
    assert_string_equal(err_sentence(ERR_ALREADY_REGISTERED), "Server already registered");
    assert_string_equal(err_sentence(ERR_NOT_REGISTERED), "Server not registered");
    assert_string_equal(err_sentence(ERR_DISCONNECTED), "Server disconnected");
    assert_string_equal(err_sentence(ERR_MATCH_NOT_FOUND), "Match not found");
    assert_string_equal(err_sentence(ERR_INVALID_MATCH_TOKEN), "Invalid match token");
    assert_string_equal(err_sentence(ERR_MATCH_TOKEN_EXPIRED), "Match token expired");
    assert_string_equal(err_sentence(ERR_NOT_PART_OF_MATCH), "Not part of this match");
    assert_string_equal(err_sentence(ERR_NOT_ALLOCATED), "Server not allocated to this match");
    assert_string_equal(err_sentence(ERR_INVALID_CHAT_SERVER), "Invalid Chat Server ID");
    assert_string_equal(err_sentence(ERR_CHAT_ALREADY_REGISTERED),
                        "Chat Server already registered");
    assert_string_equal(err_sentence(ERR_NO_SERVERS), "No servers available");
    assert_string_equal(err_sentence(ERR_REGION_NOT_SUPPORTED), "Region not supported");
    assert_string_equal(err_sentence(ERR_INVALID_LOBBY), "Invalid match lobby ID");
    assert_string_equal(err_sentence(ERR_ALLOCATION_TIMEOUT), "Server allocation timeout");
    assert_string_equal(err_sentence(ERR_INVALID_REQUEST), "Invalid request");
    assert_string_equal(err_sentence(ERR_INTERNAL), "Internal error");
}

static void every_row_is_negative_complete_and_unique(void **state)
{
    (void)state;
    for (int i = 0; i < ALL; i++) {
        assert_true(all[i] < 0);
        assert_true(strlen(err_sentence(all[i])) > 0);
        bool elsewhere = all[i] == ERR_NOT_THE_LEADER; /* the same can be asked there */
        assert_in_range(err_status(all[i]), elsewhere ? 300 : 400, elsewhere ? 399 : 599);
        for (int k = 0; k < i; k++) {
            assert_int_not_equal(all[i], all[k]);
            assert_string_not_equal(err_code(all[i]), err_code(all[k]));
        }
    }
}

static void unknown_numbers_read_internal_error(void **state)
{
    (void)state;
    const int strange[] = {1, 1000, INT32_MAX, INT32_MIN, -1000, -(int)ERR_ORDER_END};
    for (size_t i = 0; i < sizeof(strange) / sizeof(strange[0]); i++) {
        assert_string_equal(err_sentence(strange[i]), "Internal error");
        assert_string_equal(err_code(strange[i]), "internal");
        assert_int_equal(err_status(strange[i]), 503);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(success_is_zero_and_has_words),
        cmocka_unit_test(sentences_are_those_of_the_protocol),
        cmocka_unit_test(every_row_is_negative_complete_and_unique),
        cmocka_unit_test(unknown_numbers_read_internal_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
