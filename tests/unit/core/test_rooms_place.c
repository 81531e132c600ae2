#include "rooms.h"

#include "wire/filter.h"

static void a_room_is_created_and_answered_when_it_opens(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    conn_id conn = create(f, "ann");
    assert_int_equal(count_effects(f, EFFECT_PLACED, conn), 0);
    struct room *room = spawned(f);
    assert_int_equal(room->row.state, ROOM_STARTING);
    assert_int_equal(room->reserved, 1);
    const struct spawn *spawn = nth_effect(f, EFFECT_SPAWN, 0, 0)->spawn;
    assert_true(str_eq(spawn->url, STR("http://host-1:9510")));
    assert_true(str_eq(spawn->fleet, STR("arena")));
    assert_true(str_eq(spawn->version, STR("1.0")));
    assert_true(str_eq(spawn->settings, STR("{\"map\":\"dust\"}")));
    assert_int_equal(spawn->max_players, MAX_PLAYERS);
    init_room(f, room);
    const struct effect *e = answered(f, EFFECT_PLACED, conn, 0);
    assert_true(e->session == room->row.id);
    assert_true(str_eq(e->placed->address, STR("203.0.113.7")));
    assert_int_equal(e->placed->n_ports, 1);
    assert_int_equal(e->placed->ports[0], 38000);
    assert_int_equal(e->placed->n_seats, 1);
    assert_true(str_eq(e->placed->seats[0].account, STR("ann")));
    assert_int_equal(room->row.state, ROOM_OPEN);
    assert_ptr_equal(seat_of(f, "ann")->room, room);
}

static void settings_of_inited_are_put_over_those_asked_for(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    conn_id conn = create(f, "ann");
    struct room *room = spawned(f);
    struct event e = says(room, AGENT_INITED, 1);
    e.agent.settings = STR("{\"map\":\"good\",\"level\":3}");
    step(f, &e);
    const struct effect *placed = answered(f, EFFECT_PLACED, conn, 0);
    assert_true(str_eq(placed->placed->settings, STR("{\"level\":3,\"map\":\"good\"}")));
}

static void what_is_unknown_is_refused_first(void **state)
{
    struct fixture *f = *state;
    struct place_player p = player("ann");
    struct event e = asks(7, PLACE_CREATE, &p);
    e.place.fleet = STR("nowhere");
    step(f, &e);
    answered(f, EFFECT_PLACED, 7, ERR_NO_SUCH_FLEET);
    e.place.fleet = STR("default");
    step(f, &e);
    answered(f, EFFECT_PLACED, 7, ERR_WRONG_PROVIDER);
    e.place.fleet = STR("arena");
    e.place.version = STR("2.0");
    step(f, &e);
    answered(f, EFFECT_PLACED, 7, ERR_NO_VERSION);
    e.place.version = STR("0.9");
    step(f, &e);
    answered(f, EFFECT_PLACED, 7, ERR_VERSION_DISABLED);
    e.place.version = STR("1.0");
    step(f, &e);
    refused_with(f, 7, ERR_NO_HOST, "no healthy host in EU or elsewhere: there is none");
    assert_int_equal(core_next(f->core, ROW_room_ticket, 0), 0);
}

static void the_refusal_says_what_is_wrong_with_the_hosts(void **state)
{
    struct fixture *f = *state;
    f->config.fleets[1].other_regions = false;
    rooms_reconfigure(f);
    host_up(f, 0, EU)->memory = 97;
    host_up(f, 1, EU)->memory = 99;
    host_up(f, 2, EU)->silent = true;
    host_up(f, 3, USE);
    rooms_pass(f, 41 * 1000);
    refused_with(f, create(f, "ann"), ERR_NO_HOST,
                 "no healthy host in EU: 2 overloaded, 1 silent for 41 s");
}

