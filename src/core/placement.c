/* Placement: which server is best. Candidates of one fleet and region stand in a heap by score, so
 * a choice costs O(log n) whatever the size of the fleet. A server is taken out of the heap for as
 * long as something rules it out, and counted under that reason instead. */
#include "base/plant.h"
#include "core/state.h"

double placement_score(const struct server *server)
{
    double load = (double)server_load(server) / (double)server->row.max_sessions;
    return 100.0 - 50.0 * load - 0.2 * (double)server->cpu_percent -
           0.1 * (double)server->memory_percent;
}

bool placement_better(const struct heap_node *a, const struct heap_node *b)
{
    const struct server *x = container_of(a, struct server, place);
    const struct server *y = container_of(b, struct server, place);
    if (x->score != y->score)
        return x->score > y->score;
    if (x->idle_since_core_ms != y->idle_since_core_ms)
        return x->idle_since_core_ms < y->idle_since_core_ms;
    return x->row.id < y->row.id;
}

static bool was_tried(const struct ticket *ticket, const struct server *server)
{
    for (int i = 0; i < ticket->n_tries; i++) {
        if (ticket->tries[i].server == server->row.id)
            return true;
    }
    return false;
}

/* One lobby id stands for one match on a server, whoever owns it: an ACK carries nothing else. That
 * includes a cancelled attempt until no answer to it can be under way (session_blocks). */
static bool is_candidate(const struct core *core, const struct ticket *ticket,
                         const struct server *server)
{
    int32_t lobby = ticket->row.lobby;
    return !was_tried(ticket, server) && !session_blocks(core, server, lobby, ticket->chat) &&
           !server_has_stranger(server, lobby);
}

/* Best candidate of one group. The better ones that this ticket may not have (those it tried, and
 * those that hold an equal lobby id) are taken out while looking and put back. */
static struct server *best_of(struct core *core, struct group *group, const struct ticket *ticket)
{
    struct buf aside = {0};
    struct server *best = NULL;
    for (struct heap_node *top = NULL; (top = heap_top(&group->placeable));) {
        struct server *server = container_of(top, struct server, place);
        if (is_candidate(core, ticket, server)) {
            best = server;
            break;
        }
        heap_remove(&group->placeable, top);
        buf_append(&aside, &top, sizeof(top));
    }
    struct heap_node *const *nodes = (void *)aside.data;
    for (size_t i = 0; i < aside.len / sizeof(*nodes); i++)
        heap_update(&group->placeable, nodes[i]);
    buf_done(&aside);
    return best;
}

struct server *placement_choose(struct core *core, struct ticket *ticket)
{
    struct fleet *fleet = ticket->chat->fleet;
    struct server *best = NULL;
    for (int r = 0; r < PASSED_REASONS; r++)
        ticket->passed[r] = 0;
    for (uint64_t left = (uint64_t)ticket->row.regions; left; left &= left - 1) {
        struct group *group = &fleet->groups[__builtin_ctzll(left)];
        for (int r = 0; r < PASSED_REASONS; r++)
            ticket->passed[r] += group->count[r];
        struct server *server = best_of(core, group, ticket);
        if (server && (!best || placement_better(&server->place, &best->place)))
            best = server;
    }
    return best;
}

bool placement_could(struct core *core, const struct ticket *ticket)
{
    struct fleet *fleet = ticket->chat->fleet;
    for (uint64_t left = (uint64_t)ticket->row.regions; left; left &= left - 1) {
        if (best_of(core, &fleet->groups[__builtin_ctzll(left)], ticket))
            return true;
    }
    return false;
}

bool placement_awaits(const struct core *core, const struct ticket *ticket)
{
    const struct fleet *fleet = ticket->chat->fleet;
    uint64_t regions = (uint64_t)ticket->row.regions;
    int32_t n = 0;
    for (uint64_t left = regions; left; left &= left - 1)
        n += fleet->groups[__builtin_ctzll(left)].awaited;
    for (int i = 0; i < ticket->n_tries; i++) {
        const struct server *tried =
            map_get(&core->servers, (uint64_t)(int64_t)ticket->tries[i].server);
        n -= tried && tried->share.awaited && is_bit(regions, tried->row.region);
    }
    return n > 0 && !PLANTED(refused_early);
}
