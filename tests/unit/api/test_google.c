/* Google's tokens and keys, with a Google on the same loop: it gives tokens to whoever signs well,
 * and shows its keys. */
#include "api/google_keys.h"
#include "api/google_token.h"

#include "base/json.h"
#include "base/log.h"
#include "keys.h"
#include "lib/loop.h"

#include <gnutls/abstract.h>
#include <jwt.h>
#include <sodium.h>
#include <stdio.h>
#include <unistd.h>

static const char email[] = "pusher@demo.iam.gserviceaccount.com";
static const char audience[] = "https://muster.example/v1/pubsub/push";

struct world {
    struct loop loop;
    struct http_server *google;
    struct http_client *client;
    char host[ADDRESS_MAX];
    char url[200];
    char file[64];

    int asked;      /* for a token, or for keys */
    int refusals;   /* … so many more are refused */
    int valid_s;    /* of the tokens it gives */
    char flaw[200]; /* what was wrong with the last question; "" = nothing */
    const char *key_id;

    struct google_token *token;
    struct google_keys *keys;
    int changed;
};

/* ── Google ────────────────────────────────────────────────────────────────────────────────── */

static void say(struct http_request *r, int status, const char *text)
{
    struct buf body = {0};
    buf_append(&body, text, strlen(text));
    http_answer(r, status, "application/json", &body, NULL);
}

static void give_token(struct world *w, struct http_request *r)
{
    char text[200];
    snprintf(text, sizeof(text), "{\"access_token\":\"ya29.%d\",\"expires_in\":%d}", w->asked,
             w->valid_s);
    say(r, 200, text);
}

