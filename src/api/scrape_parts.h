/* The inside of GET /metrics: what the functions of its table are given. scrape.c has the table;
 * scrape_player.c those of places for players, and of who else takes part in them, scrape_lobby.c
 * those of lobbies, scrape_cell.c those of nodes. */
#pragma once

#include "api/exposition.h"
#include "api/metrics_parts.h"
#include "store/cell.h"
#include "store/store.h"

/* A series with its labels as text and its servers as they are now. */
struct spot {
    const struct series *series;
    struct labels labels;
    bool has_servers;
    struct view_group group;
};

/* The cell of this node, and how this node stands in it. */
struct cell_figures {
    char cell[CELL_NAME_MAX]; /* "" = there is none */
    int64_t leads;            /* 0 or 1, as the next */
    int64_t ready;
    int64_t epoch;
    int64_t seq;
    int64_t behind;
    int64_t left_ms; /* of the lease */
    int64_t standbys_ready;
    int64_t nodes[3]; /* leader, standby, away */
};

struct scrape {
    struct metrics *m;
    struct buf *out;
    const struct core *core; /* NULL: not watched */
    int64_t now_us;
    struct spot *places;
    size_t n_places;
    struct core_counts counts;
    struct process_figures process;
    bool has_store;
    struct store_figures store;
    struct cell_figures cell;
};

/* how->at is where the member stands in its struct. */
struct how {
    void (*write)(struct scrape *s, const char *name, const struct how *how);
    size_t at;
    const struct histogram_scale *scale;
};

static inline const void *scrape_member(const void *object, const struct how *how)
{
    return (const char *)object + how->at;
}

/* Adds the label fleet. */
void scrape_name_fleet(const struct scrape *s, int32_t id, struct labels *labels);

/* What cannot have come from one fleet and region is shown where it is not 0. */
bool scrape_is_shown(const struct spot *p, uint64_t value);

/* What how->at names in the series of each place: a counter where it is not 0, and both where
 * is_asked, so that what nobody uses is not shown with noughts. */
typedef bool scrape_is_asked(const struct spot *p);
void scrape_counter_of(struct scrape *s, const char *name, const struct how *how,
                       scrape_is_asked *is_asked);
void scrape_histogram_of(struct scrape *s, const char *name, const struct how *how,
                         scrape_is_asked *is_asked);

/* One sample with one more label. */
void scrape_labelled(struct scrape *s, const char *name, struct spot *p, const char *key,
                     const char *word, int64_t value);

/* ── scrape_lobby.c ────────────────────────────────────────────────────────────────────────── */

void scrape_lobbies(struct scrape *s, const char *name, const struct how *how);
void scrape_lobby_results(struct scrape *s, const char *name, const struct how *how);
void scrape_lobby_players(struct scrape *s, const char *name, const struct how *how);
void scrape_lobby_counter(struct scrape *s, const char *name, const struct how *how);
void scrape_lobby_histogram(struct scrape *s, const char *name, const struct how *how);

/* ── scrape_player.c ───────────────────────────────────────────────────────────────────────── */

void scrape_player_counter(struct scrape *s, const char *name, const struct how *how);
void scrape_player_allocations(struct scrape *s, const char *name, const struct how *how);
void scrape_player_histogram(struct scrape *s, const char *name, const struct how *how);
void scrape_friend_joins(struct scrape *s, const char *name, const struct how *how);
void scrape_token_collisions(struct scrape *s, const char *name, const struct how *how);
void scrape_queue_length(struct scrape *s, const char *name, const struct how *how);
void scrape_queue_waits(struct scrape *s, const char *name, const struct how *how);
void scrape_queue_abandoned(struct scrape *s, const char *name, const struct how *how);
void scrape_broker_connected(struct scrape *s, const char *name, const struct how *how);
void scrape_broker_passed_over(struct scrape *s, const char *name, const struct how *how);
void scrape_broker(struct scrape *s, const char *name, const struct how *how);
void scrape_cluster_writes(struct scrape *s, const char *name, const struct how *how);
void scrape_cluster_reads(struct scrape *s, const char *name, const struct how *how);
void scrape_cluster_servers(struct scrape *s, const char *name, const struct how *how);
void scrape_routes(struct scrape *s, const char *name, const struct how *how);
void scrape_history_lines(struct scrape *s, const char *name, const struct how *how);
void scrape_history_bytes(struct scrape *s, const char *name, const struct how *how);
void scrape_history_failing(struct scrape *s, const char *name, const struct how *how);
void scrape_route_writes(struct scrape *s, const char *name, const struct how *how);

/* ── scrape_cell.c ─────────────────────────────────────────────────────────────────────────── */

/* Before the others. */
void scrape_look_at_cell(struct scrape *s);
void scrape_cell(struct scrape *s, const char *name, const struct how *how);
void scrape_cell_lease(struct scrape *s, const char *name, const struct how *how);
void scrape_cell_nodes(struct scrape *s, const char *name, const struct how *how);
