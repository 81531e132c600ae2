/* Operators: drains, ends, enrolment tokens, keys, the audit, a configuration read again. */
#include "core/operate.h"

#include "fixture.h"

enum { OPERATOR = 900 };

static struct operate verb(enum operate_verb v, int64_t target)
{
    return (struct operate){.verb = v,
                            .target = target,
                            .who = STR("admin"),
                            .address = STR("127.0.0.1"),
                            .role = ROLE_SERVER,
                            .fleet = STR("default"),
                            .regions = (uint64_t)1 << EU};
}

static const struct effect *say(struct fixture *f, struct operate o)
{
    struct event e = {.kind = EVENT_OPERATE, .conn = OPERATOR, .operate = o};
    step(f, &e);
    return effect(f, EFFECT_OPERATED, OPERATOR);
}

/* The text of a new token. */
static int64_t enrol(struct fixture *f, struct operate o, char text[ENROLMENT_TOKEN_SIZE])
{
    const struct effect *e = say(f, o);
    assert_int_equal(e->err, 0);
    assert_true(str_copy(text, ENROLMENT_TOKEN_SIZE, e->token));
    return e->object;
}

static int hello_with(struct fixture *f, const char *token, int32_t port, conn_id *ret_conn)
{
    struct chat_sv_handshake hello = server_hello_of(port, 2);
    hello.server_token = str_of(token);
    *ret_conn = say_server_hello(f, hello);
    return effect(f, EFFECT_SERVER_HELLO, *ret_conn)->err;
}

static int strict_setup(void **state)
{
    struct fixture *f = fixture_new();
    f->config.any_token = false;
    struct event e = {.kind = EVENT_CONFIGURE, .configure = &f->config};
    step(f, &e);
    *state = f;
    return 0;
}

#define STRICT_TEST(name) cmocka_unit_test_setup_teardown(name, strict_setup, fixture_teardown)

/* ── ending a match ────────────────────────────────────────────────────────────────────────── */

static void ends_an_open_match_for_everybody(void **state)
{
    struct fixture *f = *state;
    conn_id conn = server_up(f, 2000, 2);
    conn_id chat = chat_up(f, "chat");
    open_match(f, chat, 1, NULL);
    int64_t id = session_of(f, 1)->row.id;
    assert_int_equal(say(f, verb(OPERATE_END, id))->err, 0);
    assert_int_equal(effect(f, EFFECT_CANCEL, conn)->lobby, 1);
    const struct effect *news = effect(f, EFFECT_MATCH_EVENT, chat);
    assert_int_equal(news->event, MATCH_ENDED);
    assert_true(str_eq(news->text, STR("Ended by an operator")));
    assert_int_equal(say(f, verb(OPERATE_END, id))->err, ERR_ALREADY_OVER);
    cancel_ack(f, conn, 1);
    assert_int_equal(server_of(f, conn)->held, 0);
}

static void ends_one_that_is_being_opened(void **state)
{
    struct fixture *f = *state;
    conn_id conn = server_up(f, 2000, 2);
    conn_id chat = chat_up(f, "chat");
    ask(f, chat, 1);
    assert_int_equal(say(f, verb(OPERATE_END, session_of(f, 1)->row.id))->err, 0);
    assert_int_equal(effect(f, EFFECT_CANCEL, conn)->lobby, 1);
    answered(f, EFFECT_ALLOCATED, chat, ERR_TICKET_CANCELLED);
}

static void unknown_things_are_not_found(void **state)
{
    struct fixture *f = *state;
    static const enum operate_verb verbs[] = {OPERATE_DRAIN, OPERATE_UNDRAIN, OPERATE_END,
                                              OPERATE_REVOKE, OPERATE_ROTATE};
    for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
        assert_int_equal(say(f, verb(verbs[i], 77))->err, ERR_NOT_FOUND);
    assert_int_equal(core_next(f->core, ROW_audit, 0), 0); /* a refusal leaves no trace */
}

/* ── enrolment tokens ──────────────────────────────────────────────────────────────────────── */

static void token_lets_its_role_into_its_regions(void **state)
{
    struct fixture *f = *state;
    char token[ENROLMENT_TOKEN_SIZE];
    conn_id conn;
    assert_int_equal(hello_with(f, "guess", 2000, &conn), ERR_INVALID_TOKEN);
    enrol(f, verb(OPERATE_ENROL, 0), token);
    assert_int_equal(hello_with(f, token, 2000, &conn), 0);
    struct chat_sv_handshake elsewhere = server_hello_of(2001, 2);
    elsewhere.server_token = str_of(token);
    elsewhere.region = USE;
    conn = say_server_hello(f, elsewhere);
    answered(f, EFFECT_SERVER_HELLO, conn, ERR_INVALID_REGION);
    seal(f);
    crash(f, 1000);
    assert_int_equal(hello_with(f, token, 2000, &conn), 0);
}

