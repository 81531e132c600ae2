#include "api/access.h"

#include "base/err.h"
#include "base/json.h"
#include "core/core.h"
#include "keys.h"
#include "lib/unit.h"

#include <jwt.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t secret[CORE_SECRET_SIZE] = {1, 2, 3};
static const int64_t now_ms = 1800000000000;

/* A gamespace, an RSA key and a P-256 key. */
static struct access *make(void)
{
    static struct access_key keys[2];
    keys[0] = (struct access_key){.name = "login", .algorithm = ACCESS_RS256};
    keys[1] = (struct access_key){.name = "partner", .algorithm = ACCESS_ES256};
    strcpy(keys[0].pem, rsa_public);
    strcpy(keys[1].pem, ec_public);
    struct access *a = access_new(secret);
    access_configure(a, "7", keys, 2);
    return a;
}

static const char good_claims[] =
    "{\"acc\":\"ann\",\"gms\":\"7\",\"sco\":\"muster_read,game\",\"iat\":1800000000,"
    "\"exp\":1800000600}";

/* The caller frees it. */
static char *sign(const char *claims, jwt_alg_t algorithm, const void *key, size_t len)
{
    jwt_t *jwt;
    assert_int_equal(jwt_new(&jwt), 0);
    assert_int_equal(jwt_add_grants_json(jwt, claims), 0);
    assert_int_equal(jwt_set_alg(jwt, algorithm, key, (int)len), 0);
    char *token = jwt_encode_str(jwt);
    assert_non_null(token);
    jwt_free(jwt);
    return token;
}

static char *sign_rsa(const char *claims)
{
    return sign(claims, JWT_ALG_RS256, rsa_private, strlen(rsa_private));
}

static void assert_refused(struct access *a, const char *token, const char *clause)
{
    char why[ACCESS_WHY_MAX] = "";
    struct access_grant grant = {.account = "untouched"};
    assert_int_equal(access_check(a, str_of(token), now_ms, &grant, why), ERR_BAD_ACCESS_TOKEN);
    assert_string_equal(why, clause);
    assert_string_equal(grant.account, "untouched");
}

static struct access_grant assert_taken(struct access *a, const char *token)
{
    char why[ACCESS_WHY_MAX] = "";
    struct access_grant grant = {0};
    int err = access_check(a, str_of(token), now_ms, &grant, why);
    assert_string_equal(why, "");
    assert_int_equal(err, 0);
    return grant;
}

static char *issue(const struct access *a, uint32_t scopes, int64_t from_ms, int64_t until_ms)
{
    struct buf b = {0};
    access_issue(a, "admin", scopes, from_ms, until_ms, &b);
    buf_append(&b, "", 1);
    return (char *)b.data;
}

static void what_is_issued_is_taken(void **state)
{
    (void)state;
    struct access *a = make();
    char *token = issue(a, ACCESS_ADMIN | ACCESS_GAME_BAN, now_ms, now_ms + 60000);
    struct access_grant grant = assert_taken(a, token);
    assert_string_equal(grant.account, "admin");
    assert_int_equal(grant.scopes, ACCESS_ADMIN | ACCESS_READ | ACCESS_GAME_BAN);
    assert_int_equal(grant.expires_wall_ms, now_ms + 60000);
    free(token);
    access_free(a);
}

static void the_same_arguments_give_the_same_token(void **state)
{
    (void)state;
    struct access *a = make();
    struct access *b = make();
    char *first = issue(a, ACCESS_READ, now_ms, now_ms + 1000);
    char *second = issue(b, ACCESS_READ, now_ms, now_ms + 1000);
    char *other = issue(b, ACCESS_READ, now_ms, now_ms + 2000);
    assert_string_equal(first, second);
    assert_string_not_equal(first, other);
    free(first);
    free(second);
    free(other);
    access_free(a);
    access_free(b);
}

