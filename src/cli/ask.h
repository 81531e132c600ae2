/* One question to the HTTP API, made of a command line: the row of an operation becomes a table of
 * options, and what was given for them becomes its path, query and body. So a verb's options have
 * the names, limits, words and help lines that the API has.
 *
 * Embedded in whoever asks; must not be moved after ask_init, since the table points into it. */
#pragma once

#include "api/operation.h"
#include "cli/args.h"

enum { ASK_NAME_MAX = 32, ASK_WORDS_MAX = 2 };

struct ask {
    const struct operation *operation;
    const char *word; /* what the argument in the path is called; NULL = the verb sets it */
    struct arg table[OPERATION_FIELDS_MAX + ASK_WORDS_MAX + 1];
    char names[OPERATION_FIELDS_MAX][ASK_NAME_MAX]; /* "--player-count" */
    struct {
        const char *text;
        int64_t number;
    } values[OPERATION_FIELDS_MAX]; /* by field */
};

/* Fills the table. `word` is what messages call the argument in the path ("SERVER"); NULL = there
 * is none, or the verb sets what the path needs with ask_set. A number of seconds ("expires_in_s")
 * becomes a time ("--expires 30d"). What the verb looks after itself (cursor, limit, last_event_id)
 * is no option. The operation must exist. */
void ask_init(struct ask *a, const char *operation, const char *word);

/* A field that may be given without its name too: `muster stdin 3 hello` is --line hello. At most
 * ASK_WORDS_MAX of them; before parsing. */
void ask_add_word(struct ask *a, const char *field, const char *word);

/* After parsing: true when everything the operation needs is there, and what stands in the path is
 * a number, or may be a name. Otherwise one sentence has been printed. */
bool ask_check(const struct ask *a, const char *verb);

/* After parsing: true when a host was given by its name, and its number must be set before it is
 * asked. Of all that has a number only hosts have a name that is theirs alone. */
bool ask_names_host(const struct ask *a);

/* True when the operation has that field. */
bool ask_has(const struct ask *a, const char *field);

/* Sets a field, which it must have, as if it had been given. The text is borrowed. */
void ask_set(struct ask *a, const char *field, const char *text);
void ask_set_number(struct ask *a, const char *field, int64_t number);

/* What was given for a text or the argument in the path; NULL = nothing. */
const char *ask_text(const struct ask *a, const char *field);

/* The same for a number; 0 = nothing. */
int64_t ask_number(const struct ask *a, const char *field);

/* Appends the path, with the query when the operation changes nothing. */
void ask_put_path(const struct ask *a, struct buf *path);

/* Appends the body of an operation that changes something: a JSON object, or nothing. */
void ask_put_body(const struct ask *a, struct buf *body);
