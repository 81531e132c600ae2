#include "api/nats_link.h"

#include "base/clock.h"
#include "base/log.h"

#include <dlfcn.h>
#include <nats/nats.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BACKOFF_FIRST_MS = 100,
    BACKOFF_LAST_MS = 10 * 1000,
    CONNECT_MS = 2000,
    PING_MS = 10 * 1000, /* a broker that is silent for three of these is gone */
    TEXT_MAX = 256,
    INBOX_MAX = 64,
};

/* ── libnats ───────────────────────────────────────────────────────────────────────────────── */

#define NATS_FUNCTIONS(X)                                                                          \
    X(natsStatus_GetText)                                                                          \
    X(natsInbox_Create)                                                                            \
    X(natsInbox_Destroy)                                                                           \
    X(natsOptions_Create)                                                                          \
    X(natsOptions_Destroy)                                                                         \
    X(natsOptions_SetServers)                                                                      \
    X(natsOptions_SetUserInfo)                                                                     \
    X(natsOptions_SetToken)                                                                        \
    X(natsOptions_SetUserCredentialsFromFiles)                                                     \
    X(natsOptions_SetSecure)                                                                       \
    X(natsOptions_LoadCATrustedCertificates)                                                       \
    X(natsOptions_SetName)                                                                         \
    X(natsOptions_SetTimeout)                                                                      \
    X(natsOptions_SetPingInterval)                                                                 \
    X(natsOptions_SetMaxReconnect)                                                                 \
    X(natsOptions_SetCustomReconnectDelay)                                                         \
    X(natsOptions_SetDisconnectedCB)                                                               \
    X(natsOptions_SetReconnectedCB)                                                                \
    X(natsOptions_SetClosedCB)                                                                     \
    X(natsConnection_Connect)                                                                      \
    X(natsConnection_Close)                                                                        \
    X(natsConnection_Destroy)                                                                      \
    X(natsConnection_FlushTimeout)                                                                 \
    X(natsConnection_Subscribe)                                                                    \
    X(natsConnection_PublishMsg)                                                                   \
    X(natsConnection_PublishRequest)                                                               \
    X(natsConnection_Publish)                                                                      \
    X(natsSubscription_SetPendingLimits)                                                           \
    X(natsSubscription_SetOnCompleteCB)                                                            \
    X(natsSubscription_Destroy)                                                                    \
    X(natsMsg_Create)                                                                              \
    X(natsMsg_Destroy)                                                                             \
    X(natsMsg_GetSubject)                                                                          \
    X(natsMsg_GetReply)                                                                            \
    X(natsMsg_GetData)                                                                             \
    X(natsMsg_GetDataLength)                                                                       \
    X(natsMsgHeader_Set)                                                                           \
    X(natsMsgHeader_Get)

static struct functions {
#define X(name) __typeof__(name) *name;
    NATS_FUNCTIONS(X)
#undef X
} nats;

static const struct {
    const char *name;
    size_t at;
} wanted[] = {
#define X(name) {#name, offsetof(struct functions, name)},
    NATS_FUNCTIONS(X)
#undef X
};

static bool find_functions(void *library)
{
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        void *function = dlsym(library, wanted[i].name);
        memcpy((char *)&nats + wanted[i].at, &function, sizeof(function));
        if (!function)
            return false;
    }
    return true;
}

const char *nats_load(void)
{
    static bool loaded;
    if (loaded)
        return NULL;
    void *library = dlopen("libnats.so.3.4", RTLD_NOW | RTLD_LOCAL);
    loaded = library && find_functions(library);
    return loaded ? NULL : "libnats.so.3.4 cannot be loaded; install the package libnats3.4";
}

/* ── the queues ────────────────────────────────────────────────────────────────────────────── */

enum news { NEWS_MESSAGE, NEWS_UP, NEWS_DOWN };

struct incoming {
    enum news news;
    natsMsg *message;
};

/* In one piece: the texts follow, each but the body with a NUL. */
struct outgoing {
    struct outgoing *next;
    uint32_t reply; /* offsets into text; 0 = none */
    uint32_t id;
    uint32_t why;
    uint32_t body;
    uint32_t body_len;
    char text[]; /* begins with the subject */
};

