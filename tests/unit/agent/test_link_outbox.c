#include "agent/outbox.h"

#include "base/json.h"
#include "lib/unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

struct world {
    char folder[32];
    struct outbox *outbox;
    struct buf out;
    uint64_t batch;
};

static void reopen(struct world *w)
{
    char why[OUTBOX_WHY_MAX] = "";
    outbox_close(w->outbox);
    assert_int_equal(outbox_open(w->folder, &w->outbox, why), 0);
}

static int world_new(void **state)
{
    struct world *w = xcalloc(1, sizeof(*w));
    snprintf(w->folder, sizeof(w->folder), "/tmp/muster-outbox-XXXXXX");
    assert_non_null(mkdtemp(w->folder));
    reopen(w);
    *state = w;
    return 0;
}

static int world_free(void **state)
{
    struct world *w = *state;
    char command[64];
    outbox_close(w->outbox);
    buf_done(&w->out);
    snprintf(command, sizeof(command), "rm -r %s", w->folder);
    assert_int_equal(system(command), 0);
    free(w);
    return 0;
}

static struct outbox_event *add(struct world *w, int64_t server, const char *verb, const char *key)
{
    struct outbox_event *e = outbox_add(w->outbox, server, verb, key, "7", STR("{\"a\":1}"));
    assert_non_null(e);
    return e;
}

/* "12.1 joined k;12.2 left k;" of the next batch. */
static const char *take(struct world *w)
{
    static char said[4096];
    char why[JSON_WHY_MAX];
    buf_clear(&w->out);
    buf_append(&w->out, "[", 1);
    struct buf events = {0};
    size_t n = outbox_take(w->outbox, ++w->batch, OUTBOX_BATCH_EVENTS, true, &events);
    buf_append(&w->out, events.data, events.len);
    buf_append(&w->out, "]", 1);
    buf_done(&events);
    struct json *all = json_parse((struct str){(char *)w->out.data, w->out.len}, why);
    assert_non_null(all);
    assert_int_equal(json_length(all), n);
    said[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        const struct json *e = json_item(all, i);
        snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s.%d %s;",
                 json_get_text(json_member(e, "server")).at,
                 (int)json_get_int(json_member(e, "seq")),
                 json_get_text(json_member(e, "event")).at);
        assert_int_equal(json_get_int(json_member(e, "a")), 1);
    }
    json_free(all);
    return said;
}

static void settle(struct world *w, int64_t server, int64_t seq)
{
    struct outbox_event *e = outbox_find(w->outbox, server, seq);
    assert_non_null(e);
    outbox_settle(w->outbox, e);
}

static void events_of_a_server_are_numbered_and_in_order(void **state)
{
    struct world *w = *state;
    add(w, 12, "inited", "");
    add(w, 12, "joined", "k");
    add(w, 12, "left", "k");
    assert_string_equal(take(w), "12.1 inited;12.2 joined;12.3 left;");
    assert_string_equal(take(w), "");
    assert_int_equal(outbox_count(w->outbox), 3);
}

static void while_some_are_under_way_other_keys_may_follow(void **state)
{
    struct world *w = *state;
    add(w, 12, "joined", "slow");
    assert_string_equal(take(w), "12.1 joined;");
    add(w, 12, "left", "slow");
    add(w, 12, "joined", "other");
    add(w, 13, "joined", "slow");
    const char *second = take(w);
    assert_non_null(strstr(second, "12.3 joined;"));
    assert_non_null(strstr(second, "13.1 joined;"));
    assert_null(strstr(second, "12.2"));
    settle(w, 12, 1);
    assert_string_equal(take(w), "12.2 left;");
}

static void what_is_slow_goes_alone(void **state)
{
    struct world *w = *state;
    struct buf out = {0};
    add(w, 12, "joined", "a");
    assert_non_null(
        outbox_add(w->outbox, 12, "joined", "slow", "1", STR("{\"a\":1,\"extend_token\":\"t\"}")));
    add(w, 12, "left", "slow");
    add(w, 12, "joined", "b");
    assert_string_equal(take(w), "12.1 joined;12.4 joined;");
    assert_int_equal(outbox_take(w->outbox, ++w->batch, 256, false, &out), 0);
    assert_string_equal(take(w), "12.2 joined;");
    assert_string_equal(take(w), "");
    reopen(w);
    assert_string_equal(take(w), "12.1 joined;12.4 joined;");
    buf_done(&out);
}

