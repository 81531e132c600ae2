#include "api/access.h"

#include "base/err.h"
#include "base/json.h"
#include "base/list.h"
#include "base/map.h"
#include "core/core.h"

#include <assert.h>
#include <errno.h>
#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <inttypes.h>
#include <jwt.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_SIZE = 32, HEAD_MAX = 1024, RSA_BITS_MIN = 2048 };

_Static_assert((int)ACCESS_HASH_SIZE == (int)crypto_shorthash_siphashx24_BYTES, "128 bits");

/* A token that was found to be right. */
struct verified {
    struct access_grant grant;
    struct buf keepsake;
    struct link in_age; /* the oldest first */
};

struct access {
    uint8_t own_key[KEY_SIZE];  /* the built-in issuer's, for HS256 */
    uint8_t hash_key[KEY_SIZE]; /* so that nobody can make two tokens with one hash */
    struct buf own_head;        /* what stands before the first dot of its tokens */
    char gamespace[ACCESS_GAMESPACE_MAX + 1];
    struct access_key keys[ACCESS_KEYS_MAX];
    size_t n_keys;
    struct map verified; /* the first 8 bytes of the hash -> struct verified */
    struct list by_age;
};

/* ── words ─────────────────────────────────────────────────────────────────────────────────── */

static const struct {
    const char *word;
    const char *help;
} scope_table[] = {
#define X(name, word_, help_) {word_, help_},
    ACCESS_SCOPES(X)
#undef X
};

static const struct {
    const char *name;
    jwt_alg_t jwt;
} algorithms[ACCESS_ALGORITHMS] = {
    [ACCESS_HS256] = {"HS256", JWT_ALG_HS256},
    [ACCESS_RS256] = {"RS256", JWT_ALG_RS256},
    [ACCESS_ES256] = {"ES256", JWT_ALG_ES256},
};

static size_t order_of(uint32_t scope)
{
    assert(scope != 0 && (scope & (scope - 1)) == 0 && (scope & ~(uint32_t)ACCESS_ALL) == 0);
    return (size_t)__builtin_ctz(scope);
}

uint32_t access_scope(struct str word)
{
    for (uint32_t i = 0; i < ACCESS_ORDER_END; i++) {
        if (str_eq(word, str_of(scope_table[i].word)))
            return 1u << i;
    }
    return 0;
}

const char *access_scope_name(uint32_t scope)
{
    return scope_table[order_of(scope)].word;
}

const char *access_scope_help(uint32_t scope)
{
    return scope_table[order_of(scope)].help;
}

void access_scopes_print(uint32_t scopes, struct buf *out)
{
    const char *gap = "";
    for (uint32_t i = 0; i < ACCESS_ORDER_END; i++) {
        if (!(scopes & 1u << i))
            continue;
        buf_append(out, gap, strlen(gap));
        buf_append(out, scope_table[i].word, strlen(scope_table[i].word));
        gap = ",";
    }
}

const char *access_algorithm_name(enum access_algorithm algorithm)
{
    return algorithms[algorithm].name;
}

enum access_algorithm access_algorithm(struct str name)
{
    int i = 0;
    while (i < ACCESS_ALGORITHMS && !str_eq(name, str_of(algorithms[i].name)))
        i++;
    return (enum access_algorithm)i;
}

/* ── the object ────────────────────────────────────────────────────────────────────────────── */

static void derive(const uint8_t *secret, const char *purpose, uint8_t ret[KEY_SIZE])
{
    (void)crypto_generichash(ret, KEY_SIZE, (const uint8_t *)purpose, strlen(purpose), secret,
                             CORE_SECRET_SIZE);
}

/* The head says only how a token is signed, so one token shows that of all. */
static void learn_own_head(struct access *a)
{
    access_issue(a, "", ACCESS_NONE, 0, 0, &a->own_head);
    const char *dot = memchr(a->own_head.data, '.', a->own_head.len);
    assert(dot);
    a->own_head.len = (size_t)(dot - (const char *)a->own_head.data);
}

