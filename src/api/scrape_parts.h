/* The inside of GET /metrics: what the functions of its table are given. scrape.c has the table;
 * scrape_player.c those of places for players, and of who else takes part in them. */
#pragma once

#include "api/exposition.h"
#include "api/metrics_parts.h"
#include "store/store.h"

/* A series with its labels as text and its servers as they are now. */
struct spot {
    const struct series *series;
    struct labels labels;
    bool has_servers;
    struct view_group group;
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
};

/* how->at is where the member stands in its struct. */
struct how {
    void (*write)(struct scrape *s, const char *name, const struct how *how);
    size_t at;
    const struct histogram_scale *scale;
};

/* Adds the label fleet. */
void scrape_name_fleet(const struct scrape *s, int32_t id, struct labels *labels);

/* What cannot have come from one fleet and region is shown where it is not 0. */
bool scrape_is_shown(const struct spot *p, uint64_t value);

/* One sample with one more label. */
void scrape_labelled(struct scrape *s, const char *name, struct spot *p, const char *key,
                     const char *word, int64_t value);

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
void scrape_route_writes(struct scrape *s, const char *name, const struct how *how);
