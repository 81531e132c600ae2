#include "seekers.h"

/* His seat is taken since it was given; that his key was shown is written down all the same. */
static void a_key_is_not_taken_while_that_cannot_be_stored(void **state)
{
    struct fixture *f = *state;
    char key[SEAT_KEY_SIZE];
    host_up(f, 0, EU);
    struct room *room = room_with(f, "ann");
    (void)seat_key(f->core, seat_of(f, "ann")->row.id, key);
    step(f, &(struct event){.kind = EVENT_STORE_DOWN});
    say_joined(f, room, key, 2, ERR_INTERNAL);
    assert_true(seat_of(f, "ann")->row.joined_seq == 0);
    step(f, &(struct event){.kind = EVENT_STORE_UP});
    say_joined(f, room, key, 2, 0);
    step(f, &(struct event){.kind = EVENT_STORE_DOWN});
    say_joined(f, room, key, 2, 0); /* a repeat changes nothing */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SEEKERS_TEST(a_key_is_not_taken_while_that_cannot_be_stored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
