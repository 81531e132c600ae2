/* Bans: by account and by address, in wall time; who is banned loses his place. */
#include "core/ban.h"

#include "fixture.h"

enum { OPERATOR = 900, HOUR_MS = 3600 * 1000 };

static const struct effect *say(struct fixture *f, struct operate o)
{
    o.who = STR("admin");
    o.address = STR("127.0.0.1");
    struct event e = {.kind = EVENT_OPERATE, .conn = OPERATOR, .operate = o};
    step(f, &e);
    return effect(f, EFFECT_OPERATED, OPERATOR);
}

static struct operate ban_for(struct fixture *f, const char *account, int64_t ms)
{
    return (struct operate){.verb = OPERATE_BAN,
                            .account = str_of(account),
                            .reason = STR("cheating"),
                            .expires_wall_ms = f->now.wall_ms + ms};
}

static int64_t issue(struct fixture *f, const char *account, int64_t ms)
{
    const struct effect *e = say(f, ban_for(f, account, ms));
    assert_int_equal(e->err, 0);
    assert_true(e->object > 0);
    return e->object;
}

static int lift(struct fixture *f, int64_t id)
{
    return say(f, (struct operate){.verb = OPERATE_LIFT_BAN, .target = id})->err;
}

static int update(struct fixture *f, int64_t id, struct str reason, int64_t expires_wall_ms)
{
    return say(f, (struct operate){.verb = OPERATE_UPDATE_BAN,
                                   .target = id,
                                   .reason = reason,
                                   .expires_wall_ms = expires_wall_ms})
        ->err;
}

/* He tries to get in, as a place does; the id of what keeps him out, or 0. */
static int64_t attempt(struct fixture *f, const char *account, const char *address)
{
    struct ban *ban = ban_check(f->core, str_of(account), str_of(address));
    assert_null(core_check(f->core));
    return ban ? ban->row.id : 0;
}

static int64_t banned(struct fixture *f, const char *account, const char *address)
{
    return view_banned(f->core, str_of(account), str_of(address));
}

