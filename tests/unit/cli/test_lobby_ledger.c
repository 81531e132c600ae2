/* The books of the matchmaker: what cannot be true of a lobby and its players must be found, for a
 * summary that is always content says nothing. */
#include "cli/lobby_ledger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { ID = 1 << 30, ANNA = 7, BEN = 8 };

static const struct str ip = STR("10.0.0.1");
static const struct str token = STR("MATCH_1");

struct books {
    struct ledger ledger;
    struct ledger_lobby *lobby; /* of Anna and Ben, both connected, created at 1000 */
    char text[LEDGER_TEXT_MAX];
};

static void open_books(struct books *k, bool requeue)
{
    *k = (struct books){0};
    k->lobby = ledger_add(&k->ledger, ID, requeue, 1000);
    ledger_add_player(k->lobby, ANNA, 0);
    ledger_add_player(k->lobby, BEN, 0);
}

static void start(struct books *k, int32_t account, struct str with)
{
    ledger_heard_start(&k->ledger, ID, account, ip, 7777, with, 2000);
}

static void abort_it(struct books *k, int32_t account, bool requeued)
{
    ledger_heard_abort(&k->ledger, ID, account, STR("Loading timeout"), requeued, 5000);
}

static void said(struct books *k, const char *state, const char *cause, const char *queue)
{
    ledger_said(
        &k->ledger, k->lobby,
        &(struct ledger_news){
            .known = true, .state = str_of(state), .cause = str_of(cause), .queue = str_of(queue)});
}

/* Closes the books; clause = what must be wrong, NULL = nothing. */
static void judge(struct books *k, const char *clause)
{
    const char *wrong = ledger_wrong(k->lobby, k->text);
    struct buf summary = {0};
    size_t n = ledger_put_summary(&summary, &k->ledger);
    buf_append(&summary, "", 1);
    bool content = strstr((const char *)summary.data, "exactly one") != NULL;
    bool complains = strstr((const char *)summary.data, "WRONG: lobby 1073741824") != NULL;
    if (clause) {
        assert_non_null(wrong);
        assert_non_null(strstr(wrong, clause));
    } else {
        assert_null(wrong);
    }
    assert_int_equal(n, clause ? 1 : 0);
    assert_int_equal(content, !clause);
    assert_int_equal(complains, clause != NULL);
    buf_done(&summary);
    ledger_done(&k->ledger);
}

static void test_started_and_ended_is_well(void **state)
{
    struct books k;
    (void)state;
    open_books(&k, false);
    start(&k, ANNA, token);
    start(&k, BEN, token);
    start(&k, BEN, token); /* again, after he came back */
    said(&k, "started", "", "in_match");
    said(&k, "ended", "", "not_queued");
    judge(&k, NULL);
}

static void test_aborted_is_well(void **state)
{
    struct books k;
    (void)state;
    open_books(&k, true);
    abort_it(&k, ANNA, true);
    abort_it(&k, BEN, true);
    said(&k, "aborted", "loading", "queued");
    judge(&k, NULL);
}

static void test_neither_is_found(void **state)
{
    struct books k;
    (void)state;
    open_books(&k, false);
    said(&k, "loading", "", "in_lobby");
    judge(&k, "neither started nor");
}

static void test_start_of_an_aborted_one_is_found(void **state)
{
    struct books k;
    (void)state;
    open_books(&k, false);
    start(&k, ANNA, token);
    abort_it(&k, ANNA, false);
    abort_it(&k, BEN, false);
    said(&k, "aborted", "loading", "not_queued");
    judge(&k, "player 7 heard that it started, and it was aborted");
}

static void test_start_after_the_abort_is_found(void **state)
{
    struct books k;
    (void)state;
    open_books(&k, false);
    abort_it(&k, ANNA, false);
    start(&k, ANNA, token);
    start(&k, BEN, token);
    said(&k, "started", "", "in_match");
    judge(&k, "after it was aborted");
}

static void test_second_start_with_another_token_is_found(void **state)
{
    struct books k;
    (void)state;
    open_books(&k, false);
    start(&k, ANNA, token);
    start(&k, BEN, STR("MATCH_2"));
    said(&k, "started", "", "in_match");
    judge(&k, "started twice");
}

static void test_player_who_stayed_and_heard_nothing_is_found(void **state)
{
    struct books k;
    (void)state;
    open_books(&k, false);
    start(&k, ANNA, token);
    said(&k, "started", "", "in_match");
    judge(&k, "player 8 did not hear that it started");
    open_books(&k, false);
    abort_it(&k, BEN, false);
    said(&k, "aborted", "loading", "not_queued");
    judge(&k, "player 7 did not hear that it was aborted");
}

static void test_player_who_was_away_may_miss_a_start(void **state)
{
    struct books k;
    (void)state;
    open_books(&k, false);
    ledger_left(&k.ledger, BEN, true, 1500);
    start(&k, ANNA, token);
    said(&k, "ended", "", "not_queued");
    judge(&k, NULL);
}

