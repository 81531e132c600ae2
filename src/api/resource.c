#include "api/resource.h"

#include "api/cluster.h"
#include "api/host.h"
#include "api/lookup.h"
#include "api/past.h"
#include "api/play.h"
#include "api/players.h"
#include "api/pubsub.h"
#include "api/resource_allocation.h"
#include "api/resource_lobby.h"
#include "api/resource_room.h"
#include "api/shape_rows.h"
#include "api/tally.h"
#include "base/err.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ── words ─────────────────────────────────────────────────────────────────────────────────── */

const char *const server_status_words[] = {"available", "full",   "draining", "offline", "starting",
                                           "running",   "ending", "gone",     NULL};
const char *const session_state_words[] = {"opening", "open",     "lost",   "cancelling",
                                           "ended",   "starting", "ending", NULL};
const char *const session_kind_words[] = {"match", "room", NULL};
const char *const ticket_state_words[] = {"open",  "done",   "failed", "cancelled",
                                          "ended", "queued", NULL};
static const char *const ticket_kind_words[] = {"match", "room", "allocation", NULL};
const char *const role_words[] = {"server", "chat", NULL};

static const char *const passed_words[] = {"offline", "away", "unlisted", "draining",
                                           "failing", "full", NULL};
static const char *const drainer_words[] = {"server", "operator", NULL};
const char *const provider_words[] = {"chat", "agent", "agones", NULL};
static const char *const end_words[] = {
    "match_ended", "server_lost",  "not_listed",    "too_long", "not_reported",
    "by_operator", "spawn_failed", "spawn_timeout", "exited",   "empty",
    "given_up",    "host_lost",    "hung",          NULL};
static const char *const verb_words[] = {"create", "join", "enter", NULL};
static const char *const outcome_words[] = {"pending", "acknowledged", "refused",  "timed_out",
                                            "dropped", "not_ready",    "given_up", NULL};
static const char *const target_words[] = {"server",     "session", "token",      "seat",
                                           "host",       "version", "deployment", "ban",
                                           "allocation", "lobby",   NULL};
static const char *const action_words[] = {
    "drain",     "undrain", "end",     "enrol",   "revoke", "rotate", "issue", "configure",
    "terminate", "kick",    "enable",  "disable", "deploy", "switch", "ban",   "update",
    "lift",      "stdin",   "dequeue", "abort",   "backup", NULL};
static const char *const store_words[] = {"writable", "read_only", NULL};
static const char *const ready_words[] = {"writable", "followed", NULL};
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

const struct shape fleet_shape = {
    .name = "Fleet",
    .help = "The interchangeable servers of one game.",
    .rows =
        (const struct shape_row[]){
            ROW(ID, "id", struct fleet_answer, view.id, NULL),
            ROW(TEXT, "name", struct fleet_answer, view.name, NULL),
            ROW(BOOL, "configured", struct fleet_answer, view.configured,
                "false: taken out of the configuration, so its servers drain"),
            ROW(BOOL, "ready_required", struct fleet_answer, view.ready_required,
                "a match counts as allocated only when its server has said READY"),
            ROW_WORD("provider", provider_words, struct fleet_answer, provider,
                     "where its servers come from; chat: they register over the server port; "
                     "agent: agents spawn them, one for each room"),
            ROW_OR_NULL(TEXT, "game", struct fleet_answer, game,
                        "what players name when they join; null for chat"),
            ROW_OR_NULL(TEXT, "server", struct fleet_answer, server,
                        "what players name when they join; null for chat"),
            ROW_OR_NULL(INT32, "max_players", struct fleet_answer, max_players,
                        "of a room; null for chat"),
            ROW_OBJECT("servers", server_counts_shape, struct fleet_answer, view.group,
                       "those that registered"),
            ROW_OBJECT("slots", slots_shape, struct fleet_answer, view.group, NULL),
            ROW(INT32, "sessions", struct fleet_answer, view.group.sessions_open, "open matches"),
            ROW(INT32, "rooms", struct fleet_answer, rooms, "that are not over"),
            {0},
        },
};

/* ── servers ───────────────────────────────────────────────────────────────────────────────── */