static void configured_keys_are_taken(void **state)
{
    (void)state;
    struct access *a = make();
    char *rsa = sign_rsa(good_claims);
    char *ec = sign(good_claims, JWT_ALG_ES256, ec_private, strlen(ec_private));
    struct access_grant grant = assert_taken(a, rsa);
    assert_string_equal(grant.account, "ann");
    assert_int_equal(grant.scopes, ACCESS_READ | ACCESS_GAME);
    grant = assert_taken(a, ec);
    assert_string_equal(grant.account, "ann");
    free(rsa);
    free(ec);
    access_free(a);
}

static void numbers_may_be_text_and_text_numbers(void **state)
{
    (void)state;
    struct access *a = make();
    char *token = sign_rsa("{\"acc\":4711,\"gms\":7,\"sco\":\"game\",\"iat\":\"1800000000\","
                           "\"exp\":\"1800000600\"}");
    struct access_grant grant = assert_taken(a, token);
    assert_string_equal(grant.account, "4711");
    assert_int_equal(grant.expires_wall_ms, 1800000600000);
    free(token);
    access_free(a);
}

static void scopes_we_do_not_know_allow_nothing(void **state)
{
    (void)state;
    struct access *a = make();
    char *token = sign_rsa("{\"acc\":\"x\",\"gms\":7,\"sco\":\"profile,,muster_readx,muster\","
                           "\"iat\":1800000000,\"exp\":1800000600}");
    assert_int_equal(assert_taken(a, token).scopes, 0);
    free(token);
    access_free(a);
}

/* ── attacks ───────────────────────────────────────────────────────────────────────────────── */

static void a_token_without_signature_is_refused(void **state)
{
    (void)state;
    struct access *a = make();
    char *token = sign(good_claims, JWT_ALG_NONE, NULL, 0);
    assert_refused(a, token, "it is no JWT signed with HS256, RS256 or ES256");
    free(token);
    access_free(a);
}

/* The key is public, so anybody can make these; libjwt alone would take them. */
static void a_public_key_is_no_password(void **state)
{
    (void)state;
    struct access *a = make();
    const char *keys[] = {rsa_public, ec_public};
    for (size_t i = 0; i < 2; i++) {
        char *token = sign(good_claims, JWT_ALG_HS256, keys[i], strlen(keys[i]));
        jwt_t *jwt = NULL;
        assert_int_equal(jwt_decode(&jwt, token, (const uint8_t *)keys[i], (int)strlen(keys[i])),
                         0);
        jwt_free(jwt);
        assert_refused(a, token, "no key we know has signed it");
        free(token);
    }
    access_free(a);
}

static void another_key_is_refused(void **state)
{
    (void)state;
    struct access *a = make();
    uint8_t other_secret[CORE_SECRET_SIZE] = {9};
    struct access *b = access_new(other_secret);
    access_configure(b, "7", NULL, 0);
    char *rsa = sign(good_claims, JWT_ALG_RS256, other_rsa_private, strlen(other_rsa_private));
    char *own = issue(b, ACCESS_ALL, now_ms, now_ms + 60000);
    assert_refused(a, rsa, "no key we know has signed it");
    assert_refused(a, own, "no key we know has signed it");
    free(rsa);
    free(own);
    access_free(a);
    access_free(b);
}

static void stronger_algorithms_are_refused_too(void **state)
{
    (void)state;
    struct access *a = make();
    char *token = sign(good_claims, JWT_ALG_RS512, rsa_private, strlen(rsa_private));
    assert_refused(a, token, "it is no JWT signed with HS256, RS256 or ES256");
    free(token);
    access_free(a);
}

static void a_changed_token_is_refused(void **state)
{
    (void)state;
    struct access *a = make();
    char *token = sign_rsa(good_claims);
    (void)assert_taken(a, token);
    size_t len = strlen(token);
    size_t head = (size_t)(strchr(token, '.') - token);
    /* Every character of claims and signature; the last one of a part may carry spare bits. */
    for (size_t i = head + 1; i < len - 1; i++) {
        char before = token[i];
        if (before == '.' || token[i + 1] == '.')
            continue;
        char why[ACCESS_WHY_MAX];
        struct access_grant grant;
        token[i] = before == 'A' ? 'B' : 'A';
        assert_int_equal(access_check(a, str_of(token), now_ms, &grant, why), ERR_BAD_ACCESS_TOKEN);
        token[i] = before;
    }
    free(token);
    access_free(a);
}

