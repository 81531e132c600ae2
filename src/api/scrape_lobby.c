/* Metrics of lobbies. */
#include "api/scrape_parts.h"

/* A fleet of which nobody has asked for a lobby is not shown with noughts. One that was asked for
 * anywhere starts in some region. */
static bool is_asked(const struct spot *p)
{
    return p->series->notes[NOTE_LOBBY_CREATED] > 0 || p->series->lobbies.started > 0;
}

void scrape_lobbies(struct scrape *s, const char *name, const struct how *how)
{
    (void)how;
    for (int i = 0; s->core && i < 2; i++) {
        struct labels labels = {0};
        labels_add(&labels, "state", i == 0 ? "loading" : "started");
        exposition_sample(s->out, name, &labels,
                          i == 0 ? s->counts.lobbies_loading : s->counts.lobbies_started);
    }
}

static void write_result(struct scrape *s, const char *name, struct spot *p, const char *result,
                         const char *reason, uint64_t value)
{
    size_t len = p->labels.len;
    labels_add(&p->labels, "result", result);
    scrape_labelled(s, name, p, "reason", reason, (int64_t)value);
    p->labels.len = len;
}

/* No server is the one cause that has causes of its own. */
static void write_aborted(struct scrape *s, const char *name, struct spot *p)
{
    const struct lobby_figures *f = &p->series->lobbies;
    for (int e = 0; e < ERR_ORDER_END; e++) {
        if (f->unallocated[e] > 0)
            write_result(s, name, p, "aborted", err_code(-e), f->unallocated[e]);
    }
    for (int8_t cause = LOBBY_CAUSE_ALLOCATION + 1; cause < LOBBY_CAUSE_TOO_LONG; cause++)
        write_result(s, name, p, "aborted", lobby_cause_name(cause), f->aborted[cause]);
}

void scrape_lobby_results(struct scrape *s, const char *name, const struct how *how)
{
    (void)how;
    for (size_t i = 0; i < s->n_places; i++) {
        struct spot *p = &s->places[i];
        if (!is_asked(p))
            continue;
        write_result(s, name, p, "started", "ok", p->series->lobbies.started);
        write_aborted(s, name, p);
    }
}

void scrape_lobby_players(struct scrape *s, const char *name, const struct how *how)
{
    (void)how;
    for (size_t i = 0; i < s->n_places; i++) {
        struct spot *p = &s->places[i];
        const struct lobby_figures *f = &p->series->lobbies;
        if (!is_asked(p))
            continue;
        scrape_labelled(s, name, p, "result", "asked", (int64_t)f->players_asked);
        scrape_labelled(s, name, p, "result", "started", (int64_t)f->players_started);
    }
}

void scrape_lobby_counter(struct scrape *s, const char *name, const struct how *how)
{
    scrape_counter_of(s, name, how, is_asked);
}

void scrape_lobby_histogram(struct scrape *s, const char *name, const struct how *how)
{
    scrape_histogram_of(s, name, how, is_asked);
}
