/* Views: copies of what core knows, for people. Core times become wall times by their distance from
 * now, which is right however often the clock was set in between. */
#include "core/view.h"

#include "core/state.h"

#include <math.h>

static int64_t wall_of(const struct core *core, int64_t core_ms)
{
    return wall_at(core->now, core_ms);
}

/* ── lists ─────────────────────────────────────────────────────────────────────────────────── */

int64_t core_next(const struct core *core, enum row_kind kind, int64_t after)
{
    return roll_next(&core->rolls[kind], after);
}

int64_t core_previous(const struct core *core, enum row_kind kind, int64_t before)
{
    return roll_previous(&core->rolls[kind], before);
}

/* ── groups ────────────────────────────────────────────────────────────────────────────────── */

static void add_group(struct group *sum, const struct group *group)
{
    for (int i = 0; i < PASSED_REASONS; i++)
        sum->count[i] += group->count[i];
    for (int i = 0; i < 4; i++)
        sum->status[i] += group->status[i];
    sum->connected += group->connected;
    sum->slots_used += group->slots_used;
    sum->slots_total += group->slots_total;
    sum->open += group->open;
    sum->cpu_centi += group->cpu_centi;
    sum->memory_centi += group->memory_centi;
    sum->ratio_ppm += group->ratio_ppm;
    sum->ratio_square += group->ratio_square;
}

static struct view_group show_group(const struct group *group)
{
    struct view_group view = {
        .slots_used = group->slots_used,
        .slots_total = group->slots_total,
        .sessions_open = (int32_t)group->open,
        .connected = group->connected,
    };
    for (int i = 0; i < PASSED_REASONS; i++)
        view.passed[i] = group->count[i];
    for (int i = 0; i < 4; i++)
        view.servers[i] = group->status[i];
    if (group->connected == 0)
        return view;
    double n = group->connected;
    double mean_ppm = (double)group->ratio_ppm / n;
    double variance = (double)group->ratio_square / n - mean_ppm * mean_ppm;
    view.cpu_percent = (double)group->cpu_centi / 100 / n;
    view.memory_percent = (double)group->memory_centi / 100 / n;
    view.load_mean = mean_ppm / 1e6;
    view.load_spread = variance > 0 ? sqrt(variance) / 1e6 : 0;
    return view;
}

bool view_group(const struct core *core, int64_t fleet_id, int8_t region, struct view_group *ret)
{
    const struct fleet *fleet = fleet_find(core, fleet_id);
    if (!fleet || region < 0 || region >= REGION_CODES)
        return false;
    struct view_group view = show_group(&fleet->groups[region]);
    int32_t servers = 0;
    for (int i = 0; i < 4; i++)
        servers += view.servers[i];
    if (servers == 0)
        return false;
    *ret = view;
    return true;
}

bool view_region(const struct core *core, int8_t code, struct view_region *ret)
{
    if (!region_configured(core, code))
        return false;
    const struct region_config *config = &core->config.regions[code];
    struct group sum = {0};
    size_t at = 0;
    for (const struct fleet *fleet = NULL; (fleet = map_next(&core->fleets, &at));)
        add_group(&sum, &fleet->groups[code]);
    *ret = (struct view_region){
        .code = code,
        .name = config->name,
        .located = config->located,
        .latitude = config->latitude,
        .longitude = config->longitude,
        .group = show_group(&sum),
    };
    return true;
}

bool view_fleet(const struct core *core, int64_t id, struct view_fleet *ret)
{
    const struct fleet *fleet = fleet_find(core, id);
    if (!fleet)
        return false;
    struct group sum = {0};
    for (int code = 0; code < REGION_CODES; code++)
        add_group(&sum, &fleet->groups[code]);
    *ret = (struct view_fleet){
        .id = fleet->row.id,
        .name = fleet->row.name,
        .configured = fleet->config != NULL,
        .ready_required = fleet->config && fleet->config->ready_required,
        .group = show_group(&sum),
    };
    return true;
}

