/* What is durable knows whether the open batch must carry it. Visible inside src/core only. */
#pragma once

#include "base/list.h"
#include "base/roll.h"
#include "core/row.h"

struct core;

struct object {
    struct link dirty;        /* in core->dirty when the open batch must carry it */
    struct roll_place listed; /* on core->rolls[kind] */
    enum row_kind kind;
    bool stored; /* some sealed batch has carried it */
    bool gone;   /* deleted; freed when the batch is sealed */
};

/* Zeroed memory for an object of a kind that there are many of. */
void *object_alloc(struct core *core, enum row_kind kind);

/* Gives back the memory of any object, and of what it owns. */
void object_free(struct core *core, struct object *o);

/* It exists: the lists show it. Call when it is in its maps, with ids only growing. */
void object_enter(struct core *core, struct object *o);

/* The open batch will carry the object as it is when the batch is sealed. */
void object_touch(struct core *core, struct object *o);

/* The open batch will carry its deletion. The memory is freed at the seal; the caller has taken it
 * out of every index. */
void object_delete(struct core *core, struct object *o);

/* The object of that kind and id, or NULL. It is the first member of what it is of. */
void *object_find(const struct core *core, enum row_kind kind, int64_t id);

/* Walks all objects of a kind by id: start with *at = 0; NULL at the end. None may come or go
 * meanwhile. */
void *object_next(const struct core *core, enum row_kind kind, size_t *at);

/* The row inside the object. */
void *object_row(struct object *o);

/* Long fields of a row (struct str) belong to whoever holds the row: these make the row's own
 * copies, free them, and replace one. Rows of other kinds have none, which is fine. */
void row_own(enum row_kind kind, void *row);
void row_disown(enum row_kind kind, void *row);
void long_set(struct str *field, struct str value);

/* A new id for that kind, never used before in this data folder. */
int64_t object_new_id(struct core *core, enum row_kind kind);
