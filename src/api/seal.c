#include "api/seal.h"

#include "base/err.h"
#include "core/core.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

_Static_assert((int)SEAL_KEY_SIZE == (int)crypto_secretbox_KEYBYTES, "the key of a secret box");
_Static_assert((int)SEAL_OVERHEAD == (int)(crypto_secretbox_NONCEBYTES + crypto_secretbox_MACBYTES),
               "nonce and authenticator of a secret box");
_Static_assert(SEAL_DRAWN + sizeof(uint64_t) == crypto_secretbox_NONCEBYTES, "its halves");

void seal_init(struct seal *s, const uint8_t *secret)
{
    static const char purpose[] = "access token, sealed";
    (void)crypto_generichash(s->key, sizeof(s->key), (const uint8_t *)purpose, strlen(purpose),
                             secret, CORE_SECRET_SIZE);
    randombytes_buf(s->drawn, sizeof(s->drawn));
    s->n = 0;
}

void seal_close(struct seal *s, struct str text, struct buf *out)
{
    assert(text.len <= SEAL_TEXT_MAX);
    uint8_t *nonce = buf_extend(out, SEAL_OVERHEAD + text.len);
    uint64_t n = s->n++;
    memcpy(nonce, s->drawn, SEAL_DRAWN);
    memcpy(nonce + SEAL_DRAWN, &n, sizeof(n));
    (void)crypto_secretbox_easy(nonce + crypto_secretbox_NONCEBYTES, (const uint8_t *)text.at,
                                text.len, nonce, s->key);
}

int seal_open(const struct seal *s, struct str sealed, struct buf *out)
{
    size_t before = out->len;
    const uint8_t *nonce = (const uint8_t *)sealed.at;
    if (sealed.len < SEAL_OVERHEAD || sealed.len > SEAL_OVERHEAD + SEAL_TEXT_MAX)
        return ERR_FORMAT;
    uint8_t *text = buf_extend(out, sealed.len - SEAL_OVERHEAD);
    if (crypto_secretbox_open_easy(text, nonce + crypto_secretbox_NONCEBYTES,
                                   sealed.len - crypto_secretbox_NONCEBYTES, nonce, s->key) == 0)
        return 0;
    out->len = before;
    return ERR_FORMAT;
}