static void the_least_loaded_host_counts_what_was_just_placed(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU)->cpu = 10;
    host_up(f, 1, EU)->cpu = 12.5F;
    rooms_pass(f, HOST_BEAT_MS);
    const char *const want[] = {"host-1", "host-1", "host-1", "host-2", "host-1"};
    for (int i = 0; i < 5; i++) {
        char account[8];
        snprintf(account, sizeof(account), "p%d", i);
        create(f, account);
        assert_string_equal(spawned(f)->host->row.name, want[i]);
    }
}

/* One server on a machine that others keep busy: a guess of 60 % for each that comes would be 240 %
 * in all. It counts all the same, and more of them count more. */
static void what_was_just_placed_never_fills_more_than_there_is(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    h->cpu = 60;
    struct room *room = open_room(f, "ann", NULL);
    host_says(f, h);
    assert_true(room->listed);
    float last = host_load_percent(the_host(f, h));
    assert_true(last > 59.9F && last < 60.1F);
    for (int i = 0; i < 3; i++) {
        char account[8];
        snprintf(account, sizeof(account), "p%d", i);
        create(f, account);
        float load = host_load_percent(the_host(f, h));
        assert_true(load > last && load < 100);
        last = load;
    }
    h->cpu = 100;
    host_says(f, h);
    create(f, "last");
    assert_true(host_load_percent(the_host(f, h)) <= 100);
}

static void hosts_that_get_nothing_are_passed_over(void **state)
{
    struct fixture *f = *state;
    struct fake_host *one = host_up(f, 0, EU);
    host_up(f, 1, EU)->cpu = 90;
    rooms_pass(f, HOST_BEAT_MS);
    one->leaving = true;
    host_says(f, one);
    create(f, "a");
    assert_string_equal(spawned(f)->host->row.name, "host-2");
    one->leaving = false;
    host_says(f, one);
    struct event disable = {.kind = EVENT_OPERATE, .conn = 8};
    disable.operate =
        (struct operate){.verb = OPERATE_DISABLE_HOST, .target = the_host(f, one)->row.id};
    step(f, &disable);
    answered(f, EFFECT_OPERATED, 8, 0);
    create(f, "b");
    assert_string_equal(spawned(f)->host->row.name, "host-2");
    disable.operate.verb = OPERATE_ENABLE_HOST;
    step(f, &disable);
    one->slots = 1;
    host_says(f, one);
    create(f, "c");
    assert_string_equal(spawned(f)->host->row.name, "host-1");
    create(f, "d");
    assert_string_equal(spawned(f)->host->row.name, "host-2");
}

static void another_region_is_taken_where_the_fleet_allows_it(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, USE);
    host_up(f, 1, 16); /* TR: nearer to EU */
    create(f, "ann");
    assert_string_equal(spawned(f)->host->row.name, "host-2");
    struct place_player p = player("ben");
    struct event e = asks(7, PLACE_CREATE, &p);
    e.place.my_region_only = true;
    step(f, &e);
    refused_with(f, 7, ERR_NO_HOST, "no healthy host in EU: there is none");
}

static void the_last_seat_is_won_once(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *room = open_room(f, "p0", NULL);
    for (int i = 1; i < 200; i++) {
        char account[8];
        snprintf(account, sizeof(account), "p%d", i);
        conn_id conn = join(f, account, false);
        if (i < MAX_PLAYERS)
            answered(f, EFFECT_PLACED, conn, 0);
        else
            refused_with(f, conn, ERR_NO_PLACE, "every room that suits is full (1)");
    }
    assert_int_equal(room->reserved, MAX_PLAYERS);
    refused_with(f, enter(f, "late", room->row.id), ERR_NO_PLACE, "the room is full (4 players)");
}

static void a_join_prefers_the_fullest_room_and_lowest_id(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *one = open_room(f, "a", NULL);
    struct room *two = open_room(f, "b", NULL);
    assert_true(answered(f, EFFECT_PLACED, join(f, "c", false), 0)->session == one->row.id);
    assert_true(answered(f, EFFECT_PLACED, enter(f, "d", two->row.id), 0)->session == two->row.id);
    assert_true(answered(f, EFFECT_PLACED, enter(f, "e", two->row.id), 0)->session == two->row.id);
    assert_true(answered(f, EFFECT_PLACED, join(f, "g", false), 0)->session == two->row.id);
    assert_true(answered(f, EFFECT_PLACED, join(f, "h", false), 0)->session == one->row.id);
}

