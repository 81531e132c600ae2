/* Seats: one player's place in a session. Visible inside src/core only. */
#pragma once

#include "base/list.h"
#include "core/core.h"
#include "core/object.h"

struct server;
struct session;

enum seat_state { SEAT_TAKEN = 1, SEAT_LEFT = 2 };

struct seat {
    struct object object;
    struct row_seat row;
    struct session *session;
    struct link in_session;
};

void seat_validate(struct core *core, struct server *server,
                   const struct chat_sv_validate_token *validate);
bool seat_is_taken(const struct core *core, const struct server *server,
                   const struct chat_sv_validate_token *validate);
void seat_left(struct core *core, struct server *server, int32_t lobby, int32_t account);

/* Takes away every place that account has, in whichever fleet, for he is banned; why is a literal.
 */
void seats_kick(struct core *core, int32_t account, struct str why);

/* The match is over: nobody sits there any more. */
void seats_release(struct core *core, struct session *session);
int seat_load_row(struct core *core, const struct row_seat *row);
void seat_unlink(struct core *core, struct seat *seat);
