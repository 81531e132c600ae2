/* The table of operations. Its order is that of the documentation. */
#include "api/access.h"
#include "api/call.h"
#include "api/feed.h"
#include "api/host.h"
#include "api/operation.h"
#include "api/play.h"
#include "api/pubsub.h"
#include "api/resource.h"
#include "api/resource_allocation.h"
#include "api/resource_room.h"
#include "base/err.h"
#include "wire/settings.h"

enum {
    YEAR_S = 366 * 24 * 3600,
    NAME_MAX_BYTES = 64,
    HEARTBEAT_MAX = 1024 * 1024,
    PUSH_MAX = 16 * 1024 * 1024
};

static const char *const order_words[] = {"oldest", "newest", NULL};

/* ── arguments that many take ──────────────────────────────────────────────────────────────── */

#define LIMIT                                                                                      \
    {                                                                                              \
        .name = "limit", .kind = FIELD_INT, .min = 1, .max = 1000, .has_otherwise = true,          \
        .otherwise = 100, .help = "at most so many items"                                          \
    }
#define CURSOR                                                                                     \
    {                                                                                              \
        .name = "cursor", .kind = FIELD_ID, .help = "`next` of the page before"                    \
    }
#define ORDER                                                                                      \
    {                                                                                              \
        .name = "order", .kind = FIELD_WORD, .words = order_words,                                 \
        .help = "which come first; without it the API begins with the oldest, the CLI's lists of " \
                "matches and requests with the newest"                                             \
    }
#define ID(what_)                                                                                  \
    {                                                                                              \
        .name = "id", .kind = FIELD_ID, .required = true, .help = "the number of the " what_       \
    }
#define FLEET                                                                                      \
    {                                                                                              \
        .name = "fleet", .kind = FIELD_TEXT, .min = 1, .max = 63,                                  \
        .help = "only of this fleet, by its name or number"                                        \
    }
#define IN_REGION                                                                                  \
    {                                                                                              \
        .name = "region", .kind = FIELD_TEXT, .min = 1, .max = 15, .help = "only in this region"   \
    }
#define ONLY_VERSION                                                                               \
    {                                                                                              \
        .name = "version", .kind = FIELD_TEXT, .min = 1, .max = 32, .help = "only of this version" \
    }
#define HOST                                                                                       \
    {                                                                                              \
        .name = "host", .kind = FIELD_ID, .help = "only on this host"                              \
    }
#define ONLY_ACCOUNT                                                                               \
    {                                                                                              \
        .name = "account", .kind = FIELD_TEXT, .min = 1, .max = ACCESS_ACCOUNT_MAX,                \
        .help = "only of this player"                                                              \
    }
#define KIND                                                                                       \
    {                                                                                              \
        .name = "kind", .kind = FIELD_WORD, .words = session_kind_words,                           \
        .help = "only matches, or only rooms"                                                      \
    }
#define STATE(words_)                                                                              \
    {                                                                                              \
        .name = "state", .kind = FIELD_WORD, .words = (words_), .help = "only in this state"       \
    }
#define LOBBY                                                                                      \
    {                                                                                              \
        .name = "lobby", .kind = FIELD_INT, .min = INT32_MIN, .max = INT32_MAX,                    \
        .help = "only of this lobby"                                                               \
    }

/* ── what players say ──────────────────────────────────────────────────────────────────────── */

static const char *const bool_words[] = {"true", "false", NULL};

#define PLACED_ABOUT                                                                               \
    "Answered when the room's server is ready, or with what stopped it. A player has one seat "    \
    "for each game server: a new one moves him."
#define TOGETHER_ABOUT "All of them get seats, or none does. A refusal names those to blame."
#define PLACE_ERRORS                                                                               \
    ERR_NOT_FOUND, ERR_NO_VERSION, ERR_VERSION_DISABLED, ERR_WRONG_PROVIDER, ERR_BANNED,           \
        ERR_RATE_LIMITED, ERR_TOO_MANY, ERR_NO_HOST, ERR_NO_PLACE, ERR_SPAWN_FAILED,               \
        ERR_SPAWN_TIMEOUT, ERR_REGION_NOT_SUPPORTED, ERR_TOKEN_TAKEN
#define GAME                                                                                       \
    {                                                                                              \
        .name = "game", .kind = FIELD_TEXT, .required = true, .min = 1, .max = 63,                 \
        .help = "the name of the game"                                                             \
    }
#define SERVER                                                                                     \
    {                                                                                              \
        .name = "server", .kind = FIELD_TEXT, .required = true, .min = 1, .max = 63,               \
        .help = "the name of its game server"                                                      \
    }
#define VERSION                                                                                    \
    {                                                                                              \
        .name = "version", .kind = FIELD_TEXT, .required = true, .min = 1, .max = 32,              \
        .help = "the version of the game"                                                          \
    }
#define ROOM_SETTINGS(name_)                                                                       \
    {                                                                                              \
        .name = (name_), .kind = FIELD_JSON, .max = SETTINGS_MAX,                                  \
        .help = "settings of a room that is made"                                                  \
    }
#define FILTER                                                                                     \
    {                                                                                              \
        .name = "settings", .kind = FIELD_JSON, .max = SETTINGS_MAX,                               \
        .help = "what the settings of the room must be; see Filters above"                         \
    }
#define REGION                                                                                     \
    {                                                                                              \
        .name = "region", .kind = FIELD_TEXT, .min = 1, .max = 15,                                 \
        .help = "the region, by its name; else it is chosen"                                       \
    }
#define LATENCIES                                                                                  \
    {                                                                                              \
        .name = "latencies", .kind = FIELD_JSON, .max = 4096,                                      \
        .help = "milliseconds to regions by their names, as {\"EU\": 31}: the nearest is chosen"   \
    }
#define INFO                                                                                       \
    {                                                                                              \
        .name = "info", .kind = FIELD_JSON, .max = 4096,                                           \
        .help = "what the game server is told of the player"                                       \
    }
