/* Whoever watches us hears what we are, in order, and nothing waits for him. */
#include "net/notify.h"

#include "lib/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The one who watches: a socket in a folder of its own. */
struct watcher {
    char folder[32];
    char path[64];
    int fd;
};

static void watch(struct watcher *w)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    strcpy(w->folder, "/tmp/notify-XXXXXX");
    assert_non_null(mkdtemp(w->folder));
    snprintf(w->path, sizeof(w->path), "%s/socket", w->folder);
    strcpy(at.sun_path, w->path);
    w->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(w->fd, (struct sockaddr *)&at, sizeof(at)), 0);
    setenv("NOTIFY_SOCKET", w->path, 1);
}

static void watch_no_more(struct watcher *w)
{
    close(w->fd);
    unlink(w->path);
    rmdir(w->folder);
}

/* What was said; "" = nothing. */
static const char *heard(const struct watcher *w)
{
    static char text[512];
    ssize_t n = recv(w->fd, text, sizeof(text) - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

static void each_state_is_told(void **state)
{
    (void)state;
    struct watcher w;
    struct notify n;
    watch(&w);
    notify_open(&n);
    assert_string_equal(heard(&w), "");
    notify_ready(&n, "serving");
    assert_string_equal(heard(&w), "READY=1\nSTATUS=serving");
    notify_reloading(&n);
    long long us = 0;
    assert_int_equal(sscanf(heard(&w), "RELOADING=1\nMONOTONIC_USEC=%lld", &us), 1);
    assert_true(us > 0);
    notify_stopping(&n);
    assert_string_equal(heard(&w), "STOPPING=1\nSTATUS=finishing what is under way");
    notify_tick(&n, 1000000);
    assert_string_equal(heard(&w), ""); /* no watchdog was asked for */
    notify_close(&n);
    watch_no_more(&w);
}

static void children_inherit_nothing(void **state)
{
    (void)state;
    struct watcher w;
    struct notify n;
    watch(&w);
    setenv("WATCHDOG_USEC", "1000000", 1);
    setenv("WATCHDOG_PID", "1", 1);
    notify_open(&n);
    assert_null(getenv("NOTIFY_SOCKET"));
    assert_null(getenv("WATCHDOG_USEC"));
    assert_null(getenv("WATCHDOG_PID"));
    assert_int_equal(n.period_ms, 0); /* that watchdog is another process's */
    notify_close(&n);
    watch_no_more(&w);
}

static void signs_of_life_come_twice_as_often_as_needed(void **state)
{
    (void)state;
    struct watcher w;
    struct notify n;
    int signs = 0;
    char pid[16];
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    watch(&w);
    setenv("WATCHDOG_USEC", "3000000", 1);
    setenv("WATCHDOG_PID", pid, 1);
    notify_open(&n);
    for (int64_t ms = 50000; ms < 53000; ms += 100) {
        notify_tick(&n, ms);
        signs += strcmp(heard(&w), "WATCHDOG=1") == 0;
    }
    assert_int_equal(signs, 2);
    notify_close(&n);
    watch_no_more(&w);
}

/* The socket holds a few messages alone: the last word is kept, and said when there is room. */
static void a_full_socket_is_not_waited_for(void **state)
{
    (void)state;
    struct watcher w;
    struct notify n;
    watch(&w);
    notify_open(&n);
    for (int i = 0; i < 10000 && !n.untold[0]; i++)
        notify_ready(&n, "serving");
    assert_string_equal(n.untold, "READY=1\nSTATUS=serving");
    notify_stopping(&n);
    notify_tick(&n, 1);
    assert_string_equal(n.untold, "STOPPING=1\nSTATUS=finishing what is under way");
    while (*heard(&w))
        continue;
    notify_tick(&n, 2);
    assert_string_equal(heard(&w), "STOPPING=1\nSTATUS=finishing what is under way");
    assert_string_equal(heard(&w), "");
    assert_string_equal(n.untold, "");
    notify_close(&n);
    watch_no_more(&w);
}

static void a_watcher_who_is_gone_is_given_up(void **state)
{
    (void)state;
    struct watcher w;
    struct notify n;
    watch(&w);
    notify_open(&n);
    watch_no_more(&w);
    notify_ready(&n, "serving");
    assert_string_equal(n.untold, "");
    notify_close(&n);
}

static void names_without_a_folder_are_reached(void **state)
{
    (void)state;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct watcher w = {.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0)};
    struct notify n;
    int len = snprintf(w.path, sizeof(w.path), "@notify-test-%d", (int)getpid());
    memcpy(at.sun_path + 1, w.path + 1, (size_t)len - 1);
    assert_int_equal(
        bind(w.fd, (struct sockaddr *)&at, offsetof(struct sockaddr_un, sun_path) + len), 0);
    setenv("NOTIFY_SOCKET", w.path, 1);
    notify_open(&n);
    notify_ready(&n, "");
    assert_string_equal(heard(&w), "READY=1\nSTATUS=");
    notify_close(&n);
    close(w.fd);
}

static void where_nobody_watches_nothing_happens(void **state)
{
    (void)state;
    static const char *const names[] = {NULL, "", "relative", "/nowhere/at/all"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct notify n;
        unsetenv("NOTIFY_SOCKET");
        if (names[i])
            setenv("NOTIFY_SOCKET", names[i], 1);
        notify_open(&n);
        assert_int_equal(n.fd, -1);
        notify_ready(&n, "serving");
        notify_tick(&n, 1);
        assert_string_equal(n.untold, "");
        notify_close(&n);
    }
    notify_ready(NULL, "serving");
    notify_tick(NULL, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_state_is_told),
        cmocka_unit_test(children_inherit_nothing),
        cmocka_unit_test(signs_of_life_come_twice_as_often_as_needed),
        cmocka_unit_test(a_full_socket_is_not_waited_for),
        cmocka_unit_test(a_watcher_who_is_gone_is_given_up),
        cmocka_unit_test(names_without_a_folder_are_reached),
        cmocka_unit_test(where_nobody_watches_nothing_happens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