static void who_sits_in_a_full_room_may_join_it_again(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *room = open_room(f, "p0", NULL);
    for (int i = 1; i < MAX_PLAYERS; i++) {
        char account[8];
        snprintf(account, sizeof(account), "p%d", i);
        answered(f, EFFECT_PLACED, join(f, account, false), 0);
    }
    answered(f, EFFECT_PLACED, join(f, "other", false), ERR_NO_PLACE);
    assert_true(answered(f, EFFECT_PLACED, join(f, "p2", false), 0)->session == room->row.id);
    assert_int_equal(room->reserved, MAX_PLAYERS);
}

static void a_join_prefers_its_own_region_then_the_nearest(void **state)
{
    struct fixture *f = *state;
    static const int8_t regions[] = {USE, 16, EU};
    int64_t rooms[3];
    for (int i = 0; i < 3; i++) {
        char account[8];
        snprintf(account, sizeof(account), "p%d", i);
        host_up(f, i, regions[i]);
        struct place_player p = player(account);
        struct event e = asks(new_conn(f), PLACE_CREATE, &p);
        e.place.region = regions[i];
        step(f, &e);
        struct room *room = spawned(f);
        assert_int_equal(room->row.region, regions[i]);
        rooms[i] = room->row.id;
        init_room(f, room);
    }
    for (int i = 0; i < 9; i++) {
        char account[8];
        snprintf(account, sizeof(account), "q%d", i);
        int64_t want = rooms[2 - i / 3];
        assert_true(answered(f, EFFECT_PLACED, join(f, account, false), 0)->session == want);
    }
}

static void a_join_looks_at_the_settings(void **state)
{
    struct fixture *f = *state;
    char why[FILTER_WHY_MAX];
    host_up(f, 0, EU);
    struct room *room = open_room(f, "a", NULL);
    struct filter *dust = filter_parse(STR("{\"map\":\"dust\"}"), why);
    struct filter *ice = filter_parse(STR("{\"map\":\"ice\"}"), why);
    struct place_player p = player("b");
    struct event e = asks(7, PLACE_JOIN, &p);
    e.place.filter = ice;
    step(f, &e);
    refused_with(f, 7, ERR_NO_PLACE, "none of 1 open rooms suits");
    e.place.filter = dust;
    step(f, &e);
    assert_true(answered(f, EFFECT_PLACED, 7, 0)->session == room->row.id);
    struct event update = says(room, AGENT_UPDATE_SETTINGS, 2);
    update.agent.settings = STR("{ \"map\" : \"ice\" }");
    step(f, &update);
    answered(f, EFFECT_AGENT, 901, 0);
    p = player("c");
    step(f, &e);
    answered(f, EFFECT_PLACED, 7, ERR_NO_PLACE);
    e.place.filter = ice;
    step(f, &e);
    answered(f, EFFECT_PLACED, 7, 0);
    filter_free(dust);
    filter_free(ice);
}

static void a_join_without_a_room_creates_one(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    refused_with(f, join(f, "a", false), ERR_NO_PLACE, "there is no open room of arena 1.0");
    conn_id conn = join(f, "a", true);
    struct room *room = spawned(f);
    answered(f, EFFECT_PLACED, enter(f, "b", room->row.id), ERR_ROOM_STARTING);
    init_room(f, room);
    assert_true(answered(f, EFFECT_PLACED, conn, 0)->session == room->row.id);
    answered(f, EFFECT_PLACED, enter(f, "b", 999), ERR_NO_ROOM);
}

