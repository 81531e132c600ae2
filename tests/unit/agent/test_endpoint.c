#include "agent/endpoint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

struct world {
    char folder[32];
    char path[64];
    struct endpoints endpoints;
};

static int world_new(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    snprintf(w->folder, sizeof(w->folder), "/tmp/muster-endpoint-XXXXXX");
    assert_non_null(mkdtemp(w->folder));
    snprintf(w->path, sizeof(w->path), "%s/s", w->folder);
    endpoints_init(&w->endpoints, w->folder);
    *state = w;
    return 0;
}

static int world_free(void **state)
{
    struct world *w = *state;
    char spare[64];
    endpoints_done(&w->endpoints);
    snprintf(spare, sizeof(spare), "%s/spare", w->folder);
    (void)rmdir(spare);
    unlink(w->path);
    assert_int_equal(rmdir(w->folder), 0); /* so nothing else is left in it */
    free(w);
    return 0;
}

static bool is_socket(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

static bool spare_is_there(const struct world *w, int i)
{
    char path[64];
    snprintf(path, sizeof(path), "%s/spare/%d", w->folder, i);
    return is_socket(path);
}

/* Whoever connects to the path is the next that fd accepts. */
static void assert_listens(int fd, const char *path)
{
    struct sockaddr_un there = {.sun_family = AF_UNIX};
    char byte = 0;
    struct stat st;
    snprintf(there.sun_path, sizeof(there.sun_path), "%s", path);
    assert_true(fd >= 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0660);
    int game = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(game, (struct sockaddr *)&there, sizeof(there)), 0);
    assert_int_equal(write(game, "x", 1), 1);
    int peer = accept(fd, NULL, NULL);
    assert_int_equal(read(peer, &byte, 1), 1);
    assert_int_equal(byte, 'x');
    close(peer);
    close(game);
}

static void one_is_made_when_there_is_no_spare(void **state)
{
    struct world *w = *state;
    int fd = endpoints_listen(&w->endpoints, w->path);
    assert_listens(fd, w->path);
    close(fd);
}

static void a_spare_is_moved_to_where_it_is_looked_for(void **state)
{
    struct world *w = *state;
    assert_true(endpoints_lay_in(&w->endpoints));
    assert_true(spare_is_there(w, 0));
    int fd = endpoints_listen(&w->endpoints, w->path);
    assert_false(spare_is_there(w, 0));
    assert_listens(fd, w->path);
    close(fd);
}

static void there_are_enough_at_some_time(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < ENDPOINT_SPARES; i++)
        assert_int_equal(endpoints_lay_in(&w->endpoints), i + 1 < ENDPOINT_SPARES);
    assert_true(spare_is_there(w, ENDPOINT_SPARES - 1));
    assert_false(endpoints_lay_in(&w->endpoints));
    endpoints_done(&w->endpoints);
    for (int i = 0; i < ENDPOINT_SPARES; i++)
        assert_false(spare_is_there(w, i));
}

/* Its sockets are there, and nobody listens to them any more. */
static void what_a_killed_agent_left_is_replaced(void **state)
{
    struct world *w = *state;
    struct endpoints killed;
    endpoints_init(&killed, w->folder);
    assert_true(endpoints_lay_in(&killed));
    close(killed.spares[0]);
    assert_true(endpoints_lay_in(&w->endpoints));
    int fd = endpoints_listen(&w->endpoints, w->path);
    assert_listens(fd, w->path);
    close(fd);
}

/* Somebody has cleaned up in the data folder. */
static void a_spare_that_is_gone_is_not_used(void **state)
{
    struct world *w = *state;
    char path[64];
    assert_true(endpoints_lay_in(&w->endpoints));
    snprintf(path, sizeof(path), "%s/spare/0", w->folder);
    assert_int_equal(unlink(path), 0);
    int fd = endpoints_listen(&w->endpoints, w->path);
    assert_listens(fd, w->path);
    close(fd);
}

static void a_path_that_cannot_be_is_an_error(void **state)
{
    struct world *w = *state;
    char path[200];
    assert_int_equal(endpoints_listen(&w->endpoints, "/nowhere/at/all"), -1);
    assert_int_equal(errno, ENOENT);
    memset(path, 'a', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    assert_int_equal(endpoints_listen(&w->endpoints, path), -1);
    assert_int_equal(errno, ENAMETOOLONG);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_new, world_free)
    const struct CMUnitTest tests[] = {
        TEST(one_is_made_when_there_is_no_spare), TEST(a_spare_is_moved_to_where_it_is_looked_for),
        TEST(there_are_enough_at_some_time),      TEST(what_a_killed_agent_left_is_replaced),
        TEST(a_spare_that_is_gone_is_not_used),   TEST(a_path_that_cannot_be_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
