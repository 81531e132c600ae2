#include "wire/chat.h"

#include "lib/unit.h"
#include "unit/wire/chat_vectors.h"
#include "wire/put.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static unsigned digit(char c)
{
    assert_true(isxdigit((unsigned char)c));
    return (unsigned)(isdigit((unsigned char)c) ? c - '0' : toupper((unsigned char)c) - 'A' + 10);
}

/* Reads the notation of chat_vectors.h. */
static struct buf bytes_of(const char *notation)
{
    struct buf b = {0};
    for (const char *p = notation; *p;) {
        if (*p == ' ') {
            p++;
        } else if (*p == '\'') {
            const char *end = strchr(p + 1, '\'');
            assert_non_null(end);
            buf_append(&b, p + 1, (size_t)(end - p - 1));
            p = end + 1;
        } else {
            put_u8(&b, (uint8_t)(digit(p[0]) << 4 | digit(p[1])));
            p += 2;
        }
    }
    return b;
}

/* Decodes a copy of exactly that size, so that a sanitizer sees a read past the end. The message
 * points into the copy, which the caller frees. */
static struct cursor decode(const void *payload, size_t len, enum chat_kind kind,
                            struct chat_message *ret, uint8_t **ret_copy)
{
    *ret_copy = malloc(len ? len : 1);
    assert_non_null(*ret_copy);
    if (len > 0)
        memcpy(*ret_copy, payload, len);
    struct cursor c = cursor_of(*ret_copy, len);
    chat_decode(&c, kind, ret);
    return c;
}

/* True when it decodes; otherwise *why and *offset say why not. */
static bool decodes(const void *payload, size_t len, enum chat_kind kind, const char **why,
                    size_t *offset)
{
    struct chat_message m;
    uint8_t *copy = NULL;
    struct cursor c = decode(payload, len, kind, &m, &copy);
    free(copy);
    *why = c.error;
    *offset = c.error_offset;
    return !cursor_failed(&c);
}

/* Fields compared one by one, each type in its own way. */
#define SAME_NUMBER(type)                                                                          \
    static void same_##type(chat_c_##type want, chat_c_##type got)                                 \
    {                                                                                              \
        assert_true(want == got);                                                                  \
    }
SAME_NUMBER(i8)
SAME_NUMBER(i32)
SAME_NUMBER(i64)
SAME_NUMBER(flag)
SAME_NUMBER(ok)
SAME_NUMBER(percent)
SAME_NUMBER(count)

static void same_str(struct str want, struct str got)
{
    assert_true(str_eq(want, got));
}

static void same_list(struct chat_list want, struct chat_list got)
{
    assert_int_equal(want.n, got.n);
    assert_int_equal(want.len, got.len);
    if (want.len > 0)
        assert_memory_equal(want.data, got.data, want.len);
}
#define same_list_i8 same_list
#define same_list_i32 same_list
#define same_list_player same_list
#define same_list_server same_list

#define SAME_FIELD(type, name, when) same_##type(want->name, got->name);
#define SAME_MESSAGE(NAME, name_, code, direction, fields)                                         \
    static void same_##name_(const struct chat_##name_ *want, const struct chat_##name_ *got)      \
    {                                                                                              \
        (void)want;                                                                                \
        (void)got;                                                                                 \
        fields(SAME_FIELD)                                                                         \
    }
CHAT_MESSAGES(SAME_MESSAGE)

static void same_fields(const struct chat_message *want, const struct chat_message *got)
{
    assert_int_equal(want->kind, got->kind);
    switch (want->kind) {
#define SAME_CASE(NAME, name_, code, direction, fields)                                            \
    case CHAT_##NAME:                                                                              \
        same_##name_(&want->name_, &got->name_);                                                   \
        break;
        CHAT_MESSAGES(SAME_CASE)
    case CHAT_KINDS:
        fail();
    }
}

static struct frame frame_of(const struct buf *b)
{
    struct frame f;
    assert_int_equal(frame_next(b->data, b->len, FRAME_MAX, &f), FRAME_OK);
    assert_int_equal(f.total, b->len);
    return f;
}

