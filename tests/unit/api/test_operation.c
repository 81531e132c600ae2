/* The table of operations, its routes and what is made of it. */
#include "api/operation.h"

#include "api/access.h"
#include "api/openapi.h"
#include "api/resource.h"
#include "base/err.h"
#include "base/json.h"
#include "lib/unit.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ── routes ────────────────────────────────────────────────────────────────────────────────── */

static void assert_route(enum http_method method, const char *path, const char *name)
{
    struct route r;
    operation_route(method, path, &r);
    assert_non_null(r.operation);
    assert_string_equal(r.operation->name, name);
}

static void paths_lead_to_operations(void **state)
{
    (void)state;
    assert_route(HTTP_GET, "/healthz", "health");
    assert_route(HTTP_GET, "/v1/servers", "list_servers");
    assert_route(HTTP_GET, "/v1/servers/7", "get_server");
    assert_route(HTTP_POST, "/v1/servers/7/drain", "drain_server");
    assert_route(HTTP_GET, "/v1/tokens", "list_tokens");
    assert_route(HTTP_POST, "/v1/tokens", "enrol");
    assert_route(HTTP_GET, "/v1/tickets/7/why", "why_ticket");
    assert_route(HTTP_POST, "/join/arena/main/1.0", "join");
    assert_route(HTTP_POST, "/join/multi/arena/main/1.0", "join_multi");
    assert_route(HTTP_POST, "/room/arena/12/join", "enter");
    assert_route(HTTP_DELETE, "/ban/5", "lift_played_ban");
}

static void a_word_stands_before_a_parameter(void **state)
{
    (void)state;
    assert_route(HTTP_POST, "/ban/issue", "issue_ban");
    assert_route(HTTP_POST, "/ban/5", "update_played_ban");
    assert_route(HTTP_GET, "/ban/issue", "get_played_ban");
}

static void what_is_in_the_path_is_cut_out(void **state)
{
    (void)state;
    struct route r;
    operation_route(HTTP_POST, "/v1/sessions/4711/end", &r);
    assert_true(str_eq(r.in_path[0], STR("4711")));
    operation_route(HTTP_GET, "/v1/fleets/a b", &r);
    assert_true(str_eq(r.in_path[0], STR("a b")));
}

static void other_paths_lead_nowhere(void **state)
{
    (void)state;
    static const char *const paths[] = {
        "",
        "/",
        "v1/servers",
        "/v1",
        "/v1/",
        "/v1/server",
        "/v1/servers/",
        "/v1/servers/7/",
        "//v1/servers",
        "/v1//servers",
        "/V1/servers",
        "/v1/servers/7/drain/x",
        "/v1/servers//drain",
        "/healthz/",
        "/v1/servers/7/x",
    };
    struct route r;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        operation_route(HTTP_GET, paths[i], &r);
        assert_null(r.operation);
        assert_int_equal(r.methods, 0);
    }
}

static void a_path_knows_its_methods(void **state)
{
    (void)state;
    struct route r;
    operation_route(HTTP_DELETE, "/v1/tokens", &r);
    assert_null(r.operation);
    assert_int_equal(r.methods, 1u << HTTP_GET | 1u << HTTP_POST);
    operation_route(HTTP_GET, "/v1/servers/7/drain", &r);
    assert_null(r.operation);
    assert_int_equal(r.methods, 1u << HTTP_POST);
}

/* ── the table ─────────────────────────────────────────────────────────────────────────────── */

static void rows_are_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_operations; i++) {
        const struct operation *o = &operations[i];
        assert_non_null(o->handle);
        assert_true(o->path[0] == '/' && o->path[1] != '{'); /* so that routing may skip it */
        assert_ptr_equal(operation_find(o->name), o);
        assert_int_equal(o->summary[strlen(o->summary) - 1] == '.' ||
                             o->summary[strlen(o->summary) - 1] == '?',
                         true);
        assert_true(o->silent || (o->answer != NULL) != (o->content_type != NULL));
        /* Whoever changes something must say who he is. */
        assert_true(!operation_changes(o) || o->scope != ACCESS_NONE || o->others_token);
        size_t parameters = 0;
        for (const char *at = o->path; (at = strchr(at, '{')); at++)
            parameters++;
        for (const struct field *f = o->fields; f->name; f++) {
            assert_non_null(f->help);
            assert_true(!operation_is_in_path(o, f) || f->required);
            parameters -= operation_is_in_path(o, f);
        }
        assert_int_equal(parameters, 0);
    }
    assert_null(operation_find("nonsense"));
}

static bool has(const struct operation *o, int err)
{
    int errors[OPERATION_ALL_ERRORS_MAX];
    size_t n = operation_errors(o, errors);
    for (size_t i = 0; i < n; i++) {
        if (errors[i] == err)
            return true;
    }
    return false;
}

