/* What is wrong with a YAML file, in the words of somebody who writes one: libyaml and libcyaml
 * speak of events and tokens.
 *
 * A place is written as people read it: "tokens, entry 2, role"; "" is the whole file. Texts are
 * written into what the caller owns. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

enum { YAML_WORDS_MAX = 400, YAML_PLACE_MAX = 200 };

/* True for one well-formed document; otherwise ret says line, column and mistake. */
bool yaml_is_one_document(const char *text, size_t len, char ret[YAML_WORDS_MAX]);

/* The line (from 1) on which a place is written (its key, or its entry), or the part of it that
 * there is; 0 when there is nothing. The text must be one well-formed document. */
size_t yaml_line(const char *text, size_t len, const char *place);

/* What libcyaml said while it read: its first complaint, then where, innermost first. Embedded,
 * zeroed. */
struct yaml_complaint {
    char said[200];
    char place[YAML_PLACE_MAX];
    char written[YAML_PLACE_MAX]; /* the place whose line is meant; of yaml_words */
};

/* Takes one line of libcyaml's log. */
void yaml_listen(struct yaml_complaint *c, const char *format, va_list args);

/* The complaint as "what must be there", in ret; c->place is cut where it says too much, c->written
 * is set. fallback is what libcyaml's error code means, for when it said nothing. */
void yaml_words(struct yaml_complaint *c, const char *fallback, char ret[YAML_WORDS_MAX]);