static void every_kind_has_a_vector(void **state)
{
    (void)state;
    int seen[CHAT_KINDS] = {0};
    for (int i = 0; i < VECTORS; i++)
        seen[vectors[i].message.kind]++;
    for (int k = 0; k < CHAT_KINDS; k++) {
        if (seen[k] == 0)
            fail_msg("no vector for %s", chat_name((enum chat_kind)k));
    }
}

/* A refusal and a success share a command, so a kind with an answer needs both. */
static void every_answer_has_both_variants(void **state)
{
    (void)state;
    int seen[CHAT_KINDS][2] = {0};
    for (int i = 0; i < VECTORS; i++) {
        enum chat_kind k = vectors[i].message.kind;
        if (strstr(vectors[i].text, " ok=0"))
            seen[k][0]++;
        if (strstr(vectors[i].text, " ok=1"))
            seen[k][1]++;
    }
    int answers = 0;
    for (int k = 0; k < CHAT_KINDS; k++) {
        assert_int_equal(seen[k][0] > 0, seen[k][1] > 0);
        answers += seen[k][0] > 0;
    }
    assert_int_equal(answers, 9);
}

static void vectors_decode_to_their_fields(void **state)
{
    (void)state;
    for (int i = 0; i < VECTORS; i++) {
        const struct vector *v = &vectors[i];
        struct buf b = bytes_of(v->bytes);
        struct frame f = frame_of(&b);
        struct chat_message m;
        uint8_t *copy = NULL;
        struct cursor c = decode(f.payload, f.payload_len, v->message.kind, &m, &copy);
        if (cursor_failed(&c))
            fail_msg("%s: %s at %zu", v->bytes, c.error, c.error_offset);
        same_fields(&v->message, &m);
        free(copy);
        buf_done(&b);
    }
}

static void vectors_encode_to_their_bytes(void **state)
{
    (void)state;
    struct buf out = {0};
    for (int i = 0; i < VECTORS; i++) {
        struct buf b = bytes_of(vectors[i].bytes);
        buf_clear(&out);
        chat_encode(&out, &vectors[i].message);
        assert_int_equal(out.len, b.len);
        assert_memory_equal(out.data, b.data, b.len);
        buf_done(&b);
    }
    buf_done(&out);
}

static void vectors_dump_to_their_text(void **state)
{
    (void)state;
    struct buf out = {0};
    for (int i = 0; i < VECTORS; i++) {
        buf_clear(&out);
        chat_dump(&out, &vectors[i].message);
        put_u8(&out, 0);
        assert_string_equal((const char *)out.data, vectors[i].text);
    }
    buf_done(&out);
}

static void names_codes_and_directions_are_those_of_the_protocol(void **state)
{
    (void)state;
    for (int i = 0; i < VECTORS; i++) {
        const struct vector *v = &vectors[i];
        enum chat_kind kind = v->message.kind;
        struct buf b = bytes_of(v->bytes);
        uint16_t code = frame_of(&b).code;
        assert_int_equal(chat_code(kind), code);
        assert_int_equal(chat_direction(kind), v->direction);
        assert_memory_equal(v->text, chat_name(kind), strlen(chat_name(kind)));
        if (v->direction & CHAT_TO_US)
            assert_int_equal(chat_find(code, CHAT_TO_US), kind);
        else
            assert_int_not_equal(chat_find(code, CHAT_TO_US), kind);
        if (v->direction & CHAT_FROM_US)
            assert_int_equal(chat_find(code, CHAT_FROM_US), kind);
        else
            assert_int_not_equal(chat_find(code, CHAT_FROM_US), kind);
        buf_done(&b);
    }
    assert_int_equal(chat_find(0x1013, CHAT_TO_US), CHAT_KINDS);
    assert_int_equal(chat_find(0x0000, CHAT_BOTH), CHAT_KINDS);
    assert_int_equal(chat_find(0xFFFF, CHAT_FROM_US), CHAT_KINDS);
}

