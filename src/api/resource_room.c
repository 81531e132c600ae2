#include "api/resource_room.h"

#include "api/shape_rows.h"
#include "base/err.h"

#include <stdio.h>
#include <string.h>

/* ── words ─────────────────────────────────────────────────────────────────────────────────── */

const char *const room_state_words[] = {"starting", "open", "ending", "ended", NULL};
const char *const room_seat_state_words[] = {"reserved", "taken", NULL};
const char *const host_passed_words[] = {"silent",  "leaving",    "disabled",
                                         "failing", "overloaded", NULL};

const char *const host_status_words[] = {"healthy", "silent",     "leaving", "disabled",
                                         "failing", "overloaded", NULL};
const char *const ban_state_words[] = {"held", "expired", NULL};

static const char *const room_end_words[] = {
    "too_long", "by_operator", "spawn_failed", "spawn_timeout", "exited",
    "empty",    "given_up",    "host_lost",    "hung",          NULL};
static const char *const outcome_words[] = {"pending",   "opened",   "failed",
                                            "timed_out", "given_up", NULL};

/* ── hosts ─────────────────────────────────────────────────────────────────────────────────── */

static void write_passed_over(struct json_writer *w, const void *object,
                              const struct core_config *config)
{
    const struct view_host *v = object;
    (void)config;
    if (v->passed_over == HOST_PASSED_NOT)
        json_none(w);
    else
        json_text(w, str_of(host_passed_over_name(v->passed_over)));
}

static void write_enabled(struct json_writer *w, const void *object,
                          const struct core_config *config)
{
    (void)config;
    json_bool(w, !((const struct view_host *)object)->disabled);
}

/* at_: where the view stands in the struct; it must be its head for those that are written. */
#define HOST_ROWS(struct_, at_)                                                                    \
    ROW(ID, "id", struct_, at_ id, NULL),                                                          \
        ROW(TEXT, "name", struct_, at_ name, "what its agent calls it"),                           \
        ROW(TEXT, "address", struct_, at_ address, "where players reach its servers"),             \
        ROW(TEXT, "url", struct_, at_ url, "where Muster reaches its agent"),                      \
        ROW(TEXT, "region", struct_, at_ region_name, "the name of its region"),                   \
        ROW(INT32, "slots", struct_, at_ slots,                                                    \
            "servers it will run at once; 0: as many as it has ports for"),                        \
        ROW_WRITTEN(BOOL, "enabled", write_enabled, "false: an operator disabled it"),             \
        {.name = "passed_over",                                                                    \
         .kind = SHAPE_WORD,                                                                       \
         .may_be_null = true,                                                                      \
         .words = host_passed_words,                                                               \
         .write = write_passed_over,                                                               \
         .help = "why it gets nothing new; null when it does"},                                    \
        ROW(FLOAT, "cpu_percent", struct_, at_ cpu_percent, "by its last heartbeat"),              \
        ROW(FLOAT, "memory_percent", struct_, at_ memory_percent, "by its last heartbeat"),        \
        ROW(FLOAT, "load_percent", struct_, at_ load_percent,                                      \
            "the larger of both, with a guess at what was placed there since, up to 100; the "     \
            "host with the lowest is chosen"),                                                     \
        ROW(INT32, "rooms", struct_, at_ rooms, "starting, open and ending there"),                \
        ROW(INT32, "servers", struct_, at_ servers, "that run by its last heartbeat"),             \
        ROW(INT32, "strangers", struct_, at_ strangers, "of which are not ours"),                  \
        ROW(INT32, "deployments", struct_, at_ deployments, "it has unpacked"),                    \
        ROW(INT64, "backoff_left_ms", struct_, at_ backoff_left_ms,                                \
            "for so long nothing is started there, because its agent failed to start something"),  \
        ROW_OR_NULL(TEXT, "failure", struct_, at_ failed_why,                                      \
                    "how it failed; null: it is not passed over for that"),                        \
        ROW_OR_NULL(TIME, "heard_at", struct_, at_ heard_wall_ms,                                  \
                    "its last heartbeat; null: not since Muster started"),                         \
        ROW(TIME, "registered_at", struct_, at_ registered_wall_ms, NULL)

const struct shape host_shape = {
    .name = "Host",
    .help = "A machine that runs `muster agent`, which spawns servers.",
    .rows = (const struct shape_row[]){HOST_ROWS(struct view_host, ), {0}},
};

static void write_sentence(struct json_writer *w, const void *object,
                           const struct core_config *config)
{
    (void)config;
    json_text(w, str_of(((const struct view_removal *)object)->sentence));
}