#define AUTO_CREATE                                                                                \
    {                                                                                              \
        .name = "auto_create", .kind = FIELD_BOOL, .words = bool_words, .has_otherwise = true,     \
        .otherwise = true, .help = "make a room when none fits"                                    \
    }
#define MY_REGION_ONLY                                                                             \
    {                                                                                              \
        .name = "my_region_only", .kind = FIELD_BOOL, .words = bool_words, .has_otherwise = true,  \
        .otherwise = false, .help = "rooms in other regions do not fit"                            \
    }
#define ACCOUNTS                                                                                   \
    {                                                                                              \
        .name = "accounts", .kind = FIELD_OBJECTS, .required = true, .min = 1,                     \
        .max = PLACE_PLAYERS_MAX,                                                                  \
        .help = "each {\"token\": his access token, \"ip\": his address, \"info\": an object}; "   \
                "the last two may be missing"                                                      \
    }
#define ACCOUNT                                                                                    \
    {                                                                                              \
        .name = "account", .kind = FIELD_TEXT, .required = true, .min = 1,                         \
        .max = ACCESS_ACCOUNT_MAX, .help = "the player"                                            \
    }
#define REASON(required_)                                                                          \
    {                                                                                              \
        .name = "reason", .kind = FIELD_TEXT, .required = (required_), .min = 1, .max = 255,       \
        .help = "why, for people"                                                                  \
    }
#define EXPIRES(required_)                                                                         \
    {                                                                                              \
        .name = "expires", .kind = FIELD_TEXT, .required = (required_), .min = 19, .max = 19,      \
        .form = "a date as 2026-12-31 23:59:59 in UTC",                                            \
        .help = "until when: YYYY-MM-DD HH:MM:SS in UTC"                                           \
    }

#define WAIT(help_)                                                                                \
    {                                                                                              \
        .name = "wait", .kind = FIELD_INT, .min = 0, .max = REST_WAIT_MAX_S,                       \
        .has_otherwise = true, .otherwise = 0, .help = (help_)                                     \
    }
#define TICKET_ID                                                                                  \
    {                                                                                              \
        .name = "ticketId", .kind = FIELD_TEXT, .required = true, .min = 1, .max = SEEK_NAME_MAX,  \
        .help = "what its sender calls it"                                                         \
    }
#define ONLY_PLAYER                                                                                \
    {                                                                                              \
        .name = "player", .kind = FIELD_TEXT, .min = 1, .max = ACCESS_ACCOUNT_MAX,                 \
        .help = "only of this player"                                                              \
    }
#define ALLOCATION_ERRORS                                                                          \
    ERR_PLAYER_REQUIRED, ERR_FRIENDS_NOT_FOUND, ERR_FRIEND_UNAVAILABLE, ERR_NO_CAPACITY,           \
        ERR_QUEUE_TIMEOUT, ERR_TOKEN_TAKEN, ERR_SUPERSEDED, ERR_NAME_CONFLICT, ERR_NO_SUCH_FLEET,  \
        ERR_NOT_FOUND, ERR_WRONG_PROVIDER, ERR_NO_VERSION, ERR_VERSION_DISABLED, ERR_BANNED,       \
        ERR_TOO_MANY, ERR_NO_HOST, ERR_NO_PLACE, ERR_SPAWN_FAILED, ERR_SPAWN_TIMEOUT,              \
        ERR_REGION_NOT_SUPPORTED, ERR_TICKET_CANCELLED, ERR_HOST_AWAY, ERR_ALREADY_OVER,           \
        ERR_ALLOCATION_TIMEOUT
#define SCOPE_IN_LIST(name, word, help) word ", "
#define OWN_SCOPES ACCESS_SCOPES(SCOPE_IN_LIST)

#define OF_FLEET                                                                                   \
    {                                                                                              \
        .name = "fleet", .kind = FIELD_TEXT, .required = true, .min = 1, .max = 63,                \
        .help = "its fleet, by its name or number"                                                 \
    }
#define OF_VERSION                                                                                 \
    {                                                                                              \
        .name = "version", .kind = FIELD_TEXT, .required = true, .min = 1, .max = 32,              \
        .help = "its name"                                                                         \
    }

/* ── the table ─────────────────────────────────────────────────────────────────────────────── */

