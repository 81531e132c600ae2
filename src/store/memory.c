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
    struct store_ops ops;
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

static bool is_memory(const struct store *s)
{
    return s->ops->commit == memory_commit;
}

struct store *store_open_memory(void)
{
    struct memory_store *m = xcalloc(1, sizeof(*m));
    m->ops = memory_ops;
    m->base.ops = &m->ops;
    m->tables.forget_gone = true;
    return &m->base;
}

void store_memory_set_depth(struct store *s, int depth)
{
    assert(is_memory(s));
    ((struct memory_store *)s)->ops.depth = depth;
}

void store_memory_fail(struct store *s, int mode)
{
    assert(is_memory(s));
    ((struct memory_store *)s)->mode = mode;
}

static int copy_change(void *user, const struct change *change)
{
    struct buf encoded = {0};
    change_encode_row(&encoded, change->kind, &change->row_id);
    int err = latest_apply(user, encoded.data, encoded.len);
    buf_done(&encoded);
    return err;
}

static void copy_into(struct memory_store *to, const struct memory_store *from)
{
    int err = latest_each(&from->tables, copy_change, &to->tables);
    for (size_t i = 0; i < from->len && err == 0; i++) {
        const struct store_batch *b = &from->journal[(from->first + i) % JOURNAL_BATCHES];
        err = latest_apply(&to->tables, b->changes, b->len);
    }
    assert(err == 0);
    to->tip = from->tip;
}

struct store *store_memory_copy(const struct store *s)
{
    assert(is_memory(s));
    struct store *copy = store_open_memory();
    copy_into((struct memory_store *)copy, (const struct memory_store *)s);
    return copy;
}

void store_memory_set_back(struct store *s, const struct store *older,
                           const struct store_batch *batch)
{
    assert(is_memory(s) && is_memory(older));
    struct memory_store *m = (struct memory_store *)s;
    while (m->len > 0)
        fold_oldest(m);
    latest_done(&m->tables);
    m->tables = (struct latest){.forget_gone = true};
    copy_into(m, (const struct memory_store *)older);
    m->tip.seq = batch->seq - 1;
    m->mode = STORE_MEMORY_WORKS;
    int err = store_commit(s, batch);
    assert(err == 0);
    (void)err;
}
