#include "api/agones_object.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PORT_MAX = 65535 };

static const struct json *at(const struct json *v, const char *key)
{
    return v && json_kind(v) == JSON_KIND_OBJECT ? json_member(v, key) : NULL;
}

static struct str text_at(const struct json *v, const char *key)
{
    const struct json *member = at(v, key);
    return member ? json_get_text(member) : (struct str){0};
}

static int64_t int_at(const struct json *v, const char *key)
{
    const struct json *member = at(v, key);
    return member ? json_get_int(member) : 0;
}

/* A positive number as text; 0 when it is none. */
static int64_t id_at(const struct json *v, const char *key)
{
    struct str text = text_at(v, key);
    int64_t id = 0;
    if (text.len == 0 || text.len > 18)
        return 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return 0;
        id = id * 10 + (text.at[i] - '0');
    }
    return id;
}

/* ── what is not read ──────────────────────────────────────────────────────────────────────── */

/* Each of these returns where it ends, at most text.len; `from` is its first byte. */
static size_t skip_text(struct str text, size_t from)
{
    size_t i = from + 1;
    const char *quote;
    while (i < text.len && (quote = memchr(text.at + i, '"', text.len - i))) {
        const char *escapes = quote;
        while (escapes > text.at + i && escapes[-1] == '\\')
            escapes--;
        i = (size_t)(quote - text.at) + 1;
        if ((quote - escapes) % 2 == 0)
            return i;
    }
    return text.len;
}

static size_t skip_blanks(struct str text, size_t from)
{
    while (from < text.len && strchr(" \t\r\n", text.at[from]) && text.at[from])
        from++;
    return from;
}

static size_t skip_nested(struct str text, size_t from)
{
    size_t depth = 0, i = from;
    while (i < text.len) {
        char c = text.at[i];
        if (c == '"') {
            i = skip_text(text, i);
            continue;
        }
        i++;
        depth += c == '{' || c == '[';
        if ((c == '}' || c == ']') && --depth == 0)
            break;
    }
    return i;
}

/* Past a key that is not read, its colon and what stands before its value, which is an object or an
 * array; 0 = it is none of them. */
static size_t unread(struct str text, size_t from, size_t end)
{
    struct str key = {text.at + from, end - from};
    if (!str_eq(key, STR("\"managedFields\"")) && !str_eq(key, STR("\"spec\"")))
        return 0;
    size_t i = skip_blanks(text, end);
    if (i == text.len || text.at[i] != ':')
        return 0;
    i = skip_blanks(text, i + 1);
    return i < text.len && (text.at[i] == '{' || text.at[i] == '[') ? i : 0;
}

static void keep_read(struct str text, struct buf *out)
{
    size_t from = 0, i = 0;
    const char *quote;
    while (i < text.len && (quote = memchr(text.at + i, '"', text.len - i))) {
        size_t begin = (size_t)(quote - text.at);
        i = skip_text(text, begin);
        size_t value = unread(text, begin, i);
        if (value == 0)
            continue;
        buf_append(out, text.at + from, value - from);
        buf_append(out, "0", 1);
        from = i = skip_nested(text, value);
    }
    buf_append(out, text.at + from, text.len - from);
}

struct json *gameserver_parse(struct str text, char why[JSON_WHY_MAX])
{
    struct buf read = {0};
    keep_read(text, &read);
    struct json *root = json_parse((struct str){(const char *)read.data, read.len}, why);
    buf_done(&read);
    return root;
}

/* ── a GameServer ──────────────────────────────────────────────────────────────────────────── */

static bool is_in(struct str word, const char *const *words)
{
    for (; *words; words++) {
        if (str_eq(word, str_of(*words)))
            return true;
    }
    return false;
}

/* One that is being deleted is over, whatever its state says. */
static enum gameserver_state state_of(struct str said, const struct json *metadata)
{
    static const char *const over[] = {"Unhealthy", "Shutdown", "Error", NULL};
    if (is_in(said, over) || text_at(metadata, "deletionTimestamp").len > 0)
        return GAMESERVER_OVER;
    return str_eq(said, STR("Allocated")) ? GAMESERVER_ALLOCATED : GAMESERVER_OTHER;
}

static int take_ports(const struct json *list, const char *wanted, uint16_t ret[HOST_PORTS_MAX])
{
    size_t n = list && json_kind(list) == JSON_KIND_ARRAY ? json_length(list) : 0;
    int taken = 0;
    for (size_t i = 0; i < n; i++) {
        const struct json *item = json_item(list, i);
        int64_t port = int_at(item, "port");
        bool first = *wanted && str_eq(text_at(item, "name"), str_of(wanted));
        if (port <= 0 || port > PORT_MAX || (taken == HOST_PORTS_MAX && !first))
            continue;
        taken -= taken == HOST_PORTS_MAX;
        memmove(ret + first, ret, (first ? (size_t)taken : 0) * sizeof(*ret));
        ret[first ? 0 : taken] = (uint16_t)port;
        taken++;
    }
    return taken;
}

static bool is_name(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.'))
            return false; /* it goes into paths */
    }
    return name.len > 0 && name.len < AGONES_NAME_MAX;
}

bool gameserver_read(const struct json *v, const char *port, struct gameserver_object *ret)
{
    const struct json *metadata = at(v, "metadata");
    const struct json *status = at(v, "status");
    const struct json *marks = at(metadata, "annotations");
    *ret = (struct gameserver_object){
        .name = text_at(metadata, "name"),
        .version = text_at(metadata, "resourceVersion"),
        .said = text_at(status, "state"),
        .address = text_at(status, "address"),
        .tokens = text_at(marks, AGONES_TOKENS),
        .instance = text_at(marks, AGONES_INSTANCE),
        .server = id_at(marks, AGONES_SERVER),
        .session = id_at(marks, AGONES_SESSION),
    };
    ret->state = state_of(ret->said, metadata);
    ret->n_ports = take_ports(at(status, "ports"), port, ret->ports);
    return is_name(ret->name) && ret->version.len > 0;
}