static void several_are_placed_together_or_not_at_all(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *room = open_room(f, "a", NULL);
    struct place_player four[] = {player("b"), player("c"), player("d"), player("e")};
    struct event e = asks(7, PLACE_JOIN, four);
    e.place.n_players = 4;
    e.place.multi = true;
    step(f, &e);
    answered(f, EFFECT_PLACED, 7, ERR_NO_PLACE);
    assert_int_equal(room->reserved, 1);
    e.place.n_players = 3;
    step(f, &e);
    const struct effect *placed = answered(f, EFFECT_PLACED, 7, 0);
    assert_int_equal(placed->placed->n_seats, 3);
    assert_true(seat_of(f, "c")->row.multi == placed->ticket);
    struct place_player five[5];
    for (int i = 0; i < 5; i++)
        five[i] = player((const char *[]){"f", "g", "h", "i", "j"}[i]);
    e = asks(7, PLACE_CREATE, five);
    e.place.n_players = 5;
    step(f, &e);
    refused_with(f, 7, ERR_BAD_ARGUMENT, "a room of arena holds at most 4 players, not 5");
    five[1] = five[0];
    e.place.n_players = 2;
    step(f, &e);
    refused_with(f, 7, ERR_BAD_ARGUMENT, "a player is named twice");
}

static void a_player_has_one_seat_and_moves_with_it(void **state)
{
    struct fixture *f = *state;
    char key[SEAT_KEY_SIZE];
    host_up(f, 0, EU);
    struct room *one = open_room(f, "a", key);
    struct room *two = open_room(f, "b", NULL);
    say_joined(f, one, key, 2, 0);
    answered(f, EFFECT_PLACED, enter(f, "a", two->row.id), 0);
    const struct effect *kick = nth_effect(f, EFFECT_KICK_SEAT, 0, 0);
    assert_non_null(kick);
    assert_true(kick->object == one->row.server);
    assert_true(str_eq(kick->token, str_of(key)));
    assert_int_equal(one->taken + one->reserved, 0);
    assert_ptr_equal(seat_of(f, "a")->room, two);
}

static void a_failed_attempt_leaves_the_old_seat_alone(void **state)
{
    struct fixture *f = *state;
    char key[SEAT_KEY_SIZE];
    host_up(f, 0, EU);
    struct room *one = open_room(f, "a", key);
    say_joined(f, one, key, 2, 0);
    conn_id conn = create(f, "a");
    struct room *two = spawned(f);
    assert_ptr_equal(seat_of(f, "a")->room, one);
    struct event e = says(two, AGENT_FAILED, 1);
    e.agent.text = STR("no such file");
    step(f, &e);
    refused_with(f, conn, ERR_SPAWN_FAILED, "no such file");
    assert_ptr_equal(seat_of(f, "a")->room, one);
    assert_int_equal(seat_of(f, "a")->row.state, ROOM_SEAT_TAKEN);
    rooms_pass(f, 20 * 1000);
    conn = create(f, "a");
    init_room(f, spawned(f));
    answered(f, EFFECT_PLACED, conn, 0);
    assert_int_equal(count_effects(f, EFFECT_KICK_SEAT, 0), 1);
    assert_ptr_not_equal(seat_of(f, "a")->room, one);
}

static void the_same_room_again_is_the_same_seat(void **state)
{
    struct fixture *f = *state;
    char key[SEAT_KEY_SIZE];
    char again[SEAT_KEY_SIZE];
    host_up(f, 0, EU);
    struct room *room = open_room(f, "a", key);
    rooms_pass(f, 20 * 1000);
    key_of_answer(f, enter(f, "a", room->row.id), again);
    assert_string_equal(key, again);
    rooms_pass(f, 20 * 1000);
    assert_int_equal(room->reserved, 1);
    say_joined(f, room, key, 2, 0);
    key_of_answer(f, enter(f, "a", room->row.id), again);
    assert_string_not_equal(key, again);
    assert_int_equal(count_effects(f, EFFECT_KICK_SEAT, 0), 1);
    assert_int_equal(room->reserved + room->taken, 1);
}