struct access *access_new(const uint8_t *secret)
{
    struct access *a = xcalloc(1, sizeof(*a));
    derive(secret, "access token, HS256", a->own_key);
    derive(secret, "access token, cache", a->hash_key);
    learn_own_head(a);
    list_init(&a->by_age);
    return a;
}

static uint64_t key_of(const struct access_grant *grant)
{
    uint64_t key;
    memcpy(&key, grant->hash, sizeof(key));
    return key;
}

static void forget(struct access *a, struct verified *v)
{
    map_remove(&a->verified, key_of(&v->grant));
    list_remove(&v->in_age);
    buf_done(&v->keepsake);
    free(v);
}

static void forget_all(struct access *a)
{
    LIST_EACH(&a->by_age, v, struct verified, in_age)
    {
        forget(a, v);
    }
}

void access_free(struct access *a)
{
    if (!a)
        return;
    forget_all(a);
    map_done(&a->verified);
    buf_done(&a->own_head);
    sodium_memzero(a, sizeof(*a));
    free(a);
}

void access_configure(struct access *a, const char *gamespace, const struct access_key *keys,
                      size_t n)
{
    assert(n <= ACCESS_KEYS_MAX);
    bool fits = str_copy(a->gamespace, sizeof(a->gamespace), str_of(gamespace));
    assert(fits);
    (void)fits;
    if (n > 0)
        memcpy(a->keys, keys, n * sizeof(*keys));
    a->n_keys = n;
    forget_all(a);
}

const char *access_gamespace(const struct access *a)
{
    return a->gamespace;
}

bool access_key_fits(const struct access_key *key, char why[ACCESS_WHY_MAX])
{
    gnutls_pubkey_t public;
    unsigned bits = 0;
    gnutls_ecc_curve_t curve = GNUTLS_ECC_CURVE_INVALID;
    gnutls_datum_t pem = {(unsigned char *)(uintptr_t)key->pem, (unsigned)strlen(key->pem)};
    if (gnutls_pubkey_init(&public) != 0)
        abort(); /* out of memory, as in buf.h */
    if (gnutls_pubkey_import(public, &pem, GNUTLS_X509_FMT_PEM) != 0) {
        snprintf(why, ACCESS_WHY_MAX, "it is no public key in PEM (-----BEGIN PUBLIC KEY-----)");
        gnutls_pubkey_deinit(public);
        return false;
    }
    int kind = gnutls_pubkey_get_pk_algorithm(public, &bits);
    bool is_p256 = kind == GNUTLS_PK_ECDSA &&
                   gnutls_pubkey_export_ecc_raw(public, &curve, NULL, NULL) == 0 &&
                   curve == GNUTLS_ECC_CURVE_SECP256R1;
    gnutls_pubkey_deinit(public);
    bool fits =
        key->algorithm == ACCESS_ES256 ? is_p256 : kind == GNUTLS_PK_RSA && bits >= RSA_BITS_MIN;
    if (!fits)
        snprintf(why, ACCESS_WHY_MAX, "%s needs %s", access_algorithm_name(key->algorithm),
                 key->algorithm == ACCESS_ES256 ? "a key on the curve P-256"
                                                : "an RSA key of 2048 bits or more");
    return fits;
}

/* ── checking ──────────────────────────────────────────────────────────────────────────────── */

static int refuse(char *why, const char *clause)
{
    snprintf(why, ACCESS_WHY_MAX, "%s", clause);
    return ERR_BAD_ACCESS_TOKEN;
}

/* Head, claims and signature, none of them empty: libjwt reads a byte past the end of a part that
 * is. */
static bool has_three_parts(struct str token)
{
    int parts = 1;
    bool empty = true;
    for (size_t i = 0; i < token.len; i++) {
        bool dot = token.at[i] == '.';
        if (dot && empty)
            return false;
        parts += dot;
        empty = dot;
    }
    return parts == 3 && !empty;
}

/* The algorithm that the head names; ACCESS_ALGORITHMS for one we do not take or no head at all. A
 * token that asks for extensions ("crit") is to be refused by whoever does not know them. */
