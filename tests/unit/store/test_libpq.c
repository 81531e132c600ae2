#include "postgres.h"

#include "base/clock.h"
#include "base/err.h"

#include <pthread.h>
#include <sys/eventfd.h>

static struct pg_wish wish_of(const char *url)
{
    return (struct pg_wish){.url = url, .name = "test", .connect_ms = 5000, .answer_ms = 5000};
}

static void refused_with(const char *url, const char *wanted)
{
    struct pg_wish wish = wish_of(url);
    struct pg *pg = NULL;
    struct why why = {""};
    assert_int_equal(pg_connect(&wish, &pg, &why), ERR_IO);
    assert_null(pg);
    if (!strstr(why.text, wanted))
        print_error("%s\n", why.text);
    assert_non_null(strstr(why.text, wanted));
    assert_null(strchr(why.text, '\n'));
    assert_null(strstr(why.text, "sesame"));
    assert_null(strstr(why.text, "hush"));
    assert_int_equal(why.text[strlen(why.text) - 1], '.');
}

static void a_refusal_is_one_sentence_without_the_password(void **state)
{
    (void)state;
    char url[256];
    snprintf(url, sizeof(url), "postgres://muster:hush@127.0.0.1:%d/postgres", postgres.port);
    refused_with(url, "password authentication failed for user \"muster\"");
    snprintf(url, sizeof(url), "postgres://muster:open%%2Fsesame@127.0.0.1:%d/nowhere",
             postgres.port);
    refused_with(url, "database \"nowhere\" does not exist");
    snprintf(url, sizeof(url), "postgres://muster:hush@127.0.0.1:%d/postgres",
             postgres_free_port());
    refused_with(url, "Connection refused");
    refused_with("postgres://muster:hush@nowhere.invalid/postgres", "nowhere.invalid");
    refused_with("postgres://muster:hush/x@127.0.0.1/postgres", "%40");
    refused_with("postgres://muster:hu@hush@127.0.0.1/postgres", "%40");
    refused_with("postgres://muster:hush%zz@127.0.0.1/postgres", "cannot be read");
    refused_with("postgres://muster:hush@127.0.0.1/postgres?speed=high", "speed");
    refused_with("host=127.0.0.1 password=hush", "postgres://");
}

static void a_url_is_checked_without_a_server(void **state)
{
    (void)state;
    struct why why = {""};
    assert_int_equal(pg_check_url("postgres://a:b@c:1/d", &why), 0);
    assert_int_equal(pg_check_url("postgresql://a@c,d:2/e?sslmode=require", &why), 0);
    assert_int_equal(pg_check_url("mysql://a:hush@c/d", &why), ERR_BAD_ARGUMENT);
    assert_null(strstr(why.text, "hush"));
}

static void values_come_back_as_they_went(void **state)
{
    (void)state;
    struct pg *pg = postgres_connect(NULL);
    struct why why = {""};
    struct pg_args args = {0};
    pg_int(&args, INT64_MIN);
    pg_text(&args, "\xc3\xa9t\xc3\xa9");
    pg_bytes(&args, "a\0b", 3);
    pg_bytes(&args, NULL, 0);
    pg_flag(&args, true);
    struct pg_result *r = NULL;
    assert_int_equal(pg_query(pg,
                              "SELECT $1::bigint, $2::text, $3::bytea, $4::bytea, $5::bool,"
                              " (-7)::smallint, (-70000)::integer, NULL",
                              &args, &r, &why),
                     0);
    assert_int_equal(pg_rows(r), 1);
    assert_true(pg_get_int(r, 0, 0) == INT64_MIN);
    char text[8];
    pg_get_text(r, 0, 1, text, sizeof(text));
    assert_string_equal(text, "\xc3\xa9t\xc3\xa9");
    assert_int_equal(pg_get_bytes(r, 0, 2).len, 3);
    assert_memory_equal(pg_get_bytes(r, 0, 2).at, "a\0b", 3);
    assert_int_equal(pg_get_bytes(r, 0, 3).len, 0);
    assert_false(pg_null(r, 0, 3));
    assert_int_equal(pg_get_int(r, 0, 4), 1);
    assert_int_equal(pg_get_int(r, 0, 5), -7);
    assert_int_equal(pg_get_int(r, 0, 6), -70000);
    assert_true(pg_null(r, 0, 7));
    pg_free(r);
    pg_close(pg);
}