static void claims_decide(void **state)
{
    (void)state;
    static const struct {
        const char *claims;
        const char *clause;
    } cases[] = {
        {"{\"gms\":7,\"sco\":\"\",\"iat\":1,\"exp\":1800000600}", "its claim acc names no account"},
        {"{\"acc\":\"\",\"gms\":7,\"sco\":\"\",\"iat\":1,\"exp\":1800000600}",
         "its claim acc names no account"},
        {"{\"acc\":\"a\\nb\",\"gms\":7,\"sco\":\"\",\"iat\":1,\"exp\":1800000600}",
         "its claim acc names no account"},
        {"{\"acc\":\"0123456789012345678901234567890123456789012345678901234567890123X\","
         "\"gms\":7,\"sco\":\"\",\"iat\":1,\"exp\":1800000600}",
         "its claim acc names no account"},
        {"{\"acc\":\"a\",\"sco\":\"\",\"iat\":1,\"exp\":1800000600}",
         "its claim gms names no gamespace"},
        {"{\"acc\":\"a\",\"gms\":7,\"iat\":1,\"exp\":1800000600}",
         "its claim sco is no list of scopes"},
        {"{\"acc\":\"a\",\"gms\":7,\"sco\":[\"muster_admin\"],\"iat\":1,\"exp\":1800000600}",
         "its claim sco is no list of scopes"},
        {"{\"acc\":\"a\",\"gms\":7,\"sco\":\"\",\"exp\":1800000600}", "its claim iat is no date"},
        {"{\"acc\":\"a\",\"gms\":7,\"sco\":\"\",\"iat\":1}", "its claim exp is no date"},
        {"{\"acc\":\"a\",\"gms\":7,\"sco\":\"\",\"iat\":1,\"exp\":\"soon\"}",
         "its claim exp is no date"},
        {"{\"acc\":\"a\",\"gms\":7,\"sco\":\"\",\"iat\":1,\"exp\":\"\"}",
         "its claim exp is no date"},
        {"{\"acc\":\"a\",\"gms\":7,\"sco\":\"\",\"iat\":1,\"exp\":1e300}",
         "its claim exp is no date"},
        {"{\"acc\":\"a\",\"gms\":7,\"sco\":\"\",\"iat\":1,\"exp\":-5}", "its claim exp is no date"},
        {"{\"acc\":\"a\",\"gms\":8,\"sco\":\"\",\"iat\":1,\"exp\":1800000600}",
         "it is for another gamespace"},
        {"{\"acc\":\"a\",\"gms\":7,\"sco\":\"\",\"iat\":1,\"exp\":1800000000}", "it has expired"},
        {"{\"acc\":\"a\",\"gms\":7,\"sco\":\"\",\"iat\":1800000061,\"exp\":1800000600}",
         "it was issued in the future"},
        {"{\"acc\":\"a\",\"gms\":7,\"sco\":\"\",\"iat\":1,\"nbf\":1800000300,\"exp\":1800000600}",
         "it is not valid yet"},
        {"{\"acc\":\"a\",\"gms\":7,\"sco\":\"\",\"iat\":1,\"nbf\":null,\"exp\":1800000600}",
         "it is not valid yet"},
        {"{\"acc\":\"a\",\"gms\":7,\"sco\":\"\",\"iat\":true,\"exp\":1800000600}",
         "its claim iat is no date"},
        {"{\"acc\":\"a\",\"gms\":7,\"sco\":\"\",\"iat\":1,\"exp\":1799999999.5}", "it has expired"},
    };
    struct access *a = make();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *token = sign_rsa(cases[i].claims);
        assert_refused(a, token, cases[i].clause);
        free(token);
    }
    access_free(a);
}

static void an_issuers_clock_may_be_a_little_ahead(void **state)
{
    (void)state;
    struct access *a = make();
    char *token = sign_rsa("{\"acc\":\"a\",\"gms\":7,\"sco\":\"\",\"iat\":1800000060,"
                           "\"nbf\":1800000060,\"exp\":1800000600}");
    (void)assert_taken(a, token);
    free(token);
    access_free(a);
}

