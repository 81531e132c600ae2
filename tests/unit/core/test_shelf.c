#include "rooms.h"

/* Rooms whose seats come and go at random: the shelf is always sorted and holds just the open ones.
 */
static void a_shelf_is_always_sorted(void **state)
{
    (void)state;
    enum { ROOMS = 200, STEPS = 20000 };
    static struct version version;
    static struct room rooms[ROOMS];
    struct dice d = {11};
    memset(rooms, 0, sizeof(rooms));
    for (int i = 0; i < ROOMS; i++) {
        rooms[i].row.id = i + 1;
        rooms[i].row.region = EU;
        rooms[i].row.max_players = 8;
        rooms[i].version = &version;
    }
    const struct shelf *s = &version.shelves[EU];
    for (int step_ = 0; step_ < STEPS; step_++) {
        struct room *room = &rooms[dice_below(&d, ROOMS)];
        room->row.state = dice_below(&d, 4) == 0 ? ROOM_ENDING : ROOM_OPEN;
        room->reserved = (int32_t)dice_below(&d, 5);
        room->taken = (int32_t)dice_below(&d, 5);
        shelf_update(room);
        size_t open = 0;
        for (int i = 0; i < ROOMS; i++)
            open += rooms[i].row.state == ROOM_OPEN;
        assert_int_equal(s->n, open);
        size_t first = shelf_first(s, 3);
        for (size_t i = 0; i < s->n; i++)
            assert_int_equal(room_free_seats(s->rooms[i]) >= 3, i >= first);
        for (size_t i = 1; i < s->n; i++) {
            int32_t a = room_free_seats(s->rooms[i - 1]);
            int32_t b = room_free_seats(s->rooms[i]);
            assert_true(a < b || (a == b && s->rooms[i - 1]->row.id < s->rooms[i]->row.id));
        }
    }
    shelf_done(&version.shelves[EU]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_shelf_is_always_sorted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
