#include "store/lease.h"

#include "base/plant.h"

#include <assert.h>

void lease_init(struct lease *l, int64_t node, int64_t lease_ms)
{
    assert(node != 0 && lease_ms > 0);
    *l = (struct lease){.node = node, .lease_ms = lease_ms};
}

bool lease_watch(struct lease *l, const struct lease_row *row, int64_t now_ms)
{
    if (!l->watching || l->seen.epoch != row->epoch || l->seen.beat != row->beat) {
        l->seen_ms = now_ms;
        l->watching = true;
    }
    l->seen = *row;
    /* An earlier life of this node is over: its data folder's lock is ours. */
    if (row->holder == 0 || row->holder == l->node)
        return true;
    return now_ms - l->seen_ms >= l->lease_ms;
}

static void hold(struct lease *l, int64_t sent_ms)
{
    l->until_ms = sent_ms + l->lease_ms - (PLANTED(lease_to_the_end) ? 0 : l->lease_ms / 10);
}

void lease_taken(struct lease *l, int64_t epoch, int64_t sent_ms)
{
    l->held = true;
    l->epoch = epoch;
    hold(l, sent_ms);
}

void lease_renewed(struct lease *l, int64_t sent_ms)
{
    assert(l->held);
    hold(l, sent_ms);
}

void lease_lost(struct lease *l)
{
    l->held = false;
    l->watching = false;
}

bool lease_holds(const struct lease *l, int64_t now_ms)
{
    return l->held && now_ms < l->until_ms;
}

int64_t lease_renew_ms(const struct lease *l)
{
    return l->lease_ms / 4;
}

int64_t lease_watch_ms(const struct lease *l)
{
    return l->lease_ms / 10;
}
