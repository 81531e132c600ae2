#include "api/openapi.h"

#include "api/access.h"
#include "api/operation.h"
#include "api/play.h"
#include "api/resource.h"
#include "base/err.h"
#include "base/json.h"

#include <stdio.h>
#include <string.h>

static const char json_type[] = "application/json";
static const char form_type[] = "application/x-www-form-urlencoded";

static const char description[] =
    "Errors are {\"error\": {\"code\", \"message\"}} with the fitting status, and \"argument\" "
    "when "
    "one of them is to blame. Ids are decimal numbers as text, times are RFC 3339 in UTC. "
    "Arguments "
    "come in the query, as a form or as JSON; lists as JSON or with commas. Every POST takes an "
    "Idempotency-Key: a repeat with the same key and arguments gets the answer of the first.";

/* ── small pieces ──────────────────────────────────────────────────────────────────────────── */

static void refer(struct json_writer *w, const char *schema)
{
    char path[96];
    snprintf(path, sizeof(path), "#/components/schemas/%s", schema);
    json_key_text(w, "$ref", str_of(path));
}

static void words(struct json_writer *w, const char *const *list)
{
    json_key(w, "enum");
    json_open_array(w);
    for (; *list; list++)
        json_text(w, str_of(*list));
    json_close_array(w);
}

static void key_type(struct json_writer *w, const char *type)
{
    json_key_text(w, "type", str_of(type));
}

/* ── arguments ─────────────────────────────────────────────────────────────────────────────── */

static void list_schema(struct json_writer *w, const struct field *f)
{
    key_type(w, "array");
    json_key_int(w, "minItems", f->min);
    json_key_int(w, "maxItems", f->max);
    json_key(w, "items");
    json_open_object(w);
    key_type(w, "string");
    json_close_object(w);
}

static void lists_schema(struct json_writer *w, const struct field *f)
{
    key_type(w, "array");
    json_key_int(w, "minItems", f->min);
    json_key_int(w, "maxItems", f->max);
    json_key(w, "items");
    json_open_object(w);
    key_type(w, "array");
    json_key(w, "items");
    json_open_object(w);
    if (f->of)
        refer(w, f->of->name);
    else
        key_type(w, "integer");
    json_close_object(w);
    json_close_object(w);
}

static void field_schema(struct json_writer *w, const struct field *f)
{
    json_open_object(w);
    switch (f->kind) {
    case FIELD_ID:
        key_type(w, "string");
        json_key_text(w, "pattern", STR("^[0-9]+$"));
        break;
    case FIELD_INT:
        key_type(w, "integer");
        json_key_int(w, "minimum", f->min);
        json_key_int(w, "maximum", f->max);
        if (f->has_otherwise)
            json_key_int(w, "default", f->otherwise);
        break;
    case FIELD_TEXT:
        key_type(w, "string");
        json_key_int(w, "minLength", f->min);
        json_key_int(w, "maxLength", f->max);
        break;
    case FIELD_WORD:
        key_type(w, "string");
        words(w, f->words);
        break;
    case FIELD_LIST:
        list_schema(w, f);
        break;
    case FIELD_BOOL:
        key_type(w, "boolean");
        if (f->has_otherwise)
            json_key_bool(w, "default", f->otherwise);
        break;
    case FIELD_JSON:
        key_type(w, "object");
        break;
    case FIELD_OBJECTS:
        key_type(w, "array");
        json_key_int(w, "minItems", f->min);
        json_key_int(w, "maxItems", f->max);
        json_key(w, "items");
        json_open_object(w);
        key_type(w, "object");
        json_close_object(w);
        break;
    case FIELD_LISTS:
        lists_schema(w, f);
        break;
    }
    json_close_object(w);
}

static void parameter(struct json_writer *w, const struct operation *o, const struct field *f)
{
    bool in_path = operation_is_in_path(o, f);
    json_open_object(w);
    json_key_text(w, "name", str_of(f->name));
    json_key_text(w, "in", in_path ? STR("path") : STR("query"));
    json_key_bool(w, "required", f->required);
    json_key_text(w, "description", str_of(f->help));
    if (f->kind == FIELD_LIST) {
        json_key_text(w, "style", STR("form"));
        json_key_bool(w, "explode", false);
    }
    if (f->kind == FIELD_JSON || f->kind == FIELD_OBJECTS || f->kind == FIELD_LISTS) {
        json_key(w, "content");
        json_open_object(w);
        json_key(w, json_type);
        json_open_object(w);
        json_key(w, "schema");
        field_schema(w, f);
        json_close_object(w);
        json_close_object(w);
    } else {
        json_key(w, "schema");
        field_schema(w, f);
    }
    json_close_object(w);
}

