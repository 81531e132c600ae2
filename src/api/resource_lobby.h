/* Resources of lobbies: the shapes of what is asked for and shown of them. */
#pragma once

#include "api/shape.h"
#include "core/view.h"

extern const struct shape lobby_seat_shape;   /* read by api/lobby_body.h */
extern const struct shape lobby_shape;        /* struct view_lobby */
extern const struct shape lobby_whole_shape;  /* struct lobby_answer */
extern const struct shape lobby_player_shape; /* struct view_lobby_player */
extern const struct shape lobby_group_shape;  /* struct lobby_group */

/* A lobby and who is in it. */
struct lobby_answer {
    struct view_lobby view;
    const struct view_lobby_player *players;
    size_t n_players;
};

/* Those of a lobby who came together. */
struct lobby_group {
    const struct lobby_answer *lobby;
    int8_t group;
};

/* Writes the list of its groups; object is a struct lobby_answer. */
void lobby_write_groups(struct json_writer *w, const void *object,
                        const struct core_config *config);

/* Words for filters and schemas; closed by NULL. */
extern const char *const lobby_state_words[];
extern const char *const lobby_cause_words[];
extern const char *const lobby_queue_words[];