static enum access_algorithm named_algorithm(struct str token)
{
    char text[HEAD_MAX];
    char why[JSON_WHY_MAX];
    size_t len = 0;
    const char *dot = memchr(token.at, '.', token.len);
    if (!dot ||
        sodium_base642bin((unsigned char *)text, sizeof(text), token.at, (size_t)(dot - token.at),
                          NULL, &len, NULL, sodium_base64_VARIANT_URLSAFE_NO_PADDING) != 0)
        return ACCESS_ALGORITHMS;
    struct json *head = json_parse((struct str){text, len}, why);
    if (!head)
        return ACCESS_ALGORITHMS;
    enum access_algorithm found = ACCESS_ALGORITHMS;
    if (json_kind(head) == JSON_KIND_OBJECT && !json_member(head, "crit")) {
        const struct json *alg = json_member(head, "alg");
        if (alg)
            found = access_algorithm(json_get_text(alg));
    }
    json_free(head);
    return found;
}

/* The same at once for tokens of the built-in issuer, which most are. */
static enum access_algorithm algorithm_of(const struct access *a, struct str token)
{
    size_t len = a->own_head.len;
    if (token.len > len && token.at[len] == '.' && memcmp(token.at, a->own_head.data, len) == 0)
        return ACCESS_HS256;
    return named_algorithm(token);
}

/* A token whose signature is right, to be freed with jwt_free. Its claims are read where libjwt has
 * them. */
static jwt_t *open_with(const char *token, enum access_algorithm algorithm, const void *key,
                        size_t len)
{
    jwt_t *jwt = NULL;
    if (jwt_decode(&jwt, token, key, (int)len) != 0)
        return NULL;
    if (jwt_get_alg(jwt) == algorithms[algorithm].jwt)
        return jwt;
    jwt_free(jwt);
    return NULL;
}

static jwt_t *open_token(const struct access *a, const char *token, enum access_algorithm algorithm)
{
    if (algorithm == ACCESS_HS256)
        return open_with(token, algorithm, a->own_key, sizeof(a->own_key));
    for (size_t i = 0; i < a->n_keys; i++) {
        const struct access_key *key = &a->keys[i];
        if (key->algorithm != algorithm)
            continue;
        jwt_t *jwt = open_with(token, algorithm, key->pem, strlen(key->pem));
        if (jwt)
            return jwt;
    }
    return NULL;
}

static bool claim_is_there(jwt_t *jwt, const char *name)
{
    errno = 0;
    return jwt_get_grant(jwt, name) || errno != ENOENT;
}

/* libjwt takes whatever is no number for 0. */
static bool claim_int(jwt_t *jwt, const char *name, int64_t *ret)
{
    errno = 0;
    int64_t v = jwt_get_grant_int(jwt, name);
    bool is_int = errno == 0 && v != 0;
    if (errno == 0 && v == 0) {
        char *json = jwt_get_grants_json(jwt, name);
        is_int = json && strcmp(json, "0") == 0;
        free(json);
    }
    if (is_int)
        *ret = v;
    return is_int;
}

/* A claim as text, also when it is a number. False when it is missing, empty, too long or no text
 * that could be shown. */
static bool claim_text(jwt_t *jwt, const char *name, char *dst, size_t cap)
{
    int64_t number;
    const char *text = jwt_get_grant(jwt, name);
    if (!text && claim_int(jwt, name, &number))
        return snprintf(dst, cap, "%" PRId64, number) < (int)cap;
    for (const char *c = text; c && *c; c++) {
        if ((unsigned char)*c < ' ')
            return false;
    }
    return text && *text && str_copy(dst, cap, str_of(text));
}

/* What is neither a whole number nor text: a fraction, or -1. */
static double claim_fraction(jwt_t *jwt, const char *name)
{
    char *json = jwt_get_grants_json(jwt, name);
    char *end = json;
    double s = json && json[0] >= '0' && json[0] <= '9' ? strtod(json, &end) : -1;
    if (end && *end != '\0')
        s = -1;
    free(json);
    return s;
}