const struct shape removal_shape = {
    .name = "Removal",
    .help = "May the host be taken away now?",
    .rows =
        (const struct shape_row[]){
            ROW(BOOL, "now", struct view_removal, now, NULL),
            ROW_WRITTEN(TEXT, "sentence", write_sentence, "yes or no, and why"),
            {0},
        },
};

_Static_assert(offsetof(struct host_answer, view) == 0, "what is written reads a view");

const struct shape host_whole_shape = {
    .name = "HostWithRemoval",
    .help = "A host, and whether it may be taken away.",
    .rows =
        (const struct shape_row[]){
            HOST_ROWS(struct host_answer, view.),
            ROW_OBJECT("removal", removal_shape, struct host_answer, removal, NULL),
            {0},
        },
};

const struct shape host_try_shape = {
    .name = "HostTry",
    .help = "One host that was asked to spawn a server, and how it looked then.",
    .rows =
        (const struct shape_row[]){
            ROW(ID, "host", struct view_host_try, host, NULL),
            ROW_OR_NULL(ID, "room", struct view_host_try, room, NULL),
            ROW_WORD("outcome", outcome_words, struct view_host_try, outcome, NULL),
            ROW(FLOAT, "load_percent", struct view_host_try, load_percent,
                "the lowest was asked first"),
            {0},
        },
};

/* ── rooms ─────────────────────────────────────────────────────────────────────────────────── */

static void write_ports(struct json_writer *w, const void *object, const struct core_config *config)
{
    const struct view_room *v = object;
    (void)config;
    json_open_array(w);
    for (int i = 0; i < v->n_ports; i++)
        json_int(w, v->ports[i]);
    json_close_array(w);
}

static void write_tail(struct json_writer *w, const void *object, const struct core_config *config)
{
    (void)config;
    json_text(w, ((const struct view_room *)object)->tail);
}

static void write_never_ran(struct json_writer *w, const void *object,
                            const struct core_config *config)
{
    const struct view_room *v = object;
    (void)config;
    if (v->never_ran.len > 0)
        json_text(w, v->never_ran);
    else
        json_none(w);
}

static void write_exit_code(struct json_writer *w, const void *object,
                            const struct core_config *config)
{
    const struct view_room *v = object;
    (void)config;
    if (v->exit_signal != 0 || !v->exit_seen)
        json_none(w);
    else
        json_int(w, v->exit_code);
}

static void write_exit_signal(struct json_writer *w, const void *object,
                              const struct core_config *config)
{
    const struct view_room *v = object;
    (void)config;
    if (v->exit_signal == 0)
        json_none(w);
    else
        json_int(w, v->exit_signal);
}

const struct shape exit_shape = {
    .name = "Exit",
    .help = "How a spawned server ended.",
    .rows =
        (const struct shape_row[]){
            ROW_WRITTEN_OR_NULL(INT32, "code", write_exit_code,
                                "null: a signal ended it, nobody saw its end, or it never ran"),
            ROW_WRITTEN_OR_NULL(INT32, "signal", write_exit_signal,
                                "null: none ended it, nobody saw its end, or it never ran"),
            ROW_WRITTEN_OR_NULL(TEXT, "why", write_never_ran,
                                "why its process was never started; null: it was"),
            ROW(INT64, "peak_memory", struct view_room, peak_memory, "bytes"),
            ROW(INT64, "run_ms", struct view_room, run_ms, "how long it ran"),
            ROW(INT64, "dropped_bytes", struct view_room, dropped_bytes,
                "of its output, which are not in its log"),
            ROW_WRITTEN(TEXT, "tail", write_tail, "the last lines of its output"),
            {0},
        },
};

/* What is known of its end before the agent has reported it is not worth showing. */
static void write_exit(struct json_writer *w, const void *object, const struct core_config *config)
{
    const struct view_room *v = object;
    if (strcmp(v->state, "ended") == 0)
        shape_write(w, &exit_shape, v, config);
    else
        json_none(w);
}

