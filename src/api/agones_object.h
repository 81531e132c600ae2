/* What Kubernetes says about GameServers, read: objects, pages of a list, lines of a watch, answers
 * to an allocation, and refusals. Pure: bytes in, values out. What is read is borrowed from its
 * JSON document, which the caller ends. */
#pragma once

#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "core/event.h"

#include <stdbool.h>
#include <stdint.h>

#define AGONES_TOKENS "quilkin.dev/tokens"
#define AGONES_TICKET "muster.dev/ticket"
#define AGONES_SERVER "muster.dev/server"
#define AGONES_SESSION "muster.dev/session"
#define AGONES_INSTANCE "muster.dev/instance"

enum {
    AGONES_NAME_MAX = 254,
    AGONES_LINE_MAX = 4 * 1024 * 1024, /* of a watch; etcd stores no object of half that size */
    AGONES_WHY_MAX = 256,
};

/* json_parse of something that holds GameServers, but for what nobody here reads: 0 stands in place
 * of each `spec` and `managedFields`, which are most of an object, and of no use to us. */
struct json *gameserver_parse(struct str text, char why[JSON_WHY_MAX]);

/* What of its life matters to us. */
enum gameserver_state {
    GAMESERVER_OTHER,     /* it is made, or waits for somebody */
    GAMESERVER_ALLOCATED, /* it plays */
    GAMESERVER_OVER,      /* it will never play again */
};

struct gameserver_object {
    struct str name;    /* 1..AGONES_NAME_MAX - 1 bytes */
    struct str version; /* resourceVersion */
    enum gameserver_state state;
    struct str said; /* … in its own word */
    struct str address;
    uint16_t ports[HOST_PORTS_MAX]; /* that of players first */
    int n_ports;
    struct str tokens;
    struct str instance;
    int64_t server; /* 0 = it does not carry our mark */
    int64_t session;
};

/* port: the name of the one that players use; "" = the first. False when it is no GameServer. */
bool gameserver_read(const struct json *v, const char *port, struct gameserver_object *ret);

/* A page of a list. items is an array; more is empty on the last page. */
struct gameserver_page {
    const struct json *items;
    struct str version;
    struct str more;
};
bool gameserver_page_read(const struct json *v, struct gameserver_page *ret);

enum watch_kind { WATCH_CHANGED, WATCH_DELETED, WATCH_BOOKMARK, WATCH_ERROR };

struct watch_event {
    enum watch_kind kind;
    struct gameserver_object object; /* BOOKMARK: only its version */
    int code;                        /* ERROR: as an HTTP status */
    struct str why;                  /* … in words */
};

/* One line. False when it is none. */
bool watch_event_read(const struct json *v, const char *port, struct watch_event *ret);

/* Cuts what comes into lines. Embedded; a zeroed one is empty. */
struct watch_lines {
    struct buf rest;
};

/* Gives each whole line, without its end, to `each`, until that says false. False then, and when a
 * line is longer than AGONES_LINE_MAX. */
bool watch_lines_take(struct watch_lines *l, struct str piece,
                      bool (*each)(void *user, struct str line), void *user);
void watch_lines_done(struct watch_lines *l);

enum allocated_state { ALLOCATED_YES, ALLOCATED_NO, ALLOCATED_CONTENTION };

struct allocated {
    enum allocated_state state;
    struct str name;
    struct str address;
    uint16_t ports[HOST_PORTS_MAX];
    int n_ports;
};

/* The answer to a GameServerAllocation. False when it is none. */
bool allocated_read(const struct json *v, const char *port, struct allocated *ret);

/* What a refusal says: the message of a Status, else the status itself. */
const char *agones_refusal(int status, struct str body, char dst[AGONES_WHY_MAX]);

/* ── tokens: texts with commas between them ────────────────────────────────────────────────── */

/* The next one of *rest, which is moved on; false at the end. Empty ones are passed over. */
bool tokens_next(struct str *rest, struct str *ret);
bool tokens_have(struct str tokens, struct str token);

/* Adds it (when it is not there), or takes it out wherever it stands. */
void tokens_change(struct buf *tokens, struct str token, bool on);

/* True when a is older than b, as far as one can tell: both are numbers. */
bool version_is_older(struct str a, struct str b);
