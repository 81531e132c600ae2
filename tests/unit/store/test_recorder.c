/* The recorder: what was added is found again, by time and by word, whatever happens to its files;
 * and nothing that happens to them matters to anybody else. */
#include "fixture.h"

#include "base/date.h"
#include "store/recorder.h"
#include "store/segment.h"

#include <fcntl.h>
#include <inttypes.h>

static const int64_t T0_MS = 1794787200000; /* 2026-11-16T00:00:00Z */
static const int64_t DAY_MS = 86400 * 1000;

static const struct recorder_limits wide = {.bytes_max = 64 << 20,
                                            .age_max_ms = (int64_t)20 * 365 * 86400 * 1000};

struct found {
    int n;
    int most; /* 0 = all */
    char lines[64][256];
};

static bool keep(void *user, struct str line)
{
    struct found *f = user;
    if (f->most && f->n == f->most)
        return false;
    if (f->n < 64)
        (void)str_copy(f->lines[f->n], sizeof(f->lines[0]), line);
    f->n++;
    return true;
}

static struct recorder_reach look(const char *folder, const char *needle, int64_t from_ms,
                                  int64_t to_ms, struct found *ret)
{
    struct recorder_reach reach;
    struct recorder_query q = {.from_ms = from_ms,
                               .to_ms = to_ms,
                               .needle = str_of(needle),
                               .patience_ms = 10000,
                               .line = keep,
                               .user = ret};
    recorder_search(folder, &q, &reach);
    return reach;
}

static int count(const char *folder, const char *needle)
{
    struct found f = {0};
    (void)look(folder, needle, 0, INT64_MAX / 2, &f);
    return f.n;
}

static void add(struct recorder *r, int64_t wall_ms, const char *player, int i)
{
    char text[256];
    (void)snprintf(text, sizeof(text), "\"step\":\"left\",\"player\":\"%s\",\"room\":%d", player,
                   i);
    recorder_add(r, wall_ms, str_of(text));
}

static void settle(struct recorder *r)
{
    recorder_turn(r);
    recorder_settle(r, 10000);
}

static size_t segments(const char *folder)
{
    struct segment *all = NULL;
    size_t n = segments_list(folder, &all);
    free(all);
    return n;
}

static char *inside(const char *folder, const char *name)
{
    char path[1024];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    return xstrdup(path);
}

/* The folder of a recorder is made by it, in one that is the test's. */
struct place {
    char *outer;
    char *folder;
};

static struct place place_new(void)
{
    struct place p = {.outer = fixture_folder()};
    p.folder = inside(p.outer, "history");
    return p;
}

static void place_done(struct place *p)
{
    if (access(p->folder, F_OK) == 0)
        fixture_remove(p->folder);
    else
        free(p->folder);
    fixture_remove(p->outer);
}

/* ── names ─────────────────────────────────────────────────────────────────────────────────── */

