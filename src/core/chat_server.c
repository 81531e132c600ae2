/* Chat servers: those who ask for matches, on the manager port. A chat server is its name within
 * its fleet; its tickets outlive its connections. */
#include "core/state.h"

#include <string.h>

enum { NAME_MAX_LEN = 64 };

/* No chat server that connects can have it. */
static const char own_name[] = "@lobbies";

static bool is_name(struct str s)
{
    if (s.len < 1 || s.len > NAME_MAX_LEN)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.at[i];
        bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        bool digit = c >= '0' && c <= '9';
        if (!letter && !digit && c != '.' && c != '_' && c != '-')
            return false;
    }
    return true;
}

/* The regions it speaks for, or 0 when one of them is not to be had. */
static uint64_t regions_of(const struct core *core, const struct chat_list *list,
                           const struct enrolment *enrolment)
{
    uint64_t mask = 0;
    struct cursor c = cursor_of(list->data, list->len);
    for (uint32_t i = 0; i < list->n; i++) {
        int8_t code = cursor_i8(&c);
        if (!region_configured(core, code) || !is_bit(enrolment->regions, code))
            return 0;
        mask |= (uint64_t)1 << code;
    }
    return mask;
}

static void refuse(struct core *core, conn_id conn, int err)
{
    (void)note_refused(core, conn, err);
    effect_add(core, EFFECT_CHAT_HELLO, conn)->err = err;
}

static uint64_t name_key(int64_t fleet, struct str name)
{
    return str_hash((uint64_t)fleet, name);
}

static struct chat_server *find_named(const struct core *core, const struct fleet *fleet,
                                      struct str name)
{
    struct chain_link *n = chain_first(&core->chat_servers_by_name, name_key(fleet->row.id, name));
    for (; n; n = n->next) {
        struct chat_server *chat = container_of(n, struct chat_server, by_name);
        if (chat->row.fleet == fleet->row.id && str_eq(str_of(chat->row.name), name))
            return chat;
    }
    return NULL;
}

struct chat_server *chat_server_load_row(struct core *core, const struct row_chat_server *row)
{
    struct fleet *fleet = fleet_find(core, row->fleet);
    if (!fleet)
        return NULL;
    struct chat_server *chat = xcalloc(1, sizeof(*chat));
    chat->object.kind = ROW_chat_server;
    chat->row = *row;
    chat->fleet = fleet;
    chat->own = str_eq(str_of(row->name), str_of(own_name));
    chat->silent.kind = DEADLINE_CHAT_SILENT;
    chat->challenged.kind = DEADLINE_CHAT_CHALLENGE;
    chat->forget.kind = DEADLINE_CHAT_FORGET;
    list_init(&chat->owed);
    core->chat_servers_own += chat->own;
    map_put(&core->chat_servers, (uint64_t)row->id, chat);
    object_enter(core, &chat->object);
    chain_add(&core->chat_servers_by_name, name_key(row->fleet, str_of(row->name)), &chat->by_name);
    return chat;
}

static struct chat_server *new_chat_server(struct core *core, const struct fleet *fleet,
                                           struct str name)
{
    struct row_chat_server row = {
        .id = object_new_id(core, ROW_chat_server),
        .fleet = (int32_t)fleet->row.id,
    };
    (void)str_copy(row.name, sizeof(row.name), name);
    struct chat_server *chat = chat_server_load_row(core, &row);
    object_touch(core, &chat->object);
    return chat;
}

struct chat_server *chat_server_own(struct core *core, const struct fleet *fleet)
{
    struct chat_server *chat = find_named(core, fleet, str_of(own_name));
    return chat ? chat : new_chat_server(core, fleet, str_of(own_name));
}

/* The servers of its regions, as many as one frame takes. */
static struct chat_list list_servers(struct core *core, const struct chat_server *chat)
{
    enum { FRAME_REST = 2 + 1 + 8 + 4, ENTRY_MAX = 4 + 46 + 4 + 1 + 4 };
    struct buf out = {0};
    struct chat_list list = {0};
    size_t at = 0;
    struct server *server = NULL;
    while ((server = object_next(core, ROW_server, &at))) {
        bool shown = server->fleet == chat->fleet && !server->offline &&
                     is_bit(chat->regions, server->row.region);
        if (!shown)
            continue;
        if (FRAME_REST + out.len + ENTRY_MAX > FRAME_MAX)
            break;
        struct chat_server_entry entry = {
            .server_id = (int32_t)server->row.id,
            .ip = str_of(server->row.ip),
            .port = server->row.port,
            .region = server->row.region,
            .max_matches = server->row.max_sessions,
        };
        chat_encode_server(&out, &entry);
        list.n++;
    }
    if (out.len > 0) {
        uint8_t *data = arena_alloc(&core->out->arena, out.len);
        memcpy(data, out.data, out.len);
        list.data = data;
        list.len = out.len;
    }
    buf_done(&out);
    return list;
}

