/* Muster's server-port client: what a game server links to be known to Muster, to report its load
 * and to be given matches. One header, one source file, libc and POSIX sockets, no threads.
 * Compiled with -DMUSTER_TLS and linked with GnuTLS it can speak TLS too.
 *
 * A struct muster_server belongs to whoever called muster_server_new and is used from one thread.
 * It holds one non-blocking socket, and the game's own loop drives it:
 *
 *     struct pollfd p = {.fd = muster_server_fd(m), .events = muster_server_events(m)};
 *     poll(&p, 1, muster_server_timeout_ms(m));
 *     muster_server_poll(m);
 *
 * Losing Muster is ordinary: matches are kept, the connection comes back by itself, and what Muster
 * has not answered is said again. Callbacks run only inside muster_server_poll; they may call any
 * function here except muster_server_poll and muster_server_free. Texts given to a callback are
 * valid until it returns. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 0 or a negative number, so that a function's int result is one of these. */
enum muster_error {
    MUSTER_OK = 0,
    /* muster_server_new */
    MUSTER_E_OPTIONS = -1,
    MUSTER_E_RESOLVE = -2,
    MUSTER_E_MEMORY = -3,
    /* why a connection ended */
    MUSTER_E_CONNECT = -4,
    MUSTER_E_CLOSED = -5,
    MUSTER_E_REFUSED = -6,
    MUSTER_E_PROTOCOL = -7,
    MUSTER_E_SILENT = -8,
    MUSTER_E_STUCK = -9,
    MUSTER_E_DROPPED = -10,
    /* why a call could not be taken */
    MUSTER_E_UNKNOWN_MATCH = -11,
    MUSTER_E_TEXT = -12,
    MUSTER_E_FULL = -13,
    MUSTER_E_RANGE = -14,
    /* TLS: why a connection ended; the others are of muster_server_new */
    MUSTER_E_TLS = -15,
    MUSTER_E_TLS_ABSENT = -16,
    MUSTER_E_TLS_CA = -17,
    MUSTER_E_TLS_CERTIFICATE = -18,
    /* why a connection ended: this node stands by for another, as its sentence says */
    MUSTER_E_STANDBY = -19,
};

/* A short sentence without a full stop. Never NULL. */
const char *muster_error_text(int error);

enum {
    MUSTER_MAX_ADDRESSES = 8,  /* of `server` */
    MUSTER_MAX_MATCHES = 1000, /* most matches one server may offer */
    MUSTER_MAX_LISTED = 255,   /* most lobbies one match list can name */
    MUSTER_MAX_VALIDATIONS = 64,
    MUSTER_MAX_LEFT = 64,
    MUSTER_MAX_TEXT = 1024,  /* bytes of one text on the wire, without its NUL */
    MUSTER_MAX_HELLO = 1000, /* bytes of token and ip together */
};

struct muster_options {
    /* Muster's server port: "127.0.0.1:11032", "[::1]:11032", "host:11032". Where several nodes can
     * stand in for each other, the ports of all of them with commas between them, at most
     * MUSTER_MAX_ADDRESSES: "10.0.0.1:11032,10.0.0.2:11032". Whoever leads is found among them. */
    const char *server;
    const char *token; /* enrolment token; NULL or "" where Muster runs with --dev */
    const char *ip;    /* where players reach this server */
    int32_t port;      /* 1024–65535 */
    int8_t region;
    int32_t max_matches; /* 1–MUSTER_MAX_MATCHES */

    /* TLS. Files are PEM and are read again for every connection, so that renewed ones are used.
     * Muster's certificate must be signed by tls_ca, be valid now and name the server. */
    const char *tls_ca;          /* NULL = plain TCP; a file, of one or more authorities */
    const char *tls_certificate; /* what Muster is shown where it asks; NULL = nothing */
    const char *tls_key;
    const char *tls_server_name; /* NULL = the host that is connected to, as `server` or a standby
                                    has it: a name or an IP address; else this for all of them */

    /* A match nobody followed up (no READY answered yes, no player admitted) is given up after
     * this. 0 = 150,000; negative = never, for games that neither say READY nor validate. Counted
     * only while Muster is there: its absence must not end a match. */
    int32_t unconfirmed_ms;

    int32_t heartbeat_ms; /* 0 = 10,000, what Muster expects; negative = none (to test Muster) */
    bool no_match_list;   /* never say which matches are held, as servers before the list did */
    bool late_answers; /* muster_match_answer also for a match Muster took back (to test Muster) */
    uint64_t jitter_seed;                  /* 0 = drawn; fixed in tests */
    int64_t (*clock_ms)(void *clock_user); /* never steps back; NULL = CLOCK_MONOTONIC */
    void *clock_user;
};

enum muster_answer { MUSTER_REFUSE = 0, MUSTER_ACCEPT = 1, MUSTER_LATER = 2 };

enum muster_cancel {
    MUSTER_CANCEL_TOLD = 0,        /* Muster took it back */
    MUSTER_CANCEL_UNCONFIRMED = 1, /* nothing followed within unconfirmed_ms */
};

struct muster_match {
    int32_t lobby;
    int8_t game_type;
    int8_t game_mode;
    const char *token; /* what its players will show */
};

