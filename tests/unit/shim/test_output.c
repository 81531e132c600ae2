/* The log of a game server: files of a fixed size and number, a flood that is cut, a full disk, and
 * an end that is always the true one. The clock is the test's. */
#include "lib/unit.h"
#include "shim/output.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_BYTES = 64 * 1024, FILES = 3, LINE = 1000 };

static char folder[] = "/tmp/muster-output-XXXXXX";

static int begin(void **state)
{
    (void)state;
    strcpy(strrchr(folder, '-') + 1, "XXXXXX");
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int end(void **state)
{
    char command[64];
    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

static int64_t size_of(const char *name)
{
    struct stat st;
    return stat(name, &st) == 0 ? st.st_size : -1;
}

static void put_line(struct output *o, int number, int64_t now_ms)
{
    char line[LINE + 1];
    memset(line, '.', LINE);
    line[snprintf(line, sizeof(line), "line %d ", number)] = '.';
    line[LINE - 1] = '\n';
    output_put(o, line, LINE, now_ms);
}

/* Is this in the file? */
static bool file_has(const char *name, const char *text)
{
    static char data[FILE_BYTES + 1];
    FILE *f = fopen(name, "r");
    size_t n = f ? fread(data, 1, FILE_BYTES, f) : 0;
    if (f)
        fclose(f);
    data[n] = '\0';
    return strstr(data, text) != NULL;
}

static void files_rotate_and_the_oldest_goes(void **state)
{
    (void)state;
    struct output o;
    output_init(&o, FILE_BYTES, FILES, 0);
    output_open(&o);
    for (int i = 0; i < 300; i++)
        put_line(&o, i, (int64_t)i * 1000);
    assert_int_equal(o.dropped, 0);
    assert_true(file_has("log", "line 299 "));
    assert_true(file_has("log.1", "line 200 "));
    assert_true(size_of("log") <= FILE_BYTES);
    assert_true(size_of("log.1") <= FILE_BYTES && size_of("log.1") > FILE_BYTES - 2 * LINE);
    assert_true(size_of("log.2") <= FILE_BYTES);
    assert_int_equal(size_of("log.3"), -1);
    close(o.fd);
}

static void one_file_starts_over(void **state)
{
    (void)state;
    struct output o;
    output_init(&o, FILE_BYTES, 1, 0);
    output_open(&o);
    for (int i = 0; i < 100; i++)
        put_line(&o, i, (int64_t)i * 1000);
    assert_true(size_of("log") <= FILE_BYTES);
    assert_true(file_has("log", "line 99 "));
    assert_int_equal(size_of("log.1"), -1);
    close(o.fd);
}

static void a_flood_is_counted_and_goes_on_later(void **state)
{
    (void)state;
    struct output o;
    output_init(&o, FILE_BYTES, FILES, 0);
    output_open(&o);
    for (int i = 0; i < 1000; i++)
        put_line(&o, i, 0);
    const int kept = (FILES - 1) * FILE_BYTES;
    assert_int_equal(o.dropped, 1000 * LINE - kept);
    assert_int_equal(o.gap, o.dropped);
    put_line(&o, 1000, 500); /* half a second is not enough */
    assert_int_equal(o.dropped, 1001 * LINE - kept);
    put_line(&o, 1001, 1500);
    assert_int_equal(o.dropped, 1001 * LINE - kept);
    char text[100];
    snprintf(text, sizeof(text), "[muster: %d lines, %d bytes of output dropped]\nline 1001 ",
             1001 - kept / LINE, 1001 * LINE - kept);
    assert_true(file_has("log", text));
    close(o.fd);
}

/* It may fill all files but one, so that the line before it is still there. */
static void a_flood_leaves_a_file_of_what_was_before(void **state)
{
    (void)state;
    struct output o;
    output_init(&o, FILE_BYTES, FILES, 0);
    output_open(&o);
    put_line(&o, 0, 0);
    for (int i = 1; i < 1000; i++)
        put_line(&o, i, 0);
    assert_true(size_of("log") + size_of("log.1") + size_of("log.2") >= 2 * FILE_BYTES);
    assert_true(file_has("log.2", "line 0 "));
    for (int i = 1000; i < 2000; i++)
        put_line(&o, i, 10 * 1000);
    assert_true(size_of("log") + size_of("log.1") + size_of("log.2") <= FILES * FILE_BYTES);
    assert_int_equal(size_of("log.3"), -1);
    close(o.fd);
}

static void after_a_flood_the_last_output_is_there(void **state)
{
    (void)state;
    struct output o;
    output_init(&o, FILE_BYTES, FILES, 0);
    output_open(&o);
    for (int i = 0; i < 1000; i++)
        put_line(&o, i, 0);
    output_put(&o, "goodbye\n", 8, 0);
    output_end(&o, 0);
    char text[100];
    uint64_t restored = o.tail_len;
    snprintf(text, sizeof(text), " %d bytes of output dropped]\n",
             (int)(1000 * LINE + 8 - (FILES - 1) * FILE_BYTES - (int)restored));
    assert_true(file_has("log", text));
    assert_int_equal(o.dropped, 1000 * LINE + 8 - (FILES - 1) * FILE_BYTES - restored);
    assert_true(file_has("log", "line 999 "));
    assert_true(file_has("log", "goodbye\n"));
    assert_false(o.failed);
    close(o.fd);
}

/* A disk that takes no more: what is printed is dropped, kept in the tail, and written again when
 * there is room. */
static void a_full_disk_drops_and_recovers(void **state)
{
    (void)state;
    struct output o;
    struct rlimit before;
    getrlimit(RLIMIT_FSIZE, &before);
    struct rlimit full = {.rlim_cur = 10 * LINE, .rlim_max = before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    output_init(&o, FILE_BYTES, FILES, 0);
    output_open(&o);
    setrlimit(RLIMIT_FSIZE, &full);
    for (int i = 0; i < 12; i++)
        put_line(&o, i, 0);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_true(o.failed);
    assert_int_equal(o.dropped, 2 * LINE);
    assert_memory_equal(o.tail + o.tail_len - LINE, "line 11 ", 8);
    put_line(&o, 12, 500); /* not tried yet */
    assert_int_equal(o.dropped, 3 * LINE);
    put_line(&o, 13, 1500);
    assert_int_equal(o.dropped, 3 * LINE);
    assert_true(file_has("log", "[muster: 3 lines, 3000 bytes of output dropped]\nline 13 "));
    assert_false(o.failed);
    close(o.fd);
}

static void the_tail_is_the_last_of_all(void **state)
{
    (void)state;
    struct output o;
    static char large[3 * SHIM_TAIL_MAX];
    output_init(&o, FILE_BYTES, FILES, 0);
    output_open(&o);
    output_put(&o, "abc", 3, 0);
    assert_int_equal(o.tail_len, 3);
    memset(large, 'x', sizeof(large));
    output_put(&o, large, SHIM_TAIL_MAX - 1, 0);
    assert_int_equal(o.tail_len, SHIM_TAIL_MAX);
    assert_int_equal(o.tail[0], 'c');
    large[sizeof(large) - 1] = 'z';
    output_put(&o, large, sizeof(large), 0);
    assert_int_equal(o.tail_len, SHIM_TAIL_MAX);
    assert_int_equal(o.tail[SHIM_TAIL_MAX - 1], 'z');
    assert_int_equal(o.tail[0], 'x');
    close(o.fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_rotate_and_the_oldest_goes, begin, end),
        cmocka_unit_test_setup_teardown(one_file_starts_over, begin, end),
        cmocka_unit_test_setup_teardown(a_flood_is_counted_and_goes_on_later, begin, end),
        cmocka_unit_test_setup_teardown(a_flood_leaves_a_file_of_what_was_before, begin, end),
        cmocka_unit_test_setup_teardown(after_a_flood_the_last_output_is_there, begin, end),
        cmocka_unit_test_setup_teardown(a_full_disk_drops_and_recovers, begin, end),
        cmocka_unit_test_setup_teardown(the_tail_is_the_last_of_all, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
