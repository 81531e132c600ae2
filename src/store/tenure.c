#include "store/tenure.h"

#include "base/clock.h"
#include "base/log.h"

#include <inttypes.h>

void tenure_init(struct tenure *t, const struct cell_term *term, int64_t node)
{
    t->node = node;
    t->epoch = term->epoch;
    t->until_ms = term->lease.held ? term->lease.until_ms : 0;
}

void tenure_end(struct tenure *t, const char *why)
{
    if (atomic_exchange(&t->until_ms, 0) == 0 || !why)
        return;
    char quoted[LOG_QUOTE_MAX + 8];
    log_line(LOG_WARN, "leads no more", "epoch=%" PRId64 " why=%s", t->epoch,
             log_quote(quoted, str_of(why)));
}

bool tenure_holds(struct tenure *t)
{
    int64_t until_ms = t->until_ms;
    if (clock_boot_ms() < until_ms)
        return true;
    if (until_ms != 0)
        tenure_end(t, "the lease was not renewed in time");
    return false;
}

void tenure_prolong(struct tenure *t, int64_t until_ms)
{
    int64_t was = t->until_ms;
    while (was != 0 && !atomic_compare_exchange_weak(&t->until_ms, &was, until_ms))
        ;
}
