/* `muster bots`: players of the arena who come and go, so that rooms appear, fill and vanish. Each
 * asks for a seat as a player's client does, shows its key over TCP, says something now and then
 * and leaves again.
 *
 *   away ──its time has come: asks, connects──▶ playing ──its time is over, or it is sent away──▶
 * away
 */
#include "base/clock.h"
#include "cli/dial.h"
#include "cli/room_path.h"
#include "cli/screen.h"
#include "cli/show.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    BOTS_MAX = 12,
    SEAT_S = 60, /* an answer may wait for a server */
    CONNECT_MS = 2000,
    CHAT_MS = 3000,
    AGAIN_MS = 5000,   /* after a refusal */
    CREATE_ONE_IN = 4, /* so often it is a new room, whatever there is */
};

static struct {
    const char *fleet;
    const char *version;
    int64_t players;
    int64_t seconds;
} set = {.players = 6, .seconds = 15};

const struct arg bots_options[] = {
    {.name = "FLEET", .kind = ARG_WORD, .into = &set.fleet},
    {.name = "--version",
     .kind = ARG_TEXT,
     .into = &set.version,
     .value = "TEXT",
     .help = "the version of the game (the newest that is enabled)"},
    {.name = "--players",
     .kind = ARG_NUMBER,
     .into = &set.players,
     .min = 1,
     .max = BOTS_MAX,
     .value = "N",
     .help = "how many there are (6)"},
    {.name = "--seconds",
     .kind = ARG_SECONDS,
     .into = &set.seconds,
     .min = 1,
     .max = 3600,
     .value = "TIME",
     .help = "how long one plays, about; he is away for half of that (15s)"},
    {0},
};

struct bot {
    const char *name;
    struct client *client; /* with his own token */
    int fd;                /* -1 = away */
    char room[24];
    int64_t due_ms;  /* away: when he comes; playing: when he goes */
    int64_t chat_ms; /* when he says something next */
};

struct crowd {
    struct remote *r;
    struct room_path path;
    struct bot bots[BOTS_MAX];
    int n;
    uint64_t luck;
};

/* Good enough for who comes when; a number from 0 to below n. */
static int64_t roll(struct crowd *c, int64_t n)
{
    c->luck = c->luck * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)(c->luck >> 33) % n;
}

static void say(const struct bot *b, const char *what, struct str more)
{
    struct buf line = {0};
    term_printf(&line, "%s %s", b->name, what);
    term_put_text(&line, more);
    term_put(&line, "\n");
    (void)term_flush(&line, STDOUT_FILENO);
    buf_done(&line);
}

/* ── coming ────────────────────────────────────────────────────────────────────────────────── */

/* A line that does not fit at once is lost; it is only chat. */
static bool send_line(const struct bot *b, struct str line)
{
    struct buf text = {0};
    buf_append(&text, line.at, line.len);
    buf_append(&text, "\n", 1);
    bool sent = send(b->fd, text.data, text.len, MSG_NOSIGNAL) == (ssize_t)text.len;
    buf_done(&text);
    return sent;
}

static void go_in(struct crowd *c, struct bot *b)
{
    const struct json *seat = c->r->answer.json;
    const struct json *ports = show_at(seat, "location.ports");
    (void)str_copy(b->room, sizeof(b->room), json_get_text(json_member(seat, "id")));
    b->fd = dial(json_get_text(show_at(seat, "location.host")), json_get_int(json_item(ports, 0)),
                 CONNECT_MS);
    int64_t now_ms = clock_monotonic_ms();
    b->due_ms = now_ms + AGAIN_MS;
    if (b->fd < 0 || !send_line(b, json_get_text(json_member(seat, "key")))) {
        say(b, "cannot reach room ", str_of(b->room));
        return;
    }
    int64_t most_ms = set.seconds * 1000;
    b->due_ms = now_ms + most_ms / 2 + roll(c, most_ms);
    b->chat_ms = now_ms + roll(c, CHAT_MS);
    say(b, "is in room ", str_of(b->room));
}

static int come(struct crowd *c, struct bot *b)
{
    struct ask ask;
    ask_init(&ask, roll(c, CREATE_ONE_IN) == 0 ? "create" : "join", NULL);
    room_path_set(&c->path, &ask);
    int code = remote_ask_by(c->r, b->client, &ask, SEAT_S);
    if (code == EXIT_DONE) {
        go_in(c, b);
    } else if (code != EXIT_STOPPED) {
        say(b, "gets no seat: ", str_of(c->r->answer.why));
        b->due_ms = clock_monotonic_ms() + AGAIN_MS;
    }
    return code;
}

