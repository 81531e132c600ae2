/* Players: what the player API answers with, what its handlers (play*.c) share, and what the
 * agents' door needs of it: the access token of a player who has joined. Nothing is owned here. */
#pragma once

#include "api/shape.h"
#include "base/buf.h"
#include "base/str.h"
#include "core/view.h"

#include <stdbool.h>

struct call;
struct rest;

enum { PLAY_WHY_MAX = 224 };

/* ── who has joined ────────────────────────────────────────────────────────────────────────── */

/* What a game server is told of a player who came with his key: his access token and the words of
 * its scopes. Both start empty; play_joined_done frees them, also after a failure. */
struct play_joined {
    struct buf token;
    struct buf scopes; /* "game,profile": a comma list */
    bool elsewhere;    /* the token is as he brought it: its issuer must extend it (login_extend) */
};

/* Opens `sealed`, the token of a seat (view_seat_of_key, view_room_seat), and, when both
 * extend_token and extend_scopes are given (not empty), extends it: the same account and gamespace,
 * its own scopes and those of extend_token that extend_scopes (a comma list, or "*" for all) asks
 * for. A repeat gives the same token. To be called before EVENT_AGENT is stepped, because a seat
 * stays reserved when this fails. Nothing sealed gives nothing: a service placed him, who brought
 * no token of his. 0, or an error with a sentence: ERR_BAD_ACCESS_TOKEN, ERR_NO_SIGNING_KEY (the
 * player's token was issued elsewhere, and there is no login service to ask, or that of the game
 * server was while his is ours). */
int play_joined(struct rest *r, struct str sealed, struct str extend_token,
                struct str extend_scopes, struct play_joined *ret, char why[PLAY_WHY_MAX]);

/* Replaces the token by what its issuer gave. 0, or ERR_BAD_ACCESS_TOKEN with a sentence. */
int play_joined_extended(struct rest *r, struct str token, struct play_joined *j,
                         char why[PLAY_WHY_MAX]);
void play_joined_done(struct play_joined *j);

/* ── answers ───────────────────────────────────────────────────────────────────────────────── */

extern const struct shape placed_shape;       /* struct placed_answer */
extern const struct shape placed_multi_shape; /* struct placed_answer */
extern const struct shape open_rooms_shape;   /* written by hand */
extern const struct shape open_room_shape;    /* struct view_room */
extern const struct shape slot_shape;         /* struct placed_seat */
extern const struct shape location_shape;     /* struct placed */
extern const struct shape play_regions_shape; /* struct play_regions */
extern const struct shape play_region_shape;  /* struct region_config */
extern const struct shape map_place_shape;    /* struct region_config */
extern const struct shape counts_shape;       /* struct core_counts */
extern const struct shape player_seat_shape;  /* struct player_seat */
extern const struct shape player_shape;       /* struct player_answer */
extern const struct shape issued_ban_shape;   /* struct view_ban */
extern const struct shape played_ban_shape;   /* struct view_ban */
extern const struct shape nothing_shape;      /* no keys */
extern const struct shape refused_shape;      /* struct play_refused */

/* Texts end with a NUL. */
struct placed_answer {
    int64_t room;
    int64_t ticket;
    int64_t slot; /* of the only one */
    const char *key;
    const struct placed *placed;
};

struct play_regions {
    const char *mine; /* "" = nowhere */
};

struct player_seat {
    struct view_room_seat seat;
    struct view_room room;
};

struct player_answer {
    const struct core *core;
    const char *account;
};

/* One of several players for whom none was placed. */
struct play_refused {
    int32_t index; /* in the list that came */
    const char *account;
    const char *why;
};

/* ── pieces ────────────────────────────────────────────────────────────────────────────────── */

enum { PLAY_DATE_MAX = 24 };

/* "2026-11-16 08:15:30" in UTC. Returns dst. */
const char *play_date_print(int64_t wall_ms, char dst[PLAY_DATE_MAX]);

/* False when it is no such date. */
bool play_date_read(struct str text, int64_t *ret_wall_ms);

/* The fleet that a path names by game and server. 0, or ERR_NOT_FOUND with the refusal rendered. */
int play_fleet(struct call *c, struct view_fleet *ret);

/* The filter in the argument `settings`: NULL when there is none. 0, or ERR_BAD_ARGUMENT with the
 * refusal rendered. To be freed with filter_free. */
int play_filter(struct call *c, struct filter **ret);

/* Reads what tells where a player is into p: the argument `latencies` and the place of his address
 * on the map; play_where also the argument `region`. 0, or ERR_BAD_ARGUMENT with the refusal
 * rendered. */
int play_nearness(struct call *c, struct str address, struct place *p);
int play_where(struct call *c, struct str address, struct place *p);

/* ── handlers ──────────────────────────────────────────────────────────────────────────────── */

/* play_place.c */
void handle_create(struct call *c);
void handle_join(struct call *c);
void handle_enter(struct call *c);
void handle_create_multi(struct call *c);
void handle_join_multi(struct call *c);

/* play_look.c */
void handle_rooms(struct call *c);
void handle_regions(struct call *c);
void handle_counts(struct call *c);
void handle_player(struct call *c);
void handle_players(struct call *c);

/* play_ban.c */
void handle_ban_issue(struct call *c);
void handle_ban_get(struct call *c);
void handle_ban_find(struct call *c);
void handle_ban_update(struct call *c);
void handle_ban_lift(struct call *c);