/* Any of these may be NULL: without `allocate` every match is accepted, without the others the
 * news is not passed on. */
struct muster_callbacks {
    /* Registered; server_id is the same as before a lost connection where Muster knew us. */
    void (*registered)(void *user, int32_t server_id);

    /* The connection ended or could not be made; the next try is in retry_ms. A wrong token looks
     * like this too (MUSTER_E_REFUSED with Muster's sentence), and a certificate that is not
     * acceptable (MUSTER_E_TLS): it is tried again, slowly. Of several addresses the next is tried
     * at once (retry_ms 0), and so is the leader that a standby names (MUSTER_E_STANDBY), which
     * need not be in the list; the waiting begins when none of them was of use. */
    void (*disconnected)(void *user, enum muster_error why, const char *text, int64_t retry_ms);

    /* Called once per match that is not refused, however often Muster asks. MUSTER_LATER promises a
     * call of muster_match_answer; Muster waits 5 s. */
    enum muster_answer (*allocate)(void *user, const struct muster_match *match);

    /* The match is no longer held: send its players away. */
    void (*cancelled)(void *user, int32_t lobby, enum muster_cancel why);

    /* Answers; error is "" for a yes. */
    void (*ready_answered)(void *user, int32_t lobby, bool yes, const char *error);
    void (*validated)(void *user, int32_t lobby, int32_t account, uint64_t player, bool yes,
                      const char *error);
    void (*end_answered)(void *user, int32_t lobby, bool yes, const char *error);

    void (*kick)(void *user, int32_t lobby, int32_t account, const char *reason);

    /* Muster gives us no new matches while on; already acknowledged when this is called. */
    void (*drain)(void *user, bool on);
};

struct muster_server;

/* Copies options and callbacks; connects at the first muster_server_poll. The server's names are
 * looked up here, once, and that lookup may block; a numeric address never does. One that is not
 * found is left out, unless none is. On failure *ret is NULL. */
int muster_server_new(const struct muster_options *options,
                      const struct muster_callbacks *callbacks, void *user,
                      struct muster_server **ret);

/* Sends what the socket takes at once, then closes. NULL is allowed. */
void muster_server_free(struct muster_server *m);

/* What to wait for: a descriptor (-1 while there is none; it changes with every connection), its
 * poll(2) bits, and the milliseconds after which muster_server_poll has something to do anyway. */
int muster_server_fd(const struct muster_server *m);
short muster_server_events(const struct muster_server *m);
int muster_server_timeout_ms(const struct muster_server *m);

/* Does what can be done now; never blocks. May be called at any time, also for nothing. */
void muster_server_poll(struct muster_server *m);

/* Drops the connection at the next poll, unsent bytes included, and comes back like after any
 * loss: for a machine whose address changed. */
void muster_server_disconnect(struct muster_server *m);

/* "host:port" of this connection or try, and then of the last; "" before the first. Changes with
 * the next one. */
const char *muster_server_address(const struct muster_server *m);

/* 0 while not registered. */
int32_t muster_server_id(const struct muster_server *m);

/* Percent, 0–100; other values are brought into that range. Sent with the next heartbeat. */
void muster_server_set_load(struct muster_server *m, float cpu_percent, float memory_percent);

/* Matches held: asked or accepted, and not over. */
int32_t muster_server_match_count(const struct muster_server *m);

/* Reports n instead of the true count; negative = the true count again. For tests of Muster. */
void muster_server_set_match_count(struct muster_server *m, int32_t n);

/* Asks for no more matches (or for matches again); repeated until Muster has acknowledged it. While
 * on it is said on each new connection too: it is the process that drains, and a new one at the
 * same address does not unless it says so. */
void muster_server_drain(struct muster_server *m, bool on);
bool muster_server_drain_acknowledged(const struct muster_server *m);

/* What to add to the clock function's time to get Muster's Unix time, smoothed over heartbeats.
 * False while nothing is known. */
bool muster_server_clock_offset_ms(const struct muster_server *m, int64_t *ret);

/* Round trip of the last measured heartbeat; -1 before the first. */
int64_t muster_server_rtt_ms(const struct muster_server *m);

/* Settles a match that was answered with MUSTER_LATER. */
int muster_match_answer(struct muster_server *m, int32_t lobby, bool accept);

/* Players may come now. Accepts a match that is still to be answered. Repeated until answered. */
int muster_match_ready(struct muster_server *m, int32_t lobby);

/* May this account enter with the token it showed? The `validated` callback says, with `player`
 * given back as it is: the game's own number for whoever waits. Asked again after a lost
 * connection. MUSTER_E_TEXT means the token cannot be one: send the player away. */
int muster_match_validate(struct muster_server *m, int32_t lobby, int32_t account,
                          const char *token, uint64_t player);

/* An admitted account went away; it may be validated again while the match is held. */
int muster_match_player_left(struct muster_server *m, int32_t lobby, int32_t account);

/* The match is over and no longer held; reported until Muster has answered. winning_team 0 = none.
 */
int muster_match_end(struct muster_server *m, int32_t lobby, int8_t winning_team,
                     int32_t duration_s);

#ifdef __cplusplus
}
#endif
