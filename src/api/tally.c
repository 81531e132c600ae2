#include "api/tally.h"

#include "api/shape_rows.h"
#include "base/buf.h"
#include "base/err.h"

#include <stdlib.h>
#include <string.h>

void tally_done(struct tally *t)
{
    free(t->players);
    map_done(&t->by_player);
}

/* ── counting ──────────────────────────────────────────────────────────────────────────────── */

/* More kinds than there are errors are nobody's: they are counted with the last. */
static int reason_of(struct tally *t, const char *code)
{
    int i = 0;
    while (i < t->n_reasons && strcmp(t->reasons[i].code, code) != 0)
        i++;
    if (i < t->n_reasons)
        return i;
    if (i == TALLY_REASONS_MAX)
        return i - 1;
    (void)str_copy(t->reasons[i].code, sizeof(t->reasons[i].code), str_of(code));
    t->n_reasons++;
    return i;
}

static struct tally_player *add_player(struct tally *t, uint64_t key)
{
    if (t->n_players == TALLY_PLAYERS_MAX)
        return NULL;
    if (t->n_players == t->cap_players) {
        t->cap_players = t->cap_players ? t->cap_players * 2 : 64;
        t->players = xrealloc(t->players, t->cap_players * sizeof(*t->players));
    }
    size_t place = t->n_players++;
    t->players[place] = (struct tally_player){0};
    map_put(&t->by_player, key, (void *)(uintptr_t)(place + 1)); /* NOLINT(performance-*) */
    return &t->players[place];
}

/* NULL when there are too many. Whoever has another's hash stands behind him. */
static struct tally_player *player_of(struct tally *t, const char *account, int reason)
{
    uint64_t key = str_hash((uint64_t)reason + 1, str_of(account));
    uintptr_t place = 0;
    while ((place = (uintptr_t)map_get(&t->by_player, key))) {
        struct tally_player *p = &t->players[place - 1];
        if (p->reason == reason && strcmp(p->account, account) == 0)
            return p;
        key++;
    }
    struct tally_player *p = add_player(t, key);
    if (p) {
        (void)str_copy(p->account, sizeof(p->account), str_of(account));
        p->reason = reason;
        t->reasons[reason].players++;
    }
    return p;
}

void tally_add(struct tally *t, const struct past_line *line)
{
    int reason = reason_of(t, line->reason);
    t->total += line->count;
    t->reasons[reason].count += line->count;
    struct tally_player *p = line->player[0] ? player_of(t, line->player, reason) : NULL;
    if (!p)
        return;
    p->count += line->count;
    p->first_ms = line->at_ms;
    p->last_ms = p->last_ms > line->at_ms ? p->last_ms : line->at_ms;
}

static int by_count(const void *a, const void *b)
{
    const struct tally_player *x = a;
    const struct tally_player *y = b;
    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return (x->last_ms < y->last_ms) - (x->last_ms > y->last_ms);
}

void tally_finish(struct tally *t)
{
    if (t->n_players > 0)
        qsort(t->players, t->n_players, sizeof(*t->players), by_count);
    map_done(&t->by_player);
}

/* ── showing ───────────────────────────────────────────────────────────────────────────────── */

static const char *sentence_of(const char *code)
{
    int err = err_of_code(code);
    return err ? err_sentence(err) : code;
}

/* Few, so the commonest is looked for each time. */
void tally_write_reasons(struct json_writer *w, const struct tally *t)
{
    bool shown[TALLY_REASONS_MAX] = {0};
    json_open_array(w);
    for (int n = 0; n < t->n_reasons; n++) {
        int best = -1;
        for (int i = 0; i < t->n_reasons; i++) {
            if (!shown[i] && (best < 0 || t->reasons[i].count > t->reasons[best].count))
                best = i;
        }
        shown[best] = true;
        const struct tally_reason *r = &t->reasons[best];
        struct tally_reason_view v = {r->code, sentence_of(r->code), r->count, r->players};
        shape_write(w, &refused_reason_shape, &v, NULL);
    }
    json_close_array(w);
}

void tally_write_repeated(struct json_writer *w, const struct tally *t)
{
    json_open_array(w);
    for (size_t i = 0; i < t->n_players && i < TALLY_REPEATED_MAX; i++) {
        const struct tally_player *p = &t->players[i];
        if (p->count < TALLY_REPEATED_MIN)
            break;
        struct tally_repeated_view v = {p->account, t->reasons[p->reason].code, p->count,
                                        p->first_ms, p->last_ms};
        shape_write(w, &refused_repeated_shape, &v, NULL);
    }
    json_close_array(w);
}

const struct shape refused_reason_shape = {
    .name = "RefusedReason",
    .help = "How many were refused for one reason.",
    .rows =
        (const struct shape_row[]){
            ROW(TEXT, "reason", struct tally_reason_view, reason, "the code of the error"),
            ROW(TEXT, "sentence", struct tally_reason_view, sentence, NULL),
            ROW(INT64, "count", struct tally_reason_view, count, "refusals"),
            ROW(INT64, "players", struct tally_reason_view, players,
                "how many different ones, where it is known who was refused"),
            {0},
        },
};

const struct shape refused_repeated_shape = {
    .name = "RefusedRepeatedly",
    .help = "A player who was refused for the same reason at least three times.",
    .rows =
        (const struct shape_row[]){
            ROW(TEXT, "account", struct tally_repeated_view, account, NULL),
            ROW(INT64, "count", struct tally_repeated_view, count, NULL),
            ROW(TEXT, "reason", struct tally_repeated_view, reason, "the code of the error"),
            ROW(TIME, "first_at", struct tally_repeated_view, first_ms, NULL),
            ROW(TIME, "last_at", struct tally_repeated_view, last_ms, NULL),
            {0},
        },
};
