/* What a game server was given and must not be read in its output. */
#include "agent/secrets.h"

#include "agent/process.h"
#include "base/json.h"
#include "lib/unit.h"

#include <stdio.h>
#include <string.h>

#define TOKEN "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm5hIn0.c2lnbmF0dXJl_-x"
#define KEY "12.abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNO-_"

static void expect(const struct secrets *s, bool cut, const char *said, const char *shown)
{
    struct buf b = {0};
    buf_append(&b, "eyJ before ", 11);
    buf_append(&b, said, strlen(said));
    secrets_blank(s, &b, 11, cut);
    buf_append(&b, "", 1);
    assert_string_equal((char *)b.data + 11, shown);
    buf_done(&b);
}

static void tokens_and_keys_are_known_by_their_form(void **state)
{
    (void)state;
    expect(NULL, false, "token=" TOKEN "\n", "token=***\n");
    expect(NULL, false, TOKEN " and " KEY ", " TOKEN, "*** and ***, ***");
    expect(NULL, false, "{\"key\":\"" KEY "\"}", "{\"key\":\"***\"}");
    expect(NULL, false, "eyJ.short 3.14 12.abc eyJust-a-long-word-without-any", /* none of it */
           "eyJ.short 3.14 12.abc eyJust-a-long-word-without-any");
    expect(NULL, false, "", "");
    struct buf nothing = {0}; /* not even memory */
    secrets_blank(NULL, &nothing, 0, false);
    assert_int_equal(nothing.len, 0);
}

static void what_was_given_is_blanked(void **state)
{
    (void)state;
    static struct secrets s;
    const char *const env[] = {
        "login_access_token=opaque!1",
        "A=harmless",
        "DB_PASSWORD=p ss\"word",
        "server_settings={\"map\":\"dust2map\",\"db\":[{\"api_key\":\"0123456789abcdefXYZ\"}]}",
        "SHORT_TOKEN=abc",
        NULL};
    const char *const arguments[] = {
        "--map", "arena-map", "--token", "second-one", "--secret=third-one", "--verbose", NULL};
    const struct process_spec spec = {.env = env, .arguments = arguments};
    secrets_take_spec(&s, &spec);
    expect(&s, false, "got opaque!1, harmless p ss\"word abc", "got ***, harmless *** abc");
    expect(&s, false, "dust2map arena-map --verbose", "dust2map arena-map --verbose");
    expect(&s, false, "second-onethird-one", "******");
    expect(&s, false, "0123456789abcdefXYZ", "***");
    expect(&s, false, "0123456789abcdef and no more", "*** and no more"); /* most of it */
    expect(&s, false, "0123456789", "0123456789");
    secrets_done(&s);
}

static void what_was_answered_is_blanked_and_the_oldest_forgotten(void **state)
{
    (void)state;
    static struct secrets s;
    char why[JSON_WHY_MAX];
    char text[64];
    for (int i = 0; i <= SECRETS_MAX; i++) {
        snprintf(text, sizeof(text), "{\"access_token\":\"opaque-%d.\",\"account\":\"somebody\"}",
                 i);
        struct json *root = json_parse(str_of(text), why);
        secrets_take_json(&s, root);
        secrets_take_json(&s, root);
        json_free(root);
    }
    expect(&s, false, "opaque-0. opaque-1. opaque-64. somebody", "opaque-0. *** *** somebody");
    secrets_done(&s);
}

/* Its beginning is not there to be known by. */
static void half_a_token_at_a_cut_is_blanked(void **state)
{
    (void)state;
    expect(NULL, true, "IsInR5cCI6IkpXVCJ9.c2lnbmF0dXJl next", "*** next");
    expect(NULL, true, "the end of a line", "the end of a line");
    expect(NULL, false, "[muster: 1 lines, 9 bytes of output dropped]\nIsInR5cCI6IkpXVCJ9.c2l x",
           "[muster: 1 lines, 9 bytes of output dropped]\n*** x");
}

static void what_may_go_on_is_held_back(void **state)
{
    (void)state;
    static struct secrets s;
    const char *const env[] = {"PASSWORD=a b c d e f", NULL};
    const struct process_spec spec = {.env = env};
    struct buf b = {0};
    secrets_take_spec(&s, &spec);
    buf_append(&b, "line\n> ", 7);
    assert_int_equal(secrets_open(&s, &b), 0);
    buf_append(&b, "eyJhbGci", 8);
    assert_int_equal(secrets_open(&s, &b), 8);
    buf_append(&b, " a b c", 6);
    assert_int_equal(secrets_open(&s, &b), 5);
    assert_int_equal(secrets_open(NULL, &b), 1);
    memset(buf_extend(&b, 2 * SECRETS_OPEN_MAX), 'x', 2 * SECRETS_OPEN_MAX);
    assert_int_equal(secrets_open(&s, &b), 0);
    buf_done(&b);
    secrets_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_and_keys_are_known_by_their_form),
        cmocka_unit_test(what_was_given_is_blanked),
        cmocka_unit_test(what_was_answered_is_blanked_and_the_oldest_forgotten),
        cmocka_unit_test(half_a_token_at_a_cut_is_blanked),
        cmocka_unit_test(what_may_go_on_is_held_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
