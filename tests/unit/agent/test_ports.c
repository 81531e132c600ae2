/* A pool of ports: in turn, none twice, none that somebody else has. */
#include "agent/ports.h"

#include "lib/unit.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { N = 4 };

static int bound(uint16_t port, int type)
{
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    if (bind(fd, (struct sockaddr *)&there, sizeof(there)) == 0)
        return fd;
    close(fd);
    return -1;
}

/* The first of N that nobody has. Below those that the system gives to connections. */
static uint16_t free_range(void)
{
    for (uint16_t first = (uint16_t)(10000 + getpid() % 2000 * 10);; first += N) {
        int n = 0;
        for (; n < N; n++) {
            int tcp = bound((uint16_t)(first + n), SOCK_STREAM);
            int udp = bound((uint16_t)(first + n), SOCK_DGRAM);
            close(tcp);
            close(udp);
            if (tcp < 0 || udp < 0)
                break;
        }
        if (n == N)
            return first;
    }
}

static struct ports pool(void)
{
    struct ports p;
    uint16_t first = free_range();
    memset(&p, 0, sizeof(p));
    ports_init(&p, first, (uint16_t)(first + N - 1));
    return p;
}

static void they_are_given_in_turn_and_none_twice(void **state)
{
    (void)state;
    struct ports p = pool();
    uint16_t got[N], more;
    assert_true(ports_take(&p, 1, got));
    assert_true(ports_take(&p, 3, got + 1));
    for (int i = 0; i < N; i++)
        assert_int_equal(got[i], p.first + i);
    assert_false(ports_take(&p, 1, &more));
    ports_give(&p, &got[0], 1);
    ports_give(&p, &got[3], 1);
    uint16_t two[2];
    assert_true(ports_take(&p, 2, two));
    assert_int_equal(two[0], got[0]);
    assert_int_equal(two[1], got[3]);
    ports_done(&p);
}

static void too_many_take_none(void **state)
{
    (void)state;
    struct ports p = pool();
    uint16_t got[N + 1];
    assert_false(ports_take(&p, N + 1, got));
    assert_true(ports_take(&p, N, got));
    ports_done(&p);
}

static void those_in_use_already_are_not_given(void **state)
{
    (void)state;
    struct ports p = pool();
    uint16_t got[N];
    ports_claim(&p, p.first);
    ports_claim(&p, p.last);
    ports_claim(&p, (uint16_t)(p.first - 1)); /* none of our business */
    ports_claim(&p, (uint16_t)(p.last + 1));
    assert_false(ports_take(&p, 3, got));
    assert_true(ports_take(&p, 2, got));
    assert_int_equal(got[0] + got[1], p.first + 1 + p.first + 2);
    ports_give(&p, &p.last, 1);
    uint16_t outside = (uint16_t)(p.last + 1);
    ports_give(&p, &outside, 1);
    assert_true(ports_take(&p, 1, got));
    assert_int_equal(got[0], p.last);
    ports_done(&p);
}

static void what_somebody_else_has_is_passed_over(void **state)
{
    (void)state;
    static const int types[] = {SOCK_STREAM, SOCK_DGRAM};
    for (int i = 0; i < 2; i++) {
        struct ports p = pool();
        uint16_t got[N];
        int fd = bound(p.first, types[i]);
        assert_true(fd >= 0);
        ports_lay_in(&p);
        assert_true(ports_take(&p, 1, got));
        assert_int_equal(got[0], p.first + 1);
        close(fd);
        ports_done(&p);
    }
}

static void the_next_one_is_held_until_it_is_wanted(void **state)
{
    (void)state;
    struct ports p = pool();
    uint16_t got;
    ports_lay_in(&p);
    assert_int_equal(bound(p.first, SOCK_STREAM), -1);
    assert_int_equal(bound(p.first, SOCK_DGRAM), -1);
    assert_true(ports_take(&p, 1, &got));
    assert_int_equal(got, p.first);
    int tcp = bound(got, SOCK_STREAM);
    int udp = bound(got, SOCK_DGRAM);
    assert_true(tcp >= 0 && udp >= 0);
    close(tcp);
    close(udp);
    ports_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_given_in_turn_and_none_twice),
        cmocka_unit_test(too_many_take_none),
        cmocka_unit_test(those_in_use_already_are_not_given),
        cmocka_unit_test(what_somebody_else_has_is_passed_over),
        cmocka_unit_test(the_next_one_is_held_until_it_is_wanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
