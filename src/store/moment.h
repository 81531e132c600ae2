/* A moment: all that a store holds at one batch, in memory, to be written elsewhere and compared.
 * Embedded by its owner: a zeroed struct is empty. */
#pragma once

#include "store/latest.h"
#include "store/store.h"

enum { MOMENT_DIGEST = 33 }; /* hex, with its NUL */

struct moment {
    struct latest latest;
    struct store_tip tip;
    int64_t rows;
    char digest[MOMENT_DIGEST]; /* of every row, whoever keeps it */
};

void moment_done(struct moment *m);

/* A store_sink: a row as a store gives it. moment_seal when all have come. */
int moment_add(void *moment, const struct change *change);
int moment_seal(struct moment *m);
