#include "cli/match_crowd.h"

#include "base/clock.h"
#include "base/err.h"
#include "cli/dial.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    OPEN_MS = 1000,
    VISIT_MS = 500,
    LOAD_MIN_MS = 200,
    LOAD_MS = 1500,         /* more than that, by chance */
    AGAIN_MS = 300,         /* after Muster could not be reached, or hung up */
    SILENCE_MS = 15 * 1000, /* of one of several nodes; Muster PINGs after 10 s */
};

int64_t match_crowd_roll(struct match_crowd *c, int64_t n)
{
    c->luck = c->luck * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)(c->luck >> 33) % n;
}

static void say(struct match_crowd *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void say(struct match_crowd *c, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    c->say(c->user, line);
}

static void nothing_due(struct match_player *p)
{
    p->load_due_ms = p->unload_due_ms = p->leave_due_ms = INT64_MAX;
    p->come_due_ms = p->twice_due_ms = INT64_MAX;
}

void match_crowd_add(struct match_crowd *c, int32_t account, const char *token)
{
    c->players = xrealloc(c->players, (size_t)(c->n + 1) * sizeof(*c->players));
    struct match_player *p = &c->players[c->n++];
    *p = (struct match_player){.account = account,
                               .token = xstrdup(token),
                               .nodes = c->nodes,
                               .links = {{.link.fd = -1}, {.link.fd = -1}},
                               .visit = -1,
                               .since_ms = clock_monotonic_ms()};
    nothing_due(p);
    p->come_due_ms = p->since_ms;
}

static void end_visit(struct match_player *p)
{
    if (p->visit >= 0)
        close(p->visit);
    p->visit = -1;
}

void match_crowd_done(struct match_crowd *c)
{
    for (int i = 0; i < c->n; i++) {
        struct match_player *p = &c->players[i];
        chat_player_close(&p->links[0]);
        chat_player_close(&p->links[1]);
        end_visit(p);
        explicit_bzero(p->token, strlen(p->token));
        free(p->token);
    }
    free(c->players);
}

/* ── coming and going ──────────────────────────────────────────────────────────────────────── */

static struct chat_player *link_of(struct match_player *p)
{
    return &p->links[p->at];
}

static void come(struct match_crowd *c, struct match_player *p)
{
    const char *why =
        chat_player_open(link_of(p), p->account, p->token, p->nodes.now, &c->tls, OPEN_MS);
    if (why && !c->unreachable)
        say(c, "players cannot reach the client port at %s: %s", p->nodes.now, why);
    c->unreachable = why != NULL;
    bool another = why && nodes_fail(&p->nodes, false) == 0;
    p->come_due_ms = !why      ? INT64_MAX
                     : another ? clock_monotonic_ms()
                               : clock_monotonic_ms() + AGAIN_MS + match_crowd_roll(c, AGAIN_MS);
}

/* heard_all: his connection has ended, and nothing is left to be read from it. */
static void go(struct match_crowd *c, struct match_player *p, bool heard_all, int64_t back_in_ms)
{
    int64_t now_ms = clock_monotonic_ms();
    heard_all = heard_all && p->links[!p->at].link.fd < 0;
    chat_player_close(&p->links[0]);
    chat_player_close(&p->links[1]);
    if (p->greeted) {
        p->greeted = false;
        p->since_ms = now_ms;
        ledger_left(c->ledger, p->account, heard_all, now_ms);
    }
    nothing_due(p);
    p->come_due_ms = now_ms + back_in_ms;
}

/* The newer connection takes the place; the older one still hears, until Muster closes it. */
static void come_twice(struct match_crowd *c, struct match_player *p)
{
    p->twice_due_ms = INT64_MAX;
    if (p->links[!p->at].link.fd >= 0)
        return;
    say(c, "player %" PRId32 " connects a second time", p->account);
    p->script = SCRIPT_NONE; /* he is told of his lobby again, and once is enough */
    p->at = !p->at;
    come(c, p);
    if (link_of(p)->link.fd < 0) { /* nobody there: the first connection will tell */
        p->at = !p->at;
        p->come_due_ms = INT64_MAX;
    }
}

/* ── entering the match ────────────────────────────────────────────────────────────────────── */

static void visit(struct match_crowd *c, struct match_player *p,
                  const struct chat_cl_match_start *m)
{
    char line[512];
    if (!c->enter || p->entered == m->lobby)
        return;
    end_visit(p);
    p->entered = m->lobby;
    p->visit = dial(m->ip, m->port, VISIT_MS);
    int n = snprintf(line, sizeof(line), "%" PRId32 " %" PRId32 " %.*s\n", m->lobby, p->account,
                     (int)m->match_token.len, m->match_token.at);
    if (p->visit >= 0 && send(p->visit, line, (size_t)n, MSG_NOSIGNAL) == n)
        return;
    end_visit(p);
    c->refused++;
    say(c, "player %" PRId32 " cannot reach the server of lobby %" PRId32, p->account, m->lobby);
}

/* Whether that is Muster's word about him, and not a server's that cannot ask it or does not hold
 * the match. A token whose time is over is refused with right. */
static bool is_verdict(const char *text)
{
    static const char refused[] = "refused: ";
    if (strncmp(text, refused, strlen(refused)) != 0)
        return false;
    text += strlen(refused);
    return strcmp(text, err_sentence(ERR_INVALID_MATCH_TOKEN)) == 0 ||
           strcmp(text, err_sentence(ERR_NOT_PART_OF_MATCH)) == 0;
}

static void hear_server(struct match_crowd *c, struct match_player *p)
{
    char text[256];
    ssize_t n = recv(p->visit, text, sizeof(text) - 1, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    text[n > 0 ? n : 0] = '\0';
    text[strcspn(text, "\r\n")] = '\0';
    bool welcome = strcmp(text, "welcome") == 0;
    c->entered += welcome ? 1 : 0;
    c->refused += welcome ? 0 : 1;
    if (!welcome)
        say(c, "player %" PRId32 " is not let into the match of lobby %" PRId32 ": %s", p->account,
            p->entered, text[0] ? text : "its server hung up");
    if (is_verdict(text))
        ledger_turned_away(c->ledger, p->entered, p->account);
    end_visit(p);
}

/* ── what they hear ────────────────────────────────────────────────────────────────────────── */

/* 0 = he is there. */
static int64_t away_since(const struct match_crowd *c, int32_t account)
{
    for (int i = 0; i < c->n; i++) {
        if (c->players[i].account == account)
            return c->players[i].since_ms;
    }
    return clock_monotonic_ms(); /* none of ours */
}

/* The answer to its creation may have been lost with the Muster that gave it. */
static void learn(struct match_crowd *c, const struct chat_cl_match_lobby_created *m)
{
    const struct chat_list teams[] = {m->team1, m->team2};
    if (ledger_find(c->ledger, m->lobby))
        return;
    struct ledger_lobby *b = ledger_add(c->ledger, m->lobby, false, clock_monotonic_ms());
    b->learned = true;
    for (size_t t = 0; t < 2; t++) {
        struct cursor at = cursor_of(teams[t].data, teams[t].len);
        for (uint32_t i = 0; i < teams[t].n && !cursor_failed(&at); i++) {
            struct chat_player_entry e;
            chat_decode_player(&at, &e);
            ledger_add_player(b, e.account, away_since(c, e.account));
        }
    }
}

static void hear_created(struct match_crowd *c, struct match_player *p,
                         const struct chat_cl_match_lobby_created *m)
{
    int64_t now_ms = clock_monotonic_ms();
    learn(c, m);
    if (p->lobby != m->lobby)
        match_crowd_seat(c, p, m->lobby, SCRIPT_NONE);
    if (p->script == SCRIPT_NEVER_LOAD)
        return;
    p->load_due_ms = now_ms + LOAD_MIN_MS + match_crowd_roll(c, LOAD_MS);
    if (p->script == SCRIPT_WAVER)
        p->unload_due_ms = p->load_due_ms + LOAD_MIN_MS;
    if (p->script == SCRIPT_BLINK || p->script == SCRIPT_QUIT)
        p->leave_due_ms = now_ms + match_crowd_roll(c, LOAD_MIN_MS + LOAD_MS);
    if (p->script == SCRIPT_TWICE)
        p->twice_due_ms = now_ms + match_crowd_roll(c, LOAD_MIN_MS + LOAD_MS);
}

static void hear_start(struct match_crowd *c, struct match_player *p,
                       const struct chat_cl_match_start *m)
{
    const struct ledger_lobby *b = ledger_find(c->ledger, m->lobby);
    bool first = !b || !b->match[0];
    int64_t now_ms = clock_monotonic_ms();
    ledger_heard_start(c->ledger, m->lobby, p->account, m->ip, m->port, m->match_token, now_ms);
    b = ledger_find(c->ledger, m->lobby);
    if (first)
        say(c, "lobby %" PRId32 " started after %" PRId64 " ms, at %.*s:%" PRId32, m->lobby,
            now_ms - b->created_ms, (int)m->ip.len, m->ip.at, m->port);
    p->lobby = m->lobby;
    p->load_due_ms = p->unload_due_ms = p->leave_due_ms = INT64_MAX;
    if (p->script == SCRIPT_CRASH) {
        p->script = SCRIPT_NONE;
        say(c, "player %" PRId32 " crashes at the start of lobby %" PRId32, p->account, m->lobby);
        go(c, p, false, AGAIN_MS + match_crowd_roll(c, LOAD_MS));
        return;
    }
    visit(c, p, m);
}

static void hear_aborted(struct match_crowd *c, struct match_player *p,
                         const struct chat_cl_match_aborted *m)
{
    const struct ledger_lobby *b = ledger_find(c->ledger, m->lobby);
    if (!b || !b->reason[0])
        say(c, "lobby %" PRId32 " aborted: %.*s", m->lobby, (int)m->reason.len, m->reason.at);
    ledger_heard_abort(c->ledger, m->lobby, p->account, m->reason, m->requeued,
                       clock_monotonic_ms());
    if (p->lobby != m->lobby)
        return;
    p->lobby = 0;
    p->script = SCRIPT_NONE;
    p->load_due_ms = p->unload_due_ms = p->leave_due_ms = p->twice_due_ms = INT64_MAX;
}

static void hear_welcome(struct match_crowd *c, struct match_player *p,
                         const struct chat_cl_connect_response *m)
{
    struct str leader;
    if (!m->ok && nodes_is_standby(m->error, &leader)) {
        p->sent_on = nodes_follow_sentence(&p->nodes, m->error) || nodes_fail(&p->nodes, true) == 0;
        return;
    }
    if (!m->ok) {
        say(c, "player %" PRId32 " is refused: %.*s", p->account, (int)m->error.len, m->error.at);
        return; /* Muster hangs up */
    }
    nodes_succeed(&p->nodes);
    p->greeted = true;
    p->since_ms = 0;
    ledger_came(c->ledger, p->account);
}

static void hear(struct match_crowd *c, struct match_player *p, const struct chat_message *m)
{
    switch (m->kind) {
    case CHAT_CL_CONNECT_RESPONSE:
        hear_welcome(c, p, &m->cl_connect_response);
        break;
    case CHAT_CL_MATCH_LOBBY_CREATED:
        hear_created(c, p, &m->cl_match_lobby_created);
        break;
    case CHAT_CL_MATCH_START:
        hear_start(c, p, &m->cl_match_start);
        break;
    case CHAT_CL_MATCH_ABORTED:
        hear_aborted(c, p, &m->cl_match_aborted);
        break;
    default:
        break;
    }
}

/* All that is there on one of his connections; false when that is over. */
static bool drain(struct match_crowd *c, struct match_player *p, struct chat_player *from)
{
    while (from->link.fd >= 0) {
        struct chat_message m;
        enum chat_link_result r = chat_link_next(&from->link, -1, 0, &m);
        if (r == LINK_MESSAGE)
            hear(c, p, &m);
        else
            return r != LINK_BROKEN;
    }
    return true; /* he left */
}

static void listen_to(struct match_crowd *c, struct match_player *p)
{
    p->sent_on = false;
    if (!drain(c, p, link_of(p))) /* Muster is gone, or does not want him */
        go(c, p, true, p->sent_on ? 0 : AGAIN_MS + match_crowd_roll(c, AGAIN_MS));
}

void match_crowd_fds(const struct match_crowd *c, struct pollfd *ret)
{
    for (int i = 0; i < c->n; i++) {
        const struct match_player *p = &c->players[i];
        ret[MATCH_FDS * i] = (struct pollfd){.fd = p->links[p->at].link.fd, .events = POLLIN};
        ret[MATCH_FDS * i + 1] = (struct pollfd){.fd = p->links[!p->at].link.fd, .events = POLLIN};
        ret[MATCH_FDS * i + 2] = (struct pollfd){.fd = p->visit, .events = POLLIN};
    }
}

void match_crowd_heard(struct match_crowd *c, const struct pollfd *fds)
{
    for (int i = 0; i < c->n; i++) {
        struct match_player *p = &c->players[i];
        struct chat_player *older = &p->links[!p->at];
        /* The older connection first: what was said on it was said before. */
        if (fds[MATCH_FDS * i + 1].revents && older->link.fd >= 0 && !drain(c, p, older))
            chat_player_close(older);
        if (fds[MATCH_FDS * i].revents && link_of(p)->link.fd >= 0)
            listen_to(c, p);
        if (fds[MATCH_FDS * i + 2].revents && p->visit >= 0)
            hear_server(c, p);
    }
}

/* ── what they do ──────────────────────────────────────────────────────────────────────────── */

static void load(struct match_player *p, bool loaded)
{
    (void)chat_player_load(link_of(p), p->lobby, loaded);
}

static void leave(struct match_crowd *c, struct match_player *p)
{
    bool for_good = p->script == SCRIPT_QUIT;
    p->script = SCRIPT_NONE;
    say(c, "player %" PRId32 " leaves lobby %" PRId32 "%s", p->account, p->lobby,
        for_good ? "" : " for a moment");
    go(c, p, false, for_good ? c->quit_ms : AGAIN_MS + match_crowd_roll(c, AGAIN_MS));
}

/* A node that stands still hangs up on nobody. */
static bool is_forsaken(const struct match_player *p, int64_t now_ms)
{
    const struct chat_link *link = &p->links[p->at].link;
    return nodes_are_several(&p->nodes) && link->fd >= 0 && now_ms - link->heard_ms > SILENCE_MS;
}

static void act(struct match_crowd *c, struct match_player *p, int64_t now_ms)
{
    if (now_ms >= p->come_due_ms)
        come(c, p);
    if (is_forsaken(p, now_ms)) {
        (void)nodes_fail(&p->nodes, false);
        go(c, p, true, 0);
    }
    if (!p->greeted)
        return;
    if (now_ms >= p->twice_due_ms)
        come_twice(c, p);
    if (now_ms >= p->load_due_ms) {
        p->load_due_ms = INT64_MAX;
        load(p, true);
    }
    if (now_ms >= p->unload_due_ms) {
        p->unload_due_ms = INT64_MAX;
        p->script = SCRIPT_NONE;
        load(p, false);
        p->load_due_ms = now_ms + LOAD_MIN_MS;
    }
    if (now_ms >= p->leave_due_ms)
        leave(c, p);
}

static int64_t next_of(const struct match_player *p)
{
    const int64_t dues[] = {p->load_due_ms, p->unload_due_ms, p->leave_due_ms, p->twice_due_ms};
    int64_t next_ms = p->come_due_ms;
    for (size_t i = 0; p->greeted && i < sizeof(dues) / sizeof(dues[0]); i++)
        next_ms = dues[i] < next_ms ? dues[i] : next_ms;
    return next_ms;
}

int64_t match_crowd_act(struct match_crowd *c)
{
    int64_t next_ms = INT64_MAX;
    for (int i = 0; i < c->n; i++) {
        act(c, &c->players[i], clock_monotonic_ms());
        int64_t own_ms = next_of(&c->players[i]);
        next_ms = own_ms < next_ms ? own_ms : next_ms;
    }
    return next_ms;
}

void match_crowd_gather(struct match_crowd *c)
{
    int64_t now_ms = clock_monotonic_ms();
    for (int i = 0; i < c->n; i++) {
        struct match_player *p = &c->players[i];
        p->leave_due_ms = p->twice_due_ms = p->unload_due_ms = INT64_MAX;
        if (p->script == SCRIPT_NEVER_LOAD && p->lobby)
            p->load_due_ms = now_ms;
        p->script = SCRIPT_NONE;
        if (p->come_due_ms != INT64_MAX && p->come_due_ms > now_ms)
            p->come_due_ms = now_ms;
    }
}

bool match_crowd_is_there(const struct match_crowd *c)
{
    for (int i = 0; i < c->n; i++) {
        if (!c->players[i].greeted)
            return false;
    }
    return true;
}

/* ── who is in what ────────────────────────────────────────────────────────────────────────── */

bool match_crowd_pick(struct match_crowd *c, int n, struct match_player **ret)
{
    int found = 0;
    int first = (int)match_crowd_roll(c, c->n);
    for (int i = 0; i < c->n && found < n; i++) {
        struct match_player *p = &c->players[(first + i) % c->n];
        if (p->greeted && p->lobby == 0)
            ret[found++] = p;
    }
    return found == n;
}

void match_crowd_seat(struct match_crowd *c, struct match_player *p, int32_t lobby,
                      enum match_script script)
{
    (void)c;
    p->lobby = lobby;
    p->script = script;
    p->load_due_ms = p->unload_due_ms = p->leave_due_ms = p->twice_due_ms = INT64_MAX;
}

void match_crowd_release(struct match_crowd *c, int32_t lobby)
{
    for (int i = 0; i < c->n; i++) {
        if (c->players[i].lobby == lobby)
            match_crowd_seat(c, &c->players[i], 0, SCRIPT_NONE);
    }
}
