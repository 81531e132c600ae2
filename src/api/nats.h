/* NATS JetStream as a bus (bus.h): requests are pulled by a durable consumer, results are published
 * with an id that lets the broker drop repeats, and a message is acknowledged when its result is in
 * the stream. Stream and consumer are made when they are missing, and used as they are when not.
 *
 * Owned by the buses it is added to. On the loop's thread; the connection's own threads end in
 * nats_link.c. */
#pragma once

#include "api/bus.h"

struct doors;

enum {
    NATS_WHY_MAX = 256,
    NATS_URLS_MAX = 8,
    NATS_SUBJECT_MAX = 128, /* bytes of a subject, a stream's or a consumer's name */
};

/* Texts are copied; "" or NULL is nothing, or what is said beside it. */
struct nats_config {
    const char *urls[NATS_URLS_MAX]; /* of one cluster: "nats://host:4222", "tls://…" */
    size_t n_urls;
    const char *credentials_file; /* of a user with a JWT (".creds") */
    const char *user;             /* … or name and password */
    const char *password;
    const char *token; /* … or a token */
    const char
        *ca_file; /* whose certificates are trusted; "" = the system's, when the URL says tls */
    const char *request_subject; /* "muster.allocation.request" */
    const char *result_subject;  /* "muster.allocation.result" */
    const char *dead_subject;    /* "muster.allocation.dead" */
    const char *stream;          /* "MUSTER": over the three subjects when it is made */
    const char *durable;         /* "muster" */
    int max_deliver;     /* a message that came more often goes to the dead letters; 0 = 10 */
    int64_t ack_wait_ms; /* the consumer's, when it is made; 0 = 30 s */
};

/* A bus, to be handed to buses_add. NULL with a sentence when the configuration cannot be used.
 * What it works with must outlive it. */
struct bus *nats_new(struct doors *doors, const struct nats_config *config, char why[NATS_WHY_MAX]);
