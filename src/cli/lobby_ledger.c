#include "cli/lobby_ledger.h"

#include "cli/term.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REASONS_MAX = 24, WRONG_SHOWN = 20 };

static const char start_not_said[] =
    "was connected while it was played, and was not told its start";

void ledger_done(struct ledger *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->lobbies[i]);
    free(l->lobbies);
    *l = (struct ledger){0};
}

/* ── entering ──────────────────────────────────────────────────────────────────────────────── */

/* The newest are asked for most. */
struct ledger_lobby *ledger_find(const struct ledger *l, int32_t id)
{
    for (size_t i = l->n; i-- > 0;) {
        if (l->lobbies[i]->id == id)
            return l->lobbies[i];
    }
    return NULL;
}

static struct ledger_lobby *find_or_add(struct ledger *l, int32_t id, int64_t now_ms)
{
    struct ledger_lobby *b = ledger_find(l, id);
    if (b)
        return b;
    if (l->n == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 64;
        l->lobbies = xrealloc(l->lobbies, l->cap * sizeof(struct ledger_lobby *));
    }
    b = xcalloc(1, sizeof(*b));
    b->id = id;
    b->created_ms = now_ms;
    b->open = true;
    b->learned = true;
    l->lobbies[l->n++] = b;
    return b;
}

struct ledger_lobby *ledger_add(struct ledger *l, int32_t id, bool requeue, int64_t now_ms)
{
    struct ledger_lobby *b = find_or_add(l, id, now_ms);
    b->requeue = requeue;
    b->learned = false;
    return b;
}

static struct ledger_player *player_of(struct ledger_lobby *b, int32_t account)
{
    for (int i = 0; i < b->n_players; i++) {
        if (b->players[i].account == account)
            return &b->players[i];
    }
    return NULL;
}

void ledger_add_player(struct ledger_lobby *b, int32_t account, int64_t since_ms)
{
    if (player_of(b, account) || b->n_players == LEDGER_PLAYERS_MAX)
        return;
    b->players[b->n_players++] =
        (struct ledger_player){.account = account, .since_ms = since_ms, .was_away = since_ms != 0};
}

static void contradict(struct ledger_lobby *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void contradict(struct ledger_lobby *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!b->wrong[0])
        vsnprintf(b->wrong, sizeof(b->wrong), format, args);
    va_end(args);
}

void ledger_left(struct ledger *l, int32_t account, bool heard_all, int64_t now_ms)
{
    for (size_t i = 0; i < l->n; i++) {
        struct ledger_lobby *b = l->lobbies[i];
        struct ledger_player *p = player_of(b, account);
        if (!p)
            continue;
        if (p->promised && heard_all)
            contradict(b, "player %" PRId32 " %s", account, start_not_said);
        p->promised = p->told_here = false;
        if (!b->open || p->since_ms)
            continue;
        p->since_ms = now_ms;
        p->was_away = true;
    }
}

void ledger_came(struct ledger *l, int32_t account)
{
    for (size_t i = 0; i < l->n; i++) {
        struct ledger_player *p = player_of(l->lobbies[i], account);
        if (!p)
            continue;
        p->promised = p->told_here = false;
        if (l->lobbies[i]->open)
            p->since_ms = 0;
    }
}

/* ── what they hear ────────────────────────────────────────────────────────────────────────── */

static struct ledger_player *listener(struct ledger_lobby *b, int32_t account)
{
    ledger_add_player(b, account, 0);
    return player_of(b, account);
}

void ledger_heard_start(struct ledger *l, int32_t id, int32_t account, struct str ip, int32_t port,
                        struct str token, int64_t now_ms)
{
    char match[LEDGER_TEXT_MAX];
    struct ledger_lobby *b = find_or_add(l, id, now_ms);
    struct ledger_player *p = listener(b, account);
    snprintf(match, sizeof(match), "%.*s at %.*s:%" PRId32, (int)token.len, token.at, (int)ip.len,
             ip.at, port);
    if (!p) {
        contradict(b, "player %" PRId32 " heard of it, and is not in it", account);
        return;
    }
    if (p->heard_abort)
        contradict(b, "player %" PRId32 " heard that it started after it was aborted", account);
    if (b->match[0] && strcmp(b->match, match) != 0)
        contradict(b, "it started twice: %.60s, and %.60s", b->match, match);
    memcpy(b->match, match, sizeof(match));
    p->heard_start = p->told_here = true;
    p->promised = false;
    if (!b->started_ms)
        b->started_ms = now_ms;
}