#define FLAW(w_, condition_)                                                                       \
    do {                                                                                           \
        if (!(condition_))                                                                         \
            snprintf((w_)->flaw, sizeof((w_)->flaw), "%s", #condition_);                           \
    } while (0)

static void check_proof(struct world *w, struct http_request *r)
{
    static const char head[] =
        "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=";
    char text[4096], uri[240];
    jwt_t *jwt = NULL;
    struct str body = http_body(r);
    w->flaw[0] = '\0';
    FLAW(w, str_copy(text, sizeof(text), body) && strncmp(text, head, strlen(head)) == 0);
    FLAW(w, jwt_decode(&jwt, text + strlen(head), (const unsigned char *)rsa_public,
                       (int)strlen(rsa_public)) == 0);
    if (!jwt)
        return;
    snprintf(uri, sizeof(uri), "%s/token", w->url);
    FLAW(w, jwt_get_alg(jwt) == JWT_ALG_RS256);
    FLAW(w, strcmp(jwt_get_header(jwt, "kid"), "k1") == 0);
    FLAW(w, strcmp(jwt_get_grant(jwt, "iss"), "me@demo") == 0);
    FLAW(w, strcmp(jwt_get_grant(jwt, "aud"), uri) == 0);
    FLAW(w, strcmp(jwt_get_grant(jwt, "scope"), "https://www.googleapis.com/auth/pubsub") == 0);
    FLAW(w, jwt_get_grant_int(jwt, "exp") - jwt_get_grant_int(jwt, "iat") == 3600);
    jwt_free(jwt);
}

static void put_number(char *dst, size_t cap, const gnutls_datum_t *d)
{
    sodium_bin2base64(dst, cap, d->data, d->size, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

static void show_keys(struct world *w, struct http_request *r)
{
    char text[2048], modulus[1024], exponent[64];
    gnutls_pubkey_t public;
    gnutls_datum_t m, e, pem = {(unsigned char *)(uintptr_t)rsa_public, sizeof(rsa_public) - 1};
    assert_int_equal(gnutls_pubkey_init(&public), 0);
    assert_int_equal(gnutls_pubkey_import(public, &pem, GNUTLS_X509_FMT_PEM), 0);
    assert_int_equal(gnutls_pubkey_export_rsa_raw(public, &m, &e), 0);
    put_number(modulus, sizeof(modulus), &m);
    put_number(exponent, sizeof(exponent), &e);
    snprintf(text, sizeof(text),
             "{\"keys\":[{\"kty\":\"EC\",\"kid\":\"other\"},7,"
             "{\"kty\":\"RSA\",\"kid\":\"%s\",\"n\":\"%s\",\"e\":\"%s\"}]}",
             w->key_id, modulus, exponent);
    gnutls_free(m.data);
    gnutls_free(e.data);
    gnutls_pubkey_deinit(public);
    say(r, 200, text);
}

static void on_request(void *user, struct http_request *r)
{
    struct world *w = user;
    w->asked++;
    if (w->refusals > 0) {
        w->refusals--;
        say(r, 503, "{}");
    } else if (strcmp(http_path(r), "/token") == 0) {
        check_proof(w, r);
        give_token(w, r);
    } else if (strcmp(http_path(r), "/certs") == 0) {
        show_keys(w, r);
    } else {
        const char *flavour = http_header(r, "Metadata-Flavor");
        w->flaw[0] = '\0';
        FLAW(w, flavour && strcmp(flavour, "Google") == 0);
        FLAW(w, strcmp(http_path(r),
                       "/computeMetadata/v1/instance/service-accounts/default/token") == 0);
        give_token(w, r);
    }
}

static void on_request_done(void *user, struct http_request *r)
{
    (void)user;
    (void)r;
}

/* ── the world ─────────────────────────────────────────────────────────────────────────────── */

static void no_hook(void *user)
{
    (void)user;
}

static void on_tick(void *user)
{
    struct world *w = user;
    if (w->google)
        http_server_tick(w->google, clock_monotonic_ms());
}

static int world_new(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    struct loop_hooks hooks = {.turn = no_hook, .tick = on_tick, .user = w};
    struct loop_limits limits = {.streams = 100, .streams_per_address = 100};
    const struct http_limits http = {.connections = 100,
                                     .connections_per_address = 50,
                                     .body_max = 100000,
                                     .head_ms = 5000,
                                     .idle_ms = 20000,
                                     .suspend_ms = 10000};
    const struct http_ops ops = {.request = on_request, .done = on_request_done, .user = w};
    const struct http_place place = {.ip = "127.0.0.1"};
    const char *why = NULL;
    log_set_level(LOG_ERROR);
    w->valid_s = 3600;
    w->key_id = "key-1";
    loop_init(&w->loop, &hooks, &limits);
    assert_int_equal(http_server_start(&w->loop, &place, &http, &ops, &w->google, &why), 0);
    http_server_address(w->google, w->host);
    snprintf(w->url, sizeof(w->url), "http://%s", w->host);
    w->client = http_client_new(&w->loop, &(struct http_client_config){0});
    snprintf(w->file, sizeof(w->file), "/tmp/muster-google-XXXXXX");
    int fd = mkstemp(w->file);
    assert_true(fd >= 0);
    close(fd);
    *state = w;
    return 0;
}

static int world_free(void **state)
{
    struct world *w = *state;
    google_token_free(w->token);
    google_keys_free(w->keys);
    http_client_free(w->client);
    http_server_stop(w->google);
    w->google = NULL;
    loop_done(&w->loop);
    unlink(w->file);
    unsetenv("GCE_METADATA_HOST");
    free(w);
    return 0;
}

static void on_changed(void *user)
{
    struct world *w = user;
    w->changed++;
}

static void write_file(const struct world *w, const char *text)
{
    FILE *f = fopen(w->file, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void write_account(const struct world *w)
{
    struct buf text = {0};
    struct json_writer j = {.out = &text};
    char uri[240];
    snprintf(uri, sizeof(uri), "%s/token", w->url);
    json_open_object(&j);
    json_key_text(&j, "type", STR("service_account"));
    json_key_text(&j, "client_email", STR("me@demo"));
    json_key_text(&j, "private_key", str_of(rsa_private));
    json_key_text(&j, "private_key_id", STR("k1"));
    json_key_text(&j, "token_uri", str_of(uri));
    json_close_object(&j);
    buf_append(&text, "", 1);
    write_file(w, (const char *)text.data);
    buf_done(&text);
}

static void open_token(struct world *w, const char *file)
{
    char why[GOOGLE_WHY_MAX];
    setenv("GCE_METADATA_HOST", w->host, 1);
    w->token = google_token_new(&w->loop, w->client, file, on_changed, w, why);
    assert_non_null(w->token);
}

/* ── tokens ────────────────────────────────────────────────────────────────────────────────── */

static void an_account_signs_for_its_token(void **state)
{
    struct world *w = *state;
    write_account(w);
    open_token(w, w->file);
    assert_null(google_token_get(w->token));
    RUN_UNTIL(w, w->changed == 1);
    assert_string_equal(w->flaw, "");
    assert_string_equal(google_token_get(w->token), "ya29.1");
    assert_string_equal(google_token_get(w->token), "ya29.1");
    assert_int_equal(w->asked, 1);
}

static void the_machine_has_a_token(void **state)
{
    struct world *w = *state;
    open_token(w, "");
    assert_null(google_token_get(w->token));
    RUN_UNTIL(w, w->changed == 1);
    assert_string_equal(w->flaw, "");
    assert_string_equal(google_token_get(w->token), "ya29.1");
}

static void a_token_is_replaced_before_it_ends(void **state)
{
    struct world *w = *state;
    w->valid_s = 2;
    open_token(w, "");
    (void)google_token_get(w->token);
    RUN_UNTIL(w, w->changed == 1);
    w->valid_s = 3600;
    RUN_UNTIL(w, w->changed == 2); /* by itself: nobody has asked for one that is valid */
    assert_string_equal(google_token_get(w->token), "ya29.2");
}

static void a_refused_token_is_got_anew(void **state)
{
    struct world *w = *state;
    open_token(w, "");
    (void)google_token_get(w->token);
    RUN_UNTIL(w, w->changed == 1);
    google_token_refused(w->token);
    assert_null(google_token_get(w->token));
    RUN_UNTIL(w, w->changed == 2);
    assert_string_equal(google_token_get(w->token), "ya29.2");
}

static void a_failure_is_tried_again(void **state)
{
    struct world *w = *state;
    w->refusals = 2;
    open_token(w, "");
    (void)google_token_get(w->token);
    RUN_UNTIL(w, w->changed == 1);
    assert_string_equal(google_token_why(w->token), "it answered 503");
    assert_null(google_token_get(w->token)); /* asks nobody: its time has not come */
    assert_int_equal(w->asked, 1);
    RUN_UNTIL(w, w->changed == 3);
    assert_int_equal(w->asked, 3);
    assert_string_equal(google_token_why(w->token), "");
    assert_string_equal(google_token_get(w->token), "ya29.3");
}

static void a_file_that_is_none_is_a_sentence(void **state)
{
    struct world *w = *state;
    char why[GOOGLE_WHY_MAX];
    static const struct {
        const char *text;
        const char *clause;
    } rows[] = {
        {"no json", "line 1"},
        {"[]", "it is no JSON object"},
        {"{\"type\":\"authorized_user\"}", "type is not service_account"},
        {"{\"type\":\"service_account\",\"client_email\":\"a\"}", "private_key is missing"},
        {"{\"type\":\"service_account\",\"client_email\":\"a\",\"private_key\":\"x\"}",
         "no RSA key"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        write_file(w, rows[i].text);
        assert_null(google_token_new(&w->loop, w->client, w->file, on_changed, w, why));
        if (!strstr(why, rows[i].clause))
            fail_msg("%s", why);
    }
    assert_null(google_token_new(&w->loop, w->client, "/nowhere/key.json", on_changed, w, why));
    assert_non_null(strstr(why, "No such file"));
}

/* ── keys ──────────────────────────────────────────────────────────────────────────────────── */

struct claims {
    const char *issuer;
    const char *audience;
    const char *email;
    bool unverified;
    int64_t iat_s; /* from now */
    int64_t exp_s;
    const char *key_id;
    const char *secret; /* signed with it and HS256 */
};

static enum google_verdict judge(struct world *w, struct claims c, char *why)
{
    jwt_t *jwt = NULL;
    int64_t now_ms = clock_wall_ms();
    const char *key = c.secret ? c.secret : rsa_private;
    assert_int_equal(jwt_new(&jwt), 0);
    jwt_set_alg(jwt, c.secret ? JWT_ALG_HS256 : JWT_ALG_RS256, (const unsigned char *)key,
                (int)strlen(key));
    jwt_add_header(jwt, "kid", c.key_id ? c.key_id : "key-1");
    jwt_add_grant(jwt, "iss", c.issuer ? c.issuer : "https://accounts.google.com");
    jwt_add_grant(jwt, "aud", c.audience ? c.audience : audience);
    jwt_add_grant(jwt, "email", c.email ? c.email : email);
    jwt_add_grant_bool(jwt, "email_verified", !c.unverified);
    jwt_add_grant_int(jwt, "iat", now_ms / 1000 + c.iat_s);
    jwt_add_grant_int(jwt, "exp", now_ms / 1000 + (c.exp_s ? c.exp_s : 3600));
    char *token = jwt_encode_str(jwt);
    assert_non_null(token);
    enum google_verdict verdict =
        google_keys_check(w->keys, str_of(token), audience, email, now_ms, why);
    free(token);
    jwt_free(jwt);
    return verdict;
}

static void open_keys(struct world *w)
{
    char url[240];
    snprintf(url, sizeof(url), "%s/certs", w->url);
    w->keys = google_keys_new(&w->loop, w->client, url);
}

/* Until it can tell. */
static enum google_verdict judged(struct world *w, struct claims c, char *why)
{
    enum google_verdict verdict;
    RUN_UNTIL(w, (verdict = judge(w, c, why)) != GOOGLE_LATER);
    return verdict;
}

static void google_is_told_from_others(void **state)
{
    struct world *w = *state;
    char why[GOOGLE_KEYS_WHY_MAX];
    static const struct {
        struct claims claims;
        const char *why;
    } rows[] = {
        {{.issuer = "https://accounts.example.com"}, "Google is not its issuer"},
        {{.audience = "https://elsewhere"}, "it is for another audience"},
        {{.email = "else@demo.iam.gserviceaccount.com"}, "it is another account's"},
        {{.unverified = true}, "its e-mail address is not verified"},
        {{.exp_s = -1}, "it has expired"},
        {{.iat_s = 300}, "it was issued in the future"},
        {{.key_id = "key-9"}, "no key of Google's has signed it"},
        {{.secret = rsa_public}, "it is no JWT signed with RS256 by a named key"},
    };
    open_keys(w);
    assert_int_equal(judge(w, (struct claims){0}, why), GOOGLE_LATER);
    assert_int_equal(judged(w, (struct claims){0}, why), GOOGLE_GOOD);
    assert_int_equal(judged(w, (struct claims){.issuer = "accounts.google.com"}, why), GOOGLE_GOOD);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(judged(w, rows[i].claims, why), GOOGLE_BAD);
        assert_string_equal(why, rows[i].why);
    }
    assert_int_equal(google_keys_check(w->keys, STR("a.b.c"), audience, email, 0, why), GOOGLE_BAD);
    assert_int_equal(google_keys_check(w->keys, STR(""), audience, email, 0, why), GOOGLE_BAD);
    assert_int_equal(w->asked, 1); /* strangers make us ask nobody, for a while */
}

static void a_key_of_another_signs_nothing(void **state)
{
    struct world *w = *state;
    char why[GOOGLE_KEYS_WHY_MAX];
    open_keys(w);
    assert_int_equal(judged(w, (struct claims){0}, why), GOOGLE_GOOD);
    /* The signature of one token under the claims of another. */
    char *dot, text[4096];
    jwt_t *jwt = NULL;
    assert_int_equal(jwt_new(&jwt), 0);
    jwt_set_alg(jwt, JWT_ALG_RS256, (const unsigned char *)rsa_private, (int)strlen(rsa_private));
    jwt_add_header(jwt, "kid", "key-1");
    jwt_add_grant(jwt, "aud", audience);
    char *token = jwt_encode_str(jwt);
    assert_non_null(dot = strrchr(token, '.'));
    snprintf(text, sizeof(text), "%.*sA%s", (int)(dot - token - 1), token, dot);
    free(token);
    jwt_free(jwt);
    assert_int_equal(
        google_keys_check(w->keys, str_of(text), audience, email, clock_wall_ms(), why),
        GOOGLE_BAD);
    assert_string_equal(why, "no key of Google's has signed it");
}

static void without_keys_nothing_is_good_or_bad(void **state)
{
    struct world *w = *state;
    char why[GOOGLE_KEYS_WHY_MAX];
    w->refusals = 2;
    open_keys(w);
    RUN_UNTIL(w, w->asked == 1);
    assert_int_equal(judge(w, (struct claims){0}, why), GOOGLE_LATER);
    assert_int_equal(judged(w, (struct claims){0}, why), GOOGLE_GOOD);
    assert_int_equal(w->asked, 3);
}

static void a_new_key_of_googles_is_found(void **state)
{
    struct world *w = *state;
    char why[GOOGLE_KEYS_WHY_MAX];
    open_keys(w);
    assert_int_equal(judged(w, (struct claims){0}, why), GOOGLE_GOOD);
    w->key_id = "key-2";
    struct claims newer = {.key_id = "key-2"};
    assert_int_equal(judge(w, newer, why), GOOGLE_BAD); /* they were asked for a moment ago */
    RUN_UNTIL(w, judge(w, newer, why) == GOOGLE_GOOD);
    assert_int_equal(w->asked, 2);
    assert_int_equal(judge(w, (struct claims){0}, why), GOOGLE_BAD); /* and the old one is gone */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_new, world_free)
    const struct CMUnitTest tests[] = {
        TEST(an_account_signs_for_its_token),
        TEST(the_machine_has_a_token),
        TEST(a_token_is_replaced_before_it_ends),
        TEST(a_refused_token_is_got_anew),
        TEST(a_failure_is_tried_again),
        TEST(a_file_that_is_none_is_a_sentence),
        TEST(google_is_told_from_others),
        TEST(a_key_of_another_signs_nothing),
        TEST(without_keys_nothing_is_good_or_bad),
        TEST(a_new_key_of_googles_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
