#include "api/why.h"

#include "base/err.h"
#include "lib/unit.h"

#include <stdlib.h>
#include <string.h>

static struct core_config config;

static int set_up(void **state)
{
    (void)state;
    memset(&config, 0, sizeof(config));
    strcpy(config.regions[1].name, "EU");
    strcpy(config.regions[2].name, "USE");
    strcpy(config.regions[3].name, "USW");
    return 0;
}

static const struct view_server server_7 = {
    .id = 7, .region_name = "EU", .ip = "10.0.0.7", .port = 7777};

static struct view_try tried(int64_t server, const char *outcome)
{
    return (struct view_try){.server = server,
                             .outcome = outcome,
                             .score = 0.25f,
                             .load = 2,
                             .max_sessions = 8,
                             .cpu_percent = 31,
                             .memory_percent = 40};
}

static struct view_ticket ticket(const char *state, int err)
{
    return (struct view_ticket){
        .id = 1, .fleet = "default", .state = state, .err = err, .regions = 1u << 1};
}

static void assert_sentence(const struct view_ticket *t, const struct view_server *server,
                            const char *expected)
{
    struct buf b = {0};
    why_sentence(t, server, &config, &b);
    buf_append(&b, "", 1);
    assert_string_equal((const char *)b.data, expected);
    buf_done(&b);
}

static void placed_at_once(void **state)
{
    (void)state;
    struct view_ticket t = ticket("done", 0);
    t.n_tries = 1;
    t.tries[0] = tried(7, "acknowledged");
    t.passed[PASSED_NOT] = 5;
    assert_sentence(&t, &server_7,
                    "Placed on server 7 (EU, 10.0.0.7:7777) at the first try: it had the best "
                    "score of 5 candidates (0.25), 2 of 8 slots used, CPU 31 %, memory 40 %.");
    t.passed[PASSED_FULL] = 9;
    t.passed[PASSED_DRAINING] = 3;
    assert_sentence(&t, &server_7,
                    "Placed on server 7 (EU, 10.0.0.7:7777) at the first try: it had the best "
                    "score of 5 candidates (0.25), 2 of 8 slots used, CPU 31 %, memory 40 %. 12 "
                    "others were passed over: 9 full, 3 draining.");
}

static void placed_on_the_only_one(void **state)
{
    (void)state;
    struct view_ticket t = ticket("done", 0);
    t.n_tries = 1;
    t.tries[0] = tried(7, "acknowledged");
    t.passed[PASSED_NOT] = 1;
    t.passed[PASSED_OFFLINE] = 1;
    assert_sentence(&t, NULL,
                    "Placed on server 7 at the first try: it was the only candidate (score 0.25), "
                    "2 of 8 slots used, CPU 31 %, memory 40 %. 1 other was passed over: 1 "
                    "offline.");
}

static void placed_after_others_failed(void **state)
{
    (void)state;
    struct view_ticket t = ticket("ended", 0);
    t.n_tries = 4;
    t.tries[0] = tried(3, "timed_out");
    t.tries[1] = tried(9, "refused");
    t.tries[2] = tried(4, "dropped");
    t.tries[3] = tried(7, "acknowledged");
    t.passed[PASSED_NOT] = 2;
    t.passed[PASSED_FAILING] = 3;
    assert_sentence(
        &t, &server_7,
        "Placed on server 7 (EU, 10.0.0.7:7777) at the fourth try: it had the best "
        "score of 2 candidates (0.25), 2 of 8 slots used, CPU 31 %, memory 40 %. "
        "Before that server 3 did not acknowledge in time, server 9 refused and "
        "server 4 lost its connection. 3 were passed over, those included: 3 failed lately. "
        "The match is over.");
}

static void nothing_was_there(void **state)
{
    (void)state;
    struct view_ticket t = ticket("failed", ERR_NO_SERVERS);
    assert_sentence(&t, NULL,
                    "Failed: no server was available. There is no server of fleet default in EU.");
    t.regions = 1u << 1 | 1u << 2;
    assert_sentence(&t, NULL,
                    "Failed: no server was available. There is no server of fleet default in EU "
                    "or USE.");
    t.regions = UINT64_MAX;
    assert_sentence(&t, NULL,
                    "Failed: no server was available. There is no server of fleet default in any "
                    "region.");
    t.regions = 1u << 9;
    assert_sentence(&t, NULL,
                    "Failed: no server was available. There is no server of fleet default in a "
                    "region that is configured no more.");
}

static void every_reason_has_words(void **state)
{
    (void)state;
    struct view_ticket t = ticket("failed", ERR_NO_SERVERS);
    for (int r = PASSED_OFFLINE; r < PASSED_REASONS; r++)
        t.passed[r] = r;
    assert_sentence(&t, NULL,
                    "Failed: no server was available. Of the 21 servers of fleet default in EU "
                    "none was left: 6 full, 5 failed lately, 4 draining, 3 back without the list "
                    "of their matches, 2 not connected, 1 offline.");
}

