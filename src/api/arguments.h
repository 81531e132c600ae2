/* Arguments: what came with a request, checked against the row of its operation. They may come in
 * the path, the query, a form or a JSON body; each at most once, and none that the row does not
 * name. Owned by the call that embeds it; texts live as long. */
#pragma once

#include "api/operation.h"
#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ARGUMENTS_WHY_MAX = 320, ARGUMENTS_DIGEST = 32 };

struct argument {
    bool given;
    int64_t number;    /* FIELD_ID, FIELD_INT, FIELD_BOOL; `otherwise` when it is not given */
    struct str text;   /* FIELD_TEXT, FIELD_WORD; FIELD_JSON: in its one form, see json_any */
    struct str *items; /* FIELD_LIST; FIELD_OBJECTS, FIELD_LISTS: each as text of JSON */
    size_t n_items;
};

struct arguments {
    const struct operation *operation;
    struct argument values[OPERATION_FIELDS_MAX]; /* by field */
    struct str access_token;                      /* the argument of that name; empty = none */
    struct arena arena;
    const char *wrong;           /* after a refusal: the argument meant, or NULL */
    char why[ARGUMENTS_WHY_MAX]; /* … and a sentence */
};

void arguments_init(struct arguments *a, const struct operation *operation);
void arguments_done(struct arguments *a);

/* For arguments that were used before, or are zero: the same, but the arena stays as it is. */
void arguments_again(struct arguments *a, const struct operation *operation);

/* One argument as text, from path, query or form. All of these return 0, or ERR_BAD_ARGUMENT with
 * a->wrong and a->why. The texts are copied. */
int arguments_put(struct arguments *a, const char *name, struct str value);

/* A body: an object whose members are arguments. */
int arguments_put_json(struct arguments *a, struct str body);
int arguments_put_form(struct arguments *a, struct str body);

/* After the last one: what is missing, and what is used instead. */
int arguments_complete(struct arguments *a);

/* By name, which must be the row's. */
const struct argument *arguments_get(const struct arguments *a, const char *name);

/* A hash of all of them: equal for equal arguments, however they came. */
void arguments_digest(const struct arguments *a, uint8_t ret[ARGUMENTS_DIGEST]);

/* A mistake that only a handler can see. Returns ERR_BAD_ARGUMENT. */
int arguments_refuse(struct arguments *a, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

enum { ARGUMENTS_SHOWN_MAX = 48 };

/* Somebody's text as it may stand in a sentence: in quotes and cut. Returns dst. */
const char *arguments_show(char dst[ARGUMENTS_SHOWN_MAX + 16], struct str text);
