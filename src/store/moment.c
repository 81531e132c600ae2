#include "store/moment.h"

#include <sodium.h>

void moment_done(struct moment *m)
{
    latest_done(&m->latest);
    *m = (struct moment){0};
}

int moment_add(void *moment, const struct change *change)
{
    struct moment *m = moment;
    struct buf encoded = {0};
    m->latest.forget_gone = true;
    if (change->gone)
        change_encode_gone(&encoded, change->kind, change->id);
    else
        change_encode_row(&encoded, change->kind, &change->row_id);
    int err = latest_apply(&m->latest, encoded.data, encoded.len);
    buf_done(&encoded);
    return err;
}

struct sealing {
    crypto_generichash_state hash;
    struct buf encoded;
    int64_t rows;
};

static int digest_row(void *user, const struct change *change)
{
    struct sealing *s = user;
    buf_clear(&s->encoded);
    change_encode_row(&s->encoded, change->kind, &change->row_id);
    crypto_generichash_update(&s->hash, s->encoded.data, s->encoded.len);
    s->rows++;
    return 0;
}

int moment_seal(struct moment *m)
{
    uint8_t digest[(MOMENT_DIGEST - 1) / 2];
    struct sealing s = {0};
    crypto_generichash_init(&s.hash, NULL, 0, sizeof(digest));
    int err = latest_each(&m->latest, digest_row, &s);
    crypto_generichash_final(&s.hash, digest, sizeof(digest));
    buf_done(&s.encoded);
    sodium_bin2hex(m->digest, sizeof(m->digest), digest, sizeof(digest));
    m->rows = s.rows;
    return err;
}
