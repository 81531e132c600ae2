/* Hosts: who they are, how loaded they are, and how long they may be silent. */
#include "core/host.h"

#include "core/state.h"

#include <stdlib.h>
#include <string.h>

enum { MEMORY_MAX_PERCENT = 95 };

struct host *host_find(const struct core *core, int64_t id)
{
    return object_find(core, ROW_host, id);
}

struct host *host_named(const struct core *core, struct str name)
{
    struct chain_link *n = chain_first(&core->hosts_by_name, str_hash(0, name));
    for (; n; n = n->next) {
        struct host *host = container_of(n, struct host, by_name);
        if (str_eq(str_of(host->row.name), name))
            return host;
    }
    return NULL;
}

bool host_is_away(const struct host *host)
{
    return !host || host->quiet != HOST_HEARD;
}

bool host_has_deployment(const struct host *host, const uint8_t digest[OPERATE_DIGEST])
{
    for (size_t i = 0; i < host->n_deployments; i++) {
        if (memcmp(host->deployments[i], digest, OPERATE_DIGEST) == 0)
            return true;
    }
    return false;
}

/* ── load ──────────────────────────────────────────────────────────────────────────────────── */

/* What was placed since the last heartbeat is in none of its figures: each of those counts as one
 * server does on average there, and as one percent at least. */
float host_load_percent(const struct host *host)
{
    float load =
        host->cpu_percent > host->memory_percent ? host->cpu_percent : host->memory_percent;
    float share = host->servers > 0 ? load / (float)host->servers : 1;
    return load + (float)host->placed * (share > 1 ? share : 1);
}

static bool is_full(const struct host *host)
{
    return host->row.slots > 0 && host->n_rooms + host->strangers >= host->row.slots;
}

enum host_passed_over host_passed_over(const struct host *host)
{
    if (host->quiet != HOST_HEARD || host->heard_core_ms == 0)
        return HOST_PASSED_SILENT;
    if (host->leaving)
        return HOST_PASSED_LEAVING;
    if (host->row.disabled)
        return HOST_PASSED_DISABLED;
    if (deadline_is_set(&host->backoff))
        return HOST_PASSED_FAILING;
    if (host->memory_percent > MEMORY_MAX_PERCENT || is_full(host))
        return HOST_PASSED_OVERLOADED;
    return HOST_PASSED_NOT;
}

/* ── loading and leaving ───────────────────────────────────────────────────────────────────── */

static struct host *enter(struct core *core, const struct row_host *row)
{
    struct host *host = xcalloc(1, sizeof(*host));
    host->object.kind = ROW_host;
    host->row = *row;
    host->silence.kind = DEADLINE_HOST_SILENCE;
    host->backoff.kind = DEADLINE_HOST_BACKOFF;
    list_init(&host->rooms);
    list_append(&core->hosts_in[row->region], &host->in_region);
    chain_add(&core->hosts_by_name, str_hash(0, str_of(host->row.name)), &host->by_name);
    object_enter(core, &host->object);
    return host;
}

int host_load_row(struct core *core, const struct row_host *row)
{
    if (row->region < 0 || row->region >= REGION_CODES || row->name[0] == '\0')
        return ERR_FORMAT;
    enter(core, row)->object.stored = true;
    return 0;
}

void host_done(struct host *host)
{
    free(host->deployments);
}
