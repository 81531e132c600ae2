/* A simulated host: an agent and the game servers it has started. The agent is honest: it starts
 * each server once, says what became of it in order and until it is answered, and lists what runs.
 * It can die and come back without a server noticing, be out of reach for longer than it is waited
 * for, and lose everything that ran on it. Some servers are never ready, some too late. */
#include "sim/world.h"

#include "base/buf.h"
#include "base/err.h"
#include "core/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WAKE_MS = 1000,
    MACHINE_BEAT_MS = 5000,
    ANSWER_MS = 5000,
    PREPARED_MS = 5000,
    CALL_MS = 5000,
    DISK_MS = 10 * 1000, /* what is decided is told when a slow disk has it, and the one before */
};

static void wake_after(struct world *w, struct machine *m, int64_t delay_ms)
{
    world_after(w, delay_ms, HAPPENS_MACHINE)->actor = m->index;
}

void machine_init(struct world *w, struct machine *m, int index)
{
    struct random *r = &w->random;
    *m = (struct machine){.index = index};
    m->region = (int8_t)random_between(r, 0, 2);
    m->slots = (int32_t)random_between(r, 1, 8);
    m->slow_percent = random_chance(r, 30) ? (int)random_between(r, 1, 50) : 0;
    m->fail_percent = random_chance(r, 30) ? (int)random_between(r, 1, 40) : 0;
    wake_after(w, m, random_between(r, 0, 5000));
}

static bool is_cut(const struct world *w, const struct machine *m)
{
    return w->now_ms < m->cut_until_ms || w->now_ms < m->stalled_until_ms;
}

/* ── requests and answers ──────────────────────────────────────────────────────────────────── */

struct parcel *parcel_new(enum event_kind kind, conn_id conn)
{
    struct parcel *parcel = xcalloc(1, sizeof(*parcel));
    parcel->event.kind = kind;
    parcel->event.conn = conn;
    return parcel;
}

void parcel_send(struct world *w, struct parcel *parcel)
{
    int64_t slow = random_chance(&w->random, 5);
    const struct node *n = w->leader;
    /* Somebody asks the wrong one of two, who knows nobody to send him to. */
    bool from_outside = parcel->event.conn != 0 && w->n_nodes > 1;
    bool lost =
        from_outside && (random_chance(&w->random, 3) || (n && w->now_ms < n->peers_cut_until_ms));
    if (lost) {
        free(parcel);
        return;
    }
    plane_after(w, random_between(&w->random, 0, slow ? 900 : 3), HAPPENS_PARCEL)->parcel = parcel;
}

static void copy_seats(struct reply *reply, const struct placed *placed)
{
    for (size_t i = 0; placed && i < placed->n_seats && i < MAX_PARTY; i++) {
        struct reply_seat *seat = &reply->seats[reply->n_seats++];
        seat->seat = placed->seats[i].seat;
        (void)str_copy(seat->account, sizeof(seat->account), placed->seats[i].account);
        (void)str_copy(seat->key, sizeof(seat->key), placed->seats[i].key);
    }
}

static void copy_spawn(struct reply *reply, const struct spawn *spawn)
{
    reply->server = spawn->server;
    reply->session = spawn->session;
    reply->deployment = spawn->deployment ? spawn->digest[0] : -1;
    reply->tower = str_eq(spawn->fleet, STR("tower"));
    reply->hangs = spawn->settings.len > 2; /* only who is hostile asks for anything */
    (void)str_copy(reply->tokens, sizeof(reply->tokens), spawn->tokens);
}

static void copy_member(struct reply *reply, struct str account, struct str key)
{
    struct reply_seat *seat = &reply->seats[reply->n_seats++];
    (void)str_copy(seat->account, sizeof(seat->account), account);
    (void)str_copy(seat->key, sizeof(seat->key), key);
    seat->seat = strtoll(seat->key, NULL, 10); /* it stands before the dot */
}