static void write_draining_by(struct json_writer *w, const void *object,
                              const struct core_config *config)
{
    const struct view_server *v = &((const struct server_answer *)object)->view;
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
    const struct view_server *v = &((const struct server_answer *)object)->view;
    (void)config;
    if (v->passed_over == PASSED_NOT)
        json_none(w);
    else
        json_text(w, str_of(passed_over_name(v->passed_over)));
}

static void write_ports(struct json_writer *w, const void *object, const struct core_config *config)
{
    const struct server_answer *v = object;
    (void)config;
    json_open_array(w);
    for (int i = 0; i < v->room.n_ports; i++)
        json_int(w, v->room.ports[i]);
    if (v->room.id == 0)
        json_int(w, v->view.port);
    json_close_array(w);
}

/* An agent's report; until it is there, nobody knows. */
static void write_exit(struct json_writer *w, const void *object, const struct core_config *config)
{
    const struct server_answer *v = object;
    if (strcmp(v->room.state, "ended") == 0)
        shape_write(w, &exit_shape, &v->room, config);
    else
        json_none(w);
}

static void write_pid(struct json_writer *w, const void *object, const struct core_config *config)
{
    const struct server_answer *v = object;
    (void)config;
    if (v->room.pid != 0)
        json_int(w, v->room.pid);
    else
        json_none(w);
}

const struct shape server_shape = {
    .name = "Server",
    .help = "One running game server process that players can reach.",
    .rows =
        (const struct shape_row[]){
            ROW(ID, "id", struct server_answer, view.id, NULL),
            ROW(TEXT, "fleet", struct server_answer, view.fleet, "the name of its fleet"),
            ROW(TEXT, "ip", struct server_answer, view.ip, "where players reach it"),
            ROW(INT32, "port", struct server_answer, view.port, NULL),
            ROW(TEXT, "region", struct server_answer, view.region_name, "the name of its region"),
            ROW_WORD("provider", provider_words, struct server_answer, provider,
                     "who started it: agent, or chat for one that registered by itself"),
            ROW_WORD("status", server_status_words, struct server_answer, status,
                     "the first four of those that registered; starting, running, ending, gone or "
                     "offline of those that agents spawned"),
            ROW(BOOL, "connected", struct server_answer, view.connected, "its connection is open"),
            {.name = "draining_by",
             .kind = SHAPE_WORDS,
             .words = drainer_words,
             .write = write_draining_by,
             .help = "who wants it drained; empty when nobody does"},
            ROW(INT32, "max_sessions", struct server_answer, view.max_sessions,
                "matches it can hold at the same time"),
            ROW(INT32, "load", struct server_answer, view.load, "slots it has no more"),
            ROW(INT32, "sessions", struct server_answer, view.sessions,
                "matches we hold on it: opening, open and lost"),
            ROW(INT32, "open", struct server_answer, view.open, "of which are open"),
            ROW(INT32, "reported", struct server_answer, view.reported,
                "matches by its last heartbeat"),
            ROW(INT32, "unknown_matches", struct server_answer, view.unknown_matches,
                "matches it listed that nobody here knows"),
            ROW(FLOAT, "cpu_percent", struct server_answer, view.cpu_percent,
                "by its last heartbeat"),
            ROW(FLOAT, "memory_percent", struct server_answer, view.memory_percent,
                "by its last heartbeat"),
            ROW(DOUBLE, "score", struct server_answer, view.score,
                "the highest of the candidates is chosen"),
            {.name = "passed_over",
             .kind = SHAPE_WORD,
             .may_be_null = true,
             .words = passed_words,
             .write = write_passed_over,
             .help = "why it is no candidate; null when it is one"},
            ROW(INT64, "backoff_left_ms", struct server_answer, view.backoff_left_ms,
                "for so long it is passed over because it failed lately"),
            ROW_OR_NULL(INT64, "round_trip_us", struct server_answer, view.round_trip_us,
                        "of the last PING; null when none was answered yet"),
            ROW_OR_NULL(TIME, "heard_at", struct server_answer, view.heard_wall_ms,
                        "its last heartbeat or PONG; null: not since Muster started"),
            ROW(TIME, "registered_at", struct server_answer, view.registered_wall_ms, NULL),
            ROW_OR_NULL(TIME, "connected_at", struct server_answer, view.connected_wall_ms,
                        "since when without a break"),
            ROW_OR_NULL(ID, "host", struct server_answer, room.host,
                        "where it was spawned; this and the rest: null for one that registered"),
            ROW_OR_NULL(TEXT, "host_name", struct server_answer, room.host_name, NULL),
            ROW_OR_NULL(ID, "room", struct server_answer, room.id, NULL),
            ROW_WRITTEN_OR_NULL(INT32, "pid", write_pid, "null until it is known"),
            ROW_WRITTEN(INTS, "ports", write_ports, "where players reach it"),
            {.name = "exit",
             .kind = SHAPE_OBJECT,
             .may_be_null = true,
             .shape = &exit_shape,
             .write = write_exit,
             .help = "how it ended; null until then"},
            {0},
        },
};

