/* What the store tests share: a temporary data folder, batches made of rows, and a model of what
 * the store must give back (the latest encoded row of each object). Everything belongs to the
 * test that made it. */
#pragma once

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "lib/patience.h"
#include "store/sqlite.h"
#include "store/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Measures under which folding and trimming happen within a short test. */
static const struct sqlite_tuning fixture_eager = {
    .history_rows = 8,
    .history_bytes = 1 << 20,
    .fold = {.interval_ms = 2, .rows = 4, .bytes = 1 << 16, .slice_bytes = 1 << 20},
};

/* Nothing is folded while the test runs. */
__attribute__((unused)) static const struct sqlite_tuning fixture_lazy = {
    .history_rows = 1000,
    .history_bytes = 1 << 20,
    .fold = {.interval_ms = 3600000,
             .rows = INT64_MAX,
             .bytes = INT64_MAX,
             .slice_bytes = INT64_MAX},
};

static inline char *fixture_folder(void)
{
    char path[] = "/tmp/muster-store-XXXXXX";
    assert_non_null(mkdtemp(path));
    return xstrdup(path);
}

/* Removes the folder with the files in it, and frees its name. */
static inline void fixture_remove(char *folder)
{
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    char path[1024];
    for (struct dirent *e; (e = readdir(dir));) {
        snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        if (e->d_type != DT_DIR)
            unlink(path);
    }
    closedir(dir);
    assert_int_equal(rmdir(folder), 0);
    free(folder);
}

static inline struct store *fixture_open(const char *folder, const struct sqlite_tuning *tuning)
{
    struct store *store = NULL;
    const char *why = "";
    int err = sqlite_open_tuned(folder, tuning, &store, &why);
    if (err != 0)
        print_error("open: %s\n", why);
    assert_int_equal(err, 0);
    return store;
}

static inline int fixture_commit(struct store *store, int64_t seq, const struct buf *changes)
{
    struct store_batch batch = {
        .seq = seq,
        .epoch = 1,
        .core_ms = seq * 10,
        .wall_ms = seq * 100,
        .changes = changes->data,
        .len = changes->len,
    };
    return store_commit(store, &batch);
}

/* A row of the kind with every field set to something that depends on the id and the salt. */
static inline void fixture_row(struct change *c, enum row_kind kind, int64_t id, unsigned salt)
{
    memset(c, 0, sizeof(*c));
    c->kind = kind;
    c->id = id;
    char *row = (char *)&c->row_id;
    for (const struct row_field *f = row_fields(kind); f->type != ROW_END; f++) {
        unsigned v = salt * 2654435761u + (unsigned)id * 40503u + f->offset;
        if (f->type == ROW_i8)
            *(int8_t *)(row + f->offset) = (int8_t)v;
        else if (f->type == ROW_i32)
            *(int32_t *)(row + f->offset) = (int32_t)v;
        else if (f->type == ROW_i64)
            *(int64_t *)(row + f->offset) = (int64_t)(int32_t)v * 1000003;
        else if (f->type == ROW_text)
            snprintf(row + f->offset, f->size, "\xc3\xa9 %s %u", f->name, v);
        else if (f->type == ROW_bytes) {
            uint16_t len = (uint16_t)(v % (f->size + 1u));
            *(uint16_t *)(row + f->len_offset) = len;
            memset(row + f->offset, (int)(v & 0xFF), len);
        } else if (f->type == ROW_long) {
            static const char text[] = "what is long is only borrowed from whoever fills the row";
            *(struct str *)(void *)(row + f->offset) = (struct str){text, v % sizeof(text)};
        }
    }
    c->row_id = id;
}

static inline void fixture_add(struct buf *changes, enum row_kind kind, int64_t id, unsigned salt)
{
    struct change c;
    fixture_row(&c, kind, id, salt);
    change_encode_row(changes, kind, &c.row_id);
}

/* The model. Objects have ids 0 .. MODEL_IDS - 1; an empty buffer is an object that is not. */
enum { MODEL_IDS = 64 };

struct model {
    struct buf rows[ROW_KINDS][MODEL_IDS];
    struct store_tip tip;
};

static inline int model_sink(void *user, const struct change *c)
{
    struct model *m = user;
    assert_in_range(c->id, 0, MODEL_IDS - 1);
    struct buf *row = &m->rows[c->kind][c->id];
    buf_clear(row);
    if (!c->gone)
        change_encode_row(row, c->kind, &c->row_id);
    return 0;
}

static inline void model_done(struct model *m)
{
    for (int kind = 0; kind < ROW_KINDS; kind++)
        for (int id = 0; id < MODEL_IDS; id++)
            buf_done(&m->rows[kind][id]);
}

static inline void model_apply(struct model *m, int64_t seq, const struct buf *changes)
{
    struct cursor c = cursor_of(changes->data, changes->len);
    struct change change;
    while (changes->len > 0 && change_decode(&c, &change))
        model_sink(m, &change);
    m->tip = (struct store_tip){seq, seq * 10, seq * 100};
}