/* Who he is stands in his request only. */
static void copy_result(struct reply *reply, const struct envelope_result *r)
{
    (void)str_copy(reply->text, sizeof(reply->text), r->ticket_id);
    reply->status = (int8_t)r->status;
    reply->session = r->session_id;
    if (r->status != ENVELOPE_SUCCESS)
        return;
    copy_member(reply, STR(""), r->key);
    for (size_t i = 0; i < r->n_party && i < ASK_OTHERS; i++)
        copy_member(reply, r->party[i].player_id, r->party[i].key);
}

struct happening *reply_later(struct world *w, const struct effect *e, int64_t delay_ms)
{
    struct reply *reply = xcalloc(1, sizeof(*reply));
    *reply = (struct reply){.kind = e->kind, .conn = e->conn, .err = e->err};
    reply->server = e->kind == EFFECT_PLACED ? e->server_id : e->object;
    reply->session = e->session;
    reply->object = e->kind == EFFECT_ROUTE ? e->ticket : e->object;
    reply->on = e->on;
    reply->state = e->event;
    reply->bus = e->verb;
    reply->status = -1;
    if (e->kind == EFFECT_SPAWN || e->kind == EFFECT_PREPARE)
        copy_spawn(reply, e->spawn);
    struct str text = e->kind == EFFECT_AGENT && e->taken ? e->taken->account : e->token;
    (void)str_copy(reply->text, sizeof(reply->text), text);
    if ((e->kind == EFFECT_SOUGHT || e->kind == EFFECT_RESULT) && e->result)
        copy_result(reply, e->result);
    copy_seats(reply, e->kind == EFFECT_PLACED && !e->err ? e->placed : NULL);
    struct happening *h = world_after(w, delay_ms, HAPPENS_REPLY);
    h->reply = reply;
    return h;
}

/* "http://host-2", or "agones:pods" */
static int machine_at(const struct world *w, struct str url)
{
    if (w->pods && str_eq(url, STR("agones:pods")))
        return w->n_machines - 1;
    int index = url.len > 0 ? url.at[url.len - 1] - '0' : -1;
    return index >= 0 && index < w->n_machines ? index : -1;
}

void machine_command(struct world *w, const struct effect *e)
{
    bool spawn = e->kind == EFFECT_SPAWN || e->kind == EFFECT_PREPARE;
    int index = machine_at(w, spawn ? e->spawn->url : e->ip);
    if (e->kind == EFFECT_SPAWN)
        shadow_faults_told(w, e->spawn);
    if (index < 0)
        world_broken(w, "%s to a host that never was", effect_name(e->kind));
    else
        reply_later(w, e, random_between(&w->random, 0, 200))->reply->machine = index;
}

static void machine_say_heard(struct world *w, const struct reply *command, int err, int64_t ms)
{
    struct parcel *parcel = parcel_new(EVENT_HOST_HEARD, 0);
    if (command->kind == EFFECT_SPAWN && (err == ERR_BUSY || err == ERR_IO))
        shadow_faults_wrong(w, command->server);
    parcel->event.host_heard =
        (struct host_heard){.server = command->server,
                            .spawn = command->kind == EFFECT_SPAWN,
                            .err = err,
                            .fault = err == ERR_SPAWN_FAILED ? FAULT_OF_CONFIG : FAULT_OF_HOST,
                            .text = err ? STR("no port is free") : STR("")};
    plane_after(w, ms + random_between(&w->random, 0, 3), HAPPENS_PARCEL)->parcel = parcel;
}

static void say_heard(struct world *w, const struct reply *command, int err)
{
    bool slow = random_chance(&w->random, 5);
    if (!command->unheard)
        machine_say_heard(w, command, err, slow ? random_between(&w->random, 0, 900) : 0);
}

/* ── processes ─────────────────────────────────────────────────────────────────────────────── */

