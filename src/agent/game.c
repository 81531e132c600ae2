#include "agent/game.h"

#include "agent/deployments.h"
#include "agent/link.h"
#include "agent/outbox.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ADOPTED_GRACE_MS = 5 * 1000, /* a starting game has at least this long after we returned */
    GIVEN_UP_GRACE_MS = 5 * 1000,
    PREPARED_MS = 5 * 1000, /* the spawn follows when a disk has taken what comes before it */
};

struct game *games_find(const struct games *gs, int64_t server)
{
    return map_get(&gs->by_server, (uint64_t)server);
}

struct game *games_next(const struct games *gs, size_t *at)
{
    return map_next(&gs->by_server, at);
}

size_t games_running(const struct games *gs)
{
    return gs->by_server.len - gs->n_over;
}

const char *game_state_name(const struct game *g)
{
    static const char *const names[] = {
        [GAME_FETCHING] = "starting", [GAME_STARTING] = "starting", [GAME_INITING] = "starting",
        [GAME_RUNNING] = "running",   [GAME_GIVEN_UP] = "ending",   [GAME_ENDING] = "ending",
        [GAME_OVER] = "over",
    };
    return names[g->phase];
}

static void move(struct game *g, enum game_phase phase)
{
    g->phase = phase;
    if (phase != GAME_RUNNING)
        pulse_stop(&g->pulse);
    log_line(LOG_DEBUG, "game server", "server=%" PRId64 " phase=%s", g->server,
             game_state_name(g));
}

void game_runs(struct game *g, int64_t asked_in_ms)
{
    move(g, GAME_RUNNING);
    pulse_start(&g->games->pulses, &g->pulse, process_spec(g->process)->status_period_ms,
                asked_in_ms);
}

static struct game *game_new(struct games *gs, int64_t server, int64_t session)
{
    struct game *g = xcalloc(1, sizeof(*g));
    g->games = gs;
    g->server = server;
    g->session = session;
    map_put(&gs->by_server, (uint64_t)server, g);
    return g;
}

static void game_free(struct game *g)
{
    map_remove(&g->games->by_server, (uint64_t)g->server);
    pulse_stop(&g->pulse);
    if (link_in_list(&g->over_link)) {
        list_remove(&g->over_link);
        g->games->n_over--;
    }
    game_link_close(g->link);
    game_forget_answers(g);
    spawn_free(g->spawn);
    secrets_done(&g->secrets);
    buf_done(&g->log);
    free(g);
}

/* ── its end ───────────────────────────────────────────────────────────────────────────────── */

/* There is nothing more to be told of it. It is known for a while, so that it can be shown and a
 * repeated spawn does not start it again. */
static void lay_to_rest(struct game *g)
{
    struct games *gs = g->games;
    game_link_close(g->link);
    g->link = NULL;
    g->process = NULL;
    spawn_free(g->spawn);
    g->spawn = NULL;
    game_forget_answers(g);
    outbox_end(gs->outbox, g->server);
    move(g, GAME_OVER);
    list_append(&gs->over, &g->over_link);
    if (++gs->n_over > GAMES_OVER_MAX)
        game_free(container_of(list_first(&gs->over), struct game, over_link));
}

static void put_exit(struct json_writer *w, const struct process_end *end)
{
    if (end->exit_signal)
        json_key_int(w, "exit_signal", end->exit_signal);
    else
        json_key_int(w, "exit_code", end->exit_code);
    json_key_int(w, "peak_memory", end->peak_memory);
    json_key_int(w, "run_ms", end->run_ms);
    json_key_int(w, "dropped_bytes", end->dropped_bytes);
}

/* Whose fault it is that it was not ready, in a word; NULL = nobody can tell. */
static const char *game_cause(const struct game *g)
{
    if (g->timed_out)
        return "game";
    if (process_is_no_program(g->process))
        return "configuration";
    if (g->end.exit_code < 0)
        return NULL;
    return g->why[0] || process_why(g->process)[0] ? "host" : "game";
}

