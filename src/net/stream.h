/* A stream: one accepted TCP connection, plain or TLS. It collects output and writes it once per
 * turn of the loop, keeps what is left of the input between reads, and closes in one of two ways.
 * It is owned by the loop; whoever accepted it uses it until `closed` has been called.
 *
 * With TLS the same holds for the plaintext: a turn's output is sealed in one go. A peer that fails
 * in the handshake is told so with an alert and closed like one that finishes. */
#pragma once

#include "base/list.h"
#include "net/address.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;
struct loop_crowd;
struct stream;
struct tls;
struct uv_stream_s;

enum { STREAM_FINISH_MS = 1000 }; /* a stream that is to close when flushed has this long */

/* What `closed` is told of a peer that was cut off because it does not read. */
extern const char stream_not_reading[];

struct stream_ops {
    /* Bytes have come; returns how many were used. The rest is kept and comes again with more
     * behind it. A stream that was not paused meanwhile may leave at most LOOP_KEEP_MAX. */
    size_t (*input)(void *user, const uint8_t *data, size_t len);

    /* The connection is closed, by whomever; why is static. Called once, never from within a
     * stream_* call of the user; the stream is freed afterwards. */
    void (*closed)(void *user, const char *why);
};

/* Takes the connection waiting on a listening handle. NULL when it cannot be had or is over a cap;
 * then it has been dealt with and logged. stream_start must follow. tls NULL = plain. */
struct stream *stream_accept(struct loop *loop, struct uv_stream_s *listening, struct tls *tls,
                             struct loop_crowd *crowd);

/* What a peer can make us hold. A peer that leaves more than output_cap bytes to us that the kernel
 * will not take does not read: it is cut off, with one line in the log. */
struct stream_limits {
    size_t input_max; /* of one read; up to LOOP_READ_SIZE; TLS may hold one record more */
    size_t output_cap;
};

/* Begins reading. */
void stream_start(struct stream *s, const struct stream_ops *ops, void *user,
                  const struct stream_limits *limits);

void stream_set_limits(struct stream *s, const struct stream_limits *limits);

/* Queues output; it leaves at the end of the loop's turn. Ignored once the stream is closing, and
 * before it can be spoken on. */
void stream_send(struct stream *s, const void *data, size_t len);

/* The same for what can wait for company: it leaves with whatever is sent next, at the latest with
 * the loop's tick. To the kernel a few bytes cost as much as a few hundred. */
void stream_send_along(struct stream *s, const void *data, size_t len);

/* The peer can be spoken to: at once when plain, after the handshake with TLS. */
bool stream_established(const struct stream *s);

/* Why TLS with this peer failed, a sentence without a full stop; NULL when it did not. */
const char *stream_tls_error(const struct stream *s);

/* Bytes queued that the kernel has not taken. */
size_t stream_unsent(const struct stream *s);

/* No input is handed on until resumed. Input that came with the last read is kept; it is handed on
 * at the end of the turn in which the stream is resumed. Both may be called twice. */
void stream_pause(struct stream *s);
void stream_resume(struct stream *s);

/* Closes once everything queued has been taken by the kernel and the peer has had a chance to read
 * it, at the latest after STREAM_FINISH_MS. Input is thrown away from now on. */
void stream_finish(struct stream *s);

/* Closes now. why must be static. */
void stream_close(struct stream *s, const char *why);

/* "address:port" of the other side. Returns dst. */
const char *stream_peer(const struct stream *s, char dst[ADDRESS_MAX]);

/* For loop.c only: what its lists hold are links of streams. Each takes its stream out of that
 * list; stream_cut_if_late returns false and leaves it when its time has not come. */
void stream_write_now(struct link *in_dirty);
void stream_wait_no_more(struct link *in_waiting);
void stream_hand_on(struct link *in_resumed);
bool stream_cut_if_late(struct link *in_finishing);
void stream_shake_hands(struct link *in_shaking);
