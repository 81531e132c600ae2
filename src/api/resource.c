#include "api/resource.h"

#include "api/play.h"
#include "api/shape_rows.h"
#include "base/err.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ── words ─────────────────────────────────────────────────────────────────────────────────── */

const char *const server_status_words[] = {"available", "full", "draining", "offline", NULL};
const char *const session_state_words[] = {"opening", "open", "lost", "cancelling", "ended", NULL};
const char *const ticket_state_words[] = {"open", "done", "failed", "cancelled", "ended", NULL};
const char *const role_words[] = {"server", "chat", NULL};
const char *const scope_words[] = {
#define X(name, word, help) word,
    ACCESS_SCOPES(X)
#undef X
        NULL};

static const char *const passed_words[] = {"offline", "away", "unlisted", "draining",
                                           "failing", "full", NULL};
static const char *const drainer_words[] = {"server", "operator", NULL};
static const char *const provider_words[] = {"chat", NULL};
static const char *const end_words[] = {"match_ended",  "server_lost", "not_listed", "too_long",
                                        "not_reported", "by_operator", NULL};
static const char *const outcome_words[] = {"pending", "acknowledged", "refused",  "timed_out",
                                            "dropped", "not_ready",    "given_up", NULL};
static const char *const target_words[] = {"server", "session", "token", NULL};
static const char *const action_words[] = {"drain",  "undrain", "end",       "enrol", "revoke",
                                           "rotate", "issue",   "configure", NULL};
static const char *const store_words[] = {"writable", "read_only", NULL};
static const char *const health_words[] = {"ok", NULL};

/* The names of the regions in a set; those that are configured no more by their code. */
static void write_regions(struct json_writer *w, uint64_t bits, const struct core_config *config)
{
    json_open_array(w);
    for (int code = 0; code < REGION_CODES; code++) {
        if ((bits >> code & 1) && config->regions[code].name[0])
            json_text(w, str_of(config->regions[code].name));
    }
    json_close_array(w);
}

/* ── servers in groups ─────────────────────────────────────────────────────────────────────── */

static const struct shape server_counts_shape = {
    .name = "ServerCounts",
    .help = "How many servers are in each status.",
    .rows =
        (const struct shape_row[]){
            ROW(INT32, "available", struct view_group, servers[SERVER_AVAILABLE],
                "have room for another match"),
            ROW(INT32, "full", struct view_group, servers[SERVER_FULL], "have no room"),
            ROW(INT32, "draining", struct view_group, servers[SERVER_DRAINING],
                "finish what they have and take nothing new"),
            ROW(INT32, "offline", struct view_group, servers[SERVER_OFFLINE],
                "have not been heard of for too long"),
            {0},
        },
};

static const struct shape slots_shape = {
    .name = "Slots",
    .help = "Places for matches on the servers that are not offline.",
    .rows =
        (const struct shape_row[]){
            ROW(INT64, "used", struct view_group, slots_used, "taken"),
            ROW(INT64, "total", struct view_group, slots_total, "taken or free"),
            {0},
        },
};

static void write_latitude(struct json_writer *w, const void *object,
                           const struct core_config *config)
{
    const struct view_region *v = object;
    (void)config;
    json_number(w, v->located ? v->latitude : NAN, 4);
}

static void write_longitude(struct json_writer *w, const void *object,
                            const struct core_config *config)
{
    const struct view_region *v = object;
    (void)config;
    json_number(w, v->located ? v->longitude : NAN, 4);
}

const struct shape region_shape = {
    .name = "Region",
    .help = "Where machines stand.",
    .rows =
        (const struct shape_row[]){
            ROW(INT8, "code", struct view_region, code, "its number on the chat ports"),
            ROW(TEXT, "name", struct view_region, name, "its short name, as in the configuration"),
            {.name = "latitude",
             .kind = SHAPE_DOUBLE,
             .may_be_null = true,
             .write = write_latitude,
             .help = "degrees; null when its place is not configured"},
            {.name = "longitude",
             .kind = SHAPE_DOUBLE,
             .may_be_null = true,
             .write = write_longitude,
             .help = "degrees"},
            ROW_OBJECT("servers", server_counts_shape, struct view_region, group, NULL),
            ROW_OBJECT("slots", slots_shape, struct view_region, group, NULL),
            ROW(INT32, "sessions", struct view_region, group.sessions_open, "open matches"),
            ROW(DOUBLE, "load_mean", struct view_region, group.load_mean,
                "of load / max_sessions over the connected servers, 0 to 1"),
            ROW(DOUBLE, "load_spread", struct view_region, group.load_spread,
                "its standard deviation: 0 when all are loaded alike"),
            {0},
        },
};

