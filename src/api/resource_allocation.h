/* Resources of allocations: the shapes of what is asked for and answered in envelopes, and of
 * allocations, queues, parties and routes as operators see them. */
#pragma once

#include "api/shape.h"
#include "core/view.h"

extern const struct shape allocation_request_shape; /* read by wire/envelope.h */
extern const struct shape allocation_result_shape;  /* written by it, too */
extern const struct shape allocation_member_shape;
extern const struct shape allocation_error_shape;
extern const struct shape allocation_shape;       /* struct view_allocation */
extern const struct shape allocation_whole_shape; /* struct allocation_answer */
extern const struct shape allocation_why_shape;   /* struct allocation_why */
extern const struct shape queue_shape;            /* struct view_queue */
extern const struct shape party_shape;            /* struct party_answer */
extern const struct shape route_shape;            /* struct view_route */

/* An allocation and the result it has now. */
struct allocation_answer {
    struct view_allocation view;
    struct str result; /* JSON; empty = none yet */
};

struct allocation_why {
    struct view_allocation view;
    const char *sentence;
};

/* Those who came together and are still there. */
struct party_answer {
    int64_t id;
    const char *fleet;
    int64_t room;
    const struct view_room_seat *seats;
    size_t n_seats;
};

/* Words for filters and schemas; closed by NULL. */
extern const char *const allocation_state_words[];
