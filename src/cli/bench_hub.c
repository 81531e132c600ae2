#include "cli/bench_hub.h"

#include "cli/bench_child.h"
#include "cli/bench_lobbies.h"
#include "cli/bench_wire.h"
#include "wire/chat.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GAMES_MAX = 64, RING = 64 * 1024 };

struct game {
    int32_t first; /* account */
    int32_t players;
    int32_t loaded;
    bool ready;
};

struct state {
    struct wire wire;
    struct wire_peer **players; /* by account */
    int32_t n_players;
    struct wire_peer *games[GAMES_MAX];
    int n_games;
    int32_t lobby;          /* the last one */
    struct game ring[RING]; /* by lobby */
    struct buf created;     /* frames in which only the lobby changes */
    struct buf start;
    struct buf allocate;
    struct buf answer;
};

struct beginning {
    int listener;
    int players;
    int lobbies;
};

static struct wire_peer *new_peer(struct wire *w)
{
    (void)w;
    return xcalloc(1, sizeof(struct wire_peer));
}

/* ── frames ────────────────────────────────────────────────────────────────────────────────── */

static struct chat_list team_of(struct buf *out, int n)
{
    size_t before = out->len;
    for (int i = 0; i < n; i++)
        chat_encode_player(out, &(struct chat_player_entry){
                                    .account = i, .name = STR("player-1234"), .slot = (int8_t)i});
    return (struct chat_list){(uint32_t)n, out->data + before, out->len - before};
}

static void make_frames(struct state *s, int players)
{
    struct buf one = {0}, two = {0};
    struct str token = STR("MATCH_1073741824_7f68c710-8647-83fa-5a33-740af93f8bc7_1794787146");
    struct chat_list team1 = team_of(&one, (players + 1) / 2);
    struct chat_list team2 = team_of(&two, players / 2);
    chat_encode(&s->created,
                &(struct chat_message){.kind = CHAT_CL_MATCH_LOBBY_CREATED,
                                       .cl_match_lobby_created = {
                                           .map = STR("caldera"), .team1 = team1, .team2 = team2}});
    chat_encode(&s->start, &(struct chat_message){.kind = CHAT_CL_MATCH_START,
                                                  .cl_match_start = {.ip = STR("10.0.0.1"),
                                                                     .port = 7777,
                                                                     .match_token = token,
                                                                     .map = STR("caldera"),
                                                                     .team1 = team1,
                                                                     .team2 = team2}});
    chat_encode(&s->allocate, &(struct chat_message){.kind = CHAT_SV_ALLOCATE_MATCH,
                                                     .sv_allocate_match = {.match_token = token}});
    uint8_t *answer = buf_extend(&s->answer, LOBBIES_ANSWER_SIZE);
    memset(answer, 0, LOBBIES_ANSWER_SIZE);
    answer[0] = (uint8_t)(LOBBIES_ANSWER_SIZE - 2);
    answer[1] = (uint8_t)((LOBBIES_ANSWER_SIZE - 2) >> 8);
    answer[2] = (uint8_t)LOBBIES_ANSWER;
    answer[3] = (uint8_t)(LOBBIES_ANSWER >> 8);
    buf_done(&one);
    buf_done(&two);
}

static void send_about(struct wire_peer *to, struct buf *frame, int32_t lobby)
{
    wire_put_i32(frame->data + FRAME_HEADER, lobby);
    wire_send(to, frame->data, frame->len);
}

static void answer_yes(struct wire_peer *p, enum chat_kind kind, int32_t lobby)
{
    struct buf out = {0};
    struct chat_message m = {.kind = kind};
    if (kind == CHAT_CL_CONNECT_RESPONSE)
        m.cl_connect_response = (struct chat_cl_connect_response){.ok = true};
    else if (kind == CHAT_SV_HANDSHAKE_RESPONSE)
        m.sv_handshake_response = (struct chat_sv_handshake_response){.ok = true, .server_id = 1};
    else if (kind == CHAT_SV_READY_FOR_MATCH_RESPONSE)
        m.sv_ready_for_match_response =
            (struct chat_sv_ready_for_match_response){.ok = true, .lobby = lobby};
    else
        m.sv_match_ended_response =
            (struct chat_sv_match_ended_response){.ok = true, .lobby = lobby};
    chat_encode(&out, &m);
    wire_send(p, out.data, out.len);
    buf_done(&out);
}