static void a_refused_statement_leaves_the_connection(void **state)
{
    (void)state;
    struct pg *pg = postgres_connect(NULL);
    struct why why = {""};
    assert_int_equal(pg_query(pg, "SELECT 1/0", NULL, NULL, &why), ERR_IO);
    assert_string_equal(pg_state(pg), "22012");
    assert_non_null(strstr(why.text, "division by zero."));
    assert_false(pg_lost(pg));
    assert_int_equal(pg_script(pg, "SELECT 1; SELECT 2", &why), 0);
    assert_string_equal(pg_state(pg), "");
    pg_close(pg);
}

/* PostgreSQL gives up first, and then there is an answer. */
static void a_long_statement_is_ended_by_postgresql(void **state)
{
    (void)state;
    struct pg_wish wish = wish_of(postgres_url());
    wish.answer_ms = 1000;
    struct pg *pg = NULL;
    struct why why = {""};
    assert_int_equal(pg_connect(&wish, &pg, &why), 0);
    assert_int_equal(pg_query(pg, "SELECT pg_sleep(60)", NULL, NULL, &why), ERR_IO);
    assert_string_equal(pg_state(pg), "57014");
    assert_false(pg_lost(pg));
    pg_close(pg);
}

static void a_server_that_hangs_is_given_up(void **state)
{
    (void)state;
    struct pg_wish wish = wish_of(postgres_url());
    wish.answer_ms = 3000;
    wish.connect_ms = 3000;
    struct pg *pg = NULL;
    struct pg *other = NULL;
    struct why why = {""};
    assert_int_equal(pg_connect(&wish, &pg, &why), 0);
    struct pg_result *r = NULL;
    assert_int_equal(pg_query(pg, "SELECT pg_backend_pid()", NULL, &r, &why), 0);
    pid_t backend = (pid_t)pg_get_int(r, 0, 0);
    pg_free(r);
    assert_int_equal(kill(backend, SIGSTOP), 0);
    assert_int_equal(kill(postgres.pid, SIGSTOP), 0);
    assert_int_equal(pg_query(pg, "SELECT 1", NULL, NULL, &why), ERR_IO);
    assert_true(pg_lost(pg));
    assert_non_null(strstr(why.text, "does not answer"));
    assert_int_equal(pg_connect(&wish, &other, &why), ERR_IO);
    assert_non_null(strstr(why.text, "does not answer"));
    assert_int_equal(kill(backend, SIGCONT), 0);
    assert_int_equal(kill(postgres.pid, SIGCONT), 0);
    pg_close(pg);
}

static void *stop_soon(void *arg)
{
    usleep(50000);
    *(_Atomic bool *)arg = true;
    return NULL;
}

/* Runs until somebody says stop: it ends before its deadline. */
static void ends_when_told(int (*call)(struct pg *pg, const struct pg_wish *wish, struct why *why),
                           struct pg *pg, const struct pg_wish *wish, _Atomic bool *stop)
{
    pthread_t thread;
    struct why why = {""};
    int64_t from_ms = clock_monotonic_ms();
    *stop = false;
    assert_int_equal(pthread_create(&thread, NULL, stop_soon, stop), 0);
    assert_int_equal(call(pg, wish, &why), ERR_IO);
    assert_true(clock_monotonic_ms() - from_ms < wish->answer_ms);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_string_not_equal(why.text, "");
}

static int sleep_long(struct pg *pg, const struct pg_wish *wish, struct why *why)
{
    (void)wish;
    return pg_script(pg, "SELECT pg_sleep(60)", why);
}

static int connect_again(struct pg *pg, const struct pg_wish *wish, struct why *why)
{
    (void)pg;
    struct pg *none = NULL;
    return pg_connect(wish, &none, why);
}

static void nobody_waits_longer_than_he_wants(void **state)
{
    (void)state;
    _Atomic bool stop = false;
    struct pg_wish wish = wish_of(postgres_url());
    struct pg *pg = NULL;
    struct why why = {""};
    wish.connect_ms = wish.answer_ms = 30000;
    wish.stop = &stop;
    assert_int_equal(pg_connect(&wish, &pg, &why), 0);
    ends_when_told(sleep_long, pg, &wish, &stop);
    assert_true(pg_lost(pg));
    pg_close(pg);
    assert_int_equal(connect_again(NULL, &wish, &why), ERR_IO);

    stop = false;
    assert_int_equal(pg_connect(&wish, &pg, &why), 0);
    pg_set_stop(pg, NULL);
    stop = true;
    assert_int_equal(pg_script(pg, "SELECT pg_sleep(0.1)", &why), 0);
    pg_close(pg);

    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(any);
    int deaf = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char url[160];
    assert_int_equal(bind(deaf, (struct sockaddr *)&any, sizeof(any)), 0);
    assert_int_equal(listen(deaf, 8), 0);
    assert_int_equal(getsockname(deaf, (struct sockaddr *)&any, &len), 0);
    snprintf(url, sizeof(url), "postgres://muster@127.0.0.1:%d,127.0.0.1:%d/postgres",
             ntohs(any.sin_port), ntohs(any.sin_port));
    wish.url = url;
    ends_when_told(connect_again, NULL, &wish, &stop);
    close(deaf);
}