/* Ben hears the start, loses his connection and is welcomed again; Muster says twice since then
 * that the match lasts. */
static void lose_and_welcome_ben(struct books *k)
{
    open_books(k, false);
    start(k, ANNA, token);
    start(k, BEN, token);
    said(k, "started", "", "in_match");
    ledger_left(&k->ledger, BEN, true, 3000);
    ledger_came(&k->ledger, BEN);
    said(k, "started", "", "in_match");
}

static void test_start_is_said_on_every_connection(void **state)
{
    struct books k;
    (void)state;
    lose_and_welcome_ben(&k);
    said(&k, "ended", "", "not_queued");
    judge(&k, "player 8 was connected while it was played, and was not told its start");
    lose_and_welcome_ben(&k);
    ledger_left(&k.ledger, BEN, true, 4000); /* found as his connection ends, too */
    ledger_came(&k.ledger, BEN);
    start(&k, BEN, token);
    judge(&k, "player 8 was connected while it was played, and was not told its start");
}

static void test_start_said_again_is_well(void **state)
{
    struct books k;
    (void)state;
    lose_and_welcome_ben(&k);
    start(&k, BEN, token);
    said(&k, "started", "", "in_match");
    judge(&k, NULL);
}

static void test_start_that_cannot_have_been_read_may_be_missed(void **state)
{
    struct books k;
    (void)state;
    lose_and_welcome_ben(&k);
    ledger_left(&k.ledger, BEN, false, 4000); /* he went without listening to the end */
    said(&k, "started", "", "in_match");
    judge(&k, NULL);
    open_books(&k, false);
    ledger_left(&k.ledger, BEN, true, 1500);
    start(&k, ANNA, token);
    ledger_came(&k.ledger, BEN);
    said(&k, "started", "", "in_match"); /* only now: it may be under way to him */
    judge(&k, NULL);
}

static void test_only_the_newest_lobby_is_told_again(void **state)
{
    struct books k;
    (void)state;
    open_books(&k, false);
    start(&k, ANNA, token);
    start(&k, BEN, token);
    said(&k, "started", "", "in_match");
    struct ledger_lobby *newer = ledger_add(&k.ledger, ID + 1, false, 2500);
    ledger_add_player(newer, BEN, 0);
    ledger_heard_abort(&k.ledger, ID + 1, BEN, STR("Loading timeout"), false, 5000);
    ledger_said(&k.ledger, newer, &(struct ledger_news){.known = true, .state = STR("aborted")});
    ledger_left(&k.ledger, BEN, true, 3000);
    ledger_came(&k.ledger, BEN);
    said(&k, "started", "", "in_match");
    judge(&k, NULL);
}

static void test_player_kept_out_of_a_match_that_lasts_is_found(void **state)
{
    struct books k;
    (void)state;
    open_books(&k, false);
    start(&k, ANNA, token);
    start(&k, BEN, token);
    ledger_turned_away(&k.ledger, ID, BEN);
    said(&k, "started", "", "in_match");
    judge(&k, "player 8 was not let in");
    open_books(&k, false);
    start(&k, ANNA, token);
    start(&k, BEN, token);
    said(&k, "started", "", "in_match");
    ledger_turned_away(&k.ledger, ID, BEN); /* it may have been over by then */
    said(&k, "ended", "", "not_queued");
    judge(&k, NULL);
}

static void test_abort_is_owed_to_those_who_were_away(void **state)
{
    struct books k;
    (void)state;
    open_books(&k, false);
    ledger_left(&k.ledger, BEN, true, 1500);
    abort_it(&k, ANNA, false);
    said(&k, "aborted", "disconnected", "not_queued");
    ledger_came(&k.ledger, BEN);
    judge(&k, "player 8 was away, and did not hear later");
}

static void test_abort_heard_later_is_well(void **state)
{
    struct books k;
    (void)state;
    open_books(&k, false);
    ledger_left(&k.ledger, BEN, true, 1500);
    abort_it(&k, ANNA, false);
    said(&k, "aborted", "disconnected", "not_queued");
    ledger_came(&k.ledger, BEN);
    abort_it(&k, BEN, false);
    judge(&k, NULL);
}

static void test_abort_under_way_to_who_leaves_may_be_missed(void **state)
{
    struct books k;
    (void)state;
    open_books(&k, false);
    ledger_left(&k.ledger, BEN, true, 4900);
    abort_it(&k, ANNA, false);
    said(&k, "aborted", "loading", "not_queued");
    judge(&k, NULL);
}