static void write_provider(struct json_writer *w, const void *object,
                           const struct core_config *config)
{
    (void)object;
    (void)config;
    json_text(w, STR("chat"));
}

const struct shape fleet_shape = {
    .name = "Fleet",
    .help = "The interchangeable servers of one game.",
    .rows =
        (const struct shape_row[]){
            ROW(ID, "id", struct view_fleet, id, NULL),
            ROW(TEXT, "name", struct view_fleet, name, NULL),
            ROW(BOOL, "configured", struct view_fleet, configured,
                "false: taken out of the configuration, so its servers drain"),
            ROW(BOOL, "ready_required", struct view_fleet, ready_required,
                "a match counts as allocated only when its server has said READY"),
            {.name = "provider",
             .kind = SHAPE_WORD,
             .words = provider_words,
             .write = write_provider,
             .help = "where its servers come from; chat: they register over the server port"},
            ROW_OBJECT("servers", server_counts_shape, struct view_fleet, group, NULL),
            ROW_OBJECT("slots", slots_shape, struct view_fleet, group, NULL),
            ROW(INT32, "sessions", struct view_fleet, group.sessions_open, "open matches"),
            {0},
        },
};

/* ── servers ───────────────────────────────────────────────────────────────────────────────── */

static void write_status(struct json_writer *w, const void *object,
                         const struct core_config *config)
{
    const struct view_server *v = object;
    (void)config;
    json_text(w, str_of(server_status_name(v->status)));
}

static void write_draining_by(struct json_writer *w, const void *object,
                              const struct core_config *config)
{
    const struct view_server *v = object;
    (void)config;
    json_open_array(w);
    if (v->draining_by_server)
        json_text(w, STR("server"));
    if (v->draining_by_operator)
        json_text(w, STR("operator"));
    json_close_array(w);
}

static void write_passed_over(struct json_writer *w, const void *object,
                              const struct core_config *config)
{
    const struct view_server *v = object;
    (void)config;
    if (v->passed_over == PASSED_NOT)
        json_none(w);
    else
        json_text(w, str_of(passed_over_name(v->passed_over)));
}

const struct shape server_shape = {
    .name = "Server",
    .help = "One running game server process that players can reach.",
    .rows =
        (const struct shape_row[]){
            ROW(ID, "id", struct view_server, id, NULL),
            ROW(TEXT, "fleet", struct view_server, fleet, "the name of its fleet"),
            ROW(TEXT, "ip", struct view_server, ip, "where players reach it"),
            ROW(INT32, "port", struct view_server, port, NULL),
            ROW(TEXT, "region", struct view_server, region_name, "the name of its region"),
            {.name = "status",
             .kind = SHAPE_WORD,
             .words = server_status_words,
             .write = write_status},
            ROW(BOOL, "connected", struct view_server, connected, "its connection is open"),
            {.name = "draining_by",
             .kind = SHAPE_WORDS,
             .words = drainer_words,
             .write = write_draining_by,
             .help = "who wants it drained; empty when nobody does"},
            ROW(INT32, "max_sessions", struct view_server, max_sessions,
                "matches it can hold at the same time"),
            ROW(INT32, "load", struct view_server, load, "slots it has no more"),
            ROW(INT32, "sessions", struct view_server, sessions,
                "matches we hold on it: opening, open and lost"),
            ROW(INT32, "open", struct view_server, open, "of which are open"),
            ROW(INT32, "reported", struct view_server, reported, "matches by its last heartbeat"),
            ROW(INT32, "unknown_matches", struct view_server, unknown_matches,
                "matches it listed that nobody here knows"),
            ROW(FLOAT, "cpu_percent", struct view_server, cpu_percent, "by its last heartbeat"),
            ROW(FLOAT, "memory_percent", struct view_server, memory_percent,
                "by its last heartbeat"),
            ROW(DOUBLE, "score", struct view_server, score,
                "the highest of the candidates is chosen"),
            {.name = "passed_over",
             .kind = SHAPE_WORD,
             .may_be_null = true,
             .words = passed_words,
             .write = write_passed_over,
             .help = "why it is no candidate; null when it is one"},
            ROW(INT64, "backoff_left_ms", struct view_server, backoff_left_ms,
                "for so long it is passed over because it failed lately"),
            ROW_OR_NULL(INT64, "round_trip_us", struct view_server, round_trip_us,
                        "of the last PING; null when none was answered yet"),
            ROW_OR_NULL(TIME, "heard_at", struct view_server, heard_wall_ms,
                        "its last heartbeat or PONG; null: not since Muster started"),
            ROW(TIME, "registered_at", struct view_server, registered_wall_ms, NULL),
            ROW_OR_NULL(TIME, "connected_at", struct view_server, connected_wall_ms,
                        "since when without a break"),
            {0},
        },
};

