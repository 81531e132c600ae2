/* May a host be taken away now? Decided from what runs there and what is left without it. */
#include "base/lasted.h"
#include "core/state.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What runs on a host. */
struct load {
    int32_t rooms;
    int32_t players; /* who sit there, or are expected */
    int64_t oldest_core_ms;
};

__attribute__((format(printf, 2, 3))) static void say(struct view_removal *v, const char *format,
                                                      ...)
{
    size_t len = strlen(v->sentence);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(v->sentence + len, sizeof(v->sentence) - len, format, arguments);
    va_end(arguments);
}

static struct load load_of(const struct host *host)
{
    struct load load = {0};
    LIST_EACH(&host->rooms, room, const struct room, on_host)
    {
        load.rooms++;
        load.players += room->reserved + room->taken;
        if (load.oldest_core_ms == 0 || room->row.created_core_ms < load.oldest_core_ms)
            load.oldest_core_ms = room->row.created_core_ms;
    }
    return load;
}

static bool is_cluster(const struct host *host)
{
    return strncmp(host->row.url, "agones:", 7) == 0;
}

/* What takes over in its region: a host that gets nothing new anyway leaves no hole. */
static void say_others(const struct core *core, const struct host *host, bool runs,
                       struct view_removal *v)
{
    int32_t healthy = 0;
    float most = 0;
    LIST_EACH(&core->hosts_in[host->row.region], other, const struct host, in_region)
    {
        if (other == host || is_cluster(other) || host_passed_over(core, other) != HOST_PASSED_NOT)
            continue;
        healthy++;
        if (host_load_percent(other) > most)
            most = host_load_percent(other);
    }
    const char *region = region_name(core, host->row.region);
    if (healthy > 0 && runs)
        say(v, " The other hosts of %s have room for what is new: %d healthy, at %.0f %% at most.",
            region, healthy, (double)most);
    else if (healthy == 0)
        say(v, " No other host of %s is healthy: without it no room can be started there.", region);
}

static void say_what_runs(const struct core *core, const struct host *host, const struct load *load,
                          struct view_removal *v)
{
    char last[LASTED_MAX];
    bool quiet = host->quiet != HOST_HEARD;
    say(v, "No: %d room%s with %d player%s %s on it", load->rooms, load->rooms == 1 ? "" : "s",
        load->players, load->players == 1 ? "" : "s",
        quiet              ? "may still run"
        : load->rooms == 1 ? "runs"
                           : "run");
    if (quiet)
        say(v, ", though nobody hears it");
    else if (host->row.disabled || host->leaving)
        say(v, "; it gets nothing new, and is free when they end");
    else
        say(v, "; disable it, and it is free when they end");
    say(v, " (the oldest since %s).", lasted(last, core->now.core_ms - load->oldest_core_ms));
}

/* Its rooms may be ended here and run on there: nobody has said what is left. */
static void say_unheard(const struct core *core, const struct host *host, struct view_removal *v)
{
    char last[LASTED_MAX];
    say(v, "No: nothing that we know of runs on it, but it has not been heard ");
    if (host->heard_core_ms == 0)
        say(v, "since Muster started");
    else
        say(v, "for %s", lasted(last, core->now.core_ms - host->heard_core_ms));
    say(v, "; look at the machine first.");
}

bool view_removal(const struct core *core, int64_t id, struct view_removal *ret)
{
    const struct host *host = host_find(core, id);
    if (!host)
        return false;
    struct load load = load_of(host);
    *ret = (struct view_removal){0};
    if (is_cluster(host)) {
        say(ret, "No: it stands for a fleet in Kubernetes; take that out of the configuration.");
        return true;
    }
    if (load.rooms > 0) {
        say_what_runs(core, host, &load, ret);
    } else if (host_passed_over(core, host) == HOST_PASSED_SILENT) {
        say_unheard(core, host, ret);
    } else if (host->strangers > 0) {
        say(ret,
            "No: nothing of ours runs on it, but %d server%s that nobody here knows; look at the "
            "machine first.",
            host->strangers, host->strangers == 1 ? " does" : "s do");
    } else {
        bool closed = host_passed_over(core, host) != HOST_PASSED_NOT;
        ret->now = true;
        say(ret, "Yes: nothing runs on it.%s",
            closed ? "" : " Disable it first, so that nothing is started there meanwhile.");
    }
    say_others(core, host, load.rooms > 0, ret);
    return true;
}
