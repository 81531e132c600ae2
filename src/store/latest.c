#include "store/latest.h"

#include "base/err.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { WASTE_MIN = 1 << 20 };

struct latest_entry {
    int64_t id;
    struct latest_entry *next; /* of its kind */
    uint32_t cap;
    uint32_t len;    /* 0 = forgotten */
    uint8_t bytes[]; /* one encoded change */
};

void latest_done(struct latest *l)
{
    for (int kind = 0; kind < ROW_KINDS; kind++)
        map_done(&l->kinds[kind].by_id);
    arena_done(&l->memory);
    *l = (struct latest){.forget_gone = l->forget_gone};
}

static size_t size_of(const struct latest_entry *e)
{
    return sizeof(*e) + e->cap;
}

/* Its place in the list stays until it is tidied up. */
static void drop(struct latest *l, struct latest_entry *e)
{
    if (!e)
        return;
    l->bytes -= size_of(e);
    e->len = 0;
}

static void add(struct latest *l, const struct change_name *name, const uint8_t *bytes, size_t len)
{
    struct latest_kind *kind = &l->kinds[name->kind];
    struct latest_entry *e = arena_alloc(&l->memory, sizeof(*e) + len);
    *e = (struct latest_entry){.id = name->id, .cap = (uint32_t)len, .len = (uint32_t)len};
    memcpy(e->bytes, bytes, len);
    l->bytes += size_of(e);
    if (kind->last)
        kind->last->next = e;
    else
        kind->first = e;
    kind->last = e;
    drop(l, map_put(&kind->by_id, (uint64_t)name->id, e));
}

static void keep(struct latest *l, const struct change_name *name, const uint8_t *bytes, size_t len)
{
    struct map *by_id = &l->kinds[name->kind].by_id;
    if (name->gone && l->forget_gone) {
        drop(l, map_remove(by_id, (uint64_t)name->id));
        return;
    }
    /* An object mostly keeps its length, so its next state goes where the last one was. */
    struct latest_entry *e = map_get(by_id, (uint64_t)name->id);
    if (!e || e->cap < len) {
        add(l, name, bytes, len);
        return;
    }
    e->len = (uint32_t)len;
    memcpy(e->bytes, bytes, len);
}

/* Whoever lives long would otherwise keep all that was ever dropped. */
static void tidy(struct latest *l)
{
    if (l->memory.used < 4 * l->bytes + WASTE_MIN)
        return;
    struct latest fresh = {.forget_gone = l->forget_gone};
    for (int kind = 0; kind < ROW_KINDS; kind++)
        for (const struct latest_entry *e = l->kinds[kind].first; e; e = e->next)
            if (e->len > 0)
                add(&fresh, &(struct change_name){.kind = (enum row_kind)kind, .id = e->id},
                    e->bytes, e->len);
    latest_done(l);
    *l = fresh;
}

int latest_apply(struct latest *l, const uint8_t *changes, size_t len)
{
    if (len == 0)
        return 0;
    struct cursor c = cursor_of(changes, len);
    struct change_name name;
    const uint8_t *start = c.at;
    while (change_skip(&c, &name)) {
        keep(l, &name, start, (size_t)(c.at - start));
        start = c.at;
    }
    tidy(l);
    return cursor_failed(&c) ? ERR_FORMAT : 0;
}

/* The id beside its entry, so that sorting reads nothing else. */
struct place {
    int64_t id;
    const struct latest_entry *entry;
};

static int by_id(const void *a, const void *b)
{
    int64_t x = ((const struct place *)a)->id;
    int64_t y = ((const struct place *)b)->id;
    return (x > y) - (x < y);
}

/* All of a kind by id, so that tables are filled front to back. They are n. */
static void in_order(const struct latest_kind *kind, struct place *ret, size_t n)
{
    bool sorted = true;
    size_t i = 0;
    for (const struct latest_entry *e = kind->first; e; e = e->next) {
        if (e->len == 0)
            continue;
        sorted = sorted && (i == 0 || ret[i - 1].id < e->id);
        ret[i++] = (struct place){e->id, e};
    }
    assert(i == n);
    if (!sorted)
        qsort(ret, n, sizeof(*ret), by_id);
}

static int each_of_kind(const struct latest_kind *kind, store_sink *sink, void *user)
{
    size_t n = kind->by_id.len;
    if (n == 0)
        return 0;
    struct place *places = xcalloc(n, sizeof(*places));
    in_order(kind, places, n);
    int err = 0;
    for (size_t i = 0; i < n && err == 0; i++)
        err = changes_each(places[i].entry->bytes, places[i].entry->len, sink, user);
    free(places);
    return err;
}

int latest_each(const struct latest *l, store_sink *sink, void *user)
{
    int err = 0;
    for (int kind = 0; kind < ROW_KINDS && err == 0; kind++)
        err = each_of_kind(&l->kinds[kind], sink, user);
    return err;
}

int changes_each(const uint8_t *changes, size_t len, store_sink *sink, void *user)
{
    if (len == 0)
        return 0;
    struct cursor c = cursor_of(changes, len);
    struct change change;
    while (change_decode(&c, &change)) {
        int err = sink(user, &change);
        if (err != 0)
            return err;
    }
    return cursor_failed(&c) ? ERR_FORMAT : 0;
}
