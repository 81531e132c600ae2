/* Digests: which archives are deployed, out of the rows that pass by on their way into a core. A
 * standby must have them before it can lead. Embedded by its owner: a zeroed struct is empty. */
#pragma once

#include "base/map.h"
#include "core/row.h"

#include <stddef.h>
#include <stdint.h>

enum { DIGEST_SIZE = 32 };

struct digests {
    struct map by_id;
};

void digests_done(struct digests *d);

/* A row of ROW_deployment came, changed or went. */
void digests_note(struct digests *d, const struct change *change);

/* Returns how many different ones there are; of them the first max are in ret, in their order. */
size_t digests_each_once(const struct digests *d, uint8_t (*ret)[DIGEST_SIZE], size_t max);
