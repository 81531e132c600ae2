#include "wire/envelope.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { FLEET_MAX = 63, REGION_MAX = 63, INFO_MAX = 4096, QUOTED_MAX = 40 };

/* ── reading ───────────────────────────────────────────────────────────────────────────────── */

/* The first fault found counts; why is empty until then. */
struct reader {
    const struct json *object;
    char *why;
};

static bool is_fine(const struct reader *r)
{
    return r->why[0] == '\0';
}

/* A member, or NULL: many languages write null for what they have not. */
static const struct json *member(const struct reader *r, const char *key)
{
    const struct json *v = json_member(r->object, key);
    return v && json_kind(v) != JSON_KIND_NULL ? v : NULL;
}

__attribute__((format(printf, 2, 3))) static void wrong(struct reader *r, const char *format, ...)
{
    if (!is_fine(r))
        return;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(r->why, ENVELOPE_WHY_MAX, format, args);
    va_end(args);
}

/* As it may stand in a sentence; a long one is cut. */
static const char *quoted(char dst[QUOTED_MAX + 1], struct str s)
{
    size_t n = 0;
    for (size_t taken = 0; s.len > 0 && n + STR_PRINTED_MAX <= QUOTED_MAX;) {
        n += str_print_char(s, dst + n, &taken);
        s = (struct str){s.at + taken, s.len - taken};
    }
    dst[n] = '\0';
    return dst;
}

static struct str read_text(struct reader *r, const char *key, size_t max)
{
    const struct json *v = member(r, key);
    if (!v)
        return STR("");
    struct str text = json_get_text(v);
    if (json_kind(v) != JSON_KIND_TEXT)
        wrong(r, "%s must be text", key);
    else if (text.len > max)
        wrong(r, "%s must be at most %zu bytes long", key, max);
    return text;
}

static bool read_bool(struct reader *r, const char *key, bool otherwise)
{
    const struct json *v = member(r, key);
    if (v && json_kind(v) != JSON_KIND_BOOL)
        wrong(r, "%s must be true or false", key);
    return v ? json_get_bool(v) : otherwise;
}

static int32_t read_priority(struct reader *r)
{
    const struct json *v = member(r, "priority");
    if (!v)
        return 0;
    int64_t n = json_get_int(v);
    if (json_kind(v) != JSON_KIND_INT || n < 0 || n > ENVELOPE_PRIORITY_MAX) {
        wrong(r, "priority must be a whole number from 0 to %d", ENVELOPE_PRIORITY_MAX);
        return 0;
    }
    return (int32_t)n;
}

static bool is_among(const struct str *ids, size_t n, struct str id)
{
    for (size_t i = 0; i < n; i++) {
        if (str_eq(ids[i], id))
            return true;
    }
    return false;
}

/* Ids of players, each once. */
static size_t read_ids(struct reader *r, const char *key, struct str *ids, size_t max)
{
    const struct json *list = member(r, key);
    if (!list)
        return 0;
    if (json_kind(list) != JSON_KIND_ARRAY) {
        wrong(r, "%s must be a list of player ids", key);
        return 0;
    }
    size_t n = 0;
    for (size_t i = 0; i < json_length(list); i++) {
        const struct json *v = json_item(list, i);
        struct str id = json_get_text(v);
        if (json_kind(v) != JSON_KIND_TEXT || id.len == 0 || id.len > ENVELOPE_ID_MAX) {
            wrong(r, "%s must be player ids of 1 to %d bytes", key, ENVELOPE_ID_MAX);
            return 0;
        }
        if (is_among(ids, n, id))
            continue;
        if (n == max) {
            wrong(r, "%s must be at most %zu ids", key, max);
            return 0;
        }
        ids[n++] = id;
    }
    return n;
}

