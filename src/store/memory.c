/* The in-memory twin of the SQLite store, for tests and simulation: a short journal of encoded
 * batches, and behind it the latest row of every object. Batches leaving the journal are folded, so
 * a long simulation stays as large as what it keeps alive. */
#include "store/memory.h"

#include "base/err.h"
#include "store/latest.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { JOURNAL_BATCHES = 64 };

struct memory_store {
    struct store base;
    int mode;
    struct store_tip tip;
    struct latest tables;
    struct store_batch journal[JOURNAL_BATCHES]; /* a ring */
    size_t first;
    size_t len;
};

static struct store_batch *batch_at(struct memory_store *m, size_t i)
{
    return &m->journal[(m->first + i) % JOURNAL_BATCHES];
}

static void fold_oldest(struct memory_store *m)
{
    struct store_batch *b = batch_at(m, 0);
    int err = latest_apply(&m->tables, b->changes, b->len);
    assert(err == 0);
    free((void *)b->changes);
    m->first = (m->first + 1) % JOURNAL_BATCHES;
    m->len--;
}

static int memory_load(struct store *s, store_sink *sink, void *user, struct store_tip *ret)
{
    struct memory_store *m = (struct memory_store *)s;
    int err = latest_each(&m->tables, sink, user);
    for (size_t i = 0; i < m->len && err == 0; i++)
        err = changes_each(batch_at(m, i)->changes, batch_at(m, i)->len, sink, user);
    if (err == 0)
        *ret = m->tip;
    return err;
}

static int memory_commit(struct store *s, const struct store_batch *batch)
{
    struct memory_store *m = (struct memory_store *)s;
    if (m->mode == STORE_MEMORY_FAILS || batch->seq != m->tip.seq + 1)
        return ERR_IO;
    if (m->len == JOURNAL_BATCHES)
        fold_oldest(m);
    struct store_batch *b = batch_at(m, m->len++);
    uint8_t *changes = xmalloc(batch->len + 1);
    if (batch->len > 0)
        memcpy(changes, batch->changes, batch->len);
    *b = *batch;
    b->changes = changes;
    m->tip = (struct store_tip){batch->seq, batch->core_ms, batch->wall_ms};
    return m->mode == STORE_MEMORY_UNKNOWN ? ERR_IO : 0;
}

static int memory_tip(struct store *s, struct store_tip *ret)
{
    *ret = ((struct memory_store *)s)->tip;
    return 0;
}

static int memory_history(struct store *s, int64_t bytes_max, store_batch_sink *sink, void *user)
{
    struct memory_store *m = (struct memory_store *)s;
    size_t from = m->len;
    int64_t bytes = 0;
    while (from > 0 && bytes + (int64_t)batch_at(m, from - 1)->len <= bytes_max)
        bytes += (int64_t)batch_at(m, --from)->len;
    int err = 0;
    for (; from < m->len && err == 0; from++)
        err = sink(user, batch_at(m, from));
    return err;
}

static void memory_close(struct store *s)
{
    struct memory_store *m = (struct memory_store *)s;
    while (m->len > 0)
        fold_oldest(m);
    latest_done(&m->tables);
    free(m);
}

static const struct store_ops memory_ops = {
    .load = memory_load,
    .commit = memory_commit,
    .tip = memory_tip,
    .history = memory_history,
    .close = memory_close,
};

struct store *store_open_memory(void)
{
    struct memory_store *m = xcalloc(1, sizeof(*m));
    m->base.ops = &memory_ops;
    m->tables.forget_gone = true;
    return &m->base;
}

void store_memory_fail(struct store *s, int mode)
{
    assert(s->ops == &memory_ops);
    ((struct memory_store *)s)->mode = mode;
}