static void addresses_are_written_one_way(void **state)
{
    (void)state;
    static const struct {
        const char *given;
        const char *banned;
    } rows[] = {
        {"192.0.2.7", "192.0.2.7"},
        {"::ffff:192.0.2.7", "192.0.2.7"},
        {"::FFFF:c000:0207", "192.0.2.7"},
        {"2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"},
        {"2001:DB8:1:2::", "2001:db8:1:2::/64"},
        {"2001:db8:0001:0002:ffff:ffff:ffff:ffff", "2001:db8:1:2::/64"},
        {"2001:db8:1:3::1", "2001:db8:1:3::/64"},
        {"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff::/64"},
        {"::1", "::/64"},
        {"", ""},
        {"192.0.2", ""},
        {"192.0.2.7 ", ""},
        {"fe80::1%eth0", ""},
        {"somewhere", ""},
        {"2001:db8:1:2:3:4:5:6:7:8:9:10:11:12:13:14:15:16:17", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char text[BAN_ADDRESS_SIZE];
        assert_true(str_eq(ban_address(str_of(rows[i].given), text), str_of(rows[i].banned)));
        assert_string_equal(text, rows[i].banned);
    }
}

static void an_account_is_kept_out_until_the_date(void **state)
{
    struct fixture *f = *state;
    int64_t id = issue(f, "anna", HOUR_MS);
    assert_int_equal(attempt(f, "anna", ""), id);
    assert_int_equal(attempt(f, "ann", ""), 0);
    assert_int_equal(attempt(f, "Anna", ""), 0);
    f->now.wall_ms += HOUR_MS - 1;
    add_tick(f);
    assert_int_equal(attempt(f, "anna", ""), id);
    f->now.wall_ms += 1;
    add_tick(f);
    assert_int_equal(attempt(f, "anna", ""), 0);
    /* It stays to be seen. */
    struct view_ban seen;
    assert_true(view_ban(f->core, id, &seen));
    assert_true(seen.expired);
    assert_string_equal(seen.reason, "cheating");
    assert_string_equal(seen.who, "admin");
    assert_int_equal(view_ban_of(f->core, STR("anna")), id);
}

static void the_first_attempt_bans_its_address(void **state)
{
    struct fixture *f = *state;
    int64_t id = issue(f, "anna", HOUR_MS);
    assert_int_equal(attempt(f, "eve", "192.0.2.7"), 0);
    assert_int_equal(attempt(f, "anna", ""), id);
    assert_int_equal(attempt(f, "anna", "192.0.2.7"), id);
    assert_int_equal(attempt(f, "eve", "192.0.2.7"), id);
    assert_int_equal(attempt(f, "eve", "::ffff:192.0.2.7"), id);
    assert_int_equal(attempt(f, "eve", "192.0.2.8"), 0);
    /* Only the first one. */
    assert_int_equal(attempt(f, "anna", "192.0.2.8"), id);
    assert_int_equal(attempt(f, "eve", "192.0.2.8"), 0);
    assert_int_equal(banned(f, "eve", "192.0.2.7"), id);
    /* Whoever is kept out by his address brings no other address into it. */
    assert_int_equal(attempt(f, "eve", "192.0.2.7"), id);
    assert_string_equal(ban_find(f->core, id)->row.address, "192.0.2.7");
}

static void ipv6_is_banned_by_its_64(void **state)
{
    struct fixture *f = *state;
    int64_t id = issue(f, "anna", HOUR_MS);
    assert_int_equal(attempt(f, "anna", "2001:db8:1:2::7"), id);
    assert_int_equal(attempt(f, "eve", "2001:db8:1:2:ffff::1"), id);
    assert_int_equal(attempt(f, "eve", "2001:db8:1:3::7"), 0);
    struct view_ban seen;
    assert_true(view_ban(f->core, id, &seen));
    assert_string_equal(seen.address, "2001:db8:1:2::/64");
}

static void looking_writes_nothing(void **state)
{
    struct fixture *f = *state;
    int64_t id = issue(f, "anna", HOUR_MS);
    assert_int_equal(banned(f, "anna", "192.0.2.7"), id);
    assert_string_equal(ban_find(f->core, id)->row.address, "");
    assert_int_equal(banned(f, "eve", "192.0.2.7"), 0);
}

static void bans_and_their_addresses_outlive_a_crash(void **state)
{
    struct fixture *f = *state;
    int64_t anna = issue(f, "anna", HOUR_MS);
    int64_t bert = issue(f, "bert", 10 * 1000);
    assert_int_equal(attempt(f, "anna", "2001:db8::1"), anna);
    seal(f);
    crash(f, 20 * 1000);
    assert_int_equal(attempt(f, "anna", ""), anna);
    assert_int_equal(attempt(f, "eve", "2001:db8::2"), anna);
    assert_int_equal(attempt(f, "bert", ""), 0);
    assert_int_equal(view_ban_of(f->core, STR("bert")), bert);
}

static void who_is_banned_is_not_banned_again(void **state)
{
    struct fixture *f = *state;
    int64_t first = issue(f, "anna", HOUR_MS);
    assert_int_equal(say(f, ban_for(f, "anna", 2 * HOUR_MS))->err, ERR_ALREADY_BANNED);
    f->now.wall_ms += HOUR_MS;
    int64_t second = issue(f, "anna", HOUR_MS);
    assert_true(second > first);
    assert_int_equal(view_ban_of(f->core, STR("anna")), second);
    assert_int_equal(attempt(f, "anna", ""), second);
    /* The first one may not hold beside it. */
    assert_int_equal(update(f, first, (struct str){0}, f->now.wall_ms + 1), ERR_ALREADY_BANNED);
    assert_int_equal(update(f, first, STR("was it?"), 0), 0);
}

static void what_cannot_be_is_refused(void **state)
{
    struct fixture *f = *state;
    char long_text[300];
    memset(long_text, 'a', sizeof(long_text));
    assert_int_equal(say(f, ban_for(f, "anna", 0))->err, ERR_BAD_ARGUMENT);
    assert_int_equal(say(f, ban_for(f, "anna", -1))->err, ERR_BAD_ARGUMENT);
    assert_int_equal(say(f, ban_for(f, "", HOUR_MS))->err, ERR_BAD_ARGUMENT);
    struct operate o = ban_for(f, "anna", HOUR_MS);
    o.account = (struct str){long_text, 65};
    assert_int_equal(say(f, o)->err, ERR_BAD_ARGUMENT);
    o.account = (struct str){long_text, 64};
    o.reason = (struct str){long_text, 256};
    assert_int_equal(say(f, o)->err, ERR_BAD_ARGUMENT);
    assert_int_equal(core_next(f->core, ROW_ban, 0), 0);
    o.reason = (struct str){long_text, 255};
    const struct effect *e = say(f, o);
    assert_int_equal(e->err, 0);
    int64_t id = e->object;
    assert_int_equal(update(f, id, (struct str){long_text, 256}, 0), ERR_BAD_ARGUMENT);
    assert_int_equal(update(f, id, STR("other"), f->now.wall_ms), ERR_BAD_ARGUMENT);
    assert_memory_equal(ban_find(f->core, id)->row.reason, long_text, 255);
    assert_int_equal(update(f, id + 1, STR("other"), 0), ERR_NOT_FOUND);
    assert_int_equal(lift(f, id + 1), ERR_NOT_FOUND);
}

static void a_ban_can_be_changed_and_lifted(void **state)
{
    struct fixture *f = *state;
    int64_t id = issue(f, "anna", HOUR_MS);
    assert_int_equal(attempt(f, "anna", "192.0.2.7"), id);
    assert_int_equal(update(f, id, STR("worse"), 0), 0);
    assert_string_equal(ban_find(f->core, id)->row.reason, "worse");
    assert_int_equal(ban_find(f->core, id)->row.expires_wall_ms, f->now.wall_ms + HOUR_MS);
    assert_int_equal(update(f, id, (struct str){0}, f->now.wall_ms + 1000), 0);
    assert_string_equal(ban_find(f->core, id)->row.reason, "worse");
    assert_int_equal(update(f, id, STR(""), 0), 0);
    assert_string_equal(ban_find(f->core, id)->row.reason, "");
    f->now.wall_ms += 1000;
    add_tick(f);
    assert_int_equal(attempt(f, "anna", ""), 0);
    assert_int_equal(update(f, id, (struct str){0}, f->now.wall_ms + 1000), 0);
    assert_int_equal(attempt(f, "eve", "192.0.2.7"), id);
    assert_int_equal(lift(f, id), 0);
    assert_int_equal(attempt(f, "anna", "192.0.2.7"), 0);
    assert_int_equal(attempt(f, "eve", "192.0.2.7"), 0);
    assert_int_equal(view_ban_of(f->core, STR("anna")), 0);
    assert_int_equal(lift(f, id), ERR_NOT_FOUND);
    seal(f);
    crash(f, 0);
    assert_int_equal(core_next(f->core, ROW_ban, 0), 0);
}

static void the_same_key_gives_the_same_ban(void **state)
{
    struct fixture *f = *state;
    struct operate o = ban_for(f, "anna", HOUR_MS);
    o.key = STR("once");
    int64_t id = say(f, o)->object;
    const struct effect *again = say(f, o);
    assert_int_equal(again->err, 0);
    assert_int_equal(again->object, id);
}

static void expired_bans_make_room(void **state)
{
    struct fixture *f = *state;
    f->config.limits.bans = 3;
    struct event e = {.kind = EVENT_CONFIGURE, .configure = &f->config};
    step(f, &e);
    int64_t a = issue(f, "a", 1000);
    int64_t b = issue(f, "b", HOUR_MS);
    int64_t c = issue(f, "c", 1000);
    assert_int_equal(say(f, ban_for(f, "d", HOUR_MS))->err, ERR_TOO_MANY);
    f->now.wall_ms += 1000;
    int64_t d = issue(f, "d", HOUR_MS);
    assert_null(ban_find(f->core, a));
    assert_non_null(ban_find(f->core, b));
    assert_non_null(ban_find(f->core, c));
    issue(f, "e", HOUR_MS);
    assert_null(ban_find(f->core, c));
    assert_non_null(ban_find(f->core, d));
    assert_int_equal(say(f, ban_for(f, "f", HOUR_MS))->err, ERR_TOO_MANY);
}

static int32_t held(struct fixture *f)
{
    struct core_counts counts;
    add_tick(f);
    core_count(f->core, &counts);
    return counts.bans;
}

static void those_that_hold_are_counted(void **state)
{
    struct fixture *f = *state;
    int64_t a = issue(f, "a", 1000);
    issue(f, "b", 2000);
    int64_t c = issue(f, "c", HOUR_MS);
    assert_int_equal(held(f), 3);
    f->now.wall_ms += 1000;
    assert_int_equal(held(f), 2);
    assert_int_equal(update(f, a, (struct str){0}, f->now.wall_ms + HOUR_MS), 0);
    assert_int_equal(held(f), 3);
    seal(f);
    crash(f, 0);
    assert_int_equal(held(f), 3);
    assert_int_equal(lift(f, c), 0);
    assert_int_equal(held(f), 2);
    f->now.wall_ms += 1000;
    assert_int_equal(held(f), 1);
}

/* ── chat ports ────────────────────────────────────────────────────────────────────────────── */

static void a_banned_account_is_not_part_of_a_match(void **state)
{
    struct fixture *f = *state;
    char token[TOKEN_SIZE];
    conn_id chat = chat_up(f, "chat");
    server_up(f, 2000, 2);
    conn_id conn = open_match(f, chat, 1, token);
    int64_t id = issue(f, "7", HOUR_MS);
    validate(f, conn, 1, 7, token);
    answered(f, EFFECT_VALIDATE, conn, ERR_NOT_PART_OF_MATCH);
    validate(f, conn, 1, 7, "wrong");
    answered(f, EFFECT_VALIDATE, conn, ERR_INVALID_MATCH_TOKEN);
    validate(f, conn, 1, 77, token);
    answered(f, EFFECT_VALIDATE, conn, 0);
    assert_int_equal(lift(f, id), 0);
    validate(f, conn, 1, 7, token);
    answered(f, EFFECT_VALIDATE, conn, 0);
}

static void whoever_sits_in_a_match_is_kicked(void **state)
{
    struct fixture *f = *state;
    char token[TOKEN_SIZE];
    conn_id chat = chat_up(f, "chat");
    server_up(f, 2000, 2);
    conn_id conn = open_match(f, chat, 1, token);
    validate(f, conn, 1, -7, token);
    validate(f, conn, 1, 8, token);
    static const char *const others[] = {"07", "-07", "+7", "-7 ", "7", "9999999999", "-", "anna"};
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        issue(f, others[i], HOUR_MS);
        assert_int_equal(count_effects(f, EFFECT_KICK, 0), 0);
    }
    issue(f, "-7", HOUR_MS);
    assert_int_equal(count_effects(f, EFFECT_KICK, 0), 1);
    const struct effect *kick = effect(f, EFFECT_KICK, conn);
    assert_int_equal(kick->account, -7);
    assert_int_equal(kick->lobby, 1);
    assert_true(str_eq(kick->text, STR("Banned")));
    assert_int_equal(session_of(f, 1)->seated, 1);
    validate(f, conn, 1, -7, token);
    answered(f, EFFECT_VALIDATE, conn, ERR_NOT_PART_OF_MATCH);
}