static void key_parameter(struct json_writer *w)
{
    json_open_object(w);
    json_key_text(w, "name", STR("Idempotency-Key"));
    json_key_text(w, "in", STR("header"));
    json_key_bool(w, "required", false);
    json_key_text(w, "description",
                  STR("a repeat with the same key and arguments gets the answer of the first"));
    json_key(w, "schema");
    json_open_object(w);
    key_type(w, "string");
    json_key_int(w, "minLength", 1);
    json_key_int(w, "maxLength", 128);
    json_close_object(w);
    json_close_object(w);
}

static void parameters(struct json_writer *w, const struct operation *o)
{
    json_key(w, "parameters");
    json_open_array(w);
    for (const struct field *f = o->fields; f->name; f++) {
        if (!operation_changes(o) || o->upload || o->asks || operation_is_in_path(o, f))
            parameter(w, o, f);
    }
    if (operation_changes(o))
        key_parameter(w);
    json_close_array(w);
}

static void body_schema(struct json_writer *w, const struct operation *o)
{
    json_open_object(w);
    key_type(w, "object");
    json_key(w, "properties");
    json_open_object(w);
    for (const struct field *f = o->fields; f->name; f++) {
        if (operation_is_in_path(o, f))
            continue;
        json_key(w, f->name);
        field_schema(w, f);
    }
    json_close_object(w);
    json_key(w, "required");
    json_open_array(w);
    for (const struct field *f = o->fields; f->name; f++) {
        if (f->required && !operation_is_in_path(o, f))
            json_text(w, str_of(f->name));
    }
    json_close_array(w);
    json_key_bool(w, "additionalProperties", false);
    json_close_object(w);
}

static void asked_schema(struct json_writer *w, const struct shape *shape)
{
    json_open_object(w);
    refer(w, shape->name);
    json_close_object(w);
}

static void bytes_schema(struct json_writer *w)
{
    json_open_object(w);
    key_type(w, "string");
    json_key_text(w, "format", STR("binary"));
    json_close_object(w);
}

static void request_body(struct json_writer *w, const struct operation *o)
{
    static const char *const types[] = {json_type, form_type};
    if (!operation_has_body(o))
        return;
    json_key(w, "requestBody");
    json_open_object(w);
    json_key(w, "content");
    json_open_object(w);
    for (size_t i = 0; i < (o->asks || o->upload ? 1 : 2); i++) {
        json_key(w, o->upload ? "application/octet-stream" : types[i]);
        json_open_object(w);
        json_key(w, "schema");
        if (o->asks)
            asked_schema(w, o->asks);
        else if (o->upload)
            bytes_schema(w);
        else
            body_schema(w, o);
        json_close_object(w);
    }
    json_close_object(w);
    json_close_object(w);
}

/* ── answers ───────────────────────────────────────────────────────────────────────────────── */

static void page_schema(struct json_writer *w, const struct shape *shape)
{
    key_type(w, "object");
    json_key(w, "properties");
    json_open_object(w);
    json_key(w, "items");
    json_open_object(w);
    key_type(w, "array");
    json_key(w, "items");
    json_open_object(w);
    refer(w, shape->name);
    json_close_object(w);
    json_close_object(w);
    json_key(w, "next");
    shape_schema_row(w,
                     &(struct shape_row){.kind = SHAPE_ID,
                                         .may_be_null = true,
                                         .help = "the cursor of the next page; null at the end"});
    json_close_object(w);
    json_key(w, "required");
    json_open_array(w);
    json_text(w, STR("items"));
    json_text(w, STR("next"));
    json_close_array(w);
}