static void every_truncation_fails(void **state)
{
    (void)state;
    const char *why = NULL;
    size_t offset = 0;
    for (int i = 0; i < VECTORS; i++) {
        struct buf b = bytes_of(vectors[i].bytes);
        struct frame f = frame_of(&b);
        for (size_t len = 0; len < f.payload_len; len++) {
            if (decodes(f.payload, len, vectors[i].message.kind, &why, &offset))
                fail_msg("%s cut to %zu bytes decodes", vectors[i].bytes, len);
            assert_true(offset <= len);
        }
        buf_done(&b);
    }
}

static void one_byte_more_fails(void **state)
{
    (void)state;
    for (int i = 0; i < VECTORS; i++) {
        struct buf b = bytes_of(vectors[i].bytes);
        size_t payload_len = frame_of(&b).payload_len;
        for (int extra = 0; extra < 256; extra += 51) {
            put_u8(&b, (uint8_t)extra);
            const char *why = NULL;
            size_t offset = 0;
            assert_false(decodes(b.data + FRAME_HEADER, payload_len + 1, vectors[i].message.kind,
                                 &why, &offset));
            assert_string_equal(why, "bytes left over");
            assert_int_equal(offset, payload_len);
            b.len--;
        }
        buf_done(&b);
    }
}

/* What a bad peer may send: payload, the reason and the offset that is logged. */
static const struct {
    enum chat_kind kind;
    const char *payload;
    const char *why; /* NULL: it is good */
    size_t offset;
} edges[] = {
    /* one byte that is neither 0 nor 1 */
    {CHAT_SV_HANDSHAKE_RESPONSE, "02 07000000 0000000000000000", "a flag must be 0 or 1", 0},
    {CHAT_SV_HEARTBEAT_ACK, "FF 0000000000000000", "a flag must be 0 or 1", 0},
    {CHAT_SV_ALLOCATE_MATCH_ACK, "02 2A000000", "a flag must be 0 or 1", 0},
    {CHAT_SV_READY_FOR_MATCH_RESPONSE, "02 2A000000", "a flag must be 0 or 1", 0},
    {CHAT_SV_CANCEL_MATCH_ACK, "02 2A000000", "a flag must be 0 or 1", 0},
    {CHAT_SV_VALIDATE_TOKEN_RESPONSE, "02 2A000000 E9030000", "a flag must be 0 or 1", 0},
    {CHAT_SV_DRAIN, "02", "a flag must be 0 or 1", 0},
    {CHAT_SV_DRAIN_ACK, "80", "a flag must be 0 or 1", 0},
    {CHAT_MGR_HANDSHAKE_RESPONSE, "02 00", "a flag must be 0 or 1", 0},
    {CHAT_MGR_SERVER_ALLOCATION_RESPONSE, "02 2A000000 00", "a flag must be 0 or 1", 0},
    {CHAT_CL_PLAYER_LOADING_STATUS, "2A000000 E9030000 02", "a flag must be 0 or 1", 8},
    {CHAT_CL_MATCH_ABORTED, "2A000000 00 02", "a flag must be 0 or 1", 5},
    /* counts: 0, 1,000,000, then 1,000,001, -1, INT32_MIN */
    {CHAT_SV_HEARTBEAT, "07000000 00000000 00000000 00000000", NULL, 0},
    {CHAT_SV_HEARTBEAT, "07000000 40420F00 00000000 00000000", NULL, 0},
    {CHAT_SV_HEARTBEAT, "07000000 41420F00 00000000 00000000", "number out of range", 4},
    {CHAT_SV_HEARTBEAT, "07000000 FFFFFFFF 00000000 00000000", "number out of range", 4},
    {CHAT_SV_HEARTBEAT, "07000000 00000080 00000000 00000000", "number out of range", 4},
    /* cpu: 100, then 101, NaN, infinity, -infinity, -1 */
    {CHAT_SV_HEARTBEAT, "07000000 00000000 0000C842 0000C842", NULL, 0},
    {CHAT_SV_HEARTBEAT, "07000000 00000000 0000CA42 00000000", "number out of range", 8},
    {CHAT_SV_HEARTBEAT, "07000000 00000000 0000C07F 00000000", "number out of range", 8},
    {CHAT_SV_HEARTBEAT, "07000000 00000000 0000807F 00000000", "number out of range", 8},
    {CHAT_SV_HEARTBEAT, "07000000 00000000 000080FF 00000000", "number out of range", 8},
    {CHAT_SV_HEARTBEAT, "07000000 00000000 000080BF 00000000", "number out of range", 8},
    /* memory: the same */
    {CHAT_SV_HEARTBEAT, "07000000 00000000 00000000 0000CA42", "number out of range", 12},
    {CHAT_SV_HEARTBEAT, "07000000 00000000 00000000 0000C0FF", "number out of range", 12},
    {CHAT_SV_HEARTBEAT, "07000000 00000000 00000000 0000807F", "number out of range", 12},
    {CHAT_SV_HEARTBEAT, "07000000 00000000 00000000 000080BF", "number out of range", 12},
    /* text that is none */
    {CHAT_ERROR, "'caf' E9 00", "string is not UTF-8", 0},
    {CHAT_ERROR, "C080 00", "string is not UTF-8", 0},
    {CHAT_ERROR, "EDA080 00", "string is not UTF-8", 0},
    {CHAT_ERROR, "'no end'", "string without its NUL", 0},
    {CHAT_SV_HANDSHAKE, "'t' 00 FF 00 87690000 02 04000000", "string is not UTF-8", 2},
    {CHAT_SV_KICK_PLAYER, "2A000000 E9030000 'bye'", "string without its NUL", 8},
    {CHAT_CL_MATCH_LOBBY_CREATED, "2A000000 01 00 00 01 E9030000 80 00 00 00",
     "string is not UTF-8", 12},
    /* counts of lists that promise more than there is, or less */
    {CHAT_SV_MATCH_LIST, "07000000 03 2A000000 2B000000", "payload too short", 5},
    {CHAT_SV_MATCH_LIST, "07000000 FF 2A000000 2B000000", "payload too short", 5},
    {CHAT_SV_MATCH_LIST, "07000000 01 2A000000 2B000000", "bytes left over", 9},
    {CHAT_SV_MATCH_LIST, "07000000 00 2A000000", "bytes left over", 5},
    {CHAT_MGR_HANDSHAKE, "'s' 00 'c' 00 03 00 01", "payload too short", 5},
    {CHAT_MGR_HANDSHAKE, "'s' 00 'c' 00 FF 00 01", "payload too short", 5},
    {CHAT_MGR_HANDSHAKE, "'s' 00 'c' 00 01 00 01", "bytes left over", 6},
    {CHAT_MGR_HANDSHAKE_RESPONSE, "01 0000000000000000 02000000 07000000 00 87690000 02 04000000",
     "payload too short", 27},
    {CHAT_MGR_HANDSHAKE_RESPONSE, "01 0000000000000000 FFFFFF7F 07000000 00 87690000 02 04000000",
     "payload too short", 27},
    {CHAT_MGR_HANDSHAKE_RESPONSE, "01 0000000000000000 FFFFFFFF", "negative count", 9},
    {CHAT_MGR_HANDSHAKE_RESPONSE, "01 0000000000000000 00000080", "negative count", 9},
    {CHAT_CL_MATCH_LOBBY_CREATED, "2A000000 01 00 00 02 E9030000 'A' 00 00", "payload too short",
     15},
    {CHAT_CL_MATCH_LOBBY_CREATED, "2A000000 01 00 00 00 02 E9030000 'A' 00 00", "payload too short",
     16},
    /* an answer that mixes its two variants */
    {CHAT_SV_HANDSHAKE_RESPONSE, "00 07000000 0000000000000000", "bytes left over", 3},
    {CHAT_MGR_SERVER_ALLOCATION_RESPONSE, "01 2A000000 'No servers available' 00",
     "payload too short", 26},
    {CHAT_PING, "00", "bytes left over", 0},
    {CHAT_SV_MATCH_LIST_ASK, "07000000 00", "bytes left over", 0},
};