/* A ban that is set again to hold takes the place like a new one. */
static void a_ban_that_holds_again_kicks(void **state)
{
    struct fixture *f = *state;
    char token[TOKEN_SIZE];
    conn_id chat = chat_up(f, "chat");
    server_up(f, 2000, 2);
    conn_id conn = open_match(f, chat, 1, token);
    int64_t id = issue(f, "7", 1000);
    f->now.wall_ms += 1000;
    validate(f, conn, 1, 7, token);
    answered(f, EFFECT_VALIDATE, conn, 0);
    assert_int_equal(update(f, id, STR("a word"), 0), 0);
    assert_int_equal(count_effects(f, EFFECT_KICK, conn), 0);
    assert_int_equal(update(f, id, (struct str){0}, f->now.wall_ms + 1000), 0);
    assert_int_equal(effect(f, EFFECT_KICK, conn)->account, 7);
    assert_int_equal(session_of(f, 1)->seated, 0);
}

/* ── check.c ───────────────────────────────────────────────────────────────────────────────── */

static void says(struct fixture *f, const char *part)
{
    const char *why = core_check(f->core);
    assert_non_null(why);
    assert_non_null(strstr(why, part));
}

static void a_broken_index_is_noticed(void **state)
{
    struct fixture *f = *state;
    int64_t id = issue(f, "anna", HOUR_MS);
    assert_int_equal(attempt(f, "anna", "192.0.2.7"), id);
    struct ban *ban = ban_find(f->core, id);
    ban->row.account[0] = 'x';
    says(f, "is not found by its account");
    ban->row.account[0] = 'a';
    ban->row.address[0] = '2';
    says(f, "is not found by its address");
    ban->row.address[0] = '1';
    assert_null(core_check(f->core));
}

