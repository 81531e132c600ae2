#include "cli/ask.h"

#include "cli/client.h"
#include "cli/term.h"
#include "wire/uri.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const int64_t NOT_GIVEN = INT64_MIN;

/* What a verb looks after itself: reading page after page, and going on in a stream or a log. */
static bool is_verbs_own(const struct ask *a, const struct field *f)
{
    bool pages = strcmp(f->name, "cursor") == 0 || strcmp(f->name, "limit") == 0;
    bool stream = strcmp(f->name, "last_event_id") == 0 || strcmp(f->name, "follow") == 0;
    return (a->operation->is_list && pages) || stream;
}

/* What is left of a name without that ending. */
static size_t without(const char *name, size_t len, const char *ending)
{
    size_t n = strlen(ending);
    return len > n && memcmp(name + len - n, ending, n) == 0 ? len - n : len;
}

static bool is_seconds(const struct field *f)
{
    size_t len = strlen(f->name);
    bool named = without(f->name, len, "_s") < len || strcmp(f->name, "wait") == 0;
    return f->kind == FIELD_INT && named;
}

/* What players' clients have always called settings is a filter where rooms are looked for. */
static bool is_filter(const struct operation *o, const struct field *f)
{
    return strcmp(o->name, "join") == 0 && strcmp(f->name, "settings") == 0;
}

/* "player_count" as "--player-count", "expires_in_s" as "--expires" */
static void option_name(const struct operation *o, const struct field *f, char dst[ASK_NAME_MAX])
{
    size_t n = strlen(f->name);
    if (is_filter(o, f)) {
        (void)str_copy(dst, ASK_NAME_MAX, STR("--filter"));
        return;
    }
    if (is_seconds(f))
        n = without(f->name, without(f->name, n, "_s"), "_in");
    int len = snprintf(dst, ASK_NAME_MAX, "--%.*s", (int)n, f->name);
    assert(len > 0 && len < ASK_NAME_MAX);
    for (; *dst; dst++)
        *dst = *dst == '_' ? '-' : *dst;
}

static enum arg_kind arg_kind_of(const struct field *f)
{
    switch (f->kind) {
    case FIELD_ID:
    case FIELD_INT:
        return is_seconds(f) ? ARG_SECONDS : ARG_NUMBER;
    case FIELD_WORD:
    case FIELD_BOOL:
        return ARG_CHOICE;
    case FIELD_LIST:
        return ARG_LIST;
    case FIELD_TEXT:
    case FIELD_JSON:
    case FIELD_OBJECTS:
    case FIELD_LISTS:
        break;
    }
    return ARG_TEXT;
}

/* What help puts for a value. */
static const char *value_name(const struct field *f)
{
    switch (f->kind) {
    case FIELD_ID:
        return "ID";
    case FIELD_INT:
        return is_seconds(f) ? "TIME" : "N";
    case FIELD_WORD:
        return "WORD";
    case FIELD_BOOL:
        return "YES";
    case FIELD_JSON:
    case FIELD_OBJECTS:
    case FIELD_LISTS:
        return "JSON";
    case FIELD_TEXT:
        return "TEXT";
    case FIELD_LIST:
        break;
    }
    return "A,B";
}

static char letter_of(const struct field *f)
{
    return strcmp(f->name, "fleet") == 0 ? 'f' : '\0';
}

static size_t index_of(const struct ask *a, const char *field)
{
    size_t i = 0;
    while (a->operation->fields[i].name && strcmp(a->operation->fields[i].name, field) != 0)
        i++;
    assert(a->operation->fields[i].name);
    return i;
}

bool ask_has(const struct ask *a, const char *field)
{
    const struct field *f = a->operation->fields;
    while (f->name && strcmp(f->name, field) != 0)
        f++;
    return f->name != NULL;
}

static struct arg row_of(struct ask *a, size_t i)
{
    const struct field *f = &a->operation->fields[i];
    struct arg row = {.name = a->names[i], .kind = arg_kind_of(f), .help = f->help};
    option_name(a->operation, f, a->names[i]);
    bool number = row.kind == ARG_NUMBER || row.kind == ARG_SECONDS;
    row.into = number ? (void *)&a->values[i].number : (void *)&a->values[i].text;
    row.min = f->kind == FIELD_ID ? 1 : f->min;
    row.max = f->kind == FIELD_ID ? INT64_MAX : f->max;
    row.words = f->words;
    row.letter = letter_of(f);
    row.value = value_name(f);
    return row;
}

void ask_init(struct ask *a, const char *operation, const char *word)
{
    *a = (struct ask){.operation = operation_find(operation), .word = word};
    assert(a->operation);
    size_t n = 0;
    for (size_t i = 0; a->operation->fields[i].name; i++) {
        const struct field *f = &a->operation->fields[i];
        bool in_path = operation_is_in_path(a->operation, f);
        a->values[i].number = NOT_GIVEN;
        if (in_path && word)
            a->table[n++] =
                (struct arg){.name = word, .kind = ARG_WORD, .into = &a->values[i].text};
        else if (!in_path && !is_verbs_own(a, f))
            a->table[n++] = row_of(a, i);
    }
}

