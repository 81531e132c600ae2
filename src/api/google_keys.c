#include "api/google_keys.h"

#include "api/access.h"
#include "api/backoff.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "net/loop.h"

#include <errno.h>
#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <jwt.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FRESH_MS = 3600 * 1000, /* they change every few days, and are shown before they are used */
    AGAIN_MS = 5 * 1000,    /* strangers with keys of their own make us ask no more often */
    URL_MAX = 512,
    KEY_ID_MAX = 128,
    HEAD_MAX = 1024,
    NUMBER_MAX = 1024, /* bytes of an RSA modulus */
    RSA_BITS_MIN = 2048,
};

struct key {
    char id[KEY_ID_MAX];
    gnutls_datum_t pem; /* with a NUL behind it; GnuTLS's memory */
};

struct google_keys {
    struct http_client *client;
    struct http_call *call; /* under way */
    uv_timer_t again;
    struct backoff backoff;
    int64_t asked_ms; /* monotonic: when they were last asked for */
    char url[URL_MAX];
    struct key keys[GOOGLE_KEYS_MAX];
    size_t n;
};

static void begin(struct google_keys *k);

/* ── the keys ──────────────────────────────────────────────────────────────────────────────── */

static void forget_keys(struct google_keys *k)
{
    while (k->n > 0)
        gnutls_free(k->keys[--k->n].pem.data);
}

static bool take_number(const struct json *jwk, const char *name, uint8_t dst[NUMBER_MAX],
                        gnutls_datum_t *ret)
{
    size_t len = 0;
    const struct json *v = json_member(jwk, name);
    struct str text = v ? json_get_text(v) : (struct str){0};
    if (text.len == 0 || sodium_base642bin(dst, NUMBER_MAX, text.at, text.len, NULL, &len, NULL,
                                           sodium_base64_VARIANT_URLSAFE_NO_PADDING) != 0)
        return false;
    *ret = (gnutls_datum_t){dst, (unsigned)len};
    return true;
}

/* False when it is not RSA or too small to be trusted. */
static bool key_text(const struct json *jwk, gnutls_datum_t *ret_pem)
{
    uint8_t modulus[NUMBER_MAX], exponent[NUMBER_MAX];
    gnutls_datum_t m, e;
    gnutls_pubkey_t public;
    unsigned bits = 0;
    if (!take_number(jwk, "n", modulus, &m) || !take_number(jwk, "e", exponent, &e))
        return false;
    if (gnutls_pubkey_init(&public) != 0)
        abort(); /* out of memory, as in buf.h */
    bool ok = gnutls_pubkey_import_rsa_raw(public, &m, &e) == 0 &&
              gnutls_pubkey_get_pk_algorithm(public, &bits) == GNUTLS_PK_RSA &&
              bits >= RSA_BITS_MIN &&
              gnutls_pubkey_export2(public, GNUTLS_X509_FMT_PEM, ret_pem) == 0;
    gnutls_pubkey_deinit(public);
    return ok;
}

static void take_key(struct google_keys *k, const struct json *jwk)
{
    struct key *key = &k->keys[k->n];
    const struct json *id, *kind;
    if (k->n == GOOGLE_KEYS_MAX || json_kind(jwk) != JSON_KIND_OBJECT)
        return;
    id = json_member(jwk, "kid");
    kind = json_member(jwk, "kty");
    if (id && kind && str_eq(json_get_text(kind), STR("RSA")) && json_get_text(id).len > 0 &&
        str_copy(key->id, sizeof(key->id), json_get_text(id)) && key_text(jwk, &key->pem))
        k->n++;
}

static const struct key *find_key(const struct google_keys *k, struct str id)
{
    for (size_t i = 0; i < k->n; i++) {
        if (str_eq(id, str_of(k->keys[i].id)))
            return &k->keys[i];
    }
    return NULL;
}

/* ── fetching them ─────────────────────────────────────────────────────────────────────────── */

static void on_again(uv_timer_t *handle)
{
    begin(handle->data);
}

static void fail(struct google_keys *k, const char *clause)
{
    int64_t wait_ms = backoff_next_ms(&k->backoff);
    if (log_enabled(LOG_WARN)) {
        struct log_entry e;
        log_begin(&e, LOG_WARN, "Google's public keys could not be got");
        log_text(&e, "asked", str_of(k->url));
        log_text(&e, "why", str_of(clause));
        log_int(&e, "again_ms", wait_ms);
        log_end(&e);
    }
    uv_timer_start(&k->again, on_again, (uint64_t)wait_ms, 0);
}

/* Those before stay when there are none in it. */
static bool take_keys(struct google_keys *k, struct str body)
{
    char ignored[JSON_WHY_MAX];
    struct json *root = json_parse(body, ignored);
    const struct json *list =
        root && json_kind(root) == JSON_KIND_OBJECT ? json_member(root, "keys") : NULL;
    bool ok = list && json_kind(list) == JSON_KIND_ARRAY && json_length(list) > 0;
    if (ok)
        forget_keys(k);
    for (size_t i = 0; ok && i < json_length(list); i++)
        take_key(k, json_item(list, i));
    json_free(root);
    return ok;
}

static void on_reply(void *user, const struct http_reply *reply)
{
    struct google_keys *k = user;
    char clause[40];
    k->call = NULL;
    if (reply->status != 200) {
        snprintf(clause, sizeof(clause), "it answered %d", reply->status);
        fail(k, reply->status == 0 ? reply->why : clause);
    } else if (!take_keys(k, reply->body)) {
        fail(k, "its answer holds no keys");
    } else {
        k->backoff = (struct backoff){0};
        uv_timer_start(&k->again, on_again, FRESH_MS, 0);
    }
}

