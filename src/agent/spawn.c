#include "agent/spawn.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SPAWN_TIMEOUT_MS = 30 * 1000,
    STATUS_PERIOD_MS = 10 * 1000,
    TIME_MIN_MS = 100,
    TIME_MAX_MS = 24 * 3600 * 1000,
    PLAYERS_MAX = 1000 * 1000,
};

/* All of these return false with why written. */

static bool refuse(char why[SPAWN_WHY_MAX], const char *name, const char *what)
{
    snprintf(why, SPAWN_WHY_MAX, "'%s' %s.", name, what);
    return false;
}

static bool is_given(const struct json *v)
{
    return v && json_kind(v) != JSON_KIND_NULL;
}

static bool read_id(const struct json *root, const char *name, int64_t *ret, char *why)
{
    struct str text = json_get_text(json_member(root, name));
    char *end = NULL;
    *ret = text.len > 0 ? strtoll(text.at, &end, 10) : 0;
    return (*ret > 0 && *end == '\0') || refuse(why, name, "must be the number of one, as a text");
}

static bool read_text(const struct json *root, const char *name, const char **ret, char *why)
{
    *ret = json_get_text(json_member(root, name)).at;
    return **ret || refuse(why, name, "must be a text that is not empty");
}

/* Keeps what *ret holds when it is not given. */
static bool read_int(const struct json *root, const char *name, int64_t min, int64_t max,
                     int64_t *ret, char *why)
{
    const struct json *v = json_member(root, name);
    char what[80];
    if (!is_given(v))
        return true;
    *ret = json_get_int(v);
    if (json_kind(v) == JSON_KIND_INT && *ret >= min && *ret <= max)
        return true;
    snprintf(what, sizeof(what), "must be a number from %" PRId64 " to %" PRId64, min, max);
    return refuse(why, name, what);
}

static bool read_endpoint(struct spawn *s, char *why)
{
    struct str word = json_get_text(json_member(s->root, "endpoint"));
    s->spec.endpoint_uri = str_eq(word, STR("uri"));
    return word.len == 0 || s->spec.endpoint_uri || str_eq(word, STR("path")) ||
           refuse(why, "endpoint", "must be path or uri");
}

static bool read_deployment(struct spawn *s, char *why)
{
    const struct json *v = json_member(s->root, "deployment");
    s->has_deployment = is_given(v);
    if (s->has_deployment)
        return archive_from_hex(json_get_text(v), s->deployment) ||
               refuse(why, "deployment", "must be a SHA-256 in hex, or null");
    return s->spec.binary[0] == '/' ||
           refuse(why, "binary", "must be an absolute path when there is no deployment");
}

static bool read_arguments(struct spawn *s, char *why)
{
    const struct json *list = json_member(s->root, "arguments");
    size_t n = json_length(list);
    if (is_given(list) && (json_kind(list) != JSON_KIND_ARRAY || n > SPAWN_ARGUMENTS_MAX))
        return refuse(why, "arguments", "must be a list of at most 64 texts");
    for (size_t i = 0; i < n; i++) {
        const struct json *item = json_item(list, i);
        if (json_kind(item) != JSON_KIND_TEXT)
            return refuse(why, "arguments", "must be a list of at most 64 texts");
        s->arguments[i] = json_get_text(item).at;
    }
    s->spec.arguments = s->arguments;
    return true;
}

/* ── environment ───────────────────────────────────────────────────────────────────────────── */

static bool has_variable(const struct spawn *s, const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < s->n_env; i++) {
        if (strncmp(s->env[i], name, len) == 0 && s->env[i][len] == '=')
            return true;
    }
    return false;
}

static void put_variable(struct spawn *s, const char *name, struct str value)
{
    struct buf b = {0};
    buf_append(&b, name, strlen(name));
    buf_append(&b, "=", 1);
    buf_append(&b, value.at, value.len);
    buf_append(&b, "", 1);
    s->env[s->n_env++] = (char *)b.data;
}

