/* The rooms of `muster dev`: where the arena is, the configuration that names it, and the agent's
 * access token. Texts are written into what the caller owns. */
#pragma once

#include <stdbool.h>

enum { DEMO_PATH_MAX = 512, DEMO_WHY_MAX = 256, DEMO_TOKEN_MAX = 2048 };

/* Writes DATA/dev.yaml: the fleet of the demo game servers and, when the arena stands beside this
 * program, one of arenas; with `faults` short timeouts, so that what fails is seen to. False with a
 * sentence when it cannot be written. *ret_arena says whether there is one. */
bool demo_rooms_configure(const char *data, bool faults, char ret_path[DEMO_PATH_MAX],
                          bool *ret_arena, char why[DEMO_WHY_MAX]);

/* A token for an agent from the Muster at that address, with the folder's own. False with a
 * sentence. */
bool demo_rooms_token(const char *http, const char *data, char ret[DEMO_TOKEN_MAX],
                      char why[DEMO_WHY_MAX]);