void chat_server_heard(struct core *core, struct chat_server *chat)
{
    deadline_set(core, &chat->silent, DEADLINE_AWAKE,
                 deadline_now(core, DEADLINE_AWAKE) + core->config.timeouts.chat_ms);
}

static void adopt(struct core *core, struct chat_server *chat, conn_id conn, uint64_t regions)
{
    chat->conn = conn;
    chat->regions = regions;
    deadline_clear(core, &chat->forget);
    chat_server_heard(core, chat);
    peer_bind(core, conn,
              (struct peer){.role = PEER_CHAT, .chat = chat, .enrolment = chat->enrolment});

    struct chat_list servers = list_servers(core, chat);
    struct effect *e = effect_add(core, EFFECT_CHAT_HELLO, conn);
    e->wall_ms = core->now.wall_ms;
    e->servers = servers;
    note_add(core, NOTE_CHAT_REGISTERED)->chat = text_keep(core, str_of(chat->row.name));
    LIST_EACH(&chat->owed, session, struct session, in_owed)
    {
        session_send_events(core, session);
    }
}

static void challenge(struct core *core, struct chat_server *chat, conn_id conn, uint64_t regions,
                      int64_t enrolment)
{
    if (chat->challenge.conn) {
        refuse(core, conn, ERR_CHAT_ALREADY_REGISTERED);
        return;
    }
    chat->challenge.conn = conn;
    chat->challenge.regions = regions;
    chat->challenge.enrolment = enrolment;
    peer_bind(core, conn,
              (struct peer){
                  .role = PEER_CHAT, .challenging = true, .chat = chat, .enrolment = enrolment});
    effect_add(core, EFFECT_PING, chat->conn);
    deadline_set(core, &chat->challenged, DEADLINE_AWAKE,
                 deadline_now(core, DEADLINE_AWAKE) + core->config.timeouts.challenge_ms);
}

/* 0 and who it says it is, or why it is refused. */
static int judge_hello(const struct core *core, const struct chat_mgr_handshake *hello,
                       struct enrolment *ret, uint64_t *ret_regions)
{
    struct enrolment scratch;
    const struct enrolment *enrolment =
        enrolment_find(core, hello->service_token, ROLE_CHAT, &scratch);
    if (!enrolment)
        return ERR_INVALID_TOKEN;
    if (!is_name(hello->chat_server_id))
        return ERR_INVALID_CHAT_SERVER;
    *ret = *enrolment;
    *ret_regions = regions_of(core, &hello->regions, enrolment);
    return *ret_regions ? 0 : ERR_INVALID_REGION;
}

bool chat_server_hello_changes_nothing(const struct core *core,
                                       const struct chat_mgr_handshake *hello)
{
    struct enrolment enrolment;
    uint64_t regions = 0;
    if (judge_hello(core, hello, &enrolment, &regions))
        return true; /* a refusal */
    const struct fleet *fleet = fleet_find_named(core, enrolment.fleet);
    const struct chat_server *chat = fleet ? find_named(core, fleet, hello->chat_server_id) : NULL;
    return chat && !chat->conn;
}

void chat_server_hello(struct core *core, conn_id conn, const struct chat_mgr_handshake *hello)
{
    struct enrolment enrolment;
    uint64_t regions = 0;
    int err = judge_hello(core, hello, &enrolment, &regions);
    if (err) {
        refuse(core, conn, err);
        return;
    }
    struct fleet *fleet = fleet_named(core, enrolment.fleet);
    struct chat_server *chat = find_named(core, fleet, hello->chat_server_id);
    if (chat && chat->conn) {
        challenge(core, chat, conn, regions, enrolment.stored);
        return;
    }
    if (!chat && (int32_t)core->chat_servers.len >= core->config.limits.chat_servers) {
        refuse(core, conn, ERR_INTERNAL);
        return;
    }
    if (!chat)
        chat = new_chat_server(core, fleet, hello->chat_server_id);
    chat->enrolment = enrolment.stored;
    adopt(core, chat, conn, regions);
}