/* ── sessions ──────────────────────────────────────────────────────────────────────────────── */

const struct shape session_shape = {
    .name = "Session",
    .help = "A match on a server.",
    .rows =
        (const struct shape_row[]){
            ROW(ID, "id", struct view_session, id, NULL),
            ROW(ID, "ticket", struct view_session, ticket, "the request it was opened for"),
            ROW(ID, "server", struct view_session, server, NULL),
            ROW(TEXT, "fleet", struct view_session, fleet, NULL),
            ROW(TEXT, "chat_server", struct view_session, chat_server, "who asked for it"),
            ROW(INT32, "lobby", struct view_session, lobby, "the chat server's number for it"),
            ROW_WORD("state", session_state_words, struct view_session, state, NULL),
            ROW(BOOL, "ready", struct view_session, ready, "its server has said READY"),
            ROW(INT8, "game_type", struct view_session, game_type, NULL),
            ROW(INT8, "game_mode", struct view_session, game_mode, NULL),
            ROW(INT8, "player_count", struct view_session, player_count, "players it is for"),
            ROW(INT32, "seated", struct view_session, seated, "players in it"),
            ROW(TIME, "created_at", struct view_session, created_wall_ms, NULL),
            ROW_OR_NULL(TIME, "opened_at", struct view_session, opened_wall_ms,
                        "when its server acknowledged it"),
            ROW_OR_NULL(TIME, "deadline_at", struct view_session, deadline_wall_ms,
                        "when its state ends by itself"),
            {.name = "end_reason",
             .kind = SHAPE_WORD,
             .may_be_null = true,
             .offset = PLACE(TEXT, struct view_session, end_reason),
             .words = end_words,
             .help = "null while it lasts"},
            {0},
        },
};

/* ── tickets ───────────────────────────────────────────────────────────────────────────────── */

struct refusal {
    const char *code;
    const char *message;
};

static const struct shape refusal_shape = {
    .name = "Refusal",
    .help = "Why a request failed.",
    .rows =
        (const struct shape_row[]){
            ROW(TEXT, "code", struct refusal, code, "a word for machines"),
            ROW(TEXT, "message", struct refusal, message, "a sentence for people"),
            {0},
        },
};

static void write_error(struct json_writer *w, const void *object, const struct core_config *config)
{
    const struct view_ticket *v = object;
    if (v->err == 0)
        json_none(w);
    else
        shape_write(w, &refusal_shape, &(struct refusal){err_code(v->err), err_sentence(v->err)},
                    config);
}

static void write_ticket_regions(struct json_writer *w, const void *object,
                                 const struct core_config *config)
{
    const struct view_ticket *v = object;
    write_regions(w, v->regions, config);
}

