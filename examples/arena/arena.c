/* The arena's loop: one poll(2) over the agent, the players' ports, the players, a signal and
 * stdin.
 *
 *     arena ENDPOINT PORTS [--bind ADDRESS] [--key-ms N] [--silence-ms N] [--check-ms N]
 *           [--repeat-ms N]
 *
 * ENDPOINT and PORTS are what a Muster agent gives; every port is served over TCP and over UDP. A
 * player's first line, or datagram, is his key; then whatever he writes is read by everybody. What
 * comes in on stdin is said by the operator. */
#include "arena.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    TICK_MS = 100,
    GOODBYE_MS = 1000, /* for the agent to hear who left when we end */
    DATAGRAMS_A_TURN = 64,
    PLAYERS_DEFAULT = 16,
};

struct game {
    struct arena arena;
    const struct muster_room_start *start;
    int tcp[MUSTER_ROOM_MAX_PORTS];
    int udp[MUSTER_ROOM_MAX_PORTS];
    int signals;
    int input; /* stdin until it ends */
    int64_t check_due_ms;
    bool outdated;     /* ends when empty */
    int64_t ending_ms; /* 0 = not ending; else the latest time to exit */
};

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "arena: %s: %s\n", what, why);
    return 1;
}

static bool read_ms(const char *text, int64_t *ret)
{
    char *rest;
    *ret = strtol(text, &rest, 10);
    return *rest == '\0' && *ret > 0 && *ret <= INT_MAX;
}

static bool read_options(int argc, char *argv[], struct arena_options *ret)
{
    *ret = (struct arena_options){
        .bind = "0.0.0.0", .key_ms = 5000, .silence_ms = 10000, .check_ms = 60000};
    const struct {
        const char *name;
        int64_t *value;
    } times[] = {{"--key-ms", &ret->key_ms},
                 {"--silence-ms", &ret->silence_ms},
                 {"--check-ms", &ret->check_ms},
                 {"--repeat-ms", &ret->repeat_ms}};
    const size_t n_times = sizeof(times) / sizeof(times[0]);
    for (int i = 3; i < argc; i += 2) {
        size_t at = 0;
        while (at < n_times && strcmp(argv[i], times[at].name) != 0)
            at++;
        bool bind = strcmp(argv[i], "--bind") == 0;
        if (i + 1 == argc || (at == n_times && !bind))
            return false;
        if (bind)
            ret->bind = argv[i + 1];
        else if (!read_ms(argv[i + 1], times[at].value))
            return false;
    }
    return true;
}

/* ---- What the agent says. */

static void on_kick(void *user, const char *key, const char *reason)
{
    players_kick(user, key, reason);
}

static void on_ready(void *user, const struct muster_room_answer *answer)
{
    (void)user;
    if (answer->code)
        printf("the room was given up: %s\n", answer->text);
    else
        printf("ready for players\n");
}

static void on_checked(void *user, const struct muster_room_answer *answer)
{
    struct game *game = user;
    if (game->outdated || (answer->code != 404 && answer->code != 410))
        return;
    game->outdated = true;
    printf("this version is not used any more, ending when empty: %s\n", answer->text);
}

/* Whoever made the room may have named a map; if not, those who look for one are told ours. */
static int say_ready(struct game *game)
{
    char map[NAME_LEN_MAX];
    const char *settings = NULL;
    if (!muster_room_setting(game->start->room_settings, "map", map, sizeof(map)))
        settings = "{\"map\":\"pit\"}";
    return muster_room_ready(game->arena.room, settings, on_ready, game);
}

static void check_deployment(struct game *game)
{
    int64_t now = arena_now_ms();
    if (now < game->check_due_ms && !game->arena.emptied)
        return;
    game->arena.emptied = false;
    game->check_due_ms = now + game->arena.options.check_ms;
    muster_room_check_deployment(game->arena.room, on_checked, game);
}

/* ---- The players' ports. */

static int open_port(int type, const char *address, uint16_t port)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int yes = 1;
    if (fd < 0 || inet_pton(AF_INET, address, &name.sin_addr) != 1 ||
        (type == SOCK_STREAM && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) < 0) ||
        bind(fd, (const struct sockaddr *)&name, sizeof(name)) < 0 ||
        (type == SOCK_STREAM && listen(fd, 64) < 0)) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    return fd;
}

static bool open_ports(struct game *game)
{
    for (size_t i = 0; i < game->start->n_ports; i++) {
        game->tcp[i] = open_port(SOCK_STREAM, game->arena.options.bind, game->start->ports[i]);
        game->udp[i] = open_port(SOCK_DGRAM, game->arena.options.bind, game->start->ports[i]);
        if (game->tcp[i] < 0 || game->udp[i] < 0)
            return false;
    }
    return true;
}

static void accept_player(struct game *game, int listener)
{
    struct sockaddr_in peer;
    socklen_t len = sizeof(peer);
    int yes = 1;
    int fd = accept4(listener, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes)); /* or he who vanished stays */
    players_connected(&game->arena, fd, &peer);
}

static void read_datagrams(struct game *game, int udp)
{
    for (int i = 0; i < DATAGRAMS_A_TURN; i++) {
        char bytes[LINE_LEN_MAX];
        struct sockaddr_in peer;
        socklen_t len = sizeof(peer);
        ssize_t n = recvfrom(udp, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_TRUNC,
                             (struct sockaddr *)&peer, &len);
        if (n < 0)
            return;
        if ((size_t)n <= sizeof(bytes))
            players_datagram(&game->arena, udp, &peer, bytes, (size_t)n);
    }
}

/* ---- The loop. */

static void end(struct game *game, const char *why)
{
    if (game->ending_ms)
        return;
    printf("ending: %s\n", why);
    game->ending_ms = arena_now_ms() + GOODBYE_MS;
    players_drop_all(&game->arena, "the arena closes");
}

