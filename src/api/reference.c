/* docs/http-api.md: the table of operations for people. */
#include "api/access.h"
#include "api/openapi.h"
#include "api/operation.h"
#include "api/resource.h"
#include "base/err.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char opening[] =
    "# HTTP API\n"
    "\n"
    "<!-- Written by `muster openapi --markdown` from the table of operations. -->\n"
    "\n"
    "`GET /openapi.json` describes the same for machines.\n"
    "\n"
    "## Conventions\n"
    "\n"
    "- **Token.** `Authorization: Bearer TOKEN`, or the argument `access_token`. The first start "
    "writes one that allows everything into `admin.token` in the data folder.\n"
    "- **Arguments** come in the query, as a form or as JSON, each at most once. A list is a JSON "
    "array or has commas between its items; an object in a query or a form is JSON text. What is "
    "not in the table below is refused.\n"
    "- **Answers** are JSON. Ids are decimal numbers as text, times RFC 3339 in UTC; every key is "
    "always there, `null` where there is nothing.\n"
    "- **Lists** are `{\"items\": [...], \"next\": \"ID\"}`; ask again with `cursor=ID` until "
    "`next` "
    "is `null`. A page may be short when few of many objects fit: at most 10,000 are looked at. "
    "What is there all the time is shown exactly once, whatever comes and goes meanwhile.\n"
    "- **Refusals** are `{\"error\": {\"code\": \"not_found\", \"message\": \"There is no server "
    "7.\"}}` with the status below, and `\"argument\"` when one of them is to blame.\n"
    "- **Repeats.** A POST with the header `Idempotency-Key` (1 to 128 bytes) is done once for "
    "each "
    "account and operation; a repeat shows what came of the first. The same key with other "
    "arguments is refused with `key_conflict`. Keys are kept as long as finished tickets.\n"
    "- **Durable.** An answer leaves when everything it shows is on disk.\n"
    "- **Limits.** A body has at most 64 KiB and JSON in it at most 32 levels. When a page in a "
    "browser sends a POST, its `Origin` must be this server.\n"
    "\n"
    "    curl -H \"Authorization: Bearer $(cat data/admin.token)\" "
    "http://127.0.0.1:9508/v1/status\n"
    "\n"
    "## Filters\n"
    "\n"
    "Players say with `settings` what they want of a room. All fields must hold; a key that the "
    "room has not never holds, and keys with dots reach into objects.\n"
    "\n"
    "| field | holds when the room's value |\n"
    "|---|---|\n"
    "| `\"map\": \"dust\"` | is that |\n"
    "| `\"map\": [\"dust\", \"ice\"]` | is one of these |\n"
    "| `\"level\": {\"@func\": \">=\", \"@value\": 5}` | compares so; `=` `!=` `>` `<` `>=` `<=` "
    "|\n"
    "| `\"level\": {\"@func\": \"between\", \"@a\": 1, \"@b\": 9}` | is from 1 to 9 |\n"
    "| `\"mode\": {\"@func\": \"in\", \"@values\": [\"a\", \"b\"]}` | is one of these |\n"
    "| `\"rules.friendly_fire\": false` | inside `rules` is that |\n"
    "\n"
    "## Refusals of players\n"
    "\n"
    "Every refusal with 429 or 503 has `retry_after`: in how many seconds it is worth asking "
    "again, the same number as in the header `Retry-After`. When no host is healthy it is the time "
    "until the first one that failed is tried again.\n"
    "\n"
    "A refusal of a seat has more than a sentence: `ticket`, for `muster why`, when a server was "
    "started for it (what is refused at once leaves no ticket, and its sentence says all there "
    "is); `ban_id`, "
    "`ban_until` and `ban_reason` of a ban, as the "
    "headers `X-Ban-Id`, `X-Ban-Until` and `X-Ban-Reason` (where what is no ASCII is escaped as in "
    "a URL); `players`, of several those to blame; and `output`, what the game server said "
    "last.\n"
    "\n";

