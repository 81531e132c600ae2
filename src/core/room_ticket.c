/* Tickets of rooms: what was asked, which hosts were tried, and what was answered. */
#include "core/room_ticket.h"

#include "core/state.h"
#include "wire/put.h"

#include <string.h>

/* A stored ticket holds its error as a number: that is part of the format. */
_Static_assert(ERR_SPAWN_FAILED == -53 && ERR_SPAWN_TIMEOUT == -54,
               "append to errors.def, or raise ROW_FORMAT");

struct room_ticket *room_ticket_find(const struct core *core, int64_t id)
{
    return object_find(core, ROW_room_ticket, id);
}

const char *room_try_outcome_name(int outcome)
{
    static const char *const names[ROOM_TRY_OUTCOMES] = {
        [ROOM_TRY_PENDING] = "pending",   [ROOM_TRY_OPENED] = "opened",
        [ROOM_TRY_FAILED] = "failed",     [ROOM_TRY_TIMED_OUT] = "timed_out",
        [ROOM_TRY_GIVEN_UP] = "given_up",
    };
    return outcome >= 0 && outcome < ROOM_TRY_OUTCOMES ? names[outcome] : "?";
}

/* ── the tries, as they are kept for `why` ─────────────────────────────────────────────────── */

void room_ticket_keep_tries(struct room_ticket *ticket)
{
    struct buf b = {.data = ticket->row.tries, .cap = sizeof(ticket->row.tries)};
    put_u8(&b, (uint8_t)ticket->n_tries);
    for (int i = 0; i < ticket->n_tries; i++) {
        const struct room_try *t = &ticket->tries[i];
        put_i64(&b, t->host);
        put_i64(&b, t->room);
        put_i8(&b, t->outcome);
        put_f32(&b, t->load_percent);
    }
    assert(b.data == ticket->row.tries); /* it fits, so the buffer never had to grow */
    ticket->row.tries_len = (uint16_t)b.len;
}

static int restore_tries(struct room_ticket *ticket)
{
    struct cursor c = cursor_of(ticket->row.tries, ticket->row.tries_len);
    if (ticket->row.tries_len == 0)
        return 0;
    int n = cursor_i8(&c);
    if (n < 0 || n > VIEW_HOST_TRIES)
        return ERR_FORMAT;
    for (int i = 0; i < n; i++) {
        struct room_try *t = &ticket->tries[i];
        t->host = cursor_i64(&c);
        t->room = cursor_i64(&c);
        t->outcome = cursor_i8(&c);
        t->load_percent = cursor_f32(&c, 0, 1e9F);
    }
    ticket->n_tries = n;
    cursor_end(&c);
    return cursor_failed(&c) ? ERR_FORMAT : 0;
}

/* ── loading and leaving ───────────────────────────────────────────────────────────────────── */

static uint64_t map_key(const uint8_t digest[OPERATE_DIGEST])
{
    uint64_t key = 0;
    memcpy(&key, digest, sizeof(key));
    return key;
}

static struct room_ticket *enter(struct core *core, const struct row_room_ticket *row)
{
    struct room_ticket *ticket = object_alloc(core, ROW_room_ticket);
    ticket->row = *row;
    row_own(ROW_room_ticket, &ticket->row);
    ticket->deadline.kind = DEADLINE_ROOM_TICKET;
    if (row->key_len == OPERATE_DIGEST)
        chain_add(&core->room_tickets_by_key, map_key(row->key), &ticket->by_key);
    object_enter(core, &ticket->object);
    return ticket;
}

int room_ticket_load_row(struct core *core, const struct row_room_ticket *row)
{
    if (!fleet_find(core, row->fleet) || row->state <= 0 || row->state >= ROOM_TICKET_STATES ||
        (row->key_len != 0 && row->key_len != OPERATE_DIGEST))
        return ERR_FORMAT;
    struct room_ticket *ticket = enter(core, row);
    ticket->object.stored = true;
    return restore_tries(ticket);
}
