/* A conversation with one of Muster's chat ports, for commands that have nothing else to do than
 * wait for the next message. Embedded in whoever talks; used from one thread. */
#pragma once

#include "base/buf.h"
#include "cli/chat_tls.h"
#include "wire/chat.h"

#include <stdbool.h>
#include <stdint.h>

struct chat_link {
    int fd;
    bool reached; /* there is somebody at that address */
    struct chat_tls tls;
    struct buf in;
    size_t used;       /* bytes of in that belong to the message handed out last */
    const char *error; /* after LINK_BROKEN: why; valid until the link is done */
    int64_t heard_ms;  /* clock_monotonic_ms, when something was */
    int silence_ms;    /* see chat_link_watch */
    bool pinged;       /* since something was heard */
};

enum chat_link_result {
    LINK_MESSAGE,
    LINK_TIMEOUT, /* the deadline passed */
    LINK_STOPPED, /* the stop descriptor became readable */
    LINK_BROKEN,  /* closed by Muster, or what it sent is no message */
};

/* address is "host:port" or "[v6]:port". NULL, or why it cannot be reached, in words that fit
 * behind "cannot reach X: "; or, when it was reached, why TLS failed, in words that fit behind "X:
 * ". The link is then empty and needs no chat_link_done. */
const char *chat_link_open(struct chat_link *link, const char *address,
                           const struct chat_tls_wish *tls, int timeout_ms);
void chat_link_done(struct chat_link *link);

/* From now on LINK_BROKEN is returned, too, when nothing was heard for so long, though we have
 * asked for a sign of life after half of it: for those who have somebody else to turn to. */
void chat_link_watch(struct chat_link *link, int silence_ms);

/* False when Muster does not take it; the next chat_link_next says why. */
bool chat_link_send(struct chat_link *link, const struct chat_message *m);

/* The next message to us, PINGs answered on the way. ret points into the link and is valid until
 * the next call. stop_fd may be -1; deadline_ms is of clock_monotonic_ms. */
enum chat_link_result chat_link_next(struct chat_link *link, int stop_fd, int64_t deadline_ms,
                                     struct chat_message *ret);
