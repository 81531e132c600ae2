/* Who is in the arena, how they came there and what they say. */
#include "arena.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

int64_t arena_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int players_init(struct arena *arena, int max_players)
{
    arena->max_players = max_players;
    arena->n_places = (size_t)max_players + GUESTS_MAX;
    arena->players = calloc(arena->n_places, sizeof(*arena->players));
    return arena->players ? 0 : -1;
}

void players_done(struct arena *arena)
{
    free(arena->players);
    arena->players = NULL;
    arena->n_places = 0;
}

static int count(const struct arena *arena, enum player_state state)
{
    int n = 0;
    for (size_t i = 0; i < arena->n_places; i++)
        n += arena->players[i].state == state;
    return n;
}

int players_in(const struct arena *arena)
{
    return count(arena, PLAYER_IN);
}

int players_asked(const struct arena *arena)
{
    return count(arena, PLAYER_ASKED) + count(arena, PLAYER_GONE);
}

static void drop(struct player *player, const char *why);

/* A player who does not read is not waited for: what he has not taken by now would pile up. */
static bool tell(struct player *player, const char *line)
{
    size_t n = strlen(line);
    if (player->udp >= 0) {
        sendto(player->udp, line, n, MSG_DONTWAIT, (const struct sockaddr *)&player->peer,
               sizeof(player->peer));
        return true; /* datagrams may be lost */
    }
    return send(player->fd, line, n, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)n;
}

static void say_to_all(struct arena *arena, const char *line)
{
    for (size_t i = 0; i < arena->n_places; i++) {
        struct player *player = &arena->players[i];
        if (player->state == PLAYER_IN && !tell(player, line))
            drop(player, "too slow");
    }
}

void players_say(struct arena *arena, const char *format, ...)
{
    char text[LINE_LEN_MAX + NAME_LEN_MAX];
    char line[sizeof(text) + 1];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    snprintf(line, sizeof(line), "%s\n", text);
    say_to_all(arena, line);
}

static void say_left(struct player *player)
{
    int r = muster_room_left(player->arena->room, player->key, NULL, NULL);
    if (r)
        printf("cannot report that %s left: %s\n", player->name, muster_room_error_text(r));
}

/* He is gone, or must go. An answer of the agent may still come for him, and then he keeps his
 * place until it is there. */
static void drop(struct player *player, const char *why)
{
    struct arena *arena = player->arena;
    enum player_state was = player->state;
    char line[LINE_LEN_MAX];
    snprintf(line, sizeof(line), "bye: %s\n", why);
    tell(player, line);
    if (player->fd >= 0)
        close(player->fd);
    player->fd = player->udp = -1;
    player->state = was == PLAYER_ASKED ? PLAYER_GONE : PLAYER_FREE;
    if (was != PLAYER_IN) {
        printf("dropped a connection: %s\n", why);
        return;
    }
    say_left(player);
    arena->emptied = players_in(arena) == 0;
    printf("%s left: %s (%d of %d)\n", player->name, why, players_in(arena), arena->max_players);
    players_say(arena, "* %s left", player->name);
}

/* Neither a log nor another player's terminal is to be played with. */
static void make_plain(char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7F)
            *text = ' ';
    }
}

static void welcome(struct player *player)
{
    char line[LINE_LEN_MAX];
    snprintf(line, sizeof(line), "welcome %s\n", player->name);
    tell(player, line);
}

static struct player *find_key(struct arena *arena, const char *key)
{
    for (size_t i = 0; i < arena->n_places; i++) {
        struct player *player = &arena->players[i];
        if (player->state >= PLAYER_ASKED && strcmp(player->key, key) == 0)
            return player;
    }
    return NULL;
}

static void take_lines(struct player *player);

/* The agent's word on a key. */
static void on_joined(void *user, const struct muster_room_answer *answer)
{
    struct player *player = user;
    bool gone = player->state == PLAYER_GONE;
    if (answer->code == 0 && !gone) {
        player->state = PLAYER_IN;
        snprintf(player->name, sizeof(player->name), "%s",
                 *answer->account ? answer->account : "somebody");
        make_plain(player->name);
        printf("%s joined over %s from %s:%d (%d of %d)\n", player->name,
               player->udp >= 0 ? "udp" : "tcp", inet_ntoa(player->peer.sin_addr),
               ntohs(player->peer.sin_port), players_in(player->arena), player->arena->max_players);
        welcome(player);
        players_say(player->arena, "* %s joined", player->name);
        take_lines(player);
        return;
    }
    if (answer->code == 0 || answer->code == MUSTER_ROOM_MALFORMED)
        say_left(player);
    if (gone) {
        player->state = PLAYER_FREE;
        return;
    }
    player->state = PLAYER_GUEST; /* nothing is asked about him any more */
    drop(player, answer->text);
}

static void show_key(struct player *player, const char *key)
{
    struct arena *arena = player->arena;
    if (strlen(key) > KEY_LEN_MAX) {
        drop(player, "that is no key");
        return;
    }
    if (find_key(arena, key)) {
        drop(player, "somebody came with this key already");
        return;
    }
    if (players_in(arena) + players_asked(arena) >= arena->max_players) {
        drop(player, "the arena is full");
        return;
    }
    snprintf(player->key, sizeof(player->key), "%s", key);
    int r = muster_room_joined(arena->room, key, NULL, NULL, on_joined, player);
    if (r)
        drop(player, muster_room_error_text(r));
    else
        player->state = PLAYER_ASKED;
}

