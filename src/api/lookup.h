/* Looking things up in the history: what /v1/players/{account}/journey, /v1/refusals and
 * /v1/changes answer. The files are read on libuv's threads, a few lookups at a time; the loop only
 * hands the finished answer on.
 *
 *   handler ─▶ waiting (a line) ─▶ reading, on another thread ─▶ call_answer
 *   at any time: the client is gone; then the reading stops at the next block and nothing is said.
 *
 * Embedded in rest. */
#pragma once

#include "api/shape.h"
#include "base/list.h"

#include <stdbool.h>

struct call;
struct lookup;
struct history;

enum {
    LOOKUPS_AT_ONCE = 2, /* libuv has four threads, which others need too */
    LOOKUPS_WAITING = 64,
    LOOKUP_PATIENCE_MS = 3000,
};

struct lookups {
    struct history *history; /* NULL = none is kept */
    struct list waiting;
    int n_waiting;
    int reading;
};

/* The client is gone, or was told something else. NULL is fine. */
void lookup_drop(struct lookup *l);

void handle_journey(struct call *c);
void handle_refusals(struct call *c);
void handle_changes(struct call *c);

extern const struct shape journey_shape;
extern const struct shape refusals_shape;