struct nats_link {
    struct nats_hooks hooks;
    natsOptions *options;
    char inbox[INBOX_MAX];
    int64_t reconnected;
    bool was_up;
    bool started;
    bool ended;
    uv_async_t wake;
    struct outgoing *turn; /* what this turn of the loop sends; it is handed over in one piece */
    struct outgoing **turn_end;

    /* Shared with the threads. */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* something to send, closed, complete, or an end */
    struct buf in;          /* of struct incoming */
    struct outgoing *out;
    struct outgoing **out_end;
    char why[TEXT_MAX]; /* of the last time it went down */
    bool stopping;
    bool closed;   /* libnats has given the connection up */
    bool complete; /* no message of the subscription will come any more */

    /* Our thread's. */
    pthread_t thread;
    natsConnection *connection;
    natsSubscription *subscription;
    struct buf drained; /* the loop's: swapped with `in` */
};

static void come_in(struct nats_link *l, enum news news, natsMsg *message)
{
    pthread_mutex_lock(&l->lock);
    bool taken = !l->stopping;
    bool first = l->in.len == 0;
    if (taken)
        buf_append(&l->in, &(struct incoming){news, message}, sizeof(struct incoming));
    if (taken && first)
        uv_async_send(&l->wake); /* under the lock: the handle is open while nobody stops */
    pthread_mutex_unlock(&l->lock);
    if (!taken && message)
        nats.natsMsg_Destroy(message);
}

static void go_down(struct nats_link *l, const char *why)
{
    pthread_mutex_lock(&l->lock);
    snprintf(l->why, sizeof(l->why), "%s", why ? why : "the connection was lost");
    pthread_mutex_unlock(&l->lock);
    come_in(l, NEWS_DOWN, NULL);
}

/* ── on libnats' threads ───────────────────────────────────────────────────────────────────── */

static void on_message(natsConnection *c, natsSubscription *s, natsMsg *message, void *user)
{
    (void)c;
    (void)s;
    come_in(user, NEWS_MESSAGE, message);
}

static void on_disconnected(natsConnection *c, void *user)
{
    (void)c;
    go_down(user, NULL);
}

static void on_reconnected(natsConnection *c, void *user)
{
    (void)c;
    come_in(user, NEWS_UP, NULL);
}

