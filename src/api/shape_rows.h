/* How rows of shapes are written down: ROW(ID, "id", struct view_room, id, "what it is"). For files
 * that hold tables of shapes; constants. */
#pragma once

#include "api/shape.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The C type behind each kind; the conditional compiles only when the member has it. */
#define TYPE_ID int64_t
#define TYPE_TIME int64_t
#define TYPE_INT8 int8_t
#define TYPE_INT32 int32_t
#define TYPE_INT64 int64_t
#define TYPE_FLOAT float
#define TYPE_DOUBLE double
#define TYPE_BOOL bool
#define TYPE_TEXT const char *
#define TYPE_WORD const char *
#define TYPE_JSON struct str

#define PLACE(kind_, struct_, member_)                                                             \
    (offsetof(struct_, member_) +                                                                  \
     0 * sizeof(*(1 ? (TYPE_##kind_ const *)0 : &((const struct_ *)0)->member_)))

#define ROW(kind_, name_, struct_, member_, help_)                                                 \
    {                                                                                              \
        .name = (name_), .kind = SHAPE_##kind_, .offset = PLACE(kind_, struct_, member_),          \
        .help = (help_)                                                                            \
    }

#define ROW_OR_NULL(kind_, name_, struct_, member_, help_)                                         \
    {                                                                                              \
        .name = (name_), .kind = SHAPE_##kind_, .may_be_null = true,                               \
        .offset = PLACE(kind_, struct_, member_), .help = (help_)                                  \
    }

#define ROW_WORD(name_, words_, struct_, member_, help_)                                           \
    {                                                                                              \
        .name = (name_), .kind = SHAPE_WORD, .offset = PLACE(TEXT, struct_, member_),              \
        .words = (words_), .help = (help_)                                                         \
    }

#define ROW_OBJECT(name_, shape_, struct_, member_, help_)                                         \
    {                                                                                              \
        .name = (name_), .kind = SHAPE_OBJECT, .offset = offsetof(struct_, member_),               \
        .shape = &(shape_), .help = (help_)                                                        \
    }

#define ROW_WORD_OR_NULL(name_, words_, struct_, member_, help_)                                   \
    {                                                                                              \
        .name = (name_), .kind = SHAPE_WORD, .may_be_null = true,                                  \
        .offset = PLACE(TEXT, struct_, member_), .words = (words_), .help = (help_)                \
    }

/* A value that is written by a function of its own, which is given the whole object. */
#define ROW_WRITTEN(kind_, name_, write_, help_)                                                   \
    {                                                                                              \
        .name = (name_), .kind = SHAPE_##kind_, .write = (write_), .help = (help_)                 \
    }
#define ROW_WRITTEN_OR_NULL(kind_, name_, write_, help_)                                           \
    {                                                                                              \
        .name = (name_), .kind = SHAPE_##kind_, .may_be_null = true, .write = (write_),            \
        .help = (help_)                                                                            \
    }

/* A list of objects. */
#define ROW_ITEMS(name_, shape_, write_, help_)                                                    \
    {                                                                                              \
        .name = (name_), .kind = SHAPE_ITEMS, .shape = &(shape_), .write = (write_),               \
        .help = (help_)                                                                            \
    }