/* A date in seconds, perhaps as text or with a fraction, in milliseconds. */
static bool claim_date(jwt_t *jwt, const char *name, int64_t *ret_wall_ms)
{
    static const double latest_s = 253402300799; /* the end of the year 9999 */
    int64_t whole_s = -1;
    double s = -1;
    const char *text = jwt_get_grant(jwt, name);
    if (text && text[0] >= '0' && text[0] <= '9') {
        char *end = NULL;
        s = (double)strtoll(text, &end, 10);
        if (*end != '\0')
            return false;
    } else if (!text) {
        s = claim_int(jwt, name, &whole_s) ? (double)whole_s : claim_fraction(jwt, name);
    }
    if (!(s >= 0 && s <= latest_s))
        return false;
    *ret_wall_ms = (int64_t)(s * 1000);
    return true;
}

/* Takes the next word off a comma list; false when it is empty. */
static bool next_word(struct str *list, struct str *ret)
{
    if (list->len == 0)
        return false;
    const char *comma = memchr(list->at, ',', list->len);
    size_t len = comma ? (size_t)(comma - list->at) : list->len;
    size_t taken = comma ? len + 1 : len;
    *ret = (struct str){list->at, len};
    *list = (struct str){list->at + taken, list->len - taken};
    return true;
}

static uint32_t read_scopes(struct str list)
{
    uint32_t scopes = 0;
    struct str word;
    while (next_word(&list, &word))
        scopes |= access_scope(word);
    return scopes & ACCESS_ADMIN ? scopes | ACCESS_READ : scopes;
}

static int check_claims(const struct access *a, jwt_t *claims, int64_t wall_ms,
                        struct access_grant *ret, char *why)
{
    char gamespace[ACCESS_GAMESPACE_MAX + 1];
    int64_t issued_ms, expires_ms, not_before_ms;
    const char *scopes = jwt_get_grant(claims, "sco");
    if (!claim_text(claims, "acc", ret->account, sizeof(ret->account)))
        return refuse(why, "its claim acc names no account");
    if (!claim_text(claims, "gms", gamespace, sizeof(gamespace)))
        return refuse(why, "its claim gms names no gamespace");
    if (!scopes)
        return refuse(why, "its claim sco is no list of scopes");
    if (!claim_date(claims, "iat", &issued_ms))
        return refuse(why, "its claim iat is no date");
    if (!claim_date(claims, "exp", &expires_ms))
        return refuse(why, "its claim exp is no date");
    if (strcmp(gamespace, a->gamespace) != 0)
        return refuse(why, "it is for another gamespace");
    if (wall_ms >= expires_ms)
        return refuse(why, "it has expired");
    if (issued_ms > wall_ms + ACCESS_SKEW_MS)
        return refuse(why, "it was issued in the future");
    if (claim_is_there(claims, "nbf") &&
        (!claim_date(claims, "nbf", &not_before_ms) || not_before_ms > wall_ms + ACCESS_SKEW_MS))
        return refuse(why, "it is not valid yet");
    ret->scopes = read_scopes(str_of(scopes));
    ret->expires_wall_ms = expires_ms;
    return 0;
}

/* A token whose signature is right, or NULL with why. */
static jwt_t *open_claims(const struct access *a, struct str token,
                          enum access_algorithm *ret_algorithm, char *why)
{
    *ret_algorithm = has_three_parts(token) ? algorithm_of(a, token) : ACCESS_ALGORITHMS;
    if (*ret_algorithm == ACCESS_ALGORITHMS) {
        refuse(why, "it is no JWT signed with HS256, RS256 or ES256");
        return NULL;
    }
    char *copy = xmalloc(token.len + 1); /* libjwt wants a NUL */
    (void)str_copy(copy, token.len + 1, token);
    jwt_t *jwt = open_token(a, copy, *ret_algorithm);
    free(copy);
    if (!jwt)
        refuse(why, "no key we know has signed it");
    return jwt;
}

