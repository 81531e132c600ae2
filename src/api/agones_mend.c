/* That a token is to come or go is said once, and we may be killed before it is done; or a change
 * came to nothing while core changed its mind. So GameServers are compared with core, a few at a
 * time, and what is found odd twice in a row, with nothing under way about it, is mended. */
#include "api/agones_own.h"

#include "core/view.h"
#include "store/pipeline.h"

#include <string.h>

enum {
    LOOK_MS = 100,
    LOOKS_MIN = 16, /* GameServers compared each time … */
    ROUND = 20,     /* … or so that all are, in that many times */
};

/* The tokens that core has there. */
static void wanted_at(const struct gameserver *g, struct buf *ret)
{
    const struct core *core = pipeline_core(g->fleet->agones->doors->pipeline);
    int64_t room = view_room_of_server(core, g->server);
    struct view_route route;
    for (int64_t seat = 0; (seat = view_next_seat_in(core, room, seat)) != 0;) {
        if (!view_route(core, seat, &route))
            continue;
        if (ret->len > 0)
            buf_append(ret, ",", 1);
        buf_append(ret, route.token, strlen(route.token));
    }
}

/* Calls it odd, or mends it, for each token of `of` that `in` has not. Returns what was odd. */
static uint64_t compare(struct gameserver *g, struct str of, struct str in, bool on, bool mend)
{
    uint64_t odd = 0;
    struct str token;
    while (tokens_next(&of, &token)) {
        if (tokens_have(in, token) || token.len >= AGONES_TOKEN_MAX)
            continue;
        odd += str_hash(on ? 1 : 2, token) | 1;
        if (mend && route_is_quiet(g->fleet->agones, token))
            route_mend(g, token, on);
    }
    return odd;
}

static void look(struct gameserver *g)
{
    struct buf wanted = {0};
    struct buf had = {0};
    wanted_at(g, &wanted);
    buf_append(&had, g->tokens, strlen(g->tokens)); /* mending may replace them */
    struct str is = {(const char *)had.data, had.len};
    struct str shall = {(const char *)wanted.data, wanted.len};
    uint64_t odd = compare(g, shall, is, true, false) + compare(g, is, shall, false, false);
    if (odd != 0 && odd == g->odd) {
        (void)compare(g, is, shall, false, true);
        (void)compare(g, shall, is, true, true);
        odd = 0;
    }
    g->odd = odd;
    buf_done(&wanted);
    buf_done(&had);
}

static bool is_quiet(const struct gameserver *g)
{
    return g->playing && !g->shutdown && !g->presumed && !link_in_list(&g->in_busy);
}

/* Those that were looked at go to the end of the fleet. */
static void look_at_some(struct cluster_fleet *f)
{
    size_t n = f->playing / ROUND > LOOKS_MIN ? f->playing / ROUND : LOOKS_MIN;
    size_t steps = f->playing;
    LIST_EACH(&f->playing_ones, g, struct gameserver, in_playing)
    {
        if (n-- == 0 || steps-- == 0)
            return;
        list_remove(&g->in_playing);
        list_append(&f->playing_ones, &g->in_playing);
        if (is_quiet(g))
            look(g);
    }
}

void mend_run(struct agones *a)
{
    if (a->now_ms < a->mended_ms + LOOK_MS)
        return;
    a->mended_ms = a->now_ms;
    for (size_t i = 0; i < a->n_fleets; i++) {
        if (cluster_fleet_is_current(&a->fleets[i]))
            look_at_some(&a->fleets[i]);
    }
}
