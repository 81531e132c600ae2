#include "base/log.h"

#include "lib/unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Points standard error at a pipe for one log call and returns what was written. */
static size_t written_by(enum log_level level, const char *what, char *ret, size_t cap)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    int saved = dup(STDERR_FILENO);
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
    log_line(level, what, "n=%d", 7);
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    close(saved);
    close(ends[1]);
    ssize_t n = read(ends[0], ret, cap - 1);
    close(ends[0]);
    assert_true(n >= 0);
    ret[n] = '\0';
    return (size_t)n;
}

static void one_line_with_time_level_and_pairs(void **state)
{
    (void)state;
    char line[2048];
    size_t n = written_by(LOG_WARN, "server lost", line, sizeof(line));
    assert_true(n > 30);
    assert_int_equal(strncmp(line, "ts=20", 5), 0);
    assert_string_equal(line + 26, "Z level=warn msg=\"server lost\" n=7\n");
    log_set_format(LOG_JSON);
    written_by(LOG_ERROR, "server lost", line, sizeof(line));
    log_set_format(LOG_LOGFMT);
    assert_int_equal(strncmp(line, "{\"ts\":\"20", 9), 0);
    assert_string_equal(line + 30, "Z\",\"level\":\"error\",\"msg\":\"server lost\",\"n\":7}\n");
}

static void levels_above_the_threshold_are_silent(void **state)
{
    (void)state;
    char line[2048];
    assert_true(log_enabled(LOG_INFO));
    assert_false(log_enabled(LOG_DEBUG));
    assert_int_equal(written_by(LOG_DEBUG, "x", line, sizeof(line)), 0);
    log_set_level(LOG_ERROR);
    assert_int_equal(written_by(LOG_WARN, "x", line, sizeof(line)), 0);
    assert_true(written_by(LOG_ERROR, "x", line, sizeof(line)) > 0);
    log_set_level(LOG_DEBUG);
    assert_true(written_by(LOG_DEBUG, "x", line, sizeof(line)) > 0);
    log_set_level(LOG_INFO);
}

static void a_line_too_long_is_cut_and_still_a_line(void **state)
{
    (void)state;
    char what[3000];
    char line[4096];
    memset(what, 'w', sizeof(what) - 1);
    for (size_t len = 980; len < 1030; len++) {
        what[len] = '\0';
        size_t n = written_by(LOG_INFO, what, line, sizeof(line));
        assert_in_range(n, 100, 1024);
        assert_int_equal(line[n - 1], '\n');
        assert_ptr_equal(strchr(line, '\n'), line + n - 1);
        assert_int_equal(strlen(line), n);
        what[len] = 'w';
    }
}

/* Points standard error at a pipe until captured() takes it back. */
static int capture(int *ret_saved)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    *ret_saved = dup(STDERR_FILENO);
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
    close(ends[1]);
    return ends[0];
}

static size_t captured(int from, int saved, char *ret, size_t cap)
{
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    close(saved);
    size_t len = 0;
    ssize_t n = 0;
    while ((n = read(from, ret + len, cap - 1 - len)) > 0)
        len += (size_t)n;
    close(from);
    ret[len] = '\0';
    return len;
}

static void gathered_lines_are_written_by_a_flush(void **state)
{
    (void)state;
    char text[1024];
    int saved = -1;
    int from = capture(&saved);
    log_gather(true);
    log_line(LOG_INFO, "first", "n=%d", 1);
    assert_int_equal(captured(from, saved, text, sizeof(text)), 0);

    from = capture(&saved);
    log_line(LOG_INFO, "second", "n=%d", 2);
    log_flush();
    log_line(LOG_INFO, "third", "n=%d", 3);
    log_gather(false);
    assert_true(captured(from, saved, text, sizeof(text)) > 0);
    const char *first = strstr(text, "\"first\" n=1\n");
    const char *second = strstr(text, "\"second\" n=2\n");
    const char *third = strstr(text, "\"third\" n=3\n");
    assert_true(first && second && third && first < second && second < third);
}

/* Lines of about 1000 bytes, numbered from 0. */
static void log_long_lines(int n)
{
    char what[960];
    memset(what, 'w', sizeof(what) - 1);
    what[sizeof(what) - 1] = '\0';
    for (int i = 0; i < n; i++)
        log_line(LOG_INFO, what, "n=%d", i);
}

static void half_of_what_can_be_gathered_is_written_without_a_flush(void **state)
{
    (void)state;
    static char text[1 << 20];
    int saved = -1;
    int from = capture(&saved);
    assert_true(fcntl(STDERR_FILENO, F_SETPIPE_SZ, 1 << 20) > 0);
    log_gather(true);
    log_long_lines(LOG_GATHER_MAX / 1900);
    assert_true(read(from, text, 1) == 1); /* blocks until something comes */
    log_gather(false);
    captured(from, saved, text, sizeof(text));
}

/* How many lines the whole lines of a log stand for, those that it says were dropped included. */
static int lines_told(const char *text, int *ret_dropped)
{
    static const char mark[] = "\"log lines dropped\" n=";
    int n = 0;
    *ret_dropped = 0;
    for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
        const char *found = memmem(text, (size_t)(end - text), mark, strlen(mark));
        if (found)
            *ret_dropped += atoi(found + strlen(mark));
        else
            n++;
    }
    return n + *ret_dropped;
}

/* Blocked for ever in write(2), and with it the loop that logs. */
static void a_log_nobody_reads_drops_lines_and_never_blocks(void **state)
{
    (void)state;
    enum { LINES = 2000 };
    static char text[4 << 20];
    uint64_t dropped_before = log_dropped();
    int saved = -1;
    int from = capture(&saved);
    log_gather(true);
    for (int i = 0; i < 10; i++) {
        log_long_lines(LINES / 10);
        log_flush();
    }
    log_gather(false); /* returns; the time limit of this program ends a write that blocks */
    log_line(LOG_INFO, "after", "n=0"); /* goes behind what waits, not past it */

    size_t len = 0;
    int dropped = 0;
    while (lines_told(text, &dropped) < LINES + 1) { /* for ever, when some are missing */
        ssize_t n = read(from, text + len, sizeof(text) - 1 - len);
        assert_true(n > 0);
        len += (size_t)n;
    }
    assert_int_equal(lines_told(text, &dropped), LINES + 1);
    assert_in_range(dropped, 1, LINES - LOG_GATHER_MAX / 1100);
    assert_int_equal(log_dropped(), dropped_before + dropped);

    log_gather(true);
    log_line(LOG_INFO, "read again", "n=1");
    log_gather(false);
    captured(from, saved, text, sizeof(text));
    assert_non_null(strstr(text, "\"read again\" n=1\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_line_with_time_level_and_pairs),
        cmocka_unit_test(levels_above_the_threshold_are_silent),
        cmocka_unit_test(a_line_too_long_is_cut_and_still_a_line),
        cmocka_unit_test(gathered_lines_are_written_by_a_flush),
        cmocka_unit_test(half_of_what_can_be_gathered_is_written_without_a_flush),
        cmocka_unit_test(a_log_nobody_reads_drops_lines_and_never_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
