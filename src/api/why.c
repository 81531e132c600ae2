#include "api/why.h"

#include "base/err.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void say(struct buf *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct buf *out, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    buf_append(out, text, n < (int)sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

/* What stands between the i-th of n things and the one before. */
static const char *gap(int i, int n)
{
    return i == 0 ? "" : i == n - 1 ? " and " : ", ";
}

/* ── the tries ─────────────────────────────────────────────────────────────────────────────── */

struct outcome_words {
    const char *outcome;
    const char *clause;
};

static const char *clause_of(const char *outcome)
{
    static const struct outcome_words table[] = {
        {"pending", "has not answered yet"},
        {"acknowledged", "acknowledged"},
        {"refused", "refused"},
        {"timed_out", "did not acknowledge in time"},
        {"dropped", "lost its connection"},
        {"not_ready", "acknowledged but was not ready in time"},
        {"given_up", "was asked in vain, because the request was given up"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (strcmp(table[i].outcome, outcome) == 0)
            return table[i].clause;
    }
    return outcome;
}

/* "Server 3 did not acknowledge in time and server 9 refused." */
static void say_tries_after(struct buf *out, const char *first, const struct view_ticket *t, int n)
{
    for (int i = 0; i < n; i++)
        say(out, "%s%s %" PRId64 " %s", gap(i, n), i == 0 ? first : "server", t->tries[i].server,
            clause_of(t->tries[i].outcome));
    if (n > 0)
        say(out, ".");
}

static void say_tries(struct buf *out, const struct view_ticket *t, int n)
{
    say_tries_after(out, "Server", t, n);
}

static const char *ordinal(int n)
{
    static const char *const words[] = {"first", "second", "third", "fourth"};
    return words[n >= 1 && n <= VIEW_TRIES ? n - 1 : 0];
}

/* ── those passed over ─────────────────────────────────────────────────────────────────────── */

static int count_passed(const struct view_ticket *t)
{
    int n = 0;
    for (int r = PASSED_OFFLINE; r < PASSED_REASONS; r++)
        n += t->passed[r];
    return n;
}

static const char *reason_of(enum passed_over reason)
{
    static const char *const words[PASSED_REASONS] = {
        [PASSED_NOT] = "candidates",
        [PASSED_OFFLINE] = "offline",
        [PASSED_AWAY] = "not connected",
        [PASSED_UNLISTED] = "back without the list of their matches",
        [PASSED_DRAINING] = "draining",
        [PASSED_FAILING] = "failed lately",
        [PASSED_FULL] = "full",
    };
    return words[reason];
}

/* "9 full, 3 draining" */
static void say_reasons(struct buf *out, const struct view_ticket *t)
{
    const char *comma = "";
    for (int r = PASSED_REASONS - 1; r >= PASSED_OFFLINE; r--) {
        if (t->passed[r] == 0)
            continue;
        say(out, "%s%" PRId32 " %s", comma, t->passed[r], reason_of((enum passed_over)r));
        comma = ", ";
    }
}

/* ── places ────────────────────────────────────────────────────────────────────────────────── */

/* "in EU", "in EU or USE", "in any region" */
static void say_regions(struct buf *out, const struct view_ticket *t,
                        const struct core_config *config)
{
    int n = 0, configured = 0, shown = 0;
    for (int code = 0; code < REGION_CODES; code++) {
        bool known = config->regions[code].name[0] != '\0';
        configured += known;
        n += known && (t->regions >> code & 1);
    }
    if (n == configured && n > 1) {
        say(out, "in any region");
        return;
    }
    say(out, "in ");
    for (int code = 0; code < REGION_CODES; code++) {
        if (!config->regions[code].name[0] || !(t->regions >> code & 1))
            continue;
        say(out, "%s%s",
            shown == 0       ? ""
            : shown == n - 1 ? " or "
                             : ", ",
            config->regions[code].name);
        shown++;
    }
    if (n == 0)
        say(out, "a region that is configured no more");
}

static void say_server(struct buf *out, const struct view_ticket *t,
                       const struct view_server *server)
{
    if (server)
        say(out, "server %" PRId64 " (%s, %s:%" PRId32 ")", server->id, server->region_name,
            server->ip, server->port);
    else if (t->n_tries > 0)
        say(out, "server %" PRId64, t->tries[t->n_tries - 1].server);
    else
        say(out, "a server");
}

/* ── sentences ─────────────────────────────────────────────────────────────────────────────── */

/* "it had the best score of 5 candidates (87.31), 2 of 8 slots used, CPU 31 %, memory 40 %." */
static void say_choice(struct buf *out, const struct view_ticket *t)
{
    const struct view_try *last = &t->tries[t->n_tries - 1];
    if (t->passed[PASSED_NOT] > 1)
        say(out, "it had the best score of %" PRId32 " candidates (%.2f), ", t->passed[PASSED_NOT],
            (double)last->score);
    else
        say(out, "it was the only candidate (score %.2f), ", (double)last->score);
    say(out, "%" PRId32 " of %" PRId32 " slots used, CPU %.0f %%, memory %.0f %%.", last->load,
        last->max_sessions, (double)last->cpu_percent, (double)last->memory_percent);
}

static void say_others(struct buf *out, const struct view_ticket *t)
{
    int n = count_passed(t);
    if (n == 0)
        return;
    const char *whom = t->n_tries > 1 ? "" : n == 1 ? "other " : "others ";
    say(out, " %d %s%s passed over%s: ", n, whom, n == 1 ? "was" : "were",
        t->n_tries > 1 ? ", those included" : "");
    say_reasons(out, t);
    say(out, ".");
}

static void say_placed(struct buf *out, const struct view_ticket *t,
                       const struct view_server *server)
{
    say(out, "Placed on ");
    say_server(out, t, server);
    if (t->n_tries == 0) {
        say(out, ".");
        return;
    }
    say(out, " at the %s try: ", ordinal(t->n_tries));
    say_choice(out, t);
    say_tries_after(out, " Before that server", t, t->n_tries - 1);
    say_others(out, t);
}

/* The candidates that were left and not asked: those tried before, or with an equal lobby id. */
static void say_none_left(struct buf *out, const struct view_ticket *t,
                          const struct core_config *config)
{
    int all = count_passed(t) + t->passed[PASSED_NOT];
    if (all == 0) {
        say(out, " There is no server of fleet %s ", t->fleet);
        say_regions(out, t, config);
        say(out, ".");
        return;
    }
    say(out, " Of the %d %s of fleet %s ", all, all == 1 ? "server" : "servers", t->fleet);
    say_regions(out, t, config);
    say(out, " none was left: ");
    say_reasons(out, t);
    if (t->passed[PASSED_NOT] > 0)
        say(out, "%s%" PRId32 " tried before or with a match of the same lobby id",
            count_passed(t) > 0 ? ", " : "", t->passed[PASSED_NOT]);
    say(out, ".");
}

static void say_failed(struct buf *out, const struct view_ticket *t,
                       const struct core_config *config)
{
    bool out_of_tries = t->n_tries == VIEW_TRIES;
    if (t->err == ERR_NO_SERVERS)
        say(out, "Failed: no server was available.");
    else if (t->err == ERR_ALLOCATION_TIMEOUT)
        say(out, "Failed: no server acknowledged in time.");
    else
        say(out, "Failed: %s.", err_sentence(t->err));
    if (t->n_tries > 0)
        say(out, " ");
    say_tries(out, t, t->n_tries);
    if (out_of_tries)
        say(out, " No more than %d servers are asked.", VIEW_TRIES);
    else if (t->err == ERR_NO_SERVERS || t->err == ERR_ALLOCATION_TIMEOUT)
        say_none_left(out, t, config);
}

/* Nobody is being asked now: it waits for servers that are not back since the start. */
static bool is_waiting(const struct view_ticket *t)
{
    return t->n_tries == 0 || strcmp(t->tries[t->n_tries - 1].outcome, "pending") != 0;
}

static void say_open(struct buf *out, const struct view_ticket *t)
{
    say(out, is_waiting(t) ? "Open: it waits for servers that have not come back since Muster "
                             "started."
                           : "Open: its answer is still to come.");
    if (t->n_tries > 0)
        say(out, " ");
    say_tries(out, t, t->n_tries);
    say_others(out, t);
}

static void say_cancelled(struct buf *out, const struct view_ticket *t,
                          const struct view_server *server)
{
    say(out, "Cancelled");
    if (t->answered_wall_ms != 0 && t->n_tries > 0 &&
        strcmp(t->tries[t->n_tries - 1].outcome, "acknowledged") == 0) {
        say(out, " after it had been placed on ");
        say_server(out, t, server);
        say(out, ".");
        return;
    }
    say(out, " before it was placed.%s", t->n_tries > 0 ? " " : "");
    say_tries(out, t, t->n_tries);
}

void why_sentence(const struct view_ticket *t, const struct view_server *server,
                  const struct core_config *config, struct buf *out)
{
    if (t->open) {
        say_open(out, t);
    } else if (strcmp(t->state, "failed") == 0) {
        say_failed(out, t, config);
    } else if (strcmp(t->state, "cancelled") == 0) {
        say_cancelled(out, t, server);
    } else {
        say_placed(out, t, server);
        if (strcmp(t->state, "ended") == 0)
            say(out, " The match is over.");
    }
}

/* ── rooms ─────────────────────────────────────────────────────────────────────────────────── */

static const char *host_clause_of(const char *outcome)
{
    static const struct outcome_words table[] = {
        {"pending", "has not started a server for it yet"},
        {"opened", "started its server"},
        {"failed", "could not start a server"},
        {"timed_out", "started a server that was not ready in time"},
        {"given_up", "was asked in vain, because nobody waited any more"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (strcmp(table[i].outcome, outcome) == 0)
            return table[i].clause;
    }
    return outcome;
}

/* " Host 3 (load 12 %) could not start a server and host 4 (load 30 %) started its server." */
static void say_hosts(struct buf *out, const struct view_room_ticket *t)
{
    for (int i = 0; i < t->n_tries; i++)
        say(out, "%s%s %" PRId64 " (load %.0f %%) %s", i == 0 ? " " : gap(i, t->n_tries),
            i == 0 ? "Host" : "host", t->tries[i].host, (double)t->tries[i].load_percent,
            host_clause_of(t->tries[i].outcome));
    if (t->n_tries > 0)
        say(out, ".");
}

/* A ticket that made no try has found a room that was there. */
static void say_seated(struct buf *out, const struct view_room_ticket *t,
                       const struct view_room *room)
{
    say(out, "%" PRId32 " %s given in %sroom %" PRId64, t->players,
        t->players == 1 ? "seat was" : "seats were", t->n_tries > 0 ? "the new " : "", t->room);
    if (room)
        say(out, " (%s, version %s, %s, on host %s)", room->fleet, room->version, room->region_name,
            room->host_name[0] ? room->host_name : "that is gone");
    say(out, ".");
}

void why_room_sentence(const struct view_room_ticket *t, const struct view_room *room,
                       struct buf *out)
{
    if (t->open) {
        say(out, "Open: its answer is still to come.");
    } else if (t->err == 0) {
        say_seated(out, t, room);
    } else {
        say(out, "Failed: ");
        if (t->why.len > 0)
            buf_append(out, t->why.at, t->why.len);
        else
            say(out, "%s.", err_sentence(t->err));
    }
    say_hosts(out, t);
}

/* ── allocations ───────────────────────────────────────────────────────────────────────────── */

static void say_seconds(struct buf *out, int64_t ms)
{
    say(out, "%" PRId64 " s", (ms + 500) / 1000);
}

static void say_where(struct buf *out, const struct view_allocation *a,
                      const struct view_room *room)
{
    say(out, "room %" PRId64, a->room);
    if (room)
        say(out, " (%s, %s, %" PRId32 " of %" PRId32 " seats in use)", room->fleet,
            room->region_name, room->reserved + room->taken, room->max_players);
}

/* "Waits at position 2 for a seat in room 7, behind 3 players, for 12 s by now." */
static void say_queued(struct buf *out, const struct view_allocation *a,
                       const struct view_room *room)
{
    say(out, "Waits at position %" PRId32 " for %" PRId32 " %s in ", a->position, a->players,
        a->players == 1 ? "seat" : "seats");
    if (a->room != 0)
        say_where(out, a, room);
    else
        say(out, "any room of fleet %s%s%s", a->fleet, a->where[0] ? " in " : "", a->where);
    if (a->ahead > 0)
        say(out, ", behind %" PRId32 " %s", a->ahead, a->ahead == 1 ? "player" : "players");
    say(out, ", for ");
    say_seconds(out, a->waited_ms);
    say(out, " by now.");
    if (a->room != 0 && a->friends > 0)
        say(out, " That is where friends of his sit.");
    if (a->priority > 0)
        say(out, " His priority %" PRId32 " is worth %" PRId32 " min of waiting.", a->priority,
            a->priority);
    if (a->eta_ms > 0) {
        say(out, " By how seats came free lately it takes about ");
        say_seconds(out, a->eta_ms);
        say(out, ".");
    }
}

static void say_given(struct buf *out, const struct view_allocation *a,
                      const struct view_room *room)
{
    say(out, "%" PRId32 " %s given in ", a->players, a->players == 1 ? "seat was" : "seats were");
    say_where(out, a, room);
    if (a->queued_wall_ms != 0) {
        say(out, ", after ");
        say_seconds(out, a->answered_wall_ms - a->queued_wall_ms);
        say(out, " in line");
    }
    say(out, ".");
}

static void say_ended(struct buf *out, const struct view_allocation *a, const char *how)
{
    say(out, "%s: ", how);
    if (a->why.len > 0)
        buf_append(out, a->why.at, a->why.len);
    else
        say(out, "%s", err_sentence(a->err));
    say(out, ".");
    if (a->queued_wall_ms != 0) {
        say(out, " It stood in line for ");
        say_seconds(out, a->answered_wall_ms - a->queued_wall_ms);
        say(out, ".");
    }
}

void why_allocation_sentence(const struct view_allocation *a, const struct view_room *room,
                             struct buf *out)
{
    if (strcmp(a->state, "queued") == 0)
        say_queued(out, a, room);
    else if (strcmp(a->state, "open") == 0)
        say(out, "Open: a server is being started for it, or told of it.");
    else if (strcmp(a->state, "done") == 0)
        say_given(out, a, room);
    else
        say_ended(out, a, strcmp(a->state, "failed") == 0 ? "Failed" : "Cancelled");
}