static void a_date_may_have_a_fraction(void **state)
{
    (void)state;
    struct access *a = make();
    char *token = sign_rsa("{\"acc\":\"a\",\"gms\":7,\"sco\":\"\",\"iat\":1.5,"
                           "\"exp\":1800000600.25}");
    assert_int_equal(assert_taken(a, token).expires_wall_ms, 1800000600250);
    free(token);
    access_free(a);
}

static void an_account_may_be_a_number(void **state)
{
    (void)state;
    struct access *a = make();
    static const char *const claims[] = {
        "{\"acc\":0,\"gms\":7,\"sco\":\"\",\"iat\":0,\"exp\":1800000600}",
        "{\"acc\":-12,\"gms\":7,\"sco\":\"\",\"iat\":0,\"exp\":1800000600}"};
    static const char *const accounts[] = {"0", "-12"};
    for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++) {
        char *token = sign_rsa(claims[i]);
        assert_string_equal(assert_taken(a, token).account, accounts[i]);
        free(token);
    }
    char *token = sign_rsa("{\"acc\":0.5,\"gms\":7,\"sco\":\"\",\"iat\":0,\"exp\":1800000600}");
    assert_refused(a, token, "its claim acc names no account");
    free(token);
    access_free(a);
}

static void rubbish_is_refused(void **state)
{
    (void)state;
    struct access *a = make();
    static const char *const rubbish[] = {
        "", ".", "..", "...", "a.b.c", "eyJhbGciOiJIUzI1NiJ9", "eyJhbGciOiJIUzI1NiJ9.",
        "eyJhbGciOiJIUzI1NiJ9..", "bnVsbA.e30.", "W10.e30.x", "eyJhbGciOjF9.e30.x",
        /* {"alg":"HS256","crit":["b64"]} */
        "eyJhbGciOiJIUzI1NiIsImNyaXQiOlsiYjY0Il19.e30.x", "\xff\xfe.\x80.\x01"};
    char why[ACCESS_WHY_MAX];
    struct access_grant grant;
    for (size_t i = 0; i < sizeof(rubbish) / sizeof(rubbish[0]); i++)
        assert_int_equal(access_check(a, str_of(rubbish[i]), now_ms, &grant, why),
                         ERR_BAD_ACCESS_TOKEN);
    struct dice dice = {77};
    for (int round = 0; round < 2000; round++) {
        char bytes[200];
        size_t len = dice_below(&dice, sizeof(bytes));
        for (size_t i = 0; i < len; i++)
            bytes[i] = (char)dice_roll(&dice);
        assert_int_equal(access_check(a, (struct str){bytes, len}, now_ms, &grant, why),
                         ERR_BAD_ACCESS_TOKEN);
    }
    access_free(a);
}

/* libjwt would read past the end of a part of which there is nothing. */
static void an_empty_part_never_reaches_libjwt(void **state)
{
    (void)state;
    struct access *a = make();
    static const char *const tokens[] = {"eyJhbGciOiJIUzI1NiJ9..", "eyJhbGciOiJIUzI1NiJ9.e30.",
                                         "eyJhbGciOiJIUzI1NiJ9..x"};
    char why[ACCESS_WHY_MAX];
    struct access_grant grant;
    for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
        assert_int_equal(access_check(a, str_of(tokens[i]), now_ms, &grant, why),
                         ERR_BAD_ACCESS_TOKEN);
        assert_string_equal(why, "it is no JWT signed with HS256, RS256 or ES256");
    }
    access_free(a);
}

static void a_huge_token_is_refused_unread(void **state)
{
    (void)state;
    struct access *a = make();
    char *token = malloc(ACCESS_TOKEN_MAX + 2);
    memset(token, 'e', ACCESS_TOKEN_MAX + 1);
    token[ACCESS_TOKEN_MAX + 1] = '\0';
    assert_refused(a, token, "it is too long");
    token[ACCESS_TOKEN_MAX] = '\0';
    assert_refused(a, token, "it is no JWT signed with HS256, RS256 or ES256");
    free(token);
    access_free(a);
}