/* ── sessions ──────────────────────────────────────────────────────────────────────────────── */

const struct shape session_shape = {
    .name = "Session",
    .help = "What players share on a server: a match, or a room.",
    .rows =
        (const struct shape_row[]){
            ROW(ID, "id", struct session_answer, view.id, NULL),
            ROW(ID, "ticket", struct session_answer, view.ticket, "the request it was opened for"),
            ROW(ID, "server", struct session_answer, view.server, NULL),
            ROW(TEXT, "fleet", struct session_answer, view.fleet, NULL),
            ROW_WORD("kind", session_kind_words, struct session_answer, kind, NULL),
            ROW_OR_NULL(TEXT, "chat_server", struct session_answer, view.chat_server,
                        "who asked for a match"),
            ROW_OR_NULL(INT32, "lobby", struct session_answer, view.lobby,
                        "the chat server's number for a match"),
            ROW_OR_NULL(TEXT, "version", struct session_answer, version, "of a room's game"),
            ROW_OR_NULL(ID, "host", struct session_answer, host, "of a room's server"),
            ROW_WORD("state", session_state_words, struct session_answer, view.state, NULL),
            ROW(BOOL, "ready", struct session_answer, view.ready, "its server has said so"),
            ROW_OR_NULL(INT8, "game_type", struct session_answer, view.game_type, "of a match"),
            ROW_OR_NULL(INT8, "game_mode", struct session_answer, view.game_mode, "of a match"),
            ROW(INT32, "player_count", struct session_answer, players, "players it is for"),
            ROW(INT32, "seated", struct session_answer, view.seated, "players in it"),
            ROW(TIME, "created_at", struct session_answer, view.created_wall_ms, NULL),
            ROW_OR_NULL(TIME, "opened_at", struct session_answer, view.opened_wall_ms,
                        "when its server took it"),
            ROW_OR_NULL(TIME, "deadline_at", struct session_answer, view.deadline_wall_ms,
                        "when its state ends by itself"),
            {.name = "end_reason",
             .kind = SHAPE_WORD,
             .may_be_null = true,
             .offset = PLACE(TEXT, struct session_answer, view.end_reason),
             .words = end_words,
             .help = "null while it lasts"},
            {0},
        },
};

/* ── tickets ───────────────────────────────────────────────────────────────────────────────── */

static const struct shape refusal_shape = {
    .name = "Refusal",
    .help = "Why a request failed.",
    .rows =
        (const struct shape_row[]){
            {.name = "code", .kind = SHAPE_TEXT, .help = "a word for machines"},
            {.name = "message", .kind = SHAPE_TEXT, .help = "a sentence for people"},
            {0},
        },
};

static void write_error(struct json_writer *w, const void *object, const struct core_config *config)
{
    const struct ticket_answer *v = object;
    int err = v->view.err;
    (void)config;
    if (err == 0) {
        json_none(w);
        return;
    }
    json_open_object(w);
    json_key_text(w, "code", str_of(err_code(err)));
    json_key_text(w, "message", v->why.len > 0 ? v->why : str_of(err_sentence(err)));
    json_close_object(w);
}

static void write_ticket_regions(struct json_writer *w, const void *object,
                                 const struct core_config *config)
{
    const struct ticket_answer *v = object;
    write_regions(w, v->view.regions, config);
}