/* The same of a process that could not even be started. */
static const char *game_error_cause(int err)
{
    bool config = err == ERR_SPAWN_FAILED || err == ERR_NOT_FOUND || err == ERR_BAD_ARCHIVE;
    return config ? "configuration" : "host";
}

static void tell_failed(struct game *g, const char *cause, const char *text, struct str tail)
{
    struct buf members = {0};
    struct json_writer w = {.out = &members};
    char quoted[LOG_QUOTE_MAX + 8];
    json_open_object(&w);
    json_key_text(&w, "text", str_of(text));
    if (cause)
        json_key_text(&w, "cause", str_of(cause));
    if (g->timed_out)
        json_key_bool(&w, "timed_out", true);
    if (g->end.ran)
        put_exit(&w, &g->end);
    json_key_text(&w, "tail", tail);
    json_close_object(&w);
    (void)outbox_add(g->games->outbox, g->server, "failed", "", "",
                     (struct str){(const char *)members.data, members.len});
    buf_done(&members);
    log_line(LOG_WARN, "a game server could not be started", "server=%" PRId64 " reason=%s",
             g->server, log_quote(quoted, str_of(text)));
}

static void tell_exited(struct game *g, struct str tail)
{
    struct buf members = {0};
    struct json_writer w = {.out = &members};
    json_open_object(&w);
    put_exit(&w, &g->end);
    if (g->why[0])
        json_key_text(&w, "text", str_of(g->why));
    if (g->hung)
        json_key_bool(&w, "hung", true);
    json_key_text(&w, "tail", tail);
    json_close_object(&w);
    (void)outbox_add(g->games->outbox, g->server, "exited", "", "",
                     (struct str){(const char *)members.data, members.len});
    buf_done(&members);
}

/* Why it never was ready, as a sentence. */
static void say_failure(const struct game *g, char ret[GAME_WHY_MAX])
{
    if (g->why[0])
        snprintf(ret, GAME_WHY_MAX, "%s", g->why);
    else if (g->end.exit_signal)
        snprintf(ret, GAME_WHY_MAX, "The server was ended by signal %d (%s) before it was ready.",
                 g->end.exit_signal, strsignal(g->end.exit_signal));
    else
        snprintf(ret, GAME_WHY_MAX, "The server exited with status %d before it was ready.",
                 g->end.exit_code);
}

static bool was_told(const struct games *gs, int64_t server)
{
    return outbox_find_verb(gs->outbox, server, "exited") ||
           outbox_find_verb(gs->outbox, server, "failed");
}

/* Its last lines, as others may read them. Of what is as long as that the first line may have lost
 * its beginning. */
static void tail_of(const struct game *g, int lines, struct buf *out)
{
    size_t before = out->len;
    process_tail(g->process, lines, out);
    secrets_blank(&g->secrets, out, before, out->len - before >= PROCESS_CUT_BYTES);
}

static void keep_what_was(struct game *g)
{
    int n = 0;
    struct buf all = {0};
    const uint16_t *ports = process_ports(g->process, &n);
    memcpy(g->ports, ports, (size_t)n * sizeof(*ports));
    g->n_ports = n;
    g->pid = process_pid(g->process);
    g->end = *process_ended(g->process);
    if (!g->why[0])
        snprintf(g->why, sizeof(g->why), "%s", process_why(g->process));
    tail_of(g, 1000, &all);
    struct str last = str_last((struct str){(const char *)all.data, all.len}, GAME_LOG_BYTES);
    buf_append(&g->log, last.at, last.len);
    buf_done(&all);
}

/* Nobody was told of it, and nobody will be. */
static void discard(struct game *g)
{
    outbox_end(g->games->outbox, g->server);
    if (g->process)
        process_discard(g->process);
    game_free(g);
}