static void say_who(struct player *player)
{
    char line[LINE_LEN_MAX];
    size_t len = (size_t)snprintf(line, sizeof(line), "here:");
    for (size_t i = 0; i < player->arena->n_places; i++) {
        const struct player *other = &player->arena->players[i];
        if (other->state == PLAYER_IN && len + strlen(other->name) + 3 < sizeof(line))
            len += (size_t)snprintf(line + len, sizeof(line) - len, " %s", other->name);
    }
    snprintf(line + len, sizeof(line) - len, "\n");
    tell(player, line);
}

static void change_map(struct player *player, const char *map)
{
    char settings[LINE_LEN_MAX + 32];
    if (!*map || map[strspn(map, "abcdefghijklmnopqrstuvwxyz0123456789_-")] != '\0') {
        tell(player, "that is no name of a map\n");
        return;
    }
    snprintf(settings, sizeof(settings), "{\"map\":\"%s\"}", map);
    if (muster_room_update_settings(player->arena->room, settings, NULL, NULL) == 0)
        players_say(player->arena, "* %s changed the map to %s", player->name, map);
}

static void play(struct player *player, const char *line)
{
    char echo[LINE_LEN_MAX + 16];
    if (strncmp(line, "/echo ", 6) == 0) {
        snprintf(echo, sizeof(echo), "echo %s\n", line + 6);
        tell(player, echo);
    } else if (strncmp(line, "/map ", 5) == 0) {
        change_map(player, line + 5);
    } else if (strcmp(line, "/who") == 0) {
        say_who(player);
    } else if (strcmp(line, "/quit") == 0) {
        drop(player, "as you wish");
    } else if (*line) {
        players_say(player->arena, "%s: %s", player->name, line);
    }
}

static void take_line(struct player *player, char *line)
{
    make_plain(line);
    player->heard_ms = arena_now_ms();
    if (player->state == PLAYER_GUEST)
        show_key(player, line);
    else if (player->state == PLAYER_IN)
        play(player, line);
}

/* The whole lines a TCP player has sent. What follows his key waits for the agent's word. */
static void take_lines(struct player *player)
{
    int fd = player->fd;
    size_t from = 0;
    char *end;
    while (player->fd == fd && player->state != PLAYER_ASKED &&
           (end = memchr(player->in + from, '\n', player->in_len - from))) {
        char *line = player->in + from;
        *end = '\0';
        line[strcspn(line, "\r")] = '\0';
        from = (size_t)(end + 1 - player->in);
        take_line(player, line);
    }
    if (player->fd != fd || fd < 0)
        return;
    memmove(player->in, player->in + from, player->in_len - from);
    player->in_len -= from;
    if (player->in_len == sizeof(player->in))
        drop(player, "that line is too long");
}

static struct player *take_place(struct arena *arena, const struct sockaddr_in *peer)
{
    for (size_t i = 0; i < arena->n_places; i++) {
        struct player *player = &arena->players[i];
        if (player->state != PLAYER_FREE)
            continue;
        *player = (struct player){.arena = arena,
                                  .state = PLAYER_GUEST,
                                  .fd = -1,
                                  .udp = -1,
                                  .peer = *peer,
                                  .heard_ms = arena_now_ms()};
        return player;
    }
    return NULL;
}

void players_connected(struct arena *arena, int fd, const struct sockaddr_in *peer)
{
    struct player *player = take_place(arena, peer);
    if (player)
        player->fd = fd;
    else
        close(fd);
}

void player_readable(struct player *player)
{
    ssize_t n = recv(player->fd, player->in + player->in_len, sizeof(player->in) - player->in_len,
                     MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        drop(player, "closed");
        return;
    }
    player->in_len += (size_t)n;
    take_lines(player);
}

static struct player *find_peer(struct arena *arena, int udp, const struct sockaddr_in *peer)
{
    for (size_t i = 0; i < arena->n_places; i++) {
        struct player *player = &arena->players[i];
        if (player->state != PLAYER_FREE && player->udp == udp &&
            player->peer.sin_port == peer->sin_port &&
            player->peer.sin_addr.s_addr == peer->sin_addr.s_addr)
            return player;
    }
    return NULL;
}

void players_datagram(struct arena *arena, int udp, const struct sockaddr_in *peer,
                      const char *bytes, size_t n)
{
    char line[LINE_LEN_MAX + 1];
    if (n > LINE_LEN_MAX)
        return;
    memcpy(line, bytes, n);
    line[n] = '\0';
    line[strcspn(line, "\r\n")] = '\0';
    struct player *player = find_peer(arena, udp, peer);
    if (!player && *line)
        player = take_place(arena, peer);
    if (!player)
        return;
    player->udp = udp;
    if (player->state == PLAYER_IN && strcmp(line, player->key) == 0)
        welcome(player); /* our first welcome was lost on its way */
    else
        take_line(player, line);
}

void players_tick(struct arena *arena)
{
    int64_t now = arena_now_ms();
    for (size_t i = 0; i < arena->n_places; i++) {
        struct player *player = &arena->players[i];
        int64_t silent_ms = now - player->heard_ms;
        if (player->state == PLAYER_GUEST && silent_ms >= arena->options.key_ms)
            drop(player, "no key was shown in time");
        else if (player->state == PLAYER_IN && player->udp >= 0 &&
                 silent_ms >= arena->options.silence_ms)
            drop(player, "silent");
    }
}

void players_kick(struct arena *arena, const char *key, const char *reason)
{
    struct player *player = find_key(arena, key);
    if (!player || player->state == PLAYER_GONE)
        return;
    char why[LINE_LEN_MAX / 2];
    snprintf(why, sizeof(why), "kicked: %s", reason);
    drop(player, why);
}

void players_drop_all(struct arena *arena, const char *why)
{
    for (size_t i = 0; i < arena->n_places; i++) {
        struct player *player = &arena->players[i];
        if (player->state != PLAYER_FREE && player->state != PLAYER_GONE)
            drop(player, why);
    }
}