/* ── objects ───────────────────────────────────────────────────────────────────────────────── */

const char *view_fleet_name(const struct core *core, int64_t id)
{
    const struct fleet *fleet = fleet_find(core, id);
    return fleet ? fleet->row.name : "";
}

static const char *chat_server_name(const struct core *core, int64_t id)
{
    const struct chat_server *chat = map_get(&core->chat_servers, (uint64_t)id);
    return chat ? chat->row.name : "";
}

static int64_t backoff_left_ms(const struct core *core, const struct server *server)
{
    if (!deadline_is_set(&server->backoff))
        return 0;
    int64_t left_ms = deadline_at_ms(&server->backoff) - deadline_now(core, DEADLINE_AWAKE);
    return left_ms > 0 ? left_ms : 0;
}

void view_row_server(const struct core *core, const struct row_server *row, struct instant then,
                     struct view_server *ret)
{
    *ret = (struct view_server){
        .id = row->id,
        .fleet_id = row->fleet,
        .fleet = view_fleet_name(core, row->fleet),
        .ip = row->ip,
        .port = row->port,
        .region = row->region,
        .region_name = region_name(core, row->region),
        .draining_by_server = (row->draining & DRAIN_BY_SERVER) != 0,
        .draining_by_operator = (row->draining & DRAIN_BY_OPERATOR) != 0,
        .max_sessions = row->max_sessions,
        .registered_wall_ms = wall_at(then, row->registered_core_ms),
    };
}

bool view_server(const struct core *core, int64_t id, struct view_server *ret)
{
    const struct server *server = map_get(&core->servers, (uint64_t)id);
    if (!server)
        return false;
    view_row_server(core, &server->row, core->now, ret);
    ret->status = server_status(server);
    ret->passed_over = server->passed_over;
    ret->connected = server->conn != 0;
    ret->load = server_load(server);
    ret->reported = server->reported;
    ret->sessions = server->live;
    ret->open = server->open;
    ret->unknown_matches = server->stranger_slots;
    ret->cpu_percent = server->cpu_percent;
    ret->memory_percent = server->memory_percent;
    ret->score = placement_score(server);
    ret->backoff_left_ms = backoff_left_ms(core, server);
    ret->round_trip_us = server->conn ? server->round_trip_us : 0;
    ret->heard_wall_ms = wall_of(core, server->heard_core_ms);
    ret->connected_wall_ms = server->conn ? wall_of(core, server->connected_core_ms) : 0;
    return true;
}

const char *session_state_name(int8_t state)
{
    static const char *const names[SESSION_STATES] = {
        [SESSION_OPENING] = "opening",       [SESSION_OPEN] = "open",   [SESSION_LOST] = "lost",
        [SESSION_CANCELLING] = "cancelling", [SESSION_ENDED] = "ended",
    };
    return state > 0 && state < SESSION_STATES ? names[state] : "?";
}

const char *seat_state_name(int8_t state)
{
    return state == SEAT_TAKEN ? "taken" : state == SEAT_LEFT ? "left" : "?";
}

const char *end_reason_name(int8_t reason)
{
    static const char *const names[END_REASONS] = {
        [END_NONE] = "",
        [END_MATCH_ENDED] = "match_ended",
        [END_SERVER_LOST] = "server_lost",
        [END_NOT_LISTED] = "not_listed",
        [END_TOO_LONG] = "too_long",
        [END_NOT_REPORTED] = "not_reported",
        [END_BY_OPERATOR] = "by_operator",
        [END_SPAWN_FAILED] = "spawn_failed",
        [END_SPAWN_TIMEOUT] = "spawn_timeout",
        [END_EXITED] = "exited",
        [END_EMPTY] = "empty",
        [END_GIVEN_UP] = "given_up",
        [END_HOST_LOST] = "host_lost",
        [END_HUNG] = "hung",
    };
    return reason >= 0 && reason < END_REASONS ? names[reason] : "?";
}