static void on_closed(natsConnection *c, void *user)
{
    (void)c;
    struct nats_link *l = user;
    pthread_mutex_lock(&l->lock);
    l->closed = true;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

static void on_complete(void *user)
{
    struct nats_link *l = user;
    pthread_mutex_lock(&l->lock);
    l->complete = true;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

static int64_t backoff_ms(int attempts)
{
    int64_t ms = BACKOFF_FIRST_MS;
    for (int i = 1; i < attempts && ms < BACKOFF_LAST_MS; i++)
        ms *= 2;
    ms = ms < BACKOFF_LAST_MS ? ms : BACKOFF_LAST_MS;
    /* Half of it by chance, so that those whom a broker lost together do not come together. */
    return ms / 2 + clock_monotonic_us() % (ms / 2 + 1);
}

static int64_t on_delay(natsConnection *c, int attempts, void *user)
{
    (void)c;
    (void)user;
    return backoff_ms(attempts);
}

/* ── our thread ────────────────────────────────────────────────────────────────────────────── */

static struct timespec in_ms(int64_t ms)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += ms / 1000;
    at.tv_nsec += ms % 1000 * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return at;
}

static void publish(struct nats_link *l, const struct outgoing *o)
{
    const char *reply = o->reply ? o->text + o->reply : NULL;
    const char *body = o->text + o->body;
    int len = (int)o->body_len;
    natsMsg *message = NULL;
    if (!o->id && !o->why) {
        if (reply)
            (void)nats.natsConnection_PublishRequest(l->connection, o->text, reply, body, len);
        else
            (void)nats.natsConnection_Publish(l->connection, o->text, body, len);
        return;
    }
    if (nats.natsMsg_Create(&message, o->text, reply, body, len) != NATS_OK)
        return;
    if (o->id)
        (void)nats.natsMsgHeader_Set(message, "Nats-Msg-Id", o->text + o->id);
    if (o->why)
        (void)nats.natsMsgHeader_Set(message, "Muster-Error", o->text + o->why);
    (void)nats.natsConnection_PublishMsg(l->connection, message);
    nats.natsMsg_Destroy(message);
}

static void publish_all(struct nats_link *l, struct outgoing *o)
{
    while (o) {
        struct outgoing *next = o->next;
        if (l->connection)
            publish(l, o);
        free(o);
        o = next;
    }
}

static bool connect_once(struct nats_link *l)
{
    char all[INBOX_MAX + 4];
    snprintf(all, sizeof(all), "%s.>", l->inbox);
    pthread_mutex_lock(&l->lock);
    l->closed = l->complete = false;
    pthread_mutex_unlock(&l->lock);
    natsStatus s = nats.natsConnection_Connect(&l->connection, l->options);
    if (s == NATS_OK)
        s = nats.natsConnection_Subscribe(&l->subscription, l->connection, all, on_message, l);
    if (s == NATS_OK)
        s = nats.natsSubscription_SetPendingLimits(l->subscription, -1, -1);
    if (s == NATS_OK)
        s = nats.natsSubscription_SetOnCompleteCB(l->subscription, on_complete, l);
    if (s == NATS_OK)
        return true;
    go_down(l, nats.natsStatus_GetText(s));
    return false;
}

/* Returns when libnats will call back no more; false when it does not say so in time. */
static bool disconnect(struct nats_link *l)
{
    struct timespec until = in_ms(NATS_LINK_LAST_MS);
    if (!l->connection)
        return true;
    bool subscribed = l->subscription != NULL;
    nats.natsConnection_Close(l->connection);
    pthread_mutex_lock(&l->lock);
    int err = 0;
    while (err == 0 && (!l->closed || (subscribed && !l->complete)))
        err = pthread_cond_timedwait(&l->changed, &l->lock, &until);
    pthread_mutex_unlock(&l->lock);
    nats.natsSubscription_Destroy(l->subscription);
    nats.natsConnection_Destroy(l->connection);
    l->subscription = NULL;
    l->connection = NULL;
    return err == 0;
}

static struct outgoing *take_out(struct nats_link *l)
{
    struct outgoing *o = l->out;
    l->out = NULL;
    l->out_end = &l->out;
    return o;
}

/* Until it is closed, or shall be. */
static void serve(struct nats_link *l)
{
    bool go_on = true;
    come_in(l, NEWS_UP, NULL);
    while (go_on) {
        pthread_mutex_lock(&l->lock);
        while (!l->out && !l->stopping && !l->closed)
            pthread_cond_wait(&l->changed, &l->lock);
        struct outgoing *o = take_out(l);
        go_on = !l->stopping && !l->closed;
        pthread_mutex_unlock(&l->lock);
        publish_all(l, o);
    }
}

/* True when it shall stop. */
static bool wait_for(struct nats_link *l, int64_t ms)
{
    struct timespec until = in_ms(ms);
    pthread_mutex_lock(&l->lock);
    int err = 0;
    while (err == 0 && !l->stopping)
        err = pthread_cond_timedwait(&l->changed, &l->lock, &until);
    bool stop = l->stopping;
    struct outgoing *o = take_out(l);
    pthread_mutex_unlock(&l->lock);
    publish_all(l, o); /* there is no connection: they are dropped */
    return stop;
}

/* The value is true when nobody else will touch the link any more. */
static void *run(void *user)
{
    struct nats_link *l = user;
    bool clean = true;
    for (int attempts = 1;; attempts++) {
        if (connect_once(l)) {
            attempts = 0;
            serve(l);
            pthread_mutex_lock(&l->lock);
            bool stopping = l->stopping;
            pthread_mutex_unlock(&l->lock);
            if (stopping)
                (void)nats.natsConnection_FlushTimeout(l->connection, NATS_LINK_LAST_MS);
            else
                go_down(l, "the broker does not let us in");
        }
        clean = disconnect(l) && clean;
        if (wait_for(l, backoff_ms(attempts)))
            return clean ? l : NULL;
    }
}

/* ── on the loop ───────────────────────────────────────────────────────────────────────────── */

static struct str text_of(const char *z)
{
    return z ? str_of(z) : STR("");
}

/* Only the broker's own messages have no body and a head. */
static void read_status(natsMsg *message, struct nats_heard *m)
{
    const char *text = NULL;
    m->missing = -1;
    if (m->body.len > 0 || nats.natsMsgHeader_Get(message, "Status", &text) != NATS_OK)
        return;
    m->status = (int)strtol(text, NULL, 10);
    if (nats.natsMsgHeader_Get(message, "Nats-Pending-Messages", &text) == NATS_OK)
        m->missing = (int)strtol(text, NULL, 10);
}

static void hear(struct nats_link *l, natsMsg *message)
{
    int len = nats.natsMsg_GetDataLength(message);
    struct nats_heard m = {
        .subject = text_of(nats.natsMsg_GetSubject(message)),
        .reply = text_of(nats.natsMsg_GetReply(message)),
        .body = {nats.natsMsg_GetData(message), len > 0 ? (size_t)len : 0},
    };
    read_status(message, &m);
    l->hooks.heard(l->hooks.user, &m);
}

static void tell(struct nats_link *l, const struct incoming *i, const char *why)
{
    switch (i->news) {
    case NEWS_MESSAGE:
        hear(l, i->message);
        break;
    case NEWS_UP:
        l->reconnected += l->was_up;
        l->was_up = true;
        l->hooks.up(l->hooks.user);
        break;
    case NEWS_DOWN:
        l->hooks.down(l->hooks.user, why);
        break;
    }
}

/* In one piece, and not message by message: each would wake our thread, and switching to it costs
 * more than the message. */
static void hand_over(struct nats_link *l)
{
    if (!l->turn)
        return;
    pthread_mutex_lock(&l->lock);
    *l->out_end = l->turn;
    l->out_end = l->turn_end;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    l->turn = NULL;
    l->turn_end = &l->turn;
}

static void on_wake(uv_async_t *handle)
{
    struct nats_link *l = handle->data;
    char why[TEXT_MAX];
    pthread_mutex_lock(&l->lock);
    struct buf in = l->in;
    l->in = l->drained;
    memcpy(why, l->why, sizeof(why));
    pthread_mutex_unlock(&l->lock);
    const struct incoming *all = (const struct incoming *)(const void *)in.data;
    for (size_t i = 0; i < in.len / sizeof(*all); i++) {
        if (!l->ended)
            tell(l, &all[i], why);
        if (all[i].message)
            nats.natsMsg_Destroy(all[i].message);
    }
    buf_clear(&in);
    l->drained = in;
    hand_over(l);
}

/* Appends it with a NUL and returns where it is. */
static uint32_t put_text(struct outgoing *o, uint32_t *at, struct str s)
{
    uint32_t begin = *at;
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.at[i];
        o->text[begin + i] = (char)(c < ' ' ? ' ' : c);
    }
    o->text[begin + s.len] = '\0';
    *at += (uint32_t)s.len + 1;
    return begin;
}

