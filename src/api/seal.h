/* Sealing: a player's access token as it is kept until his game server asks for it, readable by
 * nobody who has only the store. The key is derived from the data folder's secret, so whoever has
 * the folder's secret, and a restarted Muster, can open what was sealed. Embedded in the HTTP API.
 *
 * No two texts may be sealed under one nonce. So each start draws 128 bits and counts from there,
 * which is as good as drawing a nonce for each and takes no system call. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <stdint.h>

enum { SEAL_TEXT_MAX = 8 * 1024, SEAL_OVERHEAD = 24 + 16, SEAL_KEY_SIZE = 32, SEAL_DRAWN = 16 };

struct seal {
    uint8_t key[SEAL_KEY_SIZE];
    uint8_t drawn[SEAL_DRAWN]; /* at random, for the first half of each nonce */
    uint64_t n;                /* sealed so far: the other half */
};

/* secret is CORE_SECRET_SIZE bytes. */
void seal_init(struct seal *s, const uint8_t *secret);

/* Appends text, at most SEAL_TEXT_MAX bytes, sealed: SEAL_OVERHEAD bytes more, and other ones each
 * time. */
void seal_close(struct seal *s, struct str text, struct buf *out);

/* Appends the text. 0, or ERR_FORMAT when it is not what this key has sealed; then out is as it
 * was. */
int seal_open(const struct seal *s, struct str sealed, struct buf *out);
