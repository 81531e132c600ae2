/* Fleets and regions: the configuration owns them, the store keeps only name → id. */
#include "core/state.h"

#include <stdlib.h>
#include <string.h>

/* Where each of the protocol's regions most likely stands: a city with data centres. */
static const struct region_config default_regions[] = {
    {"USE", true, 39.04, -77.49},  /* Ashburn */
    {"USW", true, 37.34, -121.89}, /* San Jose */
    {"EU", true, 50.11, 8.68},     /* Frankfurt */
    {"SG", true, 1.35, 103.82},    /* Singapore */
    {"MY", true, 3.14, 101.69},    /* Kuala Lumpur */
    {"PH", true, 14.6, 120.98},    /* Manila */
    {"TH", true, 13.76, 100.5},    /* Bangkok */
    {"ID", true, -6.21, 106.85},   /* Jakarta */
    {"VN", true, 10.82, 106.63},   /* Ho Chi Minh City */
    {"RU", true, 55.76, 37.62},    /* Moscow */
    {"KR", true, 37.57, 126.98},   /* Seoul */
    {"AU", true, -33.87, 151.21},  /* Sydney */
    {"LAT", true, -33.45, -70.67}, /* Santiago */
    {"DX", true, 25.2, 55.27},     /* Dubai */
    {"CN", true, 31.23, 121.47},   /* Shanghai */
    {"BR", true, -23.55, -46.63},  /* Sao Paulo */
    {"TR", true, 41.01, 28.98},    /* Istanbul */
};

void core_config_default(struct core_config *ret)
{
    memset(ret, 0, sizeof(*ret));
    memcpy(ret->regions, default_regions, sizeof(default_regions));
    (void)str_copy(ret->fleets[0].name, sizeof(ret->fleets[0].name), STR("default"));
    ret->fleets[0].ready_lobbies = true;
    ret->n_fleets = 1;
    ret->buses = BUSES_ALL;
    ret->timeouts = (struct core_timeouts){
        .ack_ms = 5 * 1000,
        .ready_ms = 10 * 1000,
        .ticket_ms = 30 * 1000,
        .heartbeat_ms = 30 * 1000,
        .chat_ms = 90 * 1000,
        .challenge_ms = 1000,
        .list_ms = 2000,
        .lost_ms = 10 * 60 * 1000,
        .session_ms = 6 * 60 * 60 * 1000,
        .token_ms = 120 * 1000,
        .keep_ms = 30 * 60 * 1000,
        .forget_ms = 60 * 60 * 1000,
        .cancel_repeat_ms = 10 * 1000,
        .backoff_first_ms = 10 * 1000,
        .backoff_max_ms = 5 * 60 * 1000,
        .zero_report_ms = 150 * 1000,
        .host_ms = 15 * 1000,
        .host_lost_ms = 10 * 60 * 1000,
        .place_ms = 45 * 1000,
        .spawn_retry_ms = 10 * 1000,
        .host_backoff_ms = 10 * 1000,
        .host_backoff_max_ms = 5 * 60 * 1000,
        .loading_ms = 60 * 1000,
        .player_gone_ms = 10 * 1000,
    };
    ret->limits = (struct core_limits){
        .tickets_open = 100 * 1000,
        .tickets_kept = 1000 * 1000,
        .queued = 100 * 1000,
        .servers = 200 * 1000,
        .chat_servers = 10 * 1000,
        .enrolments = 10 * 1000,
        .audit_kept = 10 * 1000,
        .hosts = 10 * 1000,
        .rooms = 200 * 1000,
        .bans = 1000 * 1000,
        .deployments = 64,
        .lobbies = 100 * 1000,
    };
    ret->default_region = -1;
    static const struct rate_limit create[] = {
        {5, 60 * 1000}, {10, 240 * 1000}, {20, 480 * 1000}, {40, 960 * 1000}};
    memcpy(ret->create_rates, create, sizeof(create));
    ret->join_rates[0] = (struct rate_limit){30, 60 * 1000};
}

bool region_configured(const struct core *core, int8_t code)
{
    return code >= 0 && code < REGION_CODES && code != REGION_AUTO &&
           core->config.regions[code].name[0] != '\0';
}

void group_count(struct group *group, const struct share *share, int sign)
{
    group->status[share->status] += sign;
    group->open += sign * (int64_t)share->open;
    group->awaited += sign * share->awaited;
    if (share->status != SERVER_OFFLINE) {
        group->slots_used += sign * (int64_t)share->load;
        group->slots_total += sign * (int64_t)share->max;
    }
    if (share->connected) {
        group->connected += sign;
        group->cpu_centi += sign * (int64_t)share->cpu_centi;
        group->memory_centi += sign * (int64_t)share->memory_centi;
        group->ratio_ppm += sign * share->ratio_ppm;
        group->ratio_square += (__int128)share->ratio_ppm * share->ratio_ppm * sign;
    }
}

struct fleet *fleet_find(const struct core *core, int64_t id)
{
    return map_get(&core->fleets, (uint64_t)id);
}

static const struct fleet_config *config_of(const struct core *core, const char *name)
{
    for (size_t i = 0; i < core->config.n_fleets; i++) {
        if (strcmp(core->config.fleets[i].name, name) == 0)
            return &core->config.fleets[i];
    }
    return NULL;
}

bool fleet_is_configured(const struct core *core, struct str name)
{
    char text[sizeof(((struct fleet_config *)0)->name)];
    return str_copy(text, sizeof(text), name) && config_of(core, text);
}

struct fleet *fleet_load_row(struct core *core, const struct row_fleet *row)
{
    struct fleet *fleet = xcalloc(1, sizeof(*fleet));
    fleet->object.kind = ROW_fleet;
    fleet->row = *row;
    for (int i = 0; i < REGION_CODES; i++)
        heap_init(&fleet->groups[i].placeable, placement_better);
    list_init(&fleet->tickets_waiting);
    list_init(&fleet->versions);
    list_init(&fleet->deployments);
    list_init(&fleet->token_modes);
    list_init(&fleet->allocating);
    list_init(&fleet->held);
    fleet->config = config_of(core, row->name);
    map_put(&core->fleets, (uint64_t)row->id, fleet);
    object_enter(core, &fleet->object);
    return fleet;
}

struct fleet *fleet_find_named(const struct core *core, const char *name)
{
    size_t at = 0;
    struct fleet *fleet = NULL;
    while ((fleet = map_next(&core->fleets, &at))) {
        if (strcmp(fleet->row.name, name) == 0)
            return fleet;
    }
    return NULL;
}

struct fleet *fleet_named(struct core *core, const char *name)
{
    struct fleet *fleet = fleet_find_named(core, name);
    if (fleet)
        return fleet;
    struct row_fleet row = {.id = object_new_id(core, ROW_fleet)};
    (void)str_copy(row.name, sizeof(row.name), str_of(name));
    fleet = fleet_load_row(core, &row);
    object_touch(core, &fleet->object);
    return fleet;
}

void fleets_configure(struct core *core)
{
    size_t at = 0;
    for (struct fleet *fleet = NULL; (fleet = map_next(&core->fleets, &at));)
        fleet->config = config_of(core, fleet->row.name);
}

void fleets_make(struct core *core)
{
    for (size_t i = 0; i < core->config.n_fleets; i++)
        (void)fleet_named(core, core->config.fleets[i].name);
    token_modes_settle(core);
}

void fleet_free(struct fleet *fleet)
{
    queue_free(fleet->queue);
    for (int i = 0; i < REGION_CODES; i++)
        heap_done(&fleet->groups[i].placeable);
    free(fleet);
}