static void answer(struct json_writer *w, const struct operation *o, const char *status,
                   const char *about)
{
    json_key(w, status);
    json_open_object(w);
    json_key_text(w, "description", str_of(about));
    json_key(w, "content");
    json_open_object(w);
    json_key(w, o->answer ? json_type : o->content_type);
    json_open_object(w);
    json_key(w, "schema");
    json_open_object(w);
    if (!o->answer)
        key_type(w, strcmp(o->content_type, json_type) == 0 ? "object" : "string");
    else if (o->is_list)
        page_schema(w, o->answer);
    else
        refer(w, o->answer->name);
    json_close_object(w);
    json_close_object(w);
    json_close_object(w);
    json_close_object(w);
}

static void no_answer(struct json_writer *w, const char *about)
{
    json_key(w, "204");
    json_open_object(w);
    json_key_text(w, "description", str_of(about));
    json_close_object(w);
}

static void refused_schema(struct json_writer *w, const struct operation *o)
{
    if (!o->results) {
        refer(w, "Error");
        return;
    }
    json_key(w, "anyOf");
    json_open_array(w);
    json_open_object(w);
    refer(w, "Error");
    json_close_object(w);
    json_open_object(w);
    refer(w, o->answer->name);
    json_close_object(w);
    json_close_array(w);
}

/* One answer for all errors with that status; returns how many they are. */
static size_t refusal(struct json_writer *w, const struct operation *o, const int *errors, size_t n)
{
    char text[1536] = "";
    char status[8];
    size_t len = 0, i = 0;
    for (; i < n && err_status(errors[i]) == err_status(errors[0]); i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s: %s", i > 0 ? "; " : "",
                                err_code(errors[i]), err_sentence(errors[i]));
    snprintf(status, sizeof(status), "%d", err_status(errors[0]));
    json_key(w, status);
    json_open_object(w);
    json_key_text(w, "description", str_of(text));
    json_key(w, "content");
    json_open_object(w);
    json_key(w, json_type);
    json_open_object(w);
    json_key(w, "schema");
    json_open_object(w);
    refused_schema(w, o);
    json_close_object(w);
    json_close_object(w);
    json_close_object(w);
    json_close_object(w);
    return i;
}

static void responses(struct json_writer *w, const struct operation *o)
{
    int errors[OPERATION_ALL_ERRORS_MAX];
    size_t n = operation_errors(o, errors);
    json_key(w, "responses");
    json_open_object(w);
    if (o->silent)
        no_answer(w, o->summary);
    else
        answer(w, o, o->creates ? "201" : "200", o->summary);
    if (o->results)
        answer(w, o, "202", "It waits in line.");
    for (size_t i = 0; i < n;)
        i += refusal(w, o, errors + i, n - i);
    json_close_object(w);
}

/* ── operations ────────────────────────────────────────────────────────────────────────────── */

static void ways_with(struct json_writer *w, uint32_t scopes)
{
    static const char *const ways[] = {"bearer", "argument"};
    for (size_t i = 0; i < 2; i++) {
        json_open_object(w);
        json_key(w, ways[i]);
        json_open_array(w);
        for (uint32_t bit = 1; bit <= ACCESS_ALL; bit <<= 1) {
            if (scopes & bit)
                json_text(w, str_of(access_scope_name(bit)));
        }
        json_close_array(w);
        json_close_object(w);
    }
}

static void security(struct json_writer *w, const struct operation *o)
{
    json_key(w, "security");
    json_open_array(w);
    if (operation_needs_token(o))
        ways_with(w, o->scope);
    if (o->own_scope)
        ways_with(w, o->own_scope);
    if (o->other_scope)
        ways_with(w, o->other_scope);
    json_close_array(w);
}

static void operation(struct json_writer *w, const struct operation *o)
{
    static const char *const keys[] = {
        [HTTP_GET] = "get", [HTTP_POST] = "post", [HTTP_PUT] = "put", [HTTP_DELETE] = "delete"};
    json_key(w, keys[o->method]);
    json_open_object(w);
    json_key_text(w, "operationId", str_of(o->name));
    json_key_text(w, "summary", str_of(o->summary));
    if (o->about)
        json_key_text(w, "description", str_of(o->about));
    security(w, o);
    parameters(w, o);
    request_body(w, o);
    responses(w, o);
    json_close_object(w);
}

static bool is_first_of_its_path(const struct operation *o)
{
    for (const struct operation *before = operations; before < o; before++) {
        if (strcmp(before->path, o->path) == 0)
            return false;
    }
    return true;
}

