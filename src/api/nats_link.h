/* A connection to NATS on the loop: libnats with its threads behind a queue in and a queue out, so
 * that the loop never waits for a broker. It connects for ever, with back-off, and again whenever
 * it is lost; what is sent meanwhile is lost, and whoever sends takes care of that.
 *
 *   loop ─ nats_link_send ─▶ queue ─▶ our thread ─▶ libnats ─▶ broker
 *   loop ◀─ heard ─ wake ◀─ queue ◀─ libnats' threads ◀────────┘
 *
 * libnats is loaded when the first link is made, not linked: see docs/decisions/0030.
 *
 * Owned by whoever called nats_link_new. On the loop's thread. */
#pragma once

#include "api/nats.h"
#include "base/str.h"
#include "net/loop.h"

#include <stdbool.h>

struct nats_link;

/* A message that came. Texts are valid during the call. */
struct nats_heard {
    struct str subject;
    struct str reply; /* may be empty */
    struct str body;
    int status;  /* 0: it is none of the broker's own; 408, 503 … */
    int missing; /* with a status: messages of the pull that will not come; -1 = it does not say */
};

struct nats_hooks {
    void (*heard)(void *user, const struct nats_heard *m);

    /* why: a clause when it is down; valid during the call. */
    void (*up)(void *user);
    void (*down)(void *user, const char *why);
    void *user;
};

struct nats_sent {
    const char *subject;
    struct str reply; /* empty = none */
    struct str body;
    struct str id;  /* Nats-Msg-Id; empty = none */
    struct str why; /* Muster-Error; empty = none */
};

/* libnats is loaded when it is first needed. NULL, or what is wrong as a clause. */
const char *nats_load(void);

/* Of the configuration only where to and as whom is read. NULL, with a sentence, when libnats
 * cannot be loaded or the configuration cannot be used. */
struct nats_link *nats_link_new(struct loop *loop, const struct nats_config *config,
                                const struct nats_hooks *hooks, char why[NATS_WHY_MAX]);

/* Begins to connect. Everything under "<inbox>." and what is sent there is heard from `up` on. */
void nats_link_start(struct nats_link *l);
const char *nats_link_inbox(const struct nats_link *l);

/* Copied, and sent soon. Control characters in id and why become blanks. */
void nats_link_send(struct nats_link *l, const struct nats_sent *m);

/* Times it was lost and came back. */
int64_t nats_link_reconnected(const struct nats_link *l);

/* Sends what is queued, within NATS_LINK_LAST_MS, and closes. No hook is called any more; memory
 * goes when the loop has turned. NULL is fine. */
enum { NATS_LINK_LAST_MS = 1000 };
void nats_link_free(struct nats_link *l);