static size_t read_latencies(struct reader *r, struct envelope_latency *latencies)
{
    const struct json *map = member(r, "latencies");
    if (!map)
        return 0;
    if (json_kind(map) != JSON_KIND_OBJECT || json_members(map) > ENVELOPE_LATENCIES_MAX) {
        wrong(r, "latencies must be at most %d regions with milliseconds", ENVELOPE_LATENCIES_MAX);
        return 0;
    }
    size_t n = 0;
    const char *key;
    const struct json *v;
    for (void *at = NULL; json_next(map, &at, &key, &v);) {
        double ms = json_get_number(v);
        bool number = json_kind(v) == JSON_KIND_INT || json_kind(v) == JSON_KIND_REAL;
        if (!number || !isfinite(ms) || ms < 0) {
            char region[QUOTED_MAX + 1];
            wrong(r, "the latency of '%s' must be milliseconds", quoted(region, str_of(key)));
            return 0;
        }
        latencies[n++] = (struct envelope_latency){str_of(key), ms};
    }
    return n;
}

static struct str read_info(struct reader *r, struct buf *memory)
{
    const struct json *v = member(r, "info");
    if (!v)
        return STR("");
    if (json_kind(v) != JSON_KIND_OBJECT) {
        wrong(r, "info must be a JSON object");
        return STR("");
    }
    if (json_members(v) == 0)
        return STR("");
    json_any(&(struct json_writer){.out = memory}, v);
    if (memory->len > INFO_MAX)
        wrong(r, "info must be at most %d bytes long", INFO_MAX);
    return (struct str){(const char *)memory->data, memory->len};
}

/* Any 1.x is read: what it adds is unknown to us, and ignored. */
static void read_version(struct reader *r)
{
    struct str version = read_text(r, "envelopeVersion", ENVELOPE_ID_MAX);
    if (version.len == 0 || str_eq(version, STR("1")))
        return;
    if (version.len < 2 || version.at[0] != '1' || version.at[1] != '.') {
        char text[QUOTED_MAX + 1];
        wrong(r, "envelopeVersion '%s' is not supported, 1.0 is", quoted(text, version));
    }
}

static void read_fields(struct reader *r, struct envelope_request *ret)
{
    read_version(r);
    ret->player_id = read_text(r, "playerId", ENVELOPE_ID_MAX);
    if (ret->player_id.len == 0)
        wrong(r, "playerID is required for allocation");
    ret->fleet = read_text(r, "fleet", FLEET_MAX);
    if (ret->fleet.len == 0)
        wrong(r, "fleet is required for allocation");
    ret->n_join_on_ids = read_ids(r, "joinOnIds", ret->join_on_ids, ENVELOPE_FRIENDS_MAX);
    ret->can_join_not_found = read_bool(r, "canJoinNotFound", false);
    ret->region = read_text(r, "region", REGION_MAX);
    ret->n_latencies = read_latencies(r, ret->latencies);
    ret->priority = read_priority(r);
    ret->n_party_ids = read_ids(r, "partyIds", ret->party_ids, ENVELOPE_PARTY_MAX);
    ret->move_party = read_bool(r, "moveParty", false);
    ret->rejoin = read_bool(r, "rejoin", true);
    ret->info = read_info(r, &ret->memory);
}

static enum envelope_verdict unreadable(char why[ENVELOPE_WHY_MAX], const char *sentence)
{
    (void)snprintf(why, ENVELOPE_WHY_MAX, "%s", sentence);
    return ENVELOPE_UNREADABLE;
}

enum envelope_verdict envelope_read(struct str text, struct envelope_request *ret,
                                    char why[ENVELOPE_WHY_MAX])
{
    *ret = (struct envelope_request){0};
    why[0] = '\0';
    char fault[JSON_WHY_MAX];
    ret->document = json_parse(text, fault);
    if (!ret->document) {
        (void)snprintf(why, ENVELOPE_WHY_MAX, "it is no JSON: %s", fault);
        return ENVELOPE_UNREADABLE;
    }
    if (json_kind(ret->document) != JSON_KIND_OBJECT)
        return unreadable(why, "it is no JSON object");
    struct reader r = {.object = ret->document, .why = why};
    const struct json *type = member(&r, "type");
    if (type && !str_eq(json_get_text(type), STR("allocation-request")))
        return ENVELOPE_FOREIGN;
    ret->ticket_id = read_text(&r, "ticketId", ENVELOPE_NAME_MAX);
    if (ret->ticket_id.len == 0)
        wrong(&r, "ticketId is required for allocation");
    if (!is_fine(&r)) {
        ret->ticket_id = STR("");
        return ENVELOPE_UNREADABLE;
    }
    read_fields(&r, ret);
    return is_fine(&r) ? ENVELOPE_OURS : ENVELOPE_WRONG;
}

