/* Muster's room side: what a game server that was started by a Muster agent links to say that it is
 * ready, to let players in and to report who left. One header, one source file, libc and libzmq, no
 * threads of its own besides libzmq's. Linux.
 *
 * A struct muster_room belongs to whoever called muster_room_new and is used from one thread. The
 * game's own loop drives it through one descriptor, whichever way it waits:
 *
 *     when muster_room_fd(room) is readable:  muster_room_poll(room, 0);
 *
 * or, where there is nothing else to wait for, muster_room_poll(room, 1000) alone.
 *
 * Calls return at once and are sent by the next muster_room_poll. Their replies come as callbacks,
 * which run only inside muster_room_poll; they may call any function here except muster_room_poll
 * and muster_room_free. Texts given to a callback are valid until it returns. An agent that is away
 * is ordinary: calls wait, and what was not answered within 10 s is said again. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 0 or a negative number, so that a function's int result is one of these. */
enum muster_room_error {
    MUSTER_ROOM_OK = 0,
    /* muster_room_new */
    MUSTER_ROOM_E_ARGUMENTS = -1,
    MUSTER_ROOM_E_ENVIRONMENT = -2,
    MUSTER_ROOM_E_ENDPOINT = -3,
    MUSTER_ROOM_E_SYSTEM = -4,
    MUSTER_ROOM_E_MEMORY = -5,
    /* why a call could not be taken */
    MUSTER_ROOM_E_TEXT = -6,
    MUSTER_ROOM_E_SETTINGS = -7,
    MUSTER_ROOM_E_SIZE = -8,
    MUSTER_ROOM_E_FULL = -9,
};

/* A short sentence without a full stop. Never NULL. */
const char *muster_room_error_text(int error);

enum {
    MUSTER_ROOM_MAX_PORTS = 16,
    MUSTER_ROOM_MAX_MESSAGE = 64 * 1024,      /* bytes of one message, either way */
    MUSTER_ROOM_MAX_CALLS = 1024,             /* waiting for an answer */
    MUSTER_ROOM_MAX_CALL_BYTES = 1024 * 1024, /* … all together */
};

/* What the agent started us with. Texts live as long as the room. */
struct muster_room_start {
    const char *endpoint; /* as libzmq takes it: "ipc://…" */
    uint16_t ports[MUSTER_ROOM_MAX_PORTS];
    size_t n_ports;
    int max_players; /* 0 = not said */
    const char *room_id;
    const char *room_settings;   /* JSON object, "{}" when not said; muster_room_setting reads it */
    const char *server_settings; /* the same */
    const char *discovery_services; /* the same */
    const char *login_access_token; /* "" = the fleet asks for none */
};

/* The code of an answer that could not be understood. After a joined that ended so the seat may be
 * taken: say muster_room_left. */
enum { MUSTER_ROOM_MALFORMED = -1 };

/* How a call ended. */
struct muster_room_answer {
    int code;         /* 0 = yes; else the agent's error code, such as 404, 410 or -32602 */
    const char *text; /* … and its sentence; "" for a yes */

    /* Of a yes to muster_room_joined, else "". Texts that hold a NUL character are not accepted. */
    const char *account;
    const char *access_token;
    const char *scopes; /* "game,profile" */
    const char *info;   /* JSON: what the player's client said about him */
};

typedef void (*muster_room_reply)(void *user, const struct muster_room_answer *answer);

/* Any of these may be NULL. */
struct muster_room_callbacks {
    /* This player must go: he was banned, or took a seat elsewhere. Say muster_room_left of him as
     * of anybody. */
    void (*kick)(void *user, const char *key, const char *reason);
};

struct muster_room_options {
    int repeat_ms; /* an unanswered call is said again after this; 0 = 10,000 */
};

struct muster_room;

/* Reads argv[1] (a path, or an endpoint with ://), argv[2] (ports) and the environment; connects,
 * which does not wait for the agent. argv[3] and on are the game's own. options and callbacks may
 * be NULL; both are copied. On failure *ret is NULL. */
int muster_room_new(int argc, char *const argv[], const struct muster_room_options *options,
                    const struct muster_room_callbacks *callbacks, void *user,
                    struct muster_room **ret);

/* Gives what was sent 200 ms to reach the agent. Replies that are still to come are not called.
 * NULL is allowed. */
void muster_room_free(struct muster_room *room);

const struct muster_room_start *muster_room_started(const struct muster_room *room);

/* Writes the scalar member of a JSON object ("map", or "rules.rounds" inside of an object) as text:
 * a string without its quotes, a number or a boolean as it stands. False when there is none, when
 * it is no scalar or when it does not fit; *ret is "" then. size must not be 0. */
bool muster_room_setting(const char *settings, const char *name, char *ret, size_t size);

/* Readable whenever muster_room_poll has something to do, and until it was done; the same
 * descriptor as long as the room lives. For reading readiness only: never read or close it. */
int muster_room_fd(const struct muster_room *room);

/* Does what can be done now. If that was nothing, waits up to timeout_ms for something (negative =
 * for ever) and does that. */
void muster_room_poll(struct muster_room *room, int timeout_ms);

/* The game server is initialised and players may come. settings (a JSON object, or NULL) are merged
 * into the room's. A refusal means that the room was given up: the process should exit. */
int muster_room_ready(struct muster_room *room, const char *settings, muster_room_reply reply,
                      void *user);
bool muster_room_refused(const struct muster_room *room); /* ready was answered with an error */

/* A player showed this key. A yes makes his seat his until muster_room_left and says who he is.
 * With extend_token and extend_scopes (both or neither) his access token is extended.
 * MUSTER_ROOM_E_TEXT means that the key cannot be one: send the player away. */
int muster_room_joined(struct muster_room *room, const char *key, const char *extend_token,
                       const char *extend_scopes, muster_room_reply reply, void *user);

/* He is gone; the seat may be given to another. Right to say again. */
int muster_room_left(struct muster_room *room, const char *key, muster_room_reply reply,
                     void *user);

/* Replaces the room's settings by this JSON object. */
int muster_room_update_settings(struct muster_room *room, const char *settings,
                                muster_room_reply reply, void *user);

/* Is this game version still to be used? 404: it was turned off; 410: a newer deployment is there.
 * Either way the game goes on; it should exit when its players are gone. */
int muster_room_check_deployment(struct muster_room *room, muster_room_reply reply, void *user);

/* The agent asks for the status every few seconds and muster_room_poll answers that it is ok. After
 * muster_room_set_ok(room, false) it answers that it is not, and the agent ends the process. */
void muster_room_set_ok(struct muster_room *room, bool ok);

/* Calls that are not answered yet. */
size_t muster_room_waiting(const struct muster_room *room);

#ifdef __cplusplus
}
#endif
