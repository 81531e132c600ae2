/* Dirty tracking. An object changed many times between two seals is written once, as it is at the
 * seal; one that came and went in between is never written at all. */
#include "core/lobby_tell.h"
#include "core/state.h"

#include <stdlib.h>
#include <string.h>

void *object_alloc(struct core *core, enum row_kind kind)
{
    struct object *o = slab_take(&core->memory[kind]);
    o->kind = kind;
    return o;
}

/* ── long fields ───────────────────────────────────────────────────────────────────────────── */

static bool has_long(enum row_kind kind)
{
    return kind == ROW_room_ticket || kind == ROW_room || kind == ROW_room_seat ||
           kind == ROW_allocation || kind == ROW_lobby_roster;
}

static struct str copy_of(struct str value)
{
    if (value.len == 0)
        return (struct str){0};
    char *copy = xmalloc(value.len);
    memcpy(copy, value.at, value.len);
    return (struct str){copy, value.len};
}

void long_set(struct str *field, struct str value)
{
    struct str copy = copy_of(value);
    free((char *)field->at);
    *field = copy;
}

void row_own(enum row_kind kind, void *row)
{
    if (!has_long(kind))
        return;
    for (const struct row_field *f = row_fields(kind); f->type != ROW_END; f++) {
        struct str *field = (struct str *)(void *)((char *)row + f->offset);
        if (f->type == ROW_long)
            *field = copy_of(*field);
    }
}

void row_disown(enum row_kind kind, void *row)
{
    if (!has_long(kind))
        return;
    for (const struct row_field *f = row_fields(kind); f->type != ROW_END; f++) {
        if (f->type == ROW_long)
            long_set((struct str *)(void *)((char *)row + f->offset), (struct str){0});
    }
}

/* ── objects ───────────────────────────────────────────────────────────────────────────────── */

static void done(struct object *o)
{
    row_disown(o->kind, object_row(o));
    if (o->kind == ROW_host)
        host_done(container_of(o, struct host, object));
    else if (o->kind == ROW_version)
        version_done(container_of(o, struct version, object));
    else if (o->kind == ROW_allocation)
        allocation_free_members(container_of(o, struct allocation, object));
    else if (o->kind == ROW_room)
        room_done(container_of(o, struct room, object));
    else if (o->kind == ROW_lobby)
        lobby_done(container_of(o, struct lobby, object));
}

/* The object is the first member of every durable struct. */
void object_free(struct core *core, struct object *o)
{
    done(o);
    struct slab *memory = &core->memory[o->kind];
    if (memory->size > 0)
        slab_give(memory, o);
    else
        free(o);
}

void object_touch(struct core *core, struct object *o)
{
    core->only_struck_off = false;
    if (!link_in_list(&o->dirty))
        list_append(&core->dirty, &o->dirty);
}

void object_enter(struct core *core, struct object *o)
{
    roll_add(&core->rolls[o->kind], *(const int64_t *)object_row(o), &o->listed);
}

void object_delete(struct core *core, struct object *o)
{
    roll_remove(&core->rolls[o->kind], &o->listed);
    o->gone = true;
    object_touch(core, o);
}

void *object_find(const struct core *core, enum row_kind kind, int64_t id)
{
    struct roll_place *place = roll_find(&core->rolls[kind], id);
    return place ? container_of(place, struct object, listed) : NULL;
}

void *object_next(const struct core *core, enum row_kind kind, size_t *at)
{
    struct roll_place *place = roll_walk(&core->rolls[kind], at);
    return place ? container_of(place, struct object, listed) : NULL;
}

