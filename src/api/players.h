/* Players as operators see them: handlers and what they answer with. Nothing is owned here. */
#pragma once

#include "api/shape.h"

struct call;

void handle_list_players(struct call *c);
void handle_get_player(struct call *c);

extern const struct shape place_shape; /* struct view_place */
extern const struct shape known_player_shape;