struct process *process_on(struct machine *m, int64_t server)
{
    for (int i = 0; i < m->n_processes; i++) {
        if (m->processes[i].server == server)
            return &m->processes[i];
    }
    return NULL;
}

struct process *process_find(struct world *w, int64_t server)
{
    struct process *p = NULL;
    for (int i = 0; i < w->n_machines && !p; i++)
        p = process_on(&w->machines[i], server);
    return p && p->state != PROCESS_GONE && !p->prepared ? p : NULL;
}

struct process *process_some(struct world *w)
{
    struct machine *m = &w->machines[random_between(&w->random, 0, w->n_machines - 1)];
    if (m->n_processes == 0)
        return NULL;
    struct process *p = &m->processes[random_between(&w->random, 0, m->n_processes - 1)];
    return p->prepared ? NULL : p;
}

/* The newest that finds no room is let go: what a game server cannot say it says again. */
struct report *process_report(struct process *p, enum agent_verb verb)
{
    if (p->n_reports == MAX_REPORTS)
        p->n_reports--;
    struct report *report = &p->reports[p->n_reports++];
    *report = (struct report){.verb = verb, .seq = ++p->seq, .player = -1};
    return report;
}

static bool ran_here(const struct machine *m, int64_t server)
{
    for (int i = 0; i < m->n_past; i++) {
        if (m->past[i] == server)
            return true;
    }
    return false;
}

static void remember(struct machine *m, int64_t server)
{
    if (m->n_past == MAX_PROCESSES)
        memmove(m->past, m->past + 1, sizeof(m->past) - sizeof(*m->past));
    m->past[m->n_past < MAX_PROCESSES ? m->n_past++ : MAX_PROCESSES - 1] = server;
}

static int32_t in_use(const struct machine *m)
{
    int32_t n = 0;
    for (int i = 0; i < m->n_processes; i++)
        n += m->processes[i].state != PROCESS_GONE;
    return n;
}

/* With commas between them. */
static void copy_tokens(struct process *p, const char *tokens)
{
    while (*tokens && p->n_tokens < MAX_TOKENS) {
        size_t len = strcspn(tokens, ",");
        (void)str_copy(p->tokens[p->n_tokens++], TOKEN_SIZE, (struct str){tokens, len});
        tokens += len + (tokens[len] == ',');
    }
}

static struct process *start_process(struct world *w, struct machine *m,
                                     const struct reply *command)
{
    bool slow = random_chance(&w->random, m->slow_percent);
    bool full = m->cluster && in_use(m) >= m->slots;
    struct process *p = &m->processes[m->n_processes++];
    if (command->deployment >= 0 && command->deployment < DEPLOYMENTS)
        m->has[command->deployment] = true; /* fetched first */
    *p = (struct process){.server = command->server, .session = command->session};
    p->state = PROCESS_STARTING;
    p->fails = random_chance(&w->random, m->fail_percent) || full || command->hangs ||
               (command->tower && w->now_ms < w->tower_broken_until_ms);
    copy_tokens(p, command->tokens);
    p->changes_ms = w->now_ms + random_between(&w->random, 20, slow ? 60 * 1000 : 3000);
    return p;
}

static void hear_prepare(struct world *w, struct machine *m, const struct reply *command)
{
    bool known = process_on(m, command->server) || ran_here(m, command->server);
    if (known || m->n_processes == MAX_PROCESSES)
        return;
    struct process *p = start_process(w, m, command);
    p->prepared = true;
    p->prepared_until_ms = w->now_ms + PREPARED_MS;
    w->result->prepared++;
}

static void discard(struct machine *m, struct process *p)
{
    *p = m->processes[--m->n_processes];
}

/* What was begun for it goes on. False when it was begun for somebody else, whose room was never
 * stored: it must go first. */
static bool confirm(struct world *w, struct machine *m, struct process *p,
                    const struct reply *command)
{
    if (p->session == command->session) {
        p->prepared = false;
        return true;
    }
    discard(m, p);
    w->result->prepared_in_vain++;
    say_heard(w, command, ERR_IO);
    return false;
}