static void say(struct buf *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct buf *out, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    buf_append(out, text, n < (int)sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

static void put(struct buf *out, const char *text)
{
    buf_append(out, text, strlen(text));
}

static void words(struct buf *out, const char *const *list)
{
    for (size_t i = 0; list[i]; i++)
        say(out, "%s`%s`", i == 0 ? "" : list[i + 1] ? ", " : " or ", list[i]);
}

/* "server", for the anchors of headlines. */
static void link_to(struct buf *out, const struct shape *shape)
{
    char anchor[64];
    size_t i = 0;
    for (; shape->name[i] && i < sizeof(anchor) - 1; i++)
        anchor[i] = (char)(shape->name[i] | 0x20);
    anchor[i] = '\0';
    say(out, "[%s](#%s)", shape->name, anchor);
}

/* ── arguments ─────────────────────────────────────────────────────────────────────────────── */

static void field_type(struct buf *out, const struct field *f)
{
    switch (f->kind) {
    case FIELD_ID:
        say(out, "id");
        return;
    case FIELD_INT:
        if (f->min == INT32_MIN)
            say(out, "number");
        else
            say(out, "%" PRId64 " to %" PRId64, f->min, f->max);
        return;
    case FIELD_TEXT:
        say(out, "text, at most %" PRId64 " bytes", f->max);
        return;
    case FIELD_WORD:
        words(out, f->words);
        return;
    case FIELD_LIST:
        say(out, "list");
        return;
    case FIELD_BOOL:
        say(out, "`true` or `false`");
        return;
    case FIELD_JSON:
        say(out, "object, at most %" PRId64 " bytes", f->max);
        return;
    case FIELD_OBJECTS:
        say(out, "list of %" PRId64 " to %" PRId64 " objects", f->min, f->max);
        return;
    case FIELD_LISTS:
        say(out, "list of %" PRId64 " to %" PRId64 " lists of ", f->min, f->max);
        if (f->of)
            link_to(out, f->of);
        else
            put(out, "numbers");
        return;
    }
}

static void arguments(struct buf *out, const struct operation *o)
{
    if (!o->fields[0].name)
        return;
    put(out, "| argument | takes | |\n|---|---|---|\n");
    for (const struct field *f = o->fields; f->name; f++) {
        say(out, "| `%s`%s | ", f->name, f->required ? "" : " (optional)");
        field_type(out, f);
        say(out, " | %s", f->help);
        if (f->has_otherwise && f->kind == FIELD_BOOL)
            say(out, " (default %s)", f->otherwise ? "true" : "false");
        else if (f->has_otherwise)
            say(out, " (default %" PRId64 ")", f->otherwise);
        put(out, " |\n");
    }
    put(out, "\n");
}

/* ── operations ────────────────────────────────────────────────────────────────────────────── */

static void answers(struct buf *out, const struct operation *o)
{
    int errors[OPERATION_ALL_ERRORS_MAX];
    size_t n = operation_errors(o, errors);
    put(out, o->silent    ? "Answers 204 with nothing"
             : o->creates ? "Answers 201, with its path in `Location`, with "
                          : "Answers 200 with ");
    if (o->is_list)
        put(out, "a list of ");
    if (o->answer)
        link_to(out, o->answer);
    else if (!o->silent)
        say(out, "`%s`", o->content_type);
    if (o->results)
        put(out, ", 202 with the same of one that waits in line");
    put(out, ";");
    for (size_t i = 0; i < n; i++)
        say(out, " %d `%s`%s", err_status(errors[i]), err_code(errors[i]), i + 1 < n ? "," : ".");
    put(out, "\n\n");
}

static void scopes_of(struct buf *out, const struct operation *o)
{
    const char *before = " Scope: ";
    for (uint32_t bit = 1; bit <= ACCESS_ALL; bit <<= 1) {
        if (!(o->scope & bit))
            continue;
        say(out, "%s`%s`", before, access_scope_name(bit));
        before = " and ";
    }
    for (uint32_t bit = 1; bit <= ACCESS_ALL; bit <<= 1) {
        if (o->own_scope & bit)
            say(out, "; `%s` for what is the asker's own", access_scope_name(bit));
    }
    for (uint32_t bit = 1; bit <= ACCESS_ALL; bit <<= 1) {
        if (o->other_scope & bit)
            say(out, " or `%s`", access_scope_name(bit));
    }
    put(out, ".\n\n");
}

static void operation(struct buf *out, const struct operation *o)
{
    say(out, "### %s `%s`\n\n%s", http_method_word(o->method), o->path, o->summary);
    if (o->about)
        say(out, " %s", o->about);
    if (o->others_token)
        say(out, " The access token is %s.\n\n", o->others_token);
    else if (o->any_token)
        put(out, " Any valid access token will do.\n\n");
    else if (o->scope == ACCESS_NONE)
        put(out, " No token is needed.\n\n");
    else
        scopes_of(out, o);
    arguments(out, o);
    if (o->asks) {
        put(out, "Takes ");
        link_to(out, o->asks);
        put(out, " as JSON; members that are not known are ignored.\n\n");
    }
    answers(out, o);
}

/* ── objects ───────────────────────────────────────────────────────────────────────────────── */

static void row_type(struct buf *out, const struct shape_row *row)
{
    static const char *const names[] = {
        [SHAPE_ID] = "id",          [SHAPE_TIME] = "time",
        [SHAPE_INT8] = "integer",   [SHAPE_INT32] = "integer",
        [SHAPE_INT64] = "integer",  [SHAPE_FLOAT] = "number",
        [SHAPE_DOUBLE] = "number",  [SHAPE_BOOL] = "boolean",
        [SHAPE_TEXT] = "text",      [SHAPE_WORD] = "",
        [SHAPE_OBJECT] = "",        [SHAPE_TEXTS] = "list of text",
        [SHAPE_WORDS] = "list of ", [SHAPE_ITEMS] = "list of ",
        [SHAPE_JSON] = "object",    [SHAPE_INTS] = "list of integers",
        [SHAPE_MAP] = "object of "};
    put(out, names[row->kind]);
    if (row->kind == SHAPE_WORD || row->kind == SHAPE_WORDS)
        words(out, row->words);
    if (row->kind == SHAPE_OBJECT || row->kind == SHAPE_ITEMS || row->kind == SHAPE_MAP)
        link_to(out, row->shape);
    if (row->may_be_null)
        put(out, " or null");
    if (row->may_be_absent)
        put(out, " (optional)");
}

static void object(struct buf *out, const struct shape *shape)
{
    say(out, "### %s\n\n%s\n\n| key | is | |\n|---|---|---|\n", shape->name, shape->help);
    for (const struct shape_row *row = shape->rows; row->name; row++) {
        say(out, "| `%s` | ", row->name);
        row_type(out, row);
        say(out, " | %s |\n", row->help ? row->help : "");
    }
    put(out, "\n");
}

/* ── the page ──────────────────────────────────────────────────────────────────────────────── */

static void scopes(struct buf *out)
{
    put(out, "## Scopes\n\n| scope | allows to |\n|---|---|\n");
    for (uint32_t bit = 1; bit <= ACCESS_ALL; bit <<= 1)
        say(out, "| `%s` | %s |\n", access_scope_name(bit), access_scope_help(bit));
    put(out, "\n");
}

void openapi_write_markdown(struct buf *out)
{
    put(out, opening);
    scopes(out);
    put(out, "## Operations\n\n");
    for (size_t i = 0; i < n_operations; i++)
        operation(out, &operations[i]);
    put(out, "## Objects\n\n");
    for (const struct shape *const *s = shapes; *s; s++)
        object(out, *s);
    out->len--; /* one newline at the end */
}