static void neither_token_nor_anything_near_it_is_stored(void **state)
{
    struct fixture *f = *state;
    char token[ENROLMENT_TOKEN_SIZE];
    enrol(f, verb(OPERATE_ENROL, 0), token);
    seal(f);
    assert_null(memmem(f->journal.data, f->journal.len, token + 6, 16));
}

static void revoked_token_ends_those_who_came_with_it(void **state)
{
    struct fixture *f = *state;
    char token[ENROLMENT_TOKEN_SIZE];
    conn_id conn;
    int64_t id = enrol(f, verb(OPERATE_ENROL, 0), token);
    assert_int_equal(hello_with(f, token, 2000, &conn), 0);
    struct view_token view;
    assert_true(view_token(f->core, id, &view));
    assert_int_equal(view.connections, 1);
    assert_int_equal(say(f, verb(OPERATE_REVOKE, id))->err, 0);
    effect(f, EFFECT_CLOSE, conn);
    gone(f, conn);
    assert_true(view_token(f->core, id, &view));
    assert_int_equal(view.connections, 0);
    assert_int_equal(hello_with(f, token, 2000, &conn), ERR_INVALID_TOKEN);
    assert_int_equal(say(f, verb(OPERATE_REVOKE, id))->err, ERR_ALREADY_OVER);
    assert_int_equal(say(f, verb(OPERATE_ROTATE, id))->err, ERR_ALREADY_OVER);
    crash(f, 1000);
    assert_int_equal(hello_with(f, token, 2000, &conn), ERR_INVALID_TOKEN);
}

static void rotated_token_works_for_its_grace(void **state)
{
    struct fixture *f = *state;
    char old[ENROLMENT_TOKEN_SIZE];
    char new[ENROLMENT_TOKEN_SIZE];
    conn_id conn;
    int64_t id = enrol(f, verb(OPERATE_ENROL, 0), old);
    struct operate rotate = verb(OPERATE_ROTATE, id);
    rotate.grace_ms = 60 * 1000;
    assert_int_equal(enrol(f, rotate, new), id);
    assert_string_not_equal(old, new);
    assert_int_equal(hello_with(f, old, 2000, &conn), 0);
    assert_int_equal(hello_with(f, new, 2001, &conn), 0);
    pass(f, 60 * 1000);
    assert_int_equal(hello_with(f, old, 2002, &conn), ERR_INVALID_TOKEN);
    assert_int_equal(hello_with(f, new, 2003, &conn), 0);
}

static void token_expires(void **state)
{
    struct fixture *f = *state;
    char token[ENROLMENT_TOKEN_SIZE];
    conn_id conn;
    struct operate o = verb(OPERATE_ENROL, 0);
    o.expires_wall_ms = f->now.wall_ms + 5000;
    enrol(f, o, token);
    assert_int_equal(hello_with(f, token, 2000, &conn), 0);
    pass(f, 5000);
    assert_int_equal(hello_with(f, token, 2001, &conn), ERR_INVALID_TOKEN);
}

static void nonsense_makes_no_token(void **state)
{
    struct fixture *f = *state;
    struct operate o = verb(OPERATE_ENROL, 0);
    o.fleet = STR("nowhere");
    assert_int_equal(say(f, o)->err, ERR_NO_SUCH_FLEET);
    o = verb(OPERATE_ENROL, 0);
    o.regions = (uint64_t)1 << 40;
    assert_int_equal(say(f, o)->err, ERR_INVALID_REGION);
    o.regions = 0;
    assert_int_equal(say(f, o)->err, ERR_INVALID_REGION);
    o = verb(OPERATE_ENROL, 0);
    o.role = 3;
    assert_int_equal(say(f, o)->err, ERR_BAD_ARGUMENT);
    o = verb(OPERATE_ENROL, 0);
    o.expires_wall_ms = f->now.wall_ms;
    assert_int_equal(say(f, o)->err, ERR_BAD_ARGUMENT);
    assert_int_equal(core_next(f->core, ROW_enrolment, 0), 0);
}

