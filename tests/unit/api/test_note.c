/* Core's decisions in the log: one line, the ids it has, peers' text quoted, never a token. */
#include "api/note.h"
#include "base/err.h"
#include "base/log.h"
#include "lib/unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What note_log writes to standard error, without the time in front. */
static char line[2048];

static const char *logged(const struct effect *e)
{
    int pipe_fd[2];
    assert_int_equal(pipe(pipe_fd), 0);
    fcntl(pipe_fd[0], F_SETFL, O_NONBLOCK);
    int kept = dup(STDERR_FILENO);
    dup2(pipe_fd[1], STDERR_FILENO);
    note_log(e, e->conn ? "10.9.8.7:1234" : NULL);
    dup2(kept, STDERR_FILENO);
    ssize_t n = read(pipe_fd[0], line, sizeof(line) - 1);
    close(kept);
    close(pipe_fd[0]);
    close(pipe_fd[1]);
    if (n <= 0)
        return "";
    line[n] = '\0';
    return strchr(line, ' ') + 1;
}

static void test_only_the_ids_it_has(void **state)
{
    (void)state;
    struct effect e = {.kind = EFFECT_NOTE, .note = NOTE_TICKET_DONE, .ticket = 7, .lobby = 9};
    assert_string_equal(logged(&e), "level=info msg=\"ticket done\" ticket=7 lobby=9\n");
}

static void test_everything(void **state)
{
    (void)state;
    struct effect e = {.kind = EFFECT_NOTE,
                       .note = NOTE_REFUSED,
                       .conn = 1,
                       .err = ERR_NO_SERVERS,
                       .server_id = 2,
                       .ticket = 3,
                       .session = 4,
                       .lobby = 5,
                       .account = 6,
                       .ip = STR("10.0.0.1"),
                       .port = 7,
                       .token = STR("MATCH_5_secret"),
                       .text = STR("why")};
    assert_string_equal(
        logged(&e),
        "level=info msg=\"refused\" server=2 ticket=3 session=4 lobby=5 account=6 conn=1 "
        "peer=10.9.8.7:1234 ip=\"10.0.0.1\" port=7 error=no_servers text=\"why\"\n");
}

static void test_text_from_outside_stays_one_line(void **state)
{
    (void)state;
    struct effect e = {.kind = EFFECT_NOTE, .note = NOTE_CHAT_GONE, .text = STR("a\n\"b\" x=1")};
    const char *got = logged(&e);
    assert_string_equal(got, "level=info msg=\"chat server gone\" text=\"a\\n\\\"b\\\" x=1\"\n");
}

static void test_long_text_loses_no_ids(void **state)
{
    (void)state;
    char text[1000];
    memset(text, 'x', sizeof(text));
    struct effect e = {.kind = EFFECT_NOTE,
                       .note = NOTE_SERVER_REGISTERED,
                       .server_id = INT32_MAX,
                       .ip = {text, sizeof(text)},
                       .text = {text, sizeof(text)}};
    const char *got = logged(&e);
    assert_non_null(strstr(got, "server=2147483647"));
    assert_non_null(strstr(got, "xxx"));
    assert_int_equal(got[strlen(got) - 1], '\n');
    assert_ptr_equal(strchr(got, '\n'), got + strlen(got) - 1);
}

static void test_what_needs_a_look_is_a_warning(void **state)
{
    (void)state;
    struct effect e = {.kind = EFFECT_NOTE, .note = NOTE_SERVER_OFFLINE, .server_id = 2};
    assert_int_equal(strncmp(logged(&e), "level=warn ", 11), 0);
    e = (struct effect){.kind = EFFECT_NOTE, .note = NOTE_STOPPED, .wall_ms = 45000};
    assert_non_null(strstr(logged(&e), "stopped_ms=45000"));
}

static void test_nothing_below_the_level(void **state)
{
    (void)state;
    struct effect e = {.kind = EFFECT_NOTE, .note = NOTE_TICKET_DONE, .ticket = 7};
    log_set_level(LOG_WARN);
    assert_string_equal(logged(&e), "");
    log_set_level(LOG_INFO);
}

static void test_what_an_operator_did(void **state)
{
    (void)state;
    struct effect e = {.kind = EFFECT_NOTE,
                       .note = NOTE_OPERATED,
                       .server_id = 7,
                       .chat = STR("admin"),
                       .ip = STR("127.0.0.1"),
                       .text = STR("drain")};
    assert_string_equal(logged(&e), "level=info msg=\"operator\" server=7 who=\"admin\" "
                                    "from=\"127.0.0.1\" action=\"drain\"\n");
}

static void test_hosts_rooms_and_seats(void **state)
{
    (void)state;
    struct effect e = {.kind = EFFECT_NOTE,
                       .note = NOTE_HOST_BACKOFF,
                       .object = 3,
                       .chat = STR("host-1"),
                       .wall_ms = 10000};
    assert_string_equal(
        logged(&e), "level=warn msg=\"host passed over after a failure\" host=3 name=\"host-1\" "
                    "for_ms=10000\n");
    e = (struct effect){.kind = EFFECT_NOTE,
                        .note = NOTE_ROOM_ENDED,
                        .server_id = 12,
                        .session = 34,
                        .object = 3,
                        .reason = END_EMPTY};
    assert_string_equal(logged(&e),
                        "level=info msg=\"room ended\" server=12 session=34 host=3 reason=empty\n");
    e = (struct effect){.kind = EFFECT_NOTE,
                        .note = NOTE_SEAT_LEFT,
                        .session = 34,
                        .object = 77,
                        .chat = STR("ann"),
                        .text = STR("the reservation ran out")};
    assert_string_equal(logged(&e), "level=info msg=\"seat left\" session=34 seat=77 "
                                    "player=\"ann\" text=\"the reservation ran out\"\n");
}

static void test_lobbies(void **state)
{
    (void)state;
    struct effect e = {.kind = EFFECT_NOTE,
                       .note = NOTE_LOBBY_CREATED,
                       .lobby = 1073741824,
                       .object = 1073741824,
                       .load = 10};
    assert_string_equal(logged(&e),
                        "level=info msg=\"lobby created\" lobby=1073741824 players=10\n");
    e.note = NOTE_LOBBY_ABORTED;
    e.err = ERR_NO_SERVERS;
    e.reason = LOBBY_CAUSE_ALLOCATION;
    e.on = true;
    e.token = STR("MATCH_5_secret");
    e.text = STR("Server allocation failed: No servers available");
    assert_string_equal(logged(&e),
                        "level=info msg=\"lobby aborted\" lobby=1073741824 error=no_servers "
                        "text=\"Server allocation failed: No servers available\" "
                        "cause=allocation requeued=true\n");
    e = (struct effect){.kind = EFFECT_NOTE,
                        .note = NOTE_LOBBY_ENDED,
                        .server_id = 3,
                        .session = 4,
                        .lobby = 1073741824,
                        .reason = END_MATCH_ENDED};
    assert_string_equal(logged(&e), "level=info msg=\"lobby ended\" server=3 session=4 "
                                    "lobby=1073741824 reason=match_ended\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_the_ids_it_has),
        cmocka_unit_test(test_everything),
        cmocka_unit_test(test_text_from_outside_stays_one_line),
        cmocka_unit_test(test_long_text_loses_no_ids),
        cmocka_unit_test(test_what_needs_a_look_is_a_warning),
        cmocka_unit_test(test_what_an_operator_did),
        cmocka_unit_test(test_hosts_rooms_and_seats),
        cmocka_unit_test(test_lobbies),
        cmocka_unit_test(test_nothing_below_the_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