static void bad_payloads_fail_with_reason_and_offset(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
        struct buf b = bytes_of(edges[i].payload);
        const char *why = NULL;
        size_t offset = 0;
        bool good = decodes(b.data, b.len, edges[i].kind, &why, &offset);
        if (good != !edges[i].why || (why && strcmp(why, edges[i].why) != 0) ||
            offset != edges[i].offset) {
            fail_msg("%s %s: %s at %zu", chat_name(edges[i].kind), edges[i].payload,
                     why ? why : "decodes", offset);
        }
        buf_done(&b);
    }
}

static void a_string_holds_1024_bytes_and_no_more(void **state)
{
    (void)state;
    const char *why = NULL;
    size_t offset = 0;
    char text[1026];
    memset(text, 'x', sizeof(text));
    text[1024] = '\0';
    assert_true(decodes(text, 1025, CHAT_ERROR, &why, &offset));
    text[1024] = 'x';
    text[1025] = '\0';
    assert_false(decodes(text, 1026, CHAT_ERROR, &why, &offset));
    assert_string_equal(why, "string too long");
}

static void a_name_in_a_list_has_the_same_limit(void **state)
{
    (void)state;
    for (size_t len = 1024; len <= 1025; len++) {
        struct buf b = bytes_of("2A000000 01 00 00 00 01 E9030000");
        memset(buf_extend(&b, len), 'x', len);
        put_u8(&b, 0);
        put_i8(&b, 4);
        const char *why = NULL;
        size_t offset = 0;
        bool good = decodes(b.data, b.len, CHAT_CL_MATCH_LOBBY_CREATED, &why, &offset);
        assert_int_equal(good, len == 1024);
        if (!good)
            assert_string_equal(why, "string too long");
        buf_done(&b);
    }
}