static void hear_spawn(struct world *w, struct machine *m, const struct reply *command)
{
    struct process *begun = process_on(m, command->server);
    if (begun && begun->prepared && !confirm(w, m, begun, command))
        return;
    bool known = process_on(m, command->server) || ran_here(m, command->server);
    for (int i = 0; i < w->n_machines && !known; i++) {
        const struct process *other = process_on(&w->machines[i], command->server);
        if (other && !other->prepared)
            world_wrong(w, "I9: server %" PRId64 " is started on two hosts", command->server);
    }
    const struct process *there = process_on(m, command->server);
    if (there && there->session != command->session)
        world_wrong(w, "server %" PRId64 " of room %" PRId64 " is started for room %" PRId64,
                    there->server, there->session, command->session);
    bool refused = random_chance(&w->random, 3) && !m->cluster;
    if (!known && (m->n_processes == MAX_PROCESSES || refused)) {
        say_heard(w, command, ERR_BUSY);
        return;
    }
    if (!known && command->tower && random_chance(&w->fault_random, 3)) {
        say_heard(w, command, ERR_SPAWN_FAILED); /* it has no such binary */
        return;
    }
    if (!known)
        (void)start_process(w, m, command);
    say_heard(w, command, 0);
}

static void end_process(struct world *w, struct process *p)
{
    if (p->state == PROCESS_ENDING || p->state == PROCESS_GONE)
        return;
    p->state = PROCESS_ENDING;
    p->changes_ms = w->now_ms + random_between(&w->random, 0, 6000);
}

/* Whoever asked gives up waiting; what was asked is done when the agent goes on. */
static void machine_stall(struct world *w, const struct machine *m, const struct reply *command)
{
    struct reply *kept = xmalloc(sizeof(*kept));
    *kept = *command;
    kept->unheard = true;
    world_after(w, m->stalled_until_ms - w->now_ms + 1, HAPPENS_REPLY)->reply = kept;
    if (command->kind == EFFECT_SPAWN || command->kind == EFFECT_TERMINATE)
        machine_say_heard(w, command, ERR_IO, CALL_MS);
}

static void hear_command(struct world *w, struct machine *m, const struct reply *command)
{
    if (w->now_ms < m->stalled_until_ms && !m->agent_down && w->now_ms >= m->cut_until_ms) {
        machine_stall(w, m, command);
        return;
    }
    struct process *p = process_on(m, command->server);
    bool out_of_reach = is_cut(w, m) || m->agent_down;
    if (out_of_reach && m->cluster)
        return; /* it is asked again, sooner or later */
    if (command->kind == EFFECT_PREPARE) {
        if (!out_of_reach)
            hear_prepare(w, m, command);
        return;
    }
    if (command->kind == EFFECT_SPAWN && !m->cluster && random_chance(&w->random, 5)) {
        say_heard(w, command, ERR_LOGIN_FAILED); /* without a token nobody is asked */
        return;
    }
    if (out_of_reach && command->kind != EFFECT_KICK_SEAT)
        say_heard(w, command, ERR_IO);
    if (out_of_reach)
        return;
    if (command->kind == EFFECT_SPAWN) {
        hear_spawn(w, m, command);
    } else if (command->kind == EFFECT_TERMINATE) {
        if (p)
            end_process(w, p);
        say_heard(w, command, 0);
    }
}

static void live(struct world *w, const struct machine *m, struct process *p)
{
    if (p->state == PROCESS_GONE || p->prepared || p->changes_ms > w->now_ms)
        return;
    if (p->state == PROCESS_STARTING && !p->fails) {
        p->state = PROCESS_RUNNING;
        p->changes_ms = w->now_ms + random_between(&w->random, 5 * 1000, 900 * 1000);
        (void)process_report(p, AGENT_INITED);
        if (m->cluster)
            cluster_opened(w, p);
        return;
    }
    (void)process_report(p, p->state == PROCESS_STARTING ? AGENT_FAILED : AGENT_EXITED);
    p->state = PROCESS_GONE;
}

