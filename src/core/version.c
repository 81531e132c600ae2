/* Versions: the configuration names them, a row is made when one is first used or changed. A
 * version without a deployment runs the binary that stands on the hosts.
 *
 *                 SWITCH                  every healthy host has it
 *   (deployment) ────────▶ row.wanted ─────────────────────────────▶ row.deployment
 *                                                                        │ the next one comes
 *                           the next one fails to start, see fault.h     ▼
 *                          row.deployment ◀──────────────────────── row.previous
 *
 * A switch ends no server: those that run another deployment are told so when they ask. */
#include "core/version.h"

#include "core/state.h"

#include <string.h>

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
    bool disabled = (config && config->disabled) || (version && version->row.disabled);
    return disabled ? ERR_VERSION_DISABLED : 0;
}

int version_check_deployment(const struct core *core, const struct room *room)
{
    (void)core;
    int err = version_judge(room->fleet, str_of(room->version->row.name));
    if (err)
        return err;
    return room->row.deployment == room->version->row.deployment ? 0 : ERR_OUTDATED;
}

/* ── being ─────────────────────────────────────────────────────────────────────────────────── */

static void want(struct core *core, struct version *version, int64_t deployment)
{
    version->row.wanted = deployment;
    if (deployment && !link_in_list(&version->in_switching))
        list_append(&core->switching, &version->in_switching);
    else if (!deployment)
        list_remove(&version->in_switching);
    object_touch(core, &version->object);
}