/* Decodes a payload that must be good, encodes it again and expects the same bytes. */
static void expect_round_trip(const struct buf *payload, enum chat_kind kind, uint32_t n,
                              struct chat_list (*list_of)(const struct chat_message *))
{
    struct chat_message m;
    uint8_t *copy = NULL;
    struct cursor c = decode(payload->data, payload->len, kind, &m, &copy);
    assert_false(cursor_failed(&c));
    assert_int_equal(list_of(&m).n, n);
    struct buf out = {0};
    chat_encode(&out, &m);
    assert_int_equal(out.len, payload->len + FRAME_HEADER);
    assert_memory_equal(out.data + FRAME_HEADER, payload->data, payload->len);
    buf_clear(&out);
    chat_dump(&out, &m);
    assert_true(out.len > n);
    buf_done(&out);
    free(copy);
}

static struct chat_list lobbies_of(const struct chat_message *m)
{
    return m->sv_match_list.lobbies;
}

static struct chat_list regions_of(const struct chat_message *m)
{
    return m->mgr_handshake.regions;
}

static struct chat_list team2_of(const struct chat_message *m)
{
    return m->cl_match_start.team2;
}

static struct chat_list servers_of(const struct chat_message *m)
{
    return m->mgr_handshake_response.servers;
}

static void lists_of_255_elements(void **state)
{
    (void)state;
    struct buf b = bytes_of("07000000 FF");
    for (int i = 0; i < 255; i++)
        put_i32(&b, i * 1000);
    expect_round_trip(&b, CHAT_SV_MATCH_LIST, 255, lobbies_of);
    buf_done(&b);

    b = bytes_of("'s' 00 'c' 00 FF");
    for (int i = 0; i < 255; i++)
        put_u8(&b, (uint8_t)i);
    expect_round_trip(&b, CHAT_MGR_HANDSHAKE, 255, regions_of);
    buf_done(&b);

    b = bytes_of("2A000000 '::1' 00 87690000 't' 00 01 00 'm' 00 00 FF");
    for (int i = 0; i < 255; i++) {
        put_i32(&b, i);
        put_str(&b, STR("somebody"));
        put_i8(&b, (int8_t)(i % 128));
    }
    expect_round_trip(&b, CHAT_CL_MATCH_START, 255, team2_of);
    buf_done(&b);
}

