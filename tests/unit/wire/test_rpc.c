#include "wire/rpc.h"

#include "lib/unit.h"

#include <string.h>

static void add(struct buf *b, const char *text)
{
    buf_append(b, text, strlen(text));
}

static void refuses(struct str bytes, int code, const char *id, const char *part)
{
    struct rpc_message m;
    rpc_decode(bytes, &m);
    if (m.kind != RPC_MALFORMED)
        fail_msg("%.*s was taken", (int)bytes.len, bytes.at);
    assert_int_equal(m.error_code, code);
    assert_string_equal(m.id, id);
    if (!strstr(m.why, part))
        fail_msg("\"%s\" does not say \"%s\"", m.why, part);
    rpc_done(&m);
}

#define REFUSES(text, code, id, part) refuses(STR(text), code, id, part)

static void what_is_no_json_is_a_parse_error(void **state)
{
    (void)state;
    REFUSES("", RPC_PARSE_ERROR, "null", "");
    REFUSES("{", RPC_PARSE_ERROR, "null", "");
    REFUSES("hello", RPC_PARSE_ERROR, "null", "");
    REFUSES("{\"jsonrpc\":\"2.0\",\"method\":\"inited\",\"id\":1", RPC_PARSE_ERROR, "null", "");
    REFUSES("{\"jsonrpc\":\"2.0\",\"method\":\"inited\",\"id\":1}x", RPC_PARSE_ERROR, "null", "");
    REFUSES("{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"id\":1,\"id\":2}", RPC_PARSE_ERROR, "null",
            "");
    REFUSES("{\"jsonrpc\":\"2.0\",\"method\":\"\xFF\",\"id\":1}", RPC_PARSE_ERROR, "null", "");
    REFUSES("{\"jsonrpc\":\"2.0\",\"method\":\"a\\u0000\",\"id\":1}", RPC_PARSE_ERROR, "null", "");
    REFUSES("{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"id\":1}\0", RPC_PARSE_ERROR, "null", "NUL");
    REFUSES("\0", RPC_PARSE_ERROR, "null", "NUL");
    struct buf deep = {0};
    for (int i = 0; i < 1000; i++)
        add(&deep, "[");
    refuses((struct str){(const char *)deep.data, deep.len}, RPC_PARSE_ERROR, "null", "deeper");
    buf_done(&deep);
}

static void what_is_no_message_is_an_invalid_request(void **state)
{
    (void)state;
    static const char *const ones[] = {"1", "\"a\"", "null", "true"};
    for (int i = 0; i < 4; i++)
        refuses(str_of(ones[i]), RPC_INVALID_REQUEST, "null", "an object");
    REFUSES("{}", RPC_INVALID_REQUEST, "null", "2.0");
    REFUSES("{\"method\":\"inited\",\"id\":7}", RPC_INVALID_REQUEST, "7", "2.0");
    REFUSES("{\"jsonrpc\":2.0,\"method\":\"a\",\"id\":7}", RPC_INVALID_REQUEST, "7", "2.0");
    REFUSES("{\"jsonrpc\":\"1.0\",\"method\":\"a\",\"id\":7}", RPC_INVALID_REQUEST, "7", "2.0");
    REFUSES("{\"jsonrpc\":\"2.0\",\"id\":7}", RPC_INVALID_REQUEST, "7", "neither");
    REFUSES("{\"jsonrpc\":\"2.0\",\"method\":5,\"id\":7}", RPC_INVALID_REQUEST, "7", "a text");
    REFUSES("{\"jsonrpc\":\"2.0\",\"method\":null,\"id\":7}", RPC_INVALID_REQUEST, "7", "a text");
    REFUSES("{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"result\":1,\"id\":7}", RPC_INVALID_REQUEST,
            "7", "no result");
    REFUSES("{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"error\":{},\"id\":7}", RPC_INVALID_REQUEST,
            "7", "no error");
    struct buf big = {0};
    add(&big, "{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"id\":1");
    while (big.len < RPC_MESSAGE_MAX)
        add(&big, " ");
    add(&big, "}");
    refuses((struct str){(const char *)big.data, big.len}, RPC_INVALID_REQUEST, "null", "too long");
    buf_done(&big);
}

static void a_batch_is_refused_whole(void **state)
{
    (void)state;
    REFUSES("[]", RPC_INVALID_REQUEST, "null", "batch");
    REFUSES("[{\"jsonrpc\":\"2.0\",\"method\":\"inited\",\"id\":1}]", RPC_INVALID_REQUEST, "null",
            "batch");
}

