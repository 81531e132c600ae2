/* Faults. A failure belongs to one version on one host. It is the host's only when its agent did
 * something wrong, or when versions of different fleets fail there and nothing works; it is the
 * version's when that happens on several hosts, or again and again. What a player asked for is not
 * the version's fault as long as nobody else shows that it is. */
#include "core/fault.h"

#include "base/plant.h"
#include "core/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ── pauses ────────────────────────────────────────────────────────────────────────────────── */

static int64_t pause_length_ms(const struct core *core, const struct pause *pause)
{
    int64_t most_ms = core->config.timeouts.host_backoff_max_ms;
    int64_t ms = core->config.timeouts.host_backoff_ms;
    for (int32_t i = 1; i < pause->failures && ms < most_ms; i++)
        ms *= 2;
    return ms < most_ms ? ms : most_ms;
}

static void pause_begin(const struct core *core, struct pause *pause)
{
    pause->since_core_ms = core->now.core_ms;
    pause->until_awake_ms = deadline_now(core, DEADLINE_AWAKE) + pause_length_ms(core, pause);
}

bool pause_failed(const struct core *core, struct pause *pause, int64_t began_core_ms)
{
    if (pause->since_core_ms && began_core_ms <= pause->since_core_ms &&
        !PLANTED(outage_counts_each))
        return false;
    pause->failures++;
    pause_begin(core, pause);
    return true;
}

void pause_over(const struct core *core, struct pause *pause)
{
    *pause = (struct pause){.since_core_ms = core->now.core_ms - 1}; /* what begins now counts */
}

int64_t pause_left_ms(const struct core *core, const struct pause *pause)
{
    int64_t left_ms = pause->until_awake_ms - deadline_now(core, DEADLINE_AWAKE);
    return pause->failures > 0 && left_ms > 0 ? left_ms : 0;
}

/* ── being ─────────────────────────────────────────────────────────────────────────────────── */

static struct fault *fault_here(const struct host *host, const struct version *version)
{
    LIST_EACH(&host->faults, f, struct fault, on_host)
    {
        if (f->version == version)
            return f;
    }
    return NULL;
}

static struct fault *fault_new(struct host *host, struct version *version)
{
    struct fault *f = xcalloc(1, sizeof(*f));
    f->host = host;
    f->version = version;
    list_append(&host->faults, &f->on_host);
    list_append(&version->faults, &f->of_version);
    return f;
}

static void fault_free(struct fault *f)
{
    list_remove(&f->on_host);
    list_remove(&f->of_version);
    free(f);
}

struct fault_region *fault_in_region(const struct version *version, int8_t region)
{
    LIST_EACH(&version->failing_in, r, struct fault_region, of_version)
    {
        if (r->region == region)
            return r;
    }
    return NULL;
}

static struct fault_region *region_new(struct version *version, int8_t region)
{
    struct fault_region *r = xcalloc(1, sizeof(*r));
    r->version = version;
    r->region = region;
    list_append(&version->failing_in, &r->of_version);
    return r;
}

static void region_free(struct fault_region *r)
{
    list_remove(&r->of_version);
    list_remove(&r->in_quarantine);
    free(r);
}

int64_t fault_left_ms(const struct core *core, const struct host *host,
                      const struct version *version)
{
    const struct fault *f = version ? fault_here(host, version) : NULL;
    return f ? pause_left_ms(core, &f->pause) : 0;
}

void fault_forget_host(struct host *host)
{
    LIST_EACH(&host->faults, f, struct fault, on_host)
    {
        fault_free(f);
    }
}

static void version_forget_regions(struct version *version)
{
    LIST_EACH(&version->failing_in, r, struct fault_region, of_version)
    {
        region_free(r);
    }
}

void fault_version_done(struct version *version)
{
    LIST_EACH(&version->faults, f, struct fault, of_version)
    {
        fault_free(f);
    }
    version_forget_regions(version);
}

