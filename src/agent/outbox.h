/* The outbox: what the control plane has yet to be told, in order, each with a number that is never
 * used for two different events of a server. It is kept in the data folder too, one small file for
 * each server, so that an agent that is killed loses nothing. Owned by the agent.
 *
 * Order: the events of one server are sent in the order they came; while some are under way, others
 * of the same server may follow only when they are of another key, because what one player does
 * must not wait for another. The first (inited) and the last (failed, exited) wait for all.
 *
 * A file begins with the last number used, of a fixed width, followed by a line for each event and
 * each answer. It shrinks to its first line when nothing is left, so that the tokens in it do not
 * stay, and goes when its server is over. Nothing is synced: it must survive us, not the machine,
 * whose games are gone with it. */
#pragma once

#include "base/buf.h"
#include "base/list.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct outbox;

enum {
    OUTBOX_WHY_MAX = 256,
    OUTBOX_VERB_MAX = 24,
    OUTBOX_KEY_MAX = 256,
    OUTBOX_EVENTS_MAX = 1024,            /* of one server */
    OUTBOX_BYTES_MAX = 64 * 1024 * 1024, /* of all */
    OUTBOX_BATCH_EVENTS = 256,
    OUTBOX_BATCH_BYTES = 56 * 1024, /* of their text; the control plane takes 60 KiB in all */
};

struct outbox_event {
    struct link link; /* of its server's, in order */
    int64_t server;
    int64_t seq;
    uint64_t batch; /* with which it is under way; 0 = it is not */
    bool slow;      /* others are asked before it is answered: it is sent in a batch of its own */
    char verb[OUTBOX_VERB_MAX];
    char *key; /* "" = none */
    char *id;  /* JSON text of the call's id, whose caller waits for the answer; "" = nobody does */
    char *text; /* the event as JSON */
};

/* folder is made when it is absent; what an agent before us left in it is there. 0, or ERR_IO. */
int outbox_open(const char *folder, struct outbox **ret, char why[OUTBOX_WHY_MAX]);
void outbox_close(struct outbox *o); /* NULL is fine; the files stay */

/* Servers of which there is a file; start with *at = 0; 0 at the end. */
int64_t outbox_next(const struct outbox *o, size_t *at);

/* A server has been started and will have something to tell: its file is there when it does,
 * because to make one takes longer than to write into it. */
void outbox_expect(struct outbox *o, int64_t server);

/* Writes what could not be written when it came; for when there may be room again. */
void outbox_mend(struct outbox *o);

/* Makes a file for one of those that come next, unless there are enough. For when nobody waits. */
void outbox_lay_in(struct outbox *o);

/* Puts an event at the end. members is the JSON text of an object: what it says beside server, seq
 * and event. Returns NULL when too many wait, unless it is the last of its server. */
struct outbox_event *outbox_add(struct outbox *o, int64_t server, const char *verb, const char *key,
                                const char *id, struct str members);

/* One that waits and is the same call; NULL = none. */
struct outbox_event *outbox_find_call(const struct outbox *o, int64_t server, const char *verb,
                                      const char *key, const char *id);
struct outbox_event *outbox_find(const struct outbox *o, int64_t server, int64_t seq);

/* The first that waits of that kind; NULL = none. */
struct outbox_event *outbox_find_verb(const struct outbox *o, int64_t server, const char *verb);
size_t outbox_count(const struct outbox *o); /* of all servers */

/* Appends events that may be sent now, with commas between them, at most max of them; they are
 * under way with `batch` then. Returns how many. */
size_t outbox_take(struct outbox *o, uint64_t batch, size_t max, bool slow_too, struct buf *out);

/* The first that is under way with `batch`; NULL = none. */
struct outbox_event *outbox_of_batch(const struct outbox *o, uint64_t batch);

/* Whatever is still under way with `batch` waits again. */
void outbox_return(struct outbox *o, uint64_t batch);

/* It was answered: gone for good. */
void outbox_settle(struct outbox *o, struct outbox_event *e);

/* There will be no further event of this server: its file goes with its last event. */
void outbox_end(struct outbox *o, int64_t server);