/* A JSON object as it is handed to the game: {} when it is not given. */
static bool put_object(struct spawn *s, const char *name, char *why)
{
    const struct json *v = json_member(s->root, name);
    struct buf b = {0};
    if (is_given(v) && json_kind(v) != JSON_KIND_OBJECT)
        return refuse(why, name, "must be an object");
    if (is_given(v))
        json_any(&(struct json_writer){.out = &b}, v);
    else
        buf_append(&b, "{}", 2);
    put_variable(s, name, (struct str){(const char *)b.data, b.len});
    buf_done(&b);
    return true;
}

static bool put_configured(struct spawn *s, char *why)
{
    const struct json *list = json_member(s->root, "env");
    if (is_given(list) && (json_kind(list) != JSON_KIND_ARRAY || json_length(list) > SPAWN_ENV_MAX))
        return refuse(why, "env", "must be a list of at most 64 pairs of key and value");
    for (size_t i = 0; i < json_length(list); i++) {
        const struct json *pair = json_item(list, i);
        struct str key = json_get_text(json_member(pair, "key"));
        const struct json *value = json_member(pair, "value");
        if (key.len == 0 || strchr(key.at, '=') || !value || json_kind(value) != JSON_KIND_TEXT)
            return refuse(why, "env", "must be a list of at most 64 pairs of key and value");
        if (!has_variable(s, key.at)) /* what Muster says is said by Muster */
            put_variable(s, key.at, json_get_text(value));
    }
    return true;
}

/* The whole of it: nothing of ours. */
static bool make_environment(struct spawn *s, char *why)
{
    char number[24];
    int64_t players = 0;
    struct str token = json_get_text(json_member(s->root, "login_access_token"));
    struct str room = json_get_text(json_member(s->root, "room_id"));
    if (!read_int(s->root, "max_players", 0, PLAYERS_MAX, &players, why) ||
        !put_object(s, "server_settings", why) || !put_object(s, "room_settings", why) ||
        !put_object(s, "discovery_services", why))
        return false;
    snprintf(number, sizeof(number), "%" PRId64, players);
    put_variable(s, "game_max_players", str_of(number));
    if (room.len > 0)
        put_variable(s, "room_id", room);
    if (token.len > 0)
        put_variable(s, "login_access_token", token);
    if (!put_configured(s, why))
        return false;
    s->spec.env = (const char *const *)s->env;
    return true;
}

/* ── the whole ─────────────────────────────────────────────────────────────────────────────── */

static bool read_all(struct spawn *s, char *why)
{
    int64_t ports = 1;
    struct process_spec *spec = &s->spec;
    spec->spawn_timeout_ms = SPAWN_TIMEOUT_MS;
    spec->status_period_ms = STATUS_PERIOD_MS;
    bool good = read_id(s->root, "server_id", &spec->server, why) &&
                read_id(s->root, "session_id", &spec->session, why) &&
                read_text(s->root, "binary", &spec->binary, why) && read_deployment(s, why) &&
                read_endpoint(s, why) &&
                read_int(s->root, "ports", 1, PROCESS_PORTS_MAX, &ports, why) &&
                read_int(s->root, "spawn_timeout_ms", TIME_MIN_MS, TIME_MAX_MS,
                         &spec->spawn_timeout_ms, why) &&
                read_int(s->root, "status_period_ms", TIME_MIN_MS, TIME_MAX_MS,
                         &spec->status_period_ms, why) &&
                read_arguments(s, why) && make_environment(s, why);
    spec->n_ports = (int)ports;
    return good;
}

int spawn_read(struct str body, struct spawn **ret, char why[SPAWN_WHY_MAX])
{
    char fault[JSON_WHY_MAX];
    struct spawn *s = xcalloc(1, sizeof(*s));
    s->root = json_parse(body, fault);
    bool good = s->root != NULL;
    if (!good)
        snprintf(why, SPAWN_WHY_MAX, "The body is no JSON: %s.", fault);
    if (!good || !read_all(s, why)) {
        spawn_free(s);
        return ERR_BAD_ARGUMENT;
    }
    *ret = s;
    return 0;
}

void spawn_free(struct spawn *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_env; i++) {
        explicit_bzero(s->env[i], strlen(s->env[i]));
        free(s->env[i]);
    }
    json_free(s->root);
    free(s);
}