const struct shape ticket_shape = {
    .name = "Ticket",
    .help = "One request to be placed, with its answer.",
    .rows =
        (const struct shape_row[]){
            ROW(ID, "id", struct view_ticket, id, NULL),
            ROW(TEXT, "fleet", struct view_ticket, fleet, NULL),
            ROW(TEXT, "chat_server", struct view_ticket, chat_server, "who asks"),
            ROW(INT32, "lobby", struct view_ticket, lobby, "the chat server's number for it"),
            {.name = "regions",
             .kind = SHAPE_TEXTS,
             .write = write_ticket_regions,
             .help = "where it may be placed"},
            ROW_WORD("state", ticket_state_words, struct view_ticket, state,
                     "open: its answer is still to come; ended: its match is over"),
            {.name = "error",
             .kind = SHAPE_OBJECT,
             .may_be_null = true,
             .shape = &refusal_shape,
             .write = write_error,
             .help = "why it failed or was cancelled"},
            ROW_OR_NULL(ID, "session", struct view_ticket, session, "the match it was given"),
            ROW_OR_NULL(ID, "server", struct view_ticket, server, "… on that server"),
            ROW(INT8, "game_type", struct view_ticket, game_type, NULL),
            ROW(INT8, "game_mode", struct view_ticket, game_mode, NULL),
            ROW(INT8, "player_count", struct view_ticket, player_count, NULL),
            ROW(INT32, "average_rating", struct view_ticket, average_rating, NULL),
            ROW(TIME, "opened_at", struct view_ticket, opened_wall_ms, NULL),
            ROW_OR_NULL(TIME, "answered_at", struct view_ticket, answered_wall_ms, NULL),
            ROW_OR_NULL(TIME, "deadline_at", struct view_ticket, deadline_wall_ms,
                        "open: when it fails; otherwise: when it is forgotten"),
            ROW(INT32, "tries", struct view_ticket, n_tries, "servers that were asked"),
            {0},
        },
};

static const struct shape try_shape = {
    .name = "Try",
    .help = "One server that was asked, and how it looked then.",
    .rows =
        (const struct shape_row[]){
            ROW(ID, "server", struct view_try, server, NULL),
            ROW_WORD("outcome", outcome_words, struct view_try, outcome, NULL),
            ROW(FLOAT, "score", struct view_try, score, "the highest was asked first"),
            ROW(INT32, "load", struct view_try, load, "slots taken, before this match"),
            ROW(INT32, "max_sessions", struct view_try, max_sessions, NULL),
            ROW(FLOAT, "cpu_percent", struct view_try, cpu_percent, NULL),
            ROW(FLOAT, "memory_percent", struct view_try, memory_percent, NULL),
            {0},
        },
};

static const struct shape passed_over_shape = {
    .name = "PassedOver",
    .help = "Servers that were no candidates, by the first reason that applied.",
    .rows =
        (const struct shape_row[]){
            ROW(INT32, "offline", struct view_ticket, passed[PASSED_OFFLINE], NULL),
            ROW(INT32, "away", struct view_ticket, passed[PASSED_AWAY],
                "not connected, not yet offline"),
            ROW(INT32, "unlisted", struct view_ticket, passed[PASSED_UNLISTED],
                "came back; the list of their matches is awaited"),
            ROW(INT32, "draining", struct view_ticket, passed[PASSED_DRAINING], NULL),
            ROW(INT32, "failing", struct view_ticket, passed[PASSED_FAILING],
                "refused, timed out or dropped lately"),
            ROW(INT32, "full", struct view_ticket, passed[PASSED_FULL], NULL),
            {0},
        },
};

static void write_tries(struct json_writer *w, const void *object, const struct core_config *config)
{
    const struct why_answer *v = object;
    json_open_array(w);
    for (int i = 0; i < v->ticket.n_tries; i++)
        shape_write(w, &try_shape, &v->ticket.tries[i], config);
    json_close_array(w);
}

const struct shape why_shape = {
    .name = "Why",
    .help = "Why a ticket ended as it did.",
    .rows =
        (const struct shape_row[]){
            ROW_OBJECT("ticket", ticket_shape, struct why_answer, ticket, NULL),
            ROW(TEXT, "sentence", struct why_answer, sentence, "the same for people"),
            {.name = "tries",
             .kind = SHAPE_ITEMS,
             .shape = &try_shape,
             .write = write_tries,
             .help = "the servers that were asked, in order"},
            ROW_OBJECT("passed_over", passed_over_shape, struct why_answer, ticket,
                       "the others, at the last choice"),
            {0},
        },
};

