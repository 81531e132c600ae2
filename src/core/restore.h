/* A restore: the folder was set back to an older moment, and an epoch began. What that means for
 * the rows is written once, by core_restore; what must be remembered of it is here. Visible inside
 * src/core only; owned by core. */
#pragma once

#include "core/core.h"
#include "core/object.h"

struct restore {
    struct object object;
    struct row_restore row;
};

/* Whether a server with this number may have been started in a time that was lost, and players may
 * still be on it: until the longest that a room may be open has passed since. */
bool restore_may_hold(const struct core *core, int64_t server);

/* Whether we were set back since that moment. */
bool restore_is_after(const struct core *core, int64_t core_ms);

/* Whether the room of that server is older than a restore, so that players may be in it who got
 * their seats in the lost time. */
bool restore_may_hide(const struct core *core, int64_t server);

int restore_load_row(struct core *core, const struct row_restore *row);

/* ── while it is written ───────────────────────────────────────────────────────────────────── */

enum { RESTORES_KEPT = 8 };

/* The rows as they were staged, and what was found in them. */
struct setting_back {
    struct core *core;
    struct batch *out;
    const struct core_back *how;
    int64_t lost_s;     /* how old the rows are */
    int64_t begun_from; /* the least number of a server that was being started; 0 = none was */
    int32_t *seats;     /* by room: parallel to rooms */
    struct change **rooms;
    size_t n_rooms;
    int64_t epochs[RESTORES_KEPT]; /* the newest, ascending */
    size_t n_epochs;
};

void restore_put(struct setting_back *s, enum row_kind kind, const void *row);

/* restore_begun.c: ends what was being started. Rows that go are marked gone among the staged. */
void restore_end_begun(struct setting_back *s);