const struct shape ticket_shape = {
    .name = "Ticket",
    .help = "One request to be placed, with its answer.",
    .rows =
        (const struct shape_row[]){
            ROW(ID, "id", struct ticket_answer, view.id, NULL),
            ROW(TEXT, "fleet", struct ticket_answer, view.fleet, NULL),
            ROW_WORD("kind", ticket_kind_words, struct ticket_answer, kind, "what it is for"),
            ROW_WORD_OR_NULL("verb", verb_words, struct ticket_answer, verb,
                             "what a player asked for; null for a match"),
            ROW_OR_NULL(TEXT, "version", struct ticket_answer, version, "null for a match"),
            ROW_OR_NULL(TEXT, "account", struct ticket_answer, account,
                        "the player who asks; null for a match"),
            ROW_OR_NULL(TEXT, "chat_server", struct ticket_answer, view.chat_server,
                        "who asks for a match"),
            ROW_OR_NULL(INT32, "lobby", struct ticket_answer, view.lobby,
                        "the chat server's number for a match"),
            {.name = "regions",
             .kind = SHAPE_TEXTS,
             .write = write_ticket_regions,
             .help = "where it may be placed"},
            ROW_WORD("state", ticket_state_words, struct ticket_answer, view.state,
                     "open: its answer is still to come; queued: an allocation in line; ended: its "
                     "match is over"),
            {.name = "error",
             .kind = SHAPE_OBJECT,
             .may_be_null = true,
             .shape = &refusal_shape,
             .write = write_error,
             .help = "why it failed or was cancelled"},
            ROW_OR_NULL(ID, "session", struct ticket_answer, view.session,
                        "the match or room it was given"),
            ROW_OR_NULL(ID, "server", struct ticket_answer, view.server, "… on that server"),
            ROW_OR_NULL(INT8, "game_type", struct ticket_answer, view.game_type, "of a match"),
            ROW_OR_NULL(INT8, "game_mode", struct ticket_answer, view.game_mode, "of a match"),
            ROW(INT32, "player_count", struct ticket_answer, players, NULL),
            ROW_OR_NULL(INT32, "average_rating", struct ticket_answer, view.average_rating,
                        "of a match"),
            ROW(TIME, "opened_at", struct ticket_answer, view.opened_wall_ms, NULL),
            ROW_OR_NULL(TIME, "answered_at", struct ticket_answer, view.answered_wall_ms, NULL),
            ROW_OR_NULL(TIME, "deadline_at", struct ticket_answer, view.deadline_wall_ms,
                        "open: when it fails; otherwise: when it is forgotten"),
            ROW(INT32, "tries", struct ticket_answer, view.n_tries,
                "servers, or hosts for a room, that were asked"),
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
            ROW(INT32, "offline", struct ticket_answer, view.passed[PASSED_OFFLINE], NULL),
            ROW(INT32, "away", struct ticket_answer, view.passed[PASSED_AWAY],
                "not connected, not yet offline"),
            ROW(INT32, "unlisted", struct ticket_answer, view.passed[PASSED_UNLISTED],
                "came back; the list of their matches is awaited"),
            ROW(INT32, "draining", struct ticket_answer, view.passed[PASSED_DRAINING], NULL),
            ROW(INT32, "failing", struct ticket_answer, view.passed[PASSED_FAILING],
                "refused, timed out or dropped lately"),
            ROW(INT32, "full", struct ticket_answer, view.passed[PASSED_FULL], NULL),
            {0},
        },
};

static void write_tries(struct json_writer *w, const void *object, const struct core_config *config)
{
    const struct why_answer *v = object;
    json_open_array(w);
    for (int i = 0; v->ticket.room.id == 0 && i < v->ticket.view.n_tries; i++)
        shape_write(w, &try_shape, &v->ticket.view.tries[i], config);
    json_close_array(w);
}

static void write_host_tries(struct json_writer *w, const void *object,
                             const struct core_config *config)
{
    const struct why_answer *v = object;
    json_open_array(w);
    for (int i = 0; i < v->ticket.room.n_tries; i++)
        shape_write(w, &host_try_shape, &v->ticket.room.tries[i], config);
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
             .help = "the servers that were asked for a match, in order"},
            ROW_ITEMS("hosts", host_try_shape, write_host_tries,
                      "the hosts that were asked for a room, in order"),
            ROW_OBJECT("passed_over", passed_over_shape, struct why_answer, ticket,
                       "the other servers, at the last choice of one for a match"),
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
    for (size_t i = 0; i < v->n_scopes; i++)
        json_text(w, v->scopes[i]);
    json_close_array(w);
}

