/* Secrets: what a game server was given and others must not read in what it prints. Those of its
 * command line, its environment and our answers are known by their text; access tokens and the keys
 * of seats by their form as well, whoever gave them. Owned by the game, which embeds it. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

struct json;
struct process_spec;

enum {
    SECRETS_MAX = 64,            /* of one game server; the oldest goes */
    SECRET_MIN = 6,              /* bytes; a shorter one would blank harmless words */
    SECRET_PART_MIN = 16,        /* bytes of its beginning that are as good as all of it */
    SECRETS_OPEN_MAX = 9 * 1024, /* a longer word is no token of ours */
};

/* Embedded: a zeroed struct knows none. */
struct secrets {
    char *texts[SECRETS_MAX];
    size_t n;
    size_t next; /* n == SECRETS_MAX: the oldest */
};

void secrets_done(struct secrets *s);

/* What its command line and its environment hold under a name that says so: a token, a key, a
 * password; also within JSON. */
void secrets_take_spec(struct secrets *s, const struct process_spec *spec);

/* Members of v, at any depth, whose name says so. */
void secrets_take_json(struct secrets *s, const struct json *v);

/* Puts *** in the place of each that is in the text from there on, which does not grow. cut: it may
 * begin within one. s may be NULL. */
void secrets_blank(const struct secrets *s, struct buf *text, size_t from, bool cut);

/* How many bytes at the end of the text may be the beginning of one that is not all there yet. */
size_t secrets_open(const struct secrets *s, const struct buf *text);