static void names_are_read_as_they_are_written(void **state)
{
    (void)state;
    char name[SEGMENT_NAME_SIZE];
    int64_t number = 0;
    int64_t from_ms = 0;
    assert_string_equal(segment_name(42, T0_MS + 11524000, name),
                        "00000042-20261116T031204Z.jsonl");
    assert_true(segment_name_parse(name, &number, &from_ms));
    assert_int_equal(number, 42);
    assert_int_equal(from_ms, T0_MS + 11524000);
    assert_true(segment_name_parse(segment_name(123456789, T0_MS, name), &number, &from_ms));
    assert_int_equal(number, 123456789);
    static const char *const others[] = {
        ".",
        "notes.txt",
        "00000042.jsonl",
        "42-20261116T031204Z.jsonl",
        "00000042-20261116T031204Z.jsonl~",
        "00000042-20261116T031204Z.json",
        "00000042-2026111xT031204Z.jsonl",
        "0000004x-20261116T031204Z.jsonl",
        "-0000042-20261116T031204Z.jsonl",
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_false(segment_name_parse(others[i], &number, &from_ms));
}

/* ── writing and finding ───────────────────────────────────────────────────────────────────── */

static void lines_are_found_newest_first(void **state)
{
    (void)state;
    struct place p = place_new();
    struct recorder *r = recorder_start(p.folder, &wide);
    struct recorder_figures figures;
    struct found f = {0};
    int64_t now_ms = clock_wall_ms();
    for (int i = 0; i < 10; i++)
        add(r, now_ms + i, i % 2 ? "odd" : "even", i);
    settle(r);
    struct recorder_reach reach = look(p.folder, "\"odd\"", 0, INT64_MAX / 2, &f);
    assert_int_equal(f.n, 5);
    assert_non_null(strstr(f.lines[0], "\"room\":9}"));
    assert_non_null(strstr(f.lines[4], "\"room\":1}"));
    assert_false(reach.cut);
    assert_true(reach.since_ms > now_ms - 5000 && reach.since_ms <= now_ms);
    recorder_figures(r, &figures);
    assert_int_equal(figures.written, 10);
    assert_int_equal(figures.lost, 0);
    assert_int_equal(figures.segments, 0); /* as of when it was opened */
    recorder_stop(r);
    place_done(&p);
}

static void a_time_is_from_its_beginning_and_before_its_end(void **state)
{
    (void)state;
    struct place p = place_new();
    struct recorder *r = recorder_start(p.folder, &wide);
    struct found f = {0};
    int64_t now_ms = clock_wall_ms();
    for (int i = 0; i < 10; i++)
        add(r, now_ms + i, "alice", i);
    settle(r);
    struct recorder_reach reach = look(p.folder, "\"alice\"", now_ms + 3, now_ms + 6, &f);
    assert_int_equal(f.n, 3);
    assert_non_null(strstr(f.lines[0], "\"room\":5}"));
    assert_non_null(strstr(f.lines[2], "\"room\":3}"));
    assert_int_equal(reach.since_ms, now_ms + 3);
    recorder_stop(r);
    place_done(&p);
}

static void pages_by_time_miss_nothing_and_repeat_nothing(void **state)
{
    (void)state;
    struct place p = place_new();
    struct recorder *r = recorder_start(p.folder, &wide);
    int64_t now_ms = clock_wall_ms();
    for (int i = 0; i < 1000; i++)
        add(r, now_ms + i, "alice", i);
    settle(r);
    int64_t to_ms = INT64_MAX / 2;
    int seen = 0;
    struct recorder_reach reach = {.cut = true};
    while (reach.cut) {
        struct found f = {.most = 7};
        reach = look(p.folder, "\"alice\"", 0, to_ms, &f);
        for (int i = 0; i < f.n; i++) {
            char room[32];
            (void)snprintf(room, sizeof(room), "\"room\":%d}", 999 - seen++);
            assert_non_null(strstr(f.lines[i], room));
        }
        to_ms = reach.since_ms;
    }
    assert_int_equal(seen, 1000);
    recorder_stop(r);
    place_done(&p);
}

static struct recorder_reach go_on(const char *folder, int64_t place, int64_t patience_ms,
                                   struct found *ret)
{
    struct recorder_reach reach;
    struct recorder_query q = {.to_ms = INT64_MAX / 2,
                               .place = place,
                               .needle = STR("\"alice\""),
                               .patience_ms = patience_ms,
                               .line = keep,
                               .user = ret};
    recorder_search(folder, &q, &reach);
    return reach;
}

static void pages_go_on_inside_one_millisecond_and_over_segments(void **state)
{
    (void)state;
    enum { LINES = 300 };
    struct place p = place_new();
    int64_t now_ms = clock_wall_ms();
    for (int i = 0; i < LINES; i += 100) {
        struct recorder *r = recorder_start(p.folder, &wide);
        for (int k = i; k < i + 100; k++)
            add(r, now_ms, "alice", k);
        recorder_stop(r);
    }
    assert_int_equal(segments(p.folder), 3);
    struct recorder_reach reach = {.cut = true};
    int seen = 0;
    for (int pages = 0; reach.cut; pages++) {
        struct found f = {.most = 7};
        assert_true(pages <= LINES / 7);
        reach = go_on(p.folder, reach.place, 10000, &f);
        for (int i = 0; i < f.n; i++) {
            char room[32];
            (void)snprintf(room, sizeof(room), "\"room\":%d}", LINES - 1 - seen++);
            assert_non_null(strstr(f.lines[i], room));
        }
    }
    assert_int_equal(seen, LINES);
    assert_int_equal(reach.place, 0);
    place_done(&p);
}

static void what_is_written_between_two_pages_is_in_neither(void **state)
{
    (void)state;
    struct place p = place_new();
    struct recorder *r = recorder_start(p.folder, &wide);
    struct found first = {.most = 2};
    struct found rest = {0};
    int64_t now_ms = clock_wall_ms();
    for (int i = 0; i < 5; i++)
        add(r, now_ms, "alice", i);
    settle(r);
    struct recorder_reach reach = go_on(p.folder, 0, 10000, &first);
    assert_true(reach.cut);
    add(r, now_ms, "alice", 5);
    settle(r);
    reach = go_on(p.folder, reach.place, 10000, &rest);
    assert_false(reach.cut);
    assert_int_equal(rest.n, 3);
    assert_non_null(strstr(rest.lines[0], "\"room\":2}"));
    recorder_stop(r);
    place_done(&p);
}

static void who_has_no_patience_gets_on_all_the_same(void **state)
{
    (void)state;
    enum { LINES = 12000 };
    struct place p = place_new();
    struct recorder *r = recorder_start(p.folder, &wide);
    struct recorder_reach reach = {.cut = true};
    struct found f = {0};
    int64_t now_ms = clock_wall_ms();
    for (int i = 0; i < LINES; i++)
        add(r, now_ms, "alice", i);
    settle(r);
    int pages = 0;
    for (; reach.cut && pages < 100; pages++)
        reach = go_on(p.folder, reach.place, 0, &f);
    assert_false(reach.cut);
    assert_true(pages > 1);
    assert_int_equal(f.n, LINES);
    recorder_stop(r);
    place_done(&p);
}

/* Blocks are read from the end, so lines lie over their edges in every way. */
static void long_segments_are_read_whole(void **state)
{
    (void)state;
    enum { LINES = 9000 };
    struct place p = place_new();
    struct recorder *r = recorder_start(p.folder, &wide);
    char text[400];
    for (int i = 0; i < LINES; i++) {
        int n = snprintf(text, sizeof(text), "\"i\":%d,\"pad\":\"", i);
        memset(text + n, 'x', (size_t)(i % 200));
        (void)snprintf(text + n + i % 200, sizeof(text) - (size_t)(n + i % 200), "\"");
        recorder_add(r, T0_MS, str_of(text));
    }
    settle(r);
    assert_int_equal(count(p.folder, "\"i\":"), LINES);
    assert_int_equal(count(p.folder, "\"i\":0,"), 1);
    assert_int_equal(count(p.folder, "\"i\":8999,"), 1);
    recorder_stop(r);
    place_done(&p);
}

/* ── segments ──────────────────────────────────────────────────────────────────────────────── */

static void a_start_begins_a_segment(void **state)
{
    (void)state;
    struct place p = place_new();
    for (int i = 0; i < 3; i++) {
        struct recorder *r = recorder_start(p.folder, &wide);
        add(r, clock_wall_ms(), "alice", i);
        recorder_stop(r); /* writes what was added */
    }
    assert_int_equal(segments(p.folder), 3);
    assert_int_equal(count(p.folder, "\"alice\""), 3);
    place_done(&p);
}

static void the_oldest_goes_when_there_are_too_many(void **state)
{
    (void)state;
    const struct recorder_limits small = {.bytes_max = 128 * 1024, .age_max_ms = wide.age_max_ms};
    struct place p = place_new();
    struct recorder *r = recorder_start(p.folder, &small);
    struct recorder_figures figures;
    struct found f = {0};
    enum { LINES = 20000 };
    for (int i = 0; i < LINES; i++) {
        add(r, T0_MS + i, "alice", i);
        if (i % 100 == 0)
            settle(r);
    }
    settle(r);
    struct segment *all = NULL;
    int64_t bytes = 0;
    size_t n = segments_list(p.folder, &all);
    for (size_t i = 0; i < n; i++)
        bytes += all[i].size;
    assert_true(n > 1);
    assert_true(bytes <= small.bytes_max);
    assert_true(bytes > small.bytes_max / 2);
    (void)look(p.folder, "\"alice\"", 0, INT64_MAX / 2, &f);
    assert_non_null(strstr(f.lines[0], "\"room\":19999}"));
    assert_true(f.n < LINES);
    recorder_figures(r, &figures);
    assert_int_equal(figures.lost, 0);
    assert_int_equal(figures.written, LINES);
    assert_true(figures.bytes <= small.bytes_max);
    free(all);
    recorder_stop(r);
    place_done(&p);
}

static void make_segment(const char *folder, int64_t number, int64_t at_ms, const char *text)
{
    char name[SEGMENT_NAME_SIZE];
    char *path = inside(folder, segment_name(number, at_ms, name));
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    struct timespec times[2] = {{.tv_sec = (time_t)(at_ms / 1000)},
                                {.tv_sec = (time_t)(at_ms / 1000)}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    free(path);
}

static void what_is_older_than_its_days_goes(void **state)
{
    (void)state;
    const struct recorder_limits days = {.bytes_max = 1 << 20, .age_max_ms = 14 * DAY_MS};
    struct place p = place_new();
    int64_t now_ms = clock_wall_ms();
    assert_int_equal(mkdir(p.folder, 0700), 0);
    make_segment(p.folder, 7, now_ms - 15 * DAY_MS, "old\n");
    make_segment(p.folder, 8, now_ms - 13 * DAY_MS, "young\n");
    struct recorder *r = recorder_start(p.folder, &days);
    add(r, now_ms, "alice", 1);
    settle(r);
    struct segment *all = NULL;
    assert_int_equal(segments_list(p.folder, &all), 2);
    assert_int_equal(all[0].number, 8);
    assert_int_equal(all[1].number, 9);
    free(all);
    recorder_stop(r);
    place_done(&p);
}

/* A crash in a loop makes many small files. */
static void empty_files_count_too(void **state)
{
    (void)state;
    const struct recorder_limits small = {.bytes_max = 64 * 1024, .age_max_ms = wide.age_max_ms};
    struct place p = place_new();
    for (int i = 0; i < 40; i++) {
        struct recorder *r = recorder_start(p.folder, &small);
        add(r, clock_wall_ms(), "alice", i);
        recorder_stop(r);
    }
    assert_true(segments(p.folder) <= 13);
    place_done(&p);
}

/* ── what can be wrong with files ──────────────────────────────────────────────────────────── */

static void torn_lines_and_foreign_files_are_passed_over(void **state)
{
    (void)state;
    struct place p = place_new();
    assert_int_equal(mkdir(p.folder, 0700), 0);
    make_segment(p.folder, 1, T0_MS,
                 "{\"at\":\"2026-11-16T00:00:00.000Z\",\"player\":\"alice\"}\n"
                 "\n"
                 "alice says hello\n"
                 "{\"at\":\"2026-11-16T00:00:01.000Z\",\"player\":\"alice\"}\n"
                 "{\"at\":\"2026-11-16T00:00:02.000Z\",\"player\":\"alice");
    make_segment(p.folder, 2, T0_MS, "{\"at\":\"2026");
    make_segment(p.folder, 3, T0_MS, "");
    char *note = inside(p.folder, "alice.txt");
    FILE *file = fopen(note, "w");
    fputs("{\"at\":\"2026-11-16T00:00:00.000Z\",\"player\":\"alice\"}\n", file);
    fclose(file);
    assert_int_equal(count(p.folder, "alice"), 2);
    free(note);
    place_done(&p);
}

static void segments_of_another_time_are_not_opened(void **state)
{
    (void)state;
    struct place p = place_new();
    struct found f = {0};
    assert_int_equal(mkdir(p.folder, 0700), 0);
    /* Its lines lie about the time its name and its date say, so they show whether it was read. */
    make_segment(p.folder, 1, T0_MS,
                 "{\"at\":\"2026-11-20T00:00:00.000Z\",\"player\":\"alice\"}\n");
    make_segment(p.folder, 2, T0_MS + 8 * DAY_MS,
                 "{\"at\":\"2026-11-20T00:00:00.000Z\",\"player\":\"alice\"}\n");
    (void)look(p.folder, "alice", T0_MS + 3 * DAY_MS, T0_MS + 5 * DAY_MS, &f);
    assert_int_equal(f.n, 0);
    (void)look(p.folder, "alice", T0_MS - DAY_MS, T0_MS + 9 * DAY_MS, &f);
    assert_int_equal(f.n, 2);
    place_done(&p);
}

static void nothing_is_found_where_there_is_nothing(void **state)
{
    (void)state;
    struct found f = {0};
    struct recorder_reach reach = look("/nowhere/at/all", "alice", 0, T0_MS, &f);
    assert_int_equal(f.n, 0);
    assert_int_equal(reach.since_ms, 0);
    assert_false(reach.cut);
}

static void a_search_that_nobody_waits_for_ends(void **state)
{
    (void)state;
    struct place p = place_new();
    struct recorder *r = recorder_start(p.folder, &wide);
    struct recorder_reach reach;
    struct found f = {0};
    atomic_bool stop = true;
    add(r, T0_MS, "alice", 1);
    settle(r);
    struct recorder_query q = {
        .to_ms = INT64_MAX / 2, .patience_ms = 10000, .stop = &stop, .line = keep, .user = &f};
    recorder_search(p.folder, &q, &reach);
    assert_int_equal(f.n, 0);
    assert_true(reach.cut);
    recorder_stop(r);
    place_done(&p);
}

static void lines_that_cannot_be_written_are_lost_and_said(void **state)
{
    (void)state;
    struct place p = place_new();
    struct recorder_figures figures;
    FILE *file = fopen(p.folder, "w"); /* where the folder should be */
    assert_non_null(file);
    fclose(file);
    struct recorder *r = recorder_start(p.folder, &wide);
    for (int i = 0; i < 3; i++) {
        add(r, T0_MS, "alice", i);
        settle(r);
    }
    recorder_figures(r, &figures);
    assert_int_equal(figures.lost, 3);
    assert_int_equal(figures.written, 0);
    assert_true(figures.failing);

    assert_int_equal(unlink(p.folder), 0);
    add(r, T0_MS, "alice", 3);
    settle(r);
    recorder_figures(r, &figures);
    assert_int_equal(figures.lost, 3);
    assert_int_equal(figures.written, 1);
    assert_false(figures.failing);
    assert_int_equal(count(p.folder, "\"alice\""), 1);
    assert_int_equal(count(p.folder, "\"change\":\"history_lost\",\"lines\":3}"), 1);
    add(r, T0_MS, "alice", 4);
    settle(r);
    assert_int_equal(count(p.folder, "history_lost"), 1);
    recorder_stop(r);
    place_done(&p);
}

static void a_disk_that_is_nearly_full_is_left_to_the_store(void **state)
{
    (void)state;
    const struct recorder_limits greedy = {
        .bytes_max = 1 << 20, .age_max_ms = wide.age_max_ms, .reserve_bytes = INT64_MAX};
    struct place p = place_new();
    struct recorder *r = recorder_start(p.folder, &greedy);
    struct recorder_figures figures;
    for (int i = 0; i < 5; i++) {
        add(r, T0_MS, "alice", i);
        settle(r);
    }
    recorder_figures(r, &figures);
    assert_int_equal(figures.lost, 5);
    assert_true(figures.failing);
    assert_true(segments(p.folder) <= 1);
    recorder_stop(r);
    assert_int_equal(segments(p.folder), 0); /* no empty file stays */
    place_done(&p);
}

static void a_line_that_is_too_long_is_lost(void **state)
{
    (void)state;
    struct place p = place_new();
    struct recorder *r = recorder_start(p.folder, &wide);
    struct recorder_figures figures;
    char *text = xcalloc(1, RECORDER_LINE_MAX + 2);
    memset(text, 'x', RECORDER_LINE_MAX + 1);
    recorder_add(r, T0_MS, str_of(text));
    add(r, T0_MS, "alice", 1);
    settle(r);
    recorder_figures(r, &figures);
    assert_int_equal(figures.lost, 1);
    assert_int_equal(figures.written, 1);
    free(text);
    recorder_stop(r);
    place_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_read_as_they_are_written),
        cmocka_unit_test(lines_are_found_newest_first),
        cmocka_unit_test(a_time_is_from_its_beginning_and_before_its_end),
        cmocka_unit_test(pages_by_time_miss_nothing_and_repeat_nothing),
        cmocka_unit_test(pages_go_on_inside_one_millisecond_and_over_segments),
        cmocka_unit_test(what_is_written_between_two_pages_is_in_neither),
        cmocka_unit_test(who_has_no_patience_gets_on_all_the_same),
        cmocka_unit_test(long_segments_are_read_whole),
        cmocka_unit_test(a_start_begins_a_segment),
        cmocka_unit_test(the_oldest_goes_when_there_are_too_many),
        cmocka_unit_test(what_is_older_than_its_days_goes),
        cmocka_unit_test(empty_files_count_too),
        cmocka_unit_test(torn_lines_and_foreign_files_are_passed_over),
        cmocka_unit_test(segments_of_another_time_are_not_opened),
        cmocka_unit_test(nothing_is_found_where_there_is_nothing),
        cmocka_unit_test(a_search_that_nobody_waits_for_ends),
        cmocka_unit_test(lines_that_cannot_be_written_are_lost_and_said),
        cmocka_unit_test(a_disk_that_is_nearly_full_is_left_to_the_store),
        cmocka_unit_test(a_line_that_is_too_long_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
