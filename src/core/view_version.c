/* Views of versions, deployments and bans. */
#include "core/state.h"

#include <string.h>

static const uint8_t *digest_of(const struct core *core, int64_t id)
{
    const struct deployment *deployment = deployment_find(core, id);
    return deployment ? deployment->row.digest : NULL;
}

static void show_version(const struct core *core, const struct fleet *fleet,
                         const struct version *version, const struct version_config *config,
                         struct view_version *ret)
{
    *ret = (struct view_version){
        .fleet_id = fleet->row.id,
        .fleet = fleet->row.name,
        .name = config ? config->name : version->row.name,
        .reason = "",
    };
    ret->enabled = version_judge(fleet, str_of(ret->name)) == 0;
    if (version) {
        const struct row_version *row = &version->row;
        ret->id = row->id;
        ret->quarantined = row->quarantined != 0;
        ret->reason = row->reason;
        ret->deployment = row->deployment;
        ret->previous = row->previous;
        ret->wanted = row->wanted;
        ret->rooms = version->rooms;
    }
    int64_t meant = ret->wanted ? ret->wanted : ret->deployment;
    version_count_hosts(core, fleet, digest_of(core, meant), &ret->hosts_ready, &ret->hosts);
}

static bool is_configured(const struct fleet *fleet, const char *name)
{
    for (size_t i = 0; fleet->config && i < fleet->config->n_versions; i++) {
        if (str_eq(str_of(fleet->config->versions[i].name), str_of(name)))
            return true;
    }
    return false;
}

bool view_version(const struct core *core, int64_t fleet_id, size_t i, struct view_version *ret)
{
    const struct fleet *fleet = fleet_find(core, fleet_id);
    if (!fleet)
        return false;
    size_t configured = fleet->config ? fleet->config->n_versions : 0;
    if (i < configured) {
        const struct version_config *config = &fleet->config->versions[i];
        show_version(core, fleet, version_row_of(fleet, str_of(config->name)), config, ret);
        return true;
    }
    i -= configured;
    LIST_EACH(&fleet->versions, version, struct version, in_fleet)
    {
        if (is_configured(fleet, version->row.name) || i-- > 0)
            continue;
        show_version(core, fleet, version, NULL, ret);
        return true;
    }
    return false;
}

bool view_host_passes_over(const struct core *core, int64_t host_id, int64_t fleet_id)
{
    const struct host *host = host_find(core, host_id);
    const struct fleet *fleet = fleet_find(core, fleet_id);
    if (!host || !fleet)
        return false;
    LIST_EACH(&fleet->versions, version, struct version, in_fleet)
    {
        if (fault_left_ms(core, host, version) > 0)
            return true;
    }
    return false;
}

bool view_deployment(const struct core *core, int64_t id, struct view_deployment *ret)
{
    const struct deployment *deployment = deployment_find(core, id);
    if (!deployment)
        return false;
    const struct row_deployment *row = &deployment->row;
    const struct version *version = version_row_of(deployment->fleet, str_of(row->version));
    *ret = (struct view_deployment){
        .id = row->id,
        .fleet_id = row->fleet,
        .fleet = deployment->fleet->row.name,
        .version = row->version,
        .digest = row->digest,
        .size = row->size,
        .created_wall_ms = row->created_wall_ms,
        .who = row->who,
        .current = version && version->row.deployment == id,
        .wanted = version && version->row.wanted == id,
    };
    version_count_hosts(core, deployment->fleet, row->digest, &ret->hosts_ready, &ret->hosts);
    return true;
}

static size_t add_lacking(const struct core *core, const struct host *host, int64_t id,
                          const uint8_t *digests[], size_t n, size_t cap)
{
    const uint8_t *digest = digest_of(core, id);
    if (!digest || n == cap || host_has_deployment(host, digest))
        return n;
    for (size_t i = 0; i < n; i++) {
        if (memcmp(digests[i], digest, OPERATE_DIGEST) == 0)
            return n;
    }
    digests[n] = digest;
    return n + 1;
}

size_t view_lacking(const struct core *core, int64_t host, const uint8_t *digests[], size_t cap)
{
    const struct host *there = host_find(core, host);
    size_t n = 0;
    size_t at = 0;
    for (const struct fleet *fleet = NULL; there && (fleet = object_next(core, ROW_fleet, &at));) {
        uint64_t regions = fleet->config ? fleet->config->regions : 0;
        if (!fleet->config || (regions && !is_bit(regions, there->row.region)))
            continue;
        LIST_EACH(&fleet->versions, version, struct version, in_fleet)
        {
            n = add_lacking(core, there, version->row.wanted, digests, n, cap);
            n = add_lacking(core, there, version->row.deployment, digests, n, cap);
        }
    }
    return n;
}

bool view_ban(const struct core *core, int64_t id, struct view_ban *ret)
{
    const struct ban *ban = ban_find(core, id);
    if (!ban)
        return false;
    *ret = (struct view_ban){
        .id = ban->row.id,
        .account = ban->row.account,
        .address = ban->row.address,
        .reason = ban->row.reason,
        .expires_wall_ms = ban->row.expires_wall_ms,
        .issued_wall_ms = ban->row.issued_wall_ms,
        .who = ban->row.who,
        .expired = !ban_holds(core, ban),
    };
    return true;
}

int64_t view_banned(const struct core *core, struct str account, struct str address)
{
    const struct ban *ban = ban_of(core, account, address);
    return ban ? ban->row.id : 0;
}

int64_t view_ban_of(const struct core *core, struct str account)
{
    const struct ban *ban = ban_newest(core, account);
    return ban ? ban->row.id : 0;
}