const struct shape access_token_shape = {
    .name = "AccessToken",
    .help = "An access token: what this API is used with.",
    .rows =
        (const struct shape_row[]){
            ROW(TEXT, "account", struct access_answer, account, NULL),
            {.name = "scopes",
             .kind = SHAPE_TEXTS,
             .write = write_scopes,
             .help = "what it allows, here and elsewhere"},
            ROW(TIME, "issued_at", struct access_answer, issued_wall_ms, NULL),
            ROW(TIME, "expires_at", struct access_answer, expires_wall_ms, NULL),
            ROW(TEXT, "token", struct access_answer, text,
                "for the header: Authorization: Bearer …"),
            {0},
        },
};

static void write_own_scopes(struct json_writer *w, const void *object,
                             const struct core_config *config)
{
    const struct me_answer *v = object;
    (void)config;
    json_open_array(w);
    for (uint32_t bit = 1; bit <= ACCESS_ALL; bit <<= 1) {
        if (v->who->scopes & bit)
            json_text(w, str_of(access_scope_name(bit)));
    }
    json_close_array(w);
}

const struct shape me_shape = {
    .name = "Me",
    .help = "Whose access token it is, and what it allows.",
    .rows =
        (const struct shape_row[]){
            ROW(TEXT, "account", struct me_answer, account, NULL),
            ROW_WRITTEN(TEXTS, "scopes", write_own_scopes,
                        "those that mean something here; muster_admin brings muster_read"),
            ROW(TIME, "expires_at", struct me_answer, expires_wall_ms,
                "from then on it is not valid"),
            ROW(TEXT, "gamespace", struct me_answer, gamespace, "the one that is configured here"),
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

static const struct shape host_counts_shape = {
    .name = "HostCounts",
    .help = "Hosts by the first reason why they get nothing new.",
    .rows =
        (const struct shape_row[]){
            ROW(INT32, "healthy", struct hosts_answer, count[HOST_PASSED_NOT], "get what is new"),
            ROW(INT32, "silent", struct hosts_answer, count[HOST_PASSED_SILENT],
                "have not been heard of for too long"),
            ROW(INT32, "leaving", struct hosts_answer, count[HOST_PASSED_LEAVING],
                "are being stopped"),
            ROW(INT32, "disabled", struct hosts_answer, count[HOST_PASSED_DISABLED],
                "by an operator"),
            ROW(INT32, "failing", struct hosts_answer, count[HOST_PASSED_FAILING],
                "a spawn failed there lately"),
            ROW(INT32, "overloaded", struct hosts_answer, count[HOST_PASSED_OVERLOADED],
                "have no memory or slot left"),
            {0},
        },
};

static const struct shape room_counts_shape = {
    .name = "RoomCounts",
    .help = "Rooms that are not over, and the seats in them.",
    .rows =
        (const struct shape_row[]){
            ROW(INT32, "starting", struct rooms_answer, starting, NULL),
            ROW(INT32, "open", struct rooms_answer, open, NULL),
            ROW(INT32, "ending", struct rooms_answer, ending, NULL),
            ROW(INT32, "reserved", struct rooms_answer, reserved, "seats"),
            ROW(INT32, "taken", struct rooms_answer, taken, "seats"),
            {0},
        },
};

static const struct shape queue_counts_shape = {
    .name = "QueueCounts",
    .help = "Those who stand in line, of rooms and of fleets.",
    .rows =
        (const struct shape_row[]){
            ROW(INT32, "entries", struct queues_answer, entries, "allocations that wait"),
            ROW(INT32, "players", struct queues_answer, players, "players who wait with them"),
            ROW(INT64, "oldest_ms", struct queues_answer, oldest_ms, "how long the oldest waits"),
            {0},
        },
};

static const struct shape lobby_counts_shape = {
    .name = "LobbyCounts",
    .help = "Lobbies that are not over, and what came of those that were asked for.",
    .rows =
        (const struct shape_row[]){
            ROW(INT32, "loading", struct lobbies_answer, loading, NULL),
            ROW(INT32, "started", struct lobbies_answer, started, "whose match goes on"),
            ROW(INT64, "ever_started", struct lobbies_answer, ever_started,
                "since this process runs"),
            ROW(INT64, "ever_aborted", struct lobbies_answer, ever_aborted,
                "since this process runs"),
            ROW(INT32, "clients", struct lobbies_answer, clients, "players who are connected"),
            {0},
        },
};

static void write_lag(struct json_writer *w, const void *object, const struct core_config *config)
{
    const struct broker_answer *v = object;
    (void)config;
    if (v->lag < 0)
        json_none(w);
    else
        json_int(w, v->lag);
}

static const struct shape broker_shape = {
    .name = "Broker",
    .help = "A broker that requests come through.",
    .rows =
        (const struct shape_row[]){
            ROW(TEXT, "name", struct broker_answer, name, "nats or pubsub"),
            ROW(BOOL, "connected", struct broker_answer, connected, NULL),
            ROW_WRITTEN_OR_NULL(INT64, "lag", write_lag,
                                "requests that it still has for us; null: it does not say"),
            ROW(INT64, "unsent", struct broker_answer, unsent, "results that wait for it"),
            {0},
        },
};

static const struct shape allocations_shape = {
    .name = "Allocations",
    .help = "How allocations of matches and of players' places went in the last 60 s.",
    .rows =
        (const struct shape_row[]){
            ROW(DOUBLE, "per_s", struct allocations_answer, per_s, "answered, well or not"),
            ROW(INT64, "done", struct allocations_answer, done, NULL),
            ROW(INT64, "failed", struct allocations_answer, failed, NULL),
            ROW_OR_NULL(DOUBLE, "p50_ms", struct allocations_answer, p50_ms,
                        "half were done within this, those left out who had to wait in line; null "
                        "when none was"),
            ROW_OR_NULL(DOUBLE, "p95_ms", struct allocations_answer, p95_ms, NULL),
            ROW_OR_NULL(DOUBLE, "p99_ms", struct allocations_answer, p99_ms, NULL),
            {0},
        },
};

static const struct shape joins_shape = {
    .name = "Joins",
    .help = "What players heard in the last 60 s who wanted to create, find or join a room.",
    .rows =
        (const struct shape_row[]){
            ROW(INT64, "done", struct joins_answer, done, "have a seat"),
            ROW(INT64, "failed", struct joins_answer, failed, "were refused, for any reason"),
            {0},
        },
};

static void write_disk_free(struct json_writer *w, const void *object,
                            const struct core_config *config)
{
    const struct storage_answer *v = object;
    (void)config;
    if (v->figures.disk_bytes > 0)
        json_int(w, v->figures.disk_free_bytes);
    else
        json_none(w);
}

static const struct shape storage_shape = {
    .name = "Storage",
    .help = "How the store keeps up.",
    .rows =
        (const struct shape_row[]){
            ROW(INT64, "commits", struct storage_answer, commits,
                "batches made durable in the last 60 s"),
            ROW_OR_NULL(DOUBLE, "commit_p50_ms", struct storage_answer, commit_p50_ms,
                        "half of them took at most this; null when there was none"),
            ROW_OR_NULL(DOUBLE, "commit_p99_ms", struct storage_answer, commit_p99_ms, NULL),
            ROW(INT32, "batches_waiting", struct storage_answer, batches_waiting,
                "the one being committed, and the one that waits for it"),
            ROW(INT64, "backlog_bytes", struct storage_answer, backlog_bytes,
                "memory of the one that waits"),
            ROW(INT64, "fold_lag", struct storage_answer, fold_lag,
                "durable batches that are not yet in the readable tables"),
            ROW(INT64, "fold_lag_ms", struct storage_answer, figures.fold_lag_ms,
                "age of the oldest of them"),
            ROW(INT64, "journal_bytes", struct storage_answer, figures.journal_bytes,
                "of changes in the journal"),
            ROW(INT64, "state_bytes", struct storage_answer, figures.state_bytes,
                "of the files with the readable tables"),
            ROW_OR_NULL(INT64, "disk_bytes", struct storage_answer, figures.disk_bytes,
                        "of the disk that the data folder is on; null when that is not known"),
            ROW_WRITTEN_OR_NULL(INT64, "disk_free_bytes", write_disk_free, "what of it is left"),
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

static void write_brokers(struct json_writer *w, const void *object,
                          const struct core_config *config)
{
    const struct status_answer *v = object;
    json_open_array(w);
    for (size_t i = 0; i < v->n_brokers; i++)
        shape_write(w, &broker_shape, &v->brokers[i], config);
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
            ROW_OBJECT("health", checkup_shape, struct status_answer, health, NULL),
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
            ROW_OBJECT("hosts", host_counts_shape, struct status_answer, hosts, NULL),
            ROW_OBJECT("rooms", room_counts_shape, struct status_answer, rooms, NULL),
            ROW_OBJECT("queues", queue_counts_shape, struct status_answer, queues, NULL),
            ROW_OBJECT("lobbies", lobby_counts_shape, struct status_answer, lobbies, NULL),
            ROW_ITEMS("brokers", broker_shape, write_brokers, "those that are configured"),
            ROW(INT32, "results_owed", struct status_answer, counts.allocations_owed,
                "results that no broker has confirmed yet"),
            ROW_OBJECT("allocations", allocations_shape, struct status_answer, allocations, NULL),
            ROW_OBJECT("joins", joins_shape, struct status_answer, joins, NULL),
            ROW_OBJECT("storage", storage_shape, struct status_answer, storage, NULL),
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
            ROW(TEXT, "client", struct ports_answer, client, "players"),
            {0},
        },
};

const struct shape ready_shape = {
    .name = "Ready",
    .help = "Ports are open and changes can be stored, or this node could lead at once.",
    .rows =
        (const struct shape_row[]){
            ROW_WORD("store", ready_words, struct ready_answer, store,
                     "followed: this node is a standby, and could lead at once"),
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
                                      &me_shape,
                                      &target_shape,
                                      &audit_shape,
                                      &allocations_shape,
                                      &joins_shape,
                                      &storage_shape,
                                      &recent_refusal_shape,
                                      &status_shape,
                                      &finding_shape,
                                      &checkup_shape,
                                      &trends_shape,
                                      &trend_point_shape,
                                      &health_shape,
                                      &ports_shape,
                                      &ready_shape,
                                      &leader_shape,
                                      &cluster_shape,
                                      &cell_leader_shape,
                                      &node_shape,
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
                                      &exit_shape,
                                      &host_try_shape,
                                      &host_shape,
                                      &host_whole_shape,
                                      &removal_shape,
                                      &room_shape,
                                      &room_seat_shape,
                                      &room_whole_shape,
                                      &version_shape,
                                      &deployment_shape,
                                      &ban_shape,
                                      &place_shape,
                                      &known_player_shape,
                                      &journey_shape,
                                      &journey_entry_shape,
                                      &refusals_shape,
                                      &refused_reason_shape,
                                      &refused_repeated_shape,
                                      &change_shape,
                                      &kicked_shape,
                                      &written_shape,
                                      &host_server_shape,
                                      &host_beat_shape,
                                      &host_beat_answer_shape,
                                      &agent_event_shape,
                                      &agent_events_shape,
                                      &pubsub_message_shape,
                                      &pubsub_push_shape,
                                      &agent_refusal_shape,
                                      &agent_answer_shape,
                                      &agent_answers_shape,
                                      &host_counts_shape,
                                      &room_counts_shape,
                                      &queue_counts_shape,
                                      &broker_shape,
                                      &allocation_request_shape,
                                      &allocation_result_shape,
                                      &allocation_member_shape,
                                      &allocation_error_shape,
                                      &allocation_shape,
                                      &allocation_whole_shape,
                                      &allocation_why_shape,
                                      &queue_shape,
                                      &party_shape,
                                      &route_shape,
                                      &lobby_seat_shape,
                                      &lobby_player_shape,
                                      &lobby_group_shape,
                                      &lobby_shape,
                                      &lobby_whole_shape,
                                      &lobby_counts_shape,
                                      NULL};