void ask_add_word(struct ask *a, const char *field, const char *word)
{
    size_t n = 0;
    while (a->table[n].name)
        n++;
    assert(n + 1 < sizeof(a->table) / sizeof(a->table[0]));
    a->table[n] =
        (struct arg){.name = word, .kind = ARG_WORD, .into = &a->values[index_of(a, field)].text};
}

static bool is_number(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    return digits > 0 && digits < 20 && text[digits] == '\0';
}

bool ask_names_host(const struct ask *a)
{
    if (!a->word || strcmp(a->word, "HOST") != 0)
        return false;
    const char *text = ask_text(a, "id");
    return text && text[0] && !is_number(text);
}

static bool is_given(const struct ask *a, size_t i)
{
    return a->values[i].text || a->values[i].number != NOT_GIVEN;
}

/* What a field that is missing is called: as a word when it may be one. */
static bool refuse_missing(const struct ask *a, const char *verb, size_t i)
{
    const struct arg *row = a->table;
    while (row->name && (row->kind != ARG_WORD || row->into != &a->values[i].text))
        row++;
    if (row->name)
        return args_refuse(verb, "needs a %s", row->name);
    return args_refuse(verb, "%s is needed", a->names[i]);
}

bool ask_check(const struct ask *a, const char *verb)
{
    for (size_t i = 0; a->operation->fields[i].name; i++) {
        const struct field *f = &a->operation->fields[i];
        bool in_path = operation_is_in_path(a->operation, f);
        if (is_verbs_own(a, f) || (in_path && !a->word))
            continue;
        if ((in_path || f->required) && !is_given(a, i))
            return refuse_missing(a, verb, i);
        if (in_path && f->kind == FIELD_ID && !is_number(a->values[i].text) && !ask_names_host(a))
            return args_refuse(verb, "%s is a number, not '%s'", a->word, a->values[i].text);
    }
    return true;
}

void ask_set(struct ask *a, const char *field, const char *text)
{
    a->values[index_of(a, field)].text = text;
}

void ask_set_number(struct ask *a, const char *field, int64_t number)
{
    a->values[index_of(a, field)].number = number;
}

const char *ask_text(const struct ask *a, const char *field)
{
    return a->values[index_of(a, field)].text;
}

int64_t ask_number(const struct ask *a, const char *field)
{
    int64_t number = a->values[index_of(a, field)].number;
    return number == NOT_GIVEN ? 0 : number;
}

/* ── path and body ─────────────────────────────────────────────────────────────────────────── */

static void put_query(const struct ask *a, struct buf *path)
{
    for (size_t i = 0; a->operation->fields[i].name; i++) {
        const struct field *f = &a->operation->fields[i];
        char number[24];
        const char *text = a->values[i].text;
        if (operation_is_in_path(a->operation, f) || !is_given(a, i))
            continue;
        if (!text) {
            snprintf(number, sizeof(number), "%" PRId64, a->values[i].number);
            text = number;
        }
        client_put_query(path, f->name, text);
    }
}

void ask_put_path(const struct ask *a, struct buf *path)
{
    for (const char *at = a->operation->path; *at;) {
        size_t plain = strcspn(at, "{");
        buf_append(path, at, plain);
        at += plain;
        if (*at == '{') {
            char name[ASK_NAME_MAX];
            size_t n = strcspn(++at, "}");
            snprintf(name, sizeof(name), "%.*s", (int)n, at);
            uri_escape(path, ask_text(a, name));
            at += n + 1;
        }
    }
    if (!operation_changes(a->operation) || a->operation->upload)
        put_query(a, path);
}

/* "EU,USE" as ["EU","USE"] */
static void put_list(struct json_writer *w, const char *text)
{
    json_open_array(w);
    while (*text) {
        size_t n = strcspn(text, ",");
        json_text(w, (struct str){text, n});
        text += n + (text[n] == ',' ? 1 : 0);
    }
    json_close_array(w);
}

static void put_field(struct json_writer *w, const struct ask *a, size_t i)
{
    const struct field *f = &a->operation->fields[i];
    json_key(w, f->name);
    if (f->kind == FIELD_LIST)
        put_list(w, a->values[i].text);
    else if (a->values[i].text)
        json_text(w, str_of(a->values[i].text));
    else if (f->kind == FIELD_ID)
        json_id(w, a->values[i].number);
    else
        json_int(w, a->values[i].number);
}

void ask_put_body(const struct ask *a, struct buf *body)
{
    struct json_writer w = {.out = body};
    if (!operation_has_body(a->operation) || a->operation->upload)
        return;
    json_open_object(&w);
    for (size_t i = 0; a->operation->fields[i].name; i++) {
        if (!operation_is_in_path(a->operation, &a->operation->fields[i]) && is_given(a, i))
            put_field(&w, a, i);
    }
    json_close_object(&w);
}
