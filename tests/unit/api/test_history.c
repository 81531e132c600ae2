/* Notes as lines of the history: what each says, what none says, and refusals that come too fast.
 */
#include "api/history.h"
#include "api/past.h"
#include "base/err.h"
#include "core/core.h"
#include "lib/unit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const int64_t T0_MS = 1794787200000;
static const uint8_t secret[CORE_SECRET_SIZE] = {7};

struct fixture {
    char folder[64];
    struct history *history;
    struct core *core;
    struct core_config config;
};

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    (void)snprintf(f->folder, sizeof(f->folder), "/tmp/muster-history-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    core_config_default(&f->config);
    f->core = core_new(&f->config, secret);
    f->history =
        history_new(&(struct history_config){.folder = f->folder, .max_mb = 1, .days = 3650});
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char path[400];
    history_free(f->history);
    DIR *dir = opendir(f->folder);
    for (const struct dirent *e = NULL; (e = readdir(dir));) {
        (void)snprintf(path, sizeof(path), "%s/%s", f->folder, e->d_name);
        (void)unlink(path);
    }
    closedir(dir);
    (void)rmdir(f->folder);
    core_free(f->core);
    free(f);
    return 0;
}

static void note_at(struct fixture *f, struct effect e, int64_t wall_ms)
{
    e.kind = EFFECT_NOTE;
    history_release(f->history, f->core, &e, 1, wall_ms, "digest-1");
}

static void note(struct fixture *f, struct effect e)
{
    note_at(f, e, T0_MS);
}

struct found {
    int n;
    char text[16][512];
};

static bool keep(void *user, struct str line)
{
    struct found *found = user;
    if (found->n < 16)
        (void)str_copy(found->text[found->n], sizeof(found->text[0]), line);
    found->n++;
    return true;
}

/* Newest first, without their time. */
static struct found lines(struct fixture *f)
{
    struct found found = {0};
    struct recorder_reach reach;
    struct recorder_query q = {
        .to_ms = INT64_MAX / 2, .patience_ms = 10000, .line = keep, .user = &found};
    history_turn(f->history);
    recorder_settle(history_recorder(f->history), 10000);
    recorder_search(f->folder, &q, &reach);
    for (int i = 0; i < found.n && i < 16; i++)
        memmove(found.text[i], found.text[i] + 33, strlen(found.text[i] + 33) + 1);
    return found;
}

static void expect(struct fixture *f, const char *line)
{
    struct found found = lines(f);
    assert_true(found.n > 0);
    assert_string_equal(found.text[0], line);
}

static void a_seat_is_a_step(void **state)
{
    struct fixture *f = *state;
    note(f, (struct effect){.note = NOTE_SEAT_RESERVED,
                            .chat = STR("a\"nn"),
                            .session = 12,
                            .server_id = 31,
                            .ticket = 5,
                            .object = 77,
                            .token = STR("SECRET"),
                            .ip = STR("203.0.113.9")});
    expect(f, "\"step\":\"reserved\",\"player\":\"a\\\"nn\",\"room\":12,\"server\":31,\"ticket\":5,"
              "\"seat\":77}");
    note(f, (struct effect){.note = NOTE_SEAT_LEFT,
                            .chat = STR("ann"),
                            .session = 12,
                            .object = 77,
                            .reason = SEAT_END_ROOM,
                            .load = END_EXITED,
                            .text = STR("the room ended")});
    expect(f, "\"step\":\"ended\",\"player\":\"ann\",\"room\":12,\"seat\":77,\"reason\":\"exited\","
              "\"text\":\"the room ended\"}");
    note(f, (struct effect){
                .note = NOTE_PLAYER_LEFT, .account = 12, .reason = SEAT_END_BANNED, .lobby = 9});
    expect(f, "\"step\":\"kicked\",\"player\":\"12\",\"lobby\":9,\"reason\":\"banned\"}");
}