static void test_wrong_word_about_the_queue_is_found(void **state)
{
    struct books k;
    (void)state;
    open_books(&k, true);
    abort_it(&k, ANNA, true);
    abort_it(&k, BEN, false);
    said(&k, "aborted", "loading", "queued");
    judge(&k, "player 8 heard that he is not queued");
    open_books(&k, true);
    abort_it(&k, ANNA, true);
    abort_it(&k, BEN, true);
    said(&k, "aborted", "loading", "not_queued");
    judge(&k, "groups are not_queued, and should be queued");
}

static void test_abort_of_a_match_that_ended_well_is_found(void **state)
{
    struct books k;
    (void)state;
    open_books(&k, false);
    start(&k, ANNA, token);
    start(&k, BEN, token);
    abort_it(&k, BEN, false);
    said(&k, "ended", "", "not_queued");
    judge(&k, "player 8 heard that it was aborted, and it was not");
}

static void test_match_broken_off_is_told(void **state)
{
    struct books k;
    (void)state;
    open_books(&k, false);
    start(&k, ANNA, token);
    start(&k, BEN, token);
    abort_it(&k, ANNA, false);
    said(&k, "ended", "server", "not_queued");
    judge(&k, "player 8 did not hear that it ended");
}

static void test_moves_that_cannot_be_are_found(void **state)
{
    struct books k;
    (void)state;
    open_books(&k, false);
    start(&k, ANNA, token);
    start(&k, BEN, token);
    said(&k, "started", "", "in_match");
    said(&k, "aborted", "loading", "not_queued");
    judge(&k, "Muster says that it is aborted");
}

static void test_forgotten_lobby_is_found(void **state)
{
    struct books k;
    (void)state;
    open_books(&k, false);
    ledger_said(&k.ledger, k.lobby, &(struct ledger_news){.known = false});
    judge(&k, "Muster does not know it");
}

static void test_lobby_nobody_was_told_the_creation_of_is_taken_up(void **state)
{
    struct books k = {0};
    (void)state;
    ledger_heard_abort(&k.ledger, ID, ANNA, STR("Player disconnected"), true, 5000);
    k.lobby = ledger_find(&k.ledger, ID);
    assert_non_null(k.lobby);
    ledger_said(
        &k.ledger, k.lobby,
        &(struct ledger_news){
            .known = true, .state = STR("aborted"), .queue = STR("queued"), .requeue = true});
    judge(&k, NULL);
}

static void test_summary_counts_by_reason(void **state)
{
    struct ledger l = {0};
    struct buf out = {0};
    (void)state;
    for (int32_t i = 0; i < 3; i++) {
        struct ledger_lobby *b = ledger_add(&l, ID + i, false, 0);
        ledger_said(&l, b,
                    &(struct ledger_news){.known = true,
                                          .state = STR("aborted"),
                                          .reason = i ? STR("Loading timeout")
                                                      : STR("Player disconnected")});
    }
    ledger_said(&l, ledger_add(&l, ID + 3, false, 0),
                &(struct ledger_news){.known = true, .state = STR("ended")});
    assert_int_equal(ledger_put_summary(&out, &l), 0);
    buf_append(&out, "", 1);
    const char *text = (const char *)out.data;
    assert_non_null(strstr(text, "4 lobbies created: 1 started, 3 aborted, 0 still open\n"));
    assert_non_null(strstr(text, "aborted 2: Loading timeout\n  aborted 1: Player disconnected\n"));
    buf_done(&out);
    ledger_done(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_started_and_ended_is_well),
        cmocka_unit_test(test_aborted_is_well),
        cmocka_unit_test(test_neither_is_found),
        cmocka_unit_test(test_start_of_an_aborted_one_is_found),
        cmocka_unit_test(test_start_after_the_abort_is_found),
        cmocka_unit_test(test_second_start_with_another_token_is_found),
        cmocka_unit_test(test_player_who_stayed_and_heard_nothing_is_found),
        cmocka_unit_test(test_player_who_was_away_may_miss_a_start),
        cmocka_unit_test(test_start_is_said_on_every_connection),
        cmocka_unit_test(test_start_said_again_is_well),
        cmocka_unit_test(test_start_that_cannot_have_been_read_may_be_missed),
        cmocka_unit_test(test_only_the_newest_lobby_is_told_again),
        cmocka_unit_test(test_player_kept_out_of_a_match_that_lasts_is_found),
        cmocka_unit_test(test_abort_is_owed_to_those_who_were_away),
        cmocka_unit_test(test_abort_heard_later_is_well),
        cmocka_unit_test(test_abort_under_way_to_who_leaves_may_be_missed),
        cmocka_unit_test(test_wrong_word_about_the_queue_is_found),
        cmocka_unit_test(test_abort_of_a_match_that_ended_well_is_found),
        cmocka_unit_test(test_match_broken_off_is_told),
        cmocka_unit_test(test_moves_that_cannot_be_are_found),
        cmocka_unit_test(test_forgotten_lobby_is_found),
        cmocka_unit_test(test_lobby_nobody_was_told_the_creation_of_is_taken_up),
        cmocka_unit_test(test_summary_counts_by_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
