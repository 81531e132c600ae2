/* Operations: everything that can be asked over HTTP, one row each. Routes, the check of arguments,
 * GET /openapi.json, docs/http-api.md and the command line's help come from these rows. The table
 * (operations.c, and the files of rows that it consists of) is a constant. */
#pragma once

#include "api/shape.h"
#include "net/http.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct call;

enum field_kind {
    FIELD_ID,      /* the decimal number of an object */
    FIELD_INT,     /* min..max */
    FIELD_TEXT,    /* min..max bytes of UTF-8 without control characters */
    FIELD_WORD,    /* one of words */
    FIELD_LIST,    /* min..max texts */
    FIELD_BOOL,    /* true or false, as text in any case; also 1 or 0 */
    FIELD_JSON,    /* an object of at most max bytes; as text, JSON */
    FIELD_OBJECTS, /* min..max objects; as text, a JSON array */
    FIELD_LISTS,   /* min..max lists of what `of` says; as text, a JSON array */
};

/* An argument. One named in the path comes from there; any other from the query, a form or a JSON
 * body, wherever its sender likes. */
struct field {
    const char *name;
    enum field_kind kind;
    bool required;
    int64_t min;
    int64_t max;
    const char *const *words; /* closed by NULL */
    bool has_otherwise;
    int64_t otherwise;      /* FIELD_INT, FIELD_BOOL: its value when it is not given */
    const struct shape *of; /* FIELD_LISTS: objects like this, which its handler reads; NULL = whole
                               numbers */
    const char *form;       /* FIELD_TEXT: what it must look like, for a refusal; NULL = any text */
    const char *help;
};

enum { OPERATION_FIELDS_MAX = 12, OPERATION_ERRORS_MAX = 28 };

struct operation {
    const char *name; /* "drain_server" */
    const char *path; /* "/v1/servers/{id}/drain" */
    enum http_method method;
    uint32_t scope; /* of enum access_scope, all of these; 0 = no token is needed */
    const char *summary;
    const char *about;                             /* more sentences, or NULL */
    struct field fields[OPERATION_FIELDS_MAX + 1]; /* closed by one without a name */

    /* NULL, or the shape of a JSON body that the handler reads itself: it is no set of arguments,
     * and what is not known in it is ignored. */
    const struct shape *asks;

    size_t body_max;            /* of those who may call it; 0 = REST_BODY_MAX */
    const struct shape *answer; /* NULL: it is no JSON, but content_type */
    const char *content_type;
    void (*handle)(struct call *c);
    const char *others_token; /* NULL, or whose token its handler checks instead of ours */
    uint32_t own_scope;       /* one of these is enough for what is the asker's own: its handler
                                 sees to it */
    uint32_t other_scope;     /* one of these is enough, too */
    int errors[OPERATION_ERRORS_MAX]; /* those that are its own */
    bool any_token;                   /* scope 0, but a valid one is needed, whatever its scopes */
    bool always;                      /* answered however much waits to be read */
    bool by_any_node;                 /* … by a standby, too, which sends on all else */
    bool upload;  /* the body is an archive; every argument comes in path or query */
    bool results; /* answers with results of allocations: 202 for one that waits in line, and a
                     failure under the status of its error */
    bool silent;  /* answers 204, with nothing */
    bool creates; /* answers 201, with a Location */
    bool is_list; /* {"items": [answer …], "next": cursor or null} */
};

extern const struct operation operations[];
extern const size_t n_operations;

/* NULL when there is none of that name. */
const struct operation *operation_find(const char *name);

/* A path taken apart by a row's template. */
struct route {
    const struct operation *operation;        /* NULL: nothing is here for that method */
    struct str in_path[OPERATION_FIELDS_MAX]; /* by field */
    uint32_t methods; /* bits by enum http_method that something is here for; 0 = no such path */
};

/* The first row of the table that fits: a word there stands before a parameter. The texts of *ret
 * point into path. */
void operation_route(enum http_method method, const char *path, struct route *ret);

/* True when that field comes in the path. */
bool operation_is_in_path(const struct operation *o, const struct field *f);

/* True when nobody is answered without an access token of ours. */
bool operation_needs_token(const struct operation *o);

/* True when it steps something into core and may carry an Idempotency-Key. */
bool operation_changes(const struct operation *o);

/* True when it takes a body: any argument that is not in the path, in an operation that changes. */
bool operation_has_body(const struct operation *o);

enum { OPERATION_ALL_ERRORS_MAX = 48 };

/* Every error its answers can have: its own and those of how it is asked. Returns how many, sorted
 * by status. */
size_t operation_errors(const struct operation *o, int ret[OPERATION_ALL_ERRORS_MAX]);

/* "GET" … */
const char *http_method_word(enum http_method method);