void envelope_done(struct envelope_request *r)
{
    json_free(r->document);
    buf_done(&r->memory);
    *r = (struct envelope_request){0};
}

/* ── writing ───────────────────────────────────────────────────────────────────────────────── */

const char *envelope_status_word(enum envelope_status status)
{
    static const char *const words[] = {
        [ENVELOPE_SUCCESS] = "Success",
        [ENVELOPE_FAILURE] = "Failure",
        [ENVELOPE_QUEUED] = "Queued",
    };
    return words[status];
}

static void write_text(struct json_writer *w, const char *key, struct str text)
{
    if (text.len > 0)
        json_key_text(w, key, text);
}

static void write_ports(struct json_writer *w, const struct envelope_result *r)
{
    assert(r->n_ports <= ENVELOPE_PORTS_MAX);
    if (r->n_ports > 0)
        json_key_int(w, "port", r->ports[0]);
    if (r->n_ports < 2)
        return;
    json_key(w, "ports");
    json_open_array(w);
    for (int i = 0; i < r->n_ports; i++)
        json_int(w, r->ports[i]);
    json_close_array(w);
}

static void write_party(struct json_writer *w, const struct envelope_result *r)
{
    if (r->n_party == 0)
        return;
    json_key(w, "party");
    json_open_array(w);
    for (size_t i = 0; i < r->n_party; i++) {
        json_open_object(w);
        json_key_text(w, "playerId", r->party[i].player_id);
        write_text(w, "token", r->party[i].token);
        write_text(w, "key", r->party[i].key);
        json_close_object(w);
    }
    json_close_array(w);
}

void envelope_write(struct buf *out, const struct envelope_result *r)
{
    struct json_writer w = {.out = out};
    json_open_object(&w);
    json_key_text(&w, "envelopeVersion", STR("1.0"));
    json_key_text(&w, "type", STR("allocation-result"));
    json_key_text(&w, "ticketId", r->ticket_id);
    json_key_text(&w, "status", str_of(envelope_status_word(r->status)));
    write_text(&w, "token", r->token);
    write_text(&w, "errorMessage", r->error);
    if (r->position > 0)
        json_key_int(&w, "queuePosition", r->position);
    write_text(&w, "queueId", r->queue_id);
    if (r->eta_s > 0)
        json_key_int(&w, "etaSeconds", r->eta_s);
    write_text(&w, "address", r->address);
    write_ports(&w, r);
    if (r->session_id != 0)
        json_key_id(&w, "sessionId", r->session_id);
    if (r->expires_wall_ms != 0)
        json_key_time(&w, "expiresAt", r->expires_wall_ms);
    write_text(&w, "key", r->key);
    if (r->party_id != 0)
        json_key_id(&w, "partyId", r->party_id);
    write_party(&w, r);
    json_close_object(&w);
}

/* ── tokens ────────────────────────────────────────────────────────────────────────────────── */

/* 16 bytes are five groups of three and one over. */
void envelope_token(const uint8_t raw[TOKEN_RAW], char dst[TOKEN_TEXT + 1])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n = 0;
    for (int i = 0; i < TOKEN_RAW; i += 3) {
        bool last = i + 1 == TOKEN_RAW;
        uint32_t group = (uint32_t)raw[i] << 16;
        if (!last)
            group |= (uint32_t)raw[i + 1] << 8 | raw[i + 2];
        dst[n++] = digits[group >> 18];
        dst[n++] = digits[group >> 12 & 63];
        dst[n++] = last ? '=' : digits[group >> 6 & 63];
        dst[n++] = last ? '=' : digits[group & 63];
    }
    dst[n] = '\0';
}

void envelope_player_token(struct str player_id, uint8_t ret[TOKEN_RAW])
{
    memset(ret, 0, TOKEN_RAW);
    size_t n = player_id.len < TOKEN_RAW ? player_id.len : TOKEN_RAW;
    if (n > 0)
        memcpy(ret, player_id.at, n);
}