static void dead_tokens_make_room(void **state)
{
    struct fixture *f = *state;
    char token[ENROLMENT_TOKEN_SIZE];
    f->config.limits.enrolments = 2;
    struct event e = {.kind = EVENT_CONFIGURE, .configure = &f->config};
    step(f, &e);
    enrol(f, verb(OPERATE_ENROL, 0), token);
    int64_t second = enrol(f, verb(OPERATE_ENROL, 0), token);
    assert_int_equal(say(f, verb(OPERATE_ENROL, 0))->err, ERR_TOO_MANY);
    assert_int_equal(say(f, verb(OPERATE_REVOKE, second))->err, 0);
    int64_t third = enrol(f, verb(OPERATE_ENROL, 0), token);
    struct view_token view;
    assert_false(view_token(f->core, second, &view));
    assert_true(view_token(f->core, third, &view));
}

/* ── keys ──────────────────────────────────────────────────────────────────────────────────── */

static void same_key_same_answer(void **state)
{
    struct fixture *f = *state;
    char first[ENROLMENT_TOKEN_SIZE];
    char again[ENROLMENT_TOKEN_SIZE];
    struct operate o = verb(OPERATE_ENROL, 0);
    o.key = STR("k1");
    int64_t id = enrol(f, o, first);
    assert_int_equal(enrol(f, o, again), id);
    assert_string_equal(first, again);
    seal(f);
    crash(f, 1000);
    assert_int_equal(enrol(f, o, again), id);
    assert_string_equal(first, again);
    assert_int_equal(core_next(f->core, ROW_enrolment, id), 0); /* it was made once */
    assert_int_equal(f->core->audits.len, 1);
}

static void same_key_other_arguments_conflict(void **state)
{
    struct fixture *f = *state;
    char token[ENROLMENT_TOKEN_SIZE];
    struct operate o = verb(OPERATE_ENROL, 0);
    o.key = STR("k1");
    enrol(f, o, token);
    o.arguments[0] = 1;
    assert_int_equal(say(f, o)->err, ERR_KEY_CONFLICT);
    o.who = STR("somebody else"); /* whose key is his own */
    assert_int_equal(say(f, o)->err, 0);
}

/* Asked again before the first answer has left: both leave together, and say the same. */
static void repeat_while_the_first_is_under_way(void **state)
{
    struct fixture *f = *state;
    struct event e = {.kind = EVENT_OPERATE, .conn = OPERATOR, .operate = verb(OPERATE_ENROL, 0)};
    e.operate.key = STR("k1");
    step(f, &e);
    e.conn = OPERATOR + 1;
    add_step(f, &e);
    const struct effect *a = effect(f, EFFECT_OPERATED, OPERATOR);
    const struct effect *b = effect(f, EFFECT_OPERATED, OPERATOR + 1);
    assert_int_equal(a->object, b->object);
    assert_true(str_eq(a->token, b->token));
}

static void refused_request_may_be_asked_again(void **state)
{
    struct fixture *f = *state;
    struct operate o = verb(OPERATE_DRAIN, 1);
    o.key = STR("k1");
    assert_int_equal(say(f, o)->err, ERR_NOT_FOUND);
    f->config.any_token = true;
    struct event e = {.kind = EVENT_CONFIGURE, .configure = &f->config};
    step(f, &e);
    server_up(f, 2000, 2);
    assert_int_equal(say(f, o)->err, 0);
}

static void key_is_forgotten_in_time(void **state)
{
    struct fixture *f = *state;
    char first[ENROLMENT_TOKEN_SIZE];
    char later[ENROLMENT_TOKEN_SIZE];
    struct operate o = verb(OPERATE_ENROL, 0);
    o.key = STR("k1");
    int64_t id = enrol(f, o, first);
    pass(f, f->config.timeouts.keep_ms);
    assert_int_not_equal(enrol(f, o, later), id);
}

static void lost_request_is_refused_and_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    seal(f);
    say(f, verb(OPERATE_ENROL, 0));
    lose_batch(f);
    answered(f, EFFECT_OPERATED, OPERATOR, ERR_INTERNAL);
    assert_int_equal(core_next(f->core, ROW_enrolment, 0), 0);
}

/* ── audit ─────────────────────────────────────────────────────────────────────────────────── */

static void audit_names_who_did_what(void **state)
{
    struct fixture *f = *state;
    server_up(f, 2000, 2);
    struct operate o = verb(OPERATE_DRAIN, 1);
    o.detail = STR("for the night");
    say(f, o);
    seal(f);
    crash(f, 1000);
    struct view_audit view;
    int64_t id = core_previous(f->core, ROW_audit, 0);
    assert_true(view_audit(f->core, id, &view));
    assert_string_equal(view.who, "admin");
    assert_string_equal(view.address, "127.0.0.1");
    assert_string_equal(view.action, "drain");
    assert_string_equal(view.target_kind, "server");
    assert_string_equal(view.detail, "for the night");
    assert_int_equal(view.target, 1);
}