static void a_lobby_is_a_step_of_all_in_it(void **state)
{
    struct fixture *f = *state;
    static const int32_t accounts[] = {11, 12, 13};
    note(f, (struct effect){.note = NOTE_LOBBY_ABORTED,
                            .lobby = 5,
                            .load = 3,
                            .accounts = accounts,
                            .account = 12,
                            .reason = LOBBY_CAUSE_LOADING,
                            .text = STR("Not all loaded")});
    expect(f, "\"step\":\"lobby_aborted\",\"players\":[\"11\",\"12\",\"13\"],\"lobby\":5,"
              "\"reason\":\"loading\",\"text\":\"Not all loaded\"}");
}

static void a_party_is_named(void **state)
{
    struct fixture *f = *state;
    note(f, (struct effect){.note = NOTE_ALLOCATION_QUEUED,
                            .chat = STR("ann"),
                            .party = STR("\003ann\003bob"),
                            .object = 8,
                            .load = 2,
                            .text = STR("what its sender calls it")});
    expect(f, "\"step\":\"queued\",\"player\":\"ann\",\"players\":[\"bob\"],\"ticket\":8,"
              "\"position\":2}");
}

static void a_ban_is_a_step_and_a_change(void **state)
{
    struct fixture *f = *state;
    note(f, (struct effect){.note = NOTE_OPERATED,
                            .verb = OPERATE_BAN,
                            .text = STR("ban"),
                            .chat = STR("warden"),
                            .ip = STR("203.0.113.9"),
                            .player = STR("eve"),
                            .detail = STR("eve"),
                            .object = 3});
    expect(f, "\"change\":\"operated\",\"step\":\"banned\",\"player\":\"eve\",\"who\":\"warden\","
              "\"action\":\"ban\",\"target_kind\":\"ban\",\"target\":3,\"text\":\"eve\"}");
}

/* It is a step of nobody's journey. */
static void a_ban_of_an_address_alone_is_a_change(void **state)
{
    struct fixture *f = *state;
    note(f, (struct effect){.note = NOTE_OPERATED,
                            .verb = OPERATE_BAN,
                            .text = STR("ban"),
                            .chat = STR("warden"),
                            .ip = STR("203.0.113.9"),
                            .object = 3});
    expect(f, "\"change\":\"operated\",\"who\":\"warden\",\"action\":\"ban\","
              "\"target_kind\":\"ban\",\"target\":3}");
}

/* What somebody types into a server may be a password. */
static void typed_lines_are_not_kept(void **state)
{
    struct fixture *f = *state;
    note(f, (struct effect){.note = NOTE_OPERATED,
                            .verb = OPERATE_STDIN,
                            .text = STR("stdin"),
                            .chat = STR("admin"),
                            .detail = STR("login hunter2"),
                            .server_id = 4});
    expect(f, "\"change\":\"operated\",\"who\":\"admin\",\"action\":\"stdin\","
              "\"target_kind\":\"server\",\"target\":4}");
}

static void the_installation_changes(void **state)
{
    struct fixture *f = *state;
    history_started(f->history, T0_MS, "digest-1");
    expect(f, "\"change\":\"started\",\"version\":\"" MUSTER_VERSION "\",\"digest\":\"digest-1\"}");
    note(f, (struct effect){.note = NOTE_OPERATED, .verb = OPERATE_CONFIGURE, .chat = STR("file")});
    expect(f, "\"change\":\"configured\",\"digest\":\"digest-1\",\"who\":\"file\"}");
    note(f, (struct effect){.note = NOTE_HOST_SILENT, .object = 2, .chat = STR("eu-1")});
    expect(f, "\"change\":\"host_silent\",\"host\":2,\"name\":\"eu-1\"}");
    note(f, (struct effect){.note = NOTE_STOPPED, .wall_ms = 2350});
    expect(f, "\"change\":\"paused\",\"for_ms\":2350}");
}