/* ── quarantine ────────────────────────────────────────────────────────────────────────────── */

static bool version_is_quarantined(const struct version *version)
{
    LIST_EACH(&version->failing_in, r, struct fault_region, of_version)
    {
        if (r->quarantined)
            return true;
    }
    return false;
}

/* The row says what its readers see; what it rests on is here only. */
static void quarantine_end(struct core *core, struct version *version)
{
    if (!version->row.quarantined || version_is_quarantined(version))
        return;
    version->row.quarantined = 0;
    version->row.reason[0] = '\0';
    object_touch(core, &version->object);
}

void fault_forget_version(struct core *core, struct version *version)
{
    LIST_EACH(&version->faults, f, struct fault, of_version)
    {
        pause_over(core, &f->pause);
    }
    version_forget_regions(version);
    version->n_suspects = 0;
    quarantine_end(core, version);
}

/* "It failed to start on 2 hosts in EU: LINE". */
static void quarantine_say(const struct core *core, const struct fault_region *r)
{
    struct row_version *row = &r->version->row;
    char how[48];
    if (r->on_others)
        (void)snprintf(how, sizeof(how), "on %d hosts", QUARANTINE_HOSTS);
    else
        (void)snprintf(how, sizeof(how), "%d times", r->times);
    (void)snprintf(row->reason, sizeof(row->reason), "It failed to start %s in %s%s%s", how,
                   region_name(core, r->region), r->line[0] ? ": " : "", r->line);
}

static void quarantine_begin(struct core *core, struct fault_region *r)
{
    struct version *version = r->version;
    quarantine_say(core, r);
    bool back = version->row.previous != 0;
    if (back) {
        version->row.deployment = version->row.previous;
        version->row.previous = 0;
    } else {
        r->quarantined = true;
        r->pause.failures = 1;
        pause_begin(core, &r->pause);
        version->row.quarantined = 1;
        list_append(&core->quarantined, &r->in_quarantine);
    }
    object_touch(core, &version->object);
    struct effect *note = note_add(core, NOTE_VERSION_QUARANTINED);
    note->fleet_id = version->row.fleet;
    note->object = version->row.id;
    note->region_code = r->region;
    note->text = text_keep(core, str_of(version->row.reason));
    if (back)
        fault_forget_version(core, version); /* of the deployment before nothing is known */
}

/* ── a start has failed ────────────────────────────────────────────────────────────────────── */

static bool settings_are_own(struct str settings)
{
    return settings.len == 0 || str_eq(settings, STR("{}"));
}

/* True when it says something of the version: it ran as its fleet says, or others failed with other
 * settings. Remembers it. */
static bool fault_is_evidence(const struct core *core, struct room *room)
{
    struct version *version = room->version;
    const struct room_ticket *ticket = room_ticket_find(core, room->row.ticket);
    if (settings_are_own(room->row.settings) || PLANTED(settings_blame_version))
        return true;
    struct fault_suspect now = {
        .account = ticket ? str_hash(2, str_of(ticket->row.account)) : 0,
        .settings = str_hash(3, room->row.settings),
    };
    bool known = false;
    for (int i = 0; i < version->n_suspects; i++) {
        const struct fault_suspect *s = &version->suspects[i];
        if (s->account != now.account && s->settings != now.settings)
            return true;
        known |= s->account == now.account && s->settings == now.settings;
    }
    if (known)
        return false;
    if (version->n_suspects == FAULT_SUSPECTS)
        memmove(version->suspects, version->suspects + 1,
                (size_t)--version->n_suspects * sizeof(*version->suspects));
    version->suspects[version->n_suspects++] = now;
    return false;
}

void fault_keep_line(char *dst, size_t cap, struct str from)
{
    size_t len = 0;
    for (size_t next = 0; (next = str_char_len(from)) > 0 && len + next < cap; len += next) {
        memcpy(dst + len, from.at, next);
        if (next == 1 && (unsigned char)dst[len] < ' ')
            dst[len] = ' ';
        from = (struct str){from.at + next, from.len - next};
    }
    dst[len] = '\0';
}

