/* Requests of those who seek a place: what may be asked, what was asked before, who stands back for
 * whom. Who stands in line comes before who asks now. */
#include "core/seek.h"

#include "base/plant.h"
#include "core/seek_found.h"
#include "core/state.h"
#include "wire/names.h"

#include <stdio.h>
#include <string.h>

static bool by_bus(const struct seek *s)
{
    return s->bus == BUS_NATS || s->bus == BUS_PUBSUB;
}

/* A name that a player gives is his own: else he could take one that a service will use. */
static struct allocation *asked_before(const struct core *core, const struct seek *s)
{
    return allocation_named(core, s->bus == BUS_OWN ? s->player : STR(""), s->name);
}

static struct effect *refuse(struct core *core, conn_id conn, const struct seek *s, int err,
                             const char *sentence)
{
    struct envelope_result *result = arena_alloc(&core->out->arena, sizeof(*result));
    struct str text = text_keep(core, str_of(sentence ? sentence : err_sentence(err)));
    *result = (struct envelope_result){
        .ticket_id = text_keep(core, s->name), .status = ENVELOPE_FAILURE, .error = text};
    struct effect *note = note_of_seekers(core, s, note_refused(core, conn, err));
    note->text = text;
    struct effect *e = effect_add(core, by_bus(s) ? EFFECT_RESULT : EFFECT_SOUGHT, conn);
    e->err = err;
    e->verb = (int8_t)s->bus;
    e->text = text;
    e->result = result;
    e->arguments = arguments_keep(core, s->arguments);
    return e;
}

/* True when the player asks too often by their own token: refused then. */
static bool refuse_for_rate(struct core *core, conn_id conn, const struct seek *s)
{
    char why[FOUND_SENTENCE_MAX];
    int64_t wait_ms = s->bus == BUS_OWN ? core_rate_wait_ms(core, RATE_JOIN, s->player) : 0;
    if (wait_ms <= 0)
        return false;
    struct placed *placed = arena_alloc(&core->out->arena, sizeof(*placed));
    *placed = (struct placed){.retry_after_ms = wait_ms};
    rate_print(wait_ms, why, sizeof(why));
    refuse(core, conn, s, ERR_RATE_LIMITED, why)->placed = placed;
    return true;
}

static bool is_id(struct str id)
{
    return id.len > 0 && id.len <= 64;
}

static int judge(const struct seek *s)
{
    if (s->name.len == 0 || s->name.len > SEEK_NAME_MAX || s->info.len > 4096 ||
        s->n_friends > SEEK_FRIENDS_MAX || s->n_party >= PARTY_MAX || s->priority < 0 ||
        s->priority > SEEK_PRIORITY_MAX)
        return ERR_BAD_ARGUMENT;
    if (!is_id(s->player))
        return ERR_PLAYER_REQUIRED;
    for (size_t i = 0; i < s->n_friends; i++) {
        if (!is_id(s->friends[i]))
            return ERR_BAD_ARGUMENT;
    }
    for (size_t i = 0; i < s->n_party; i++) {
        if (!is_id(s->party[i]))
            return ERR_BAD_ARGUMENT;
    }
    return 0;
}

static struct fleet *judge_fleet(struct core *core, const struct seek *s, int *ret_err,
                                 char why[FOUND_SENTENCE_MAX])
{
    char name[sizeof(((struct fleet_config *)0)->name)];
    struct fleet *fleet =
        str_copy(name, sizeof(name), s->where.fleet) ? fleet_find_named(core, name) : NULL;
    if (!fleet || !fleet->config) {
        (void)snprintf(why, FOUND_SENTENCE_MAX, "fleet '%.*s' not found", (int)s->where.fleet.len,
                       s->where.fleet.at);
        *ret_err = ERR_NO_SUCH_FLEET;
        return NULL;
    }
    bool chat = fleet->config->provider == PROVIDER_CHAT;
    if (chat)
        (void)snprintf(why, FOUND_SENTENCE_MAX,
                       "fleet '%s' takes matches of chat servers, not single players",
                       fleet->row.name);
    *ret_err = chat ? ERR_WRONG_PROVIDER : 0;
    return fleet;
}

