/* The invariants of docs/ARCHITECTURE.md that can be seen in one core. The simulator looks after
 * every step; nothing here is used to decide anything. */
#include "core/check.h"

#include "core/state.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *broken(struct core *core, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(core->check_text, sizeof(core->check_text), format, args);
    va_end(args);
    return core->check_text;
}

bool has_deadline(const struct core *core, const struct deadline *d)
{
    if (!deadline_is_set(d))
        return false;
    int64_t late_ms = deadline_now(core, (enum deadline_clock)d->clock) - deadline_at_ms(d);
    /* We were stopped, and what came due meanwhile is run by the tick that is still to come. */
    bool woke = core->deadlines[DEADLINE_CORE].now_ms < core->last_tick_ms;
    return core->read_only || core->last_tick_ms == 0 || woke || late_ms < 2000;
}

static const char *check_session(struct core *core, struct session *s)
{
    if (s->seated > s->row.player_count || s->admitted > s->row.player_count)
        return broken(core, "I1: session %" PRId64 " seats %d of %d", s->row.id, s->admitted,
                      s->row.player_count);
    if (!has_deadline(core, &s->deadline))
        return broken(core, "I6: session %" PRId64 " in state %d has no deadline ahead", s->row.id,
                      s->row.state);
    bool waits = s->row.state == SESSION_OPENING || s->row.state == SESSION_CANCELLING;
    if (waits && !has_deadline(core, &s->reply))
        return broken(core, "I6: session %" PRId64 " waits for ever for a reply", s->row.id);
    struct ticket *ticket = ticket_find(core, s->row.ticket);
    if (session_is_live(s) && (!ticket || ticket->row.session != s->row.id))
        return broken(core, "I4: session %" PRId64 " is live but its ticket has another",
                      s->row.id);
    if (session_is_live(s) && ticket->row.state != TICKET_OPEN && ticket->row.state != TICKET_DONE)
        return broken(core, "I4: session %" PRId64 " is live but its ticket is over", s->row.id);
    if (s->row.events_owed && !link_in_list(&s->in_owed))
        return broken(core, "I7: session %" PRId64 " owes events nobody will send", s->row.id);
    return NULL;
}

/* Counts what is really there; the counters must agree and the server must not be overfull. */
static const char *check_server(struct core *core, struct server *server)
{
    int32_t held = 0;
    int32_t live = 0;
    LIST_EACH(&server->sessions, s, struct session, on_server)
    {
        live += session_is_live(s);
        held += session_holds_slot(core, s);
    }
    int id = (int)server->row.id;
    if (live > server->max_allowed)
        return broken(core, "I2: server %d holds %d sessions of %d", id, live, server->max_allowed);
    if (held != server->held || live != server->live)
        return broken(core, "I2: server %d counts %d/%d slots but holds %d/%d", id, server->held,
                      server->live, held, live);
    if (!server->offline && !has_deadline(core, &server->silent))
        return broken(core, "I6: server %d may be silent for ever", id);
    if (server->conn && !server->listed && !has_deadline(core, &server->list))
        return broken(core, "I6: server %d may stay unlisted for ever", id);
    bool forgettable = server->offline && list_empty(&server->sessions);
    if (forgettable && !has_deadline(core, &server->forget))
        return broken(core, "I6: server %d is never forgotten", id);
    bool placeable = server->passed_over == PASSED_NOT;
    if (placeable != heap_has(&server->place))
        return broken(core, "server %d is in the wrong heap", id);
    return NULL;
}

static const char *check_ticket(struct core *core, struct ticket *t)
{
    struct session *session = session_find(core, t->row.session);
    bool opening = session && session->row.state == SESSION_OPENING;
    bool running =
        session && (session->row.state == SESSION_OPEN || session->row.state == SESSION_LOST);
    bool waits = link_in_list(&t->in_waiting);
    if (waits && (t->row.state != TICKET_OPEN || opening))
        return broken(core, "ticket %" PRId64 " waits for a server and needs none", t->row.id);
    if (t->row.state == TICKET_OPEN && !opening && !waits)
        return broken(core, "I6: ticket %" PRId64 " is open but nothing is being opened",
                      t->row.id);
    if (waits && !core->tickets_stirred) {
        if (!placement_awaits(core, t))
            return broken(core, "I6: ticket %" PRId64 " waits, and no server is expected",
                          t->row.id);
        if (placement_could(core, t))
            return broken(core, "ticket %" PRId64 " waits for a server while there is one",
                          t->row.id);
    }
    if (t->row.state == TICKET_DONE && !running)
        return broken(core, "I4: ticket %" PRId64 " was answered but its match is not there",
                      t->row.id);
    if (t->row.state != TICKET_DONE && !has_deadline(core, &t->deadline))
        return broken(core, "I6: ticket %" PRId64 " in state %d has no deadline ahead", t->row.id,
                      t->row.state);
    return NULL;
}