static void the_first_and_the_last_wait_for_all(void **state)
{
    struct world *w = *state;
    add(w, 12, "inited", "");
    assert_string_equal(take(w), "12.1 inited;");
    add(w, 12, "joined", "k");
    assert_string_equal(take(w), "");
    settle(w, 12, 1);
    assert_string_equal(take(w), "12.2 joined;");
    add(w, 12, "exited", "");
    assert_string_equal(take(w), "");
    settle(w, 12, 2);
    assert_string_equal(take(w), "12.3 exited;");
}

static void what_was_not_taken_is_sent_again_the_same(void **state)
{
    struct world *w = *state;
    add(w, 12, "joined", "a");
    add(w, 12, "joined", "b");
    assert_string_equal(take(w), "12.1 joined;12.2 joined;");
    struct buf first = {0};
    buf_append(&first, w->out.data, w->out.len);
    outbox_return(w->outbox, w->batch);
    assert_string_equal(take(w), "12.1 joined;12.2 joined;");
    assert_int_equal(first.len, w->out.len);
    assert_memory_equal(first.data, w->out.data, first.len);
    buf_done(&first);
}

static void the_same_call_is_found_while_it_waits(void **state)
{
    struct world *w = *state;
    struct outbox_event *e = add(w, 12, "joined", "k");
    assert_ptr_equal(outbox_find_call(w->outbox, 12, "joined", "k", "7"), e);
    assert_null(outbox_find_call(w->outbox, 12, "joined", "k", "8"));
    assert_null(outbox_find_call(w->outbox, 12, "left", "k", "7"));
    assert_null(outbox_find_call(w->outbox, 12, "joined", "other", "7"));
    assert_null(outbox_find_call(w->outbox, 13, "joined", "k", "7"));
}

static void the_next_agent_finds_all_and_uses_no_number_twice(void **state)
{
    struct world *w = *state;
    add(w, 12, "inited", "");
    add(w, 12, "joined", "tab\there \"and\" \xc3\xa4");
    add(w, 12, "left", "k");
    add(w, 13, "inited", "");
    (void)take(w);
    settle(w, 12, 1);
    settle(w, 13, 1);
    reopen(w);
    assert_int_equal(outbox_count(w->outbox), 2);
    struct outbox_event *e = outbox_find(w->outbox, 12, 2);
    assert_string_equal(e->key, "tab\there \"and\" \xc3\xa4");
    assert_string_equal(e->id, "7");
    assert_string_equal(take(w), "12.2 joined;12.3 left;");
    assert_int_equal(add(w, 12, "joined", "x")->seq, 4);
    assert_int_equal(add(w, 13, "joined", "x")->seq, 2);
    reopen(w);
    reopen(w);
    assert_int_equal(add(w, 13, "joined", "y")->seq, 3);
    assert_int_equal(outbox_count(w->outbox), 5);
}

static void half_a_line_is_none(void **state)
{
    struct world *w = *state;
    char path[64];
    add(w, 12, "joined", "a");
    add(w, 12, "joined", "b");
    snprintf(path, sizeof(path), "%s/12", w->folder);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size - 5), 0);
    reopen(w);
    assert_int_equal(outbox_count(w->outbox), 1);
    assert_int_equal(add(w, 12, "joined", "c")->seq, 3);
    reopen(w);
    assert_string_equal(take(w), "12.1 joined;12.3 joined;");
}