/* ── remembering ───────────────────────────────────────────────────────────────────────────── */

static void a_remembered_token_still_expires(void **state)
{
    (void)state;
    struct access *a = make();
    char *token = issue(a, ACCESS_READ, now_ms, now_ms + 5000);
    char why[ACCESS_WHY_MAX];
    struct access_grant grant;
    assert_int_equal(access_check(a, str_of(token), now_ms, &grant, why), 0);
    assert_int_equal(access_check(a, str_of(token), now_ms + 4999, &grant, why), 0);
    assert_int_equal(access_check(a, str_of(token), now_ms + 5000, &grant, why),
                     ERR_BAD_ACCESS_TOKEN);
    assert_string_equal(why, "it has expired");
    free(token);
    access_free(a);
}

static void a_key_that_was_taken_away_is_forgotten(void **state)
{
    (void)state;
    struct access *a = make();
    char *token = sign_rsa(good_claims);
    (void)assert_taken(a, token);
    access_configure(a, "7", NULL, 0);
    assert_refused(a, token, "no key we know has signed it");
    free(token);
    access_free(a);
}

static void more_tokens_than_are_remembered_stay_valid(void **state)
{
    (void)state;
    struct access *a = make();
    for (int round = 0; round < 2; round++) {
        for (int64_t i = 0; i < ACCESS_CACHE_MAX + 100; i++) {
            char *token = issue(a, ACCESS_READ, now_ms, now_ms + (i + 1) * 1000);
            assert_int_equal(assert_taken(a, token).expires_wall_ms, now_ms + (i + 1) * 1000);
            free(token);
        }
    }
    access_free(a);
}

static void what_is_kept_beside_a_token_is_its_own_and_goes_with_it(void **state)
{
    (void)state;
    struct access *a = make();
    char *one = issue(a, ACCESS_READ, now_ms, now_ms + 5000);
    char *other = issue(a, ACCESS_READ, now_ms, now_ms + 6000);
    struct access_grant of_one = assert_taken(a, one);
    struct access_grant of_other = assert_taken(a, other);
    buf_append(access_keepsake(a, &of_one), "kept", 4);
    assert_int_equal(access_keepsake(a, &of_other)->len, 0);
    struct access_grant again = assert_taken(a, one);
    assert_int_equal(access_keepsake(a, &again)->len, 4);
    access_configure(a, "7", NULL, 0);
    assert_null(access_keepsake(a, &of_one));
    again = assert_taken(a, one);
    assert_int_equal(access_keepsake(a, &again)->len, 0);
    free(one);
    free(other);
    access_free(a);
}

/* ── words and keys ────────────────────────────────────────────────────────────────────────── */

static void scopes_have_words(void **state)
{
    (void)state;
    struct buf b = {0};
    assert_int_equal(access_scope(STR("muster_admin")), ACCESS_ADMIN);
    assert_int_equal(access_scope(STR("muster")), 0);
    assert_int_equal(access_scope(STR("")), 0);
    assert_string_equal(access_scope_name(ACCESS_HOST), "game_host");
    for (uint32_t bit = 1; bit < ACCESS_ALL; bit <<= 1) {
        assert_int_equal(access_scope(str_of(access_scope_name(bit))), bit);
        assert_true(strlen(access_scope_help(bit)) > 0);
    }
    access_scopes_print(ACCESS_GAME | ACCESS_READ, &b);
    assert_true(str_eq((struct str){(char *)b.data, b.len}, STR("muster_read,game")));
    buf_done(&b);
}

static bool fits(enum access_algorithm algorithm, const char *pem, char *why)
{
    struct access_key key = {.algorithm = algorithm};
    strcpy(key.pem, pem);
    return access_key_fits(&key, why);
}

