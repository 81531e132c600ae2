/* A client of Muster's HTTP API, on libcurl. Opened and closed by the verb that asks; used from one
 * thread.
 *
 * Where there are several nodes it finds whoever leads: one that is not there is left for the next,
 * a standby sends it on (net/nodes.h says whom it follows), and while the leader changes it asks
 * again for CLIENT_PATIENT_S. A change that may have been heard before the connection was lost is
 * sent again with the same Idempotency-Key, so the next leader gives its answer and does it once.
 *
 * libcurl is loaded when the first client is opened: see net/curl.h. */
#pragma once

#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "net/http.h"

#include <stdbool.h>
#include <stdint.h>

#define CLIENT_URL "http://127.0.0.1:9508"
#define CLIENT_SERVICE_DATA "/var/lib/muster" /* of the package's muster.service */

enum { CLIENT_WHY_MAX = 1024, CLIENT_TIMEOUT_S = 30, CLIENT_PATIENT_S = 15 };

struct client_settings {
    const char *url;          /* or several, with commas between them; NULL = MUSTER_URL of the
                                 environment, or CLIENT_URL */
    const char *token;        /* NULL = MUSTER_TOKEN, or what the data folder's admin.token holds */
    const char *data;         /* NULL = the usual one; its token goes to no other machine */
    const char *tls_ca;       /* NULL = the authorities this machine trusts */
    const char *tls_cert;     /* our own certificate … */
    const char *tls_key;      /* … and its key, where Muster wants one; both or neither */
    const char *url_option;   /* what the verb calls it, for advice; NULL = --url */
    const char *token_option; /* how to give one, for advice; NULL = --token or MUSTER_TOKEN */
    int stop_fd; /* when it becomes readable a call ends with CLIENT_STOPPED; -1 = none */
};

enum client_result {
    CLIENT_DONE,
    CLIENT_REFUSED,     /* Muster said no; why is its sentence */
    CLIENT_UNREACHABLE, /* nobody there, or nobody who speaks as Muster does */
    CLIENT_STOPPED,
};

/* What came back. Zeroed before the first call; each call frees what the last one left. */
struct client_answer {
    int status;        /* 0 = none */
    struct json *json; /* CLIENT_DONE: the body; NULL when it is empty */
    char why[CLIENT_WHY_MAX];
};

struct client;

/* On failure returns NULL, and why is a sentence about the settings (a URL, token or file that
 * cannot be). Nothing is asked yet. */
struct client *client_open(const struct client_settings *settings, char why[CLIENT_WHY_MAX]);
void client_close(struct client *c); /* NULL is fine */

/* The URL calls go to, without a slash at its end; another one after a call may be another's. */
const char *client_url(const struct client *c);

/* True when there are several nodes. */
bool client_has_several(const struct client *c);

/* True when the last call ended because no node leads now. */
bool client_is_leaderless(const struct client_answer *a);

/* True when it shows the data folder's token, which may do everything. */
bool client_is_local_admin(const struct client *c);

/* Where whoever asks now could get a token from, as a sentence; for a 401. */
const char *client_token_hint(const struct client *c);

/* Called at least once a second while an answer is waited for; NULL = nobody. */
void client_on_wait(struct client *c, void (*call)(void *user), void *user);

/* body may be NULL; path begins with "/". Answers within timeout_s. */
enum client_result client_call(struct client *c, enum http_method method, const char *path,
                               const struct buf *body, int timeout_s, struct client_answer *ret);

/* The same for what is done again by a repeat, key or not: once it may have been heard it is not
 * said to anybody else. */
enum client_result client_call_once(struct client *c, enum http_method method, const char *path,
                                    const struct buf *body, int timeout_s,
                                    struct client_answer *ret);

/* GETs a stream; each piece goes to `take` until that returns false (CLIENT_DONE). Silence of
 * silence_s, like every other end, is CLIENT_UNREACHABLE. last_id may be "". */
typedef bool client_take(void *user, struct str piece);
enum client_result client_stream(struct client *c, const char *path, const char *last_id,
                                 int silence_s, client_take *take, void *user,
                                 struct client_answer *ret);

/* GETs a text that may go on for ever; each piece goes to `take` until that returns false or the
 * text has ended (CLIENT_DONE). */
enum client_result client_read(struct client *c, const char *path, client_take *take, void *user,
                               struct client_answer *ret);

/* POSTs a file of that size, from where its descriptor stands, which must be able to go back there;
 * `sent` is told how far it is. Waits
 * for the answer for as long as something happens. */
typedef void client_sent(void *user, int64_t sent, int64_t size);
enum client_result client_upload(struct client *c, const char *path, int fd, int64_t size,
                                 client_sent *sent, void *user, struct client_answer *ret);

void client_answer_done(struct client_answer *a);

/* ── paths ─────────────────────────────────────────────────────────────────────────────────── */

/* Appends "?key=value", or "&key=value" when there is a query already; nothing when value is NULL.
 */
void client_put_query(struct buf *path, const char *key, const char *value);