static void rubbish_in_the_folder_is_no_event(void **state)
{
    struct world *w = *state;
    static const char *const texts[] = {
        "", "\n", "abc", "00000000000000000005\n+6\n+7\tx\n-9\n+8\tv\tnokey\t1\t{}\n\n\t\t\t\n"};
    char path[64];
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        snprintf(path, sizeof(path), "%s/12", w->folder);
        int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
        assert_int_equal(write(fd, texts[i], strlen(texts[i])), strlen(texts[i]));
        close(fd);
        reopen(w);
        assert_int_equal(outbox_count(w->outbox), 0);
    }
    assert_int_equal(add(w, 12, "joined", "c")->seq, 10);
}

static void keys_do_not_stay_on_disk(void **state)
{
    struct world *w = *state;
    char path[64];
    struct stat st;
    add(w, 12, "joined", "secret");
    snprintf(path, sizeof(path), "%s/12", w->folder);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_true(st.st_size > 40);
    settle(w, 12, 1);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 21);
    add(w, 12, "exited", "");
    outbox_end(w->outbox, 12);
    assert_int_equal(stat(path, &st), 0);
    settle(w, 12, 2);
    assert_int_not_equal(stat(path, &st), 0);
}

static void who_is_expected_has_a_file_and_starts_with_number_one(void **state)
{
    struct world *w = *state;
    char path[64];
    struct stat st;
    size_t at = 0;
    outbox_expect(w->outbox, 12);
    snprintf(path, sizeof(path), "%s/12", w->folder);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 21);
    reopen(w);
    assert_int_equal(outbox_next(w->outbox, &at), 12);
    assert_int_equal(outbox_count(w->outbox), 0);
    add(w, 12, "inited", "");
    outbox_expect(w->outbox, 12);
    reopen(w);
    assert_string_equal(take(w), "12.1 inited;");
    settle(w, 12, 1);
    outbox_end(w->outbox, 12);
    assert_int_not_equal(stat(path, &st), 0);
}

static int count_files(const struct world *w)
{
    int n = 0;
    DIR *folder = opendir(w->folder);
    for (struct dirent *e; (e = readdir(folder));)
        n += e->d_name[0] != '.';
    closedir(folder);
    return n;
}

static void files_made_ahead_of_time_become_those_of_servers(void **state)
{
    enum { SPARES = 4, SERVERS = 6 };
    struct world *w = *state;
    size_t at = 0;
    for (int i = 0; i < 10; i++)
        outbox_lay_in(w->outbox);
    assert_int_equal(count_files(w), SPARES);
    for (int64_t server = 1; server <= SERVERS; server++) {
        outbox_expect(w->outbox, server);
        assert_int_equal(count_files(w), server > SPARES ? server : SPARES);
    }
    add(w, 1, "inited", "");
    outbox_lay_in(w->outbox);
    reopen(w);
    int known = 0;
    while (outbox_next(w->outbox, &at))
        known++;
    assert_int_equal(known, SERVERS); /* what is left over is no server */
    assert_string_equal(take(w), "1.1 inited;");
    outbox_lay_in(w->outbox);
    assert_int_equal(count_files(w), SERVERS + 1);
    outbox_expect(w->outbox, 7);
    add(w, 7, "inited", "");
    assert_string_equal(take(w), "7.1 inited;");
}

static void a_server_has_a_limit_but_may_always_end(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < OUTBOX_EVENTS_MAX; i++)
        add(w, 12, "left", "k");
    assert_null(outbox_add(w->outbox, 12, "left", "k", "1", STR("{}")));
    assert_non_null(outbox_add(w->outbox, 12, "exited", "", "", STR("{\"a\":1}")));
    add(w, 13, "left", "k");
}

static void a_batch_has_a_limit(void **state)
{
    struct world *w = *state;
    static char long_text[20000];
    struct buf members = {0};
    struct buf out = {0};
    memset(long_text, 'x', sizeof(long_text));
    json_open_object(&(struct json_writer){.out = &members});
    json_key_text(&(struct json_writer){.out = &members}, "settings",
                  (struct str){long_text, sizeof(long_text)});
    buf_append(&members, "}", 1);
    for (int i = 0; i < 5; i++)
        assert_non_null(outbox_add(w->outbox, 12, "left", "k", "1",
                                   (struct str){(char *)members.data, members.len}));
    assert_int_equal(outbox_take(w->outbox, 1, 256, true, &out), 2);
    assert_true(out.len <= OUTBOX_BATCH_BYTES);
    buf_done(&members);
    buf_done(&out);
}