/* ── what the agent says ───────────────────────────────────────────────────────────────────── */

static void name_machine(struct parcel *parcel, const struct machine *m)
{
    if (m->cluster) {
        (void)snprintf(parcel->text, sizeof(parcel->text), "agones/pods");
        (void)snprintf(parcel->url, sizeof(parcel->url), "agones:pods");
        return;
    }
    (void)snprintf(parcel->text, sizeof(parcel->text), "host-%d", m->index);
    (void)snprintf(parcel->url, sizeof(parcel->url), "http://host-%d", m->index);
}

static void say_beat(struct world *w, struct machine *m)
{
    struct parcel *parcel = parcel_new(EVENT_HOST_BEAT, ++w->next_conn);
    struct host_beat *beat = &parcel->event.host_beat;
    name_machine(parcel, m);
    *beat = (struct host_beat){
        .name = str_of(parcel->text),
        .account = STR("agents"),
        .address = STR("192.0.2.1"),
        .url = str_of(parcel->url),
        .region = m->region,
        .slots = m->cluster ? 0 : m->slots,
        .servers = parcel->servers,
        .beat = ++m->beat,
        .leaving = m->leaving,
        .fleet = m->cluster ? STR("pods") : STR(""),
    };
    m->beating = parcel->event.conn;
    beat->cpu_percent = (float)random_between(&w->random, 0, 90);
    beat->memory_percent = (float)random_between(&w->random, 0, 97);
    beat->deployments = (const uint8_t(*)[OPERATE_DIGEST])parcel->deployments;
    for (int i = 0; i < DEPLOYMENTS; i++) {
        m->has[i] = m->has[i] || m->lacks[i];
        m->lacks[i] = false;
        if (m->has[i])
            parcel->deployments[beat->n_deployments++][0] = (uint8_t)i;
    }
    for (int i = 0; i < m->n_processes; i++) {
        const struct process *p = &m->processes[i];
        if (p->state == PROCESS_GONE || p->prepared)
            continue;
        parcel->servers[beat->n_servers++] = (struct host_server){
            .server = p->server,
            .session = p->session,
            .pid = (int32_t)p->server,
            .state = (enum host_server_state)p->state,
            .ports = {(uint16_t)(30000 + p->server % 10000)},
            .n_ports = 1,
        };
    }
    parcel_send(w, parcel);
}

static struct str why_failed(const struct machine *m, const struct report *report)
{
    if (report->verb != AGENT_FAILED)
        return STR("");
    return m->cluster ? STR("no capacity in fleet 'pods'") : STR("exit status 1");
}

/* The first that was not answered, again when the answer does not come. */
static void say_report(struct world *w, struct machine *m, struct process *p)
{
    if (p->n_reports == 0 || (p->asking && w->now_ms - p->asked_ms < ANSWER_MS))
        return;
    const struct report *report = &p->reports[0];
    struct parcel *parcel = parcel_new(EVENT_AGENT, ++w->next_conn);
    name_machine(parcel, m);
    (void)snprintf(parcel->url, sizeof(parcel->url), "%s", report->key);
    parcel->event.agent = (struct agent_event){
        .verb = report->verb,
        .host = str_of(parcel->text),
        .account = STR("agents"),
        .server = p->server,
        .seq = report->seq,
        .key = str_of(parcel->url),
        .settings = STR(""),
        .text = why_failed(m, report),
        .tail = STR(""),
        .fault = report->verb == AGENT_FAILED && !m->old ? FAULT_OF_GAME : FAULT_UNKNOWN,
        .ports = {(uint16_t)(30000 + p->server % 10000)},
        .n_ports = 1,
        .pid = (int32_t)p->server,
        .address = m->cluster ? STR("203.0.113.7") : STR(""),
        .name = m->cluster ? STR("pods-x7k2p") : STR(""),
    };
    p->asking = parcel->event.conn;
    p->asked_ms = w->now_ms;
    parcel_send(w, parcel);
    if (report->verb == AGENT_LEFT)
        seekers_rush(w);
}

