/* Resources of rooms: the shapes of hosts, rooms, seats, versions, deployments and bans, and what
 * sessions, servers and tickets show of rooms. */
#pragma once

#include "api/shape.h"
#include "core/view.h"

/* A host, and whether it may be taken away. */
struct host_answer {
    struct view_host view;
    struct view_removal removal;
};

extern const struct shape host_shape;       /* struct view_host */
extern const struct shape host_whole_shape; /* struct host_answer */
extern const struct shape removal_shape;    /* struct view_removal */
extern const struct shape room_shape;       /* struct view_room */
extern const struct shape room_whole_shape; /* struct room_answer */
extern const struct shape room_seat_shape;  /* struct view_room_seat */
extern const struct shape version_shape;    /* struct view_version */
extern const struct shape deployment_shape; /* struct view_deployment */
extern const struct shape ban_shape;        /* struct view_ban */
extern const struct shape exit_shape;       /* struct view_room */
extern const struct shape host_try_shape;   /* struct view_host_try */
extern const struct shape kicked_shape;     /* struct kicked_answer */
extern const struct shape written_shape;    /* struct written_answer */

/* A room and who sits in it. */
struct room_answer {
    struct view_room room;
    const struct view_room_seat *seats;
    size_t n_seats;
};

/* A line was written to a server's input. */
struct written_answer {
    int64_t server;
};

/* A player was thrown out: his seat is gone. */
struct kicked_answer {
    int64_t seat;
};

/* Words for filters and schemas; closed by NULL. */
extern const char *const room_state_words[];
extern const char *const room_seat_state_words[];
extern const char *const host_passed_words[];
extern const char *const host_status_words[];
extern const char *const ban_state_words[];