static void paths(struct json_writer *w)
{
    json_key(w, "paths");
    json_open_object(w);
    for (size_t i = 0; i < n_operations; i++) {
        if (!is_first_of_its_path(&operations[i]))
            continue;
        json_key(w, operations[i].path);
        json_open_object(w);
        for (size_t j = i; j < n_operations; j++) {
            if (strcmp(operations[j].path, operations[i].path) == 0)
                operation(w, &operations[j]);
        }
        json_close_object(w);
    }
    json_close_object(w);
}

/* ── components ────────────────────────────────────────────────────────────────────────────── */

/* Most keys are there only when there is something to say, so they are not required: written by
 * hand. */
static void error_schema(struct json_writer *w)
{
    static const struct shape_row rows[] = {
        {.name = "code", .kind = SHAPE_TEXT, .help = "a word for machines"},
        {.name = "message", .kind = SHAPE_TEXT, .help = "a sentence for people"},
        {.name = "argument", .kind = SHAPE_TEXT, .help = "the argument that is to blame"},
        {.name = "ticket",
         .kind = SHAPE_ID,
         .help = "for `muster why`; of what is refused at once there is none"},
        {.name = "retry_after", .kind = SHAPE_INT64, .help = "seconds; also in the head"},
        {.name = "ban_id", .kind = SHAPE_ID, .help = "also in the head: X-Ban-Id"},
        {.name = "ban_until", .kind = SHAPE_TEXT, .help = "also in the head: X-Ban-Until"},
        {.name = "ban_reason", .kind = SHAPE_TEXT, .help = "also in the head: X-Ban-Reason"},
        {.name = "players",
         .kind = SHAPE_ITEMS,
         .shape = &refused_shape,
         .help = "of several players, those because of whom none was placed"},
        {.name = "output", .kind = SHAPE_TEXT, .help = "what a game server said last"},
    };
    json_key(w, "Fault");
    json_open_object(w);
    key_type(w, "object");
    json_key(w, "properties");
    json_open_object(w);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_key(w, rows[i].name);
        shape_schema_row(w, &rows[i]);
    }
    json_close_object(w);
    json_key(w, "required");
    json_open_array(w);
    json_text(w, STR("code"));
    json_text(w, STR("message"));
    json_close_array(w);
    json_close_object(w);
}

static void schemas(struct json_writer *w)
{
    static const struct shape fault = {.name = "Fault"};
    static const struct shape_row rows[] = {
        {.name = "error", .kind = SHAPE_OBJECT, .shape = &fault}, {0}};
    static const struct shape error = {
        .name = "Error", .help = "Why a request was refused.", .rows = rows};
    json_key(w, "schemas");
    json_open_object(w);
    error_schema(w);
    json_key(w, error.name);
    shape_schema(w, &error);
    for (const struct shape *const *s = shapes; *s; s++) {
        json_key(w, (*s)->name);
        shape_schema(w, *s);
    }
    json_close_object(w);
}

static void security_schemes(struct json_writer *w)
{
    json_key(w, "securitySchemes");
    json_open_object(w);
    json_key(w, "bearer");
    json_open_object(w);
    key_type(w, "http");
    json_key_text(w, "scheme", STR("bearer"));
    json_key_text(w, "bearerFormat", STR("JWT"));
    json_close_object(w);
    json_key(w, "argument");
    json_open_object(w);
    key_type(w, "apiKey");
    json_key_text(w, "in", STR("query"));
    json_key_text(w, "name", STR("access_token"));
    json_close_object(w);
    json_close_object(w);
}

void openapi_write(struct buf *out)
{
    struct json_writer w = {.out = out};
    json_open_object(&w);
    json_key_text(&w, "openapi", STR("3.1.0"));
    json_key(&w, "info");
    json_open_object(&w);
    json_key_text(&w, "title", STR("Muster"));
    json_key_text(&w, "version", STR(MUSTER_VERSION));
    json_key_text(&w, "description", str_of(description));
    json_close_object(&w);
    paths(&w);
    json_key(&w, "components");
    json_open_object(&w);
    schemas(&w);
    security_schemes(&w);
    json_close_object(&w);
    json_close_object(&w);
}
