/* Server-sent events, taken apart as their bytes come. Embedded in whoever reads a stream; pure. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>

enum { SSE_ID_MAX = 64, SSE_LINE_MAX = 1024 * 1024 };

struct sse_event {
    struct str kind; /* "message" when it says none */
    struct str data;
};

/* Returns false to read no more. */
typedef bool sse_on_event(void *user, const struct sse_event *event);

struct sse {
    char id[SSE_ID_MAX]; /* of the last event that was handed out: goes on from there */
    struct buf line;     /* what has come of the line under way */
    struct buf kind;     /* of the event under way … */
    struct buf data;
    char next_id[SSE_ID_MAX];
};

void sse_done(struct sse *s);

/* A new connection: forgets a half event and keeps id. */
void sse_restart(struct sse *s);

/* Calls on_event for each event that piece completes. False when on_event wants no more, or a line
 * is too long to be an event. */
bool sse_take(struct sse *s, struct str piece, sse_on_event *on_event, void *user);