static void what_is_nobodys_business_is_not_written(void **state)
{
    struct fixture *f = *state;
    static const enum note notes[] = {NOTE_TICKET_OPENED, NOTE_TICKET_DONE, NOTE_MATCH_READY,
                                      NOTE_ROOM_OPEN,     NOTE_CONFIGURED,  NOTE_SERVER_RETURNED,
                                      NOTE_HOST_BACKOFF};
    for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]); i++)
        note(f, (struct effect){.note = notes[i], .ticket = 3});
    assert_int_equal(lines(f).n, 0);
}

/* ── refusals ──────────────────────────────────────────────────────────────────────────────── */

static const struct effect eve = {
    .note = NOTE_REFUSED, .err = ERR_BANNED, .player = {"eve", 3}, .text = {"banned", 6}};

static void refusals_that_come_too_fast_are_counted(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 100; i++)
        note_at(f, eve, T0_MS + i);
    assert_int_equal(lines(f).n, HISTORY_REFUSALS_WHOLE);
    history_tick(f->history, T0_MS + 30 * 1000);
    assert_int_equal(lines(f).n, HISTORY_REFUSALS_WHOLE); /* the minute is not over */
    history_tick(f->history, T0_MS + 61 * 1000);
    expect(f, "\"step\":\"refused\",\"player\":\"eve\",\"reason\":\"banned\",\"count\":95}");
    note_at(f, eve, T0_MS + 62 * 1000);
    expect(f, "\"step\":\"refused\",\"player\":\"eve\",\"reason\":\"banned\",\"text\":\"banned\"}");
}

static void a_new_minute_begins_with_whole_lines(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 7; i++)
        note_at(f, eve, T0_MS);
    note_at(f, eve, T0_MS + 60 * 1000);
    struct found found = lines(f);
    assert_int_equal(found.n, HISTORY_REFUSALS_WHOLE + 2);
    assert_non_null(strstr(found.text[1], "\"count\":2}"));
}

static void others_are_not_counted_with_him(void **state)
{
    struct fixture *f = *state;
    char name[16];
    int n = 0;
    for (int i = 0; i < 3000; i++) {
        (void)snprintf(name, sizeof(name), "p%d", i);
        history_refused(f->history, T0_MS + i, name, ERR_NO_PLACE, NULL);
        n++;
    }
    assert_int_equal(lines(f).n, n); /* more than are told apart, but none too often */
}

static void none_is_kept_when_it_is_turned_off(void **state)
{
    (void)state;
    struct history_config off = {.folder = "/nowhere", .max_mb = 0, .days = 14};
    assert_null(history_new(&off));
    off = (struct history_config){.folder = "/nowhere", .max_mb = 10, .days = 0};
    assert_null(history_new(&off));
    history_started(NULL, T0_MS, "");
    history_release(NULL, NULL, &eve, 1, T0_MS, "");
    history_refused(NULL, T0_MS, "eve", ERR_BANNED, NULL);
    history_tick(NULL, T0_MS);
    history_turn(NULL);
    history_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_seat_is_a_step, setup, teardown),
        cmocka_unit_test_setup_teardown(a_lobby_is_a_step_of_all_in_it, setup, teardown),
        cmocka_unit_test_setup_teardown(a_party_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(a_ban_is_a_step_and_a_change, setup, teardown),
        cmocka_unit_test_setup_teardown(a_ban_of_an_address_alone_is_a_change, setup, teardown),
        cmocka_unit_test_setup_teardown(typed_lines_are_not_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(the_installation_changes, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_nobodys_business_is_not_written, setup, teardown),
        cmocka_unit_test_setup_teardown(refusals_that_come_too_fast_are_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(a_new_minute_begins_with_whole_lines, setup, teardown),
        cmocka_unit_test_setup_teardown(others_are_not_counted_with_him, setup, teardown),
        cmocka_unit_test(none_is_kept_when_it_is_turned_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
