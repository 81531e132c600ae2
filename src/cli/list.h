/* Lists of the API as tables: which columns each kind of thing has, and reading all pages. */
#pragma once

#include "cli/remote.h"
#include "cli/show.h"

/* Columns of "servers", "sessions", "tickets", "fleets", "regions", "audit" or "token list", closed
 * by one without a title; NULL when there is no such list. */
const struct show_column *list_columns(const char *verb);

/* Which items of a list are shown. */
struct list_choice {
    int64_t limit;                         /* at most so many; 0 = all */
    bool (*keep)(const struct json *item); /* NULL = all */
    bool says_more;                        /* a line when there are more than the limit */
    int sorted_by; /* a table by so many of its first columns; 0 = as they come */
};

/* Appends to r->out the items of a list operation, page after page, as remote_output wants them.
 * Returns an exit code. *ret_n is how many there were. */
int list_draw(struct remote *r, struct ask *a, const struct show_column *columns,
              const struct list_choice *choice, size_t *ret_n);
