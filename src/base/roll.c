#include "base/roll.h"

#include "base/buf.h"

#include <assert.h>
#include <stdlib.h>

enum { SMALL = 64 };

void roll_done(struct roll *r)
{
    free(r->entries);
    *r = (struct roll){0};
}

void roll_add(struct roll *r, int64_t id, struct roll_place *place)
{
    assert(id > (r->len > 0 ? r->entries[r->len - 1].id : 0) && place->at == 0);
    if (r->len == r->cap) {
        r->cap = r->cap ? r->cap * 2 : SMALL;
        r->entries = xrealloc(r->entries, r->cap * sizeof(*r->entries));
    }
    r->entries[r->len++] = (struct roll_entry){id, place};
    place->at = r->len;
    r->n++;
}

static void close_holes(struct roll *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->len; i++) {
        if (!r->entries[i].place)
            continue;
        r->entries[n] = r->entries[i];
        r->entries[n].place->at = n + 1;
        n++;
    }
    r->len = n;
}

void roll_remove(struct roll *r, struct roll_place *place)
{
    if (place->at == 0)
        return;
    r->entries[place->at - 1].place = NULL;
    place->at = 0;
    r->n--;
    if (r->len > SMALL && r->n < r->len / 2)
        close_holes(r);
}

struct roll_place *roll_walk(const struct roll *r, size_t *at)
{
    while (*at < r->len) {
        struct roll_place *place = r->entries[(*at)++].place;
        if (place)
            return place;
    }
    return NULL;
}

/* How many entries have an id of at most `id`, holes included. */
static size_t count_upto(const struct roll *r, int64_t id)
{
    size_t low = 0;
    size_t high = r->len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->entries[middle].id <= id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int64_t roll_next(const struct roll *r, int64_t after)
{
    for (size_t i = count_upto(r, after); i < r->len; i++) {
        if (r->entries[i].place)
            return r->entries[i].id;
    }
    return 0;
}

int64_t roll_previous(const struct roll *r, int64_t before)
{
    for (size_t i = before > 0 ? count_upto(r, before - 1) : r->len; i > 0; i--) {
        if (r->entries[i - 1].place)
            return r->entries[i - 1].id;
    }
    return 0;
}