/* ── playing and going ─────────────────────────────────────────────────────────────────────── */

static void go(struct crowd *c, struct bot *b, const char *what)
{
    say(b, what, str_of(b->room));
    close(b->fd);
    b->fd = -1;
    b->due_ms = clock_monotonic_ms() + set.seconds * 250 + roll(c, set.seconds * 500);
}

/* What the others say is not read aloud; an end of the connection is. */
static void listen_to(struct crowd *c, struct bot *b)
{
    char text[4096];
    ssize_t n = recv(b->fd, text, sizeof(text), 0);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        go(c, b, "was sent out of room ");
}

static void chat(struct crowd *c, struct bot *b, int64_t now_ms)
{
    static const struct str lines[] = {STR("hello"), STR("anybody here?"), STR("good game"),
                                       STR("one more?")};
    enum { LINES = sizeof(lines) / sizeof(lines[0]) };
    (void)send_line(b, lines[roll(c, LINES)]);
    b->chat_ms = now_ms + CHAT_MS / 2 + roll(c, CHAT_MS);
}

static int act(struct crowd *c, struct bot *b, int64_t now_ms)
{
    if (b->fd < 0)
        return now_ms >= b->due_ms ? come(c, b) : EXIT_DONE;
    if (now_ms >= b->due_ms)
        go(c, b, "leaves room ");
    else if (now_ms >= b->chat_ms)
        chat(c, b, now_ms);
    return EXIT_DONE;
}

static int64_t next_due(const struct crowd *c)
{
    int64_t due_ms = INT64_MAX;
    for (int i = 0; i < c->n; i++) {
        const struct bot *b = &c->bots[i];
        int64_t own_ms = b->fd >= 0 && b->chat_ms < b->due_ms ? b->chat_ms : b->due_ms;
        due_ms = own_ms < due_ms ? own_ms : due_ms;
    }
    return due_ms;
}

/* Refusals are part of it; a Muster that is gone is not. */
static int play(struct crowd *c)
{
    int fds[BOTS_MAX + 1];
    c->r->quiet = true;
    for (;;) {
        for (int i = 0; i < c->n; i++) {
            int code = act(c, &c->bots[i], clock_monotonic_ms());
            if (code == EXIT_STOPPED)
                return EXIT_DONE;
            if (code == EXIT_UNREACHABLE) {
                remote_complain(c->r);
                return code;
            }
        }
        for (int i = 0; i < c->n; i++)
            fds[i] = c->bots[i].fd;
        fds[c->n] = c->r->stop_fd;
        int woken = screen_wait(fds, c->n + 1, next_due(c));
        if (woken == c->n)
            return EXIT_DONE;
        if (woken >= 0)
            listen_to(c, &c->bots[woken]);
    }
}

/* ── the verb ──────────────────────────────────────────────────────────────────────────────── */

static int gather(struct crowd *c)
{
    static const char *const names[BOTS_MAX] = {"anna", "ben",  "cleo", "dora", "emil", "fay",
                                                "gus",  "hana", "ivo",  "jill", "karl", "lena"};
    int64_t now_ms = clock_monotonic_ms();
    int code = room_path_find(c->r, set.fleet ? set.fleet : "arena", set.version, &c->path);
    for (; code == EXIT_DONE && c->n < set.players; c->n++) {
        struct bot *b = &c->bots[c->n];
        *b = (struct bot){.name = names[c->n], .fd = -1};
        b->due_ms = now_ms + c->n * 1500; /* one after the other */
        code = remote_become(c->r, b->name, "game", &b->client);
    }
    return code;
}

static void part(struct crowd *c)
{
    for (int i = 0; i < c->n; i++) {
        if (c->bots[i].fd >= 0)
            close(c->bots[i].fd);
        client_close(c->bots[i].client);
    }
}

int bots_run(int argc, char **argv)
{
    struct remote r;
    int code = remote_open(&r, argc, argv, NULL, bots_options, NULL, true);
    if (code != EXIT_DONE)
        return code;
    struct crowd c = {.r = &r, .luck = (uint64_t)clock_wall_ms()};
    code = gather(&c);
    if (code == EXIT_DONE)
        code = play(&c);
    part(&c);
    remote_close(&r);
    return code;
}
