/* One connection's TLS, our side, over memory: ciphertext in and plaintext out, and the other way
 * round. It moves no bytes itself: net/stream.c reads and writes them. Owned by its stream. */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tls;
struct tls_session;

enum { TLS_RECORD_MAX = 16 * 1024 }; /* plaintext that waits inside for the rest of its record */

/* The certificate is the one tls has now. */
struct tls_session *tls_session_new(struct tls *tls);
void tls_session_free(struct tls_session *t); /* NULL is fine */

enum tls_result {
    TLS_GOES_ON,
    TLS_ENDED,  /* the peer said goodbye */
    TLS_FAILED, /* tls_session_why; an alert for the peer may wait to be sealed */
};

/* Takes all that was read and goes on with the handshake; when that is done writes the plaintext to
 * `to`, which must have room for n + TLS_RECORD_MAX bytes, and its length to ret_len. Both this and
 * sealing may leave something to be written. */
enum tls_result tls_session_open(struct tls_session *t, const uint8_t *sealed, size_t n,
                                 uint8_t *to, size_t *ret_len);

/* Appends to out what must be written: first what the session itself has to say, then the data
 * sealed, then, where it is the last, goodbye. There is no data before the handshake is done. False
 * when the session has failed. */
bool tls_session_seal(struct tls_session *t, const uint8_t *data, size_t len, bool last,
                      struct buf *out);

/* Bytes the session itself has to say. */
size_t tls_session_unsent(const struct tls_session *t);

/* The handshake is done. */
bool tls_session_established(const struct tls_session *t);

/* After TLS_FAILED: a sentence for the log without a full stop. NULL before. */
const char *tls_session_why(const struct tls_session *t);