static void the_rest_was_tried_or_holds_the_lobby(void **state)
{
    (void)state;
    struct view_ticket t = ticket("failed", ERR_NO_SERVERS);
    t.n_tries = 1;
    t.tries[0] = tried(3, "refused");
    t.passed[PASSED_NOT] = 1;
    assert_sentence(&t, NULL,
                    "Failed: no server was available. Server 3 refused. Of the 1 server of fleet "
                    "default in EU none was left: 1 tried before or with a match of the same "
                    "lobby id.");
    t.passed[PASSED_FULL] = 2;
    assert_sentence(&t, NULL,
                    "Failed: no server was available. Server 3 refused. Of the 3 servers of fleet "
                    "default in EU none was left: 2 full, 1 tried before or with a match of the "
                    "same lobby id.");
}

static void four_servers_were_asked_in_vain(void **state)
{
    (void)state;
    struct view_ticket t = ticket("failed", ERR_ALLOCATION_TIMEOUT);
    t.n_tries = 4;
    t.tries[0] = tried(1, "timed_out");
    t.tries[1] = tried(2, "refused");
    t.tries[2] = tried(3, "not_ready");
    t.tries[3] = tried(4, "given_up");
    assert_sentence(&t, NULL,
                    "Failed: no server acknowledged in time. Server 1 did not acknowledge in "
                    "time, server 2 refused, server 3 acknowledged but was not ready in time and "
                    "server 4 was asked in vain, because the request was given up. No more than 4 "
                    "servers are asked.");
}

static void another_failure_is_told_by_its_sentence(void **state)
{
    (void)state;
    struct view_ticket t = ticket("failed", ERR_INTERNAL);
    assert_sentence(&t, NULL, "Failed: Internal error.");
}

static void open_ones_say_whom_they_wait_for(void **state)
{
    (void)state;
    struct view_ticket t = ticket("open", 0);
    t.open = true;
    t.passed[PASSED_AWAY] = 1;
    assert_sentence(&t, NULL,
                    "Open: it waits for servers that have not come back since Muster started. 1 "
                    "other was passed over: 1 not connected.");
    t.n_tries = 2;
    t.tries[0] = tried(3, "dropped");
    t.tries[1] = tried(7, "pending");
    t.passed[PASSED_AWAY] = 2;
    assert_sentence(&t, &server_7,
                    "Open: its answer is still to come. Server 3 lost its connection and server 7 "
                    "has not answered yet. 2 were passed over, those included: 2 not connected.");
}

static void cancelled_before_and_after(void **state)
{
    (void)state;
    struct view_ticket t = ticket("cancelled", ERR_TICKET_CANCELLED);
    assert_sentence(&t, NULL, "Cancelled before it was placed.");
    t.n_tries = 1;
    t.tries[0] = tried(7, "given_up");
    assert_sentence(&t, NULL,
                    "Cancelled before it was placed. Server 7 was asked in vain, because the "
                    "request was given up.");
    t.tries[0] = tried(7, "acknowledged");
    t.answered_wall_ms = 1;
    assert_sentence(&t, &server_7,
                    "Cancelled after it had been placed on server 7 (EU, 10.0.0.7:7777).");
}

/* Tickets of before tries were kept. */
static void nothing_is_known_of_the_tries(void **state)
{
    (void)state;
    struct view_ticket t = ticket("done", 0);
    assert_sentence(&t, NULL, "Placed on a server.");
    assert_sentence(&t, &server_7, "Placed on server 7 (EU, 10.0.0.7:7777).");
}

/* ── rooms ─────────────────────────────────────────────────────────────────────────────────── */

static void assert_room_sentence(const struct view_room_ticket *t, const struct view_room *room,
                                 const char *expected)
{
    struct buf b = {0};
    why_room_sentence(t, room, &b);
    buf_append(&b, "", 1);
    assert_string_equal((const char *)b.data, expected);
    buf_done(&b);
}

static const struct view_room room_34 = {
    .id = 34, .fleet = "arena", .version = "1.0", .region_name = "EU", .host_name = "host-1"};

static void a_seat_in_a_room_that_was_there(void **state)
{
    (void)state;
    struct view_room_ticket t = {.id = 1, .state = "done", .players = 1, .room = 34};
    assert_room_sentence(&t, &room_34,
                         "1 seat was given in room 34 (arena, version 1.0, EU, on host host-1).");
    t.players = 3;
    assert_room_sentence(&t, NULL, "3 seats were given in room 34.");
}

