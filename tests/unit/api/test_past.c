/* The history read again: sentences, who is meant, refusals counted, moments. */
#include "api/moment.h"
#include "api/past.h"
#include "api/tally.h"
#include "lib/unit.h"

#include <stdio.h>
#include <string.h>

static struct past_line line_of(const char *members)
{
    char text[1024];
    struct past_line line;
    (void)snprintf(text, sizeof(text), "{\"at\":\"2026-11-16T03:12:04.123Z\",%s}", members);
    assert_true(past_read(str_of(text), &line));
    assert_int_equal(line.at_ms, 1794798724123);
    return line;
}

static void steps_are_said(void **state)
{
    (void)state;
    static const struct {
        const char *members;
        const char *sentence;
    } rows[] = {
        {"\"step\":\"asked\",\"fleet\":\"arena\"", "asked for a place in arena"},
        {"\"step\":\"queued\",\"fleet\":\"arena\",\"position\":3",
         "stands in line for a place in arena, position 3"},
        {"\"step\":\"reserved\",\"fleet\":\"arena\",\"room\":12,\"server\":4",
         "has a seat reserved in room 12 of arena on server 4"},
        {"\"step\":\"joined\",\"match\":7,\"server\":4,\"lobby\":11", "joined match 7 on server 4"},
        {"\"step\":\"expired\",\"room\":12",
         "did not come in time, and lost the seat reserved in room 12"},
        {"\"step\":\"kicked\",\"room\":12,\"text\":\"spamming\"",
         "was thrown out of room 12: spamming"},
        {"\"step\":\"ended\",\"room\":12,\"reason\":\"host_lost\",\"text\":\"the room ended\"",
         "lost the seat in room 12, which is over: its host was lost"},
        {"\"step\":\"failed\",\"room\":12,\"reason\":\"spawn_timeout\"",
         "got no seat in room 12, which never opened: its server was not ready in time"},
        {"\"step\":\"refused\",\"fleet\":\"arena\",\"reason\":\"rate_limited\","
         "\"text\":\"too many requests: try again in 5 s\"",
         "was refused a place in arena: too many requests: try again in 5 s"},
        {"\"step\":\"refused\",\"reason\":\"no_servers\"", "was refused: No servers available"},
        {"\"step\":\"refused\",\"reason\":\"banned\",\"count\":45", "was refused 45 times more: "},
        {"\"step\":\"banned\",\"who\":\"warden\"", "was banned by warden"},
        {"\"step\":\"unbanned\",\"who\":\"warden\"", "may play again: warden lifted the ban"},
        {"\"step\":\"lobby_aborted\",\"lobby\":5,\"reason\":\"loading\",\"text\":\"Not all "
         "loaded\"",
         "does not play: the lobby was aborted: Not all loaded"},
        {"\"step\":\"something new\"", "something new"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct past_line line = line_of(rows[i].members);
        past_say_step(&line);
        assert_memory_equal(line.sentence, rows[i].sentence, strlen(rows[i].sentence));
        past_done(&line);
    }
}

static void changes_are_said(void **state)
{
    (void)state;
    static const struct {
        const char *members;
        const char *sentence;
    } rows[] = {
        {"\"change\":\"started\",\"version\":\"1.2\",\"digest\":\"abc\"",
         "Muster 1.2 started with the configuration abc"},
        {"\"change\":\"configured\",\"digest\":\"abc\"",
         "the configuration was read again: it is abc now"},
        {"\"change\":\"operated\",\"who\":\"admin\",\"action\":\"drain\",\"target_kind\":"
         "\"server\","
         "\"target\":3",
         "admin: drain server 3"},
        {"\"change\":\"operated\",\"who\":\"admin\",\"action\":\"ban\",\"target_kind\":\"ban\","
         "\"target\":3,\"player\":\"eve\",\"text\":\"eve\"",
         "admin: ban ban 3 (eve)"},
        {"\"change\":\"host_silent\",\"host\":2,\"name\":\"eu-1\"",
         "host 2 (eu-1) is silent; nothing new is started there"},
        {"\"change\":\"server_offline\",\"server\":9,\"fleet\":\"default\"",
         "server 9 of default is Offline"},
        {"\"change\":\"version_switched\",\"fleet\":\"arena\",\"text\":\"1.1\"",
         "a version of arena runs another deployment: 1.1"},
        {"\"change\":\"paused\",\"for_ms\":2350", "Muster did not run for 2.3 s"},
        {"\"change\":\"history_lost\",\"lines\":8", "8 lines of the history could not be written"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct past_line line = line_of(rows[i].members);
        past_say_change(&line);
        assert_string_equal(line.sentence, rows[i].sentence);
        past_done(&line);
    }
}

static void a_sentence_is_cut_and_not_overrun(void **state)
{
    (void)state;
    char members[1000] = "\"step\":\"kicked\",\"text\":\"";
    size_t n = strlen(members);
    memset(members + n, 'x', 900);
    members[n + 900] = '"';
    struct past_line line = line_of(members);
    past_say_step(&line);
    assert_int_equal(strlen(line.sentence), PAST_SENTENCE_MAX - 1);
    past_done(&line);
}

static void it_is_known_whom_a_line_is_about(void **state)
{
    (void)state;
    struct past_line line =
        line_of("\"step\":\"asked\",\"player\":\"ann\",\"players\":[\"bob\",\"c\\\"d\"]");
    assert_true(past_concerns(&line, STR("ann")));
    assert_true(past_concerns(&line, STR("bob")));
    assert_true(past_concerns(&line, STR("c\"d")));
    assert_false(past_concerns(&line, STR("an")));
    assert_false(past_concerns(&line, STR("asked")));
    past_done(&line);
}

static void what_is_no_line_is_refused(void **state)
{
    (void)state;
    struct past_line line;
    static const char *const none[] = {"",           "{}",
                                       "[]",         "{\"at\":\"yesterday\"}",
                                       "{\"at\":7}", "{\"at\":\"2026-11-16T03:12:04.123Z\""};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        assert_false(past_read(str_of(none[i]), &line));
}

/* ── refusals ──────────────────────────────────────────────────────────────────────────────── */

static void refuse(struct tally *t, const char *player, const char *reason, int64_t count)
{
    char members[256];
    (void)snprintf(members, sizeof(members),
                   "\"step\":\"refused\",%s%s%s\"reason\":\"%s\",\"count\":%d",
                   player ? "\"player\":\"" : "", player ? player : "", player ? "\"," : "", reason,
                   (int)count);
    struct past_line line = line_of(members);
    tally_add(t, &line);
    past_done(&line);
}

static void refusals_are_counted_by_reason_and_player(void **state)
{
    (void)state;
    struct tally t = {0};
    struct buf out = {0};
    struct json_writer w = {.out = &out};
    refuse(&t, "ann", "no_place", 1);
    refuse(&t, "eve", "banned", 1);
    refuse(&t, "eve", "banned", 1);
    refuse(&t, "eve", "no_place", 1);
    refuse(&t, "bob", "banned", 40);
    refuse(&t, NULL, "no_servers", 1);
    tally_finish(&t);
    assert_int_equal(t.total, 45);
    tally_write_reasons(&w, &t);
    tally_write_repeated(&w, &t);
    buf_append(&out, "", 1);
    const char *text = (const char *)out.data;
    assert_non_null(strstr(text, "[{\"reason\":\"banned\",\"sentence\":\""));
    assert_non_null(strstr(text, "\"count\":42,\"players\":2}"));
    assert_non_null(strstr(text, "\"count\":2,\"players\":2}"));
    assert_non_null(strstr(text, "\"count\":1,\"players\":0}]"));
    assert_non_null(strstr(text, "[{\"account\":\"bob\",\"count\":40,\"reason\":\"banned\","));
    assert_null(strstr(text, "\"account\":\"eve\"")); /* twice is not yet again and again */
    buf_done(&out);
    tally_done(&t);
}

static void many_players_are_told_apart(void **state)
{
    (void)state;
    struct tally t = {0};
    char name[32];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3000; i++) {
            (void)snprintf(name, sizeof(name), "p%d", i);
            refuse(&t, name, "no_place", 1);
        }
    }
    assert_int_equal(t.n_players, 3000);
    assert_int_equal(t.reasons[0].players, 3000);
    assert_int_equal(t.total, 6000);
    for (size_t i = 0; i < t.n_players; i++)
        assert_int_equal(t.players[i].count, 2);
    tally_done(&t);
}