void games_process_over(void *user, struct process *p)
{
    struct games *gs = user;
    struct game *g = games_find(gs, process_server(p));
    char failure[GAME_WHY_MAX];
    struct buf lines = {0};
    if (!g || g->process != p) {
        process_forget(p);
        return;
    }
    if (g->prepared) { /* its end is told when it is asked for, unless it was we who ended it */
        if (g->why[0])
            discard(g);
        return;
    }
    keep_what_was(g);
    tail_of(g, PROCESS_TAIL_LINES, &lines);
    struct str tail = str_last((struct str){(const char *)lines.data, lines.len}, GAME_TAIL_BYTES);
    say_failure(g, failure);
    if (was_told(gs, g->server))
        ; /* by the agent before us, who was killed just then */
    else if (g->called_inited)
        tell_exited(g, tail);
    else
        tell_failed(g, game_cause(g), failure, tail);
    buf_done(&lines);
    log_line(LOG_INFO, "a game server is over",
             "server=%" PRId64 " exit_code=%d exit_signal=%d run_ms=%" PRId64
             " dropped_bytes=%" PRId64,
             g->server, g->end.exit_code, g->end.exit_signal, g->end.run_ms, g->end.dropped_bytes);
    lay_to_rest(g);
    process_forget(p); /* it is told: its ports may be given again */
}

static bool runs(const struct game *g)
{
    return g->process && process_state(g->process) != PROCESS_OVER;
}

void game_end(struct game *g, int64_t grace_ms, const char *why)
{
    char quoted[LOG_QUOTE_MAX + 8];
    if (g->phase == GAME_OVER)
        return;
    if (!g->why[0])
        snprintf(g->why, sizeof(g->why), "%s", why);
    if (g->prepared && !runs(g)) {
        g->prepared_until_ms = 0;
        return;
    }
    if (g->prepared)
        grace_ms = 0; /* nobody plays there, and its number may be wanted */
    if (g->phase == GAME_FETCHING) {
        deployments_drop(g->games->deployments, g);
        tell_failed(g, NULL, g->why, STR(""));
        lay_to_rest(g);
        return;
    }
    log_line(LOG_INFO, "ending a game server",
             "server=%" PRId64 " pid=%d grace_ms=%" PRId64 " reason=%s", g->server,
             (int)process_pid(g->process), grace_ms, log_quote(quoted, str_of(why)));
    move(g, GAME_ENDING);
    process_end(g->process, grace_ms);
}

/* ── its beginning ─────────────────────────────────────────────────────────────────────────── */

/* What a game server says is heard when it is wanted and its pid is known, which is part of what is
 * told of it. It may be quicker than its shim, and on a busy machine by much. */
static void game_listen(struct game *g)
{
    if (g->link && !g->prepared && process_pid(g->process) > 0)
        game_link_release(g->link);
}

static void bind_link(struct game *g)
{
    char why[LINK_WHY_MAX];
    char sentence[GAME_WHY_MAX];
    g->link = links_bind(g->games->links, process_endpoint(g->process),
                         process_take_listener(g->process), g->server, game_message, g, why);
    if (g->link) {
        game_link_hold(g->link);
        game_listen(g);
        return;
    }
    snprintf(sentence, sizeof(sentence), "The agent %.200s.", why);
    game_end(g, 0, sentence);
}

void games_process_begun(void *user, struct process *p)
{
    struct game *g = games_find(user, process_server(p));
    if (g && g->process == p)
        game_listen(g);
}

/* 0 with a process; else an error with a sentence, and no process. */
static int start(struct game *g, const char *folder, char why[GAME_WHY_MAX])
{
    struct games *gs = g->games;
    g->spawn->spec.folder = folder;
    g->spawn->spec.prepared = g->prepared;
    int err = processes_spawn(gs->processes, &g->spawn->spec, &g->process, why);
    spawn_free(g->spawn); /* with its tokens; the process has what it needs */
    g->spawn = NULL;
    if (err != 0)
        return err;
    secrets_take_spec(&g->secrets, process_spec(g->process));
    g->deadline_ms = pulses_soon_ms(&gs->pulses, clock_monotonic_ms(),
                                    process_spec(g->process)->spawn_timeout_ms);
    move(g, GAME_STARTING);
    process_go(g->process); /* the rest, and the answer to whoever asked, while it starts */
    bind_link(g);
    if (g->link && !g->prepared)
        outbox_expect(gs->outbox, g->server);
    return 0;
}