#define ROOM_ROWS(struct_, at_)                                                                    \
    ROW(ID, "id", struct_, at_ id, "also that of its session"),                                    \
        ROW_OR_NULL(ID, "ticket", struct_, at_ ticket, "the request it was made for"),             \
        ROW(ID, "server", struct_, at_ server, "the server that was spawned for it"),              \
        ROW(TEXT, "fleet", struct_, at_ fleet, NULL),                                              \
        ROW(TEXT, "version", struct_, at_ version, "of the game"),                                 \
        ROW_OR_NULL(ID, "deployment", struct_, at_ deployment,                                     \
                    "null: its binary was on the host"),                                           \
        ROW_OR_NULL(ID, "host", struct_, at_ host, NULL),                                          \
        ROW_OR_NULL(TEXT, "host_name", struct_, at_ host_name, NULL),                              \
        ROW_OR_NULL(TEXT, "address", struct_, at_ address, "where players reach it"),              \
        ROW(BOOL, "host_away", struct_, at_ host_away,                                             \
            "its host is silent: nobody knows how it is, and reservations stand still"),           \
        ROW(TEXT, "region", struct_, at_ region_name, NULL),                                       \
        ROW_WORD("state", room_state_words, struct_, at_ state, NULL),                             \
        ROW_WORD_OR_NULL("end_reason", room_end_words, struct_, at_ end_reason,                    \
                         "null while it lasts"),                                                   \
        ROW(INT32, "max_players", struct_, at_ max_players, NULL),                                 \
        ROW(INT32, "reserved", struct_, at_ reserved, "seats of players who are on their way"),    \
        ROW(INT32, "taken", struct_, at_ taken, "seats of players who are there")

#define ROOM_TIMES(struct_, at_)                                                                   \
    ROW(TIME, "created_at", struct_, at_ created_wall_ms, NULL),                                   \
        ROW_OR_NULL(TIME, "opened_at", struct_, at_ opened_wall_ms, "when its server was ready"),  \
        ROW_OR_NULL(TIME, "deadline_at", struct_, at_ deadline_wall_ms,                            \
                    "when its state ends by itself")

const struct shape room_shape = {
    .name = "Room",
    .help = "A session on a server that was spawned for it.",
    .rows =
        (const struct shape_row[]){
            ROOM_ROWS(struct view_room, ),
            ROW_WRITTEN(INTS, "ports", write_ports, "where players reach it"),
            ROW(JSON, "settings", struct view_room, settings, NULL),
            ROOM_TIMES(struct view_room, ),
            {0},
        },
};

static void write_whole_ports(struct json_writer *w, const void *object,
                              const struct core_config *config)
{
    write_ports(w, &((const struct room_answer *)object)->room, config);
}

static void write_whole_exit(struct json_writer *w, const void *object,
                             const struct core_config *config)
{
    write_exit(w, &((const struct room_answer *)object)->room, config);
}

static void write_seats(struct json_writer *w, const void *object, const struct core_config *config)
{
    const struct room_answer *v = object;
    json_open_array(w);
    for (size_t i = 0; i < v->n_seats; i++)
        shape_write(w, &room_seat_shape, &v->seats[i], config);
    json_close_array(w);
}

const struct shape room_whole_shape = {
    .name = "RoomWithSeats",
    .help = "A room, who sits in it and how its server ended.",
    .rows =
        (const struct shape_row[]){
            ROOM_ROWS(struct room_answer, room.),
            ROW_WRITTEN(INTS, "ports", write_whole_ports, "where players reach it"),
            ROW(JSON, "settings", struct room_answer, room.settings, NULL),
            ROOM_TIMES(struct room_answer, room.),
            {.name = "exit",
             .kind = SHAPE_OBJECT,
             .may_be_null = true,
             .shape = &exit_shape,
             .write = write_whole_exit,
             .help = "null until it has ended"},
            ROW_ITEMS("seats", room_seat_shape, write_seats, NULL),
            {0},
        },
};

const struct shape room_seat_shape = {
    .name = "RoomSeat",
    .help = "One player's place in a room.",
    .rows =
        (const struct shape_row[]){
            ROW(ID, "id", struct view_room_seat, id, NULL),
            ROW(ID, "room", struct view_room_seat, room, NULL),
            ROW_OR_NULL(ID, "ticket", struct view_room_seat, ticket, NULL),
            ROW(TEXT, "fleet", struct view_room_seat, fleet, NULL),
            ROW(TEXT, "account", struct view_room_seat, account, NULL),
            ROW_OR_NULL(TEXT, "address", struct view_room_seat, address, "where he came from"),
            ROW_WORD("state", room_seat_state_words, struct view_room_seat, state, NULL),
            ROW_OR_NULL(ID, "multi", struct view_room_seat, multi,
                        "the same for players who were placed together"),
            ROW(JSON, "info", struct view_room_seat, info, "what he brought for the game server"),
            ROW(TIME, "reserved_at", struct view_room_seat, reserved_wall_ms, NULL),
            ROW_OR_NULL(TIME, "joined_at", struct view_room_seat, joined_wall_ms, NULL),
            ROW_OR_NULL(TIME, "deadline_at", struct view_room_seat, deadline_wall_ms,
                        "reserved: when it is given back; null: never, or it stands still"),
            {0},
        },
};

