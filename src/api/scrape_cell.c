#include "api/cluster.h"
#include "api/scrape_parts.h"
#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

static const char *const states[] = {"leader", "standby", "away"};

static void count_nodes(const struct cell_view *view, struct cell_figures *ret)
{
    struct cluster_answer *a = xcalloc(1, sizeof(*a));
    cluster_describe(view, a);
    ret->standbys_ready = (int64_t)a->n_ready;
    for (size_t i = 0; i < a->n_nodes; i++) {
        for (size_t k = 0; k < sizeof(states) / sizeof(states[0]); k++)
            ret->nodes[k] += strcmp(a->nodes[i].state, states[k]) == 0;
    }
    free(a);
}

/* A standby knows what it has applied better than its row, which is a second old. */
static void look_as_standby(const struct cluster_standby *standby, struct cell_figures *ret)
{
    struct follower_view follows;
    char why[CLUSTER_WHY_MAX];
    standby->follow(standby->user, &follows);
    ret->ready = standby->is_ready(standby->user, why);
    ret->seq = follows.seq;
    ret->behind = follows.head_seq > follows.seq ? follows.head_seq - follows.seq : 0;
}

void scrape_look_at_cell(struct scrape *s)
{
    const struct metrics_sources *from = &s->m->sources;
    struct cell_view *view = xcalloc(1, sizeof(*view));
    struct cell_figures *ret = &s->cell;
    if (from->standby)
        from->standby->look(from->standby->user, view);
    if (from->standby || (from->store && store_cluster(from->store, view))) {
        memcpy(ret->cell, view->cell, sizeof(ret->cell));
        ret->leads = from->standby == NULL;
        ret->ready = ret->leads;
        ret->epoch = view->epoch;
        ret->seq = view->seq;
        ret->left_ms = view->left_ms > 0 ? view->left_ms : 0;
        count_nodes(view, ret);
        if (from->standby)
            look_as_standby(from->standby, ret);
    }
    free(view);
}

void scrape_cell(struct scrape *s, const char *name, const struct how *how)
{
    struct labels labels = {0};
    if (!s->cell.cell[0])
        return;
    labels_add(&labels, "cell", s->cell.cell);
    exposition_sample(s->out, name, &labels,
                      *(const int64_t *)(const void *)((const char *)&s->cell + how->at));
}

void scrape_cell_lease(struct scrape *s, const char *name, const struct how *how)
{
    struct labels labels = {0};
    (void)how;
    if (!s->cell.cell[0])
        return;
    labels_add(&labels, "cell", s->cell.cell);
    exposition_decimal(s->out, name, &labels, s->cell.left_ms, 1000);
}

void scrape_cell_nodes(struct scrape *s, const char *name, const struct how *how)
{
    (void)how;
    for (size_t i = 0; s->cell.cell[0] && i < sizeof(states) / sizeof(states[0]); i++) {
        struct labels labels = {0};
        labels_add(&labels, "cell", s->cell.cell);
        labels_add(&labels, "state", states[i]);
        exposition_sample(s->out, name, &labels, s->cell.nodes[i]);
    }
}