/* ── tokens ────────────────────────────────────────────────────────────────────────────────── */

static void write_role(struct json_writer *w, const void *object, const struct core_config *config)
{
    const struct token_answer *v = object;
    (void)config;
    json_text(w, str_of(v->view.role == ROLE_SERVER ? "server" : "chat"));
}

static void write_token_regions(struct json_writer *w, const void *object,
                                const struct core_config *config)
{
    const struct token_answer *v = object;
    write_regions(w, v->view.regions, config);
}

#define TOKEN_ROWS                                                                                 \
    ROW(ID, "id", struct token_answer, view.id, NULL),                                             \
        ROW(TEXT, "name", struct token_answer, view.name, "what its maker calls it"),              \
        {.name = "role",                                                                           \
         .kind = SHAPE_WORD,                                                                       \
         .words = role_words,                                                                      \
         .write = write_role,                                                                      \
         .help = "who may come with it: game servers or chat servers"},                            \
        ROW(TEXT, "fleet", struct token_answer, view.fleet, "the fleet they are then in"),         \
        {.name = "regions",                                                                        \
         .kind = SHAPE_TEXTS,                                                                      \
         .write = write_token_regions,                                                             \
         .help = "where they may be"},                                                             \
        ROW(INT32, "generation", struct token_answer, view.generation,                             \
            "1, and one more with each rotation"),                                                 \
        ROW(INT32, "connections", struct token_answer, view.connections, "open now with it"),      \
        ROW(TIME, "created_at", struct token_answer, view.created_wall_ms, NULL),                  \
        ROW_OR_NULL(TIME, "expires_at", struct token_answer, view.expires_wall_ms, "null: never"), \
        ROW_OR_NULL(TIME, "revoked_at", struct token_answer, view.revoked_wall_ms,                 \
                    "null: it was not"),                                                           \
        ROW_OR_NULL(TIME, "previous_until", struct token_answer, view.previous_until_wall_ms,      \
                    "the token before the last rotation works until then")

const struct shape token_shape = {
    .name = "Token",
    .help = "An enrolment token: what game servers and chat servers are let in with.",
    .rows = (const struct shape_row[]){TOKEN_ROWS, {0}},
};

const struct shape made_token_shape = {
    .name = "MadeToken",
    .help = "An enrolment token as whoever made or rotated it sees it.",
    .rows =
        (const struct shape_row[]){
            TOKEN_ROWS,
            ROW(TEXT, "token", struct token_answer, text,
                "the token itself; it is kept as a hash and never shown again"),
            {0},
        },
};

static void write_scopes(struct json_writer *w, const void *object,
                         const struct core_config *config)
{
    const struct access_answer *v = object;
    (void)config;
    json_open_array(w);
    for (uint32_t bit = 1; bit <= ACCESS_ALL; bit <<= 1) {
        if (v->scopes & bit)
            json_text(w, str_of(access_scope_name(bit)));
    }
    json_close_array(w);
}

const struct shape access_token_shape = {
    .name = "AccessToken",
    .help = "An access token: what this API is used with.",
    .rows =
        (const struct shape_row[]){
            ROW(TEXT, "account", struct access_answer, account, NULL),
            {.name = "scopes", .kind = SHAPE_WORDS, .words = scope_words, .write = write_scopes},
            ROW(TIME, "issued_at", struct access_answer, issued_wall_ms, NULL),
            ROW(TIME, "expires_at", struct access_answer, expires_wall_ms, NULL),
            ROW(TEXT, "token", struct access_answer, text,
                "for the header: Authorization: Bearer …"),
            {0},
        },
};

/* ── audit ─────────────────────────────────────────────────────────────────────────────────── */

static const struct shape target_shape = {
    .name = "Target",
    .help = "What was changed.",
    .rows =
        (const struct shape_row[]){
            ROW_WORD("kind", target_words, struct view_audit, target_kind, NULL),
            ROW(ID, "id", struct view_audit, target, NULL),
            {0},
        },
};

static void write_target(struct json_writer *w, const void *object,
                         const struct core_config *config)
{
    const struct view_audit *v = object;
    if (v->target_kind[0])
        shape_write(w, &target_shape, v, config);
    else
        json_none(w);
}

