/* Latest: the last change of each object in a run of batches. Folding is exactly this: an object
 * that changed a hundred times, or came and went, becomes one row or none.
 * Embedded by its owner; owns copies of the encoded changes. */
#pragma once

#include "base/arena.h"
#include "base/map.h"
#include "store/store.h"

struct latest_entry;

/* The entries of a kind: to be found by id, and in the order they came, which mostly is that of
 * their ids. */
struct latest_kind {
    struct map by_id;
    struct latest_entry *first;
    struct latest_entry *last;
};

struct latest {
    bool forget_gone; /* a gone object leaves no trace; otherwise its tombstone is kept */
    size_t bytes;     /* held by the entries */
    struct arena memory;
    struct latest_kind kinds[ROW_KINDS];
};

/* Embedded: a zeroed struct is empty. */
void latest_done(struct latest *l);

/* Takes over the changes of one batch. ERR_FORMAT when they are damaged: then l holds those before
 * the damage. */
int latest_apply(struct latest *l, const uint8_t *changes, size_t len);

/* Gives the entries to the sink in order of kind, then id. Stops at the first result that is not 0
 * and returns it. */
int latest_each(const struct latest *l, store_sink *sink, void *user);

/* Decodes a batch and gives its changes to the sink in order. ERR_FORMAT when damaged. */
int changes_each(const uint8_t *changes, size_t len, store_sink *sink, void *user);