const struct operation operations[] = {
    {
        .name = "health",
        .method = HTTP_GET,
        .path = "/healthz",
        .summary = "Is the process alive?",
        .about = "Answered by the loop itself, whatever the store does.",
        .answer = &health_shape,
        .handle = handle_health,
        .always = true,
    },
    {
        .name = "ready",
        .method = HTTP_GET,
        .path = "/readyz",
        .summary = "Can it serve?",
        .about = "200 when the ports are open and changes can be stored, else 503.",
        .answer = &ready_shape,
        .errors = {ERR_NOT_READY},
        .handle = handle_ready,
        .always = true,
    },
    {
        .name = "metrics",
        .method = HTTP_GET,
        .path = "/metrics",
        .scope = ACCESS_READ,
        .summary = "Metrics for Prometheus.",
        .about = "No token is needed with `http: {metrics: open}` in the configuration, or --dev.",
        .content_type = METRICS_CONTENT_TYPE,
        .handle = handle_metrics,
    },
    {
        .name = "openapi",
        .method = HTTP_GET,
        .path = "/openapi.json",
        .summary = "This API, described for machines (OpenAPI 3.1).",
        .content_type = "application/json",
        .handle = handle_openapi,
    },
    {
        .name = "get_status",
        .method = HTTP_GET,
        .path = "/v1/status",
        .scope = ACCESS_READ,
        .summary = "Everything at a glance.",
        .answer = &status_shape,
        .handle = handle_status,
    },
    {
        .name = "list_regions",
        .method = HTTP_GET,
        .path = "/v1/regions",
        .scope = ACCESS_READ,
        .summary = "All regions.",
        .answer = &region_shape,
        .is_list = true,
        .handle = handle_list_regions,
    },
    {
        .name = "get_region",
        .method = HTTP_GET,
        .path = "/v1/regions/{name}",
        .scope = ACCESS_READ,
        .summary = "One region.",
        .fields = {{.name = "name",
                    .kind = FIELD_TEXT,
                    .required = true,
                    .min = 1,
                    .max = 15,
                    .help = "its name, in any case"}},
        .answer = &region_shape,
        .errors = {ERR_NOT_FOUND},
        .handle = handle_get_region,
    },
    {
        .name = "list_fleets",
        .method = HTTP_GET,
        .path = "/v1/fleets",
        .scope = ACCESS_READ,
        .summary = "All fleets.",
        .fields = {LIMIT, CURSOR},
        .answer = &fleet_shape,
        .is_list = true,
        .handle = handle_list_fleets,
    },
    {
        .name = "get_fleet",
        .method = HTTP_GET,
        .path = "/v1/fleets/{fleet}",
        .scope = ACCESS_READ,
        .summary = "One fleet.",
        .fields = {{.name = "fleet",
                    .kind = FIELD_TEXT,
                    .required = true,
                    .min = 1,
                    .max = 63,
                    .help = "its name or number"}},
        .answer = &fleet_shape,
        .errors = {ERR_NOT_FOUND},
        .handle = handle_get_fleet,
    },
    {
        .name = "list_servers",
        .method = HTTP_GET,
        .path = "/v1/servers",
        .scope = ACCESS_READ,
        .summary = "Game servers.",
        .fields = {FLEET,
                   {.name = "region",
                    .kind = FIELD_TEXT,
                    .min = 1,
                    .max = 15,
                    .help = "only in this region"},
                   {.name = "status",
                    .kind = FIELD_WORD,
                    .words = server_status_words,
                    .help = "only in this status"},
                   {.name = "provider",
                    .kind = FIELD_WORD,
                    .words = provider_words,
                    .help = "only those that registered (chat), or that agents spawned"},
                   HOST,
                   LIMIT,
                   CURSOR,
                   ORDER},
        .answer = &server_shape,
        .is_list = true,
        .handle = handle_list_servers,
    },
    {
        .name = "get_server",
        .method = HTTP_GET,
        .path = "/v1/servers/{id}",
        .scope = ACCESS_READ,
        .summary = "One game server.",
        .fields = {ID("server")},
        .answer = &server_shape,
        .errors = {ERR_NOT_FOUND},
        .handle = handle_get_server,
    },
    {
        .name = "drain_server",
        .method = HTTP_POST,
        .path = "/v1/servers/{id}/drain",
        .scope = ACCESS_ADMIN,
        .summary = "Give a server nothing new.",
        .about = "Its matches go on to their end. Draining twice is fine.",
        .fields = {ID("server")},
        .answer = &server_shape,
        .errors = {ERR_NOT_FOUND},
        .handle = handle_drain,
    },
    {
        .name = "undrain_server",
        .method = HTTP_POST,
        .path = "/v1/servers/{id}/undrain",
        .scope = ACCESS_ADMIN,
        .summary = "Give a server matches again.",
        .about = "Takes back every drain, also one that the server itself asked for.",
        .fields = {ID("server")},
        .answer = &server_shape,
        .errors = {ERR_NOT_FOUND},
        .handle = handle_undrain,
    },
    {
        .name = "terminate_server",
        .method = HTTP_POST,
        .path = "/v1/servers/{id}/terminate",
        .scope = ACCESS_ADMIN,
        .summary = "End a server that an agent spawned.",
        .about = "Its room ends; the process gets SIGTERM and, 5 s later, SIGKILL.",
        .fields = {ID("server")},
        .answer = &server_shape,
        .errors = {ERR_NOT_FOUND, ERR_WRONG_PROVIDER, ERR_ALREADY_OVER},
        .handle = handle_terminate,
    },
    {
        .name = "server_logs",
        .method = HTTP_GET,
        .path = "/v1/servers/{id}/logs",
        .scope = ACCESS_READ,
        .summary = "What a server that an agent spawned has printed.",
        .about = "Asked of its agent. When that knows it no more, the last lines that were kept.",
        .fields = {ID("server"),
                   {.name = "lines",
                    .kind = FIELD_INT,
                    .min = 0,
                    .max = 10000,
                    .has_otherwise = true,
                    .otherwise = 200,
                    .help = "the last so many lines"},
                   {.name = "follow",
                    .kind = FIELD_BOOL,
                    .has_otherwise = true,
                    .otherwise = 0,
                    .help = "go on until the server is gone"}},
        .content_type = OUTPUT_CONTENT_TYPE,
        .errors = {ERR_NOT_FOUND, ERR_WRONG_PROVIDER, ERR_HOST_AWAY},
        .handle = handle_logs,
    },
    {
        .name = "server_stdin",
        .method = HTTP_POST,
        .path = "/v1/servers/{id}/stdin",
        .scope = ACCESS_ADMIN,
        .summary = "Write a line to the input of a server that an agent spawned.",
        .about = "The line is kept in the audit before it is written.",
        .fields = {ID("server"),
                   {.name = "line",
                    .kind = FIELD_TEXT,
                    .required = true,
                    .min = 0,
                    .max = 4096,
                    .help = "without its newline"}},
        .answer = &written_shape,
        .errors = {ERR_NOT_FOUND, ERR_WRONG_PROVIDER, ERR_ALREADY_OVER, ERR_HOST_AWAY},
        .handle = handle_stdin,
    },
    {
        .name = "list_sessions",
        .method = HTTP_GET,
        .path = "/v1/sessions",
        .scope = ACCESS_READ,
        .summary = "Matches and rooms.",
        .fields = {FLEET,
                   KIND,
                   {.name = "server", .kind = FIELD_ID, .help = "only on this server"},
                   STATE(session_state_words),
                   LOBBY,
                   LIMIT,
                   CURSOR,
                   ORDER},
        .answer = &session_shape,
        .is_list = true,
        .handle = handle_list_sessions,
    },
    {
        .name = "get_session",
        .method = HTTP_GET,
        .path = "/v1/sessions/{id}",
        .scope = ACCESS_READ,
        .summary = "One match or room.",
        .fields = {ID("session")},
        .answer = &session_shape,
        .errors = {ERR_NOT_FOUND},
        .handle = handle_get_session,
    },
    {
        .name = "end_session",
        .method = HTTP_POST,
        .path = "/v1/sessions/{id}/end",
        .scope = ACCESS_ADMIN,
        .summary = "End a match or a room.",
        .about =
            "The server of a match is told to let go of it, its chat server that it has ended. "
            "The server of a room is terminated.",
        .fields = {ID("session")},
        .answer = &session_shape,
        .errors = {ERR_NOT_FOUND, ERR_ALREADY_OVER},
        .handle = handle_end_session,
    },
    {
        .name = "list_tickets",
        .method = HTTP_GET,
        .path = "/v1/tickets",
        .scope = ACCESS_READ,
        .summary = "Requests to be placed, with their answers.",
        .fields = {FLEET,
                   KIND,
                   ONLY_ACCOUNT,
                   STATE(ticket_state_words),
                   LOBBY,
                   {.name = "chat_server",
                    .kind = FIELD_TEXT,
                    .min = 1,
                    .max = 64,
                    .help = "only of this chat server, by its name"},
                   LIMIT,
                   CURSOR,
                   ORDER},
        .answer = &ticket_shape,
        .is_list = true,
        .handle = handle_list_tickets,
    },
    {
        .name = "get_ticket",
        .method = HTTP_GET,
        .path = "/v1/tickets/{id}",
        .scope = ACCESS_READ,
        .summary = "One request, now or when it is answered.",
        .fields = {ID("ticket"),
                   {.name = "wait",
                    .kind = FIELD_INT,
                    .min = 0,
                    .max = REST_WAIT_MAX_S,
                    .has_otherwise = true,
                    .otherwise = 0,
                    .help = "seconds to wait while it is open"}},
        .answer = &ticket_shape,
        .errors = {ERR_NOT_FOUND},
        .handle = handle_get_ticket,
    },
    {
        .name = "why_ticket",
        .method = HTTP_GET,
        .path = "/v1/tickets/{id}/why",
        .scope = ACCESS_READ,
        .summary = "Why a request ended as it did.",
        .about = "Who was tried, with which score, and how many others were passed over for which "
                 "reason; of a room, which hosts were asked; of an allocation, where it was "
                 "placed or for what it waits.",
        .fields = {ID("ticket")},
        .answer = &why_shape,
        .errors = {ERR_NOT_FOUND},
        .handle = handle_why,
    },
    {
        .name = "list_hosts",
        .method = HTTP_GET,
        .path = "/v1/hosts",
        .scope = ACCESS_READ,
        .summary = "Machines that run an agent.",
        .fields = {IN_REGION,
                   {.name = "status",
                    .kind = FIELD_WORD,
                    .words = host_status_words,
                    .help = "only those that get what is new, or that do not for this reason"},
                   LIMIT,
                   CURSOR,
                   ORDER},
        .answer = &host_shape,
        .is_list = true,
        .handle = handle_list_hosts,
    },
    {
        .name = "get_host",
        .method = HTTP_GET,
        .path = "/v1/hosts/{id}",
        .scope = ACCESS_READ,
        .summary = "One host.",
        .fields = {ID("host")},
        .answer = &host_shape,
        .errors = {ERR_NOT_FOUND},
        .handle = handle_get_host,
    },
    {
        .name = "enable_host",
        .method = HTTP_POST,
        .path = "/v1/hosts/{id}/enable",
        .scope = ACCESS_ADMIN,
        .summary = "Spawn servers on a host again.",
        .fields = {ID("host")},
        .answer = &host_shape,
        .errors = {ERR_NOT_FOUND},
        .handle = handle_enable_host,
    },
    {
        .name = "disable_host",
        .method = HTTP_POST,
        .path = "/v1/hosts/{id}/disable",
        .scope = ACCESS_ADMIN,
        .summary = "Spawn nothing new on a host.",
        .about = "What runs there goes on to its end. Disabling twice is fine.",
        .fields = {ID("host")},
        .answer = &host_shape,
        .errors = {ERR_NOT_FOUND},
        .handle = handle_disable_host,
    },
    {
        .name = "list_rooms",
        .method = HTTP_GET,
        .path = "/v1/rooms",
        .scope = ACCESS_READ,
        .summary = "Rooms, also those that ended lately.",
        .fields = {FLEET, ONLY_VERSION, IN_REGION, HOST, STATE(room_state_words), LIMIT, CURSOR,
                   ORDER},
        .answer = &room_shape,
        .is_list = true,
        .handle = handle_list_rooms,
    },
    {
        .name = "get_room",
        .method = HTTP_GET,
        .path = "/v1/rooms/{id}",
        .scope = ACCESS_READ,
        .summary = "One room, with who sits in it.",
        .fields = {ID("room")},
        .answer = &room_whole_shape,
        .errors = {ERR_NOT_FOUND},
        .handle = handle_get_room,
    },
    {
        .name = "list_seats",
        .method = HTTP_GET,
        .path = "/v1/seats",
        .scope = ACCESS_READ,
        .summary = "Seats in rooms.",
        .fields = {FLEET,
                   {.name = "room", .kind = FIELD_ID, .help = "only in this room"},
                   ONLY_ACCOUNT,
                   STATE(room_seat_state_words),
                   LIMIT,
                   CURSOR,
                   ORDER},
        .answer = &room_seat_shape,
        .is_list = true,
        .handle = handle_list_seats,
    },
    {
        .name = "kick_seat",
        .method = HTTP_POST,
        .path = "/v1/seats/{id}/kick",
        .scope = ACCESS_ADMIN,
        .summary = "Throw a player out of a room.",
        .about = "His seat is given back at once, and the game server is told.",
        .fields = {ID("seat"),
                   {.name = "reason",
                    .kind = FIELD_TEXT,
                    .min = 1,
                    .max = 120,
                    .help = "what the game server may show him"}},
        .answer = &kicked_shape,
        .errors = {ERR_NOT_FOUND},
        .handle = handle_kick,
    },
    {
        .name = "release_seat",
        .method = HTTP_DELETE,
        .path = "/v1/seats/{id}",
        .scope = ACCESS_ADMIN,
        .summary = "Give a seat back.",
        .about = "As POST /v1/seats/{id}/kick: where nobody says that a player left, this does.",
        .fields = {ID("seat"),
                   {.name = "reason",
                    .kind = FIELD_TEXT,
                    .min = 1,
                    .max = 120,
                    .help = "what the game server may show him"}},
        .answer = &kicked_shape,
        .errors = {ERR_NOT_FOUND},
        .handle = handle_kick,
    },
    {
        .name = "allocate",
        .method = HTTP_POST,
        .path = "/v1/allocations",
        .scope = ACCESS_ALLOCATE,
        .own_scope = ACCESS_GAME,
        .summary = "A place for a player, with his friends where he has some.",
        .about = "The body is the same as on a bus, and so is the answer. A repeat with the same "
                 "ticketId gets the result that there is by then. A player asks for himself, alone "
                 "and without priority.",
        .fields = {WAIT("seconds to wait for a place while it stands in line")},
        .asks = &allocation_request_shape,
        .answer = &allocation_result_shape,
        .results = true,
        .errors = {ALLOCATION_ERRORS},
        .handle = handle_allocate,
    },
    {
        .name = "list_allocations",
        .method = HTTP_GET,
        .path = "/v1/allocations",
        .scope = ACCESS_READ,
        .summary = "Requests of players for places.",
        .fields = {FLEET, ONLY_PLAYER, STATE(allocation_state_words), LIMIT, CURSOR, ORDER},
        .answer = &allocation_shape,
        .is_list = true,
        .handle = handle_list_allocations,
    },
    {
        .name = "get_allocation",
        .method = HTTP_GET,
        .path = "/v1/allocations/{ticketId}",
        .scope = ACCESS_ALLOCATE,
        .own_scope = ACCESS_GAME,
        .summary = "One allocation and its result, now or when it has its last one.",
        .fields = {TICKET_ID, WAIT("seconds to wait while it is open or stands in line")},
        .answer = &allocation_whole_shape,
        .errors = {ERR_NOT_FOUND},
        .handle = handle_get_allocation,
    },
    {
        .name = "why_allocation",
        .method = HTTP_GET,
        .path = "/v1/allocations/{ticketId}/why",
        .scope = ACCESS_READ,
        .summary = "Why an allocation stands as it does, in words.",
        .fields = {TICKET_ID},
        .answer = &allocation_why_shape,
        .errors = {ERR_NOT_FOUND},
        .handle = handle_why_allocation,
    },
    {
        .name = "cancel_allocation",
        .method = HTTP_DELETE,
        .path = "/v1/allocations/{ticketId}",
        .scope = ACCESS_ALLOCATE,
        .own_scope = ACCESS_GAME,
        .summary = "Wait no more.",
        .about = "Answers with its last result. A seat that it has got by then stays.",
        .fields = {TICKET_ID},
        .answer = &allocation_result_shape,
        .errors = {ERR_NOT_FOUND, ERR_ALREADY_OVER},
        .handle = handle_cancel_allocation,
    },
    {
        .name = "list_queues",
        .method = HTTP_GET,
        .path = "/v1/queues",
        .scope = ACCESS_READ,
        .summary = "Lines in which allocations wait for seats.",
        .about = "At most 1000, those of fleets first. Who stands in them: GET "
                 "/v1/allocations?state=queued.",
        .fields = {FLEET},
        .answer = &queue_shape,
        .is_list = true,
        .handle = handle_list_queues,
    },
    {
        .name = "dequeue_player",
        .method = HTTP_DELETE,
        .path = "/v1/queues/players/{player}",
        .scope = ACCESS_ADMIN,
        .summary = "Take a player out of the line he stands in.",
        .fields = {{.name = "player",
                    .kind = FIELD_TEXT,
                    .required = true,
                    .min = 1,
                    .max = ACCESS_ACCOUNT_MAX,
                    .help = "the player"}},
        .answer = &allocation_shape,
        .errors = {ERR_NOT_FOUND},
        .handle = handle_dequeue,
    },
    {
        .name = "get_party",
        .method = HTTP_GET,
        .path = "/v1/parties/{id}",
        .scope = ACCESS_READ,
        .summary = "Players who came together and are still there.",
        .fields = {ID("party")},
        .answer = &party_shape,
        .errors = {ERR_NOT_FOUND},
        .handle = handle_get_party,
    },
    {
        .name = "list_routes",
        .method = HTTP_GET,
        .path = "/v1/routes",
        .scope = ACCESS_ADMIN,
        .summary = "Routing tokens and where a proxy sends their packets.",
        .fields = {FLEET, ONLY_PLAYER, LIMIT, CURSOR},
        .answer = &route_shape,
        .is_list = true,
        .handle = handle_list_routes,
    },
    {
        .name = "list_versions",
        .method = HTTP_GET,
        .path = "/v1/versions",
        .scope = ACCESS_READ,
        .summary = "Versions of games that players can join.",
        .fields = {FLEET},
        .answer = &version_shape,
        .is_list = true,
        .handle = handle_list_versions,
    },
    {
        .name = "enable_version",
        .method = HTTP_POST,
        .path = "/v1/versions/enable",
        .scope = ACCESS_ADMIN,
        .summary = "Let players join a version again.",
        .about = "Also ends its quarantine. What the configuration turns off stays off.",
        .fields = {OF_FLEET, OF_VERSION},
        .answer = &version_shape,
        .errors = {ERR_NO_VERSION, ERR_VERSION_DISABLED, ERR_WRONG_PROVIDER, ERR_NOT_FOUND,
                   ERR_NO_SUCH_FLEET},
        .handle = handle_enable_version,
    },
    {
        .name = "disable_version",
        .method = HTTP_POST,
        .path = "/v1/versions/disable",
        .scope = ACCESS_ADMIN,
        .summary = "Let nobody join a version any more.",
        .about = "Its rooms go on to their end.",
        .fields = {OF_FLEET, OF_VERSION},
        .answer = &version_shape,
        .errors = {ERR_NO_VERSION, ERR_WRONG_PROVIDER, ERR_NOT_FOUND, ERR_NO_SUCH_FLEET},
        .handle = handle_disable_version,
    },
    {
        .name = "list_deployments",
        .method = HTTP_GET,
        .path = "/v1/deployments",
        .scope = ACCESS_READ,
        .summary = "Archives that were uploaded.",
        .fields = {FLEET, ONLY_VERSION, LIMIT, CURSOR, ORDER},
        .answer = &deployment_shape,
        .is_list = true,
        .handle = handle_list_deployments,
    },
    {
        .name = "get_deployment",
        .method = HTTP_GET,
        .path = "/v1/deployments/{id}",
        .scope = ACCESS_READ,
        .summary = "One deployment.",
        .fields = {ID("deployment")},
        .answer = &deployment_shape,
        .errors = {ERR_NOT_FOUND},
        .handle = handle_get_deployment,
    },
    {
        .name = "switch_deployment",
        .method = HTTP_POST,
        .path = "/v1/deployments/{id}/switch",
        .scope = ACCESS_ADMIN,
        .summary = "Make a deployment its version's.",
        .about = "It is used as soon as every healthy host of the fleet has it. Servers that run "
                 "are not stopped.",
        .fields = {ID("deployment")},
        .answer = &deployment_shape,
        .errors = {ERR_NOT_FOUND},
        .handle = handle_switch,
    },
    {
        .name = "list_bans",
        .method = HTTP_GET,
        .path = "/v1/bans",
        .scope = ACCESS_READ,
        .summary = "Players who may not join.",
        .fields = {ONLY_ACCOUNT,
                   {.name = "state",
                    .kind = FIELD_WORD,
                    .words = ban_state_words,
                    .help = "only those that hold, or that have expired"},
                   LIMIT,
                   CURSOR,
                   ORDER},
        .answer = &ban_shape,
        .is_list = true,
        .handle = handle_list_bans,
    },
    {
        .name = "agent_heartbeat",
        .method = HTTP_POST,
        .path = "/v1/agent/heartbeat",
        .scope = ACCESS_HOST,
        .summary = "How a host is and what runs there.",
        .about = "Sent by its agent every 5 s; the first one registers the host, whose name then "
                 "belongs to the access token's account. docs/agent-protocol.md says more.",
        .asks = &host_beat_shape,
        .body_max = HEARTBEAT_MAX,
        .answer = &host_beat_answer_shape,
        .errors = {ERR_TOO_MANY},
        .handle = handle_agent_heartbeat,
    },
    {
        .name = "agent_events",
        .method = HTTP_POST,
        .path = "/v1/agent/events",
        .scope = ACCESS_HOST,
        .summary = "What happened to the servers of a host.",
        .about = "In order, answered one by one. Anything but 200 means that nothing is known of "
                 "any of them: send them again, the same. docs/agent-protocol.md says more.",
        .asks = &agent_events_shape,
        .answer = &agent_answers_shape,
        .handle = handle_agent_events,
    },
    {
        .name = "list_tokens",
        .method = HTTP_GET,
        .path = "/v1/tokens",
        .scope = ACCESS_ADMIN,
        .summary = "Enrolment tokens.",
        .about = "Those that were made here; those of the configuration file are not listed.",
        .fields = {LIMIT, CURSOR},
        .answer = &token_shape,
        .is_list = true,
        .handle = handle_list_tokens,
    },
    {
        .name = "get_token",
        .method = HTTP_GET,
        .path = "/v1/tokens/{id}",
        .scope = ACCESS_ADMIN,
        .summary = "One enrolment token.",
        .fields = {ID("token")},
        .answer = &token_shape,
        .errors = {ERR_NOT_FOUND},
        .handle = handle_get_token,
    },
    {
        .name = "enrol",
        .method = HTTP_POST,
        .path = "/v1/tokens",
        .scope = ACCESS_ADMIN,
        .summary = "Make an enrolment token.",
        .about = "The token is in the answer and nowhere else: it is kept as a hash.",
        .fields = {{.name = "role",
                    .kind = FIELD_WORD,
                    .required = true,
                    .words = role_words,
                    .help = "who may come with it: a game server or a chat server"},
                   {.name = "fleet",
                    .kind = FIELD_TEXT,
                    .required = true,
                    .min = 1,
                    .max = 63,
                    .help = "the fleet they are then in"},
                   {.name = "regions",
                    .kind = FIELD_LIST,
                    .min = 1,
                    .max = 64,
                    .help = "where they may be; all there are now when it is not given"},
                   {.name = "name",
                    .kind = FIELD_TEXT,
                    .min = 0,
                    .max = NAME_MAX_BYTES,
                    .help = "what you call it"},
                   {.name = "expires_in_s",
                    .kind = FIELD_INT,
                    .min = 1,
                    .max = 10 * (int64_t)YEAR_S,
                    .help = "seconds until it expires; never when it is not given"}},
        .answer = &made_token_shape,
        .errors = {ERR_NO_SUCH_FLEET, ERR_TOO_MANY, ERR_NOT_FOUND},
        .handle = handle_enrol,
    },
    {
        .name = "revoke_token",
        .method = HTTP_POST,
        .path = "/v1/tokens/{id}/revoke",
        .scope = ACCESS_ADMIN,
        .summary = "End an enrolment token.",
        .about = "Whoever is connected with it is cut off.",
        .fields = {ID("token")},
        .answer = &token_shape,
        .errors = {ERR_NOT_FOUND, ERR_ALREADY_OVER},
        .handle = handle_revoke,
    },
    {
        .name = "rotate_token",
        .method = HTTP_POST,
        .path = "/v1/tokens/{id}/rotate",
        .scope = ACCESS_ADMIN,
        .summary = "Replace an enrolment token by a new one.",
        .about = "The old one works for a while longer, so that servers can be given the new one. "
                 "Of several rotations only the token before the last goes on working.",
        .fields = {ID("token"),
                   {.name = "grace_s",
                    .kind = FIELD_INT,
                    .min = 0,
                    .max = YEAR_S,
                    .has_otherwise = true,
                    .otherwise = 3600,
                    .help = "seconds for which the old one still works"}},
        .answer = &made_token_shape,
        .errors = {ERR_NOT_FOUND, ERR_ALREADY_OVER},
        .handle = handle_rotate,
    },
    {
        .name = "issue_access_token",
        .method = HTTP_POST,
        .path = "/v1/access-tokens",
        .scope = ACCESS_ADMIN,
        .summary = "Make an access token for this API.",
        .about = "It cannot be taken back before it expires.",
        .fields = {{.name = "account",
                    .kind = FIELD_TEXT,
                    .required = true,
                    .min = 1,
                    .max = ACCESS_ACCOUNT_MAX,
                    .help = "whose it is; the audit shows it"},
                   {.name = "scopes",
                    .kind = FIELD_LIST,
                    .required = true,
                    .min = 1,
                    .max = 32,
                    .help = "what it allows: " OWN_SCOPES "or one of another service"},
                   {.name = "expires_in_s",
                    .kind = FIELD_INT,
                    .min = 1,
                    .max = 10 * (int64_t)YEAR_S,
                    .has_otherwise = true,
                    .otherwise = 24 * 3600,
                    .help = "seconds until it expires"}},
        .answer = &access_token_shape,
        .handle = handle_issue,
    },
    {
        .name = "list_audit",
        .method = HTTP_GET,
        .path = "/v1/audit",
        .scope = ACCESS_ADMIN,
        .summary = "What operators did, newest first.",
        .fields = {LIMIT, CURSOR},
        .answer = &audit_shape,
        .is_list = true,
        .handle = handle_list_audit,
    },
    {
        .name = "stream_events",
        .method = HTTP_GET,
        .path = "/v1/events",
        .scope = ACCESS_READ,
        .summary = "Changes as they happen (server-sent events).",
        .about = "Goes on after the event whose id is in the header Last-Event-ID, also after a "
                 "restart. What the events hold is in docs/events.md.",
        .fields = {{.name = "kinds",
                    .kind = FIELD_TEXT,
                    .min = 1,
                    .max = 256,
                    .help = "only these kinds, with commas between them: " FEED_KINDS_WORDS
                            "; token and audit need muster_admin"},
                   {.name = "last_event_id",
                    .kind = FIELD_TEXT,
                    .min = 1,
                    .max = 64,
                    .help = "for clients that cannot set the header"}},
        .content_type = FEED_CONTENT_TYPE,
        .handle = handle_events,
    },
    /* ── players ─────────────────────────────────────────────────────────────────────────── */
    {
        .name = "create",
        .method = HTTP_POST,
        .path = "/create/{game}/{server}/{version}",
        .scope = ACCESS_GAME,
        .summary = "A new room, and a seat in it.",
        .about = PLACED_ABOUT,
        .fields = {GAME, SERVER, VERSION, ROOM_SETTINGS("settings"), REGION, LATENCIES, INFO},
        .answer = &placed_shape,
        .errors = {PLACE_ERRORS},
        .handle = handle_create,
    },
    {
        .name = "join",
        .method = HTTP_POST,
        .path = "/join/{game}/{server}/{version}",
        .scope = ACCESS_GAME,
        .summary = "A seat in a room that fits, or in a new one.",
        .about = PLACED_ABOUT,
        .fields = {GAME, SERVER, VERSION, FILTER, ROOM_SETTINGS("create_settings"), AUTO_CREATE,
                   MY_REGION_ONLY, REGION, LATENCIES, INFO},
        .answer = &placed_shape,
        .errors = {PLACE_ERRORS},
        .handle = handle_join,
    },
    {
        .name = "enter",
        .method = HTTP_POST,
        .path = "/room/{game}/{room}/join",
        .scope = ACCESS_GAME,
        .summary = "A seat in that room.",
        .fields =
            {GAME,
             {.name = "room", .kind = FIELD_ID, .required = true, .help = "the number of the room"},
             INFO},
        .answer = &placed_shape,
        .errors = {PLACE_ERRORS, ERR_NO_ROOM, ERR_ROOM_STARTING, ERR_HOST_AWAY},
        .handle = handle_enter,
    },
    {
        .name = "create_multi",
        .method = HTTP_POST,
        .path = "/create/multi/{game}/{server}/{version}",
        .scope = ACCESS_GAME | ACCESS_GAME_MULTI,
        .summary = "A new room, and seats in it for several players.",
        .about = TOGETHER_ABOUT,
        .fields = {GAME, SERVER, VERSION, ACCOUNTS, ROOM_SETTINGS("settings"), REGION, LATENCIES},
        .answer = &placed_multi_shape,
        .errors = {PLACE_ERRORS},
        .handle = handle_create_multi,
    },
    {
        .name = "join_multi",
        .method = HTTP_POST,
        .path = "/join/multi/{game}/{server}/{version}",
        .scope = ACCESS_GAME | ACCESS_GAME_MULTI,
        .summary = "Seats for several players in one room that fits, or in a new one.",
        .about = TOGETHER_ABOUT,
        .fields = {GAME, SERVER, VERSION, ACCOUNTS, FILTER, ROOM_SETTINGS("create_settings"),
                   AUTO_CREATE, MY_REGION_ONLY, REGION, LATENCIES},
        .answer = &placed_multi_shape,
        .errors = {PLACE_ERRORS},
        .handle = handle_join_multi,
    },
    {
        .name = "rooms",
        .method = HTTP_GET,
        .path = "/rooms/{game}/{server}/{version}",
        .scope = ACCESS_GAME,
        .summary = "Rooms that can be joined, the best for you first.",
        .about = "At most 1000.",
        .fields = {GAME,
                   SERVER,
                   VERSION,
                   FILTER,
                   {.name = "show_full",
                    .kind = FIELD_BOOL,
                    .words = bool_words,
                    .has_otherwise = true,
                    .otherwise = true,
                    .help = "those without a place, too"},
                   MY_REGION_ONLY,
                   REGION,
                   LATENCIES},
        .answer = &open_rooms_shape,
        .errors = {ERR_NOT_FOUND, ERR_NO_VERSION, ERR_VERSION_DISABLED},
        .handle = handle_rooms,
    },
    {
        .name = "regions",
        .method = HTTP_GET,
        .path = "/regions",
        .scope = ACCESS_GAME,
        .summary = "Where rooms can be, and where yours would be.",
        .fields = {LATENCIES},
        .answer = &play_regions_shape,
        .handle = handle_regions,
    },
    {
        .name = "counts",
        .method = HTTP_GET,
        .path = "/status",
        .summary = "How many play.",
        .answer = &counts_shape,
        .errors = {ERR_INTERNAL},
        .handle = handle_counts,
    },
    {
        .name = "player",
        .method = HTTP_GET,
        .path = "/player/{account}",
        .scope = ACCESS_GAME,
        .summary = "Where a player is.",
        .fields = {ACCOUNT},
        .answer = &player_shape,
        .handle = handle_player,
    },
    {
        .name = "players",
        .method = HTTP_GET,
        .path = "/players",
        .scope = ACCESS_GAME,
        .summary = "Where players are.",
        .fields =
            {{.name = "accounts", .kind = FIELD_LIST, .min = 1, .max = 100, .help = "only these"},
             LIMIT,
             CURSOR},
        .answer = &player_seat_shape,
        .is_list = true,
        .handle = handle_players,
    },
    {
        .name = "issue_ban",
        .method = HTTP_POST,
        .path = "/ban/issue",
        .scope = ACCESS_GAME_BAN,
        .summary = "Ban a player.",
        .about = "He loses his seats. When he tries to join, nobody can join from his address any "
                 "more either; an IPv6 address counts with its /64.",
        .fields = {ACCOUNT, REASON(true), EXPIRES(true)},
        .answer = &issued_ban_shape,
        .errors = {ERR_ALREADY_BANNED, ERR_TOO_MANY},
        .handle = handle_ban_issue,
    },
    {
        .name = "find_ban",
        .method = HTTP_GET,
        .path = "/ban/find/{account}",
        .scope = ACCESS_GAME_BAN,
        .summary = "The newest ban of a player.",
        .fields = {ACCOUNT},
        .answer = &played_ban_shape,
        .errors = {ERR_NOT_FOUND},
        .handle = handle_ban_find,
    },
    {
        .name = "get_played_ban",
        .method = HTTP_GET,
        .path = "/ban/{id}",
        .scope = ACCESS_GAME_BAN,
        .summary = "One ban.",
        .fields = {ID("ban")},
        .answer = &played_ban_shape,
        .errors = {ERR_NOT_FOUND},
        .handle = handle_ban_get,
    },
    {
        .name = "update_played_ban",
        .method = HTTP_POST,
        .path = "/ban/{id}",
        .scope = ACCESS_GAME_BAN,
        .summary = "Change a ban.",
        .about = "What is not given stays.",
        .fields = {ID("ban"), REASON(false), EXPIRES(false)},
        .answer = &nothing_shape,
        .errors = {ERR_NOT_FOUND, ERR_ALREADY_OVER},
        .handle = handle_ban_update,
    },
    {
        .name = "lift_played_ban",
        .method = HTTP_DELETE,
        .path = "/ban/{id}",
        .scope = ACCESS_GAME_BAN,
        .summary = "End a ban.",
        .fields = {ID("ban")},
        .answer = &nothing_shape,
        .errors = {ERR_NOT_FOUND, ERR_ALREADY_OVER},
        .handle = handle_ban_lift,
    },
    {
        .name = "deploy",
        .method = HTTP_POST,
        .path = "/v1/deployments",
        .scope = ACCESS_ADMIN,
        .summary = "Upload an archive as a deployment of a version.",
        .about =
            "The body is a tar.gz or zip of at most 4 GiB. It is unpacked for a look before it "
            "is kept: names that lead out of it, links and devices are refused. Agents fetch "
            "it before the first server of theirs that needs it. Servers are started from it "
            "after POST /v1/deployments/{id}/switch.",
        .fields = {{.name = "fleet",
                    .kind = FIELD_TEXT,
                    .required = true,
                    .min = 1,
                    .max = 63,
                    .help = "the fleet, by its name or number"},
                   {.name = "version",
                    .kind = FIELD_TEXT,
                    .required = true,
                    .min = 1,
                    .max = 32,
                    .help = "the version that players name; made when it is new"}},
        .answer = &deployment_shape,
        .errors = {ERR_WRONG_PROVIDER, ERR_BAD_ARCHIVE, ERR_IO, ERR_TOO_MANY},
        .handle = handle_deploy,
        .upload = true,
    },
    {
        .name = "get_archive",
        .method = HTTP_GET,
        .path = "/v1/deployments/{digest}/archive",
        .scope = ACCESS_HOST,
        .summary = "The archive of a deployment, as it was uploaded.",
        .fields = {{.name = "digest",
                    .kind = FIELD_TEXT,
                    .required = true,
                    .min = 64,
                    .max = 64,
                    .help = "its SHA-256 in hexadecimal"}},
        .content_type = "application/octet-stream",
        .errors = {ERR_NOT_FOUND},
        .handle = handle_get_archive,
    },
    {
        .name = "pubsub_push",
        .method = HTTP_POST,
        .path = "/v1/pubsub/push",
        .others_token = "Google's, for the audience and the account that the configuration names",
        .summary = "A request for an allocation that Google Pub/Sub pushes.",
        .about = "The endpoint of a push subscription with authentication. Answered when the "
                 "result is published, or when the message has gone to the dead letters because "
                 "it cannot be read. Anything else than 204 brings the message again.",
        .asks = &pubsub_push_shape,
        .body_max = PUSH_MAX,
        .errors = {ERR_NO_ACCESS_TOKEN, ERR_BAD_ACCESS_TOKEN, ERR_NOT_FOUND},
        .handle = handle_pubsub_push,
        .silent = true,
    },
};

const size_t n_operations = sizeof(operations) / sizeof(operations[0]);
