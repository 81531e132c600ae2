/* What `muster top` shows: a frame made of what Muster last said and of what the person at the keys
 * chose. Pure: whoever calls it asks, keeps and draws. */
#pragma once

#include "base/json.h"
#include "cli/term.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum top_sort { TOP_WORST, TOP_LOAD, TOP_ROOMS, TOP_HEARD, TOP_SORTS };

/* Everything is borrowed. */
struct top_view {
    const char *url;
    int64_t now_ms; /* wall time */

    const struct json *status; /* GET /v1/status; NULL = nothing was heard yet */
    const struct json *health; /* GET /v1/health */
    const struct json *const *hosts;
    size_t n_hosts;

    const char *why; /* the last question had no answer: why; NULL = it had */
    int64_t away_ms; /* so long ago the first such question was asked */
    int64_t age_ms;  /* of what is shown */
    bool paused;
    bool help;
    bool all_regions;   /* those without servers and hosts too */
    const char *region; /* only what belongs there; "" = all */
    enum top_sort sort;
};

/* Appends a frame that has at most `rows` lines, as wide as it likes; 0 = all there is to say. A
 * frame for no terminal has no keys in its title. */
void top_view_put(struct buf *out, const struct term *term, const struct top_view *v, size_t rows);

/* How `rows` lines are shared by n sections that want `wanted` lines each, a title and a blank line
 * not counted: every one that fits gets some, then in turn. A section that gets none is left out.
 */
void top_view_share(size_t rows, const size_t *wanted, size_t *ret, size_t n);

/* The region after that one, of those with servers or hosts; "" after the last. The text is of the
 * status. */
struct str top_view_next_region(const struct top_view *v);

/* Sorts hosts, the worst first or by that which is chosen. */
void top_view_sort(const struct json **hosts, size_t n, enum top_sort sort);