void view_row_session(const struct core *core, const struct row_session *row, struct instant then,
                      struct view_session *ret)
{
    *ret = (struct view_session){
        .id = row->id,
        .ticket = row->ticket,
        .server = row->server,
        .fleet_id = row->fleet,
        .fleet = view_fleet_name(core, row->fleet),
        .chat_server = chat_server_name(core, row->chat_server),
        .lobby = row->lobby,
        .game_type = row->game_type,
        .game_mode = row->game_mode,
        .player_count = row->player_count,
        .state = session_state_name(row->state),
        .end_reason = end_reason_name(row->end_reason),
        .ready = row->ready != 0,
        .created_wall_ms = wall_at(then, row->created_core_ms),
        .opened_wall_ms = wall_at(then, row->opened_core_ms),
        .deadline_wall_ms = wall_at(then, row->deadline_core_ms),
    };
}

bool view_session(const struct core *core, int64_t id, struct view_session *ret)
{
    const struct session *session = session_find(core, id);
    if (!session)
        return false;
    view_row_session(core, &session->row, core->now, ret);
    ret->seated = session->seated;
    ret->deadline_wall_ms = wall_of(core, deadline_at_ms(&session->deadline));
    return true;
}

const char *ticket_state_name(int8_t state)
{
    static const char *const names[TICKET_STATES] = {
        [TICKET_OPEN] = "open",           [TICKET_DONE] = "done",   [TICKET_FAILED] = "failed",
        [TICKET_CANCELLED] = "cancelled", [TICKET_ENDED] = "ended",
    };
    return state > 0 && state < TICKET_STATES ? names[state] : "?";
}

static struct view_try show_try(const struct attempt *attempt)
{
    return (struct view_try){
        .server = attempt->server,
        .outcome = try_outcome_name(attempt->outcome),
        .score = attempt->score,
        .load = attempt->load,
        .max_sessions = attempt->max,
        .cpu_percent = attempt->cpu_percent,
        .memory_percent = attempt->memory_percent,
    };
}

_Static_assert((int)VIEW_TRIES == (int)TICKET_TRIES, "a view shows every try");

static void show_tries(const struct ticket *ticket, struct view_ticket *ret)
{
    ret->n_tries = ticket->n_tries;
    for (int i = 0; i < ticket->n_tries; i++)
        ret->tries[i] = show_try(&ticket->tries[i]);
    for (int i = 0; i < PASSED_REASONS; i++)
        ret->passed[i] = ticket->passed[i];
}

static void show_ticket(const struct core *core, const struct row_ticket *row, struct instant then,
                        struct view_ticket *ret)
{
    bool refused = row->state == TICKET_FAILED || row->state == TICKET_CANCELLED;
    *ret = (struct view_ticket){
        .id = row->id,
        .fleet_id = row->fleet,
        .fleet = view_fleet_name(core, row->fleet),
        .chat_server = chat_server_name(core, row->chat_server),
        .lobby = row->lobby,
        .regions = (uint64_t)row->regions,
        .game_type = row->game_type,
        .game_mode = row->game_mode,
        .player_count = row->player_count,
        .average_rating = row->average_rating,
        .state = ticket_state_name(row->state),
        .open = row->state == TICKET_OPEN,
        .err = refused ? row->error : 0,
        .session = row->session,
        .opened_wall_ms = wall_at(then, row->opened_core_ms),
        .answered_wall_ms = row->answered_wall_ms,
        /* While its match is played, the session has the deadline. */
        .deadline_wall_ms = row->state == TICKET_DONE ? 0 : wall_at(then, row->deadline_core_ms),
    };
}

