/* Versions: the configuration names them, a row is made when one is first used or changed. A
 * version without a deployment runs the binary that stands on the hosts. */
#include "core/version.h"

#include "core/state.h"

struct version *version_find(const struct core *core, int64_t id)
{
    return object_find(core, ROW_version, id);
}

struct deployment *deployment_find(const struct core *core, int64_t id)
{
    return object_find(core, ROW_deployment, id);
}

struct version *version_row_of(const struct fleet *fleet, struct str name)
{
    LIST_EACH(&fleet->versions, version, struct version, in_fleet)
    {
        if (str_eq(str_of(version->row.name), name))
            return version;
    }
    return NULL;
}

static const struct version_config *configured(const struct fleet *fleet, struct str name)
{
    for (size_t i = 0; fleet->config && i < fleet->config->n_versions; i++) {
        if (str_eq(str_of(fleet->config->versions[i].name), name))
            return &fleet->config->versions[i];
    }
    return NULL;
}

int version_judge(const struct fleet *fleet, struct str name)
{
    const struct version_config *config = configured(fleet, name);
    const struct version *version = version_row_of(fleet, name);
    bool deployed = version && version->row.deployment != 0;
    if (!config && !deployed)
        return ERR_NO_VERSION;
    if ((config && config->disabled) || (version && version->row.disabled))
        return ERR_VERSION_DISABLED;
    return version && version->row.quarantined ? ERR_VERSION_DISABLED : 0;
}

static struct version *enter(struct core *core, const struct row_version *row, struct fleet *fleet)
{
    struct version *version = xcalloc(1, sizeof(*version));
    version->object.kind = ROW_version;
    version->row = *row;
    version->fleet = fleet;
    list_append(&fleet->versions, &version->in_fleet);
    object_enter(core, &version->object);
    return version;
}

struct version *version_use(struct core *core, struct fleet *fleet, struct str name)
{
    struct version *version = version_row_of(fleet, name);
    if (version)
        return version;
    struct row_version row = {
        .id = object_new_id(core, ROW_version),
        .fleet = (int32_t)fleet->row.id,
    };
    (void)str_copy(row.name, sizeof(row.name), name);
    version = enter(core, &row, fleet);
    object_touch(core, &version->object);
    return version;
}

int version_check_deployment(const struct core *core, const struct room *room)
{
    (void)core;
    int err = version_judge(room->fleet, str_of(room->version->row.name));
    if (err)
        return err;
    return room->row.deployment == room->version->row.deployment ? 0 : ERR_OUTDATED;
}

int version_load_row(struct core *core, const struct row_version *row)
{
    struct fleet *fleet = fleet_find(core, row->fleet);
    if (!fleet)
        return ERR_FORMAT;
    enter(core, row, fleet)->object.stored = true;
    return 0;
}

void version_done(struct version *version)
{
    for (int i = 0; i < REGION_CODES; i++)
        shelf_done(&version->shelves[i]);
}

int deployment_load_row(struct core *core, const struct row_deployment *row)
{
    struct fleet *fleet = fleet_find(core, row->fleet);
    if (!fleet || row->digest_len != OPERATE_DIGEST)
        return ERR_FORMAT;
    struct deployment *deployment = xcalloc(1, sizeof(*deployment));
    deployment->object.kind = ROW_deployment;
    deployment->object.stored = true;
    deployment->row = *row;
    deployment->fleet = fleet;
    list_append(&fleet->deployments, &deployment->in_fleet);
    object_enter(core, &deployment->object);
    return 0;
}
