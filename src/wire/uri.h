/* What a request asks for: the target of its first line, taken apart and decoded. Owned by whoever
 * embeds it. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

struct uri {
    struct buf text; /* the path, then key and value of each argument, each with its NUL */
    size_t args;     /* where the first key stands */
};

/* target is "/path?key=value&…", or the same behind "http://authority". False, and *ret is empty,
 * when an escape is not two hexadecimal digits or means NUL: what different readers would read
 * differently is no address of anything. */
bool uri_parse(const char *target, struct uri *ret);
void uri_done(struct uri *u);

/* Decoded, but for escaped slashes and percent signs: a "/" in it is one between two segments. */
const char *uri_path(const struct uri *u);

/* Appends a segment of such a path, wholly decoded. */
void uri_segment(struct buf *out, struct str segment);

/* Appends s as one piece of a path or a query: all but letters, digits and "-._~" as %XX. */
void uri_escape(struct buf *out, const char *s);

/* Appends "/path?key=value&…": a target that is read as this one was. */
void uri_put(struct buf *out, const struct uri *u);

/* Walks the arguments in their order: start with *at = 0; false at the end. A key without "=" has
 * value "". */
bool uri_next(const struct uri *u, size_t *at, const char **ret_key, const char **ret_value);
