/* A listener: one address and port on which the loop accepts streams. Owned by whoever started it;
 * freed by the loop after listener_stop. */
#pragma once

#include "net/address.h"

#include <stdint.h>

struct listener;
struct loop;
struct loop_crowd;
struct stream;
struct tls;

/* Where to listen, and for what. */
struct listener_place {
    const char *ip;           /* never a name */
    uint16_t port;            /* 0 picks a free one */
    struct tls *tls;          /* borrowed; NULL = plain */
    struct loop_crowd *crowd; /* whose caps count; borrowed; NULL = the loop's */

    /* A socket that listens already (listening.h) and stays its holder's; 0 = there is none, and
     * one is opened. */
    int held_fd;
};

/* A peer has connected. The callee must call stream_start. */
typedef void listener_accepted(void *user, struct stream *stream);

/* Binds and listens. Returns 0, or ERR_IO with *ret_why saying (in words that need no freeing) what
 * the system answered; then nothing is left behind. */
int listener_start(struct loop *loop, const struct listener_place *place,
                   listener_accepted *accepted, void *user, struct listener **ret,
                   const char **ret_why);

/* No more connections; the ones accepted stay. NULL is fine. */
void listener_stop(struct listener *l);

/* Connections turned away: over a cap, or there was no descriptor. */
int64_t listener_refused(const struct listener *l);

/* "address:port" as bound. Returns dst. */
const char *listener_address(const struct listener *l, char dst[ADDRESS_MAX]);