static void a_key_makes_a_repeat_the_same_request(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct place_player p = player("a");
    struct event e = asks(7, PLACE_CREATE, &p);
    e.place.key = STR("k");
    step(f, &e);
    struct room *room = spawned(f);
    e.conn = 8;
    step(f, &e);
    assert_int_equal(count_effects(f, EFFECT_SPAWN, 0), 0);
    init_room(f, room);
    assert_true(answered(f, EFFECT_PLACED, 7, 0)->session == room->row.id);
    assert_true(answered(f, EFFECT_PLACED, 8, 0)->session == room->row.id);
    e.conn = 9;
    step(f, &e);
    assert_true(answered(f, EFFECT_PLACED, 9, 0)->session == room->row.id);
    e.place.arguments[0] = 1;
    step(f, &e);
    answered(f, EFFECT_PLACED, 9, ERR_KEY_CONFLICT);
    crash(f, 1000);
    e.place.arguments[0] = 0;
    step(f, &e);
    assert_true(answered(f, EFFECT_PLACED, 9, 0)->session != 0);
    p = player("b");
    step(f, &e);
    refused_with(f, 9, ERR_NO_HOST, "no healthy host in EU or elsewhere: 1 silent for 0 s");
}

static void who_asks_too_often_waits(void **state)
{
    struct fixture *f = *state;
    f->config.create_rates[0] = (struct rate_limit){2, 60 * 1000};
    rooms_reconfigure(f);
    host_up(f, 0, EU);
    (void)open_room(f, "a", NULL);
    (void)open_room(f, "a", NULL);
    const struct effect *e = answered(f, EFFECT_PLACED, create(f, "a"), ERR_RATE_LIMITED);
    int64_t wait_ms = e->placed->retry_after_ms;
    assert_in_range(wait_ms, 50 * 1000, 60 * 1000);
    (void)open_room(f, "b", NULL);
    rooms_pass(f, wait_ms);
    create(f, "a");
    (void)spawned(f);
}

static void a_banned_player_is_refused_by_name(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct event ban = {.kind = EVENT_OPERATE, .conn = 6};
    ban.operate = (struct operate){.verb = OPERATE_BAN,
                                   .account = STR("bad"),
                                   .reason = STR("cheats"),
                                   .expires_wall_ms = f->now.wall_ms + 1000 * 1000};
    step(f, &ban);
    int64_t id = answered(f, EFFECT_OPERATED, 6, 0)->object;
    struct place_player two[] = {player("good"), player("bad")};
    struct event e = asks(7, PLACE_CREATE, two);
    e.place.n_players = 2;
    step(f, &e);
    const struct effect *refusal = answered(f, EFFECT_PLACED, 7, ERR_BANNED);
    assert_true(str_eq(refusal->placed->refused, STR("bad")));
    assert_true(refusal->placed->ban == id);
    assert_true(str_eq(refusal->placed->ban_reason, STR("cheats")));
    refused_with(f, 7, ERR_BANNED, "player bad is banned: cheats");
    /* His address is known now, so others from there are out as well. */
    refused_with(f, create(f, "good"), ERR_BANNED, "the address of player good is banned: cheats");
}