/* The last line of its output that is not empty, else the sentence. */
static struct str fault_last_line(const struct room_failure *failure)
{
    struct str tail = failure->tail;
    while (tail.len > 0 && (unsigned char)tail.at[tail.len - 1] <= ' ')
        tail.len--;
    size_t from = tail.len;
    while (from > 0 && tail.at[from - 1] != '\n')
        from--;
    return tail.len > 0 ? (struct str){tail.at + from, tail.len - from} : failure->text;
}

static bool host_has_open_room(const struct host *host)
{
    LIST_EACH(&host->rooms, room, const struct room, on_host)
    {
        if (room->row.state == ROOM_OPEN)
            return true;
    }
    return false;
}

/* True when versions of two fleets have failed there since anything worked. Those that are
 * quarantined are known to be the cause themselves. */
static bool host_fails_for_all(const struct host *host)
{
    const struct fleet *one = NULL;
    LIST_EACH(&host->faults, f, struct fault, on_host)
    {
        const struct fault_region *r = fault_in_region(f->version, host->row.region);
        bool since = f->pause.failures > 0 && f->pause.since_core_ms > host->worked_core_ms;
        if (!since || (r && r->quarantined))
            continue;
        if (one && one != f->version->fleet)
            return !host_has_open_room(host);
        one = f->version->fleet;
    }
    return false;
}

static void fault_note(struct core *core, const struct room *room, const struct fault *f)
{
    struct str name = text_keep(core, str_of(room->version->row.name));
    struct effect *note = room_note(core, room, NOTE_VERSION_BACKOFF);
    note->text = name;
    note->wall_ms = pause_left_ms(core, &f->pause);
}

static void region_count(struct core *core, const struct room *room,
                         const struct room_failure *failure)
{
    struct fault_region *r = fault_in_region(room->version, room->row.region);
    if (!r)
        r = region_new(room->version, room->row.region);
    fault_keep_line(r->line, sizeof(r->line), fault_last_line(failure));
    if (failure->fault != FAULT_OF_GAME)
        return; /* it may not have run */
    r->on_others |= r->times > 0 && r->first_host != room->row.host;
    if (r->times++ == 0)
        r->first_host = room->row.host;
    if (r->quarantined)
        (void)pause_failed(core, &r->pause, room->row.created_core_ms);
    else if (r->on_others || r->times >= QUARANTINE_TIMES)
        quarantine_begin(core, r);
}

static void version_blame(struct core *core, struct room *room, const struct room_failure *failure)
{
    struct host *host = room->host;
    /* One that was on its way out says nothing about what runs now. */
    if (room->row.deployment != room->version->row.deployment || !fault_is_evidence(core, room))
        return;
    struct fault *f = fault_here(host, room->version);
    if (!f)
        f = fault_new(host, room->version);
    if (!pause_failed(core, &f->pause, room->row.created_core_ms))
        return;
    fault_note(core, room, f);
    region_count(core, room, failure);
    if (host_fails_for_all(host))
        host_failed(core, room, STR("servers of two fleets do not start there"));
}

/* A cluster without a free server has not failed. */
void fault_failed(struct core *core, struct room *room, const struct room_failure *failure)
{
    const struct fleet_config *config = room->fleet->config;
    bool game = failure->fault == FAULT_OF_GAME || failure->fault == FAULT_UNKNOWN;
    if (config && config->provider == PROVIDER_AGONES)
        return;
    if (failure->fault == FAULT_OF_HOST || (game && PLANTED(fault_of_host)))
        host_failed(core, room, failure->text);
    else if (game)
        version_blame(core, room, failure);
}

/* ── it works ──────────────────────────────────────────────────────────────────────────────── */