/* Who was gone by now, and not only just, is told when he comes back. */
static void owe_the_absent(struct ledger_lobby *b, int64_t now_ms)
{
    for (int i = 0; i < b->n_players; i++) {
        struct ledger_player *p = &b->players[i];
        if (p->since_ms && p->since_ms + LEDGER_FLYING_MS < now_ms)
            p->owed = true;
    }
}

void ledger_heard_abort(struct ledger *l, int32_t id, int32_t account, struct str reason,
                        bool requeued, int64_t now_ms)
{
    struct ledger_lobby *b = find_or_add(l, id, now_ms);
    struct ledger_player *p = listener(b, account);
    if (!p) {
        contradict(b, "player %" PRId32 " heard of it, and is not in it", account);
        return;
    }
    if (!b->reason[0]) {
        (void)str_copy(b->reason, sizeof(b->reason), reason);
        owe_the_absent(b, now_ms);
    }
    p->heard_abort = true;
    p->requeued = requeued;
}

void ledger_turned_away(struct ledger *l, int32_t id, int32_t account)
{
    struct ledger_lobby *b = ledger_find(l, id);
    struct ledger_player *p = b ? player_of(b, account) : NULL;
    if (p)
        p->turned_away = true;
}

/* ── what Muster says ──────────────────────────────────────────────────────────────────────── */

static enum ledger_state state_of(struct str word)
{
    static const char *const words[LEDGER_STATES] = {"loading", "started", "ended", "aborted"};
    for (int i = 0; i < LEDGER_STATES; i++) {
        if (str_eq(word, str_of(words[i])))
            return (enum ledger_state)i;
    }
    return LEDGER_STATES;
}

/* Of several lobbies of a player Muster tells him of the newest. */
static bool is_newest_of(const struct ledger *l, const struct ledger_lobby *b, int32_t account)
{
    for (size_t i = 0; i < l->n; i++) {
        if (l->lobbies[i]->id > b->id && player_of(l->lobbies[i], account))
            return false;
    }
    return true;
}

static void said_to_be_played(const struct ledger *l, struct ledger_lobby *b, bool again)
{
    for (int i = 0; i < b->n_players; i++) {
        struct ledger_player *p = &b->players[i];
        if (p->turned_away)
            contradict(b,
                       "player %" PRId32 " was not let in, with its token and while it was played",
                       p->account);
        if (again && !p->since_ms && !p->told_here && is_newest_of(l, b, p->account))
            p->promised = true;
    }
}

void ledger_said(const struct ledger *l, struct ledger_lobby *b, const struct ledger_news *news)
{
    static const uint8_t follows[LEDGER_STATES] = {
        [LEDGER_LOADING] =
            1 << LEDGER_LOADING | 1 << LEDGER_STARTED | 1 << LEDGER_ENDED | 1 << LEDGER_ABORTED,
        [LEDGER_STARTED] = 1 << LEDGER_STARTED | 1 << LEDGER_ENDED,
        [LEDGER_ENDED] = 1 << LEDGER_ENDED,
        [LEDGER_ABORTED] = 1 << LEDGER_ABORTED,
    };
    enum ledger_state now = state_of(news->state);
    if (!news->known || now == LEDGER_STATES) {
        contradict(b, "Muster does not know it");
        b->open = false;
        return;
    }
    if (!(follows[b->state] & 1 << now))
        contradict(b, "Muster says that it is %.*s, and said otherwise before",
                   (int)news->state.len, news->state.at);
    if (now == LEDGER_STARTED)
        said_to_be_played(l, b, b->state == LEDGER_STARTED);
    b->state = now;
    if (b->learned)
        b->requeue = news->requeue;
    b->open = now == LEDGER_LOADING || now == LEDGER_STARTED;
    (void)str_copy(b->cause, sizeof(b->cause), news->cause);
    (void)str_copy(b->queue, sizeof(b->queue), news->queue);
    if (news->reason.len > 0)
        (void)str_copy(b->reason, sizeof(b->reason), news->reason);
}

/* ── whether that can be ───────────────────────────────────────────────────────────────────── */

size_t ledger_count(const struct ledger *l, enum ledger_state state)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++)
        n += l->lobbies[i]->state == state ? 1 : 0;
    return n;
}

/* What is wrong with what one player heard of a lobby that started; NULL = nothing. */
static const char *missed_of_started(const struct ledger_lobby *b, const struct ledger_player *p)
{
    bool broken_off = b->cause[0] != '\0';
    if (p->promised)
        return start_not_said;
    if (!p->heard_start && !p->was_away)
        return "did not hear that it started";
    if (p->heard_abort && !broken_off)
        return "heard that it was aborted, and it was not";
    if (b->state == LEDGER_ENDED && broken_off && !p->heard_abort && !p->was_away)
        return "did not hear that it ended";
    return NULL;
}

