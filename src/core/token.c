/* Credentials are derived, not drawn: BLAKE2b(secret, kind ‖ object id). So core needs no random
 * source, a repeat after a restart gives the same token, and no store ever holds one. */
#include "core/state.h"

#include <sodium.h>
#include <string.h>

static void derive(const struct core *core, const char *kind, int64_t id,
                   uint8_t out[TOKEN_GUID_SIZE])
{
    uint8_t input[16] = {0};
    strncpy((char *)input, kind, 8);
    for (size_t i = 0; i < 8; i++)
        input[8 + i] = (uint8_t)((uint64_t)id >> (8 * i));
    (void)crypto_generichash(out, TOKEN_GUID_SIZE, input, sizeof(input), core->secret,
                             sizeof(core->secret));
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

static char *print_guid(char *at, const uint8_t guid[TOKEN_GUID_SIZE])
{
    static const size_t groups[] = {4, 2, 2, 2, 6};
    for (size_t g = 0, i = 0; g < 5; i += groups[g++]) {
        if (g > 0)
            *at++ = '-';
        at = print_hex(at, guid + i, groups[g]);
    }
    return at;
}

/* Two digits at a time: a division is the dear part. */
static char *print_number(char *at, int64_t v)
{
    static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                                "25262728293031323334353637383940414243444546474849"
                                "50515253545556575859606162636465666768697071727374"
                                "75767778798081828384858687888990919293949596979899";
    char digits[20];
    size_t from = sizeof(digits);
    uint64_t rest = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    for (; rest >= 100; rest /= 100) {
        from -= 2;
        memcpy(digits + from, pairs + rest % 100 * 2, 2);
    }
    if (rest >= 10) {
        from -= 2;
        memcpy(digits + from, pairs + rest * 2, 2);
    } else {
        digits[--from] = (char)('0' + rest);
    }
    if (v < 0)
        *at++ = '-';
    memcpy(at, digits + from, sizeof(digits) - from);
    return at + sizeof(digits) - from;
}

/* MATCH_{lobby}_{guid}_{unix seconds} */
static struct str print_token(const struct row_session *session,
                              const uint8_t guid[TOKEN_GUID_SIZE], char dst[TOKEN_SIZE])
{
    _Static_assert(sizeof("MATCH_-2147483648_") + 36 + sizeof("_-9223372036854775808") <=
                       TOKEN_SIZE,
                   "the longest one fits");
    char *at = dst;
    memcpy(at, "MATCH_", 6);
    at = print_number(at + 6, session->lobby);
    *at++ = '_';
    at = print_guid(at, guid);
    *at++ = '_';
    at = print_number(at, session->token_unix_s);
    *at = '\0';
    return (struct str){dst, (size_t)(at - dst)};
}

/* A token is said twice, to the server and in the answer, soon after each other. */
static const uint8_t *guid_of(struct core *core, int64_t session)
{
    struct token_guid *kept = &core->guids[(uint64_t)session % TOKEN_GUIDS];
    if (kept->session != session) {
        derive(core, "match", session, kept->guid);
        kept->session = session;
    }
    return kept->guid;
}

struct str token_of(struct core *core, const struct row_session *session, char dst[TOKEN_SIZE])
{
    return print_token(session, guid_of(core, session->id), dst);
}

/* Derived anew each time: what is kept would tell by the time whether a match is known. */
bool token_matches(const struct core *core, const struct row_session *session, struct str token)
{
    static const struct row_session nobody = {.id = -1};
    const struct row_session *row = session ? session : &nobody;
    char expected[TOKEN_SIZE] = {0};
    char given[TOKEN_SIZE] = {0};
    uint8_t guid[TOKEN_GUID_SIZE];
    derive(core, "match", row->id, guid);
    (void)print_token(row, guid, expected);
    bool fits = str_copy(given, sizeof(given), token);
    bool same = sodium_memcmp(expected, given, TOKEN_SIZE) == 0;
    return same && fits && session;
}

void core_hash_token(struct str token, uint8_t ret[CORE_HASH_SIZE])
{
    (void)crypto_generichash(ret, CORE_HASH_SIZE, (const uint8_t *)token.at, token.len, NULL, 0);
}
