/* Credentials are derived, not drawn: BLAKE2b(secret, kind ‖ object id). So core needs no random
 * source, a repeat after a restart gives the same token, and no store ever holds one. */
#include "core/state.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

static void derive(const struct core *core, const char *kind, int64_t id, uint8_t out[16])
{
    uint8_t input[16] = {0};
    strncpy((char *)input, kind, 8);
    for (size_t i = 0; i < 8; i++)
        input[8 + i] = (uint8_t)((uint64_t)id >> (8 * i));
    (void)crypto_generichash(out, 16, input, sizeof(input), core->secret, sizeof(core->secret));
}

static char *print_hex(char *at, const uint8_t *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        *at++ = digits[bytes[i] >> 4];
        *at++ = digits[bytes[i] & 15];
    }
    return at;
}

static void print_guid(char dst[37], const uint8_t guid[16])
{
    static const size_t groups[] = {4, 2, 2, 2, 6};
    char *at = dst;
    for (size_t g = 0, i = 0; g < 5; i += groups[g++]) {
        if (g > 0)
            *at++ = '-';
        at = print_hex(at, guid + i, groups[g]);
    }
    *at = '\0';
}

struct str token_of(const struct core *core, const struct row_session *session,
                    char dst[TOKEN_SIZE])
{
    uint8_t guid[16];
    derive(core, "match", session->id, guid);
    char text[37];
    print_guid(text, guid);
    int n = snprintf(dst, TOKEN_SIZE, "MATCH_%" PRId32 "_%s_%" PRId64, session->lobby, text,
                     session->token_unix_s);
    assert(n > 0 && n < TOKEN_SIZE);
    return (struct str){dst, (size_t)n};
}

bool token_matches(const struct core *core, const struct row_session *session, struct str token)
{
    static const struct row_session nobody = {.id = -1};
    char expected[TOKEN_SIZE] = {0};
    char given[TOKEN_SIZE] = {0};
    (void)token_of(core, session ? session : &nobody, expected);
    bool fits = str_copy(given, sizeof(given), token);
    bool same = sodium_memcmp(expected, given, TOKEN_SIZE) == 0;
    return same && fits && session;
}

void core_hash_token(struct str token, uint8_t ret[CORE_HASH_SIZE])
{
    (void)crypto_generichash(ret, CORE_HASH_SIZE, (const uint8_t *)token.at, token.len, NULL, 0);
}
