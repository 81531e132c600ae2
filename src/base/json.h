/* JSON: a writer that appends to a buffer and a reader that refuses what is malformed.
 *
 * The writer puts the commas itself: after json_open_* and json_key come values. Text is written as
 * UTF-8 with what JSON must escape escaped; bytes that are no UTF-8 become U+FFFD. Its buffer is
 * the caller's.
 *
 * The reader is jansson's, with limits of ours around it: size, depth, no duplicate keys, no NUL in
 * text. Values are borrowed from the document that json_free ends.
 *
 * What was read can be written again in its one form (json_any), so that equal values are equal
 * bytes.
 *
 * No function may be called as one of jansson's: the program's would be taken for it, by jansson
 * itself and by libjwt. So there is no json_null here. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum { JSON_DEPTH_MAX = 32, JSON_SIZE_MAX = 16 * 1024 * 1024 };

struct json_writer {
    struct buf *out;
    bool comma; /* something stands before the next value */
};

void json_open_object(struct json_writer *w);
void json_close_object(struct json_writer *w);
void json_open_array(struct json_writer *w);
void json_close_array(struct json_writer *w);
void json_key(struct json_writer *w, const char *key); /* a plain name, not escaped */

void json_text(struct json_writer *w, struct str s);
void json_int(struct json_writer *w, int64_t v);
void json_number(struct json_writer *w, double v, int decimals); /* NaN and infinity become null */
void json_bool(struct json_writer *w, bool v);
void json_none(struct json_writer *w); /* null */

/* A value that is JSON already, as it is. */
void json_raw(struct json_writer *w, struct str text);

/* A key that may be anything, escaped like text. */
void json_key_any(struct json_writer *w, struct str key);

/* An id: a decimal number as text, because 64 bits do not survive every client. */
void json_id(struct json_writer *w, int64_t id);

/* "2026-11-16T08:15:30.123Z"; null for 0 and for years that four digits do not hold. */
void json_time(struct json_writer *w, int64_t wall_ms);

/* key and value in one. */
void json_key_text(struct json_writer *w, const char *key, struct str s);
void json_key_int(struct json_writer *w, const char *key, int64_t v);
void json_key_number(struct json_writer *w, const char *key, double v, int decimals);
void json_key_bool(struct json_writer *w, const char *key, bool v);
void json_key_id(struct json_writer *w, const char *key, int64_t id); /* null for 0 */
void json_key_time(struct json_writer *w, const char *key, int64_t wall_ms);

/* ── reading ───────────────────────────────────────────────────────────────────────────────── */

struct json; /* a value */

enum json_kind {
    JSON_KIND_NULL,
    JSON_KIND_BOOL,
    JSON_KIND_INT,
    JSON_KIND_REAL,
    JSON_KIND_TEXT,
    JSON_KIND_ARRAY,
    JSON_KIND_OBJECT,
};

enum { JSON_WHY_MAX = 160 };

/* NULL with why (a clause: "line 1, column 7: …") when text is no JSON value or breaks a limit. */
struct json *json_parse(struct str text, char why[JSON_WHY_MAX]);

/* A value that outlives the document it is borrowed from. */
struct json *json_keep(const struct json *v);
void json_free(struct json *root); /* what json_parse or json_keep returned; NULL is fine */

enum json_kind json_kind(const struct json *v);
struct str json_get_text(const struct json *v); /* empty when it is none */
int64_t json_get_int(const struct json *v);     /* 0 when it is none */
double json_get_number(const struct json *v);   /* of an int or a real */
bool json_get_bool(const struct json *v);
const struct json *json_member(const struct json *object, const char *key); /* or NULL */
size_t json_length(const struct json *array);
const struct json *json_item(const struct json *array, size_t i);

/* Walks an object: start with *at = NULL; false at the end. */
bool json_next(const struct json *object, void **at, const char **ret_key,
               const struct json **ret_value);

/* How many members an object has; 0 when it is none. */
size_t json_members(const struct json *object);

/* Writes a value that was read: members sorted by the bytes of their keys, no spaces, numbers as
 * short as they can be and still be read as the same. */
void json_any(struct json_writer *w, const struct json *v);

/* The same of two objects as one: where both have a member, that of `over` counts. */
void json_any_over(struct json_writer *w, const struct json *base, const struct json *over);
