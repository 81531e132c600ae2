/* Hosts: who they are, how loaded they are, and how long they may be silent. */
#include "core/host.h"

#include "core/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MEMORY_MAX_PERCENT = 95 };

/* However soon hosts count as silent: what was given HOST_QUEUED_MS by a heartbeat, and a slow tick
 * more, ends before the host is late again. Else it might never end. */
enum { LATE_LEAST_MS = HOST_QUEUED_MS + 1000 };

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

/* About a heartbeat and a half. The time we slept counts: what came meanwhile was not read. */
bool host_is_late(const struct core *core, const struct host *host)
{
    int64_t most_ms = core->config.timeouts.host_ms / 2;
    int64_t unheard_ms = core->now.core_ms - host->quiet_core_ms;
    return unheard_ms > (most_ms > LATE_LEAST_MS ? most_ms : LATE_LEAST_MS);
}

/* A cluster's host calls itself by its fleet in place of an address, so that it is known for what
 * it is before it speaks again after a start. */
bool host_serves(const struct host *host, const struct fleet *fleet)
{
    static const char cluster[] = "agones:";
    bool is_cluster = strncmp(host->row.url, cluster, sizeof(cluster) - 1) == 0;
    bool in_cluster = fleet->config && fleet->config->provider == PROVIDER_AGONES;
    return is_cluster == in_cluster &&
           (!is_cluster || strcmp(host->row.url + sizeof(cluster) - 1, fleet->row.name) == 0);
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
 * server does on average there, and as one percent at least. That is a guess, for the load may be
 * another program's, so the more of them there are the less each adds: together they never fill
 * more than what is free. */
float host_load_percent(const struct host *host)
{
    float load =
        host->cpu_percent > host->memory_percent ? host->cpu_percent : host->memory_percent;
    float share = host->servers > 0 ? load / (float)host->servers : 1;
    float added = (float)host->placed * (share > 1 ? share : 1);
    float left = 100 - load;
    return left > 0 ? load + added * left / (added + left) : load;
}

static bool is_full(const struct host *host)
{
    return host->row.slots > 0 && host->n_rooms + host->strangers >= host->row.slots;
}

enum host_passed_over host_passed_over(const struct core *core, const struct host *host)
{
    if (host->quiet != HOST_HEARD || host->heard_core_ms == 0)
        return HOST_PASSED_SILENT;
    if (host->leaving)
        return HOST_PASSED_LEAVING;
    if (host->row.disabled)
        return HOST_PASSED_DISABLED;
    if (pause_left_ms(core, &host->failing) > 0)
        return HOST_PASSED_FAILING;
    if (host->memory_percent > MEMORY_MAX_PERCENT || is_full(host))
        return HOST_PASSED_OVERLOADED;
    return HOST_PASSED_NOT;
}

/* ── notes ────────────────────────────────────────────────────────────────────────────────── */

struct effect *host_note(struct core *core, const struct host *host, enum note kind)
{
    struct str name = text_keep(core, str_of(host->row.name));
    struct effect *note = note_add(core, kind);
    note->object = host->row.id;
    note->region_code = host->row.region;
    note->chat = name;
    return note;
}

void host_failed(struct core *core, const struct room *room, struct str why)
{
    struct host *host = room->host;
    if (!pause_failed(core, &host->failing, room->row.created_core_ms))
        return;
    fault_keep_line(host->failed_why, sizeof(host->failed_why), why);
    struct str kept = text_keep(core, str_of(host->failed_why));
    struct effect *note = host_note(core, host, NOTE_HOST_BACKOFF);
    note->session = room->row.id;
    note->server_id = (int32_t)room->row.server;
    note->wall_ms = pause_left_ms(core, &host->failing);
    note->text = kept;
}

/* ── being ─────────────────────────────────────────────────────────────────────────────────── */

static struct host *enter(struct core *core, const struct row_host *row)
{
    struct host *host = xcalloc(1, sizeof(*host));
    host->object.kind = ROW_host;
    host->row = *row;
    host->silence.kind = DEADLINE_HOST_SILENCE;
    list_init(&host->rooms);
    list_init(&host->faults);
    list_append(&core->hosts_in[row->region], &host->in_region);
    chain_add(&core->hosts_by_name, str_hash(0, str_of(host->row.name)), &host->by_name);
    object_enter(core, &host->object);
    return host;
}

/* ── heartbeats ────────────────────────────────────────────────────────────────────────────── */

static int judge(const struct core *core, const struct host_beat *beat)
{
    if (beat->name.len == 0 || beat->name.len >= sizeof(((struct row_host *)0)->name) ||
        beat->account.len >= sizeof(((struct row_host *)0)->account))
        return ERR_BAD_ARGUMENT;
    if (beat->address.len == 0 || beat->address.len >= sizeof(((struct row_host *)0)->address) ||
        beat->url.len == 0 || beat->url.len >= sizeof(((struct row_host *)0)->url))
        return ERR_BAD_ARGUMENT;
    size_t most = beat->fleet.len > 0 ? CLUSTER_SERVERS_MAX : HOST_SERVERS_MAX;
    if (beat->slots < 0 || beat->n_servers > most || beat->n_deployments > HOST_DEPLOYMENTS_MAX)
        return ERR_INVALID_CAPACITY;
    return region_configured(core, beat->region) ? 0 : ERR_INVALID_REGION;
}

bool host_is_of(const struct host *host, struct str account)
{
    return str_eq(str_of(host->row.account), account);
}

struct str host_belongs_to_another(struct core *core, const struct host *host)
{
    char text[sizeof(host->row.name) + 40];
    (void)snprintf(text, sizeof(text), "Host %s belongs to another account.", host->row.name);
    return text_keep(core, str_of(text));
}

/* Its operator disabled it and it is not heard any more: whoever comes next has the name. */
static bool is_free(const struct host *host)
{
    return host->row.disabled && host_is_away(host);
}

static bool is_taken(const struct host *host, const struct host_beat *beat)
{
    return !host_is_of(host, beat->account) && !is_free(host);
}

static bool is_same(const struct row_host *row, const struct host_beat *beat)
{
    return row->region == beat->region && row->slots == beat->slots &&
           str_eq(str_of(row->address), beat->address) && str_eq(str_of(row->url), beat->url) &&
           str_eq(str_of(row->account), beat->account);
}

bool host_beat_changes_nothing(const struct core *core, const struct host_beat *beat)
{
    const struct host *host = host_named(core, beat->name);
    return host && (is_taken(host, beat) || is_same(&host->row, beat));
}

static void take_row(struct row_host *row, const struct host_beat *beat)
{
    row->region = beat->region;
    row->slots = beat->slots;
    (void)str_copy(row->address, sizeof(row->address), beat->address);
    (void)str_copy(row->url, sizeof(row->url), beat->url);
}

static void take_figures(struct core *core, struct host *host, const struct host_beat *beat)
{
    size_t size = beat->n_deployments * sizeof(*host->deployments);
    host->cpu_percent = beat->cpu_percent;
    host->memory_percent = beat->memory_percent;
    host->leaving = beat->leaving;
    host->beat = beat->beat;
    host->servers = (int32_t)beat->n_servers;
    host->heard_core_ms = host->quiet_core_ms = core->now.core_ms;
    if (host->n_deployments != beat->n_deployments)
        host->deployments = xrealloc(host->deployments, size ? size : 1);
    if (size > 0)
        memcpy(host->deployments, beat->deployments, size);
    host->n_deployments = beat->n_deployments;
}

static void set_silence(struct core *core, struct host *host, int64_t ms)
{
    deadline_set(core, &host->silence, DEADLINE_AWAKE, deadline_now(core, DEADLINE_AWAKE) + ms);
}

/* It speaks: what stood still runs again, and what it runs is compared with what we know. missed:
 * it may have been unable to tell us something until now. */
static void heard(struct core *core, struct host *host, const struct host_beat *beat, bool missed)
{
    bool was_away = host->quiet != HOST_HEARD;
    host->quiet = HOST_HEARD;
    set_silence(core, host, core->config.timeouts.host_ms);
    if (was_away)
        (void)host_note(core, host, NOTE_HOST_BACK);
    if (core->read_only)
        return;
    host_take_list(core, host, beat);
    LIST_EACH(&host->rooms, room, struct room, on_host)
    {
        if (was_away || missed)
            room_seats_run(core, room);
    }
}

/* From now on it is that account's. */
static void give(const struct core *core, struct row_host *row, struct str account)
{
    row->registered_wall_ms = core->now.wall_ms;
    (void)str_copy(row->account, sizeof(row->account), account);
}

static struct host *registered(struct core *core, const struct host_beat *beat)
{
    struct row_host row = {.id = object_new_id(core, ROW_host)};
    (void)str_copy(row.name, sizeof(row.name), beat->name);
    give(core, &row, beat->account);
    take_row(&row, beat);
    struct host *host = enter(core, &row);
    object_touch(core, &host->object);
    (void)host_note(core, host, NOTE_HOST_REGISTERED);
    return host;
}

/* What ran there ran on somebody else's machine. */
static void take_over(struct core *core, struct host *host, struct str account)
{
    LIST_EACH(&host->rooms, room, struct room, on_host)
    {
        room_lost(core, room);
    }
    fault_host_is_well(core, host);
    give(core, &host->row, account);
    (void)host_note(core, host, NOTE_HOST_REGISTERED);
}

static void changed(struct core *core, struct host *host, const struct host_beat *beat)
{
    list_remove(&host->in_region);
    if (!host_is_of(host, beat->account))
        take_over(core, host, beat->account);
    take_row(&host->row, beat);
    list_append(&core->hosts_in[host->row.region], &host->in_region);
    object_touch(core, &host->object);
}

static void refuse_beat(struct core *core, conn_id conn, int err, struct str why)
{
    (void)note_refused(core, conn, err);
    struct effect *answer = effect_add(core, EFFECT_HOST_BEAT, conn);
    answer->err = err;
    answer->text = why;
}

void host_beat(struct core *core, conn_id conn, const struct host_beat *beat)
{
    struct host *host = host_named(core, beat->name);
    int err = judge(core, beat);
    if (!err && !host && (int32_t)core->rolls[ROW_host].n >= core->config.limits.hosts)
        err = ERR_TOO_MANY;
    if (err) {
        refuse_beat(core, conn, err, STR(""));
        return;
    }
    if (host && is_taken(host, beat)) {
        refuse_beat(core, conn, ERR_FORBIDDEN, host_belongs_to_another(core, host));
        return;
    }
    if (!host)
        host = registered(core, beat);
    else if (!is_same(&host->row, beat))
        changed(core, host, beat);
    bool missed = host->heard_core_ms == 0 || host_is_late(core, host);
    bool restarted = beat->beat <= host->beat;
    if (missed || restarted || host_is_away(host))
        fault_host_is_well(core, host); /* what it did before says nothing of it now */
    take_figures(core, host, beat);
    heard(core, host, beat, missed);
    effect_add(core, EFFECT_HOST_BEAT, conn)->object = host->row.id;
}

/* ── silence ───────────────────────────────────────────────────────────────────────────────── */

static int64_t at_least(int64_t ms, int64_t least_ms)
{
    return ms > least_ms ? ms : least_ms;
}

static void silent(struct core *core, struct host *host)
{
    const struct core_timeouts *t = &core->config.timeouts;
    host->quiet = HOST_SILENT;
    (void)host_note(core, host, NOTE_HOST_SILENT);
    LIST_EACH(&host->rooms, room, struct room, on_host)
    {
        room_seats_stand(core, room);
        if (room->row.state == ROOM_STARTING && !room->confirmed)
            room_unheard(core, room);
    }
    set_silence(core, host, at_least(t->host_lost_ms - t->host_ms, 0));
}

static void lost(struct core *core, struct host *host)
{
    const struct core_timeouts *t = &core->config.timeouts;
    host->quiet = HOST_LOST;
    (void)host_note(core, host, NOTE_HOST_LOST);
    LIST_EACH(&host->rooms, room, struct room, on_host)
    {
        room_lost(core, room);
    }
    set_silence(core, host, at_least(t->forget_ms - t->host_lost_ms, 0));
}

static void forget(struct core *core, struct host *host)
{
    assert(list_empty(&host->rooms));
    (void)host_note(core, host, NOTE_HOST_FORGOTTEN);
    deadline_clear(core, &host->silence);
    fault_forget_host(host);
    list_remove(&host->in_region);
    chain_remove(&core->hosts_by_name, str_hash(0, str_of(host->row.name)), &host->by_name);
    object_delete(core, &host->object);
}

void host_deadline(struct core *core, struct host *host)
{
    if (host->quiet == HOST_HEARD)
        silent(core, host);
    else if (host->quiet == HOST_SILENT)
        lost(core, host);
    else
        forget(core, host);
}

void host_give_time(struct core *core, struct host *host)
{
    if (host->quiet == HOST_HEARD)
        set_silence(core, host, core->config.timeouts.host_ms);
}

int operate_host(struct core *core, const struct operate *o)
{
    struct host *host = host_find(core, o->target);
    if (!host)
        return ERR_NOT_FOUND;
    host->row.disabled = o->verb == OPERATE_DISABLE_HOST;
    object_touch(core, &host->object);
    return 0;
}

/* ── loading and leaving ───────────────────────────────────────────────────────────────────── */

int host_load_row(struct core *core, const struct row_host *row)
{
    if (row->region < 0 || row->region >= REGION_CODES || row->name[0] == '\0')
        return ERR_FORMAT;
    enter(core, row)->object.stored = true;
    return 0;
}

/* Whoever was there before us has one full host_ms to say that he still is. */
void host_loaded(struct core *core, struct host *host)
{
    host->quiet_core_ms = core->now.core_ms;
    set_silence(core, host, core->config.timeouts.host_ms);
}

/* One that was away stays passed over until it speaks; that it is away is found out again, and
 * stored, when things can be stored. */
void host_take_over(struct core *core, struct host *fresh, const struct host *old)
{
    bool away = old->quiet != HOST_HEARD;
    size_t size = old->n_deployments * sizeof(*old->deployments);
    fresh->cpu_percent = old->cpu_percent;
    fresh->memory_percent = old->memory_percent;
    fresh->servers = old->servers;
    fresh->strangers = old->strangers;
    fresh->failing = old->failing;
    fresh->worked_core_ms = old->worked_core_ms;
    fresh->beat = old->beat;
    memcpy(fresh->failed_why, old->failed_why, sizeof(fresh->failed_why));
    fresh->leaving = old->leaving;
    fresh->heard_core_ms = away ? 0 : old->heard_core_ms;
    fresh->quiet_core_ms = old->quiet_core_ms;
    fresh->deployments = xmalloc(size ? size : 1);
    if (size > 0)
        memcpy(fresh->deployments, old->deployments, size);
    fresh->n_deployments = old->n_deployments;
    set_silence(core, fresh, away ? 0 : core->config.timeouts.host_ms);
}

void host_done(struct host *host)
{
    fault_forget_host(host);
    free(host->deployments);
}
