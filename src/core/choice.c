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
    int32_t blocked;    /* where the version failed to start */
    int64_t silent_ms;  /* the shortest silence of those that are silent */
    int64_t backoff_ms; /* until the first of those that failed may be asked again */
    const char *why;    /* … how it failed */
    int64_t blocked_ms; /* the same of those where the version did */
    const char *line;   /* … what it said last */
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

static void pass_over(const struct core *core, const struct host *host,
                      enum host_passed_over reason, struct passed *passed)
{
    int64_t quiet_ms = core->now.core_ms - host->quiet_core_ms;
    bool first = passed->count[reason]++ == 0;
    if (reason == HOST_PASSED_SILENT && (first || quiet_ms < passed->silent_ms))
        passed->silent_ms = quiet_ms;
    int64_t backoff_ms = pause_left_ms(core, &host->failing);
    if (reason != HOST_PASSED_FAILING || (!first && backoff_ms >= passed->backoff_ms))
        return;
    passed->backoff_ms = backoff_ms;
    passed->why = host->failed_why;
}

static void passed_block(struct passed *passed, int64_t left_ms, const char *line)
{
    if (passed->blocked++ > 0 && left_ms >= passed->blocked_ms)
        return;
    passed->blocked_ms = left_ms;
    passed->line = line;
}

static struct host *best_in(const struct core *core, const struct choice *c, int8_t region,
                            struct passed *passed)
{
    struct host *best = NULL;
    const struct fault_region *failing = c->version ? fault_in_region(c->version, region) : NULL;
    const char *line = failing ? failing->line : "";
    bool closed = failing && failing->quarantined && !c->trial;
    LIST_EACH(&core->hosts_in[region], host, struct host, in_region)
    {
        enum host_passed_over reason = host_passed_over(core, host);
        int64_t left_ms = fault_left_ms(core, host, c->version);
        if (!host_serves(host, c->fleet))
            continue;
        if (is_in(c->except, c->n_except, host->row.id))
            passed->tried++;
        else if (reason != HOST_PASSED_NOT)
            pass_over(core, host, reason, passed);
        else if (closed || left_ms > 0)
            passed_block(passed, closed ? pause_left_ms(core, &failing->pause) : left_ms, line);
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

static int64_t whole_seconds(int64_t ms)
{
    return ms > 1000 ? (ms + 999) / 1000 : 1;
}

/* "build 1.0 of arena failed to start on 2 hosts; next try in 8 s: LINE" */
static void passed_explain_version(const struct choice *c, const struct passed *passed,
                                   char why[CHOICE_WHY_MAX])
{
    add(why, "build %s of %s failed to start on %d host%s; next try in %" PRId64 " s",
        c->version->row.name, c->fleet->row.name, passed->blocked, passed->blocked > 1 ? "s" : "",
        whole_seconds(passed->blocked_ms));
    if (passed->line[0])
        add(why, ": %s", passed->line);
}

/* "no healthy host in EU: 2 overloaded, 1 silent for 41 s" */
static void passed_explain_hosts(const struct passed *passed, const char *where,
                                 char why[CHOICE_WHY_MAX])
{
    const char *before = ": ";
    add(why, "no healthy host in %s", where);
    for (int r = HOST_PASSED_REASONS - 1; r > HOST_PASSED_NOT; r--) {
        if (passed->count[r] == 0)
            continue;
        add(why, "%s%d %s", before, passed->count[r],
            host_passed_over_name((enum host_passed_over)r));
        if (r == HOST_PASSED_SILENT)
            add(why, " for %" PRId64 " s", passed->silent_ms / 1000);
        if (r == HOST_PASSED_FAILING && passed->why[0])
            add(why, " (%s)", passed->why);
        before = ", ";
    }
    if (passed->tried > 0)
        add(why, "%s%d tried already", before, passed->tried);
    else if (before[0] == ':')
        add(why, ": there is none");
}

static void explain(const struct choice *c, const struct passed *passed, const char *where,
                    char why[CHOICE_WHY_MAX])
{
    int32_t others = passed->tried;
    why[0] = '\0';
    for (int r = HOST_PASSED_NOT + 1; r < HOST_PASSED_REASONS; r++)
        others += passed->count[r];
    if (others > 0 || passed->blocked == 0)
        passed_explain_hosts(passed, where, why);
    if (others > 0 && passed->blocked > 0)
        add(why, "; ");
    if (passed->blocked > 0)
        passed_explain_version(c, passed, why);
}

/* What failed is known to be tried again; what a heartbeat may change can change any moment. */
static int64_t retry_ms(const struct passed *passed)
{
    bool any_moment =
        passed->count[HOST_PASSED_SILENT] > 0 || passed->count[HOST_PASSED_OVERLOADED] > 0;
    bool failing = passed->count[HOST_PASSED_FAILING] > 0;
    int64_t ms = any_moment || (!failing && passed->blocked == 0) ? CHOICE_RETRY_MS : INT64_MAX;
    if (failing && passed->backoff_ms < ms)
        ms = passed->backoff_ms;
    if (passed->blocked > 0 && passed->blocked_ms < ms)
        ms = passed->blocked_ms;
    return ms > 1000 ? ms : 1000;
}

struct host *choose_host(const struct core *core, const struct choice *c, struct no_host *ret)
{
    struct passed passed = {0};
    char text[REGIONS_TEXT_MAX];
    bool runs = false;
    const struct region_order *where = c->where;
    const struct fleet *fleet = c->fleet;
    uint64_t allowed = regions_allowed(core, fleet->config ? fleet->config->regions : 0);
    ret->retry_ms = CHOICE_RETRY_MS;
    for (int i = 0; i < where->n; i++) {
        if (!is_bit(allowed, where->codes[i]))
            continue;
        struct host *host = best_in(core, c, where->codes[i], &passed);
        if (host)
            return host;
        runs = true;
    }
    regions_print(core, where, text);
    if (!runs) {
        (void)snprintf(ret->why, sizeof(ret->why), "%s does not run in %s", fleet->row.name, text);
        return NULL;
    }
    explain(c, &passed, text, ret->why);
    ret->retry_ms = retry_ms(&passed);
    return NULL;
}
