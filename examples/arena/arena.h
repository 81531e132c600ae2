/* The arena: a room where players see what the others write. A whole game server, small enough to
 * read, to show where each part of Muster's room side belongs. main owns the one struct arena. */
#pragma once

#include "muster_room.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    KEY_LEN_MAX = 256,
    NAME_LEN_MAX = 64,
    LINE_LEN_MAX = 512, /* of what a player writes, and of a datagram */
    GUESTS_MAX = 32,    /* places besides the players', for those who have not shown a key */
    PLAYERS_MAX = 512,
};

struct arena_options {
    const char *bind;   /* address to listen on */
    int64_t key_ms;     /* so long may a connection go without showing a key */
    int64_t silence_ms; /* so long may a player over UDP say nothing */
    int64_t check_ms;   /* how often to ask whether this version is still to be used */
    int64_t repeat_ms;  /* of the SDK; 0 = its own */
};

/*          TCP connects             a line             joined: yes
 *  FREE ─────────────────▶ GUEST ───────────▶ ASKED ─────────────────▶ IN ──▶ FREE, left is said
 *    │                       │ no key in 5 s    │ │ joined: no                  when he goes
 *    │ a first datagram      ▼                  │ └──▶ FREE
 *    └───────────▶ ASKED   FREE                 └─ goes ──▶ GONE ── joined: yes ──▶ FREE, left is
 * said └──── joined: no ──▶ FREE  */
enum player_state { PLAYER_FREE, PLAYER_GUEST, PLAYER_ASKED, PLAYER_GONE, PLAYER_IN };

struct player {
    struct arena *arena;
    enum player_state state;
    int fd;                  /* of TCP; -1 = he is over UDP, or gone */
    int udp;                 /* the port's socket; -1 = he is over TCP */
    struct sockaddr_in peer; /* where he is */
    int64_t heard_ms;        /* when he came, then when he last said something */
    char key[KEY_LEN_MAX + 1];
    char name[NAME_LEN_MAX + 1]; /* his account */
    char in[LINE_LEN_MAX];       /* TCP: an unfinished line */
    size_t in_len;
};

struct arena {
    struct arena_options options;
    struct muster_room *room;
    int max_players;
    struct player *players;
    size_t n_places;
    bool emptied; /* the last player left since this was looked at */
};

int64_t arena_now_ms(void);

/* max_players places and some for guests. 0, or -1 when out of memory. */
int players_init(struct arena *arena, int max_players);
void players_done(struct arena *arena);

/* Players who are in, and those who wait for the agent's word. */
int players_in(const struct arena *arena);
int players_asked(const struct arena *arena);

/* Takes over an accepted connection; closes it when there is no place. */
void players_connected(struct arena *arena, int fd, const struct sockaddr_in *peer);

/* One datagram. The first of an address is a key. */
void players_datagram(struct arena *arena, int udp, const struct sockaddr_in *peer,
                      const char *bytes, size_t n);

/* Something can be read from this TCP player. */
void player_readable(struct player *player);

/* Sends those away who showed no key in time, or fell silent over UDP. */
void players_tick(struct arena *arena);

/* Sends the player who came with this key away. */
void players_kick(struct arena *arena, const char *key, const char *reason);
void players_drop_all(struct arena *arena, const char *why);

/* One line to everybody who is in. */
void players_say(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