/* ── moments ───────────────────────────────────────────────────────────────────────────────── */

static void moments_are_times_ago_or_dates(void **state)
{
    (void)state;
    const int64_t now_ms = 1794787200000;
    int64_t ms = 0;
    static const struct {
        const char *text;
        int64_t ago_ms;
    } rows[] = {{"90s", 90000},
                {"15m", 900000},
                {"2h", 7200000},
                {"7d", 604800000},
                {"0s", 0},
                {"2026-11-16T00:00:00Z", 0},
                {"2026-11-15T23:59:59.500Z", 500}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_true(moment_parse(str_of(rows[i].text), now_ms, &ms));
        assert_int_equal(ms, now_ms - rows[i].ago_ms);
    }
    assert_true(moment_parse(STR("999999d"), now_ms, &ms));
    assert_int_equal(ms, 0);
    static const char *const none[] = {"",    "h",   "2",    "2x",       "-2h",
                                       "2h ", "2hh", "1.5h", "1234567s", "2026-11-16"};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        assert_false(moment_parse(str_of(none[i]), now_ms, &ms));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_said),
        cmocka_unit_test(changes_are_said),
        cmocka_unit_test(a_sentence_is_cut_and_not_overrun),
        cmocka_unit_test(it_is_known_whom_a_line_is_about),
        cmocka_unit_test(what_is_no_line_is_refused),
        cmocka_unit_test(refusals_are_counted_by_reason_and_player),
        cmocka_unit_test(many_players_are_told_apart),
        cmocka_unit_test(moments_are_times_ago_or_dates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