static void read_signal(struct game *game)
{
    struct signalfd_siginfo info;
    if (read(game->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
        end(game, strsignal((int)info.ssi_signo));
}

static void read_input(struct game *game)
{
    char text[LINE_LEN_MAX];
    ssize_t n = read(game->input, text, sizeof(text) - 1);
    if (n < 0 && errno == EINTR)
        return;
    if (n <= 0) {
        game->input = -1;
        return;
    }
    text[n] = '\0';
    for (char *line = strtok(text, "\r\n"); line; line = strtok(NULL, "\r\n")) {
        printf("operator: %s\n", line);
        players_say(&game->arena, "operator: %s", line);
    }
}

/* Whom an entry of the poll set is about. */
enum source { FROM_AGENT, FROM_SIGNAL, FROM_INPUT, FROM_PORTS };

static size_t watch(struct game *game, struct pollfd *set)
{
    size_t n = 0;
    set[n++] = (struct pollfd){.fd = muster_room_fd(game->arena.room), .events = POLLIN};
    set[n++] = (struct pollfd){.fd = game->signals, .events = POLLIN};
    set[n++] = (struct pollfd){.fd = game->input, .events = POLLIN};
    for (size_t i = 0; i < game->start->n_ports; i++) {
        set[n++] = (struct pollfd){.fd = game->tcp[i], .events = POLLIN};
        set[n++] = (struct pollfd){.fd = game->udp[i], .events = POLLIN};
    }
    for (size_t i = 0; i < game->arena.n_places; i++) {
        const struct player *player = &game->arena.players[i];
        int fd = player->state == PLAYER_FREE || player->state == PLAYER_GONE ? -1 : player->fd;
        set[n++] = (struct pollfd){.fd = fd, .events = POLLIN};
    }
    return n;
}

/* The agent last: what it says may change who is who. */
static void serve(struct game *game, const struct pollfd *set)
{
    const struct pollfd *at = set + FROM_PORTS;
    if (set[FROM_SIGNAL].revents)
        read_signal(game);
    if (set[FROM_INPUT].revents)
        read_input(game);
    const struct pollfd *players = at + 2 * game->start->n_ports;
    for (size_t i = 0; i < game->arena.n_places; i++) {
        struct player *player = &game->arena.players[i];
        if (players[i].revents && player->fd == players[i].fd && player->state != PLAYER_FREE)
            player_readable(player);
    }
    for (size_t i = 0; i < game->start->n_ports; i++, at += 2) {
        if (at[0].revents && !game->ending_ms)
            accept_player(game, at[0].fd);
        if (at[1].revents && !game->ending_ms)
            read_datagrams(game, at[1].fd);
    }
    if (set[FROM_AGENT].revents)
        muster_room_poll(game->arena.room, 0);
}

static bool over(struct game *game)
{
    const struct arena *arena = &game->arena;
    if (muster_room_refused(arena->room))
        return true;
    if (game->outdated && players_in(arena) + players_asked(arena) == 0)
        end(game, "empty");
    return game->ending_ms &&
           (muster_room_waiting(arena->room) == 0 || arena_now_ms() >= game->ending_ms);
}

static int run(struct game *game)
{
    size_t most = FROM_PORTS + 2 * game->start->n_ports + game->arena.n_places;
    struct pollfd *set = calloc(most, sizeof(*set));
    if (!set)
        return fail("cannot start", "out of memory");
    while (!over(game)) {
        size_t n = watch(game, set);
        if (poll(set, (nfds_t)n, TICK_MS) > 0)
            serve(game, set);
        players_tick(&game->arena);
        if (!game->ending_ms)
            check_deployment(game);
    }
    free(set);
    return muster_room_refused(game->arena.room) ? 1 : 0;
}

static int watch_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

static int start(struct game *game)
{
    struct arena *arena = &game->arena;
    game->start = muster_room_started(arena->room);
    int max = game->start->max_players ? game->start->max_players : PLAYERS_DEFAULT;
    game->signals = watch_signals();
    game->input = STDIN_FILENO;
    game->check_due_ms = arena_now_ms() + arena->options.check_ms;
    if (max > PLAYERS_MAX)
        max = PLAYERS_MAX;
    if (!open_ports(game))
        return fail("cannot listen", strerror(errno));
    if (game->signals < 0 || players_init(arena, max) < 0)
        return fail("cannot start", strerror(errno));
    printf("room %s, up to %d players, port %d and %zu more, settings %s\n", game->start->room_id,
           max, game->start->ports[0], game->start->n_ports - 1, game->start->room_settings);
    int r = say_ready(game);
    return r ? fail("cannot say ready", muster_room_error_text(r)) : 0;
}

int main(int argc, char *argv[])
{
    static struct game game;
    struct arena *arena = &game.arena;
    setvbuf(stdout, NULL, _IOLBF, 0); /* the agent reads along */
    if (!read_options(argc, argv, &arena->options))
        return fail("usage", "arena ENDPOINT PORTS [--bind ADDRESS] [--key-ms N] [--silence-ms N] "
                             "[--check-ms N] [--repeat-ms N]");
    const struct muster_room_options options = {.repeat_ms = (int)arena->options.repeat_ms};
    const struct muster_room_callbacks callbacks = {.kick = on_kick};
    int r = muster_room_new(argc, argv, &options, &callbacks, arena, &arena->room);
    if (r)
        return fail("cannot reach the agent", muster_room_error_text(r));
    int status = start(&game);
    if (status == 0)
        status = run(&game);
    players_drop_all(arena, "the arena closes");
    muster_room_free(arena->room);
    players_done(arena);
    printf("over\n");
    return status;
}
