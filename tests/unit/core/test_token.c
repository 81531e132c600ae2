#include "fixture.h"

static struct row_session row_of(int64_t id, int32_t lobby, int64_t unix_s)
{
    return (struct row_session){.id = id, .lobby = lobby, .token_unix_s = unix_s};
}

static void expect_token(struct core *core, struct row_session row, const char *want)
{
    char token[TOKEN_SIZE];
    struct str got = token_of(core, &row, token);
    assert_string_equal(token, want);
    assert_int_equal(got.len, strlen(want));
    assert_true(token_matches(core, &row, got));
}

/* Computed with Python: hashlib.blake2b(b"match\0\0\0" + id.to_bytes(8, "little"), key=secret,
 * digest_size=16). */
static void tokens_are_these(void **state)
{
    struct fixture *f = *state;
    expect_token(f->core, row_of(1, 7, 1700000000),
                 "MATCH_7_183f3036-12ab-e1b4-5717-6974f777ea59_1700000000");
    expect_token(f->core, row_of(0x0102030405060708, (1 << 30) - 1, 1),
                 "MATCH_1073741823_7cbddd0f-66b6-7384-8ce3-cab3bb95fd7b_1");
    uint8_t secret[CORE_SECRET_SIZE];
    for (size_t i = 0; i < sizeof(secret); i++)
        secret[i] = (uint8_t)(255 - i);
    struct core *other = core_new(&f->config, secret);
    expect_token(other, row_of(1, 7, 1700000000),
                 "MATCH_7_c7a8be3c-eec1-0e7d-2f0d-a6748b55218e_1700000000");
    core_free(other);
}

/* Those that share a place among the kept ones do not get each other's. */
static void kept_guids_are_told_apart(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 3; i++) {
        expect_token(f->core, row_of(1, 7, 1700000000),
                     "MATCH_7_183f3036-12ab-e1b4-5717-6974f777ea59_1700000000");
        struct row_session other = row_of(1 + TOKEN_GUIDS, 7, 1700000000);
        char token[TOKEN_SIZE];
        assert_true(token_matches(f->core, &other, token_of(f->core, &other, token)));
        assert_string_not_equal(token, "MATCH_7_183f3036-12ab-e1b4-5717-6974f777ea59_1700000000");
    }
}

static void only_the_very_token_matches(void **state)
{
    struct fixture *f = *state;
    struct row_session row = row_of(5, 7, 1700000000);
    char token[TOKEN_SIZE];
    struct str right = token_of(f->core, &row, token);
    assert_true(token_matches(f->core, &row, right));
    assert_false(token_matches(f->core, NULL, right));
    assert_false(token_matches(f->core, &row, STR("")));
    assert_false(token_matches(f->core, &row, (struct str){right.at, right.len - 1}));
    for (size_t i = 0; i < right.len; i++) {
        char wrong[TOKEN_SIZE];
        memcpy(wrong, right.at, right.len);
        wrong[i] ^= 1;
        assert_false(token_matches(f->core, &row, (struct str){wrong, right.len}));
    }
    char longer[4 * TOKEN_SIZE];
    memset(longer, 'x', sizeof(longer));
    memcpy(longer, right.at, right.len);
    assert_false(token_matches(f->core, &row, (struct str){longer, right.len + 1}));
    assert_false(token_matches(f->core, &row, (struct str){longer, sizeof(longer)}));
}

static void every_attempt_has_its_own(void **state)
{
    struct fixture *f = *state;
    struct row_session first = row_of(5, 7, 1700000000);
    struct row_session second = row_of(6, 7, 1700000000);
    char token[TOKEN_SIZE];
    assert_false(token_matches(f->core, &second, token_of(f->core, &first, token)));
}

/* What is sent to the server, answered to the chat server and derived after a restart is one. */
static void server_and_chat_server_get_the_same(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 1);
    char token[TOKEN_SIZE];
    open_match(f, chat, 1, token);
    assert_true(str_eq(effect(f, EFFECT_ALLOCATED, chat)->token, str_of(token)));
    seal(f);
    for (size_t i = 0; i + strlen(token) <= f->journal.len; i++)
        assert_memory_not_equal(f->journal.data + i, token, strlen(token));
    crash(f, 5000);
    chat = chat_up(f, "chat");
    conn = server_back(f, 2000, 1);
    match_list(f, conn, 1, 1);
    ask(f, chat, 1);
    assert_true(str_eq(answered(f, EFFECT_ALLOCATED, chat, 0)->token, str_of(token)));
    validate(f, conn, 1, 1001, token);
    answered(f, EFFECT_VALIDATE, conn, 0);
}

static void enrolment_is_found_by_token_and_role(void **state)
{
    struct fixture *f = *state;
    struct core_config *c = &f->core->config;
    c->any_token = false;
    c->n_enrolments = 3;
    static const enum enrolment_role roles[] = {ROLE_SERVER, ROLE_CHAT, ROLE_SERVER};
    static const char *const tokens[] = {"a", "b", "c"};
    for (size_t i = 0; i < 3; i++) {
        core_hash_token(str_of(tokens[i]), c->enrolments[i].hash);
        c->enrolments[i].role = roles[i];
    }
    struct enrolment scratch;
    for (size_t i = 0; i < 3; i++) {
        enum enrolment_role wrong = roles[i] == ROLE_CHAT ? ROLE_SERVER : ROLE_CHAT;
        assert_ptr_equal(enrolment_find(f->core, str_of(tokens[i]), roles[i], &scratch),
                         &c->enrolments[i]);
        assert_null(enrolment_find(f->core, str_of(tokens[i]), wrong, &scratch));
    }
    assert_null(enrolment_find(f->core, STR(""), ROLE_SERVER, &scratch));
    assert_null(enrolment_find(f->core, STR("aa"), ROLE_SERVER, &scratch));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(tokens_are_these),
        FIXTURE_TEST(kept_guids_are_told_apart),
        FIXTURE_TEST(only_the_very_token_matches),
        FIXTURE_TEST(every_attempt_has_its_own),
        FIXTURE_TEST(server_and_chat_server_get_the_same),
        FIXTURE_TEST(enrolment_is_found_by_token_and_role),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
