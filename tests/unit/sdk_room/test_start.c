/* What the agent gives on the command line and in the environment. */
#include "fake_agent.h"

static int start(const char *endpoint, const char *ports, struct muster_room **ret)
{
    char *argv[] = {"game", (char *)endpoint, (char *)ports, "--own", NULL};
    *ret = (struct muster_room *)argv;
    int r = muster_room_new(4, argv, NULL, NULL, NULL, ret);
    if (r)
        assert_null(*ret);
    return r;
}

static void test_arguments_and_environment(void **state)
{
    (void)state;
    setenv("room_settings", "{\"map\":\"pit\"}", 1);
    setenv("server_settings", "{\"tick\":60}", 1);
    setenv("discovery_services", "{\"login\":\"http://login\"}", 1);
    setenv("login_access_token", "secret", 1);
    setenv("room_id", "34", 1);
    setenv("game_max_players", "8", 1);
    struct muster_room *room;
    assert_int_equal(start("/tmp/none", "32765,32766", &room), 0);
    clearenv();
    const struct muster_room_start *s = muster_room_started(room);
    assert_string_equal(s->endpoint, "ipc:///tmp/none");
    assert_int_equal(s->n_ports, 2);
    assert_int_equal(s->ports[0], 32765);
    assert_int_equal(s->ports[1], 32766);
    assert_int_equal(s->max_players, 8);
    assert_string_equal(s->room_id, "34");
    assert_string_equal(s->room_settings, "{\"map\":\"pit\"}");
    assert_string_equal(s->server_settings, "{\"tick\":60}");
    assert_string_equal(s->discovery_services, "{\"login\":\"http://login\"}");
    assert_string_equal(s->login_access_token, "secret");
    muster_room_free(room);
}

static void test_little_is_needed(void **state)
{
    (void)state;
    clearenv();
    struct muster_room *room;
    assert_int_equal(start("ipc:///tmp/none", "1", &room), 0);
    const struct muster_room_start *s = muster_room_started(room);
    assert_string_equal(s->endpoint, "ipc:///tmp/none");
    assert_int_equal(s->ports[0], 1);
    assert_int_equal(s->max_players, 0);
    assert_string_equal(s->room_id, "");
    assert_string_equal(s->room_settings, "{}");
    assert_string_equal(s->login_access_token, "");
    muster_room_free(room);
    muster_room_free(NULL);
}

static void test_bad_arguments_are_refused(void **state)
{
    (void)state;
    clearenv();
    struct muster_room *room;
    static const char *const ports[] = {"",
                                        "x",
                                        "0",
                                        "65536",
                                        "1,",
                                        ",1",
                                        "1,,2",
                                        "1, 2",
                                        "1;2",
                                        "-1",
                                        "+1",
                                        "1x",
                                        "99999999999999999999",
                                        "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17"};
    for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++)
        assert_int_equal(start("/tmp/none", ports[i], &room), MUSTER_ROOM_E_ARGUMENTS);
    assert_int_equal(start("", "1", &room), MUSTER_ROOM_E_ARGUMENTS);
    char *argv[] = {"game", "/tmp/none", NULL};
    assert_int_equal(muster_room_new(2, argv, NULL, NULL, NULL, &room), MUSTER_ROOM_E_ARGUMENTS);
    char path[200];
    memset(path, 'x', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    assert_int_equal(start(path, "1", &room), MUSTER_ROOM_E_ENDPOINT);
    assert_int_equal(start("carrier://pigeon", "1", &room), MUSTER_ROOM_E_ENDPOINT);
}

static void test_a_bad_environment_is_refused(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"game_max_players", "x"},   {"game_max_players", "0"},  {"game_max_players", "8x"},
        {"room_settings", "[]"},     {"room_settings", "{"},     {"server_settings", "x"},
        {"discovery_services", "5"}, {"game_max_players", "-1"},
    };
    struct muster_room *room;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        clearenv();
        setenv(bad[i][0], bad[i][1], 1);
        assert_int_equal(start("/tmp/none", "1", &room), MUSTER_ROOM_E_ENVIRONMENT);
    }
    clearenv();
}

static void test_every_error_has_a_text(void **state)
{
    (void)state;
    for (int e = 0; e >= MUSTER_ROOM_E_FULL; e--) {
        assert_string_not_equal(muster_room_error_text(e), "unknown error");
        for (int other = e - 1; other >= MUSTER_ROOM_E_FULL; other--)
            assert_string_not_equal(muster_room_error_text(e), muster_room_error_text(other));
    }
    assert_string_equal(muster_room_error_text(MUSTER_ROOM_E_FULL - 1), "unknown error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arguments_and_environment),
        cmocka_unit_test(test_little_is_needed),
        cmocka_unit_test(test_bad_arguments_are_refused),
        cmocka_unit_test(test_a_bad_environment_is_refused),
        cmocka_unit_test(test_every_error_has_a_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
