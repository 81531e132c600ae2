#include "api/resource_lobby.h"

#include "api/shape_rows.h"
#include "base/err.h"

const char *const lobby_state_words[] = {"loading", "started", "ended", "aborted", NULL};
const char *const lobby_cause_words[] = {
    "allocation", "loading", "disconnected", "operator", "server", "too_long", NULL};
const char *const lobby_queue_words[] = {"in_lobby", "in_match", "not_queued", "queued", NULL};

const struct shape lobby_seat_shape = {
    .name = "LobbySeat",
    .help = "A player of a lobby that is wanted.",
    .rows =
        (const struct shape_row[]){
            {.name = "account", .kind = SHAPE_INT32, .help = "above 0"},
            {.name = "name",
             .kind = SHAPE_TEXT,
             .may_be_absent = true,
             .help = "at most 64 bytes; absent: the account"},
            {.name = "slot",
             .kind = SHAPE_INT8,
             .may_be_absent = true,
             .help = "0 to 127, another for each of a team; absent: his place in the list"},
            {0},
        },
};

/* Teams and groups are numbered from 1 where people see them. */
static void write_team(struct json_writer *w, const void *object, const struct core_config *config)
{
    (void)config;
    json_int(w, ((const struct view_lobby_player *)object)->team + 1);
}

static void write_his_group(struct json_writer *w, const void *object,
                            const struct core_config *config)
{
    (void)config;
    json_int(w, ((const struct view_lobby_player *)object)->group + 1);
}

const struct shape lobby_player_shape = {
    .name = "LobbyPlayer",
    .help = "A player in a lobby.",
    .rows =
        (const struct shape_row[]){
            ROW(INT32, "account", struct view_lobby_player, account, NULL),
            ROW(TEXT, "name", struct view_lobby_player, name, NULL),
            ROW_WRITTEN(INT8, "team", write_team, "1 or 2"),
            ROW(INT8, "slot", struct view_lobby_player, slot, NULL),
            ROW_WRITTEN(INT8, "group", write_his_group, "whom he came with, see groups"),
            ROW(BOOL, "loaded", struct view_lobby_player, loaded, NULL),
            ROW(BOOL, "connected", struct view_lobby_player, connected,
                "to the client port: now, or when it was over"),
            {0},
        },
};

static void write_group(struct json_writer *w, const void *object, const struct core_config *config)
{
    (void)config;
    json_int(w, ((const struct lobby_group *)object)->group + 1);
}

static void write_accounts(struct json_writer *w, const void *object,
                           const struct core_config *config)
{
    const struct lobby_group *g = object;
    (void)config;
    json_open_array(w);
    for (size_t i = 0; i < g->lobby->n_players; i++) {
        if (g->lobby->players[i].group == g->group)
            json_int(w, g->lobby->players[i].account);
    }
    json_close_array(w);
}

static void write_queue(struct json_writer *w, const void *object, const struct core_config *config)
{
    (void)config;
    json_text(w, str_of(((const struct lobby_group *)object)->lobby->view.queue));
}

const struct shape lobby_group_shape = {
    .name = "LobbyGroup",
    .help = "Players of a lobby who came together, and where they stand in the matchmaker's queue.",
    .rows =
        (const struct shape_row[]){
            ROW_WRITTEN(INT8, "group", write_group, "from 1, in the order of the request"),
            ROW_WRITTEN(INTS, "players", write_accounts, "their accounts"),
            {.name = "queue",
             .kind = SHAPE_WORD,
             .words = lobby_queue_words,
             .write = write_queue,
             .help = "queued: the lobby was aborted, and they are to be queued again"},
            {0},
        },
};

static bool has_group(const struct lobby_answer *v, int8_t group)
{
    for (size_t i = 0; i < v->n_players; i++) {
        if (v->players[i].group == group)
            return true;
    }
    return false;
}

void lobby_write_groups(struct json_writer *w, const void *object, const struct core_config *config)
{
    const struct lobby_answer *v = object;
    json_open_array(w);
    for (int8_t group = 0; group < LOBBY_PLAYERS_MAX; group++) {
        struct lobby_group g = {v, group};
        if (has_group(v, group))
            shape_write(w, &lobby_group_shape, &g, config);
    }
    json_close_array(w);
}

static void write_players(struct json_writer *w, const void *object,
                          const struct core_config *config)
{
    const struct lobby_answer *v = object;
    json_open_array(w);
    for (size_t i = 0; i < v->n_players; i++)
        shape_write(w, &lobby_player_shape, &v->players[i], config);
    json_close_array(w);
}

