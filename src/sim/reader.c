/* A reader of changes: learns of each batch when the pipeline says that it is durable, and of what
 * he missed while the control plane was down from the history of the store that starts again. He
 * must see every stored batch exactly once, in order, byte for byte, and nothing that is not stored
 * (I7). What is stored he knows from the simulated disk itself. */
#include "sim/world.h"

#include <inttypes.h>

static uint64_t digest(const struct store_batch *batch)
{
    uint64_t hash = 0xcbf29ce484222325u ^ (uint64_t)batch->seq;
    for (size_t i = 0; i < batch->len; i++)
        hash = (hash ^ batch->changes[i]) * 0x100000001b3u;
    return hash;
}

static uint64_t *stored_digest(struct world *w, int64_t seq)
{
    return &w->reader.stored[seq % READER_WINDOW];
}

void reader_stored(struct world *w, const struct store_batch *batch)
{
    struct reader *r = &w->reader;
    if (!w->set_back_ms && batch->seq != r->stored_seq + 1)
        world_wrong(w, "I8: batch %" PRId64 " is written after batch %" PRId64, batch->seq,
                    r->stored_seq);
    r->stored_seq = batch->seq;
    *stored_digest(w, batch->seq) = digest(batch);
}

static void see(struct world *w, const struct store_batch *batch)
{
    struct reader *r = &w->reader;
    if (batch->seq != r->seen_seq + 1)
        world_broken(w, "a reader who has batch %" PRId64 " is shown %" PRId64, r->seen_seq,
                     batch->seq);
    else if (batch->seq > r->stored_seq)
        world_broken(w, "I7: batch %" PRId64 " is shown before it is stored", batch->seq);
    else if (digest(batch) != *stored_digest(w, batch->seq))
        world_broken(w, "batch %" PRId64 " is shown otherwise than it is stored", batch->seq);
    r->seen_seq = batch->seq;
    w->result->shown++;
}

void reader_durable(struct world *w, const struct store_batch *batch)
{
    see(w, batch);
}

void reader_check(struct world *w)
{
    if (w->reader.seen_seq + w->n_untold != w->reader.stored_seq)
        world_broken(w, "batch %" PRId64 " is stored, but batch %" PRId64 " is shown",
                     w->reader.stored_seq, w->reader.seen_seq);
}

static int remember(void *user, const struct store_batch *batch)
{
    struct world *w = user;
    if (batch->seq > w->reader.seen_seq) {
        see(w, batch);
        w->result->caught_up++;
    } else if (digest(batch) != *stored_digest(w, batch->seq)) {
        world_broken(w, "the history has another batch %" PRId64, batch->seq);
    }
    return 0;
}

void reader_catch_up(struct world *w)
{
    if (store_history(w->store, INT64_MAX, remember, w) != 0)
        world_broken(w, "the history cannot be read");
    if (w->reader.seen_seq != w->reader.stored_seq)
        world_broken(w, "batch %" PRId64 " is stored, but the history ends at %" PRId64,
                     w->reader.stored_seq, w->reader.seen_seq);
}