static void a_connection_that_is_cut_is_lost(void **state)
{
    (void)state;
    struct pg *pg = postgres_connect(NULL);
    struct why why = {""};
    assert_int_equal(
        pg_query(pg, "SELECT pg_terminate_backend(pg_backend_pid())", NULL, NULL, &why), ERR_IO);
    assert_true(pg_lost(pg));
    assert_non_null(strstr(why.text, "terminating connection"));
    assert_int_equal(pg_query(pg, "SELECT 1", NULL, NULL, &why), ERR_IO);
    assert_true(pg_lost(pg));
    assert_int_equal(pg_wait(pg, 10000, -1), PG_NEWS_LOST);
    pg_close(pg);
}

/* The first does not answer at all, the second refuses. */
static void the_next_host_is_tried(void **state)
{
    (void)state;
    int deaf = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(any);
    assert_int_equal(bind(deaf, (struct sockaddr *)&any, sizeof(any)), 0);
    assert_int_equal(listen(deaf, 8), 0);
    assert_int_equal(getsockname(deaf, (struct sockaddr *)&any, &len), 0);
    char url[256];
    snprintf(url, sizeof(url),
             "postgres://muster:open%%2Fsesame@127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d/postgres",
             ntohs(any.sin_port), postgres_free_port(), postgres.port);
    struct pg_wish wish = wish_of(url);
    wish.connect_ms = 3000;
    struct pg *pg = NULL;
    struct why why = {""};
    assert_int_equal(pg_connect(&wish, &pg, &why), 0);
    pg_close(pg);
    close(deaf);
}

static void a_pipeline_answers_in_order(void **state)
{
    (void)state;
    struct pg *pg = postgres_connect(NULL);
    struct why why = {""};
    assert_int_equal(pg_prepare(pg, "divide", "SELECT 100 / $1::bigint", &why), 0);
    assert_int_equal(pg_pipeline(pg, &why), 0);
    for (int64_t by = 2; by >= 0; by--) {
        struct pg_args args = {0};
        pg_int(&args, by);
        assert_int_equal(pg_send(pg, "divide", &args, &why), 0);
    }
    for (int64_t by = 2; by >= 0; by--) {
        struct pg_result *r = NULL;
        assert_int_equal(pg_receive(pg, &r, &why), by == 0 ? ERR_IO : 0);
        if (by > 0)
            assert_int_equal(pg_get_int(r, 0, 0), 100 / by);
        pg_free(r);
    }
    /* What was refused has ended alone. */
    struct pg_args args = {0};
    pg_int(&args, 4);
    struct pg_result *r = NULL;
    assert_int_equal(pg_run(pg, "divide", &args, &r, &why), 0);
    assert_int_equal(pg_get_int(r, 0, 0), 25);
    pg_free(r);
    pg_close(pg);
}

static void an_answer_is_waited_for(void **state)
{
    (void)state;
    struct pg *pg = postgres_connect(NULL);
    struct why why = {""};
    int wake = eventfd(0, EFD_CLOEXEC);
    assert_int_equal(pg_prepare(pg, "sleep", "SELECT pg_sleep($1::bigint / 1000.0)", &why), 0);
    assert_int_equal(pg_pipeline(pg, &why), 0);
    for (int64_t ms = 200; ms >= 0; ms -= 200) {
        struct pg_args args = {0};
        pg_int(&args, ms);
        assert_int_equal(pg_send(pg, "sleep", &args, &why), 0);
    }
    assert_int_equal(pg_wait_answer(pg, 10, wake), PG_NEWS_NONE);
    assert_int_equal(eventfd_write(wake, 1), 0);
    assert_int_equal(pg_wait_answer(pg, 10000, wake), PG_NEWS_WOKEN);
    assert_int_equal(pg_wait_answer(pg, 10000, -1), PG_NEWS_ANSWER);
    assert_int_equal(pg_receive(pg, NULL, &why), 0);
    assert_int_equal(pg_wait_answer(pg, 10000, -1), PG_NEWS_ANSWER);
    assert_int_equal(pg_receive(pg, NULL, &why), 0);
    struct pg_args args = {0};
    pg_int(&args, 10000);
    assert_int_equal(pg_send(pg, "sleep", &args, &why), 0);
    postgres_do(NULL, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                      " WHERE query LIKE 'SELECT pg_sleep%'");
    enum pg_news news = pg_wait_answer(pg, 10000, -1);
    assert_true(news == PG_NEWS_LOST || news == PG_NEWS_ANSWER);
    if (news == PG_NEWS_ANSWER)
        assert_int_equal(pg_receive(pg, NULL, &why), ERR_IO);
    assert_true(pg_lost(pg)); /* what was ended is not known to be undone */
    assert_int_equal(pg_wait_answer(pg, 10000, -1), PG_NEWS_LOST);
    close(wake);
    pg_close(pg);
}

