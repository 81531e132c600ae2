/* JSON-RPC 2.0 as agent and game server speak it: one message is one object. Decoding is of
 * untrusted bytes. Pure functions. */
#pragma once

#include "base/buf.h"
#include "base/json.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    RPC_MESSAGE_MAX = 64 * 1024,
    RPC_METHOD_MAX = 64,
    RPC_ID_MAX = 64, /* of its JSON text */
    RPC_WHY_MAX = 200,
};

enum rpc_error {
    RPC_PARSE_ERROR = -32700,
    RPC_INVALID_REQUEST = -32600,
    RPC_NO_SUCH_METHOD = -32601,
    RPC_INVALID_PARAMS = -32602,
    RPC_INTERNAL = -32603,
};

enum rpc_kind {
    RPC_MALFORMED, /* answer with error_code, why, and id (null when unknown) */
    RPC_CALL,
    RPC_NOTIFICATION, /* a call without an id: never answered */
    RPC_RESULT,
    RPC_ERROR,
};

struct rpc_message {
    enum rpc_kind kind;
    struct json *root; /* owned: rpc_done */
    char method[RPC_METHOD_MAX + 1];
    char id[RPC_ID_MAX + 1];   /* JSON text: 1, "a", null */
    const struct json *params; /* an object, or NULL when there are none */
    const struct json *result; /* RPC_RESULT */
    int error_code;            /* RPC_ERROR, RPC_MALFORMED */
    char why[RPC_WHY_MAX];     /* … its message */
};

/* Never fails: what cannot be understood is RPC_MALFORMED. Params given as an array are invalid
 * params, null are none; a batch (an array of calls) is an invalid request. An answer may have both
 * a result and an error when one of them is null, as some write it. */
void rpc_decode(struct str bytes, struct rpc_message *ret);
void rpc_done(struct rpc_message *m);

/* Each appends one whole message. params and result are JSON text; empty params are left out, an
 * empty result is null. */
void rpc_call(struct buf *out, const char *method, struct str params, int64_t id);
void rpc_notify(struct buf *out, const char *method, struct str params);
void rpc_result(struct buf *out, const char *id, struct str result);
void rpc_error(struct buf *out, const char *id, int code, const char *why);