static void ids_of_every_kind(void **state)
{
    (void)state;
    static const struct {
        const char *given;
        const char *kept; /* NULL: refused */
    } rows[] = {
        {"0", "0"},
        {"-1", "-1"},
        {"9223372036854775807", "9223372036854775807"},
        {"1.5", "1.5"},
        {"\"a\"", "\"a\""},
        {"\"\"", "\"\""},
        {"\"a\\\"\\u000a\"", "\"a\\\"\\n\""},
        {"null", "null"},
        {"\"01234567890123456789012345678901234567890123456789012345678901\"",
         "\"01234567890123456789012345678901234567890123456789012345678901\""},
        {"\"012345678901234567890123456789012345678901234567890123456789012\"", NULL},
        {"true", NULL},
        {"{}", NULL},
        {"[1]", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct rpc_message m;
        struct buf text = {0};
        add(&text, "{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"id\":");
        add(&text, rows[i].given);
        add(&text, "}");
        rpc_decode((struct str){(const char *)text.data, text.len}, &m);
        assert_int_equal(m.kind, rows[i].kept ? RPC_CALL : RPC_MALFORMED);
        assert_string_equal(m.id, rows[i].kept ? rows[i].kept : "null");
        if (!rows[i].kept)
            assert_int_equal(m.error_code, RPC_INVALID_REQUEST);
        rpc_done(&m);
        buf_done(&text);
    }
}

static void params_are_by_name(void **state)
{
    (void)state;
    struct rpc_message m;
    rpc_decode(
        STR("{\"jsonrpc\":\"2.0\",\"method\":\"joined\",\"params\":{\"key\":\"k\"},\"id\":2}"), &m);
    assert_int_equal(m.kind, RPC_CALL);
    assert_string_equal(m.method, "joined");
    assert_true(str_eq(json_get_text(json_member(m.params, "key")), STR("k")));
    rpc_done(&m);
    rpc_decode(STR("{\"jsonrpc\":\"2.0\",\"method\":\"inited\",\"id\":2}"), &m);
    assert_int_equal(m.kind, RPC_CALL);
    assert_null(m.params);
    rpc_done(&m);
    rpc_decode(STR("{\"jsonrpc\":\"2.0\",\"method\":\"inited\",\"params\":null,\"id\":2}"), &m);
    assert_int_equal(m.kind, RPC_CALL);
    assert_null(m.params);
    rpc_done(&m);
    REFUSES("{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":[],\"id\":2}", RPC_INVALID_PARAMS,
            "2", "object");
    REFUSES("{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":[\"k\"],\"id\":2}",
            RPC_INVALID_PARAMS, "2", "object");
    REFUSES("{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":\"k\",\"id\":\"x\"}",
            RPC_INVALID_PARAMS, "\"x\"", "object");
    REFUSES("{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":[]}", RPC_INVALID_PARAMS, "null",
            "object");
}

static void methods_have_a_length(void **state)
{
    (void)state;
    struct rpc_message m;
    char text[200] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"";
    size_t at = strlen(text);
    memset(text + at, 'm', RPC_METHOD_MAX);
    strcpy(text + at + RPC_METHOD_MAX, "\"}");
    rpc_decode(str_of(text), &m);
    assert_int_equal(m.kind, RPC_CALL);
    assert_int_equal(strlen(m.method), RPC_METHOD_MAX);
    rpc_done(&m);
    strcpy(text + at + RPC_METHOD_MAX, "m\"}");
    refuses(str_of(text), RPC_NO_SUCH_METHOD, "1", "long");
}

static void a_call_without_id_is_a_notification(void **state)
{
    (void)state;
    struct rpc_message m;
    rpc_decode(STR("{\"jsonrpc\":\"2.0\",\"method\":\"kick\",\"params\":{\"key\":\"k\"}}"), &m);
    assert_int_equal(m.kind, RPC_NOTIFICATION);
    assert_string_equal(m.method, "kick");
    assert_non_null(m.params);
    rpc_done(&m);
    assert_null(m.root);
}

static void answers_are_results_or_errors(void **state)
{
    (void)state;
    struct rpc_message m;
    rpc_decode(STR("{\"jsonrpc\":\"2.0\",\"result\":{\"status\":\"OK\"},\"id\":3}"), &m);
    assert_int_equal(m.kind, RPC_RESULT);
    assert_string_equal(m.id, "3");
    assert_true(str_eq(json_get_text(json_member(m.result, "status")), STR("OK")));
    rpc_done(&m);
    rpc_decode(STR("{\"jsonrpc\":\"2.0\",\"result\":null,\"id\":3}"), &m);
    assert_int_equal(m.kind, RPC_RESULT);
    assert_int_equal(json_kind(m.result), JSON_KIND_NULL);
    rpc_done(&m);
    rpc_decode(STR("{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-5,\"message\":\"no\"},\"id\":null}"),
               &m);
    assert_int_equal(m.kind, RPC_ERROR);
    assert_int_equal(m.error_code, -5);
    assert_string_equal(m.why, "no");
    assert_string_equal(m.id, "null");
    rpc_done(&m);
    /* As some write it. */
    rpc_decode(STR("{\"jsonrpc\":\"2.0\",\"result\":1,\"error\":null,\"id\":3}"), &m);
    assert_int_equal(m.kind, RPC_RESULT);
    rpc_done(&m);
    rpc_decode(STR("{\"jsonrpc\":\"2.0\",\"result\":null,\"error\":{\"code\":1,\"message\":\"\"},"
                   "\"id\":3}"),
               &m);
    assert_int_equal(m.kind, RPC_ERROR);
    assert_null(m.result);
    rpc_done(&m);
}

static void malformed_answers(void **state)
{
    (void)state;
    REFUSES("{\"jsonrpc\":\"2.0\",\"result\":1}", RPC_INVALID_REQUEST, "null", "an id");
    REFUSES("{\"jsonrpc\":\"2.0\",\"result\":1,\"error\":{\"code\":1,\"message\":\"m\"},\"id\":3}",
            RPC_INVALID_REQUEST, "3", "not both");
    REFUSES("{\"jsonrpc\":\"2.0\",\"error\":null,\"id\":3}", RPC_INVALID_REQUEST, "3", "a code");
    REFUSES("{\"jsonrpc\":\"2.0\",\"error\":\"no\",\"id\":3}", RPC_INVALID_REQUEST, "3", "a code");
    REFUSES("{\"jsonrpc\":\"2.0\",\"error\":{\"code\":1},\"id\":3}", RPC_INVALID_REQUEST, "3",
            "a message");
    REFUSES("{\"jsonrpc\":\"2.0\",\"error\":{\"code\":\"1\",\"message\":\"m\"},\"id\":3}",
            RPC_INVALID_REQUEST, "3", "a code");
    REFUSES("{\"jsonrpc\":\"2.0\",\"error\":{\"code\":1,\"message\":2},\"id\":3}",
            RPC_INVALID_REQUEST, "3", "a message");
    REFUSES("{\"jsonrpc\":\"2.0\",\"error\":{\"code\":5000000000,\"message\":\"m\"},\"id\":3}",
            RPC_INVALID_REQUEST, "3", "a code");
}

static void long_messages_are_cut_between_characters(void **state)
{
    (void)state;
    struct rpc_message m;
    struct buf text = {0};
    add(&text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1,\"message\":\"");
    for (int i = 0; i < 500; i++)
        add(&text, "\xE2\x82\xAC");
    add(&text, "\"}}");
    rpc_decode((struct str){(const char *)text.data, text.len}, &m);
    assert_int_equal(m.kind, RPC_ERROR);
    assert_int_equal(strlen(m.why), (RPC_WHY_MAX - 1) / 3 * 3);
    assert_true(str_is_utf8(str_of(m.why)));
    rpc_done(&m);
    buf_done(&text);
}

#define WRITES(expected_, call_)                                                                   \
    do {                                                                                           \
        struct buf b = {0};                                                                        \
        call_;                                                                                     \
        buf_append(&b, "", 1);                                                                     \
        assert_string_equal((const char *)b.data, expected_);                                      \
        buf_done(&b);                                                                              \
    } while (0)

static void what_is_written(void **state)
{
    (void)state;
    WRITES("{\"jsonrpc\":\"2.0\",\"method\":\"status\",\"id\":5}",
           rpc_call(&b, "status", STR(""), 5));
    WRITES("{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":{\"x\":1},\"id\":-1}",
           rpc_call(&b, "a", STR("{\"x\":1}"), -1));
    WRITES("{\"jsonrpc\":\"2.0\",\"method\":\"kick\",\"params\":{}}",
           rpc_notify(&b, "kick", STR("{}")));
    WRITES("{\"jsonrpc\":\"2.0\",\"result\":{},\"id\":\"q\"}", rpc_result(&b, "\"q\"", STR("{}")));
    WRITES("{\"jsonrpc\":\"2.0\",\"result\":null,\"id\":1}", rpc_result(&b, "1", STR("")));
    WRITES("{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32601,\"message\":\"no "
           "\\\"x\\\"\"},\"id\":null}",
           rpc_error(&b, "null", RPC_NO_SUCH_METHOD, "no \"x\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_json_is_a_parse_error),
        cmocka_unit_test(what_is_no_message_is_an_invalid_request),
        cmocka_unit_test(a_batch_is_refused_whole),
        cmocka_unit_test(ids_of_every_kind),
        cmocka_unit_test(params_are_by_name),
        cmocka_unit_test(methods_have_a_length),
        cmocka_unit_test(a_call_without_id_is_a_notification),
        cmocka_unit_test(answers_are_results_or_errors),
        cmocka_unit_test(malformed_answers),
        cmocka_unit_test(long_messages_are_cut_between_characters),
        cmocka_unit_test(what_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