/* ── passing on ────────────────────────────────────────────────────────────────────────────── */

static void tell_all(struct state *s, const struct game *g, struct buf *frame, int32_t lobby)
{
    for (int32_t i = 0; i < g->players; i++)
        send_about(s->players[g->first + i], frame, lobby);
}

static void on_ask(struct state *s, struct wire_peer *p, const struct frame *f)
{
    int32_t lobby = ++s->lobby;
    struct game *g = &s->ring[lobby % RING];
    *g = (struct game){.first = wire_i32(f->payload), .players = wire_i32(f->payload + 4)};
    send_about(p, &s->answer, lobby);
    tell_all(s, g, &s->created, lobby);
    send_about(s->games[lobby % s->n_games], &s->allocate, lobby);
}

static void start_when_both(struct state *s, const struct game *g, int32_t lobby)
{
    if (g->ready && g->loaded == g->players)
        tell_all(s, g, &s->start, lobby);
}

static void on_loading(struct state *s, const struct frame *f)
{
    uint8_t frame[FRAME_HEADER + 9] = {11, 0, 0x03, 0x06};
    int32_t lobby = wire_i32(f->payload);
    int32_t account = wire_i32(f->payload + 4);
    struct game *g = &s->ring[lobby % RING];
    memcpy(frame + FRAME_HEADER, f->payload, 9);
    for (int32_t i = 0; i < g->players; i++) {
        if (g->first + i != account)
            wire_send(s->players[g->first + i], frame, sizeof(frame));
    }
    g->loaded++;
    start_when_both(s, g, lobby);
}

static void on_ready(struct state *s, struct wire_peer *p, const struct frame *f)
{
    int32_t lobby = wire_i32(f->payload + 4);
    struct game *g = &s->ring[lobby % RING];
    g->ready = true;
    answer_yes(p, CHAT_SV_READY_FOR_MATCH_RESPONSE, lobby);
    start_when_both(s, g, lobby);
}

static void on_frame(struct wire *w, struct wire_peer *p, const struct frame *f)
{
    struct state *s = container_of(w, struct state, wire);
    switch (f->code) {
    case 0x0600:
        if (wire_i32(f->payload) > s->n_players)
            _exit(1);
        s->players[wire_i32(f->payload)] = p;
        answer_yes(p, CHAT_CL_CONNECT_RESPONSE, 0);
        break;
    case 0x1000:
        if (s->n_games < GAMES_MAX)
            s->games[s->n_games++] = p;
        answer_yes(p, CHAT_SV_HANDSHAKE_RESPONSE, 0);
        break;
    case LOBBIES_ASK:
        on_ask(s, p, f);
        break;
    case 0x0603:
        on_loading(s, f);
        break;
    case 0x1006:
        on_ready(s, p, f);
        break;
    case 0x100C:
        answer_yes(p, CHAT_SV_MATCH_ENDED_RESPONSE, wire_i32(f->payload + 4));
        break;
    default:
        break;
    }
}

static void run(void *user)
{
    const struct beginning *beginning = user;
    struct state *s = xcalloc(1, sizeof(*s));
    s->wire.frame = on_frame;
    s->wire.accepted = new_peer;
    s->n_players = beginning->players * beginning->lobbies;
    s->players = xcalloc((size_t)s->n_players + 1, sizeof(struct wire_peer *));
    make_frames(s, beginning->players);
    if (!wire_init(&s->wire) || !wire_accept_on(&s->wire, beginning->listener))
        _exit(1);
    for (;;)
        wire_turn(&s->wire, -1);
}

bool hub_start(struct hub *h, struct bench *b, int players, int lobbies)
{
    *h = (struct hub){0};
    struct beginning beginning = {
        .listener = wire_listener(h->address), .players = players, .lobbies = lobbies};
    if (beginning.listener >= 0)
        h->pid = child_start(run, &beginning);
    int error = errno;
    if (beginning.listener >= 0)
        close(beginning.listener);
    return h->pid > 0 || bench_fail(b, "the hub cannot be started: %s", strerror(error));
}

void hub_end(struct hub *h)
{
    child_end(h->pid);
    *h = (struct hub){0};
}
