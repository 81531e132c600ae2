/* How slowly a backup may be taken. */
#include "api/backup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { PIECE = 4096 };

/* How many pieces a client gets who takes each in so long. */
static int pieces(int64_t ms, int max)
{
    struct backup_pace pace = {0};
    int n = 0;
    while (n < max && backup_pace_holds(&pace, PIECE, n ? ms : 0))
        n++;
    return n;
}

static void a_steady_client_gets_all(void **state)
{
    (void)state;
    int64_t slowest = (int64_t)BACKUP_STRIDE_MS * PIECE / BACKUP_STRIDE;
    assert_int_equal(pieces(0, 1000000), 1000000);
    assert_int_equal(pieces(slowest, 1000000), 1000000);
}

static void one_who_trickles_is_cut_off(void **state)
{
    (void)state;
    assert_int_equal(pieces(1000, 1000000), BACKUP_STRIDE_MS / 1000 + 1);
    assert_int_equal(pieces(BACKUP_STRIDE_MS + 1, 1000000), 1);
}

static void having_been_fast_is_no_credit(void **state)
{
    (void)state;
    struct backup_pace pace = {0};
    for (int i = 0; i < 100; i++)
        assert_true(backup_pace_holds(&pace, BACKUP_STRIDE, 1));
    assert_true(backup_pace_holds(&pace, PIECE, BACKUP_STRIDE_MS));
    assert_false(backup_pace_holds(&pace, PIECE, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_steady_client_gets_all),
        cmocka_unit_test(one_who_trickles_is_cut_off),
        cmocka_unit_test(having_been_fast_is_no_credit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