/* … whoever was the first to read it. */
static void a_warning_belongs_to_its_answer(void **state)
{
    (void)state;
    struct pg *pg = postgres_connect(NULL);
    struct why why = {""};
    assert_int_equal(pg_script(pg,
                               "CREATE FUNCTION warn(n bigint) RETURNS bigint LANGUAGE plpgsql AS"
                               " $$BEGIN IF n = 1 THEN RAISE WARNING 'beware'; END IF; RETURN n;"
                               " END$$",
                               &why),
                     0);
    assert_false(pg_warned(pg));
    assert_int_equal(pg_prepare(pg, "warn", "SELECT warn($1::bigint)", &why), 0);
    assert_int_equal(pg_pipeline(pg, &why), 0);
    for (int64_t n = 0; n < 3; n++) {
        struct pg_args args = {0};
        pg_int(&args, n);
        assert_int_equal(pg_send(pg, "warn", &args, &why), 0);
    }
    for (int64_t n = 0; n < 3; n++) {
        assert_int_equal(pg_wait_answer(pg, 10000, -1), PG_NEWS_ANSWER);
        assert_int_equal(pg_receive(pg, NULL, &why), 0);
        assert_int_equal(pg_warned(pg), n == 1);
    }
    pg_close(pg);
}

static void a_notification_wakes(void **state)
{
    (void)state;
    struct pg *pg = postgres_connect(NULL);
    struct why why = {""};
    int wake = eventfd(0, EFD_CLOEXEC);
    assert_int_equal(pg_script(pg, "LISTEN here", &why), 0);
    assert_int_equal(pg_wait(pg, 0, wake), PG_NEWS_NONE);
    postgres_do(NULL, "NOTIFY here");
    assert_int_equal(pg_wait(pg, 10000, wake), PG_NEWS_NOTICE);
    assert_int_equal(pg_wait(pg, 1, wake), PG_NEWS_NONE);
    assert_int_equal(eventfd_write(wake, 1), 0);
    assert_int_equal(pg_wait(pg, 10000, wake), PG_NEWS_WOKEN);
    close(wake);
    pg_close(pg);
}

static void a_role_that_does_not_wait_for_the_disk_is_overruled(void **state)
{
    (void)state;
    postgres_do(NULL, "ALTER ROLE muster SET synchronous_commit = off");
    int64_t on = postgres_ask(NULL, "SELECT (current_setting('synchronous_commit') = 'on')::int");
    postgres_do(NULL, "ALTER ROLE muster RESET synchronous_commit");
    assert_int_equal(on, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refusal_is_one_sentence_without_the_password),
        cmocka_unit_test(a_url_is_checked_without_a_server),
        cmocka_unit_test(values_come_back_as_they_went),
        cmocka_unit_test(a_refused_statement_leaves_the_connection),
        cmocka_unit_test(a_long_statement_is_ended_by_postgresql),
        cmocka_unit_test(a_server_that_hangs_is_given_up),
        cmocka_unit_test(nobody_waits_longer_than_he_wants),
        cmocka_unit_test(a_connection_that_is_cut_is_lost),
        cmocka_unit_test(the_next_host_is_tried),
        cmocka_unit_test(a_pipeline_answers_in_order),
        cmocka_unit_test(an_answer_is_waited_for),
        cmocka_unit_test(a_warning_belongs_to_its_answer),
        cmocka_unit_test(a_notification_wakes),
        cmocka_unit_test(a_role_that_does_not_wait_for_the_disk_is_overruled),
    };
    return cmocka_run_group_tests(tests, postgres_setup, postgres_teardown);
}
