#include "core/token_mode.h"

#include "base/plant.h"
#include "core/state.h"

static struct token_mode *newest(const struct fleet *fleet)
{
    struct link *last = list_last(&fleet->token_modes);
    return last ? container_of(last, struct token_mode, in_fleet) : NULL;
}

/* As they are stored. */
enum {
    KIND = 1,    /* enum fleet_token */
    KEYED = 2,   /* of agents; neither: as it is configured, in folders that did not keep it */
    KEYLESS = 4, /* of a cluster */
    KEYS = KEYED | KEYLESS,
};
_Static_assert(TOKEN_OPAQUE == 0 && (int)TOKEN_PLAYER_ID == (int)KIND, "a stored mode has them");

/* Seats of folders that kept no modes have what is configured when modes are kept first. */
static int configured(const struct fleet *fleet)
{
    const struct fleet_config *config = fleet->config;
    if (!config)
        return TOKEN_OPAQUE | KEYED;
    return (int)config->token | (config->provider == PROVIDER_AGONES ? KEYLESS : KEYED);
}

static int mode_of(const struct fleet *fleet, int64_t seat)
{
    int mode = configured(fleet);
    LIST_EACH(&fleet->token_modes, m, struct token_mode, in_fleet)
    {
        if (m->row.from_seat <= seat && !PLANTED(token_reconfigured))
            mode = m->row.mode;
    }
    return mode & KEYS ? mode : mode | (configured(fleet) & KEYS);
}

enum fleet_token token_mode_of(const struct fleet *fleet, int64_t seat)
{
    return (enum fleet_token)(mode_of(fleet, seat) & KIND);
}

bool token_mode_has_key(const struct fleet *fleet, int64_t seat)
{
    return mode_of(fleet, seat) & KEYED;
}

enum fleet_token token_mode_now(const struct fleet *fleet)
{
    return token_mode_of(fleet, INT64_MAX);
}

static struct token_mode *enter(struct core *core, struct fleet *fleet,
                                const struct row_token_mode *row)
{
    struct token_mode *m = xcalloc(1, sizeof(*m));
    m->object.kind = ROW_token_mode;
    m->row = *row;
    list_append(&fleet->token_modes, &m->in_fleet);
    object_enter(core, &m->object);
    return m;
}

/* The oldest seat of the fleet that somebody is in or that a result names. */
static int64_t oldest_seat(const struct core *core, const struct fleet *fleet)
{
    int64_t oldest = core->next_id[ROW_seat];
    size_t at = 0;
    for (const struct room_seat *s = NULL; (s = object_next(core, ROW_room_seat, &at));) {
        if (s->room->fleet == fleet && s->row.id < oldest)
            oldest = s->row.id;
    }
    at = 0;
    for (const struct allocation *a = NULL; (a = object_next(core, ROW_allocation, &at));) {
        for (size_t i = 0; a->fleet == fleet && i < a->row.seats.len / 8; i++) {
            if (allocation_seat(a, i) < oldest)
                oldest = allocation_seat(a, i);
        }
    }
    return oldest;
}

/* Those that no seat needs any more, so that there are never many. */
static void forget(struct core *core, struct fleet *fleet)
{
    int64_t oldest = oldest_seat(core, fleet);
    struct token_mode *before = NULL;
    LIST_EACH(&fleet->token_modes, m, struct token_mode, in_fleet)
    {
        if (before && m->row.from_seat <= oldest) {
            list_remove(&before->in_fleet);
            object_delete(core, &before->object);
        }
        before = m;
    }
}

static void settle(struct core *core, struct fleet *fleet)
{
    struct token_mode *last = newest(fleet);
    if (!fleet->config || fleet->config->provider == PROVIDER_CHAT)
        return;
    if (last && !(last->row.mode & KEYS)) {
        last->row.mode = (int8_t)(last->row.mode | (configured(fleet) & KEYS));
        object_touch(core, &last->object);
    }
    if (last && last->row.mode == configured(fleet))
        return;
    struct row_token_mode row = {
        .id = object_new_id(core, ROW_token_mode),
        .fleet = (int32_t)fleet->row.id,
        .from_seat = last ? core->next_id[ROW_seat] : 0,
        .mode = (int8_t)configured(fleet),
    };
    object_touch(core, &enter(core, fleet, &row)->object);
    forget(core, fleet);
}

void token_modes_settle(struct core *core)
{
    size_t at = 0;
    for (struct fleet *fleet = NULL; (fleet = object_next(core, ROW_fleet, &at));)
        settle(core, fleet);
}

int token_mode_load_row(struct core *core, const struct row_token_mode *row)
{
    struct fleet *fleet = fleet_find(core, row->fleet);
    if (!fleet || (row->mode & ~(KIND | KEYS)) || (row->mode & KEYS) == KEYS ||
        (newest(fleet) && newest(fleet)->row.from_seat > row->from_seat))
        return ERR_FORMAT;
    enter(core, fleet, row)->object.stored = true;
    return 0;
}
