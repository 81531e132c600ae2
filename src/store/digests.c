#include "store/digests.h"

#include "base/buf.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct digest {
    uint8_t bytes[DIGEST_SIZE];
};

void digests_done(struct digests *d)
{
    size_t at = 0;
    for (struct digest *digest = NULL; (digest = map_next(&d->by_id, &at));)
        free(digest);
    map_done(&d->by_id);
}

void digests_note(struct digests *d, const struct change *change)
{
    assert(change->kind == ROW_deployment);
    uint64_t key = (uint64_t)change->id;
    if (change->gone || change->deployment.digest_len != DIGEST_SIZE) {
        free(map_remove(&d->by_id, key));
        return;
    }
    struct digest *digest = map_get(&d->by_id, key);
    if (!digest) {
        digest = xcalloc(1, sizeof(*digest));
        map_put(&d->by_id, key, digest);
    }
    memcpy(digest->bytes, change->deployment.digest, DIGEST_SIZE);
}

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, DIGEST_SIZE);
}

size_t digests_each_once(const struct digests *d, uint8_t (*ret)[DIGEST_SIZE], size_t max)
{
    struct digest *all = xcalloc(d->by_id.len + 1, sizeof(*all));
    size_t count = 0;
    size_t at = 0;
    for (const struct digest *digest = NULL; (digest = map_next(&d->by_id, &at));)
        all[count++] = *digest;
    qsort(all, count, sizeof(*all), by_bytes);
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && by_bytes(&all[i], &all[i - 1]) == 0)
            continue;
        if (n < max)
            memcpy(ret[n], all[i].bytes, DIGEST_SIZE);
        n++;
    }
    free(all);
    return n;
}
