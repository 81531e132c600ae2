/* The writer: a thread that commits batches to a store, in their order and as many at once as it
 * takes (store_depth), so that the loop never waits for a disk. Owned by the loop's side; every
 * call here is made from there. */
#pragma once

#include "store/store.h"

struct writer;

enum { WRITER_DEPTH_MAX = 8 };

/* notify is called on the writer's thread each time a commit has ended; it must only wake the loop
 * (uv_async_send). */
struct writer *writer_start(struct store *store, void (*notify)(void *user), void *user);

/* Waits for the commits under way, then ends the thread. The store stays open. */
void writer_stop(struct writer *w);

/* Begins a commit. The batch's bytes must stay valid until writer_poll has returned its result.
 * At most store_depth that were not polled. */
void writer_submit(struct writer *w, const struct store_batch *batch);

/* True once per submitted batch, in their order, after it ended; *ret_result is what store_commit
 * returned. */
bool writer_poll(struct writer *w, int *ret_result);

/* How long the commit that writer_poll told of last took, on the writer's thread. */
int64_t writer_commit_us(const struct writer *w);

/* Blocks until the commits under way have ended. */
void writer_wait(struct writer *w);
