/* A piece of text somebody else owns: a pointer and a length, no NUL needed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
    const char *at;
    size_t len;
};

#define STR(literal) ((struct str){(literal), sizeof(literal) - 1})

/* Here, and not in str.c, because the length of a literal is then known to the compiler. */
static inline struct str str_of(const char *z)
{
    return (struct str){z, z ? strlen(z) : 0};
}

static inline bool str_eq(struct str a, struct str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

/* A number of bytes at the beginning of s, in steps of eight, that are printable ASCII and neither
 * a quote nor a backslash: most text is, and need not be looked at byte by byte. */
size_t str_plain_steps(struct str s);

/* FNV-1a, for map keys: compare the texts in full behind it. The seed joins other parts of a key.
 */
uint64_t str_hash(uint64_t seed, struct str s);

/* True when every byte belongs to a well-formed UTF-8 sequence (no surrogates, no overlong forms).
 */
bool str_is_utf8(struct str s);

/* Bytes of the well-formed UTF-8 character that s begins with; 0 when it begins with none. */
size_t str_char_len(struct str s);

/* The last max bytes of s, or fewer, so that it begins where a character does. */
struct str str_last(struct str s, size_t max);

enum { STR_PRINTED_MAX = 4 };

/* Writes what s begins with as it may stand between double quotes on a terminal or in a log: the
 * character itself, or an escape for quotes, control characters and bytes that are no text. Takes
 * *ret_taken bytes of s, which must not be empty, and returns how many (at most STR_PRINTED_MAX)
 * it has put into dst, without a NUL. */
size_t str_print_char(struct str s, char *dst, size_t *ret_taken);

/* Copies s into dst[cap] with a NUL. False (and dst empty) when it does not fit. */
bool str_copy(char *dst, size_t cap, struct str s);