static void on_folder(void *user, const char *folder, int err, const char *why)
{
    struct game *g = user;
    char sentence[GAME_WHY_MAX] = "";
    if (folder && (err = start(g, folder, sentence)) == 0)
        return;
    if (g->prepared) { /* whoever asks for it hears the same */
        discard(g);
        return;
    }
    tell_failed(g, game_error_cause(err), folder ? sentence : why, STR(""));
    lay_to_rest(g);
}

/* What was begun for it goes on, and what has come of it is told. */
static void confirm(struct game *g)
{
    g->prepared = false;
    if (!g->process)
        return;
    process_confirm(g->process);
    if (!runs(g)) {
        games_process_over(g->games, g->process);
    } else if (g->link) {
        outbox_expect(g->games->outbox, g->server);
        game_listen(g);
    }
}

/* It is there. A number that was given and not stored can be given again, to another room: whoever
 * made the first one was killed before it could be confirmed, or leads no more. */
static int ask_again(struct game *g, const uint8_t asked[GAME_ASKED_BYTES], char why[GAME_WHY_MAX])
{
    if (!g->prepared)
        return 0;
    if (memcmp(g->asked, asked, GAME_ASKED_BYTES) == 0 && !g->why[0]) {
        confirm(g);
        return 0;
    }
    snprintf(why, GAME_WHY_MAX,
             "Another server was prepared under this number; it is ended first.");
    game_end(g, 0, "another one was asked for under its number");
    return ERR_BUSY;
}

static int begin(struct games *gs, struct spawn *spawn, const uint8_t asked[GAME_ASKED_BYTES],
                 bool prepared, char why[GAME_WHY_MAX])
{
    struct game *g = game_new(gs, spawn->spec.server, spawn->spec.session);
    g->spawn = spawn;
    g->prepared = prepared;
    g->prepared_until_ms = gs->pulses.now_ms + PREPARED_MS;
    memcpy(g->asked, asked, GAME_ASKED_BYTES);
    if (spawn->has_deployment) {
        move(g, GAME_FETCHING);
        deployments_get(gs->deployments, spawn->deployment, on_folder, g);
        return 0;
    }
    int err = start(g, NULL, why);
    if (err != 0)
        game_free(g);
    return err == ERR_ALREADY_OVER ? 0 : err;
}

static int ask(struct games *gs, struct str body, bool prepared, char why[GAME_WHY_MAX])
{
    struct spawn *spawn = NULL;
    uint8_t asked[GAME_ASKED_BYTES];
    int err = spawn_read(body, &spawn, why);
    if (err != 0)
        return err;
    crypto_generichash(asked, sizeof(asked), (const uint8_t *)body.at, body.len, NULL, 0);
    struct game *g = games_find(gs, spawn->spec.server);
    if (!g && !gs->leaving)
        return begin(gs, spawn, asked, prepared, why);
    spawn_free(spawn);
    if (g)
        return prepared ? 0 : ask_again(g, asked, why);
    snprintf(why, GAME_WHY_MAX, "This host is leaving and starts nothing new.");
    return ERR_NOT_READY;
}

int games_spawn(struct games *gs, struct str body, char why[GAME_WHY_MAX])
{
    return ask(gs, body, false, why);
}

int games_prepare(struct games *gs, struct str body, char why[GAME_WHY_MAX])
{
    return ask(gs, body, true, why);
}

/* ── what the agent before us left ─────────────────────────────────────────────────────────── */

