/* Pub/Sub's parts, visible to its files only: pubsub.c (life, pulling, what the bus asks for),
 * pubsub_send.c (publishing, acknowledging), pubsub_push.c (what Google pushes). */
#pragma once

#include "api/backoff.h"
#include "api/google_keys.h"
#include "api/google_token.h"
#include "api/pubsub.h"
#include "base/list.h"
#include "base/map.h"
#include "net/http_client.h"

#include <uv.h>

enum {
    PUBSUB_OUTSTANDING_MAX = 10 * 1000, /* messages that are not acknowledged; then no pull */
    PUBSUB_DEAD_MAX = 1000,             /* dead letters that wait; one more is forgotten */
    PUBSUB_BATCH_MAX = 1000,            /* messages of a publish, ids of an acknowledge */
    PUBSUB_BATCH_BYTES = 4 * 1024 * 1024,
    PUBSUB_ACK_BYTES = 256 * 1024,     /* Google takes 512 KiB */
    PUBSUB_EXTEND_AFTER_MS = 5 * 1000, /* the shortest deadline of a subscription is 10 s */
    PUBSUB_URL_MAX = 1024,
    PUBSUB_SAID_MAX = 300,
};

/* One kind of request. What fails is tried again, later each time. */
struct pubsub_stream {
    const char *what; /* "pull", for the log */
    const char *name; /* of the subscription or topic */
    char url[PUBSUB_URL_MAX];
    struct backoff backoff;
    int64_t not_before_ms; /* monotonic */
    int under_way;
};

enum pubsub_kind { STREAM_PULL, STREAM_ACK, STREAM_EXTEND, STREAM_PUBLISH, STREAM_BURY, STREAMS };

/* One that came and is not acknowledged. */
struct pubsub_message {
    bus_message id;
    struct link in_age; /* of fresh or extended */
    int64_t came_ms;    /* monotonic */
    int64_t due_ms;     /* … when its deadline is to be moved */
    char *ack_id;       /* NULL: it was pushed */
    conn_id call;       /* … by this one */
    struct buf parked;  /* what it says, while the bus is held */
    bool again;
    struct link in_parked;
};

/* One that goes out, or an id that is to be acknowledged. */
struct pubsub_item {
    struct link in_list;
    int64_t allocation; /* of a result that the bus is told of */
    int8_t state;
    bool news;
    bus_message message; /* of a dead letter: acknowledged when it is out */
    struct buf json;
};

/* What waits for one stream, and what is under way there, in order. */
struct pubsub_queue {
    struct list waiting;
    struct list sent;
    size_t n; /* of both */
};

/* A pull that may be under way. */
struct pubsub_pull {
    struct pubsub *pubsub;
    bool under_way;
    int64_t began_ms; /* monotonic */
};

struct pubsub {
    struct bus bus;
    struct doors *doors;
    struct http_client *client;
    struct google_token *token; /* NULL: an emulator, which wants none */
    struct google_keys *keys;   /* NULL: nobody may push */
    struct rest *rest;          /* of those who push; NULL until one did */
    uv_timer_t timer;           /* when there is something to do */
    bool ended;

    char *project;
    char *subscription;
    char *topic;
    char *dead_topic;
    char *audience;
    char *account;
    int pull_messages; /* at most, of one pull */
    int pulls;
    struct pubsub_pull pulling[PUBSUB_PULLS_MAX];

    struct pubsub_stream streams[STREAMS];
    struct pubsub_queue results;
    struct pubsub_queue dead;
    struct pubsub_queue acks; /* items whose json is an id, quoted */
    size_t dead_batch;        /* one at a time after a refusal, to find out which it was */
    int pull_now;             /* messages of the next pull: fewer when an answer was too long */

    struct map messages; /* id -> struct pubsub_message */
    bus_message last_id;
    struct list fresh;    /* deadlines as the subscription has them, the oldest first */
    struct list extended; /* … as we have set them */
    struct list parked;   /* those that were not handed in, because the bus is held */
    bool held;
    bool connected;
    bool was_connected; /* once */
    struct bus_figures figures;
};

/* Something changed: look at all streams at the end of this turn. */
void pubsub_wake(struct pubsub *p);

/* Sends a request of that stream; false when it cannot be begun now. */
bool pubsub_ask(struct pubsub *p, enum pubsub_kind kind, const struct buf *body, http_done *done,
                void *user);

/* A request of that stream has ended; true when it went well. Otherwise it is said in the log and
 * tried later. */
bool pubsub_ended(struct pubsub *p, enum pubsub_kind kind, const struct http_reply *reply);

/* True when the stream may begin a request now. */
bool pubsub_may(const struct pubsub *p, enum pubsub_kind kind);

/* A message that came; ack_id NULL = it was pushed, by that call. */
struct pubsub_message *pubsub_message_new(struct pubsub *p, const char *ack_id, conn_id call);
void pubsub_message_free(struct pubsub *p, struct pubsub_message *m);

/* Data of a message as it stands in JSON, decoded. False when it is no base64. */
bool pubsub_decode(struct str text, struct buf *out);

/* pubsub_send.c: the bus's publish, acknowledge and bury; and what waits is sent. */
void pubsub_publish(struct bus *b, const struct bus_result *r);
void pubsub_acknowledge(struct bus *b, bus_message id);
void pubsub_bury(struct bus *b, bus_message id, struct str body, const char *why);
void pubsub_send(struct pubsub *p);
void pubsub_extend(struct pubsub *p);
void pubsub_queue_init(struct pubsub_queue *q);
void pubsub_queue_done(struct pubsub_queue *q);

/* pubsub_push.c: the message of that call is done with. */
void pubsub_push_done(struct pubsub *p, conn_id call);