static void a_banned_account_in_a_match_is_noticed(void **state)
{
    struct fixture *f = *state;
    char token[TOKEN_SIZE];
    conn_id chat = chat_up(f, "chat");
    server_up(f, 2000, 2);
    conn_id conn = open_match(f, chat, 1, token);
    validate(f, conn, 1, 7, token);
    struct ban *ban = ban_find(f->core, issue(f, "8", HOUR_MS));
    chain_remove(&f->core->bans_by_account, str_hash(0, STR("8")), &ban->by_account);
    ban->row.account[0] = '7';
    chain_add(&f->core->bans_by_account, str_hash(0, STR("7")), &ban->by_account);
    says(f, "is taken by banned account 7");
    /* What the clock did is nobody's fault. */
    f->core->check_wall_ms = ban->row.expires_wall_ms;
    assert_null(core_check(f->core));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_written_one_way),
        FIXTURE_TEST(an_account_is_kept_out_until_the_date),
        FIXTURE_TEST(the_first_attempt_bans_its_address),
        FIXTURE_TEST(ipv6_is_banned_by_its_64),
        FIXTURE_TEST(looking_writes_nothing),
        FIXTURE_TEST(bans_and_their_addresses_outlive_a_crash),
        FIXTURE_TEST(who_is_banned_is_not_banned_again),
        FIXTURE_TEST(what_cannot_be_is_refused),
        FIXTURE_TEST(a_ban_can_be_changed_and_lifted),
        FIXTURE_TEST(the_same_key_gives_the_same_ban),
        FIXTURE_TEST(expired_bans_make_room),
        FIXTURE_TEST(those_that_hold_are_counted),
        FIXTURE_TEST(a_banned_account_is_not_part_of_a_match),
        FIXTURE_TEST(whoever_sits_in_a_match_is_kicked),
        FIXTURE_TEST(a_ban_that_holds_again_kicks),
        FIXTURE_TEST(a_broken_index_is_noticed),
        FIXTURE_TEST(a_banned_account_in_a_match_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