static void a_key_must_fit_its_algorithm(void **state)
{
    (void)state;
    char why[ACCESS_WHY_MAX];
    assert_true(fits(ACCESS_RS256, rsa_public, why));
    assert_true(fits(ACCESS_ES256, ec_public, why));
    assert_false(fits(ACCESS_RS256, ec_public, why));
    assert_string_equal(why, "RS256 needs an RSA key of 2048 bits or more");
    assert_false(fits(ACCESS_RS256, short_rsa_public, why));
    assert_false(fits(ACCESS_ES256, rsa_public, why));
    assert_string_equal(why, "ES256 needs a key on the curve P-256");
    assert_false(fits(ACCESS_ES256, p384_public, why));
    assert_false(fits(ACCESS_RS256, "rubbish", why));
    assert_string_equal(why, "it is no public key in PEM (-----BEGIN PUBLIC KEY-----)");
    assert_false(fits(ACCESS_RS256, rsa_private, why));
}

/* ── extending ─────────────────────────────────────────────────────────────────────────────── */

static const char player_claims[] =
    "{\"acc\":\"ann\",\"gms\":\"7\",\"sco\":\"game,profile\",\"iat\":1800000000,"
    "\"exp\":1800000600}";
static const char server_claims[] =
    "{\"acc\":\"arena\",\"gms\":\"7\",\"sco\":\"profile_write,profile,gold\","
    "\"iat\":1799999000,\"exp\":1800000300}";

/* Signed by the built-in issuer, whose key is derived like this. The caller frees it. */
static char *sign_own(const char *claims)
{
    static const char purpose[] = "access token, HS256";
    uint8_t key[32];
    assert_int_equal(crypto_generichash(key, sizeof(key), (const uint8_t *)purpose, strlen(purpose),
                                        secret, sizeof(secret)),
                     0);
    return sign(claims, JWT_ALG_HS256, key, sizeof(key));
}

static int extend(struct access *a, const char *token, const char *by, const char *asked,
                  struct buf *out, char *why)
{
    buf_clear(out);
    int err = access_extend(a, str_of(token), str_of(by), str_of(asked), now_ms, out, why);
    buf_append(out, "", 1);
    return err;
}

static void assert_words(struct access *a, const struct buf *token, const char *words)
{
    struct buf found = {0};
    char why[ACCESS_WHY_MAX];
    assert_int_equal(access_words(a, str_of((const char *)token->data), &found, why), 0);
    buf_append(&found, "", 1);
    assert_string_equal((const char *)found.data, words);
    buf_done(&found);
}

static void an_extended_token_has_what_was_asked_for(void **state)
{
    (void)state;
    struct access *a = make();
    struct buf out = {0};
    char why[ACCESS_WHY_MAX] = "";
    char *player = sign_own(player_claims), *server = sign_own(server_claims);
    assert_int_equal(extend(a, player, server, "profile_write,admin", &out, why), 0);
    assert_words(a, &out, "game,profile,profile_write");
    struct access_grant grant = assert_taken(a, (const char *)out.data);
    assert_string_equal(grant.account, "ann");
    assert_int_equal(grant.scopes, ACCESS_GAME);
    assert_int_equal(grant.expires_wall_ms, 1800000300000); /* when the first of the two does */
    assert_int_equal(extend(a, player, server, "*", &out, why), 0);
    assert_words(a, &out, "game,profile,profile_write,gold");
    assert_int_equal(extend(a, player, server, "nothing", &out, why), 0);
    assert_words(a, &out, "game,profile");
    free(player);
    free(server);
    buf_done(&out);
    access_free(a);
}

static void a_repeated_extension_gives_the_same_token(void **state)
{
    (void)state;
    struct access *a = make();
    struct buf first = {0}, second = {0};
    char why[ACCESS_WHY_MAX] = "";
    char *player = sign_own(player_claims), *server = sign_own(server_claims);
    assert_int_equal(extend(a, player, server, "*", &first, why), 0);
    assert_int_equal(
        access_extend(a, str_of(player), str_of(server), STR("*"), now_ms + 5000, &second, why), 0);
    buf_append(&second, "", 1);
    assert_string_equal((const char *)first.data, (const char *)second.data);
    free(player);
    free(server);
    buf_done(&first);
    buf_done(&second);
    access_free(a);
}

