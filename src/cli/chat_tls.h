/* TLS towards one of Muster's chat ports, for commands: whom to believe, and the conversation with
 * him. Embedded in whoever talks; used from one thread. */
#pragma once

#include "cli/args.h"

#include <gnutls/gnutls.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What the command line says. Files are PEM. */
struct chat_tls_wish {
    const char *ca;          /* NULL = plain */
    const char *certificate; /* NULL = none is shown */
    const char *key;
    const char *server_name; /* NULL = the host that is dialled */
};

/* Rows of a verb's table. */
#define CHAT_TLS_ARGS(wish_)                                                                       \
    {.name = "TLS, where that port speaks it", .kind = ARG_TITLE},                                 \
        {.name = "--tls-ca",                                                                       \
         .kind = ARG_TEXT,                                                                         \
         .into = &(wish_)->ca,                                                                     \
         .value = "FILE",                                                                          \
         .help = "the authority (PEM) that Muster's certificate must be signed by"},               \
        {.name = "--tls-cert",                                                                     \
         .kind = ARG_TEXT,                                                                         \
         .into = &(wish_)->certificate,                                                            \
         .value = "FILE",                                                                          \
         .help = "our own certificate, where Muster wants one ..."},                               \
        {.name = "--tls-key",                                                                      \
         .kind = ARG_TEXT,                                                                         \
         .into = &(wish_)->key,                                                                    \
         .value = "FILE",                                                                          \
         .help = "... and its key"},                                                               \
    {                                                                                              \
        .name = "--tls-name", .kind = ARG_TEXT, .into = &(wish_)->server_name, .value = "NAME",    \
        .help = "whom the certificate must be for (the host that is dialled)"                      \
    }

/* False, with a sentence printed, when the options do not go together or a file will not do. */
bool chat_tls_check(const char *verb, const struct chat_tls_wish *wish);

enum { CHAT_TLS_WHY_MAX = 256 };

struct chat_tls {
    gnutls_session_t session; /* NULL = plain */
    gnutls_certificate_credentials_t credentials;
    const char *ca;
    char server_name[256];
    gnutls_typed_vdata_st expected[2]; /* of Muster's certificate; GnuTLS keeps the pointer */
    char why[CHAT_TLS_WHY_MAX];
};

/* Shakes hands on a connected blocking socket. NULL, or a sentence without a full stop, valid as
 * long as t; then t is plain again. */
const char *chat_tls_open(struct chat_tls *t, int fd, const struct chat_tls_wish *wish,
                          const char *host, int timeout_ms);

/* Says goodbye. */
void chat_tls_done(struct chat_tls *t);

/* False when Muster does not take it. */
bool chat_tls_send(struct chat_tls *t, const uint8_t *data, size_t len);

/* Bytes read without waiting, 0 when there are none whole; negative when the conversation is over,
 * then t->why says why. room is at least a record, 16 KiB, so that nothing is left inside. */
ssize_t chat_tls_receive(struct chat_tls *t, uint8_t *to, size_t room);
