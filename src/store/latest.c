#include "store/latest.h"

#include "base/err.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    int64_t id;
    size_t len;
    size_t cap;
    uint8_t bytes[]; /* one encoded change */
};

void latest_done(struct latest *l)
{
    for (int kind = 0; kind < ROW_KINDS; kind++) {
        size_t at = 0;
        for (void *e; (e = map_next(&l->kinds[kind], &at));)
            free(e);
        map_done(&l->kinds[kind]);
    }
    *l = (struct latest){.forget_gone = l->forget_gone};
}

static void drop(struct latest *l, struct entry *e)
{
    if (e)
        l->bytes -= sizeof(*e) + e->cap;
    free(e);
}

static struct entry *new_entry(struct latest *l, int64_t id, size_t len)
{
    struct entry *e = xmalloc(sizeof(*e) + len);
    *e = (struct entry){.id = id, .cap = len};
    l->bytes += sizeof(*e) + len;
    return e;
}

static void keep(struct latest *l, const struct change_name *name, const uint8_t *bytes, size_t len)
{
    struct map *map = &l->kinds[name->kind];
    if (name->gone && l->forget_gone) {
        drop(l, map_remove(map, (uint64_t)name->id));
        return;
    }
    /* An object mostly keeps its length, so its next state goes where the last one was. */
    struct entry *e = map_get(map, (uint64_t)name->id);
    if (!e || e->cap < len) {
        e = new_entry(l, name->id, len);
        drop(l, map_put(map, (uint64_t)name->id, e));
    }
    e->len = len;
    memcpy(e->bytes, bytes, len);
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
    return cursor_failed(&c) ? ERR_FORMAT : 0;
}

/* The id beside its entry, so that sorting reads nothing else. */
struct place {
    int64_t id;
    const struct entry *entry;
};

static int by_id(const void *a, const void *b)
{
    int64_t x = ((const struct place *)a)->id;
    int64_t y = ((const struct place *)b)->id;
    return (x > y) - (x < y);
}

static int each_of_kind(const struct map *map, store_sink *sink, void *user)
{
    if (map->len == 0)
        return 0;
    /* Sorted, so that the order never depends on the table's size, and tables are filled front to
     * back. */
    struct place *places = xcalloc(map->len, sizeof(*places));
    size_t n = 0;
    size_t at = 0;
    for (const struct entry *e; (e = map_next(map, &at));)
        places[n++] = (struct place){e->id, e};
    assert(n == map->len);
    qsort(places, n, sizeof(*places), by_id);

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
