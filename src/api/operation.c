#include "api/operation.h"

#include "api/access.h"
#include "base/err.h"

#include <assert.h>
#include <string.h>

enum { OPERATIONS_MAX = 256 };

const struct operation *operation_find(const char *name)
{
    for (size_t i = 0; i < n_operations; i++) {
        if (strcmp(operations[i].name, name) == 0)
            return &operations[i];
    }
    return NULL;
}

const char *http_method_word(enum http_method method)
{
    static const char *const words[] = {
        [HTTP_GET] = "GET",       [HTTP_POST] = "POST",   [HTTP_PUT] = "PUT",
        [HTTP_DELETE] = "DELETE", [HTTP_OTHER] = "OTHER",
    };
    return words[method];
}

/* ── routes ────────────────────────────────────────────────────────────────────────────────── */

/* The piece before the next slash. */
static struct str segment(const char *at)
{
    return (struct str){at, strcspn(at, "/")};
}

static bool is_parameter(struct str s)
{
    return s.len > 2 && s.at[0] == '{' && s.at[s.len - 1] == '}';
}

static size_t field_of(const struct operation *o, struct str parameter)
{
    struct str name = {parameter.at + 1, parameter.len - 2};
    size_t i = 0;
    while (!str_eq(name, str_of(o->fields[i].name)))
        i++;
    return i;
}

/* Each request is held against each row, so this stops at the first character that differs and
 * keeps nothing. */
static bool matches(const struct operation *o, const char *path)
{
    const char *t = o->path;
    while (*t != '\0' && *t != '{' && *t == *path) {
        t++;
        path++;
        if (*t != '{')
            continue;
        size_t len = strcspn(path, "/");
        if (len == 0)
            return false;
        t += strcspn(t, "/");
        path += len;
    }
    return *t == '\0' && *path == '\0';
}

/* Of a path that matches. */
static void cut_out(const struct operation *o, const char *path, struct str *in_path)
{
    const char *t = o->path;
    while (*t == '/') {
        struct str want = segment(++t);
        struct str have = segment(++path);
        if (is_parameter(want))
            in_path[field_of(o, want)] = have;
        t += want.len;
        path += have.len;
    }
}

/* The first letter of each row's path, together: rows and paths are spread over hundreds of cache
 * lines, and each request asks. None begins with a parameter. */
static const char *letters(void)
{
    static char all[OPERATIONS_MAX];
    static bool known;
    assert(n_operations <= OPERATIONS_MAX);
    for (size_t i = 0; !known && i < n_operations; i++)
        all[i] = operations[i].path[1];
    known = true;
    return all;
}

void operation_route(enum http_method method, const char *path, struct route *ret)
{
    const char *letter = letters();
    *ret = (struct route){0};
    if (path[0] != '/')
        return;
    for (size_t i = 0; i < n_operations; i++) {
        const struct operation *o = &operations[i];
        if (letter[i] != path[1] || !matches(o, path))
            continue;
        ret->methods |= 1u << o->method;
        if (o->method == method && !ret->operation)
            ret->operation = o;
    }
    if (ret->operation)
        cut_out(ret->operation, path, ret->in_path);
}

bool operation_is_in_path(const struct operation *o, const struct field *f)
{
    const char *at = o->path;
    while ((at = strchr(at, '{'))) {
        at++;
        struct str name = {at, strcspn(at, "}")};
        if (str_eq(name, str_of(f->name)))
            return true;
    }
    return false;
}

/* ── what follows from a row ───────────────────────────────────────────────────────────────── */

bool operation_changes(const struct operation *o)
{
    return o->method != HTTP_GET;
}

bool operation_has_body(const struct operation *o)
{
    if (o->asks || o->upload)
        return true;
    for (const struct field *f = o->fields; operation_changes(o) && f->name; f++) {
        if (!operation_is_in_path(o, f))
            return true;
    }
    return false;
}

static size_t add(int *list, size_t n, int err)
{
    size_t at = n;
    for (size_t i = 0; i < n; i++) {
        if (list[i] == err)
            return n;
    }
    assert(n < OPERATION_ALL_ERRORS_MAX);
    while (at > 0 && err_status(list[at - 1]) > err_status(err)) {
        list[at] = list[at - 1];
        at--;
    }
    list[at] = err;
    return n + 1;
}

bool operation_needs_token(const struct operation *o)
{
    return o->any_token || o->scope != ACCESS_NONE;
}

size_t operation_errors(const struct operation *o, int ret[OPERATION_ALL_ERRORS_MAX])
{
    size_t n = 0;
    n = add(ret, n, ERR_INVALID_REQUEST); /* of the HTTP server: no HTTP, or a NUL in it */
    n = add(ret, n, ERR_BAD_ARGUMENT);
    n = add(ret, n, ERR_TOO_LARGE);
    n = add(ret, n, ERR_UNSUPPORTED_TYPE);
    n = add(ret, n, ERR_BUSY);
    if (operation_needs_token(o)) {
        n = add(ret, n, ERR_NO_ACCESS_TOKEN);
        n = add(ret, n, ERR_BAD_ACCESS_TOKEN);
    }
    if (o->scope != ACCESS_NONE) {
        n = add(ret, n, ERR_FORBIDDEN);
        n = add(ret, n, ERR_INTERNAL);
    }
    if (operation_changes(o)) {
        n = add(ret, n, ERR_FORBIDDEN);
        n = add(ret, n, ERR_KEY_CONFLICT);
    }
    for (size_t i = 0; i < OPERATION_ERRORS_MAX && o->errors[i] != 0; i++)
        n = add(ret, n, o->errors[i]);
    return n;
}