const struct shape audit_shape = {
    .name = "AuditEntry",
    .help = "Something an operator did.",
    .rows =
        (const struct shape_row[]){
            ROW(ID, "id", struct view_audit, id, NULL),
            ROW(TIME, "at", struct view_audit, wall_ms, NULL),
            ROW(TEXT, "who", struct view_audit, who, "the account of the access token"),
            ROW(TEXT, "address", struct view_audit, address, "where the request came from"),
            ROW_WORD("action", action_words, struct view_audit, action, NULL),
            {.name = "target",
             .kind = SHAPE_OBJECT,
             .may_be_null = true,
             .shape = &target_shape,
             .write = write_target},
            ROW(TEXT, "detail", struct view_audit, detail, "what target does not show"),
            {0},
        },
};

/* ── status ────────────────────────────────────────────────────────────────────────────────── */

static const struct shape allocations_shape = {
    .name = "Allocations",
    .help = "How allocations went in the last 60 s.",
    .rows =
        (const struct shape_row[]){
            ROW(DOUBLE, "per_s", struct allocations_answer, per_s, "answered, well or not"),
            ROW(INT64, "done", struct allocations_answer, done, NULL),
            ROW(INT64, "failed", struct allocations_answer, failed, NULL),
            ROW_OR_NULL(DOUBLE, "p50_ms", struct allocations_answer, p50_ms,
                        "half were done within this; null when none was"),
            ROW_OR_NULL(DOUBLE, "p95_ms", struct allocations_answer, p95_ms, NULL),
            ROW_OR_NULL(DOUBLE, "p99_ms", struct allocations_answer, p99_ms, NULL),
            {0},
        },
};

static void write_refusal_code(struct json_writer *w, const void *object,
                               const struct core_config *config)
{
    const struct metrics_refusal *v = object;
    (void)config;
    json_text(w, str_of(err_code(v->err)));
}

static void write_refusal_message(struct json_writer *w, const void *object,
                                  const struct core_config *config)
{
    const struct metrics_refusal *v = object;
    (void)config;
    json_text(w, str_of(err_sentence(v->err)));
}

static void text_or_null(struct json_writer *w, const char *text)
{
    if (text[0])
        json_text(w, str_of(text));
    else
        json_none(w);
}

static void write_lobby(struct json_writer *w, const void *object, const struct core_config *config)
{
    const struct metrics_refusal *v = object;
    (void)config;
    if (v->lobby != 0)
        json_int(w, v->lobby);
    else
        json_none(w);
}

static void write_refusal_chat(struct json_writer *w, const void *object,
                               const struct core_config *config)
{
    (void)config;
    text_or_null(w, ((const struct metrics_refusal *)object)->chat);
}

static void write_refusal_region(struct json_writer *w, const void *object,
                                 const struct core_config *config)
{
    (void)config;
    text_or_null(w, ((const struct metrics_refusal *)object)->region);
}

static const struct shape recent_refusal_shape = {
    .name = "RecentRefusal",
    .help = "A request that was refused or a ticket that failed.",
    .rows =
        (const struct shape_row[]){
            ROW(TIME, "at", struct metrics_refusal, wall_ms, NULL),
            {.name = "code", .kind = SHAPE_TEXT, .write = write_refusal_code},
            {.name = "message", .kind = SHAPE_TEXT, .write = write_refusal_message},
            ROW_OR_NULL(ID, "ticket", struct metrics_refusal, ticket, NULL),
            {.name = "lobby", .kind = SHAPE_INT32, .may_be_null = true, .write = write_lobby},
            {.name = "chat_server",
             .kind = SHAPE_TEXT,
             .may_be_null = true,
             .write = write_refusal_chat},
            {.name = "region",
             .kind = SHAPE_TEXT,
             .may_be_null = true,
             .write = write_refusal_region},
            {0},
        },
};

static void write_status_regions(struct json_writer *w, const void *object,
                                 const struct core_config *config)
{
    const struct status_answer *v = object;
    json_open_array(w);
    for (size_t i = 0; i < v->n_regions; i++)
        shape_write(w, &region_shape, &v->regions[i], config);
    json_close_array(w);
}