static void only_an_issuer_extends_its_tokens(void **state)
{
    (void)state;
    struct access *a = make();
    struct buf out = {0};
    char why[ACCESS_WHY_MAX] = "";
    char *player = sign_own(player_claims), *server = sign_own(server_claims);
    char *foreign_player = sign_rsa(player_claims), *foreign_server = sign_rsa(server_claims);
    assert_true(access_is_own(str_of(player)));
    assert_false(access_is_own(str_of(foreign_player)));
    assert_false(access_is_own(STR("rubbish")));
    assert_int_equal(extend(a, foreign_player, server, "*", &out, why), ERR_NO_SIGNING_KEY);
    assert_int_equal(extend(a, player, foreign_server, "*", &out, why), ERR_NO_SIGNING_KEY);
    assert_string_equal(why, "it was issued elsewhere, and only its issuer can extend it");
    free(player);
    free(server);
    free(foreign_player);
    free(foreign_server);
    buf_done(&out);
    access_free(a);
}

static void only_valid_tokens_are_extended(void **state)
{
    (void)state;
    static const char expired[] = "{\"acc\":\"ann\",\"gms\":\"7\",\"sco\":\"game,profile\","
                                  "\"iat\":1700000000,\"exp\":1700000600}";
    static const char elsewhere[] = "{\"acc\":\"arena\",\"gms\":\"8\",\"sco\":\"gold\","
                                    "\"iat\":1800000000,\"exp\":1800000600}";
    struct access *a = make();
    struct buf out = {0};
    char why[ACCESS_WHY_MAX] = "";
    char *player = sign_own(player_claims), *server = sign_own(server_claims);
    char *late = sign_own(expired), *other = sign_own(elsewhere);
    assert_int_equal(extend(a, late, server, "*", &out, why), ERR_BAD_ACCESS_TOKEN);
    assert_string_equal(why, "it has expired");
    assert_int_equal(extend(a, player, late, "*", &out, why), ERR_BAD_ACCESS_TOKEN);
    assert_int_equal(extend(a, player, other, "*", &out, why), ERR_BAD_ACCESS_TOKEN);
    assert_string_equal(why, "it is for another gamespace");
    assert_int_equal(extend(a, player, "rubbish", "*", &out, why), ERR_BAD_ACCESS_TOKEN);
    buf_clear(&out);
    buf_append(&out, late, strlen(late) + 1);
    assert_words(a, &out, "game,profile"); /* which are read whatever the date */
    free(player);
    free(server);
    free(late);
    free(other);
    buf_done(&out);
    access_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_issued_is_taken),
        cmocka_unit_test(the_same_arguments_give_the_same_token),
        cmocka_unit_test(configured_keys_are_taken),
        cmocka_unit_test(numbers_may_be_text_and_text_numbers),
        cmocka_unit_test(scopes_we_do_not_know_allow_nothing),
        cmocka_unit_test(a_token_without_signature_is_refused),
        cmocka_unit_test(a_public_key_is_no_password),
        cmocka_unit_test(another_key_is_refused),
        cmocka_unit_test(stronger_algorithms_are_refused_too),
        cmocka_unit_test(a_changed_token_is_refused),
        cmocka_unit_test(claims_decide),
        cmocka_unit_test(an_issuers_clock_may_be_a_little_ahead),
        cmocka_unit_test(a_date_may_have_a_fraction),
        cmocka_unit_test(an_account_may_be_a_number),
        cmocka_unit_test(rubbish_is_refused),
        cmocka_unit_test(an_empty_part_never_reaches_libjwt),
        cmocka_unit_test(a_huge_token_is_refused_unread),
        cmocka_unit_test(a_remembered_token_still_expires),
        cmocka_unit_test(a_key_that_was_taken_away_is_forgotten),
        cmocka_unit_test(more_tokens_than_are_remembered_stay_valid),
        cmocka_unit_test(what_is_kept_beside_a_token_is_its_own_and_goes_with_it),
        cmocka_unit_test(scopes_have_words),
        cmocka_unit_test(a_key_must_fit_its_algorithm),
        cmocka_unit_test(an_extended_token_has_what_was_asked_for),
        cmocka_unit_test(a_repeated_extension_gives_the_same_token),
        cmocka_unit_test(only_an_issuer_extends_its_tokens),
        cmocka_unit_test(only_valid_tokens_are_extended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
