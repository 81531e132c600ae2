/* What the parts of core_check() share. Visible inside src/core only. */
#pragma once

#include "core/core.h"
#include "core/deadline.h"

/* Keeps the sentence and returns it. */
const char *broken(struct core *core, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Deadlines are run by ticks: one that is due may wait for the next tick, or for the store. */
bool has_deadline(const struct core *core, const struct deadline *d);

/* Hosts, rooms, their seats and tickets: NULL, or what is wrong. */
const char *check_rooms(struct core *core);

/* Allocations and queues. */
const char *check_allocations(struct core *core);

/* Lobbies. */
const char *check_lobbies(struct core *core);

/* Every object that next_ yields (it may use `at`), until one is broken. */
#define CHECK_ALL(next_, type_, check_)                                                            \
    do {                                                                                           \
        size_t at = 0;                                                                             \
        struct type_ *object_ = NULL;                                                              \
        while ((object_ = (next_))) {                                                              \
            const char *why_ = check_(core, object_);                                              \
            if (why_)                                                                              \
                return why_;                                                                       \
        }                                                                                          \
    } while (0)