static void a_file_does_not_grow_for_ever(void **state)
{
    struct world *w = *state;
    char path[64];
    struct stat st;
    static char long_text[4000];
    struct buf members = {0};
    memset(long_text, 'x', sizeof(long_text));
    json_open_object(&(struct json_writer){.out = &members});
    json_key_text(&(struct json_writer){.out = &members}, "text",
                  (struct str){long_text, sizeof(long_text)});
    buf_append(&members, "}", 1);
    struct str text = {(char *)members.data, members.len};
    assert_non_null(outbox_add(w->outbox, 12, "left", "k", "1", text));
    for (int64_t i = 2; i < 1000; i++) { /* never empty */
        assert_non_null(outbox_add(w->outbox, 12, "left", "k", "1", text));
        settle(w, 12, i - 1);
    }
    snprintf(path, sizeof(path), "%s/12", w->folder);
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size < 2 * 1024 * 1024);
    reopen(w);
    assert_int_equal(outbox_count(w->outbox), 1);
    assert_non_null(outbox_find(w->outbox, 12, 999));
    buf_done(&members);
}

static void limit_files(rlim_t bytes)
{
    (void)signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* The next agent finds what came while nothing could be written, and nothing that was answered. */
static void what_could_not_be_written_is_written_later(void **state)
{
    struct world *w = *state;
    for (rlim_t limit = 0; limit < 200; limit += 7) {
        int server = 1000 + (int)limit;
        char told[100];
        add(w, server, "inited", "");
        (void)take(w);
        limit_files(limit);
        settle(w, server, 1);
        add(w, server, "joined", "a");
        add(w, server, "joined", "b");
        (void)take(w);
        settle(w, server, 2);
        limit_files(RLIM_INFINITY);
        if (limit % 2)
            add(w, server, "left", "a"); /* what comes next brings it with it */
        else
            outbox_mend(w->outbox); /* or time does */
        reopen(w);
        snprintf(told, sizeof(told), limit % 2 ? "%d.3 joined;%d.4 left;" : "%d.3 joined;", server,
                 server);
        assert_string_equal(take(w), told);
        outbox_end(w->outbox, server);
        settle(w, server, 3);
        if (limit % 2)
            settle(w, server, 4);
    }
}

/* Its file is there again, with its number. */
static void a_number_is_not_used_twice_because_of_a_full_disk(void **state)
{
    struct world *w = *state;
    limit_files(0);
    add(w, 12, "joined", "a");
    (void)take(w);
    settle(w, 12, 1);
    limit_files(RLIM_INFINITY);
    outbox_mend(w->outbox);
    reopen(w);
    add(w, 12, "left", "a");
    assert_string_equal(take(w), "12.2 left;");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_new, world_free)
    const struct CMUnitTest tests[] = {
        TEST(events_of_a_server_are_numbered_and_in_order),
        TEST(while_some_are_under_way_other_keys_may_follow),
        TEST(what_is_slow_goes_alone),
        TEST(the_first_and_the_last_wait_for_all),
        TEST(what_was_not_taken_is_sent_again_the_same),
        TEST(the_same_call_is_found_while_it_waits),
        TEST(the_next_agent_finds_all_and_uses_no_number_twice),
        TEST(half_a_line_is_none),
        TEST(rubbish_in_the_folder_is_no_event),
        TEST(keys_do_not_stay_on_disk),
        TEST(who_is_expected_has_a_file_and_starts_with_number_one),
        TEST(files_made_ahead_of_time_become_those_of_servers),
        TEST(a_server_has_a_limit_but_may_always_end),
        TEST(a_batch_has_a_limit),
        TEST(a_file_does_not_grow_for_ever),
        TEST(what_could_not_be_written_is_written_later),
        TEST(a_number_is_not_used_twice_because_of_a_full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
