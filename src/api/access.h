/* Access tokens: who asks over HTTP and what he may do. They are JWTs with the claims acc (the
 * account), gms (the gamespace, which must be ours), sco (its scopes, a comma list), iat and exp
 * (seconds); numbers may come as text. Signed with HS256 by the built-in issuer, whose key is
 * derived from the data folder's secret, or with RS256 or ES256 by whoever holds the private half
 * of a configured key.
 *
 * libjwt checks signatures and nothing else. It would take a token that names HS256 and was made
 * with the text of an RSA public key, so every key here has one algorithm, and a token is only
 * tried with keys of the algorithm it names. Dates and gamespace are compared here.
 *
 * Owned by the service. Used on the loop's thread. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(name, word, what it allows) */
#define ACCESS_SCOPES(X)                                                                           \
    X(READ, "muster_read", "see everything")                                                       \
    X(ADMIN, "muster_admin", "change everything; includes muster_read")                            \
    X(ALLOCATE, "muster_allocate", "ask for matches and players' places")                          \
    X(HOST, "game_host", "be the agent of a host")                                                 \
    X(GAME, "game", "play: create, find and join rooms")                                           \
    X(GAME_MULTI, "game_multi", "place several players together")                                  \
    X(GAME_BAN, "game_ban", "ban and unban players")

enum access_scope_order {
#define X(name, word, help) ACCESS_ORDER_##name,
    ACCESS_SCOPES(X)
#undef X
        ACCESS_ORDER_END
};

enum access_scope {
    ACCESS_NONE = 0, /* no token is needed */
#define X(name, word, help) ACCESS_##name = 1 << ACCESS_ORDER_##name,
    ACCESS_SCOPES(X)
#undef X
        ACCESS_ALL = (1 << ACCESS_ORDER_END) - 1,
};

enum {
    ACCESS_ACCOUNT_MAX = 64,
    ACCESS_GAMESPACE_MAX = 64,
    ACCESS_TOKEN_MAX = 8 * 1024,
    ACCESS_KEYS_MAX = 16,
    ACCESS_PEM_MAX = 4 * 1024,
    /* Verified tokens remembered, 192 bytes each; of players in rooms also the sealed token. */
    ACCESS_CACHE_MAX = 64 * 1024,
    ACCESS_HASH_SIZE = 16,
    ACCESS_SKEW_MS = 60 * 1000, /* how far ahead of ours an issuer's clock may be */
    ACCESS_WHY_MAX = 160,
};

enum access_algorithm { ACCESS_HS256, ACCESS_RS256, ACCESS_ES256, ACCESS_ALGORITHMS };

/* A public key of somebody who may issue tokens. */
struct access_key {
    char name[64];
    enum access_algorithm algorithm; /* RS256 or ES256 */
    char pem[ACCESS_PEM_MAX];        /* with a NUL */
};

/* What a valid token says. */
struct access_grant {
    char account[ACCESS_ACCOUNT_MAX + 1];
    uint32_t scopes;                /* bits of enum access_scope; ADMIN has brought READ */
    int64_t expires_wall_ms;        /* the first moment at which it is not valid */
    uint8_t hash[ACCESS_HASH_SIZE]; /* of the token: see access_keepsake */
};

struct access;

/* secret is CORE_SECRET_SIZE bytes. Nothing is configured yet: gamespace "", no keys. */
struct access *access_new(const uint8_t *secret);
void access_free(struct access *a); /* NULL is fine */

/* Replaces gamespace and keys (copied); verified tokens are forgotten. n is at most
 * ACCESS_KEYS_MAX. */
void access_configure(struct access *a, const char *gamespace, const struct access_key *keys,
                      size_t n);

/* Ours, as it is configured now. */
const char *access_gamespace(const struct access *a);

/* 0 with *ret, or ERR_BAD_ACCESS_TOKEN with a clause for the one who sent it ("it has expired"). */
int access_check(struct access *a, struct str token, int64_t wall_ms, struct access_grant *ret,
                 char why[ACCESS_WHY_MAX]);

/* What is kept beside a token that was checked, empty at first, so that what is made of it is made
 * once; gone when the token is forgotten. NULL when it is. Valid until access_check is called. */
struct buf *access_keepsake(struct access *a, const struct access_grant *grant);

/* Appends the built-in issuer's token for that account. The same arguments give the same token. */
void access_issue(const struct access *a, const char *account, uint32_t scopes,
                  int64_t issued_wall_ms, int64_t expires_wall_ms, struct buf *out);

/* The same with scopes as a comma list, also of those that mean nothing here. */
void access_issue_words(const struct access *a, const char *account, const char *words,
                        int64_t issued_wall_ms, int64_t expires_wall_ms, struct buf *out);

/* Appends the words of a token's scopes, also of those that mean nothing here, with commas between
 * them. Only its signature must be right: it may have expired since its owner was let in. 0, or
 * ERR_BAD_ACCESS_TOKEN as access_check. */
int access_words(const struct access *a, struct str token, struct buf *out,
                 char why[ACCESS_WHY_MAX]);

/* Appends a token like `token` that has more scopes: beside its own those of the token `by` that
 * `asked` names, a comma list, or "*" for all of them. It is valid while both are. The same
 * arguments give the same token. 0, or ERR_BAD_ACCESS_TOKEN as access_check, or ERR_NO_SIGNING_KEY
 * when one of the two was issued elsewhere: whoever trusts that issuer would not trust us. */
int access_extend(const struct access *a, struct str token, struct str by, struct str asked,
                  int64_t wall_ms, struct buf *out, char why[ACCESS_WHY_MAX]);

/* True when it says that the built-in issuer has signed it. */
bool access_is_own(struct str token);

/* The bit of a scope's word, or 0. */
uint32_t access_scope(struct str word);

/* "muster_read"; scope is one bit. */
const char *access_scope_name(uint32_t scope);
const char *access_scope_help(uint32_t scope);

/* "muster_read,muster_admin" in the order of the table. */
void access_scopes_print(uint32_t scopes, struct buf *out);

/* "RS256"; and back: ACCESS_ALGORITHMS when there is none of that name. */
const char *access_algorithm_name(enum access_algorithm algorithm);
enum access_algorithm access_algorithm(struct str name);

/* True when the PEM text is a public key that fits the algorithm; else a clause. For whoever reads
 * a configuration. */
bool access_key_fits(const struct access_key *key, char why[ACCESS_WHY_MAX]);
