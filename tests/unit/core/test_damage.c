/* Rows as a damaged disk may have them: each field of each row in turn holds what it never should,
 * and each row in turn is missing. A core is not made of them, or it is, takes what is new, and
 * lives on until its deadlines have come. */
#include "lobbies.h"
#include "seekers.h"

#include <signal.h>
#include <unistd.h>

enum { STEPS = 40, STEP_MS = 45 * 1000 };

#define WIDE ((int64_t)1 << 55)

static const int64_t numbers[] = {0,   1,  2,    3,         5,         7,    100,
                                  127, -1, -128, INT32_MAX, INT32_MIN, WIDE, -WIDE};

/* What is tried now, for the one who looks why the program has ended. */
static char tried[128];

static void say_what_is_tried(int number)
{
    (void)!write(STDERR_FILENO, tried, strlen(tried));
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static void take(struct core *core, struct event *e, struct instant now, struct batch *batch)
{
    core_step(core, e, now, batch);
    core_seal(core, batch);
    core_left(core, batch);
    batch_clear(batch);
}

/* One of each that makes rows. */
static void take_new(struct core *core, struct instant now, struct batch *batch)
{
    static const uint8_t regions[] = {USE, EU};
    struct lobby_wanted wanted = wanted_of(four, FOUR);
    struct event chat = {.kind = EVENT_CHAT_HELLO, .conn = 2001};
    chat.chat_hello.service_token = STR("token");
    chat.chat_hello.chat_server_id = STR("chat");
    chat.chat_hello.regions = (struct chat_list){2, regions, 2};
    struct event events[] = {
        {.kind = EVENT_SERVER_HELLO, .conn = 2000, .server_hello = server_hello_of(2500, 4)},
        {.kind = EVENT_SERVER_HELLO, .conn = 2002, .server_hello = server_hello_of(2000, 4)},
        chat,
        request(2001, 1),
        request(2001, 77),
        {.kind = EVENT_CANCEL, .conn = 2001, .cancel = {1}},
        {.kind = EVENT_OPERATE,
         .conn = 6,
         .operate = {.verb = OPERATE_BAN,
                     .who = STR("root"),
                     .account = STR("p1"),
                     .expires_wall_ms = fixture_wall_ms + 3600 * 1000}},
        {.kind = EVENT_OPERATE,
         .conn = 6,
         .operate = {.verb = OPERATE_CREATE_LOBBY,
                     .fleet = STR("default"),
                     .who = STR("root"),
                     .lobby = &wanted}},
        {.kind = EVENT_SEEK,
         .conn = 7,
         .seek = {.name = STR("t9"),
                  .bus = BUS_HTTP,
                  .player = STR("eve"),
                  .info = STR("{}"),
                  .where = {.fleet = STR("arena"), .region = -1}}},
        {.kind = EVENT_SEEK,
         .conn = 8,
         .seek = {.name = STR("t10"),
                  .bus = BUS_HTTP,
                  .player = STR("eva"),
                  .info = STR("{}"),
                  .where = {.fleet = STR("cluster"), .region = -1}}},
    };
    for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++)
        take(core, &events[i], now, batch);
}

/* What hosts, proxies, operators and game servers say of what was there before: everybody names
 * the first few of all kinds. */
static void hear_of_old(struct core *core, struct instant now, struct batch *batch)
{
    static const enum agent_verb said[] = {AGENT_INITED, AGENT_FAILED, AGENT_EXITED};
    static const enum operate_verb done[] = {
        OPERATE_DRAIN,  OPERATE_END,          OPERATE_KICK,     OPERATE_ABORT_LOBBY,
        OPERATE_SWITCH, OPERATE_DISABLE_HOST, OPERATE_LIFT_BAN, OPERATE_TERMINATE};
    for (int64_t id = 1; id <= 4; id++) {
        take(core, &(struct event){.kind = EVENT_ROUTED, .routed = {.seat = id}}, now, batch);
        for (size_t i = 0; i < sizeof(done) / sizeof(*done); i++) {
            struct event e = {.kind = EVENT_OPERATE, .conn = 6};
            e.operate = (struct operate){.verb = done[i], .target = id, .who = STR("root")};
            take(core, &e, now, batch);
        }
        for (size_t i = 0; i < sizeof(said) / sizeof(*said); i++) {
            struct event e = {.kind = EVENT_AGENT, .conn = 9};
            e.agent = (struct agent_event){.verb = said[i],
                                           .server = id,
                                           .seq = id + (int64_t)i,
                                           .host = STR("host-1"),
                                           .account = STR(ROOMS_ACCOUNT)};
            take(core, &e, now, batch);
        }
    }
}

