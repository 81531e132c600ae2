/* JSON-RPC: any bytes are some kind of message, and what is answered to it can be read. */
#include "fuzz/fuzz.h"
#include "wire/rpc.h"

#include <string.h>

static void answer_is_read(const struct rpc_message *m, enum rpc_kind expected)
{
    struct rpc_message again;
    struct buf out = {0};
    if (expected == RPC_ERROR)
        rpc_error(&out, m->id, m->error_code, m->why);
    else
        rpc_result(&out, m->id, STR("{}"));
    rpc_decode((struct str){(const char *)out.data, out.len}, &again);
    assert(again.kind == expected && strcmp(again.id, m->id) == 0);
    assert(expected != RPC_ERROR || strcmp(again.why, m->why) == 0);
    rpc_done(&again);
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rpc_message m;
    rpc_decode((struct str){(const char *)data, size}, &m);
    assert(str_is_utf8(str_of(m.why)) && str_is_utf8(str_of(m.method)));
    assert(!m.params || json_kind(m.params) == JSON_KIND_OBJECT);
    assert((m.kind == RPC_RESULT) == (m.result != NULL));
    if (m.kind == RPC_MALFORMED || m.kind == RPC_ERROR)
        answer_is_read(&m, RPC_ERROR);
    if (m.kind == RPC_CALL)
        answer_is_read(&m, RPC_RESULT);
    rpc_done(&m);
    return 0;
}
