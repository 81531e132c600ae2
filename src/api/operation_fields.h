/* What rows of the table of operations have in common: arguments that many take, and words for
 * them. For operations.c alone. */
#pragma once

#include "api/access.h"
#include "api/call.h"
#include "api/operation.h"
#include "api/resource.h"
#include "base/err.h"
#include "wire/settings.h"

enum {
    YEAR_S = 366 * 24 * 3600,
    NAME_MAX_BYTES = 64,
    LOBBY_TYPE_MAX = 10,
    LOBBY_RATING_MAX = 1000 * 1000,
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
#define MOMENT(name_, help_)                                                                       \
    {                                                                                              \
        .name = (name_), .kind = FIELD_TEXT, .min = 1, .max = 32, .help = (help_)                  \
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
        .help = "the region, by its name, comes first; else it is chosen"                          \
    }
#define LATENCIES                                                                                  \
    {                                                                                              \
        .name = "latencies", .kind = FIELD_JSON, .max = 4096,                                      \
        .help = "milliseconds to regions by their names, as {\"EU\": 31}: no others are taken"     \
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
#define WHOSE_NAME                                                                                 \
    {                                                                                              \
        .name = "player", .kind = FIELD_TEXT, .min = 1, .max = ACCESS_ACCOUNT_MAX,                 \
        .help = "the name is one that this player gave himself; absent: a service gave it"         \
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
        ERR_RATE_LIMITED, ERR_TOO_MANY, ERR_NO_HOST, ERR_NO_PLACE, ERR_SPAWN_FAILED,               \
        ERR_SPAWN_TIMEOUT, ERR_REGION_NOT_SUPPORTED, ERR_TICKET_CANCELLED, ERR_HOST_AWAY,          \
        ERR_ALREADY_OVER, ERR_ALLOCATION_TIMEOUT
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