void *object_row(struct object *o)
{
    switch (o->kind) {
#define ROW_OF(kind_, type_)                                                                       \
    case ROW_##kind_:                                                                              \
        return &container_of(o, struct type_, object)->row;
        ROW_OF(fleet, fleet)
        ROW_OF(chat_server, chat_server)
        ROW_OF(server, server)
        ROW_OF(session, session)
        ROW_OF(seat, seat)
        ROW_OF(ticket, ticket)
        ROW_OF(enrolment, enrolment_token)
        ROW_OF(audit, audit)
        ROW_OF(request, request)
        ROW_OF(host, host)
        ROW_OF(deployment, deployment)
        ROW_OF(version, version)
        ROW_OF(ban, ban)
        ROW_OF(room_ticket, room_ticket)
        ROW_OF(room, room)
        ROW_OF(room_seat, room_seat)
        ROW_OF(allocation, allocation)
        ROW_OF(room_detail, room_detail)
        ROW_OF(token_mode, token_mode)
        ROW_OF(allocation_detail, allocation_detail)
        ROW_OF(lobby, lobby)
        ROW_OF(lobby_roster, lobby_roster)
        ROW_OF(restore, restore)
        ROW_OF(ticket_regions, ticket_regions)
#undef ROW_OF
    case ROW_counter:
    case ROW_KINDS:
        break;
    }
    abort();
}

/* Few ids at a time where they are visible and dense, many where they are taken fast. */
static int64_t block_of(enum row_kind kind)
{
    bool fast = kind == ROW_session || kind == ROW_seat || kind == ROW_ticket;
    return fast ? 4096 : 1;
}

int64_t object_new_id(struct core *core, enum row_kind kind)
{
    int64_t id = core->next_id[kind]++;
    struct row_counter *row = &core->counter_rows[kind];
    if (core->next_id[kind] > row->next) {
        row->next = core->next_id[kind] - 1 + block_of(kind);
        object_touch(core, &core->counters[kind]);
    }
    return id;
}

static void encode_and_free(struct core *core, struct object *o, struct batch *batch)
{
    struct buf *out = &batch->changes;
    bool counter = o->kind == ROW_counter;
    void *row = counter ? &core->counter_rows[o - core->counters] : object_row(o);
    if (!o->gone) {
        if (o->kind == ROW_ticket)
            ticket_keep_tries(container_of(o, struct ticket, object));
        if (o->kind == ROW_room_ticket)
            room_ticket_keep_tries(container_of(o, struct room_ticket, object));
        change_encode_row(out, o->kind, row);
        batch->n_changes++;
        o->stored = true;
        return;
    }
    if (o->stored) {
        change_encode_gone(out, o->kind, *(const int64_t *)row);
        batch->n_changes++;
    }
    object_free(core, o);
}

/* What has left is owed no more. Nobody waits until that is stored: the worst is that it is said
 * again after a crash. */
static void strike_off(struct core *core)
{
    bool alone = list_empty(&core->dirty);
    bool still_alone = core->only_struck_off;
    sessions_events_left(core);
    lobbies_told_left(core);
    core->only_struck_off = (alone || still_alone) && !list_empty(&core->dirty);
    if (alone)
        core->struck_off_ms = core->now.core_ms;
}

static bool can_wait(const struct core *core, const struct batch *batch)
{
    return core->only_struck_off && batch->effects.len == 0 && !core->hasty &&
           core->now.core_ms - core->struck_off_ms < CORE_STRUCK_OFF_MS;
}

void core_hasten(struct core *core)
{
    core->hasty = true;
}

void core_seal(struct core *core, struct batch *batch)
{
    strike_off(core);
    bool wait = can_wait(core, batch);
    while (!wait && !list_empty(&core->dirty)) {
        struct object *o = container_of(list_first(&core->dirty), struct object, dirty);
        list_remove(&o->dirty);
        encode_and_free(core, o, batch);
    }
    if (batch->changes.len > 0)
        core->seq++;
    batch->seq = core->seq;
    batch->core_ms = core->now.core_ms;
    batch->wall_ms = core->now.wall_ms;
}

void core_left(struct core *core, const struct batch *batch)
{
    if (batch->changes.len == 0) {
        sessions_events_leave(core);
        lobbies_told_leave(core);
        servers_asked_leave(core);
    }
    core->left_seq = batch->seq;
    servers_asked_left(core);
}

bool core_is_clean(const struct core *core)
{
    return list_empty(&core->dirty);
}

int64_t core_seq(const struct core *core)
{
    return core->seq;
}

void core_numbered(struct core *core, int64_t seq)
{
    assert(list_empty(&core->dirty) && seq >= core->seq);
    core->seq = seq;
    core->left_seq = seq;
}