static int verify(const struct access *a, struct str token, int64_t wall_ms,
                  struct access_grant *ret, char *why)
{
    enum access_algorithm ignored;
    jwt_t *claims = open_claims(a, token, &ignored, why);
    if (!claims)
        return ERR_BAD_ACCESS_TOKEN;
    int err = check_claims(a, claims, wall_ms, ret, why);
    jwt_free(claims);
    return err;
}

bool access_is_own(struct str token)
{
    return named_algorithm(token) == ACCESS_HS256;
}

/* ── remembering ───────────────────────────────────────────────────────────────────────────── */

static void remember(struct access *a, const struct access_grant *grant)
{
    uint64_t key = key_of(grant);
    if (map_get(&a->verified, key))
        return;
    struct link *oldest = list_first(&a->by_age);
    if (oldest && a->verified.len >= ACCESS_CACHE_MAX)
        forget(a, container_of(oldest, struct verified, in_age));
    struct verified *v = xcalloc(1, sizeof(*v));
    v->grant = *grant;
    map_put(&a->verified, key, v);
    list_append(&a->by_age, &v->in_age);
}

static struct verified *find(const struct access *a, const struct access_grant *grant)
{
    struct verified *v = map_get(&a->verified, key_of(grant));
    return v && sodium_memcmp(v->grant.hash, grant->hash, ACCESS_HASH_SIZE) == 0 ? v : NULL;
}

/* A remembered token whose time is over is forgotten, and then refused like any other. */
static bool recall(struct access *a, struct access_grant *grant, int64_t wall_ms)
{
    struct verified *v = find(a, grant);
    if (!v)
        return false;
    if (wall_ms >= v->grant.expires_wall_ms) {
        forget(a, v);
        return false;
    }
    *grant = v->grant;
    return true;
}

struct buf *access_keepsake(struct access *a, const struct access_grant *grant)
{
    struct verified *v = find(a, grant);
    return v ? &v->keepsake : NULL;
}

int access_check(struct access *a, struct str token, int64_t wall_ms, struct access_grant *ret,
                 char why[ACCESS_WHY_MAX])
{
    struct access_grant grant = {0};
    if (token.len > ACCESS_TOKEN_MAX)
        return refuse(why, "it is too long");
    /* 128 bits under a key that nobody knows: to name another's token is to guess them. */
    (void)crypto_shorthash_siphashx24(grant.hash, (const uint8_t *)token.at, token.len,
                                      a->hash_key);
    if (!recall(a, &grant, wall_ms)) {
        int err = verify(a, token, wall_ms, &grant, why);
        if (err != 0)
            return err;
        remember(a, &grant);
    }
    *ret = grant;
    return 0;
}

/* ── issuing ───────────────────────────────────────────────────────────────────────────────── */

/* words ends with a NUL. */
void access_issue_words(const struct access *a, const char *account, const char *words,
                        int64_t issued_wall_ms, int64_t expires_wall_ms, struct buf *out)
{
    jwt_t *jwt = NULL;
    /* libjwt fails for want of memory only. */
    if (jwt_new(&jwt) != 0 ||
        jwt_set_alg(jwt, JWT_ALG_HS256, a->own_key, (int)sizeof(a->own_key)) != 0 ||
        jwt_add_grant(jwt, "acc", account) != 0 || jwt_add_grant(jwt, "gms", a->gamespace) != 0 ||
        jwt_add_grant(jwt, "sco", words) != 0 ||
        jwt_add_grant_int(jwt, "iat", (long)(issued_wall_ms / 1000)) != 0 ||
        jwt_add_grant_int(jwt, "exp", (long)(expires_wall_ms / 1000)) != 0)
        abort();
    char *token = jwt_encode_str(jwt);
    if (!token)
        abort();
    buf_append(out, token, strlen(token));
    free(token);
    jwt_free(jwt);
}

void access_issue(const struct access *a, const char *account, uint32_t scopes,
                  int64_t issued_wall_ms, int64_t expires_wall_ms, struct buf *out)
{
    struct buf list = {0};
    access_scopes_print(scopes, &list);
    buf_append(&list, "", 1);
    access_issue_words(a, account, (const char *)list.data, issued_wall_ms, expires_wall_ms, out);
    buf_done(&list);
}

