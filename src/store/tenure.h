/* Tenure: until when this node leads its cell, for all its threads to ask. Ends once and for good:
 * by itself when nobody prolongs it, or because somebody found that another node leads. Embedded by
 * the store of a cell. Times are those of clock_boot_ms(). */
#pragma once

#include "store/cell.h"

#include <stdatomic.h>

struct tenure {
    int64_t node;
    int64_t epoch;
    _Atomic int64_t until_ms; /* 0 = it is over */
};

void tenure_init(struct tenure *t, const struct cell_term *term, int64_t node);

/* Costs a look at the clock. */
bool tenure_holds(struct tenure *t);

/* Nothing happens when it is over. */
void tenure_prolong(struct tenure *t, int64_t until_ms);

/* why is logged, once; NULL = we want it so. */
void tenure_end(struct tenure *t, const char *why);
