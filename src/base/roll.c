#include "base/roll.h"

#include "base/buf.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL = 64 };

void roll_done(struct roll *r)
{
    free(r->entries);
    *r = (struct roll){0};
}

static const struct roll_entry *entry_at(const struct roll *r, size_t i)
{
    return &r->entries[r->first + i];
}

/* Room for one more at the end: the beginning that was given up, or a larger table. The objects are
 * not touched, for their places count what was given up. */
static void make_room(struct roll *r)
{
    if (r->first > 0 && r->first >= r->len) {
        memmove(r->entries, r->entries + r->first, r->len * sizeof(*r->entries));
        r->given_up += r->first;
        r->first = 0;
        return;
    }
    r->cap = r->cap ? r->cap * 2 : SMALL;
    r->entries = xrealloc(r->entries, r->cap * sizeof(*r->entries));
}

void roll_add(struct roll *r, int64_t id, struct roll_place *place)
{
    assert(id > (r->len > 0 ? entry_at(r, r->len - 1)->id : 0) && place->at == 0);
    if (r->first + r->len == r->cap)
        make_room(r);
    r->entries[r->first + r->len++] = (struct roll_entry){id, place};
    place->at = r->given_up + r->first + r->len;
    r->n++;
}

static void close_holes(struct roll *r)
{
    size_t n = 0;
    for (size_t i = r->first; i < r->first + r->len; i++) {
        if (!r->entries[i].place)
            continue;
        r->entries[n] = r->entries[i];
        r->entries[n].place->at = n + 1;
        n++;
    }
    r->first = 0;
    r->given_up = 0;
    r->len = n;
}

void roll_remove(struct roll *r, struct roll_place *place)
{
    if (place->at == 0)
        return;
    r->entries[place->at - 1 - r->given_up].place = NULL;
    place->at = 0;
    r->n--;
    while (r->len > 0 && !entry_at(r, 0)->place) {
        r->first++;
        r->len--;
    }
    if (r->len > SMALL && r->n < r->len / 2)
        close_holes(r);
}

struct roll_place *roll_walk(const struct roll *r, size_t *at)
{
    while (*at < r->len) {
        struct roll_place *place = entry_at(r, (*at)++)->place;
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
        if (entry_at(r, middle)->id <= id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Ids follow each other, but for a gap at each start of the process: so an id stands as far from
 * the last one as it is smaller, unless a gap is between them. */
struct roll_place *roll_find(const struct roll *r, int64_t id)
{
    if (r->len == 0)
        return NULL;
    int64_t last = entry_at(r, r->len - 1)->id;
    uint64_t back = (uint64_t)last - (uint64_t)id;
    if (id <= last && back < r->len) {
        const struct roll_entry *guess = entry_at(r, r->len - 1 - (size_t)back);
        if (guess->id == id)
            return guess->place;
    }
    size_t n = count_upto(r, id);
    const struct roll_entry *found = n > 0 ? entry_at(r, n - 1) : NULL;
    return found && found->id == id ? found->place : NULL;
}

int64_t roll_next(const struct roll *r, int64_t after)
{
    for (size_t i = count_upto(r, after); i < r->len; i++) {
        if (entry_at(r, i)->place)
            return entry_at(r, i)->id;
    }
    return 0;
}

int64_t roll_previous(const struct roll *r, int64_t before)
{
    for (size_t i = before > 0 ? count_upto(r, before - 1) : r->len; i > 0; i--) {
        if (entry_at(r, i - 1)->place)
            return entry_at(r, i - 1)->id;
    }
    return 0;
}