/* ── versions and deployments ──────────────────────────────────────────────────────────────── */

const struct shape version_shape = {
    .name = "Version",
    .help = "A version of a fleet's game: what players name when they join.",
    .rows =
        (const struct shape_row[]){
            ROW_OR_NULL(ID, "id", struct view_version, id, "null: in the configuration only"),
            ROW(TEXT, "fleet", struct view_version, fleet, NULL),
            ROW(TEXT, "name", struct view_version, name, NULL),
            ROW(BOOL, "enabled", struct view_version, enabled,
                "players can join it: it is not turned off, and one that is not in the "
                "configuration has a deployment in use"),
            ROW(BOOL, "quarantined", struct view_version, quarantined,
                "its servers do not start in some region, see reason; Muster tries it without a "
                "player until it does"),
            ROW_OR_NULL(TEXT, "reason", struct view_version, reason, "of the quarantine"),
            ROW_OR_NULL(ID, "deployment", struct view_version, deployment, "what is spawned"),
            ROW_OR_NULL(ID, "previous", struct view_version, previous, "what was before"),
            ROW_OR_NULL(ID, "wanted", struct view_version, wanted,
                        "what will be, when every healthy host has it"),
            ROW(INT32, "rooms", struct view_version, rooms, "that are not over"),
            ROW(INT32, "hosts_ready", struct view_version, hosts_ready,
                "healthy hosts that have what is wanted or else used"),
            ROW(INT32, "hosts", struct view_version, hosts, "healthy hosts of the fleet"),
            {0},
        },
};

static void write_digest(struct json_writer *w, const void *object,
                         const struct core_config *config)
{
    const struct view_deployment *v = object;
    char hex[2 * OPERATE_DIGEST + 1];
    (void)config;
    for (size_t i = 0; i < OPERATE_DIGEST; i++)
        snprintf(hex + 2 * i, 3, "%02x", v->digest[i]);
    json_text(w, str_of(hex));
}

const struct shape deployment_shape = {
    .name = "Deployment",
    .help = "An archive that was uploaded for a version.",
    .rows =
        (const struct shape_row[]){
            ROW(ID, "id", struct view_deployment, id, NULL),
            ROW(TEXT, "fleet", struct view_deployment, fleet, NULL),
            ROW(TEXT, "version", struct view_deployment, version, NULL),
            ROW_WRITTEN(TEXT, "digest", write_digest, "its SHA-256 in hex"),
            ROW(INT64, "size", struct view_deployment, size, "bytes"),
            ROW(BOOL, "current", struct view_deployment, current, "it is what is spawned"),
            ROW(BOOL, "wanted", struct view_deployment, wanted,
                "it will be, when every healthy host has it"),
            ROW(INT32, "hosts_ready", struct view_deployment, hosts_ready,
                "healthy hosts that have it"),
            ROW(INT32, "hosts", struct view_deployment, hosts, "healthy hosts of the fleet"),
            ROW(TIME, "created_at", struct view_deployment, created_wall_ms, NULL),
            ROW(TEXT, "who", struct view_deployment, who, "whose access token brought it"),
            {0},
        },
};

/* ── bans ──────────────────────────────────────────────────────────────────────────────────── */

const struct shape ban_shape = {
    .name = "BanEntry",
    .help = "An account, and the address it came from, that may not join until a date.",
    .rows =
        (const struct shape_row[]){
            ROW(ID, "id", struct view_ban, id, NULL),
            ROW(TEXT, "account", struct view_ban, account, NULL),
            ROW_OR_NULL(TEXT, "address", struct view_ban, address,
                        "null until the account tried to join"),
            ROW(TEXT, "reason", struct view_ban, reason, NULL),
            ROW(TIME, "issued_at", struct view_ban, issued_wall_ms, NULL),
            ROW(TIME, "expires_at", struct view_ban, expires_wall_ms, NULL),
            ROW(BOOL, "expired", struct view_ban, expired, "it holds no more"),
            ROW(TEXT, "who", struct view_ban, who, "whose access token issued it"),
            {0},
        },
};

/* ── what is done ─────────────────────────────────────────────────────────────────────────────────
 */

const struct shape kicked_shape = {
    .name = "Kicked",
    .help = "A player was thrown out: his seat is gone.",
    .rows =
        (const struct shape_row[]){
            ROW(ID, "seat", struct kicked_answer, seat, "the number it had"),
            {0},
        },
};

const struct shape written_shape = {
    .name = "Written",
    .help = "A line was written to a server's input.",
    .rows =
        (const struct shape_row[]){
            ROW(ID, "server", struct written_answer, server, NULL),
            {0},
        },
};
