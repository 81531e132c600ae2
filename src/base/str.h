/* A piece of text somebody else owns: a pointer and a length, no NUL needed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct str {
    const char *at;
    size_t len;
};

#define STR(literal) ((struct str){(literal), sizeof(literal) - 1})

struct str str_of(const char *z);
bool str_eq(struct str a, struct str b);

/* True when every byte belongs to a well-formed UTF-8 sequence (no surrogates, no overlong forms).
 */
bool str_is_utf8(struct str s);

/* Copies s into dst[cap] with a NUL. False (and dst empty) when it does not fit. */
bool str_copy(char *dst, size_t cap, struct str s);