/* The list of servers is cut where the frame is full: here 700 of them fit. */
static void a_list_of_servers_fills_a_frame(void **state)
{
    (void)state;
    struct buf b = bytes_of("01 0000000000000000 BC020000");
    struct chat_server_entry e = {.server_id = 1, .ip = STR("1.2.3.4"), .port = 2000};
    for (int i = 0; i < 700; i++)
        chat_encode_server(&b, &e);
    assert_true(b.len < FRAME_MAX);
    expect_round_trip(&b, CHAT_MGR_HANDSHAKE_RESPONSE, 700, servers_of);
    buf_done(&b);
}

static void elements_of_a_server_list(void **state)
{
    (void)state;
    struct cursor c = cursor_of(SERVERS, sizeof(SERVERS) - 1);
    struct chat_server_entry e;
    struct buf out = {0};
    chat_decode_server(&c, &e);
    assert_int_equal(e.server_id, 7);
    assert_true(str_eq(e.ip, STR("10.0.0.5")));
    assert_int_equal(e.port, 27015);
    assert_int_equal(e.region, 2);
    assert_int_equal(e.max_matches, 4);
    chat_encode_server(&out, &e);
    chat_decode_server(&c, &e);
    assert_int_equal(e.server_id, 8);
    assert_true(str_eq(e.ip, STR("::1")));
    assert_int_equal(e.max_matches, 1000);
    chat_encode_server(&out, &e);
    cursor_end(&c);
    assert_false(cursor_failed(&c));
    assert_int_equal(out.len, sizeof(SERVERS) - 1);
    assert_memory_equal(out.data, SERVERS, out.len);
    buf_done(&out);
}

static void elements_of_a_team(void **state)
{
    (void)state;
    struct cursor c = cursor_of(TEAM_1, sizeof(TEAM_1) - 1);
    struct chat_player_entry e;
    struct buf out = {0};
    chat_decode_player(&c, &e);
    assert_int_equal(e.account, 1001);
    assert_true(str_eq(e.name, STR("Ann")));
    assert_int_equal(e.slot, 0);
    chat_encode_player(&out, &e);
    chat_decode_player(&c, &e);
    assert_int_equal(e.account, 1002);
    assert_true(str_eq(e.name, STR("Bo")));
    assert_int_equal(e.slot, 1);
    chat_encode_player(&out, &e);
    cursor_end(&c);
    assert_false(cursor_failed(&c));
    assert_int_equal(out.len, sizeof(TEAM_1) - 1);
    assert_memory_equal(out.data, TEAM_1, out.len);
    chat_decode_player(&c, &e);
    assert_true(cursor_failed(&c));
    buf_done(&out);
}

static void a_kind_that_there_is_not_fails(void **state)
{
    (void)state;
    struct chat_message m;
    struct cursor c = cursor_of((const uint8_t *)"", 0);
    chat_decode(&c, CHAT_KINDS, &m);
    assert_true(cursor_failed(&c));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_has_a_vector),
        cmocka_unit_test(every_answer_has_both_variants),
        cmocka_unit_test(vectors_decode_to_their_fields),
        cmocka_unit_test(vectors_encode_to_their_bytes),
        cmocka_unit_test(vectors_dump_to_their_text),
        cmocka_unit_test(names_codes_and_directions_are_those_of_the_protocol),
        cmocka_unit_test(every_truncation_fails),
        cmocka_unit_test(one_byte_more_fails),
        cmocka_unit_test(bad_payloads_fail_with_reason_and_offset),
        cmocka_unit_test(a_string_holds_1024_bytes_and_no_more),
        cmocka_unit_test(a_name_in_a_list_has_the_same_limit),
        cmocka_unit_test(lists_of_255_elements),
        cmocka_unit_test(a_list_of_servers_fills_a_frame),
        cmocka_unit_test(elements_of_a_server_list),
        cmocka_unit_test(elements_of_a_team),
        cmocka_unit_test(a_kind_that_there_is_not_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