void view_row_ticket(const struct core *core, const struct row_ticket *row, struct instant then,
                     struct view_ticket *ret)
{
    struct ticket ticket = {.row = *row};
    show_ticket(core, row, then, ret);
    if (ticket_restore_tries(&ticket) != 0)
        return;
    show_tries(&ticket, ret);
    if (row->state == TICKET_FAILED)
        ret->session = 0;
    else if (row->session != 0 &&
             ticket.n_tries > 0) /* its session is on the last that was tried */
        ret->server = ticket.tries[ticket.n_tries - 1].server;
}

bool view_ticket(const struct core *core, int64_t id, struct view_ticket *ret)
{
    const struct ticket *ticket = ticket_find(core, id);
    if (!ticket)
        return false;
    const struct session *session = session_find(core, ticket->row.session);
    show_ticket(core, &ticket->row, core->now, ret);
    show_tries(ticket, ret);
    /* The last session of one that failed was given up, and is about to be gone. */
    bool has_it = session && ticket->row.state != TICKET_FAILED;
    ret->session = has_it ? ticket->row.session : 0;
    ret->server = has_it ? session->row.server : 0;
    return true;
}

void view_row_token(const struct row_enrolment *row, struct view_token *ret)
{
    *ret = (struct view_token){
        .id = row->id,
        .name = row->name,
        .role = (enum enrolment_role)row->role,
        .fleet = row->fleet,
        .regions = (uint64_t)row->regions,
        .generation = row->generation,
        .created_wall_ms = row->created_wall_ms,
        .expires_wall_ms = row->expires_wall_ms,
        .revoked_wall_ms = row->revoked_wall_ms,
        .previous_until_wall_ms = row->previous_until_wall_ms,
    };
}

bool view_token(const struct core *core, int64_t id, struct view_token *ret)
{
    const struct enrolment_token *token = enrolment_get(core, id);
    if (!token)
        return false;
    view_row_token(&token->row, ret);
    ret->connections = token->connections;
    return true;
}

void view_row_audit(const struct row_audit *row, struct view_audit *ret)
{
    *ret = (struct view_audit){
        .id = row->id,
        .wall_ms = row->at_wall_ms,
        .who = row->who,
        .address = row->address,
        .action = audit_action(row->verb),
        .target_kind = audit_target_kind(row->verb),
        .target = row->target,
        .detail = row->detail,
    };
}

bool view_audit(const struct core *core, int64_t id, struct view_audit *ret)
{
    const struct audit *audit = map_get(&core->audits, (uint64_t)id);
    if (!audit)
        return false;
    view_row_audit(&audit->row, ret);
    return true;
}

bool view_peer(const struct core *core, conn_id conn, struct view_peer *ret)
{
    const struct peer *peer = peer_find(core, conn);
    if (!peer || peer->challenging || peer->role == PEER_CLIENT)
        return false;
    if (peer->server)
        *ret = (struct view_peer){ROLE_SERVER, peer->server->row.id, peer->server->fleet->row.id,
                                  peer->server->fleet->row.name, peer->server->row.region};
    else
        *ret = (struct view_peer){ROLE_CHAT, 0, peer->chat->fleet->row.id,
                                  peer->chat->fleet->row.name, -1};
    return true;
}

/* ── words and the rest ────────────────────────────────────────────────────────────────────── */

const char *passed_over_name(enum passed_over reason)
{
    static const char *const names[PASSED_REASONS] = {
        [PASSED_NOT] = "",
        [PASSED_OFFLINE] = "offline",
        [PASSED_AWAY] = "away",
        [PASSED_UNLISTED] = "unlisted",
        [PASSED_DRAINING] = "draining",
        [PASSED_FAILING] = "failing",
        [PASSED_FULL] = "full",
    };
    return names[reason];
}

const char *server_status_name(enum server_status status)
{
    static const char *const names[] = {"available", "full", "draining", "offline"};
    return names[status];
}

const struct core_config *core_config(const struct core *core)
{
    return &core->config;
}

bool core_is_read_only(const struct core *core)
{
    return core->read_only;
}

int64_t core_spoofed(const struct core *core)
{
    return core->spoofed;
}