static void audit_keeps_the_newest(void **state)
{
    struct fixture *f = *state;
    server_up(f, 2000, 2);
    f->config.limits.audit_kept = 3;
    struct event e = {.kind = EVENT_CONFIGURE, .configure = &f->config};
    step(f, &e);
    for (int i = 0; i < 5; i++)
        say(f, verb(i % 2 ? OPERATE_UNDRAIN : OPERATE_DRAIN, 1));
    assert_int_equal(f->core->audits.len, 3);
    assert_int_equal(core_next(f->core, ROW_audit, 0), 3);
}

/* ── configuration ─────────────────────────────────────────────────────────────────────────── */

static void removed_fleet_drains_and_may_come_back(void **state)
{
    struct fixture *f = *state;
    conn_id conn = server_up(f, 2000, 2);
    conn_id chat = chat_up(f, "chat");
    str_copy(f->config.fleets[0].name, sizeof(f->config.fleets[0].name), STR("other"));
    struct event e = {.kind = EVENT_CONFIGURE, .configure = &f->config};
    step(f, &e);
    ask(f, chat, 1);
    answered(f, EFFECT_ALLOCATED, chat, ERR_NO_SERVERS);
    assert_int_equal(server_of(f, conn)->passed_over, PASSED_DRAINING);
    str_copy(f->config.fleets[0].name, sizeof(f->config.fleets[0].name), STR("default"));
    step(f, &e);
    open_match(f, chat, 2, NULL);
}

static void configured_fleets_are_there_before_anybody_comes(void **state)
{
    struct fixture *f = *state;
    str_copy(f->config.fleets[1].name, sizeof(f->config.fleets[1].name), STR("arena"));
    f->config.n_fleets = 2;
    struct event e = {.kind = EVENT_CONFIGURE, .configure = &f->config};
    step(f, &e);
    add_tick(f);
    struct view_fleet view;
    int64_t id = core_next(f->core, ROW_fleet, core_next(f->core, ROW_fleet, 0));
    assert_true(view_fleet(f->core, id, &view));
    assert_string_equal(view.name, "arena");
    assert_true(view.configured);
}

/* Settings are soft: they change while nothing can be stored, and leave nothing to store. */
static void configuration_changes_while_nothing_can_be_stored(void **state)
{
    struct fixture *f = *state;
    seal(f);
    struct event down = {.kind = EVENT_STORE_DOWN};
    add_step(f, &down);
    f->config.timeouts.ack_ms = 1234;
    struct event e = {.kind = EVENT_CONFIGURE, .configure = &f->config};
    add_step(f, &e);
    add_tick(f);
    assert_int_equal(core_config(f->core)->timeouts.ack_ms, 1234);
    assert_true(list_empty(&f->core->dirty));
    store_up(f);
    add_tick(f);
    assert_int_equal(f->core->audits.len, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(ends_an_open_match_for_everybody),
        FIXTURE_TEST(ends_one_that_is_being_opened),
        FIXTURE_TEST(unknown_things_are_not_found),
        STRICT_TEST(token_lets_its_role_into_its_regions),
        STRICT_TEST(neither_token_nor_anything_near_it_is_stored),
        STRICT_TEST(revoked_token_ends_those_who_came_with_it),
        STRICT_TEST(rotated_token_works_for_its_grace),
        STRICT_TEST(token_expires),
        STRICT_TEST(nonsense_makes_no_token),
        STRICT_TEST(dead_tokens_make_room),
        STRICT_TEST(same_key_same_answer),
        STRICT_TEST(same_key_other_arguments_conflict),
        STRICT_TEST(repeat_while_the_first_is_under_way),
        STRICT_TEST(refused_request_may_be_asked_again),
        STRICT_TEST(key_is_forgotten_in_time),
        STRICT_TEST(lost_request_is_refused_and_leaves_nothing),
        FIXTURE_TEST(audit_names_who_did_what),
        FIXTURE_TEST(audit_keeps_the_newest),
        FIXTURE_TEST(removed_fleet_drains_and_may_come_back),
        FIXTURE_TEST(configured_fleets_are_there_before_anybody_comes),
        FIXTURE_TEST(configuration_changes_while_nothing_can_be_stored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