static void begin(struct google_keys *k)
{
    struct http_client_request request = {.method = HTTP_GET, .url = k->url};
    uv_timer_stop(&k->again);
    k->asked_ms = clock_monotonic_ms();
    k->call = http_client_send(k->client, &request, on_reply, k);
    if (!k->call)
        fail(k, "libcurl cannot be used");
}

struct google_keys *google_keys_new(struct loop *loop, struct http_client *client, const char *url)
{
    struct google_keys *k = xcalloc(1, sizeof(*k));
    k->client = client;
    snprintf(k->url, sizeof(k->url), "%s", url);
    uv_timer_init(&loop->uv, &k->again);
    k->again.data = k;
    begin(k);
    return k;
}

static void on_closed(uv_handle_t *handle)
{
    struct google_keys *k = handle->data;
    forget_keys(k);
    free(k);
}

void google_keys_free(struct google_keys *k)
{
    if (!k)
        return;
    if (k->call)
        http_call_drop(k->call);
    uv_close((uv_handle_t *)&k->again, on_closed);
}

/* ── checking ──────────────────────────────────────────────────────────────────────────────── */

static enum google_verdict refuse(char *why, const char *clause)
{
    snprintf(why, GOOGLE_KEYS_WHY_MAX, "%s", clause);
    return GOOGLE_BAD;
}

/* The key that the head names, when it says that it is signed with RS256. */
static bool named_key(struct str token, char id[KEY_ID_MAX])
{
    char text[HEAD_MAX], ignored[JSON_WHY_MAX];
    size_t len = 0;
    const char *dot = memchr(token.at, '.', token.len);
    if (!dot ||
        sodium_base642bin((unsigned char *)text, sizeof(text), token.at, (size_t)(dot - token.at),
                          NULL, &len, NULL, sodium_base64_VARIANT_URLSAFE_NO_PADDING) != 0)
        return false;
    struct json *head = json_parse((struct str){text, len}, ignored);
    bool ok = false;
    if (head && json_kind(head) == JSON_KIND_OBJECT && !json_member(head, "crit")) {
        const struct json *alg = json_member(head, "alg"), *kid = json_member(head, "kid");
        ok = alg && kid && str_eq(json_get_text(alg), STR("RS256")) && json_get_text(kid).len > 0 &&
             str_copy(id, KEY_ID_MAX, json_get_text(kid));
    }
    json_free(head);
    return ok;
}

/* The claims of a token that the key has signed, to be freed with jwt_free; or NULL. */
static jwt_t *open_token(struct str token, const struct key *key)
{
    jwt_t *jwt = NULL;
    char *copy = xmalloc(token.len + 1); /* libjwt wants a NUL */
    (void)str_copy(copy, token.len + 1, token);
    int err = jwt_decode(&jwt, copy, key->pem.data, (int)key->pem.size);
    free(copy);
    if (err != 0)
        return NULL;
    if (jwt_get_alg(jwt) == JWT_ALG_RS256)
        return jwt;
    jwt_free(jwt);
    return NULL;
}

static bool claim_is(jwt_t *claims, const char *name, const char *wanted)
{
    const char *value = jwt_get_grant(claims, name);
    return value && strcmp(value, wanted) == 0;
}

static enum google_verdict check_claims(jwt_t *claims, const char *audience, const char *email,
                                        int64_t wall_ms, char *why)
{
    int64_t expires_s = jwt_get_grant_int(claims, "exp");
    int64_t issued_s = jwt_get_grant_int(claims, "iat");
    if (!claim_is(claims, "iss", "https://accounts.google.com") &&
        !claim_is(claims, "iss", "accounts.google.com"))
        return refuse(why, "Google is not its issuer");
    if (!claim_is(claims, "aud", audience))
        return refuse(why, "it is for another audience");
    if (!claim_is(claims, "email", email))
        return refuse(why, "it is another account's");
    if (jwt_get_grant_bool(claims, "email_verified") != 1)
        return refuse(why, "its e-mail address is not verified");
    if (expires_s <= wall_ms / 1000)
        return refuse(why, "it has expired");
    if (issued_s > (wall_ms + ACCESS_SKEW_MS) / 1000)
        return refuse(why, "it was issued in the future");
    return GOOGLE_GOOD;
}

/* Perhaps it is newer than ours. While nobody can tell, the token is neither good nor bad. */
static enum google_verdict unknown_key(struct google_keys *k, char *why)
{
    bool fails = k->backoff.failures > 0;
    bool lately = clock_monotonic_ms() - k->asked_ms < AGAIN_MS;
    if (!k->call && !fails && !lately)
        begin(k);
    if (!k->call && k->backoff.failures == 0)
        return refuse(why, "no key of Google's has signed it");
    snprintf(why, GOOGLE_KEYS_WHY_MAX, "Google's keys are not known now");
    return GOOGLE_LATER;
}

enum google_verdict google_keys_check(struct google_keys *k, struct str token, const char *audience,
                                      const char *email, int64_t wall_ms,
                                      char why[GOOGLE_KEYS_WHY_MAX])
{
    char id[KEY_ID_MAX];
    if (token.len > ACCESS_TOKEN_MAX)
        return refuse(why, "it is too long");
    if (!named_key(token, id))
        return refuse(why, "it is no JWT signed with RS256 by a named key");
    const struct key *key = find_key(k, str_of(id));
    if (!key)
        return unknown_key(k, why);
    jwt_t *claims = open_token(token, key);
    if (!claims)
        return refuse(why, "no key of Google's has signed it");
    enum google_verdict verdict = check_claims(claims, audience, email, wall_ms, why);
    jwt_free(claims);
    return verdict;
}