/* Each once, oneself excluded. */
static void keep_names(struct buf *list, const struct str *names, size_t n, struct str himself)
{
    for (size_t i = 0; i < n; i++) {
        struct str so_far = {(const char *)list->data, list->len};
        if (!str_eq(names[i], himself) && !names_have(so_far, names[i]))
            names_add(list, names[i]);
    }
}

/* Those who came with him and are still there. */
static void add_party(const struct core *core, struct buf *party, const struct fleet *fleet,
                      struct str player)
{
    const struct room_seat *his = room_seat_of(core, (int32_t)fleet->row.id, player);
    if (!his || !his->row.multi)
        return;
    LIST_EACH(&his->room->seats, seat, struct room_seat, in_room)
    {
        struct str name = str_of(seat->row.account);
        struct str so_far = {(const char *)party->data, party->len};
        if (seat->row.multi == his->row.multi && !names_have(so_far, name))
            names_add(party, name);
    }
}

/* He first, then those who come in any case, then those who come along with his party; and how many
 * the first two are. */
static struct str list_party(const struct core *core, const struct seek *s,
                             const struct fleet *fleet, struct buf *party, int *ret_named)
{
    names_add(party, s->player);
    keep_names(party, s->party, s->n_party, s->player);
    *ret_named = names_count((struct str){(const char *)party->data, party->len});
    if (s->move_party)
        add_party(core, party, fleet, s->player);
    return (struct str){(const char *)party->data, party->len};
}

static bool waits_with_older(const struct core *core, const struct fleet *fleet, struct str party)
{
    for (struct str name; names_next(&party, &name);) {
        if (allocation_of_player(core, (int32_t)fleet->row.id, name))
            return true;
    }
    return false;
}

/* Nobody waits twice in a fleet. */
static void supersede(struct core *core, const struct fleet *fleet, struct str party)
{
    for (struct str name; names_next(&party, &name);) {
        struct allocation *before = allocation_of_player(core, (int32_t)fleet->row.id, name);
        if (before)
            allocation_cancel(core, before, ERR_SUPERSEDED, str_of(err_sentence(ERR_SUPERSEDED)));
    }
}

/* A newer request takes the place of an older one only when something comes of it: what fails
 * leaves everybody where he was. So what there is for it with the older one in place is what it
 * gets; only when that is no place yet, it looks once more, after those in line, at what the older
 * one gave up. */
static void take_its_place(struct core *core, conn_id conn, const struct row_allocation *row,
                           struct fleet *fleet, struct ticket_regions *regions)
{
    struct found found;
    const struct allocation draft = {.row = *row, .fleet = fleet, .regions = regions};
    seek_find(core, &draft, &found);
    bool again = found.what == FOUND_LINE || found.what == FOUND_HOST;
    if (found.what == FOUND_STARTING)
        seek_hand_over(core, &draft, found.room);
    if (found.what != FOUND_NOTHING)
        supersede(core, fleet, row->party);
    if (again)
        queues_serve(core);
    struct allocation *a = allocation_new(core, conn, row, fleet, regions);
    struct found second = {.what = FOUND_NOTHING};
    if (again)
        seek_find(core, a, &second);
    /* Somebody in line may have been served who has his token. He was let wait, so he waits. */
    bool waits = found.what == FOUND_LINE && second.what == FOUND_NOTHING;
    seek_take(core, a, again && !waits ? &second : &found);
}

static void open_request(struct core *core, conn_id conn, const struct row_allocation *row,
                         struct fleet *fleet, struct ticket_regions *regions)
{
    if (waits_with_older(core, fleet, row->party))
        take_its_place(core, conn, row, fleet, regions);
    else
        seek_place(core, allocation_new(core, conn, row, fleet, regions));
}