static void write_error(struct json_writer *w, const void *object, const struct core_config *config)
{
    const struct view_lobby *v = object; /* of a struct lobby_answer, too: it comes first there */
    (void)config;
    if (v->err == 0)
        json_none(w);
    else
        json_text(w, str_of(err_code(v->err)));
}
_Static_assert(offsetof(struct lobby_answer, view) == 0, "write_error takes both");

#define LOBBY_ROWS(struct_, at_)                                                                   \
    ROW(ID, "id", struct_, at_ id, "also what players and servers know it by"),                    \
        ROW(TEXT, "fleet", struct_, at_ fleet, NULL),                                              \
        ROW(TEXT, "region", struct_, at_ region_name, "AUTO: any"),                                \
        ROW(INT8, "type", struct_, at_ game_type, "of the game"),                                  \
        ROW(INT8, "mode", struct_, at_ game_mode, "of the game"),                                  \
        ROW(TEXT, "map", struct_, at_ map, NULL),                                                  \
        ROW(INT32, "rating", struct_, at_ average_rating, "of its players, on average"),           \
        ROW_WORD("state", lobby_state_words, struct_, at_ state, NULL),                            \
        ROW_WORD_OR_NULL("cause", lobby_cause_words, struct_, at_ cause,                           \
                         "why it was aborted, or ended otherwise than by its server's word"),      \
        ROW_OR_NULL(TEXT, "reason", struct_, at_ reason, "the sentence that its players hear"),    \
        ROW_WRITTEN_OR_NULL(TEXT, "error", write_error,                                            \
                            "cause allocation: its code; cause disconnected: banned"),             \
        ROW_OR_NULL(INT32, "gone", struct_, at_ gone,                                              \
                    "cause disconnected: the account that was gone, or was banned"),               \
        ROW(BOOL, "requeue", struct_, at_ requeue,                                                 \
            "when it is aborted, its groups are to be queued again"),                              \
        ROW_WORD("queue", lobby_queue_words, struct_, at_ queue, "where all its groups stand"),    \
        ROW(INT32, "size", struct_, at_ players, "players in it"),                                 \
        ROW(INT32, "loaded", struct_, at_ loaded, "of them have loaded"),                          \
        ROW(INT32, "connected", struct_, at_ connected,                                            \
            "of them are connected, or were when it was over"),                                    \
        ROW(INT32, "untold", struct_, at_ untold, "of them have not heard that it is over"),       \
        ROW(INT32, "moves", struct_, at_ moves, "servers that were lost before the start"),        \
        ROW_OR_NULL(ID, "ticket", struct_, at_ ticket, "the last request for a server"),           \
        ROW_OR_NULL(ID, "session", struct_, at_ session, "its match; null: no server yet"),        \
        ROW_OR_NULL(ID, "server", struct_, at_ server, NULL),                                      \
        ROW(BOOL, "allocated", struct_, at_ allocated, "a server holds it, and is there")

#define LOBBY_TIMES(struct_, at_)                                                                  \
    ROW(TIME, "created_at", struct_, at_ opened_wall_ms, NULL),                                    \
        ROW_OR_NULL(TIME, "started_at", struct_, at_ started_wall_ms, NULL),                       \
        ROW_OR_NULL(TIME, "over_at", struct_, at_ over_wall_ms, "when it was aborted or ended"),   \
        ROW_OR_NULL(TIME, "deadline_at", struct_, at_ deadline_wall_ms,                            \
                    "loading: when it is aborted; over: when it is forgotten")

const struct shape lobby_shape = {
    .name = "Lobby",
    .help = "The players of an accepted match, until it is over.",
    .rows =
        (const struct shape_row[]){
            LOBBY_ROWS(struct view_lobby, ),
            LOBBY_TIMES(struct view_lobby, ),
            {0},
        },
};

const struct shape lobby_whole_shape = {
    .name = "LobbyWithPlayers",
    .help = "A lobby, and who is in it.",
    .rows =
        (const struct shape_row[]){
            LOBBY_ROWS(struct lobby_answer, view.),
            LOBBY_TIMES(struct lobby_answer, view.),
            ROW_ITEMS("players", lobby_player_shape, write_players, NULL),
            ROW_ITEMS("groups", lobby_group_shape, lobby_write_groups, NULL),
            {0},
        },
};