static void live_on(struct core *core, struct instant now)
{
    struct batch batch = {0};
    take_new(core, now, &batch);
    hear_of_old(core, now, &batch);
    for (int i = 0; i < STEPS; i++) {
        now.core_ms += STEP_MS;
        now.wall_ms += STEP_MS;
        take(core, &(struct event){.kind = EVENT_TICK}, now, &batch);
    }
    batch_done(&batch);
}

static bool try_row(const struct fixture *f, const struct change *damaged)
{
    struct core *core = core_new(&f->config, fixture_secret);
    struct cursor c = cursor_of(f->journal.data, f->journal.len);
    struct change change;
    int err = 0;
    while (!err && change_decode(&c, &change))
        err = core_load(core, &change);
    if (!err)
        err = core_load(core, damaged);
    if (!err)
        err = core_loaded(core, 1, f->now);
    if (!err)
        live_on(core, f->now);
    core_free(core);
    return !err;
}

/* The field holds that number, or is filled with that byte; false when it has no room for it. */
static bool put(struct change *row, const struct row_field *field, int64_t number)
{
    uint8_t *at = (uint8_t *)&row->row_id + field->offset;
    int8_t i8 = (int8_t)number;
    int32_t i32 = (int32_t)number;
    uint16_t len = number < 0 ? 0 : (uint16_t)(number < field->size ? number : field->size);
    switch (field->type) {
    case ROW_i8:
        memcpy(at, &i8, sizeof(i8));
        return i8 == number;
    case ROW_i32:
        memcpy(at, &i32, sizeof(i32));
        return i32 == number;
    case ROW_i64:
        memcpy(at, &number, sizeof(number));
        return true;
    case ROW_text:
        memset(at, 0, field->size);
        memset(at, (uint8_t)number, len > 0 ? len - 1 : 0);
        return true;
    case ROW_bytes:
        memset(at, (uint8_t)number, field->size);
        memcpy((uint8_t *)&row->row_id + field->len_offset, &len, sizeof(len));
        return true;
    case ROW_long:
        *(struct str *)at =
            number <= 0 ? STR("") : (struct str){"\1\2\0\0\0\1\xff\3", (size_t)len % 9};
        return true;
    case ROW_END:
        break;
    }
    return false;
}

struct tally {
    int tried;
    int taken;
};

static void try_fields(struct fixture *f, const struct change *row, struct tally *tally)
{
    for (const struct row_field *field = row_fields(row->kind); field->type != ROW_END; field++) {
        for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
            struct change damaged = *row;
            if (!put(&damaged, field, numbers[i]))
                continue;
            damaged.id = damaged.row_id;
            snprintf(tried, sizeof(tried), "%s %lld: %s = %lld\n", row_kind_name(row->kind),
                     (long long)row->id, field->name, (long long)numbers[i]);
            tally->tried++;
            tally->taken += try_row(f, &damaged);
        }
    }
}

static void damage_all(struct fixture *f)
{
    struct tally tally = {0};
    struct change row;
    seal(f);
    struct cursor c = cursor_of(f->journal.data, f->journal.len);
    (void)signal(SIGABRT, say_what_is_tried);
    (void)signal(SIGSEGV, say_what_is_tried);
    while (change_decode(&c, &row)) {
        if (row.gone)
            continue;
        try_fields(f, &row, &tally);
        snprintf(tried, sizeof(tried), "%s %lld: gone\n", row_kind_name(row.kind),
                 (long long)row.id);
        row.gone = true;
        (void)try_row(f, &row);
    }
    assert_true(tally.tried > 1000 && tally.taken > 0 && tally.taken < tally.tried);
}

static void matches(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 10);
    char token[TOKEN_SIZE];
    open_match(f, chat, 1, token);
    validate(f, conn, 1, 1001, token);
    validate(f, conn, 1, 1002, token);
    player_left(f, conn, 1, 1002);
    open_match(f, chat, 2, NULL);
    cancel(f, chat, 2);
    ask(f, chat, 5);
    damage_all(f);
}

static void lobbies(void **state)
{
    struct fixture *f = *state;
    conn_id player[FOUR];
    char token[TOKEN_SIZE];
    (void)server_up(f, 2000, 1);
    int64_t id = serve_four(f, player, token);
    say_loading(f, player[0], id, 1, true);
    damage_all(f);
}

static void rooms_and_their_line(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "p1,p2,p3,p4");
    queued_at(f, seeks(f, "ann", "p1"), 1);
    bans(f, "p2");
    asks_for(f, "t1", "ben", "", "");
    damage_all(f);
}

static void a_cluster(void **state)
{
    struct fixture *f = *state;
    cluster_up(f, 0);
    (void)cluster_room(f, "ann", "ben");
    asks_cluster(f, "t2", "cid", "", "");
    damage_all(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(matches, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(lobbies, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(rooms_and_their_line, seekers_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_cluster, seekers_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