static void take_request(struct core *core, conn_id conn, const struct seek *s, struct fleet *fleet,
                         struct str party, int named, int8_t region)
{
    struct buf friends = {0};
    struct ticket_regions own;
    bool is_own = ticket_regions_read(core, fleet->config->regions, &s->where, region, true, &own);
    keep_names(&friends, s->friends, s->n_friends, s->player);
    struct row_allocation row = {
        .id = object_new_id(core, ROW_ticket),
        .fleet = (int32_t)fleet->row.id,
        .bus = (int8_t)s->bus,
        .priority = s->priority,
        .region = region,
        .any_room = s->any_room,
        .rejoin = s->rejoin,
        .move_party = s->move_party ? (int8_t)named : 0,
        .opened_core_ms = core->now.core_ms,
        .arguments_len = OPERATE_DIGEST,
        .friends = {(const char *)friends.data, friends.len},
        .party = party,
        .info = s->info,
    };
    memcpy(row.arguments, s->arguments, OPERATE_DIGEST);
    (void)str_copy(row.name, sizeof(row.name), s->name);
    (void)str_copy(row.player, sizeof(row.player), s->player);
    (void)str_copy(row.from, sizeof(row.from), s->from);
    open_request(core, conn, &row, fleet, is_own ? &own : NULL);
    buf_done(&friends);
}

static void take_again(struct core *core, const struct allocation *a)
{
    struct room *room = room_find(core, a->row.room);
    struct place_player player = seek_player(a, str_of(a->row.player));
    if (a->row.state == ALLOCATION_DONE && room && seek_is_there(room) && room_free_seats(room) > 0)
        (void)room_seat_new(core, room, a->row.id, &player, 0);
}

/* True when the request was asked before: it has its answer, or will have it. */
static bool answer_again(struct core *core, conn_id conn, const struct seek *s)
{
    struct allocation *a = asked_before(core, s);
    if (!a)
        return false;
    if (PLANTED(redelivery_takes_twice))
        take_again(core, a);
    if (memcmp(a->row.arguments, s->arguments, OPERATE_DIGEST) != 0)
        (void)refuse(core, conn, s, ERR_NAME_CONFLICT, NULL);
    else if (by_bus(s))
        allocation_ask_by(core, a, (int8_t)s->bus); /* who asked first may have come otherwise */
    else if (a->row.state != ALLOCATION_OPEN)
        allocation_answer(core, a, conn);
    else if (!allocation_wait(a, conn))
        (void)refuse(core, conn, s, ERR_BUSY, NULL);
    return true;
}

bool seek_is_settled(const struct core *core, const struct seek *s)
{
    const struct allocation *a = asked_before(core, s);
    bool known = !by_bus(s) || (a && (a->row.bus & (int8_t)s->bus)); /* where it is told, too */
    return a && a->row.state != ALLOCATION_OPEN && known;
}

void seek(struct core *core, conn_id conn, const struct seek *s)
{
    char why[FOUND_SENTENCE_MAX] = "";
    int err = judge(s);
    if (!err && answer_again(core, conn, s))
        return;
    struct fleet *fleet = err ? NULL : judge_fleet(core, s, &err, why);
    int8_t region = err ? 0 : region_choose(core, fleet->config->regions, &s->where);
    if (!err && region < 0)
        err = ERR_REGION_NOT_SUPPORTED;
    if (!err && core->allocations_in[ALLOCATION_OPEN] >= core->config.limits.tickets_open)
        err = ERR_TOO_MANY;
    struct buf names = {0};
    int named = 0;
    struct str party = err ? (struct str){0} : list_party(core, s, fleet, &names, &named);
    if (!err && names_count(party) > PARTY_MAX)
        err = ERR_BAD_ARGUMENT;
    if (err) {
        (void)refuse(core, conn, s, err, why[0] ? why : NULL);
    } else if (!refuse_for_rate(core, conn, s)) {
        if (s->bus == BUS_OWN)
            core_rate_count(core, RATE_JOIN, s->player);
        take_request(core, conn, s, fleet, party, named, region);
    }
    buf_done(&names);
}

void unseek(struct core *core, conn_id conn, struct str owner, struct str name)
{
    struct allocation *a = allocation_named(core, owner, name);
    if (a && allocation_is_open(a)) {
        allocation_cancel(core, a, ERR_TICKET_CANCELLED, STR("the request was cancelled"));
        allocation_answer(core, a, conn);
        return;
    }
    struct seek s = {.name = name};
    (void)refuse(core, conn, &s, a ? ERR_ALREADY_OVER : ERR_NOT_FOUND, NULL);
}