static struct version *enter(struct core *core, const struct row_version *row, struct fleet *fleet)
{
    struct version *version = xcalloc(1, sizeof(*version));
    version->object.kind = ROW_version;
    version->row = *row;
    version->fleet = fleet;
    list_init(&version->faults);
    list_init(&version->failing_in);
    list_append(&fleet->versions, &version->in_fleet);
    if (row->wanted)
        list_append(&core->switching, &version->in_switching);
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

static bool is_known(const struct core *core, int64_t deployment)
{
    return deployment == 0 || deployment_find(core, deployment);
}

int version_load_row(struct core *core, const struct row_version *row)
{
    struct fleet *fleet = fleet_find(core, row->fleet);
    if (!fleet || version_row_of(fleet, str_of(row->name)) || !is_known(core, row->deployment) ||
        !is_known(core, row->previous) || !is_known(core, row->wanted))
        return ERR_FORMAT;
    enter(core, row, fleet)->object.stored = true;
    return 0;
}

void version_done(struct version *version)
{
    fault_version_done(version);
    for (int i = 0; i < REGION_CODES; i++)
        shelf_done(&version->shelves[i]);
}

static struct deployment *enter_deployment(struct core *core, const struct row_deployment *row,
                                           struct fleet *fleet)
{
    struct deployment *deployment = xcalloc(1, sizeof(*deployment));
    deployment->object.kind = ROW_deployment;
    deployment->row = *row;
    deployment->fleet = fleet;
    list_append(&fleet->deployments, &deployment->in_fleet);
    object_enter(core, &deployment->object);
    return deployment;
}

int deployment_load_row(struct core *core, const struct row_deployment *row)
{
    struct fleet *fleet = fleet_find(core, row->fleet);
    if (!fleet || row->digest_len != OPERATE_DIGEST)
        return ERR_FORMAT;
    enter_deployment(core, row, fleet)->object.stored = true;
    return 0;
}

/* ── switching ─────────────────────────────────────────────────────────────────────────────── */

void version_count_hosts(const struct core *core, const struct fleet *fleet, const uint8_t *digest,
                         int32_t *ret_ready, int32_t *ret_all)
{
    uint64_t regions = fleet->config ? fleet->config->regions : 0;
    *ret_ready = *ret_all = 0;
    for (int8_t code = 0; code < REGION_CODES; code++) {
        if (regions && !is_bit(regions, code))
            continue;
        LIST_EACH(&core->hosts_in[code], host, struct host, in_region)
        {
            if (host->quiet != HOST_HEARD || host->leaving || host->row.disabled ||
                !host_serves(host, fleet))
                continue;
            (*ret_all)++;
            *ret_ready += !digest || host_has_deployment(host, digest);
        }
    }
}

static struct effect *note_version(struct core *core, enum note note, const struct version *version,
                                   struct str text)
{
    struct effect *e = note_add(core, note);
    e->fleet_id = version->row.fleet;
    e->object = version->row.id;
    e->text = text;
    return e;
}

/* Becomes what was wanted, when nobody lacks it. Hosts that come later fetch it first. */
static void settle(struct core *core, struct version *version)
{
    int32_t ready = 0;
    int32_t all = 0;
    const struct deployment *deployment = deployment_find(core, version->row.wanted);
    version_count_hosts(core, version->fleet, deployment->row.digest, &ready, &all);
    if (ready < all)
        return;
    if (version->row.deployment != deployment->row.id) {
        version->row.previous = version->row.deployment;
        version->row.deployment = deployment->row.id;
    }
    version->row.reason[0] = '\0';
    fault_forget_version(core, version);
    want(core, version, 0);
    note_version(core, NOTE_VERSION_SWITCHED, version, text_keep(core, str_of(version->row.name)));
}

void versions_settle(struct core *core)
{
    LIST_EACH(&core->switching, version, struct version, in_switching)
    {
        settle(core, version);
    }
}

/* ── operators ─────────────────────────────────────────────────────────────────────────────── */

static int find_fleet(struct core *core, struct str name, struct fleet **ret)
{
    char text[sizeof((*ret)->row.name)];
    *ret = str_copy(text, sizeof(text), name) ? fleet_find_named(core, text) : NULL;
    if (!*ret || !(*ret)->config)
        return ERR_NO_SUCH_FLEET;
    return (*ret)->config->provider == PROVIDER_AGENT ? 0 : ERR_WRONG_PROVIDER;
}

static int enable(struct core *core, const struct operate *o, int64_t *ret_object)
{
    struct fleet *fleet = NULL;
    int err = find_fleet(core, o->fleet, &fleet);
    if (err)
        return err;
    const struct version_config *config = configured(fleet, o->name);
    if (!config && !version_row_of(fleet, o->name))
        return ERR_NO_VERSION;
    bool on = o->verb == OPERATE_ENABLE_VERSION;
    if (on && config && config->disabled)
        return ERR_VERSION_DISABLED; /* what the file turns off, the file must turn on */
    struct version *version = version_use(core, fleet, o->name);
    version->row.disabled = !on;
    if (on)
        fault_forget_version(core, version);
    object_touch(core, &version->object);
    *ret_object = version->row.id;
    return 0;
}

static bool is_in_use(const struct core *core, const struct deployment *deployment)
{
    int64_t id = deployment->row.id;
    LIST_EACH(&deployment->fleet->versions, version, struct version, in_fleet)
    {
        const struct row_version *row = &version->row;
        if (row->deployment == id || row->previous == id || row->wanted == id)
            return true;
    }
    size_t at = 0;
    for (const struct room *room = NULL; (room = object_next(core, ROW_room, &at));) {
        if (room->row.deployment == id && room->row.state != ROOM_ENDED)
            return true;
    }
    return false;
}

/* Room for one more: the oldest of the fleet that nobody uses goes. False when there is none. */
static bool make_room(struct core *core, const struct fleet *fleet)
{
    int32_t n = 0;
    LIST_EACH(&fleet->deployments, counted, struct deployment, in_fleet)
    {
        n++;
    }
    if (n < core->config.limits.deployments)
        return true;
    LIST_EACH(&fleet->deployments, deployment, struct deployment, in_fleet)
    {
        if (is_in_use(core, deployment))
            continue;
        list_remove(&deployment->in_fleet);
        object_delete(core, &deployment->object);
        return true;
    }
    return false;
}

static struct deployment *find_same(const struct fleet *fleet, const struct operate *o)
{
    LIST_EACH(&fleet->deployments, deployment, struct deployment, in_fleet)
    {
        if (str_eq(str_of(deployment->row.version), o->name) &&
            memcmp(deployment->row.digest, o->digest, OPERATE_DIGEST) == 0)
            return deployment;
    }
    return NULL;
}

static int deploy(struct core *core, const struct operate *o, int64_t *ret_object)
{
    struct fleet *fleet = NULL;
    int err = find_fleet(core, o->fleet, &fleet);
    if (err)
        return err;
    const struct deployment *same = find_same(fleet, o);
    if (same) {
        *ret_object = same->row.id;
        return 0;
    }
    struct row_deployment row = {
        .fleet = (int32_t)fleet->row.id,
        .digest_len = OPERATE_DIGEST,
        .size = o->size,
        .created_wall_ms = core->now.wall_ms,
    };
    if (o->name.len == 0 || !str_copy(row.version, sizeof(row.version), o->name) ||
        !str_copy(row.who, sizeof(row.who), o->who) || o->size < 0)
        return ERR_BAD_ARGUMENT;
    memcpy(row.digest, o->digest, OPERATE_DIGEST);
    if (!make_room(core, fleet))
        return ERR_TOO_MANY;
    row.id = object_new_id(core, ROW_deployment);
    object_touch(core, &enter_deployment(core, &row, fleet)->object);
    (void)version_use(core, fleet, o->name);
    *ret_object = row.id;
    return 0;
}

static int switch_to(struct core *core, int64_t id)
{
    const struct deployment *deployment = deployment_find(core, id);
    if (!deployment)
        return ERR_NOT_FOUND;
    struct version *version = version_use(core, deployment->fleet, str_of(deployment->row.version));
    want(core, version, id);
    settle(core, version);
    return 0;
}

int operate_version(struct core *core, const struct operate *o, int64_t *ret_object)
{
    switch (o->verb) {
    case OPERATE_DEPLOY:
        return deploy(core, o, ret_object);
    case OPERATE_SWITCH:
        return switch_to(core, o->target);
    default:
        return enable(core, o, ret_object);
    }
}
