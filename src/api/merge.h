/* Merge: sessions, servers and tickets, whoever provides them, as one. Matches and rooms take their
 * numbers from the same counters, so a number means one thing and lists can be walked together.
 * What is returned points into core, as views do. */
#pragma once

#include "core/view.h"

struct session_answer {
    struct view_session view; /* of a room: what it has in common with a match */
    const char *kind;         /* "match" "room" */
    int32_t players;
    const char *version; /* "" for a match; this and the next */
    int64_t host;
};

struct server_answer {
    struct view_server view; /* of a spawned one: what it has in common */
    const char *provider;    /* "chat" "agent" "agones" */
    const char *status;
    struct view_room room; /* of a spawned one */
};

struct ticket_answer {
    struct view_ticket view; /* of one for a room, or an allocation: what it has in common */
    const char *kind;        /* "match" "room" "allocation" */
    const char *verb;        /* "" for a match; this and the next two */
    const char *version;
    const char *account;
    int32_t players;
    struct str why;                    /* a sentence of its own; may be empty */
    struct view_room_ticket room;      /* "room" */
    struct view_allocation allocation; /* "allocation" */
};

struct fleet_answer {
    struct view_fleet view;
    const char *provider;
    const char *game; /* "" for those of no agent; this and the next three */
    const char *server;
    int32_t max_players;
    int32_t rooms;
};

/* False when there is no such thing. */
bool merge_session(const struct core *core, int64_t id, struct session_answer *ret);
bool merge_server(const struct core *core, int64_t id, struct server_answer *ret);
bool merge_ticket(const struct core *core, int64_t id, struct ticket_answer *ret);
bool merge_fleet(const struct core *core, int64_t id, struct fleet_answer *ret);

/* What a stored row of a match shows. */
struct session_answer merge_match(const struct view_session *view);
struct server_answer merge_registered(const struct view_server *view);
struct ticket_answer merge_asked(const struct view_ticket *view);

/* … and of a room. */
struct ticket_answer merge_room_asked(const struct core *core, const struct view_room_ticket *t);

/* As core_next and core_previous; of ROW_session, ROW_server and ROW_ticket those of rooms too. */
int64_t merge_next(const struct core *core, enum row_kind kind, int64_t after);
int64_t merge_previous(const struct core *core, enum row_kind kind, int64_t before);
