/* The lease: whether this node leads its cell, judged on its own clock alone. Pure: the keeper and
 * the follower ask PostgreSQL, the simulator asks its own cell, and all tell here what they saw.
 *
 *              watch says so, and taken                run out, lost, given back
 *   WATCHING ────────────────────────────▶ HELD ──────────────────────────────▶ WATCHING
 *
 * Who holds it counts from the moment it *sent* what was granted; who watches counts from the
 * moment it *saw* the newest beat, which is later. So whoever may take it comes after the holder
 * has stopped, whatever the wall clocks of either say. The clock is clock_boot_ms(), which goes on
 * while the machine sleeps. What a holder writes is fenced by the epoch besides; the time is there
 * for what it says. Embedded by its owner. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* As it stands in the cell. */
struct lease_row {
    int64_t epoch;  /* raised whenever it is taken */
    int64_t beat;   /* raised whenever it is renewed or taken */
    int64_t holder; /* a node's id; 0 = it was given back, or never taken */
};

struct lease {
    int64_t node; /* ours; not 0 */
    int64_t lease_ms;
    struct lease_row seen;
    int64_t seen_ms; /* since when it is seen unchanged */
    bool watching;   /* `seen` is of this watch */
    bool held;
    int64_t epoch;
    int64_t until_ms;
};

void lease_init(struct lease *l, int64_t node, int64_t lease_ms);

/* The row was read, and the answer is here now. True: it may be taken, if it still stands as *row
 * does: nobody holds it, or an earlier life of this node does, or it was not renewed for lease_ms.
 */
bool lease_watch(struct lease *l, const struct lease_row *row, int64_t now_ms);

/* It was granted; the request for it left at sent_ms. */
void lease_taken(struct lease *l, int64_t epoch, int64_t sent_ms);
void lease_renewed(struct lease *l, int64_t sent_ms);

/* Refused, because somebody else has it, or given back by us. */
void lease_lost(struct lease *l);

/* May we speak and write? A tenth of the time is left out, for clocks that do not run alike. */
bool lease_holds(const struct lease *l, int64_t now_ms);

/* How often the holder renews and watchers look. */
int64_t lease_renew_ms(const struct lease *l); /* a quarter of lease_ms */
int64_t lease_watch_ms(const struct lease *l); /* a tenth */