static void a_new_room_at_the_second_host(void **state)
{
    (void)state;
    struct view_room_ticket t = {.id = 1, .state = "done", .players = 1, .room = 34, .n_tries = 2};
    t.tries[0] = (struct view_host_try){.host = 3, .outcome = "failed", .load_percent = 12};
    t.tries[1] = (struct view_host_try){.host = 4, .outcome = "opened", .load_percent = 30};
    assert_room_sentence(&t, &room_34,
                         "1 seat was given in the new room 34 (arena, version 1.0, EU, on host "
                         "host-1). Host 3 (load 12 %) could not start a server and host 4 (load 30 "
                         "%) started its server.");
}

static void no_room_came_to_be(void **state)
{
    (void)state;
    struct view_room_ticket t = {.id = 1, .state = "failed", .err = ERR_NO_HOST, .players = 1};
    assert_room_sentence(&t, NULL, "Failed: No healthy host.");
    t.why = STR("No healthy host in EU: 2 overloaded.");
    assert_room_sentence(&t, NULL, "Failed: No healthy host in EU: 2 overloaded.");
    t = (struct view_room_ticket){.id = 1, .state = "open", .open = true, .n_tries = 1};
    t.tries[0] = (struct view_host_try){.host = 3, .outcome = "pending", .load_percent = 12};
    assert_room_sentence(&t, NULL,
                         "Open: its answer is still to come. Host 3 (load 12 %) has not started a "
                         "server for it yet.");
}

/* ── allocations ───────────────────────────────────────────────────────────────────────────── */

static void assert_allocation_sentence(const struct view_allocation *a,
                                       const struct view_room *room, const char *expected)
{
    struct buf b = {0};
    why_allocation_sentence(a, room, &b);
    buf_append(&b, "", 1);
    assert_string_equal((const char *)b.data, expected);
    buf_done(&b);
}

static const struct view_room room_7 = {
    .id = 7, .fleet = "arena", .region_name = "EU", .reserved = 1, .taken = 3, .max_players = 4};

static void an_allocation_waits(void **state)
{
    (void)state;
    struct view_allocation a = {.state = "queued",
                                .fleet = "arena",
                                .players = 1,
                                .room = 7,
                                .position = 1,
                                .waited_ms = 12400};
    assert_allocation_sentence(&a, &room_7,
                               "Waits at position 1 for 1 seat in room 7 (arena, EU, 4 of 4 seats "
                               "in use), for 12 s by now.");
    a.friends = 1;
    assert_allocation_sentence(&a, &room_7,
                               "Waits at position 1 for 1 seat in room 7 (arena, EU, 4 of 4 seats "
                               "in use), for 12 s by now. That is where friends of his sit.");
    a.room = 0;
    a.players = 3;
    a.position = 3;
    a.ahead = 5;
    a.priority = 2;
    a.eta_ms = 61000;
    assert_allocation_sentence(&a, NULL,
                               "Waits at position 3 for 3 seats in any room of fleet arena, behind "
                               "5 players, for 12 s by now. His priority 2 is worth 2 min of "
                               "waiting. By how seats came free lately it takes about 61 s.");
}

static void an_allocation_is_over(void **state)
{
    (void)state;
    struct view_allocation a = {.state = "done", .players = 1, .room = 7};
    assert_allocation_sentence(&a, &room_7,
                               "1 seat was given in room 7 (arena, EU, 4 of 4 seats in use).");
    a.queued_wall_ms = 1000;
    a.answered_wall_ms = 31000;
    assert_allocation_sentence(&a, NULL, "1 seat was given in room 7, after 30 s in line.");
    a.state = "failed";
    a.err = ERR_QUEUE_TIMEOUT;
    a.why = STR("queue timeout after 30 s");
    assert_allocation_sentence(&a, NULL,
                               "Failed: queue timeout after 30 s. It stood in line for 30 s.");
    a = (struct view_allocation){.state = "cancelled", .err = ERR_TICKET_CANCELLED};
    assert_allocation_sentence(&a, NULL, "Cancelled: Allocation cancelled.");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_allocation_waits),
        cmocka_unit_test(an_allocation_is_over),
        cmocka_unit_test(placed_at_once),
        cmocka_unit_test(placed_on_the_only_one),
        cmocka_unit_test(placed_after_others_failed),
        cmocka_unit_test(nothing_was_there),
        cmocka_unit_test(every_reason_has_words),
        cmocka_unit_test(the_rest_was_tried_or_holds_the_lobby),
        cmocka_unit_test(four_servers_were_asked_in_vain),
        cmocka_unit_test(another_failure_is_told_by_its_sentence),
        cmocka_unit_test(open_ones_say_whom_they_wait_for),
        cmocka_unit_test(cancelled_before_and_after),
        cmocka_unit_test(nothing_is_known_of_the_tries),
        cmocka_unit_test(a_seat_in_a_room_that_was_there),
        cmocka_unit_test(a_new_room_at_the_second_host),
        cmocka_unit_test(no_room_came_to_be),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