static const char *check_seat(struct core *core, struct seat *seat)
{
    uint64_t key = map_pair(seat->row.fleet, seat->row.account);
    struct seat *live = map_get(&core->seats_by_player, key);
    if (seat->row.state == SEAT_TAKEN && live != seat)
        return broken(core, "I3: player %d has two seats", seat->row.account);
    return NULL;
}

/* The sums that are kept up must be those one gets by counting. */
static const char *check_fleet(struct core *core, struct fleet *fleet)
{
    struct group counted[REGION_CODES] = {0};
    size_t at = 0;
    for (struct server *server = NULL; (server = map_next(&core->servers, &at));) {
        if (server->fleet == fleet && server->grouped)
            group_count(&counted[server->row.region], &server->share, 1);
        if (server->grouped && (server->share.load != server_load(server) ||
                                server->share.status != (int8_t)server_status(server) ||
                                server->share.open != server->open))
            return broken(core, "server %d is summed up as it was, not as it is",
                          (int)server->row.id);
    }
    for (int code = 0; code < REGION_CODES; code++) {
        const struct group *kept = &fleet->groups[code];
        const struct group *is = &counted[code];
        if (kept->slots_used != is->slots_used || kept->slots_total != is->slots_total ||
            kept->open != is->open || kept->awaited != is->awaited ||
            kept->connected != is->connected || kept->ratio_ppm != is->ratio_ppm ||
            kept->ratio_square != is->ratio_square || kept->cpu_centi != is->cpu_centi ||
            kept->memory_centi != is->memory_centi)
            return broken(core, "the sums of fleet %s in region %d are wrong", fleet->row.name,
                          code);
    }
    return NULL;
}

static const char *check_ban(struct core *core, struct ban *ban)
{
    const char *wrong = ban_check_index(core, ban);
    if (wrong)
        return broken(core, "ban %" PRId64 " %s", ban->row.id, wrong);
    /* One that had expired holds again when the clock is set back; that takes nobody's place. */
    if (ban->row.expires_wall_ms <= core->check_wall_ms)
        return NULL;
    int64_t seat = view_next_seat_of(core, str_of(ban->row.account), 0);
    if (seat)
        return broken(core, "I10: seat %" PRId64 " is held by banned account %s", seat,
                      ban->row.account);
    return NULL;
}

static const char *check_chat_ban(struct core *core, struct seat *seat)
{
    const struct ban *ban =
        seat->row.state == SEAT_TAKEN ? ban_of_chat(core, seat->row.account) : NULL;
    if (ban && ban->row.expires_wall_ms > core->check_wall_ms)
        return broken(core, "I10: seat %" PRId64 " is taken by banned account %d", seat->row.id,
                      seat->row.account);
    return NULL;
}

static const char *check_version(struct core *core, struct version *v)
{
    const int64_t used[] = {v->row.deployment, v->row.previous, v->row.wanted};
    for (int i = 0; i < 3; i++) {
        const struct deployment *d = deployment_find(core, used[i]);
        if (used[i] && (!d || d->fleet != v->fleet || strcmp(d->row.version, v->row.name) != 0))
            return broken(core, "version %" PRId64 " names deployment %" PRId64 ", which is none",
                          v->row.id, used[i]);
    }
    if ((v->row.wanted != 0) != link_in_list(&v->in_switching))
        return broken(core, "version %" PRId64 " is not switched, or for nothing", v->row.id);
    LIST_EACH(&v->failing_in, r, const struct fault_region, of_version)
    {
        if (r->quarantined != link_in_list(&r->in_quarantine) ||
            (r->quarantined && !v->row.quarantined))
            return broken(core, "I6: version %" PRId64 " is quarantined for ever", v->row.id);
    }
    if (version_row_of(v->fleet, str_of(v->row.name)) != v)
        return broken(core, "version %" PRId64 " is not found by its name", v->row.id);
    return NULL;
}

const char *core_check(struct core *core)
{
    CHECK_ALL(object_next(core, ROW_session, &at), session, check_session);
    CHECK_ALL(object_next(core, ROW_server, &at), server, check_server);
    CHECK_ALL(object_next(core, ROW_ticket, &at), ticket, check_ticket);
    CHECK_ALL(map_next(&core->seats, &at), seat, check_seat);
    CHECK_ALL(object_next(core, ROW_fleet, &at), fleet, check_fleet);
    if (core->now.wall_ms > core->check_wall_ms)
        core->check_wall_ms = core->now.wall_ms;
    CHECK_ALL(object_next(core, ROW_ban, &at), ban, check_ban);
    if (core->rolls[ROW_ban].n > 0)
        CHECK_ALL(map_next(&core->seats, &at), seat, check_chat_ban);
    CHECK_ALL(object_next(core, ROW_version, &at), version, check_version);
    const char *why = check_rooms(core);
    if (!why)
        why = check_allocations(core);
    return why ? why : check_lobbies(core);
}