void nats_link_send(struct nats_link *l, const struct nats_sent *m)
{
    struct str subject = str_of(m->subject);
    struct outgoing *o =
        xmalloc(sizeof(*o) + subject.len + m->reply.len + m->id.len + m->why.len + m->body.len + 4);
    *o = (struct outgoing){.body_len = (uint32_t)m->body.len};
    uint32_t at = 0;
    (void)put_text(o, &at, subject);
    o->reply = m->reply.len > 0 ? put_text(o, &at, m->reply) : 0;
    o->id = m->id.len > 0 ? put_text(o, &at, m->id) : 0;
    o->why = m->why.len > 0 ? put_text(o, &at, m->why) : 0;
    o->body = at;
    if (m->body.len > 0)
        memcpy(o->text + at, m->body.at, m->body.len);
    if (!l->turn)
        uv_async_send(&l->wake); /* the loop's next turn */
    *l->turn_end = o;
    l->turn_end = &o->next;
}

const char *nats_link_inbox(const struct nats_link *l)
{
    return l->inbox;
}

int64_t nats_link_reconnected(const struct nats_link *l)
{
    return l->reconnected;
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

static bool given(const char *text)
{
    return text && *text;
}

static natsStatus set_who(natsOptions *o, const struct nats_config *config)
{
    natsStatus s = NATS_OK;
    if (given(config->credentials_file))
        s = nats.natsOptions_SetUserCredentialsFromFiles(o, config->credentials_file, NULL);
    if (s == NATS_OK && given(config->user))
        s = nats.natsOptions_SetUserInfo(o, config->user, config->password ? config->password : "");
    if (s == NATS_OK && given(config->token))
        s = nats.natsOptions_SetToken(o, config->token);
    if (s == NATS_OK && given(config->ca_file))
        s = nats.natsOptions_SetSecure(o, true);
    return s;
}

static natsStatus set_manner(struct nats_link *l)
{
    natsOptions *o = l->options;
    natsStatus s = nats.natsOptions_SetName(o, "muster");
    if (s == NATS_OK)
        s = nats.natsOptions_SetTimeout(o, CONNECT_MS);
    if (s == NATS_OK)
        s = nats.natsOptions_SetPingInterval(o, PING_MS);
    if (s == NATS_OK)
        s = nats.natsOptions_SetMaxReconnect(o, -1);
    if (s == NATS_OK)
        s = nats.natsOptions_SetCustomReconnectDelay(o, on_delay, NULL);
    if (s == NATS_OK)
        s = nats.natsOptions_SetDisconnectedCB(o, on_disconnected, l);
    if (s == NATS_OK)
        s = nats.natsOptions_SetReconnectedCB(o, on_reconnected, l);
    if (s == NATS_OK)
        s = nats.natsOptions_SetClosedCB(o, on_closed, l);
    return s;
}

/* NULL, or a sentence in why. */
static const char *set_options(struct nats_link *l, const struct nats_config *config, char *why)
{
    natsStatus s = nats.natsOptions_Create(&l->options);
    if (s == NATS_OK)
        s = nats.natsOptions_SetServers(l->options, (const char **)config->urls,
                                        (int)config->n_urls);
    if (s == NATS_OK)
        s = set_who(l->options, config);
    if (s == NATS_OK)
        s = set_manner(l);
    if (s != NATS_OK) {
        snprintf(why, NATS_WHY_MAX, "Cannot use NATS: %s", nats.natsStatus_GetText(s));
        return why;
    }
    if (given(config->ca_file) &&
        nats.natsOptions_LoadCATrustedCertificates(l->options, config->ca_file) != NATS_OK) {
        snprintf(why, NATS_WHY_MAX, "Cannot use NATS: %.160s holds no certificates",
                 config->ca_file);
        return why;
    }
    return NULL;
}

static void name_inbox(struct nats_link *l)
{
    natsInbox *inbox = NULL;
    if (nats.natsInbox_Create(&inbox) == NATS_OK)
        snprintf(l->inbox, sizeof(l->inbox), "%s", inbox);
    nats.natsInbox_Destroy(inbox);
}

struct nats_link *nats_link_new(struct loop *loop, const struct nats_config *config,
                                const struct nats_hooks *hooks, char why[NATS_WHY_MAX])
{
    const char *missing = nats_load();
    if (missing) {
        snprintf(why, NATS_WHY_MAX, "Cannot use NATS: %s", missing);
        return NULL;
    }
    struct nats_link *l = xcalloc(1, sizeof(*l));
    l->hooks = *hooks;
    if (set_options(l, config, why)) {
        nats.natsOptions_Destroy(l->options);
        free(l);
        return NULL;
    }
    name_inbox(l);
    l->out_end = &l->out;
    l->turn_end = &l->turn;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&l->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&l->lock, NULL);
    uv_async_init(&loop->uv, &l->wake, on_wake);
    l->wake.data = l;
    return l;
}

void nats_link_start(struct nats_link *l)
{
    l->started = pthread_create(&l->thread, NULL, run, l) == 0;
    if (!l->started)
        log_line(LOG_ERROR, "no thread for NATS", "%s", "");
}

static void free_link(uv_handle_t *handle)
{
    struct nats_link *l = handle->data;
    on_wake(&l->wake); /* messages nobody hears any more */
    publish_all(l, l->out);
    nats.natsOptions_Destroy(l->options);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
    buf_done(&l->in);
    buf_done(&l->drained);
    free(l);
}

static void keep_link(uv_handle_t *handle)
{
    (void)handle;
}

void nats_link_free(struct nats_link *l)
{
    if (!l)
        return;
    void *clean = l;
    l->ended = true;
    hand_over(l);
    if (l->started) {
        pthread_mutex_lock(&l->lock);
        l->stopping = true;
        pthread_cond_broadcast(&l->changed);
        pthread_mutex_unlock(&l->lock);
        pthread_join(l->thread, &clean);
    }
    /* A thread of libnats that did not end in time may still come: it must find the memory. */
    uv_close((uv_handle_t *)&l->wake, clean ? free_link : keep_link);
}