static void forget_gone(struct machine *m)
{
    for (int i = 0; i < m->n_processes; i++) {
        if (m->processes[i].state != PROCESS_GONE || m->processes[i].n_reports > 0)
            continue;
        remember(m, m->processes[i].server);
        m->processes[i--] = m->processes[--m->n_processes];
    }
}

/* Those whose time is over, or all of them: the next agent does not know what they were for. */
static void discard_prepared(struct world *w, struct machine *m, bool all)
{
    for (int i = 0; i < m->n_processes; i++) {
        struct process *p = &m->processes[i];
        if (!p->prepared || (!all && w->now_ms < p->prepared_until_ms))
            continue;
        w->result->prepared_in_vain++;
        discard(m, p);
        i--;
    }
}

static void agent_dies(struct world *w, struct machine *m)
{
    discard_prepared(w, m, true);
    m->agent_down = true;
    m->agent_back_ms = w->now_ms + random_between(&w->random, 500, 60 * 1000);
    for (int i = 0; i < m->n_processes; i++)
        m->processes[i].asking = 0;
}

void machine_wake(struct world *w, struct machine *m)
{
    wake_after(w, m, WAKE_MS);
    discard_prepared(w, m, false);
    for (int i = 0; i < m->n_processes; i++)
        live(w, m, &m->processes[i]);
    if (m->agent_down && (w->now_ms >= m->agent_back_ms || w->quiet)) {
        m->agent_down = m->leaving = false;
        m->beat = 0;
        m->next_beat_ms = 0;
    }
    if (w->quiet)
        m->cut_until_ms = m->stalled_until_ms = 0;
    if (m->leaving && random_chance(&w->random, 10))
        agent_dies(w, m); /* it was stopped, as it said */
    if (m->agent_down || is_cut(w, m))
        return;
    for (int i = 0; i < m->n_processes; i++)
        say_report(w, m, &m->processes[i]);
    forget_gone(m);
    if (w->now_ms < m->next_beat_ms)
        return;
    m->next_beat_ms = w->now_ms + MACHINE_BEAT_MS;
    say_beat(w, m);
}

void machine_beat(struct world *w, const struct effect *e)
{
    for (int i = 0; i < w->n_machines; i++) {
        struct machine *m = &w->machines[i];
        if (e->err || (m->beating != e->conn && (!m->host || m->host != e->object)))
            continue;
        m->beat_ms = w->now_ms;
        m->slept_at_beat_ms = w->leader->slept_ms;
        if (m->beating != e->conn)
            continue; /* it has given that one up, but it was heard */
        const uint8_t *lacking[DEPLOYMENTS];
        size_t n = view_lacking(plane_core(w), e->object, lacking, DEPLOYMENTS);
        for (size_t k = 0; k < n; k++)
            m->lacks[lacking[k][0]] = true;
        m->host = e->object;
    }
}

void machines_get_time(struct world *w)
{
    for (int i = 0; i < w->n_machines; i++) {
        w->machines[i].beat_ms = w->now_ms;
        w->machines[i].slept_at_beat_ms = w->leader->slept_ms;
    }
}

bool machine_is_away(const struct world *w, int64_t host)
{
    for (int i = 0; i < w->n_machines; i++) {
        const struct machine *m = &w->machines[i];
        int64_t slept_ms = w->leader->slept_ms - m->slept_at_beat_ms;
        int64_t silent_ms = w->now_ms - m->beat_ms - slept_ms;
        if (m->host == host)
            return silent_ms > w->config.timeouts.host_ms / 2 + DISK_MS;
    }
    return false;
}