void fault_worked(struct core *core, struct room *room)
{
    struct version *version = room->version;
    struct fault *f = fault_here(room->host, version);
    room->host->worked_core_ms = core->now.core_ms;
    pause_over(core, &room->host->failing);
    if (room->row.deployment != version->row.deployment)
        return;
    version->n_suspects = 0;
    if (f)
        pause_over(core, &f->pause);
    struct fault_region *r = fault_in_region(version, room->row.region);
    if (r)
        region_free(r);
    quarantine_end(core, version);
}

void fault_host_is_well(struct core *core, struct host *host)
{
    pause_over(core, &host->failing);
    LIST_EACH(&host->faults, f, struct fault, on_host)
    {
        pause_over(core, &f->pause);
    }
}

/* ── trials ────────────────────────────────────────────────────────────────────────────────── */

static bool trial_is_over(struct core *core, struct fault_region *r)
{
    const struct room *room = r->trial ? room_find(core, r->trial) : NULL;
    if (room && room->row.state == ROOM_STARTING)
        return false;
    if (r->trial && pause_left_ms(core, &r->pause) == 0)
        pause_begin(core, &r->pause); /* it came to nothing, and nobody knows why */
    r->trial = 0;
    return true;
}

static void trial_start(struct core *core, struct fault_region *r)
{
    struct no_host none;
    struct version *version = r->version;
    const struct region_order here = {.codes = {r->region}, .n = 1};
    struct choice choice = {
        .fleet = version->fleet, .version = version, .where = &here, .trial = true};
    if (!trial_is_over(core, r) || pause_left_ms(core, &r->pause) > 0 || rooms_are_many(core) ||
        !version->fleet->config || version_judge(version->fleet, str_of(version->row.name)) != 0)
        return;
    struct host *host = choose_host(core, &choice, &none);
    if (!host)
        return;
    struct room *room = room_new(core, NULL, version, host, STR("{}"));
    r->trial = room->row.id;
    room_tell(core, room);
}

/* A quarantine that was stored before this start is found out again, if it holds. */
static void quarantine_lift_stored(struct core *core)
{
    size_t at = 0;
    for (struct version *version = NULL; (version = object_next(core, ROW_version, &at));)
        quarantine_end(core, version);
}

void faults_settle(struct core *core)
{
    if (!core->quarantine_known)
        quarantine_lift_stored(core);
    core->quarantine_known = true;
    LIST_EACH(&core->quarantined, r, struct fault_region, in_quarantine)
    {
        trial_start(core, r);
    }
}

/* ── taking over ───────────────────────────────────────────────────────────────────────────── */

static void version_take_over(struct core *fresh, struct version *version,
                              const struct version *old)
{
    memcpy(version->suspects, old->suspects, sizeof(version->suspects));
    version->n_suspects = old->n_suspects;
    LIST_EACH(&old->faults, f, const struct fault, of_version)
    {
        struct host *host = host_find(fresh, f->host->row.id);
        if (host)
            fault_new(host, version)->pause = f->pause;
    }
    LIST_EACH(&old->failing_in, r, const struct fault_region, of_version)
    {
        if (r->quarantined && !version->row.quarantined)
            continue; /* that was lost with its batch */
        struct fault_region *kept = region_new(version, r->region);
        kept->times = r->times;
        kept->first_host = r->first_host;
        kept->on_others = r->on_others;
        kept->quarantined = r->quarantined;
        kept->pause = r->pause;
        kept->trial = r->trial;
        memcpy(kept->line, r->line, sizeof(kept->line));
        if (kept->quarantined)
            list_append(&fresh->quarantined, &kept->in_quarantine);
    }
}

void faults_take_over(struct core *fresh, const struct core *old)
{
    size_t at = 0;
    for (struct version *version = NULL; (version = object_next(fresh, ROW_version, &at));) {
        const struct version *same = version_find(old, version->row.id);
        if (same && same->row.deployment == version->row.deployment)
            version_take_over(fresh, version, same);
    }
}