static void write_refusals(struct json_writer *w, const void *object,
                           const struct core_config *config)
{
    const struct status_answer *v = object;
    json_open_array(w);
    for (size_t i = 0; i < v->n_refusals; i++)
        shape_write(w, &recent_refusal_shape, &v->refusals[i], config);
    json_close_array(w);
}

const struct shape status_shape = {
    .name = "Status",
    .help = "How Muster is.",
    .rows =
        (const struct shape_row[]){
            ROW(TEXT, "version", struct status_answer, version, NULL),
            ROW(TIME, "started_at", struct status_answer, started_wall_ms, NULL),
            ROW(INT64, "uptime_s", struct status_answer, uptime_s, NULL),
            ROW_WORD("store", store_words, struct status_answer, store,
                     "read_only: commits fail, so nothing can be changed"),
            ROW(TEXT, "config_digest", struct status_answer, config_digest,
                "says which configuration is in force"),
            ROW_OBJECT("servers", server_counts_shape, struct status_answer, group, NULL),
            ROW_OBJECT("slots", slots_shape, struct status_answer, group, NULL),
            ROW(INT32, "sessions", struct status_answer, counts.sessions_open, "open matches"),
            ROW(INT32, "tickets_open", struct status_answer, counts.tickets_open,
                "requests whose answer is still to come"),
            ROW(INT32, "tickets_kept", struct status_answer, counts.tickets_kept,
                "finished requests that can still be asked for"),
            ROW(INT32, "chat_servers", struct status_answer, counts.chat_servers, NULL),
            ROW_OBJECT("allocations", allocations_shape, struct status_answer, allocations, NULL),
            {.name = "regions",
             .kind = SHAPE_ITEMS,
             .shape = &region_shape,
             .write = write_status_regions},
            {.name = "refusals",
             .kind = SHAPE_ITEMS,
             .shape = &recent_refusal_shape,
             .write = write_refusals,
             .help = "the last 20, newest first"},
            {0},
        },
};

const struct shape health_shape = {
    .name = "Health",
    .help = "The process runs.",
    .rows =
        (const struct shape_row[]){
            ROW_WORD("status", health_words, struct health_answer, status, NULL),
            {0},
        },
};

const struct shape ports_shape = {
    .name = "Ports",
    .help = "Where Muster listens: address:port.",
    .rows =
        (const struct shape_row[]){
            ROW(TEXT, "http", struct ports_answer, http, NULL),
            ROW(TEXT, "server", struct ports_answer, server, "game servers"),
            ROW(TEXT, "manager", struct ports_answer, manager, "chat servers"),
            {0},
        },
};

const struct shape ready_shape = {
    .name = "Ready",
    .help = "Ports are open and changes can be stored.",
    .rows =
        (const struct shape_row[]){
            ROW_WORD("store", store_words, struct ready_answer, store, NULL),
            ROW(TEXT, "config_digest", struct ready_answer, config_digest, NULL),
            ROW_OBJECT("ports", ports_shape, struct ready_answer, ports, NULL),
            {0},
        },
};

const struct shape *const shapes[] = {&server_counts_shape,
                                      &slots_shape,
                                      &region_shape,
                                      &fleet_shape,
                                      &server_shape,
                                      &session_shape,
                                      &refusal_shape,
                                      &ticket_shape,
                                      &try_shape,
                                      &passed_over_shape,
                                      &why_shape,
                                      &token_shape,
                                      &made_token_shape,
                                      &access_token_shape,
                                      &target_shape,
                                      &audit_shape,
                                      &allocations_shape,
                                      &recent_refusal_shape,
                                      &status_shape,
                                      &health_shape,
                                      &ports_shape,
                                      &ready_shape,
                                      &placed_shape,
                                      &placed_multi_shape,
                                      &slot_shape,
                                      &location_shape,
                                      &open_rooms_shape,
                                      &open_room_shape,
                                      &play_regions_shape,
                                      &play_region_shape,
                                      &map_place_shape,
                                      &counts_shape,
                                      &player_shape,
                                      &player_seat_shape,
                                      &issued_ban_shape,
                                      &played_ban_shape,
                                      &nothing_shape,
                                      &refused_shape,
                                      NULL};