bool gameserver_page_read(const struct json *v, struct gameserver_page *ret)
{
    const struct json *metadata = at(v, "metadata");
    const struct json *items = at(v, "items");
    *ret = (struct gameserver_page){.items = items,
                                    .version = text_at(metadata, "resourceVersion"),
                                    .more = text_at(metadata, "continue")};
    return items && json_kind(items) == JSON_KIND_ARRAY && ret->version.len > 0;
}

/* ── a watch ───────────────────────────────────────────────────────────────────────────────── */

bool watch_event_read(const struct json *v, const char *port, struct watch_event *ret)
{
    struct str type = text_at(v, "type");
    const struct json *object = at(v, "object");
    *ret = (struct watch_event){.kind = WATCH_CHANGED};
    if (str_eq(type, STR("ERROR"))) {
        ret->kind = WATCH_ERROR;
        ret->code = (int)(int_at(object, "code") & 0xffff);
        ret->why = text_at(object, "message");
        return object != NULL;
    }
    if (str_eq(type, STR("BOOKMARK"))) {
        ret->kind = WATCH_BOOKMARK;
        ret->object.version = text_at(at(object, "metadata"), "resourceVersion");
        return ret->object.version.len > 0;
    }
    if (str_eq(type, STR("DELETED")))
        ret->kind = WATCH_DELETED;
    else if (!str_eq(type, STR("ADDED")) && !str_eq(type, STR("MODIFIED")))
        return false;
    return gameserver_read(object, port, &ret->object);
}

bool watch_lines_take(struct watch_lines *l, struct str piece,
                      bool (*each)(void *user, struct str line), void *user)
{
    while (piece.len > 0) {
        const char *end = memchr(piece.at, '\n', piece.len);
        size_t n = end ? (size_t)(end - piece.at) : piece.len;
        if (l->rest.len + n > AGONES_LINE_MAX)
            return false;
        struct str line = {piece.at, n};
        if (l->rest.len > 0 || !end) {
            buf_append(&l->rest, piece.at, n);
            line = (struct str){(const char *)l->rest.data, l->rest.len};
        }
        if (!end)
            return true;
        piece = (struct str){end + 1, piece.len - n - 1};
        bool go_on = line.len == 0 || each(user, line);
        buf_clear(&l->rest);
        if (!go_on)
            return false;
    }
    return true;
}

void watch_lines_done(struct watch_lines *l)
{
    buf_done(&l->rest);
}

/* ── an allocation ─────────────────────────────────────────────────────────────────────────── */

bool allocated_read(const struct json *v, const char *port, struct allocated *ret)
{
    const struct json *status = at(v, "status");
    struct str state = text_at(status, "state");
    *ret = (struct allocated){.name = text_at(status, "gameServerName"),
                              .address = text_at(status, "address")};
    ret->n_ports = take_ports(at(status, "ports"), port, ret->ports);
    if (str_eq(state, STR("Allocated")))
        return is_name(ret->name);
    ret->state = str_eq(state, STR("Contention")) ? ALLOCATED_CONTENTION : ALLOCATED_NO;
    return ret->state == ALLOCATED_CONTENTION || str_eq(state, STR("UnAllocated"));
}

const char *agones_refusal(int status, struct str body, char dst[AGONES_WHY_MAX])
{
    char why[JSON_WHY_MAX];
    struct json *root = json_parse(body, why);
    struct str text = root ? text_at(root, "message") : (struct str){0};
    if (text.len > 0)
        snprintf(dst, AGONES_WHY_MAX, "%.*s", (int)(text.len < 200 ? text.len : 200), text.at);
    else
        snprintf(dst, AGONES_WHY_MAX, "the API server answered %d", status);
    json_free(root);
    return dst;
}

/* ── tokens ────────────────────────────────────────────────────────────────────────────────── */

bool tokens_next(struct str *rest, struct str *ret)
{
    while (rest->len > 0) {
        const char *comma = memchr(rest->at, ',', rest->len);
        size_t n = comma ? (size_t)(comma - rest->at) : rest->len;
        *ret = (struct str){rest->at, n};
        size_t passed = comma ? n + 1 : n;
        *rest = (struct str){rest->at + passed, rest->len - passed};
        if (n > 0)
            return true;
    }
    return false;
}

bool tokens_have(struct str tokens, struct str token)
{
    struct str one;
    while (tokens_next(&tokens, &one)) {
        if (str_eq(one, token))
            return true;
    }
    return false;
}

static void append(struct buf *tokens, struct str token)
{
    if (tokens->len > 0)
        buf_append(tokens, ",", 1);
    buf_append(tokens, token.at, token.len);
}

void tokens_change(struct buf *tokens, struct str token, bool on)
{
    struct str rest = {(const char *)tokens->data, tokens->len};
    struct str one;
    struct buf kept = {0};
    if (on && tokens_have(rest, token))
        return;
    while (tokens_next(&rest, &one)) {
        if (on || !str_eq(one, token))
            append(&kept, one);
    }
    if (on)
        append(&kept, token);
    buf_done(tokens);
    *tokens = kept;
}

static bool is_number(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.at[i] < '0' || s.at[i] > '9')
            return false;
    }
    return s.len > 0 && s.at[0] != '0';
}

bool version_is_older(struct str a, struct str b)
{
    if (!is_number(a) || !is_number(b))
        return false;
    return a.len != b.len ? a.len < b.len : memcmp(a.at, b.at, a.len) < 0;
}