/* Batches up to this number hold only the first so many kinds of rows, as an older version wrote
 * them. */
static int64_t model_old_until;
static unsigned model_old_kinds;

/* Batch number seq of the one history all tests use: a few objects change, some go, some return. */
static inline void model_batch(struct buf *changes, int64_t seq)
{
    buf_clear(changes);
    unsigned x = (unsigned)seq * 2246822519u + 1;
    unsigned kinds = seq <= model_old_until ? model_old_kinds : ROW_KINDS;
    for (int i = 0; i < 4; i++) {
        x = x * 1664525u + 1013904223u;
        enum row_kind kind = (enum row_kind)((x >> 8) % kinds);
        int64_t id = (x >> 16) % MODEL_IDS;
        if (x >> 28 < 4)
            change_encode_gone(changes, kind, id);
        else
            fixture_add(changes, kind, id, (unsigned)seq);
    }
}

/* What the store must hold after batch number `last`. */
static inline void model_until(struct model *m, int64_t last)
{
    struct buf changes = {0};
    for (int64_t seq = 1; seq <= last; seq++) {
        model_batch(&changes, seq);
        model_apply(m, seq, &changes);
    }
    buf_done(&changes);
}

static inline void model_commit(struct store *store, int64_t first, int64_t last)
{
    struct buf changes = {0};
    for (int64_t seq = first; seq <= last; seq++) {
        model_batch(&changes, seq);
        assert_int_equal(fixture_commit(store, seq, &changes), 0);
    }
    buf_done(&changes);
}

static inline void model_assert_equal(const struct model *a, const struct model *b)
{
    assert_int_equal(a->tip.seq, b->tip.seq);
    assert_int_equal(a->tip.core_ms, b->tip.core_ms);
    assert_int_equal(a->tip.wall_ms, b->tip.wall_ms);
    for (int kind = 0; kind < ROW_KINDS; kind++) {
        for (int id = 0; id < MODEL_IDS; id++) {
            const struct buf *x = &a->rows[kind][id];
            const struct buf *y = &b->rows[kind][id];
            if (x->len != y->len)
                fail_msg("%s %d differs", row_kind_name((enum row_kind)kind), id);
            if (x->len > 0)
                assert_memory_equal(x->data, y->data, x->len);
        }
    }
}

/* Loads the store and compares it with the history up to `last`. */
static inline void model_check(struct store *store, int64_t last)
{
    struct model found = {0};
    struct model wanted = {0};
    assert_int_equal(store_load(store, model_sink, &found, &found.tip), 0);
    model_until(&wanted, last);
    model_assert_equal(&found, &wanted);
    struct store_tip tip = {0};
    assert_int_equal(store_tip(store, &tip), 0);
    assert_int_equal(tip.seq, last);
    assert_int_equal(tip.core_ms, last * 10);
    model_done(&found);
    model_done(&wanted);
}

/* What a history must be: the model's batches first .. last, each once and in order. */
struct expected {
    int64_t first; /* 0 until the first one has come */
    int64_t last;
};

static inline int expect_batch(void *user, const struct store_batch *batch)
{
    struct expected *e = user;
    if (e->first == 0)
        e->first = batch->seq;
    else
        assert_int_equal(batch->seq, e->last + 1);
    e->last = batch->seq;
    struct buf changes = {0};
    model_batch(&changes, batch->seq);
    assert_int_equal(batch->len, changes.len);
    assert_memory_equal(batch->changes, changes.data, changes.len);
    assert_int_equal(batch->epoch, 1);
    assert_int_equal(batch->core_ms, batch->seq * 10);
    assert_int_equal(batch->wall_ms, batch->seq * 100);
    buf_done(&changes);
    return 0;
}

/* Returns the number of batches in the history, which must end at `last`. */
static inline int64_t history_check(struct store *store, int64_t bytes_max, int64_t last)
{
    struct expected e = {0};
    assert_int_equal(store_history(store, bytes_max, expect_batch, &e), 0);
    if (e.first == 0)
        return 0;
    assert_int_equal(e.last, last);
    return e.last - e.first + 1;
}

/* Waits until the figures of a store are as wanted. The fold is in the background: whoever spins
 * keeps it from folding. */
#define FIXTURE_AWAIT(store_, figures_, condition_)                                                \
    do {                                                                                           \
        struct patience patience_ = {0};                                                           \
        for (;;) {                                                                                 \
            assert_true(store_figures(store_, figures_));                                          \
            if (condition_)                                                                        \
                break;                                                                             \
            assert_true(patience_lasts(&patience_));                                               \
            usleep(200);                                                                           \
        }                                                                                          \
    } while (0)

/* Waits until the fold thread has published seq. */
static inline void fixture_wait_folded(struct store *store, int64_t seq)
{
    struct store_figures figures = {0};
    FIXTURE_AWAIT(store, &figures, figures.folded_seq >= seq);
}