static void errors_follow_from_the_row(void **state)
{
    (void)state;
    int errors[OPERATION_ALL_ERRORS_MAX];
    assert_false(has(operation_find("health"), ERR_NO_ACCESS_TOKEN));
    assert_true(has(operation_find("get_server"), ERR_NO_ACCESS_TOKEN));
    assert_true(has(operation_find("get_server"), ERR_NOT_FOUND));
    assert_false(has(operation_find("get_server"), ERR_KEY_CONFLICT));
    assert_true(has(operation_find("drain_server"), ERR_KEY_CONFLICT));
    for (size_t i = 0; i < n_operations; i++) {
        size_t n = operation_errors(&operations[i], errors);
        for (size_t j = 1; j < n; j++)
            assert_true(err_status(errors[j - 1]) <= err_status(errors[j]));
    }
}

/* ── OpenAPI ───────────────────────────────────────────────────────────────────────────────── */

static struct json *document(void)
{
    struct buf text = {0};
    char why[JSON_WHY_MAX];
    openapi_write(&text);
    struct json *root = json_parse((struct str){(char *)text.data, text.len}, why);
    assert_non_null(root);
    buf_done(&text);
    return root;
}

static const struct json *member(const struct json *object, const char *key)
{
    const struct json *v = json_member(object, key);
    if (!v)
        fail_msg("there is no key %s", key);
    return v;
}

static void every_operation_is_described(void **state)
{
    (void)state;
    struct json *root = document();
    const struct json *paths = member(root, "paths");
    for (size_t i = 0; i < n_operations; i++) {
        const struct operation *o = &operations[i];
        static const char *const methods[] = {
            [HTTP_GET] = "get", [HTTP_POST] = "post", [HTTP_DELETE] = "delete"};
        const struct json *row = member(member(paths, o->path), methods[o->method]);
        assert_true(str_eq(json_get_text(member(row, "operationId")), str_of(o->name)));
        assert_non_null(member(member(row, "responses"), o->silent    ? "204"
                                                         : o->creates ? "201"
                                                                      : "200"));
        assert_int_equal(json_length(member(row, "security")), (operation_needs_token(o) ? 2 : 0) +
                                                                   (o->own_scope ? 2 : 0) +
                                                                   (o->other_scope ? 2 : 0));
        assert_int_equal(json_member(row, "requestBody") != NULL, operation_has_body(o));
        int errors[OPERATION_ALL_ERRORS_MAX];
        size_t n = operation_errors(o, errors);
        for (size_t j = 0; j < n; j++) {
            char status[8];
            snprintf(status, sizeof(status), "%d", err_status(errors[j]));
            struct str text =
                json_get_text(member(member(member(row, "responses"), status), "description"));
            assert_non_null(
                memmem(text.at, text.len, err_code(errors[j]), strlen(err_code(errors[j]))));
        }
    }
    json_free(root);
}

/* Looks for every "$ref" below v. */
static void check_references(const struct json *v, const struct json *schemas)
{
    static const char prefix[] = "#/components/schemas/";
    void *at = NULL;
    const char *key = NULL;
    const struct json *value = NULL;
    if (json_kind(v) == JSON_KIND_ARRAY) {
        for (size_t i = 0; i < json_length(v); i++)
            check_references(json_item(v, i), schemas);
        return;
    }
    while (json_kind(v) == JSON_KIND_OBJECT && json_next(v, &at, &key, &value)) {
        if (strcmp(key, "$ref") == 0) {
            char name[64];
            struct str path = json_get_text(value);
            assert_true(path.len > strlen(prefix));
            assert_true(
                str_copy(name, sizeof(name),
                         (struct str){path.at + strlen(prefix), path.len - strlen(prefix)}));
            assert_non_null(member(schemas, name));
        }
        check_references(value, schemas);
    }
}

static void every_reference_leads_somewhere(void **state)
{
    (void)state;
    struct json *root = document();
    check_references(root, member(member(root, "components"), "schemas"));
    json_free(root);
}

static void every_shape_has_a_schema_with_all_its_keys(void **state)
{
    (void)state;
    struct json *root = document();
    const struct json *schemas = member(member(root, "components"), "schemas");
    for (const struct shape *const *s = shapes; *s; s++) {
        const struct json *schema = member(schemas, (*s)->name);
        size_t n = 0;
        for (const struct shape_row *row = (*s)->rows; row->name; row++) {
            (void)member(member(schema, "properties"), row->name);
            n += !row->may_be_absent;
        }
        assert_int_equal(json_length(member(schema, "required")), n);
    }
    json_free(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_lead_to_operations),
        cmocka_unit_test(a_word_stands_before_a_parameter),
        cmocka_unit_test(what_is_in_the_path_is_cut_out),
        cmocka_unit_test(other_paths_lead_nowhere),
        cmocka_unit_test(a_path_knows_its_methods),
        cmocka_unit_test(rows_are_whole),
        cmocka_unit_test(errors_follow_from_the_row),
        cmocka_unit_test(every_operation_is_described),
        cmocka_unit_test(every_reference_leads_somewhere),
        cmocka_unit_test(every_shape_has_a_schema_with_all_its_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