/* ── what it hears ─────────────────────────────────────────────────────────────────────────── */

/* A key opens one seat, once each time that its player asks for a place, and only on the server it
 * is for. */
static void judge_joined(struct world *w, struct process *p, const struct report *report,
                         const struct reply *reply)
{
    char account[24];
    (void)snprintf(account, sizeof(account), "p%d", report->player);
    if (report->wrong)
        world_wrong(w, "server %" PRId64 " took the key of another", p->server);
    if (strcmp(account, reply->text) != 0)
        world_wrong(w, "the key of %s opened the seat of %s", account, reply->text);
    const struct shadow_seat *seat =
        map_get(&w->shadow_seats, (uint64_t)strtoll(report->key, NULL, 10));
    int before = 0;
    for (int i = 0; i < p->n_accepted; i++)
        before += strcmp(p->accepted[i].key, report->key) == 0 && p->accepted[i].seq != report->seq;
    if (seat && before > seat->asked_again)
        world_broken(w, "server %" PRId64 " took a key of %s twice", p->server, account);
    if (p->n_accepted == MAX_REPORTS) {
        memmove(p->accepted, p->accepted + 1, sizeof(p->accepted) - sizeof(*p->accepted));
        p->n_accepted--;
    }
    p->accepted[p->n_accepted++] = *report;
    w->result->joined++;
    player_joined(w, &w->players[report->player]);
}

static void hear_answer(struct world *w, struct process *p, const struct reply *reply)
{
    p->asking = 0;
    if (reply->err == ERR_INTERNAL) /* it could not be stored: it is said again */
        return;
    struct report report = p->reports[0];
    memmove(p->reports, p->reports + 1, sizeof(p->reports) - sizeof(*p->reports));
    p->n_reports--;
    if (report.verb == AGENT_INITED && reply->err)
        end_process(w, p); /* the room was given up */
    if (report.verb == AGENT_JOINED && !reply->err)
        judge_joined(w, p, &report, reply);
}

void machine_hear(struct world *w, const struct reply *reply)
{
    if (reply->kind == EFFECT_ROUTE) {
        cluster_hear(w, reply);
        return;
    }
    if (reply->kind != EFFECT_AGENT && reply->kind != EFFECT_HOST_BEAT) {
        hear_command(w, &w->machines[reply->machine], reply);
        return;
    }
    for (int i = 0; i < w->n_machines; i++) {
        struct machine *m = &w->machines[i];
        if (m->agent_down || is_cut(w, m))
            continue;
        for (int k = 0; k < m->n_processes && reply->kind == EFFECT_AGENT; k++) {
            if (m->processes[k].asking == reply->conn) {
                hear_answer(w, &m->processes[k], reply);
                return;
            }
        }
    }
}

/* ── faults ────────────────────────────────────────────────────────────────────────────────── */

/* Nobody is left to say what became of them. */
static void power_fails(struct world *w, struct machine *m)
{
    for (int i = 0; i < m->n_processes; i++)
        remember(m, m->processes[i].server);
    m->n_processes = 0;
    agent_dies(w, m);
}

void machine_fault(struct world *w)
{
    if (w->n_machines == 0)
        return;
    struct machine *m = &w->machines[random_between(&w->random, 0, w->n_machines - 1)];
    int64_t die = random_between(&w->random, 0, 99);
    if (die < 40) {
        agent_dies(w, m);
    } else if (die < 80) {
        bool long_one = random_chance(&w->random, 15);
        int64_t length = random_between(&w->random, 1000, long_one ? 700 * 1000 : 60 * 1000);
        if (!m->cluster && random_chance(&w->fault_random, 30))
            m->stalled_until_ms = w->now_ms + length;
        else
            m->cut_until_ms = w->now_ms + length;
    } else if (die < 90) {
        power_fails(w, m);
    } else if (!m->cluster) {
        m->leaving = true;
    }
}
