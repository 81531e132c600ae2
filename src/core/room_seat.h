/* Seats in rooms: one player's place. Visible inside src/core only. */
#pragma once

#include "base/chain.h"
#include "base/list.h"
#include "core/core.h"
#include "core/deadline.h"
#include "core/object.h"

struct room;
struct room_ticket;

/*              JOINED
 *   RESERVED ──────────▶ TAKEN
 *       │ deadline, LEFT   │ LEFT
 *       └────────▶ gone ◀──┘     also: the room is over, the player moves, kicked
 *
 * A seat in a room that is STARTING counts there, but is not yet where the player is: he keeps the
 * one he has until the room opens. */
enum room_seat_state {
    ROOM_SEAT_RESERVED = 1,
    ROOM_SEAT_TAKEN,
    ROOM_SEAT_ROUTING, /* counts, but is not yet where he is: a proxy must know him first */
    ROOM_SEAT_STATES
};

enum { SEAT_KEY_RAW = 32, SEAT_KEY_SIZE = 72 };

struct room_seat {
    struct object object;
    struct row_room_seat row; /* owns its long fields */
    struct room *room;
    struct deadline deadline; /* RESERVED in an OPEN room whose host is not away */
    bool routed;              /* ROUTING: a proxy lets him in, but others of his party not yet */
    struct link in_room;
    struct chain_link by_player; /* by account, whatever the fleet */
    struct chain_link by_token;
    uint64_t token_key; /* in seats_by_token */
};

/* True when it is where the player is, not where he may be later. */
bool room_seat_is_his(const struct room_seat *seat);

struct room_seat *room_seat_find(const struct core *core, int64_t id);

/* The seat that the player has in the fleet, or NULL. Seats in STARTING rooms are none yet. */
struct room_seat *room_seat_of(const struct core *core, int32_t fleet, struct str account);

/* True when he has none yet that is his, but one in a room that is not there yet. */
bool room_seat_is_coming(const struct core *core, int32_t fleet, struct str account);

/* The key of a seat: its id and 256 derived bits, as text. */
struct str seat_key(const struct core *core, int64_t seat, char dst[SEAT_KEY_SIZE]);

/* The seat on that server which the key opens, or NULL; in the same time whatever differs. */
struct room_seat *seat_of_key(const struct core *core, int64_t server, struct str key);

/* A seat for the player, counted now; ticket is the room's ticket or the allocation it is for,
 * multi the party he comes with or 0. In a STARTING room its time begins when the room opens. */
struct room_seat *room_seat_new(struct core *core, struct room *room, int64_t ticket,
                                const struct place_player *player, int64_t multi);

/* He asks again for the room in which he has a reservation, or will have one when it opens: the
 * same seat, and its time anew. */
void room_seat_again(struct core *core, struct room_seat *seat, int64_t ticket,
                     const struct place_player *player);

/* A proxy lets him in: this is where he is. */
void room_seat_routed(struct core *core, struct room_seat *seat);

/* He has joined. */
void room_seat_take(struct core *core, struct room_seat *seat, int64_t seq);

/* TAKEN: his key was shown, by that event; or may be once more (0), for he comes back to it. */
void room_seat_shown(struct core *core, struct room_seat *seat, int64_t seq);

/* The seat is free; kick: the game server is told to let him go when he is there. why is a literal.
 */
void room_seat_leave(struct core *core, struct room_seat *seat, enum seat_end end, struct str why);
void room_seat_kick(struct core *core, struct room_seat *seat, enum seat_end end, struct str why);

/* Takes away every seat in rooms that the account has, in whichever fleet, for he is banned; why is
 * a literal. */
void room_seats_kick(struct core *core, struct str account, struct str why);

/* The note of a key that was shown and not taken. */
struct effect *room_seat_refused(struct core *core, const struct room_seat *seat, conn_id conn,
                                 int err);

/* The player has this seat from now on, and no other in the fleet. */
void room_seat_move_here(struct core *core, struct room_seat *seat);

/* All seats of a room: the room is over for that reason; it opens; its host is away; its host is
 * back; we could not store anything for a while; another room is started in its place. */
void room_seats_release(struct core *core, struct room *room, enum end_reason reason,
                        struct str why);
void room_seats_open(struct core *core, struct room *room);
void room_seats_stand(struct core *core, struct room *room);
void room_seats_run(struct core *core, struct room *room);
void room_seats_give_time(struct core *core, struct room *room);
void room_seats_hand_on(struct core *core, struct room *from, struct room *to);

void room_seat_unlink(struct core *core, struct room_seat *seat); /* and deletes it */
int room_seat_load_row(struct core *core, const struct row_room_seat *row);
void room_seat_loaded(struct core *core, struct room_seat *seat);
void room_seat_deadline(struct core *core, struct room_seat *seat);
