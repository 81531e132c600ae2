/* The choice of a host: of the healthy ones in a region the one with the lowest max(cpu, memory),
 * counting what was placed there since it last spoke, so that many rooms asked for at once do not
 * all go to the host that was idle five seconds ago. Among equals the one with the fewest rooms,
 * then the oldest. */
#include "core/choice.h"

#include "core/state.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Why the others were not taken. */
struct passed {
    int32_t count[HOST_PASSED_REASONS];
    int32_t tried;
    int64_t silent_ms;  /* the shortest silence of those that are silent */
    int64_t backoff_ms; /* until the first of those that failed may be asked again */
};

static bool is_in(const int64_t *ids, int n, int64_t id)
{
    for (int i = 0; i < n; i++) {
        if (ids[i] == id)
            return true;
    }
    return false;
}

static bool is_better(const struct host *a, const struct host *b)
{
    float load_a = host_load_percent(a);
    float load_b = host_load_percent(b);
    if (load_a < load_b || load_a > load_b)
        return load_a < load_b;
    if (a->n_rooms != b->n_rooms)
        return a->n_rooms < b->n_rooms;
    return a->row.id < b->row.id;
}

static void pass_over(const struct core *core, const struct host *host, struct passed *passed)
{
    enum host_passed_over reason = host_passed_over(host);
    int64_t quiet_ms = core->now.core_ms - host->quiet_core_ms;
    bool first = passed->count[reason]++ == 0;
    if (reason == HOST_PASSED_SILENT && (first || quiet_ms < passed->silent_ms))
        passed->silent_ms = quiet_ms;
    if (reason != HOST_PASSED_FAILING)
        return;
    int64_t backoff_ms = deadline_at_ms(&host->backoff) - deadline_now(core, DEADLINE_AWAKE);
    if (first || backoff_ms < passed->backoff_ms)
        passed->backoff_ms = backoff_ms;
}

static struct host *best_in(const struct core *core, const struct fleet *fleet, int8_t region,
                            const int64_t *except, int n_except, struct passed *passed)
{
    struct host *best = NULL;
    LIST_EACH(&core->hosts_in[region], host, struct host, in_region)
    {
        if (!host_serves(host, fleet))
            continue;
        if (is_in(except, n_except, host->row.id))
            passed->tried++;
        else if (host_passed_over(host) != HOST_PASSED_NOT)
            pass_over(core, host, passed);
        else if (!best || is_better(host, best))
            best = host;
    }
    return best;
}

/* ── the sentence ──────────────────────────────────────────────────────────────────────────── */

static void add(char why[CHOICE_WHY_MAX], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add(char why[CHOICE_WHY_MAX], const char *format, ...)
{
    size_t len = strlen(why);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(why + len, CHOICE_WHY_MAX - len, format, args);
    va_end(args);
}

/* "no healthy host in EU: 2 overloaded, 1 silent for 41 s" */
static void explain(const struct passed *passed, const char *where, char why[CHOICE_WHY_MAX])
{
    const char *before = ": ";
    (void)snprintf(why, CHOICE_WHY_MAX, "no healthy host in %s", where);
    for (int r = HOST_PASSED_REASONS - 1; r > HOST_PASSED_NOT; r--) {
        if (passed->count[r] == 0)
            continue;
        add(why, "%s%d %s", before, passed->count[r],
            host_passed_over_name((enum host_passed_over)r));
        if (r == HOST_PASSED_SILENT)
            add(why, " for %" PRId64 " s", passed->silent_ms / 1000);
        before = ", ";
    }
    if (passed->tried > 0)
        add(why, "%s%d tried already", before, passed->tried);
    else if (before[0] == ':')
        add(why, ": there is none");
}

/* One that failed is known to come back; what a heartbeat may change can change any moment. */
static int64_t retry_ms(const struct passed *passed)
{
    int64_t ms = CHOICE_RETRY_MS;
    bool any_moment =
        passed->count[HOST_PASSED_SILENT] > 0 || passed->count[HOST_PASSED_OVERLOADED] > 0;
    if (passed->count[HOST_PASSED_FAILING] > 0 && (!any_moment || passed->backoff_ms < ms))
        ms = passed->backoff_ms;
    return ms > 1000 ? ms : 1000;
}

struct host *choose_host(const struct core *core, const struct fleet *fleet, int8_t region,
                         bool elsewhere, const int64_t *except, int n_except, struct no_host *ret)
{
    struct passed passed = {0};
    int8_t regions[REGION_CODES];
    char where[64];
    uint64_t allowed = regions_allowed(core, fleet->config ? fleet->config->regions : 0);
    bool here = is_bit(allowed, region);
    int n = regions_by_distance(core, allowed, region, regions);
    ret->retry_ms = CHOICE_RETRY_MS;
    if (!elsewhere && !here) {
        (void)snprintf(ret->why, sizeof(ret->why), "%s does not run in %s", fleet->row.name,
                       region < 0 ? "any region" : region_name(core, region));
        return NULL;
    }
    for (int i = 0; i < n && (elsewhere || regions[i] == region); i++) {
        struct host *host = best_in(core, fleet, regions[i], except, n_except, &passed);
        if (host)
            return host;
    }
    (void)snprintf(where, sizeof(where), "%s%s",
                   region < 0 ? "any region" : region_name(core, region),
                   elsewhere && n > 1 ? " or elsewhere" : "");
    explain(&passed, where, ret->why);
    ret->retry_ms = retry_ms(&passed);
    return NULL;
}
