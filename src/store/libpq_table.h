/* The functions of libpq that are called, found when it is first needed; and what a connection is.
 * For libpq.c and libpq_connect.c alone. */
#pragma once

#include "store/libpq.h"

#include <libpq-fe.h>

#define LIBPQ_FUNCTIONS(X)                                                                         \
    X(PQclear)                                                                                     \
    X(PQcmdTuples)                                                                                 \
    X(PQconninfoFree)                                                                              \
    X(PQconninfoParse)                                                                             \
    X(PQconnectPoll)                                                                               \
    X(PQconnectStartParams)                                                                        \
    X(PQconsumeInput)                                                                              \
    X(PQenterPipelineMode)                                                                         \
    X(PQerrorMessage)                                                                              \
    X(PQfinish)                                                                                    \
    X(PQflush)                                                                                     \
    X(PQfreemem)                                                                                   \
    X(PQgetResult)                                                                                 \
    X(PQgetisnull)                                                                                 \
    X(PQgetlength)                                                                                 \
    X(PQgetvalue)                                                                                  \
    X(PQisBusy)                                                                                    \
    X(PQnotifies)                                                                                  \
    X(PQntuples)                                                                                   \
    X(PQpipelineSync)                                                                              \
    X(PQresultErrorField)                                                                          \
    X(PQresultErrorMessage)                                                                        \
    X(PQresultStatus)                                                                              \
    X(PQsendPrepare)                                                                               \
    X(PQsendQuery)                                                                                 \
    X(PQsendQueryParams)                                                                           \
    X(PQsendQueryPrepared)                                                                         \
    X(PQsetNoticeReceiver)                                                                         \
    X(PQsetnonblocking)                                                                            \
    X(PQsocket)                                                                                    \
    X(PQstatus)

struct libpq {
#define X(name) __typeof__(name) *name;
    LIBPQ_FUNCTIONS(X)
#undef X
};

extern struct libpq libpq;

/* From any thread. NULL, or the sentence that says what to install. */
const char *libpq_load(void);

struct pg {
    PGconn *conn;
    int64_t answer_ms;
    const _Atomic bool *stop; /* may be NULL */
    bool pipeline;
    bool lost;
    bool warned;
    bool warning;    /* … and of what is received next, so far */
    char where[288]; /* host and port, for people */
    char state[6];
};

/* Waits until the socket is ready for `events` of poll(2), at most until then (monotonic), and not
 * when nobody waits for it any more. */
bool libpq_ready(const struct pg *pg, short events, int64_t until_ms);

/* The first line of what libpq says, without what it says before the reason, and without a full
 * stop. */
void libpq_reason(const char *message, char *dst, size_t cap);