static const char *missed_of_aborted(const struct ledger_lobby *b, const struct ledger_player *p)
{
    if (p->heard_start)
        return "heard that it started, and it was aborted";
    if (p->heard_abort && p->requeued != b->requeue)
        return p->requeued ? "heard that he is queued again" : "heard that he is not queued";
    if (p->heard_abort)
        return NULL;
    if (!p->was_away)
        return "did not hear that it was aborted";
    return p->owed ? "was away, and did not hear later that it was aborted" : NULL;
}

static const char *standing_of(const struct ledger_lobby *b)
{
    switch (b->state) {
    case LEDGER_STARTED:
        return "in_match";
    case LEDGER_ABORTED:
        return b->requeue ? "queued" : "not_queued";
    case LEDGER_LOADING:
        return "in_lobby";
    case LEDGER_ENDED:
    case LEDGER_STATES:
        break;
    }
    return "not_queued";
}

const char *ledger_wrong(const struct ledger_lobby *b, char dst[LEDGER_TEXT_MAX])
{
    if (b->wrong[0]) {
        snprintf(dst, LEDGER_TEXT_MAX, "%s", b->wrong);
        return dst;
    }
    if (b->state == LEDGER_LOADING) {
        snprintf(dst, LEDGER_TEXT_MAX, "it neither started nor was it aborted");
        return dst;
    }
    for (int i = 0; i < b->n_players; i++) {
        const struct ledger_player *p = &b->players[i];
        const char *missed =
            b->state == LEDGER_ABORTED ? missed_of_aborted(b, p) : missed_of_started(b, p);
        if (!missed)
            continue;
        snprintf(dst, LEDGER_TEXT_MAX, "player %" PRId32 " %s", p->account, missed);
        return dst;
    }
    if (!b->queue[0] || strcmp(b->queue, standing_of(b)) == 0)
        return NULL;
    snprintf(dst, LEDGER_TEXT_MAX, "its groups are %s, and should be %s", b->queue, standing_of(b));
    return dst;
}

/* ── the summary ───────────────────────────────────────────────────────────────────────────── */

struct reason {
    const char *text;
    size_t n;
};

static int by_number(const void *a, const void *b)
{
    const struct reason *x = a;
    const struct reason *y = b;
    return x->n < y->n ? 1 : x->n > y->n ? -1 : strcmp(x->text, y->text);
}

static int count_reasons(const struct ledger *l, struct reason ret[REASONS_MAX])
{
    int n = 0;
    for (size_t i = 0; i < l->n; i++) {
        const struct ledger_lobby *b = l->lobbies[i];
        int k = 0;
        if (b->state != LEDGER_ABORTED)
            continue;
        while (k < n && strcmp(ret[k].text, b->reason) != 0)
            k++;
        if (k == REASONS_MAX)
            continue;
        if (k == n)
            ret[n++] = (struct reason){.text = b->reason};
        ret[k].n++;
    }
    qsort(ret, (size_t)n, sizeof(*ret), by_number);
    return n;
}

static size_t put_wrong(struct buf *out, const struct ledger *l)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        char text[LEDGER_TEXT_MAX];
        if (!ledger_wrong(l->lobbies[i], text))
            continue;
        if (n++ >= WRONG_SHOWN)
            continue;
        term_printf(out, "  WRONG: lobby %" PRId32 ": ", l->lobbies[i]->id);
        term_put_text(out, str_of(text));
        term_put(out, "\n");
    }
    if (n > WRONG_SHOWN)
        term_printf(out, "  WRONG: %zu more\n", n - WRONG_SHOWN);
    return n;
}

size_t ledger_put_summary(struct buf *out, const struct ledger *l)
{
    struct reason reasons[REASONS_MAX];
    size_t playing = ledger_count(l, LEDGER_STARTED);
    size_t ended = ledger_count(l, LEDGER_ENDED);
    int n = count_reasons(l, reasons);
    term_printf(out, "%zu lobbies created: %zu started, %zu aborted, %zu still open\n", l->n,
                playing + ended, ledger_count(l, LEDGER_ABORTED), ledger_count(l, LEDGER_LOADING));
    term_printf(out, "  of those started %zu have ended, %zu are being played\n", ended, playing);
    for (int i = 0; i < n; i++) {
        term_printf(out, "  aborted %zu: ", reasons[i].n);
        term_put_text(out, str_of(reasons[i].text));
        term_put(out, "\n");
    }
    size_t wrong = put_wrong(out, l);
    if (wrong == 0)
        term_put(out, "  each of them ended in exactly one of started and aborted, and its players "
                      "heard which\n");
    return wrong;
}