static void adopt(struct games *gs, struct process *p)
{
    struct game *g = game_new(gs, process_server(p), process_session(p));
    enum process_state state = process_state(p);
    int64_t gone_ms = clock_wall_ms() - process_since_ms(p);
    int64_t left_ms = process_spec(p)->spawn_timeout_ms - gone_ms;
    g->process = p;
    secrets_take_spec(&g->secrets, process_spec(p));
    g->prepared = process_is_unconfirmed(p);
    g->called_inited = (state != PROCESS_STARTING && !g->prepared) ||
                       outbox_find_verb(gs->outbox, g->server, "inited");
    if (state == PROCESS_ENDING || state == PROCESS_OVER)
        move(g, GAME_ENDING);
    else if (state == PROCESS_RUNNING)
        game_runs(g, 0);
    else
        move(g, g->called_inited ? GAME_INITING : GAME_STARTING);
    g->deadline_ms = gs->pulses.now_ms + (left_ms > ADOPTED_GRACE_MS ? left_ms : ADOPTED_GRACE_MS);
    bind_link(g);
    log_line(LOG_INFO, "took over a game server", "server=%" PRId64 " pid=%d state=%s", g->server,
             (int)process_pid(p), game_state_name(g));
    if (g->prepared) /* how it was asked for is not known any more */
        game_end(g, 0, "its agent was replaced before it was asked for");
}

void games_adopt(struct games *gs)
{
    struct process *p;
    int64_t server;
    for (size_t at = 0; (p = processes_next(gs->processes, &at));)
        adopt(gs, p);
    for (size_t at = 0; (server = outbox_next(gs->outbox, &at));) {
        if (!games_find(gs, server)) /* its process is gone, and that may be what is to be told */
            move(game_new(gs, server, 0), GAME_OVER);
    }
    /* Not in the loop above: the outbox forgets those of which nothing is left. */
    struct game *g;
    for (size_t at = 0; (g = games_next(gs, &at));) {
        if (g->phase != GAME_OVER || link_in_list(&g->over_link))
            continue;
        lay_to_rest(g); /* may forget an older one */
        at = 0;
    }
}

void games_init(struct games *gs)
{
    list_init(&gs->over);
    pulses_init(&gs->pulses, clock_monotonic_ms());
}

void games_done(struct games *gs)
{
    size_t at = 0;
    struct game *g;
    while ((g = games_next(gs, &at))) {
        if (g->prepared && runs(g))
            process_end(g->process, 0); /* others run on, but of this one nobody knows */
        game_free(g);
        at = 0;
    }
    map_done(&gs->by_server);
}

/* ── time ──────────────────────────────────────────────────────────────────────────────────── */

/* The spawn has not come. */
static void expire(struct game *g)
{
    if (runs(g)) {
        game_end(g, 0, "it was prepared and not asked for");
    } else {
        deployments_drop(g->games->deployments, g);
        discard(g);
    }
}

static void watch(struct game *g)
{
    char why[GAME_WHY_MAX];
    bool late = g->games->pulses.now_ms >= g->deadline_ms;
    bool going = g->phase == GAME_ENDING && runs(g);
    if (g->prepared && !going && g->games->pulses.now_ms >= g->prepared_until_ms) {
        expire(g);
    } else if (g->phase == GAME_STARTING && late) {
        snprintf(why, sizeof(why), "The server did not initialise in %g s.",
                 (double)process_spec(g->process)->spawn_timeout_ms / 1000);
        g->timed_out = true;
        game_end(g, 0, why);
    } else if (g->phase == GAME_GIVEN_UP && late) {
        snprintf(why, sizeof(why), "The room was given up: %.200s", g->refusal_why);
        game_end(g, GIVEN_UP_GRACE_MS, why);
    } else if (g->phase == GAME_RUNNING) {
        game_watch(g);
    }
}

void games_tick(struct games *gs, int64_t monotonic_ms)
{
    struct game *g;
    pulses_tick(&gs->pulses, monotonic_ms);
    for (size_t at = 0; (g = games_next(gs, &at));)
        watch(g);
    outbox_mend(gs->outbox);
    outbox_lay_in(gs->outbox);
}

void game_tail(const struct game *g, int lines, struct buf *out)
{
    if (g->process) {
        tail_of(g, lines, out);
        return;
    }
    size_t from = g->log.len;
    for (; from > 0; from--) {
        bool after_newline = g->log.data[from - 1] == '\n' && from < g->log.len;
        if (after_newline && --lines == 0)
            break;
    }
    if (g->log.len > 0) /* or there is nowhere to count from */
        buf_append(out, g->log.data + from, g->log.len - from);
}