static void a_ban_takes_the_seats_away(void **state)
{
    struct fixture *f = *state;
    char key[SEAT_KEY_SIZE];
    host_up(f, 0, EU);
    struct room *room = open_room(f, "bad", key);
    say_joined(f, room, key, 2, 0);
    conn_id conn = create(f, "bad");
    struct room *starting = spawned(f);
    struct event ban = {.kind = EVENT_OPERATE, .conn = 6};
    ban.operate = (struct operate){.verb = OPERATE_BAN,
                                   .account = STR("bad"),
                                   .reason = STR("cheats"),
                                   .expires_wall_ms = f->now.wall_ms + 1000};
    step(f, &ban);
    int64_t id = answered(f, EFFECT_OPERATED, 6, 0)->object;
    assert_int_equal(count_effects(f, EFFECT_KICK_SEAT, 0), 1);
    assert_true(str_eq(nth_effect(f, EFFECT_KICK_SEAT, 0, 0)->text, STR("cheats")));
    assert_null(seat_of(f, "bad"));
    /* Nobody is to come to the room that is starting, so it is not waited for. */
    assert_true(answered(f, EFFECT_PLACED, conn, ERR_BANNED)->placed->ban == id);
    refused_with(f, conn, ERR_BANNED, "player bad is banned: cheats");
    assert_int_equal(starting->row.state, ROOM_ENDING);
    assert_int_equal(starting->row.end_reason, END_GIVEN_UP);
    assert_true(nth_effect(f, EFFECT_TERMINATE, 0, 0)->object == starting->row.server);
}

static void a_room_that_is_starting_goes_on_for_those_who_are_left(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct place_player two[] = {player("bad"), player("good")};
    struct event e = asks(7, PLACE_CREATE, two);
    e.place.n_players = 2;
    e.place.multi = true;
    step(f, &e);
    struct room *room = spawned(f);
    struct event ban = {.kind = EVENT_OPERATE, .conn = 6};
    ban.operate = (struct operate){.verb = OPERATE_BAN,
                                   .account = STR("bad"),
                                   .reason = STR("cheats"),
                                   .expires_wall_ms = f->now.wall_ms + 1000};
    step(f, &ban);
    assert_int_equal(room->row.state, ROOM_STARTING);
    init_room(f, room);
    const struct effect *answer = answered(f, EFFECT_PLACED, 7, 0);
    assert_int_equal(answer->placed->n_seats, 1);
    assert_true(str_eq(answer->placed->seats[0].account, STR("good")));
}

static void limits_hold(void **state)
{
    struct fixture *f = *state;
    f->config.limits.rooms = 2;
    rooms_reconfigure(f);
    host_up(f, 0, EU);
    create(f, "a");
    create(f, "b");
    answered(f, EFFECT_PLACED, create(f, "c"), ERR_TOO_MANY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROOMS_TEST(a_room_is_created_and_answered_when_it_opens),
        ROOMS_TEST(settings_of_inited_are_put_over_those_asked_for),
        ROOMS_TEST(what_is_unknown_is_refused_first),
        ROOMS_TEST(the_refusal_says_what_is_wrong_with_the_hosts),
        ROOMS_TEST(the_least_loaded_host_counts_what_was_just_placed),
        ROOMS_TEST(what_was_just_placed_never_fills_more_than_there_is),
        ROOMS_TEST(hosts_that_get_nothing_are_passed_over),
        ROOMS_TEST(another_region_is_taken_where_the_fleet_allows_it),
        ROOMS_TEST(the_last_seat_is_won_once),
        ROOMS_TEST(a_join_prefers_the_fullest_room_and_lowest_id),
        ROOMS_TEST(who_sits_in_a_full_room_may_join_it_again),
        ROOMS_TEST(a_join_prefers_its_own_region_then_the_nearest),
        ROOMS_TEST(a_join_looks_at_the_settings),
        ROOMS_TEST(a_join_without_a_room_creates_one),
        ROOMS_TEST(several_are_placed_together_or_not_at_all),
        ROOMS_TEST(a_player_has_one_seat_and_moves_with_it),
        ROOMS_TEST(a_failed_attempt_leaves_the_old_seat_alone),
        ROOMS_TEST(the_same_room_again_is_the_same_seat),
        ROOMS_TEST(a_key_makes_a_repeat_the_same_request),
        ROOMS_TEST(who_asks_too_often_waits),
        ROOMS_TEST(a_banned_player_is_refused_by_name),
        ROOMS_TEST(a_ban_takes_the_seats_away),
        ROOMS_TEST(a_room_that_is_starting_goes_on_for_those_who_are_left),
        ROOMS_TEST(limits_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