void chat_server_heartbeat(struct core *core, conn_id conn)
{
    struct peer *peer = peer_find(core, conn);
    if (!peer || !peer->chat || peer->challenging)
        return;
    chat_server_heard(core, peer->chat);
    batch_immediate(core->out, EFFECT_CHAT_HEARTBEAT, conn)->wall_ms = core->now.wall_ms;
}

/* Its tickets go on; their answers are kept until it asks again. */
static void drop(struct core *core, struct chat_server *chat)
{
    peer_unbind(core, chat->conn);
    chat->conn = 0;
    deadline_clear(core, &chat->silent);
    LIST_EACH(&chat->owed, session, struct session, in_owed)
    {
        session_events_unsent(session);
    }
    chat_server_maybe_forget(core, chat);
}

static void hand_over(struct core *core, struct chat_server *chat)
{
    conn_id conn = chat->challenge.conn;
    chat->challenge.conn = 0;
    deadline_clear(core, &chat->challenged);
    peer_unbind(core, conn);
    chat->enrolment = chat->challenge.enrolment;
    adopt(core, chat, conn, chat->challenge.regions);
}

void chat_server_gone(struct core *core, struct chat_server *chat)
{
    note_add(core, NOTE_CHAT_GONE)->chat = text_keep(core, str_of(chat->row.name));
    drop(core, chat);
    if (chat->challenge.conn)
        hand_over(core, chat);
}

void chat_server_alive(struct core *core, struct chat_server *chat)
{
    if (!chat->challenge.conn)
        return;
    conn_id conn = chat->challenge.conn;
    chat->challenge.conn = 0;
    deadline_clear(core, &chat->challenged);
    peer_unbind(core, conn);
    refuse(core, conn, ERR_CHAT_ALREADY_REGISTERED);
}

void chat_server_maybe_forget(struct core *core, struct chat_server *chat)
{
    if (!chat->conn && chat->tickets == 0 && !deadline_is_set(&chat->forget))
        deadline_set(core, &chat->forget, DEADLINE_CORE,
                     core->now.core_ms + core->config.timeouts.forget_ms);
}

void chat_server_unlink(struct core *core, struct chat_server *chat)
{
    deadline_clear(core, &chat->silent);
    deadline_clear(core, &chat->challenged);
    deadline_clear(core, &chat->forget);
    core->chat_servers_own -= chat->own;
    map_remove(&core->chat_servers, (uint64_t)chat->row.id);
    chain_remove(&core->chat_servers_by_name, name_key(chat->row.fleet, str_of(chat->row.name)),
                 &chat->by_name);
}

static bool has_sessions(const struct core *core, const struct chat_server *chat)
{
    size_t at = 0;
    struct session *session = NULL;
    while ((session = object_next(core, ROW_session, &at))) {
        if (session->chat == chat)
            return true;
    }
    return false;
}

static void forget(struct core *core, struct chat_server *chat)
{
    if (chat->conn || chat->tickets > 0)
        return;
    if (has_sessions(core, chat)) { /* a CANCEL is still owed in its name */
        chat_server_maybe_forget(core, chat);
        return;
    }
    chat_server_unlink(core, chat);
    object_delete(core, &chat->object);
}

void chat_server_deadline(struct core *core, struct chat_server *chat, enum deadline_kind kind)
{
    switch (kind) {
    case DEADLINE_CHAT_SILENT:
        effect_close(core, chat->conn, "Silent for too long");
        chat_server_gone(core, chat);
        break;
    case DEADLINE_CHAT_CHALLENGE:
        effect_close(core, chat->conn, "Replaced by a new connection");
        drop(core, chat);
        hand_over(core, chat);
        break;
    case DEADLINE_CHAT_FORGET:
        forget(core, chat);
        break;
    default:
        assert(false);
    }
}

void chat_server_loaded(struct core *core, struct chat_server *chat)
{
    chat->object.stored = true;
    chat_server_maybe_forget(core, chat);
}

void chat_server_take_over(struct core *core, struct chat_server *fresh,
                           const struct chat_server *old)
{
    if (!old->conn)
        return;
    fresh->conn = old->conn;
    fresh->enrolment = old->enrolment;
    fresh->regions = old->regions;
    deadline_clear(core, &fresh->forget);
    deadline_set(core, &fresh->silent, DEADLINE_AWAKE, deadline_at_ms(&old->silent));
    peer_bind(core, fresh->conn,
              (struct peer){.role = PEER_CHAT, .chat = fresh, .enrolment = fresh->enrolment});
}