/* ── extending ─────────────────────────────────────────────────────────────────────────────── */

/* A token taken apart for its extension. */
struct opened {
    jwt_t *claims;
    enum access_algorithm algorithm;
    struct access_grant grant;
    struct str words; /* of its claim sco; in claims */
    int64_t issued_wall_ms;
};

static int open_checked(const struct access *a, struct str token, int64_t wall_ms,
                        struct opened *ret, char *why)
{
    if (token.len > ACCESS_TOKEN_MAX)
        return refuse(why, "it is too long");
    ret->claims = open_claims(a, token, &ret->algorithm, why);
    if (!ret->claims)
        return ERR_BAD_ACCESS_TOKEN;
    int err = check_claims(a, ret->claims, wall_ms, &ret->grant, why);
    if (err != 0)
        return err;
    ret->words = str_of(jwt_get_grant(ret->claims, "sco"));
    return claim_date(ret->claims, "iat", &ret->issued_wall_ms)
               ? 0
               : refuse(why, "its claim iat is no date");
}

static bool names(struct str list, struct str word)
{
    struct str other;
    while (next_word(&list, &other)) {
        if (str_eq(word, other))
            return true;
    }
    return false;
}

/* Appends those words of `list` that `asked` names (all for "*") and that are not there yet. */
static void join_words(struct buf *out, struct str list, struct str asked)
{
    struct str word;
    bool all = str_eq(asked, STR("*"));
    while (next_word(&list, &word)) {
        struct str have = {(const char *)out->data, out->len};
        if (word.len == 0 || !(all || names(asked, word)) || names(have, word))
            continue;
        if (out->len > 0)
            buf_append(out, ",", 1);
        buf_append(out, word.at, word.len);
    }
}

int access_words(const struct access *a, struct str token, struct buf *out,
                 char why[ACCESS_WHY_MAX])
{
    enum access_algorithm ignored;
    struct buf words = {0};
    jwt_t *claims = open_claims(a, token, &ignored, why);
    if (!claims)
        return ERR_BAD_ACCESS_TOKEN;
    const char *list = jwt_get_grant(claims, "sco");
    if (list)
        join_words(&words, str_of(list), STR("*"));
    buf_append(out, words.data, words.len);
    buf_done(&words);
    jwt_free(claims);
    return 0;
}

static void issue_extended(const struct access *a, const struct opened *own,
                           const struct opened *by, struct str asked, struct buf *out)
{
    struct buf words = {0};
    int64_t issued_ms = own->issued_wall_ms, expires_ms = own->grant.expires_wall_ms;
    if (by->issued_wall_ms > issued_ms)
        issued_ms = by->issued_wall_ms;
    if (by->grant.expires_wall_ms < expires_ms)
        expires_ms = by->grant.expires_wall_ms;
    join_words(&words, own->words, STR("*"));
    join_words(&words, by->words, asked);
    buf_append(&words, "", 1);
    access_issue_words(a, own->grant.account, (const char *)words.data, issued_ms, expires_ms, out);
    buf_done(&words);
}

int access_extend(const struct access *a, struct str token, struct str by, struct str asked,
                  int64_t wall_ms, struct buf *out, char why[ACCESS_WHY_MAX])
{
    struct opened own = {0}, other = {0};
    int err = open_checked(a, token, wall_ms, &own, why);
    if (err == 0)
        err = open_checked(a, by, wall_ms, &other, why);
    if (err == 0 && (own.algorithm != ACCESS_HS256 || other.algorithm != ACCESS_HS256)) {
        snprintf(why, ACCESS_WHY_MAX, "it was issued elsewhere, and only its issuer can extend it");
        err = ERR_NO_SIGNING_KEY;
    }
    if (err == 0)
        issue_extended(a, &own, &other, asked, out);
    jwt_free(own.claims);
    jwt_free(other.claims);
    return err;
}
