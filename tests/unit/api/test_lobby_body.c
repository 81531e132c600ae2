/* Teams and groups of a request: what is read, and what is said of what cannot be. */
#include "api/lobby_body.h"

#include "base/err.h"
#include "lib/unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct arena arena;
static struct lobby_body body;

static int tear_down(void **state)
{
    (void)state;
    arena_done(&arena);
    arena = (struct arena){0};
    return 0;
}

/* NULL = there is none. */
static int read_both(const char *one, const char *two, const char *group, const char *other)
{
    struct str teams[2] = {str_of(one), str_of(two ? two : "")};
    struct str groups[2] = {str_of(group ? group : ""), str_of(other ? other : "")};
    return lobby_body_read(&body, &arena, teams, two ? 2 : 1, groups, !group ? 0 : other ? 2 : 1);
}

static void everything_is_read(void **state)
{
    (void)state;
    assert_int_equal(read_both("[{\"account\":7,\"name\":\"ann\",\"slot\":3},{\"account\":8}]",
                               "[{\"account\":9,\"name\":null}]", "[9,8]", NULL),
                     0);
    assert_int_equal(body.n_players, 3);
    const struct lobby_entry *p = body.players;
    assert_true(p[0].account == 7 && p[0].team == 0 && p[0].slot == 3 && p[0].group == 1);
    assert_true(p[1].account == 8 && p[1].team == 0 && p[1].slot == 1 && p[1].group == 0);
    assert_true(p[2].account == 9 && p[2].team == 1 && p[2].slot == 0 && p[2].group == 0);
    assert_true(str_eq(p[0].name, STR("ann")));
    assert_true(str_eq(p[1].name, STR("8")));
    assert_true(str_eq(p[2].name, STR("9")));
}

static void a_second_team_may_be_empty(void **state)
{
    (void)state;
    assert_int_equal(read_both("[{\"account\":7}]", "[]", NULL, NULL), 0);
    assert_int_equal(body.n_players, 1);
}

static void a_hundred_fit_and_no_more(void **state)
{
    (void)state;
    char text[4096] = "[";
    for (int i = 1; i <= LOBBY_PLAYERS_MAX; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s{\"account\":%d}",
                 i > 1 ? "," : "", i);
    strcat(text, "]");
    assert_int_equal(read_both(text, NULL, NULL, NULL), 0);
    assert_int_equal(body.n_players, LOBBY_PLAYERS_MAX);
    assert_int_equal(body.players[99].group, 99);
    assert_int_equal(read_both(text, "[{\"account\":1000}]", NULL, NULL), ERR_BAD_ARGUMENT);
    assert_string_equal(body.where, "teams");
    assert_string_equal(body.why, "teams have at most 100 players.");
}

static void every_refusal_says_where_and_why(void **state)
{
    (void)state;
    static const struct {
        const char *one, *two, *group, *other, *where, *why;
    } cases[] = {
        {"[]", NULL, NULL, NULL, "teams", "teams have no player at all."},
        {"[]", "[]", NULL, NULL, "teams", "teams have no player at all."},
        {"[7]", NULL, NULL, NULL, "teams[0][0]",
         "teams[0][0] is a player, as {\"account\": 7}, not 7."},
        {"[{}]", NULL, NULL, NULL, "teams[0][0].account", "teams[0][0].account is missing."},
        {"[{\"account\":0}]", NULL, NULL, NULL, "teams[0][0].account",
         "teams[0][0].account is a whole number from 1 to 2147483647, not 0."},
        {"[{\"account\":\"7\"}]", NULL, NULL, NULL, "teams[0][0].account",
         "teams[0][0].account is a whole number from 1 to 2147483647, not \"7\"."},
        {"[{\"account\":2147483648}]", NULL, NULL, NULL, "teams[0][0].account",
         "teams[0][0].account is a whole number from 1 to 2147483647, not 2147483648."},
        {"[{\"account\":7,\"slot\":128}]", NULL, NULL, NULL, "teams[0][0].slot",
         "teams[0][0].slot is a whole number from 0 to 127, not 128."},
        {"[{\"account\":7,\"name\":\"\"}]", NULL, NULL, NULL, "teams[0][0].name",
         "teams[0][0].name is text of 1 to 64 bytes without control characters, not \"\"."},
        {"[{\"account\":7,\"name\":\"a\\u001bb\"}]", NULL, NULL, NULL, "teams[0][0].name",
         "teams[0][0].name is text of 1 to 64 bytes without control characters, not "
         "\"a\\u001bb\"."},
        {"[{\"account\":7,\"acount\":8}]", NULL, NULL, NULL, "teams[0][0]",
         "teams[0][0] has a member that is not known. Did you mean 'account'?"},
        {"[{\"account\":7,\"rank\":8}]", NULL, NULL, NULL, "teams[0][0]",
         "teams[0][0] has a member that is not known: a player has account, name and slot."},
        {"[{\"account\":7}]", "[{\"account\":7}]", NULL, NULL, "teams[1][0].account",
         "teams[1][0].account is 7, who is named twice."},
        {"[{\"account\":7},{\"account\":8,\"slot\":0}]", NULL, NULL, NULL, "teams[0][1].slot",
         "teams[0][1].slot is 0, which player 7 of this team has."},
        {"[{\"account\":7}]", NULL, "[]", NULL, "groups[0]", "groups[0] is empty."},
        {"[{\"account\":7}]", NULL, "[7,9]", NULL, "groups[0][1]",
         "groups[0][1] is 9, who is in no team."},
        {"[{\"account\":7}]", NULL, "[7]", "[7]", "groups[1][0]",
         "groups[1][0] is 7, who is in a group already."},
        {"[{\"account\":7}]", NULL, "[\"ann\"]", NULL, "groups[0][0]",
         "groups[0][0] is a whole number from 1 to 2147483647, not \"ann\"."},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(read_both(cases[i].one, cases[i].two, cases[i].group, cases[i].other),
                         ERR_BAD_ARGUMENT);
        assert_string_equal(body.where, cases[i].where);
        assert_string_equal(body.why, cases[i].why);
    }
}

static void a_long_value_is_cut_between_characters(void **state)
{
    (void)state;
    assert_int_equal(
        read_both("[{\"account\":\"äääääääääääääääääääääääääääääääää\"}]", NULL, NULL, NULL),
        ERR_BAD_ARGUMENT);
    assert_true(str_is_utf8(str_of(body.why)));
    assert_non_null(strstr(body.why, "ä…\"."));
    assert_int_equal(read_both("[{\"account\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18]}]",
                               NULL, NULL, NULL),
                     ERR_BAD_ARGUMENT);
    assert_non_null(strstr(body.why, "…."));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(everything_is_read, tear_down),
        cmocka_unit_test_teardown(a_second_team_may_be_empty, tear_down),
        cmocka_unit_test_teardown(a_hundred_fit_and_no_more, tear_down),
        cmocka_unit_test_teardown(every_refusal_says_where_and_why, tear_down),
        cmocka_unit_test_teardown(a_long_value_is_cut_between_characters, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
