/* Why a ticket ended as it did, as a sentence for people. */
#pragma once

#include "base/buf.h"
#include "core/view.h"

/* Appends it, without a newline. server is the one the ticket was given, NULL when there is none or
 * it is known no more. */
void why_sentence(const struct view_ticket *t, const struct view_server *server,
                  const struct core_config *config, struct buf *out);

/* The same of a ticket for a room; room is the one it was given, NULL as above. */
void why_room_sentence(const struct view_room_ticket *t, const struct view_room *room,
                       struct buf *out);

/* … and of an allocation; room is where it was placed or for which it waits, NULL as above. */
void why_allocation_sentence(const struct view_allocation *a, const struct view_room *room,
                             struct buf *out);
