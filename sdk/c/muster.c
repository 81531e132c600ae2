/* One connection to Muster's server port, and the matches it is about.
 *
 * Two kinds of things are sent. Replies (ACKs, PONG, heartbeats) go straight into the output buffer
 * and die with the connection: Muster asks again. Everything the game wants Muster to know (READY,
 * MATCH_ENDED, validations, players who left, drain) is only noted in a table by the call, written
 * by pump() when there is room, and noted again as unsaid when the connection is lost. So a call
 * never fails because Muster is away, and the tables bound what can pile up.
 *
 * The frames are coded here by hand from the protocol's description and share nothing with Muster's
 * own codec: each is the other's check. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "muster.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifdef MUSTER_TLS
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#endif

enum {
    FRAME_MAX = 16384,  /* largest value of the length field */
    OUT_MAX = 65536,    /* output buffer */
    OUT_PUMP = 32768,   /* pump() leaves the rest to replies */
    READ_ROUNDS = 4,    /* reads per poll, so that Muster cannot starve the game's loop */
    HOST_ADDRESSES = 4, /* of one host in the list */
    ADDRESSES = MUSTER_MAX_ADDRESSES * HOST_ADDRESSES,
    HOST_MAX = 256,
    PORT_MAX = 8,
    COUNT_MAX = 1000000,

    CONNECT_MS = 5000,
    CONNECT_ONE_OF_MS = 2000, /* … where another address could be tried meanwhile */
    HOPS_MAX = 3,             /* leaders that are believed in one round */
    HANDSHAKE_MS = 10000,
    HEARTBEAT_MS = 10000,
    UNCONFIRMED_MS = 150000,
    GREETING_ONE_OF_MS = 3000,
    PING_MS = 10000,       /* nothing heard for so long: ask */
    SILENT_MS = 30000,     /* still nothing: gone */
    PING_ONE_OF_MS = 5000, /* where another may be leading already */
    SILENT_ONE_OF_MS = 10000,
    REPEAT_MS = 10000, /* READY and MATCH_ENDED are repeated until answered */
    BACKOFF_FIRST_MS = 200,
    BACKOFF_MAX_MS = 10000,
    STEADY_MS = 10000,    /* a connection that lasted this long resets the back-off */
    FAILURES_GREETED = 2, /* one that was greeted brings it back to 800 ms */
    FAILURES_STANDBY = 3, /* a standby that answers, to 1,600 ms: somebody is about to lead */
    CLOCK_STEP_MS = 1000, /* a larger difference is a clock that was set, not noise */
    TIMEOUT_MAX_MS = 60000,
};

enum command {
    PING = 0x2A00,
    PONG = 0x2A01,
    ERROR_TEXT = 0x2AFF,
    HANDSHAKE = 0x1000,
    HANDSHAKE_RESPONSE = 0x1001,
    HEARTBEAT = 0x1002,
    HEARTBEAT_ACK = 0x1003,
    ALLOCATE_MATCH = 0x1004,
    ALLOCATE_MATCH_ACK = 0x1005,
    READY_FOR_MATCH = 0x1006,
    READY_FOR_MATCH_RESPONSE = 0x1007,
    CANCEL_MATCH = 0x1008,
    CANCEL_MATCH_ACK = 0x1009,
    VALIDATE_TOKEN = 0x100A,
    VALIDATE_TOKEN_RESPONSE = 0x100B,
    MATCH_ENDED = 0x100C,
    MATCH_ENDED_RESPONSE = 0x100D,
    PLAYER_LEFT = 0x100E,
    DRAIN = 0x100F,
    DRAIN_ACK = 0x1010,
    MATCH_LIST = 0x1011,
    KICK_PLAYER = 0x1012,
};

/*                                     ┌─ with TLS ─▶ SECURING ─┐
 *  WAITING ──due──▶ CONNECTING ──connected─────────────────────────▶ GREETING ──yes──▶ REGISTERED
 *     ▲                 │                        │                     │                 │
 *     └────────── any failure: due is at once ───┴─────────────────────┴─────────────────┘
 *                 or after a back-off, as plan_retry says  */
enum link_state { LINK_WAITING, LINK_CONNECTING, LINK_SECURING, LINK_GREETING, LINK_REGISTERED };

/*            later                answered yes              the game, or nobody came
 *  FREE ───────────────▶ ASKED ───────────────▶ HELD ───────────────────────▶ ENDING
 *    │                     │ no, CANCEL,         │ CANCEL                        │ answered,
 *    │ accepted at once    ▼ nobody came         ▼                               ▼ CANCEL
 *    └───────────▶ HELD   FREE                 FREE                            FREE  */
enum match_state { MATCH_FREE, MATCH_ASKED, MATCH_HELD, MATCH_ENDING };

struct match {
    enum match_state state;
    int32_t lobby;
    char *token;
    bool confirmed;   /* READY was answered yes or a player was admitted */
    bool ready_owed;  /* READY is to be said and not answered */
    int8_t winner;    /* of MATCH_ENDED */
    int32_t lasted_s; /* of MATCH_ENDED */
    int64_t due_ms;   /* READY or MATCH_ENDED: when it is to be said (again) */
    int64_t expires_ms;
    uint64_t order; /* ENDING: which came first */
};

struct validation {
    int32_t lobby;
    int32_t account;
    uint64_t player;
    char *token;
    bool sent; /* on this connection */
};

struct departure {
    int32_t lobby;
    int32_t account;
};

struct address {
    struct sockaddr_storage name;
    socklen_t len;
    size_t host; /* whose it is */
};

struct muster_server {
    struct muster_options options; /* its strings are ours */
    struct muster_callbacks calls;
    void *user;

    char hosts[MUSTER_MAX_ADDRESSES][HOST_MAX]; /* without their ports */
    size_t n_hosts;
    struct address addresses[ADDRESSES];
    size_t n_addresses;
    size_t next_address;

    /* A round is each address of the list once, and a few leaders that were named on the way. */
    size_t tried;
    int hops;
    bool standby_spoke; /* in this round … */
    bool in_cell;       /* … or ever: there are several nodes, whatever the list says */
    bool has_named;     /* a standby said where the leader is: that is tried next */
    struct address named;
    char named_host[HOST_MAX];
    char host[HOST_MAX]; /* of this connection: TLS wants a certificate for it */
    char address[HOST_MAX + PORT_MAX + 3];

    enum link_state link;
    int fd;
    struct tls *tls;          /* of this connection; NULL = plain, or not that far */
    enum muster_error failed; /* noticed, not yet acted upon */
    char why[256];
    int failures; /* in a row, for the back-off */
    uint64_t random;
    int64_t until_ms; /* WAITING: next try; CONNECTING, GREETING: deadline */
    int64_t registered_ms;
    int64_t heard_ms;
    bool pinged; /* since something was heard */

    int32_t id;
    int64_t heartbeat_due_ms;
    int64_t asked_ms; /* when the handshake or the last heartbeat left */
    int heartbeats_open;
    int64_t rtt_ms;
    enum { CLOCK_UNKNOWN, CLOCK_GREETED, CLOCK_MEASURED } clock;
    int64_t offset_us;

    float cpu;
    float memory;
    int32_t count_told; /* -1 = the true one */
    bool drain_on;      /* what the game asked for last */
    bool drain_owed;    /* not acknowledged */
    bool drain_sent;    /* on this connection */

    struct match *matches; /* 2 · max_matches: as many held as may be, as many ending */
    size_t n_matches;
    uint64_t ends;
    struct validation validations[MUSTER_MAX_VALIDATIONS]; /* oldest first */
    size_t n_validations;
    struct departure left[MUSTER_MAX_LEFT]; /* oldest first */
    size_t n_left;

    uint8_t in[2 + FRAME_MAX];
    size_t in_len;
    uint8_t out[OUT_MAX];
    size_t out_len;
};

const char *muster_error_text(int error)
{
    switch ((enum muster_error)error) {
    case MUSTER_OK:
        return "no error";
    case MUSTER_E_OPTIONS:
        return "an option is missing or out of range";
    case MUSTER_E_RESOLVE:
        return "Muster's address cannot be resolved";
    case MUSTER_E_MEMORY:
        return "out of memory";
    case MUSTER_E_CONNECT:
        return "cannot reach Muster";
    case MUSTER_E_CLOSED:
        return "Muster closed the connection";
    case MUSTER_E_REFUSED:
        return "Muster refused";
    case MUSTER_E_PROTOCOL:
        return "Muster sent something malformed";
    case MUSTER_E_SILENT:
        return "Muster does not answer";
    case MUSTER_E_STUCK:
        return "Muster does not read what is sent";
    case MUSTER_E_DROPPED:
        return "the game dropped the connection";
    case MUSTER_E_UNKNOWN_MATCH:
        return "no such match is held";
    case MUSTER_E_TEXT:
        return "the text is too long or not UTF-8";
    case MUSTER_E_FULL:
        return "too many are waiting for an answer";
    case MUSTER_E_RANGE:
        return "a number is out of range";
    case MUSTER_E_TLS:
        return "TLS with Muster failed";
    case MUSTER_E_TLS_ABSENT:
        return "the SDK was built without TLS (-DMUSTER_TLS)";
    case MUSTER_E_TLS_CA:
        return "the authority's certificate cannot be read or is none in PEM";
    case MUSTER_E_TLS_CERTIFICATE:
        return "our certificate or its key cannot be read, is none in PEM, or they do not belong "
               "together";
    case MUSTER_E_STANDBY:
        return "this node of Muster does not lead";
    }
    return "unknown error";
}

static int64_t machine_ms(void *unused)
{
    (void)unused;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int64_t now_ms(const struct muster_server *m)
{
    return m->options.clock_ms(m->options.clock_user);
}

/* Notes the first reason why this connection must end; poll acts on it. */
static void fail(struct muster_server *m, enum muster_error why, const char *text)
{
    if (m->failed)
        return;
    m->failed = why;
    snprintf(m->why, sizeof(m->why), "%s", text);
}

/* Length of the well-formed UTF-8 sequence at the front of s, 0 when there is none. */
static size_t utf8_sequence(const unsigned char *s)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = s[0] < 0x80             ? 1
               : (s[0] & 0xE0) == 0xC0 ? 2
               : (s[0] & 0xF0) == 0xE0 ? 3
               : (s[0] & 0xF8) == 0xF0 ? 4
                                       : 0;
    if (n < 2)
        return n;
    uint32_t c = s[0] & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80) /* also stops at the NUL */
            return 0;
        c = c << 6 | (s[i] & 0x3Fu);
    }
    bool surrogate = c >= 0xD800 && c <= 0xDFFF;
    return c < least[n] || c > 0x10FFFF || surrogate ? 0 : n;
}

static bool text_allowed(const char *s)
{
    if (strnlen(s, MUSTER_MAX_TEXT + 1) > MUSTER_MAX_TEXT)
        return false;
    const unsigned char *at = (const unsigned char *)s;
    while (*at) {
        size_t n = utf8_sequence(at);
        if (n == 0)
            return false;
        at += n;
    }
    return true;
}

/* A frame under construction at the end of the output buffer; overflow is noted, not written. */
struct writer {
    struct muster_server *m;
    size_t start;
    size_t at;
};

static void put(struct writer *w, const void *data, size_t n)
{
    if (n <= OUT_MAX - w->at)
        memcpy(w->m->out + w->at, data, n);
    else
        fail(w->m, MUSTER_E_STUCK, muster_error_text(MUSTER_E_STUCK));
    w->at = n <= OUT_MAX - w->at ? w->at + n : OUT_MAX;
}

static void put_8(struct writer *w, int8_t v)
{
    put(w, &v, 1);
}

static void put_16(struct writer *w, uint16_t v)
{
    uint8_t b[2] = {(uint8_t)v, (uint8_t)(v >> 8)};
    put(w, b, 2);
}

static void put_32(struct writer *w, int32_t v)
{
    uint32_t u = (uint32_t)v;
    uint8_t b[4] = {(uint8_t)u, (uint8_t)(u >> 8), (uint8_t)(u >> 16), (uint8_t)(u >> 24)};
    put(w, b, 4);
}

static void put_float(struct writer *w, float v)
{
    int32_t bits;
    memcpy(&bits, &v, sizeof(bits));
    put_32(w, bits);
}

static void put_text(struct writer *w, const char *s)
{
    put(w, s, strlen(s) + 1);
}

static struct writer frame_open(struct muster_server *m, enum command code)
{
    struct writer w = {.m = m, .start = m->out_len, .at = m->out_len};
    put_16(&w, 0);
    put_16(&w, (uint16_t)code);
    return w;
}

static void frame_close(struct writer *w)
{
    if (w->m->failed)
        return;
    size_t length = w->at - w->start - 2;
    assert(length <= FRAME_MAX);
    w->m->out[w->start] = (uint8_t)length;
    w->m->out[w->start + 1] = (uint8_t)(length >> 8);
    w->m->out_len = w->at;
}

static void send_empty(struct muster_server *m, enum command code)
{
    struct writer w = frame_open(m, code);
    frame_close(&w);
}

/* ALLOCATE_MATCH_ACK and CANCEL_MATCH_ACK. */
static void send_ack(struct muster_server *m, enum command code, bool yes, int32_t lobby)
{
    struct writer w = frame_open(m, code);
    put_8(&w, yes ? 1 : 0);
    put_32(&w, lobby);
    frame_close(&w);
}

static void send_flag(struct muster_server *m, enum command code, bool on)
{
    struct writer w = frame_open(m, code);
    put_8(&w, on ? 1 : 0);
    frame_close(&w);
}

static void send_handshake(struct muster_server *m)
{
    const struct muster_options *o = &m->options;
    struct writer w = frame_open(m, HANDSHAKE);
    put_text(&w, o->token);
    put_text(&w, o->ip);
    put_32(&w, o->port);
    put_8(&w, o->region);
    put_32(&w, o->max_matches);
    frame_close(&w);
}

static void send_heartbeat(struct muster_server *m)
{
    struct writer w = frame_open(m, HEARTBEAT);
    put_32(&w, m->id);
    put_32(&w, m->count_told >= 0 ? m->count_told : muster_server_match_count(m));
    put_float(&w, m->cpu);
    put_float(&w, m->memory);
    frame_close(&w);
}

/* The count is one byte. A list that leaves matches out would end them at Muster, so a server with
 * more says nothing, like one that does not know the list. */
static void send_list(struct muster_server *m)
{
    int32_t n = muster_server_match_count(m);
    if (m->options.no_match_list || n > MUSTER_MAX_LISTED)
        return;
    struct writer w = frame_open(m, MATCH_LIST);
    put_32(&w, m->id);
    uint8_t count = (uint8_t)n;
    put(&w, &count, 1);
    for (size_t i = 0; i < m->n_matches; i++) {
        if (m->matches[i].state == MATCH_ASKED || m->matches[i].state == MATCH_HELD)
            put_32(&w, m->matches[i].lobby);
    }
    frame_close(&w);
}

static void send_ready(struct muster_server *m, const struct match *match)
{
    struct writer w = frame_open(m, READY_FOR_MATCH);
    put_32(&w, m->id);
    put_32(&w, match->lobby);
    put_text(&w, match->token);
    frame_close(&w);
}

static void send_ended(struct muster_server *m, const struct match *match)
{
    struct writer w = frame_open(m, MATCH_ENDED);
    put_32(&w, m->id);
    put_32(&w, match->lobby);
    put_8(&w, match->winner);
    put_32(&w, match->lasted_s);
    frame_close(&w);
}

static void send_validation(struct muster_server *m, const struct validation *v)
{
    struct writer w = frame_open(m, VALIDATE_TOKEN);
    put_32(&w, v->lobby);
    put_32(&w, v->account);
    put_text(&w, v->token);
    frame_close(&w);
}

static void send_left(struct muster_server *m, const struct departure *d)
{
    struct writer w = frame_open(m, PLAYER_LEFT);
    put_32(&w, m->id);
    put_32(&w, d->lobby);
    put_32(&w, d->account);
    frame_close(&w);
}

static struct match *match_find(const struct muster_server *m, int32_t lobby)
{
    for (size_t i = 0; i < m->n_matches; i++) {
        if (m->matches[i].state != MATCH_FREE && m->matches[i].lobby == lobby)
            return &m->matches[i];
    }
    return NULL;
}

static void match_clear(struct match *match)
{
    free(match->token);
    *match = (struct match){0};
}

static int64_t match_expiry(const struct muster_server *m)
{
    return m->options.unconfirmed_ms < 0 ? INT64_MAX : now_ms(m) + m->options.unconfirmed_ms;
}

/* NULL when no more may be held or memory is out. */
static struct match *match_add(struct muster_server *m, int32_t lobby, const char *token)
{
    if (muster_server_match_count(m) >= m->options.max_matches)
        return NULL;
    for (size_t i = 0; i < m->n_matches; i++) {
        struct match *match = &m->matches[i];
        if (match->state != MATCH_FREE)
            continue;
        char *copy = strdup(token);
        if (!copy)
            return NULL;
        *match = (struct match){.state = MATCH_ASKED, .lobby = lobby, .token = copy};
        match->expires_ms = match_expiry(m);
        return match;
    }
    return NULL;
}

static void match_accept(struct muster_server *m, struct match *match)
{
    match->state = MATCH_HELD;
    match->expires_ms = match_expiry(m);
    if (m->link == LINK_REGISTERED)
        send_ack(m, ALLOCATE_MATCH_ACK, true, match->lobby);
}

static void match_refuse(struct muster_server *m, struct match *match)
{
    if (m->link == LINK_REGISTERED)
        send_ack(m, ALLOCATE_MATCH_ACK, false, match->lobby);
    match_clear(match);
}

/* Keeps the newest max_matches ends: an older one is not lost, only its result is, because Muster
 * learns from the match list that the match is gone. */
static void match_close(struct muster_server *m, struct match *match, int8_t winner,
                        int32_t lasted_s)
{
    struct match *oldest = NULL;
    int32_t ending = 0;
    for (size_t i = 0; i < m->n_matches; i++) {
        struct match *other = &m->matches[i];
        if (other->state != MATCH_ENDING)
            continue;
        ending++;
        if (!oldest || other->order < oldest->order)
            oldest = other;
    }
    if (oldest && ending >= m->options.max_matches)
        match_clear(oldest);
    match->state = MATCH_ENDING;
    match->ready_owed = false;
    match->winner = winner;
    match->lasted_s = lasted_s;
    match->due_ms = INT64_MIN;
    match->order = m->ends++;
}

/* Nothing followed: the match leaves us and, in case Muster counts it, Muster. */
static void match_expire(struct muster_server *m, struct match *match)
{
    int32_t lobby = match->lobby;
    if (match->state == MATCH_ASKED)
        match_refuse(m, match);
    else
        match_close(m, match, 0, 0);
    if (m->calls.cancelled)
        m->calls.cancelled(m->user, lobby, MUSTER_CANCEL_UNCONFIRMED);
}

static bool match_can_expire(const struct match *match)
{
    return match->state == MATCH_ASKED || (match->state == MATCH_HELD && !match->confirmed);
}

static void expire_matches(struct muster_server *m, int64_t now)
{
    for (size_t i = 0; i < m->n_matches; i++) {
        struct match *match = &m->matches[i];
        if (match_can_expire(match) && now >= match->expires_ms)
            match_expire(m, match);
    }
}

static bool match_owes(const struct match *match)
{
    return match->state == MATCH_ENDING || (match->state == MATCH_HELD && match->ready_owed);
}

static bool has_room(const struct muster_server *m)
{
    return m->out_len < OUT_PUMP && !m->failed;
}

static void pump_matches(struct muster_server *m, int64_t now, bool only_ended)
{
    for (size_t i = 0; i < m->n_matches && has_room(m); i++) {
        struct match *match = &m->matches[i];
        if (!match_owes(match) || now < match->due_ms)
            continue;
        if (match->state == MATCH_ENDING)
            send_ended(m, match);
        else if (!only_ended)
            send_ready(m, match);
        else
            continue;
        match->due_ms = now + REPEAT_MS;
    }
}

static void pump_left(struct muster_server *m)
{
    size_t n = 0;
    while (n < m->n_left && has_room(m))
        send_left(m, &m->left[n++]);
    m->n_left -= n;
    memmove(m->left, m->left + n, m->n_left * sizeof(m->left[0]));
}

/* An answer names only lobby and account. With two tokens on their way for one account nobody could
 * tell whose yes it is, so the second waits for the first answer. */
static bool validation_may_go(const struct muster_server *m, size_t at)
{
    const struct validation *v = &m->validations[at];
    for (size_t i = 0; i < at; i++) {
        if (m->validations[i].lobby == v->lobby && m->validations[i].account == v->account)
            return false;
    }
    return !v->sent;
}

static void pump_validations(struct muster_server *m)
{
    for (size_t i = 0; i < m->n_validations && has_room(m); i++) {
        if (!validation_may_go(m, i))
            continue;
        send_validation(m, &m->validations[i]);
        m->validations[i].sent = true;
    }
}

static void pump_drain(struct muster_server *m)
{
    if (!m->drain_owed || m->drain_sent)
        return;
    send_flag(m, DRAIN, m->drain_on);
    m->drain_sent = true;
}

static void pump(struct muster_server *m, int64_t now)
{
    pump_matches(m, now, false);
    pump_left(m);
    pump_validations(m);
    if (has_room(m))
        pump_drain(m);
}

static bool pump_has_work(const struct muster_server *m)
{
    if (!has_room(m))
        return false; /* the socket becoming writable comes first */
    if (m->n_left > 0 || (m->drain_owed && !m->drain_sent))
        return true;
    for (size_t i = 0; i < m->n_validations; i++) {
        if (validation_may_go(m, i))
            return true;
    }
    return false;
}

/* Muster read its clock half a round trip after we sent, by our clock; so that is what its time is
 * compared with. The handshake's answer waited for a disk and counts only until a heartbeat, whose
 * acknowledgement leaves at once, gives a better one. */
static void clock_sample(struct muster_server *m, int64_t server_ms, int64_t sent_ms, int64_t rtt)
{
    int64_t sample_us = (server_ms - sent_ms) * 1000 - rtt * 500;
    int64_t difference = sample_us - m->offset_us;
    if (m->clock != CLOCK_MEASURED || difference > CLOCK_STEP_MS * 1000 ||
        difference < -CLOCK_STEP_MS * 1000)
        m->offset_us = sample_us;
    else
        m->offset_us += difference / 8;
}

/* The first failing read sets bad; later ones return zeros. */
struct reader {
    const uint8_t *at;
    const uint8_t *end;
    bool bad;
};

static const uint8_t *take(struct reader *r, size_t n)
{
    static const uint8_t zeros[8];
    if (r->bad || (size_t)(r->end - r->at) < n) {
        r->bad = true;
        return zeros;
    }
    r->at += n;
    return r->at - n;
}

static bool take_flag(struct reader *r)
{
    uint8_t v = *take(r, 1);
    if (v > 1)
        r->bad = true;
    return v == 1;
}

static int8_t take_8(struct reader *r)
{
    return (int8_t)*take(r, 1);
}

static uint64_t take_unsigned(struct reader *r, size_t n)
{
    const uint8_t *b = take(r, n);
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v |= (uint64_t)b[i] << (8 * i);
    return v;
}

static int32_t take_32(struct reader *r)
{
    return (int32_t)(uint32_t)take_unsigned(r, 4);
}

/* Muster's Unix time; far enough from the ends of int64 for clock_sample's arithmetic. */
static int64_t take_time(struct reader *r)
{
    int64_t v = (int64_t)take_unsigned(r, 8);
    if (v < 0 || v > INT64_MAX / 4000)
        r->bad = true;
    return v;
}

/* Points into the frame, where its NUL is. */
static const char *take_text(struct reader *r)
{
    size_t left = r->bad ? 0 : (size_t)(r->end - r->at);
    const uint8_t *nul = left ? memchr(r->at, 0, left) : NULL;
    if (!nul || !text_allowed((const char *)r->at)) {
        r->bad = true;
        return "";
    }
    const char *text = (const char *)r->at;
    r->at = nul + 1;
    return text;
}

/* The payload was read to its end and nothing was wrong with it. */
static bool complete(struct reader *r)
{
    return !r->bad && r->at == r->end;
}

/* i8 1 and these ids, or i8 0, these ids and a sentence. */
struct lobby_answer {
    bool yes;
    int32_t lobby;
    int32_t account;
    const char *error;
};

static struct lobby_answer take_answer(struct reader *r, bool with_account)
{
    struct lobby_answer a = {.error = ""};
    a.yes = take_flag(r);
    a.lobby = take_32(r);
    if (with_account)
        a.account = take_32(r);
    if (!a.yes)
        a.error = take_text(r);
    return a;
}

/* A refusal that says nothing about the request: Muster cannot write just now. */
static bool is_temporary(const struct lobby_answer *a)
{
    return !a->yes && strcmp(a->error, "Internal error") == 0;
}

/* What the game ended meanwhile is said before the list, so that Muster hears of a result before it
 * sees the match missing. So is that this process drains, also where Muster knew: by an empty list
 * it would take us for the next process at this address, which does not. */
static void registered(struct muster_server *m, int32_t id, int64_t now)
{
    m->link = LINK_REGISTERED;
    m->id = id;
    m->registered_ms = now;
    m->heartbeat_due_ms = m->options.heartbeat_ms < 0 ? INT64_MAX : now;
    m->heartbeats_open = 0;
    m->drain_sent = false;
    for (size_t i = 0; i < m->n_validations; i++)
        m->validations[i].sent = false;
    for (size_t i = 0; i < m->n_matches; i++) {
        m->matches[i].due_ms = INT64_MIN;
        if (match_can_expire(&m->matches[i]))
            m->matches[i].expires_ms = match_expiry(m);
    }
    pump_matches(m, now, true);
    m->drain_owed |= m->drain_on;
    pump_drain(m);
    send_list(m);
    if (m->calls.registered)
        m->calls.registered(m->user, id);
}

static bool split_address(const char *text, char host[HOST_MAX], char port[PORT_MAX]);
static bool find_numeric(const char *host, const char *port, struct address *ret);

/* The address at the end of "This node is a standby; the leader of cell default is at
 * 10.0.0.1:11032"; NULL when it does not end so. */
static const char *leader_in(const char *sentence)
{
    static const char words[] = " is at ";
    const char *found = NULL;
    for (const char *at = sentence; (at = strstr(at, words)); at++)
        found = at + strlen(words);
    return found && *found && !strchr(found, ' ') ? found : NULL;
}

static bool says_nobody_leads(const char *sentence)
{
    return strstr(sentence, "nobody leads cell ") != NULL;
}

/* Where the leader is, when that can be known without a lookup, which would block: it is an IP
 * address, or a host of the list. */
static bool find_leader(const struct muster_server *m, const char *text, struct address *ret,
                        char host[HOST_MAX])
{
    char port[PORT_MAX];
    char *end = NULL;
    if (!split_address(text, host, port))
        return false;
    if (find_numeric(host, port, ret))
        return true;
    unsigned long number = strtoul(port, &end, 10);
    for (size_t i = 0; *end == '\0' && number > 0 && number <= 65535 && i < m->n_addresses; i++) {
        if (strcasecmp(m->hosts[m->addresses[i].host], host) != 0)
            continue;
        *ret = m->addresses[i];
        in_port_t there = htons((in_port_t)number);
        if (ret->name.ss_family == AF_INET)
            ((struct sockaddr_in *)&ret->name)->sin_port = there;
        else
            ((struct sockaddr_in6 *)&ret->name)->sin6_port = there;
        return true;
    }
    return false;
}

/* Two nodes that name each other lead nowhere: after HOPS_MAX the list goes on, and its back-off.
 */
static void refused(struct muster_server *m, const char *why)
{
    const char *leader = leader_in(why);
    if (!leader && !says_nobody_leads(why)) {
        fail(m, MUSTER_E_REFUSED, why);
        return;
    }
    m->standby_spoke = m->in_cell = true;
    m->has_named = leader && m->hops < HOPS_MAX && find_leader(m, leader, &m->named, m->named_host);
    m->hops += m->has_named ? 1 : 0;
    fail(m, MUSTER_E_STANDBY, why);
}

static void on_handshake_response(struct muster_server *m, struct reader *r, int64_t now)
{
    bool yes = take_flag(r);
    int32_t id = yes ? take_32(r) : 0;
    int64_t time_ms = yes ? take_time(r) : 0;
    const char *error = yes ? "" : take_text(r);
    if (!complete(r))
        return;
    if (!yes) {
        refused(m, error);
        return;
    }
    if (m->clock != CLOCK_MEASURED) {
        clock_sample(m, time_ms, m->asked_ms, now - m->asked_ms);
        m->clock = CLOCK_GREETED;
    }
    registered(m, id, now);
}

static void on_heartbeat_ack(struct muster_server *m, struct reader *r, int64_t now)
{
    bool yes = take_flag(r);
    int64_t time_ms = yes ? take_time(r) : 0;
    const char *error = yes ? "" : take_text(r);
    if (!complete(r))
        return;
    if (!yes) {
        fail(m, MUSTER_E_REFUSED, error); /* it has forgotten us: greet again */
        return;
    }
    /* With several on their way this one answers an older one than asked_ms stands for. */
    if (m->heartbeats_open == 1) {
        m->rtt_ms = now - m->asked_ms;
        clock_sample(m, time_ms, m->asked_ms, m->rtt_ms);
        m->clock = CLOCK_MEASURED;
    }
    if (m->heartbeats_open > 0)
        m->heartbeats_open--;
}

static void ask_game(struct muster_server *m, struct match *match, const struct muster_match *news)
{
    enum muster_answer answer =
        m->calls.allocate ? m->calls.allocate(m->user, news) : MUSTER_ACCEPT;
    if (match->state != MATCH_ASKED || match->lobby != news->lobby)
        return; /* the callback has settled it already */
    if (answer == MUSTER_ACCEPT)
        match_accept(m, match);
    else if (answer == MUSTER_REFUSE)
        match_refuse(m, match);
}

static void on_allocate(struct muster_server *m, struct reader *r)
{
    struct muster_match news = {0};
    news.lobby = take_32(r);
    news.game_type = take_8(r);
    news.game_mode = take_8(r);
    news.token = take_text(r);
    if (!complete(r))
        return;

    struct match *match = match_find(m, news.lobby);
    bool same = match && strcmp(match->token, news.token) == 0;
    if (match && match->state == MATCH_ENDING && !same) {
        /* Muster is done with the old match of this number; reporting its end again would end the
         * new one. */
        match_clear(match);
        match = NULL;
    }
    if (!match) {
        match = match_add(m, news.lobby, news.token);
        if (match)
            ask_game(m, match, &news);
        else
            send_ack(m, ALLOCATE_MATCH_ACK, false, news.lobby);
        return;
    }
    if (match->state == MATCH_HELD)
        send_ack(m, ALLOCATE_MATCH_ACK, same, news.lobby);
    else if (!same || match->state == MATCH_ENDING)
        send_ack(m, ALLOCATE_MATCH_ACK, false, news.lobby);
}

static void on_cancel(struct muster_server *m, struct reader *r)
{
    int32_t lobby = take_32(r);
    const char *token = take_text(r);
    if (!complete(r))
        return;
    struct match *match = match_find(m, lobby);
    if (match && (*token == '\0' || strcmp(match->token, token) == 0)) {
        bool held = match->state != MATCH_ENDING;
        match_clear(match);
        if (held && m->calls.cancelled)
            m->calls.cancelled(m->user, lobby, MUSTER_CANCEL_TOLD);
    }
    send_ack(m, CANCEL_MATCH_ACK, true, lobby);
}

static void on_ready_response(struct muster_server *m, struct reader *r)
{
    struct lobby_answer a = take_answer(r, false);
    struct match *match = match_find(m, a.lobby);
    if (!complete(r) || !match || !match->ready_owed || is_temporary(&a))
        return;
    match->ready_owed = false;
    match->confirmed |= a.yes;
    if (m->calls.ready_answered)
        m->calls.ready_answered(m->user, a.lobby, a.yes, a.error);
}

static void on_ended_response(struct muster_server *m, struct reader *r)
{
    struct lobby_answer a = take_answer(r, false);
    struct match *match = match_find(m, a.lobby);
    if (!complete(r) || !match || match->state != MATCH_ENDING || is_temporary(&a))
        return;
    match_clear(match);
    if (m->calls.end_answered)
        m->calls.end_answered(m->user, a.lobby, a.yes, a.error);
}

static void on_validate_response(struct muster_server *m, struct reader *r)
{
    struct lobby_answer a = take_answer(r, true);
    size_t i = 0;
    while (i < m->n_validations && !(m->validations[i].sent && m->validations[i].lobby == a.lobby &&
                                     m->validations[i].account == a.account))
        i++;
    if (!complete(r) || i == m->n_validations)
        return;
    uint64_t player = m->validations[i].player;
    free(m->validations[i].token);
    m->n_validations--;
    memmove(&m->validations[i], &m->validations[i + 1],
            (m->n_validations - i) * sizeof(m->validations[0]));

    struct match *match = match_find(m, a.lobby);
    if (a.yes && (!match || match->state != MATCH_HELD)) {
        a.yes = false; /* it ended while we asked */
        a.error = "Match not found";
    }
    if (a.yes)
        match->confirmed = true;
    if (m->calls.validated)
        m->calls.validated(m->user, a.lobby, a.account, player, a.yes, a.error);
}

static void on_drain(struct muster_server *m, struct reader *r, bool is_ack)
{
    bool on = take_flag(r);
    if (!complete(r))
        return;
    if (is_ack) {
        if (m->drain_sent && on == m->drain_on)
            m->drain_owed = false;
        return;
    }
    send_flag(m, DRAIN_ACK, on);
    if (!on && !m->drain_owed)
        m->drain_on = false; /* the operator's no is about our own wish too */
    if (m->calls.drain)
        m->calls.drain(m->user, on);
}

static void on_kick(struct muster_server *m, struct reader *r)
{
    int32_t lobby = take_32(r);
    int32_t account = take_32(r);
    const char *reason = take_text(r);
    if (complete(r) && m->calls.kick)
        m->calls.kick(m->user, lobby, account, reason);
}

static void on_error(struct muster_server *m, struct reader *r)
{
    const char *text = take_text(r);
    if (complete(r))
        fail(m, MUSTER_E_REFUSED, text);
}

/* False for a command nobody may send us now. One we do not know is skipped: Muster may be newer.
 */
static bool dispatch_registered(struct muster_server *m, uint16_t code, struct reader *r,
                                int64_t now)
{
    switch ((enum command)code) {
    case HEARTBEAT_ACK:
        on_heartbeat_ack(m, r, now);
        return true;
    case ALLOCATE_MATCH:
        on_allocate(m, r);
        return true;
    case READY_FOR_MATCH_RESPONSE:
        on_ready_response(m, r);
        return true;
    case CANCEL_MATCH:
        on_cancel(m, r);
        return true;
    case VALIDATE_TOKEN_RESPONSE:
        on_validate_response(m, r);
        return true;
    case MATCH_ENDED_RESPONSE:
        on_ended_response(m, r);
        return true;
    case DRAIN:
    case DRAIN_ACK:
        on_drain(m, r, code == DRAIN_ACK);
        return true;
    case MATCH_LIST:
        if (complete(r))
            send_list(m);
        return true;
    case KICK_PLAYER:
        on_kick(m, r);
        return true;
    case HANDSHAKE_RESPONSE: /* a second one */
        return false;
    default:
        r->at = r->end;
        return true;
    }
}

static bool dispatch(struct muster_server *m, uint16_t code, struct reader *r, int64_t now)
{
    switch (code) {
    case PING:
        if (complete(r))
            send_empty(m, PONG);
        return true;
    case PONG:
        return true;
    case ERROR_TEXT:
        on_error(m, r);
        return true;
    default:
        break;
    }
    if (m->link == LINK_REGISTERED)
        return dispatch_registered(m, code, r, now);
    if (code != HANDSHAKE_RESPONSE)
        return false;
    on_handshake_response(m, r, now);
    return true;
}

static void read_frame(struct muster_server *m, const uint8_t *frame, size_t length, int64_t now)
{
    uint16_t code = (uint16_t)(frame[0] | frame[1] << 8);
    struct reader r = {.at = frame + 2, .end = frame + length};
    char text[64];
    if (!dispatch(m, code, &r, now)) {
        snprintf(text, sizeof(text), "unexpected command %04X", code);
        fail(m, MUSTER_E_PROTOCOL, text);
    } else if (!complete(&r)) {
        snprintf(text, sizeof(text), "malformed command %04X", code);
        fail(m, MUSTER_E_PROTOCOL, text);
    }
}

/* A TLS alert, where Muster speaks TLS and got our greeting in the clear, would pass for the begin
 * of a long frame. */
static bool is_tls_alert(const struct muster_server *m)
{
    return m->link == LINK_GREETING && m->in_len >= 4 && m->in[0] == 21 && m->in[1] == 3 &&
           m->in[3] == 0; /* the upper half of a command, which none has */
}

static void split_frames(struct muster_server *m, int64_t now)
{
    size_t at = 0;
    if (is_tls_alert(m))
        fail(m, MUSTER_E_TLS, "Muster speaks TLS on this port, and we do not; tls_ca is not set");
    while (!m->failed && m->in_len - at >= 2) {
        size_t length = (size_t)(m->in[at] | m->in[at + 1] << 8);
        if (length < 2 || length > FRAME_MAX) {
            fail(m, MUSTER_E_PROTOCOL, "impossible frame length");
            break;
        }
        if (m->in_len - at < 2 + length)
            break;
        read_frame(m, m->in + at + 2, length, now);
        at += 2 + length;
    }
    m->in_len -= at;
    memmove(m->in, m->in + at, m->in_len);
}

#ifdef MUSTER_TLS

/* GnuTLS on the connection's socket. */
struct tls {
    gnutls_certificate_credentials_t credentials;
    gnutls_session_t session;
    gnutls_typed_vdata_st expected[2]; /* of Muster's certificate; GnuTLS keeps the pointer */
    bool unfinished;                   /* a record was sealed that the socket did not take whole */
};

static int tls_load(const struct muster_options *o, gnutls_certificate_credentials_t *ret)
{
    gnutls_certificate_credentials_t c;
    if (gnutls_certificate_allocate_credentials(&c) < 0)
        return MUSTER_E_MEMORY;
    int error = MUSTER_OK;
    if (gnutls_certificate_set_x509_trust_file(c, o->tls_ca, GNUTLS_X509_FMT_PEM) <= 0)
        error = MUSTER_E_TLS_CA;
    else if (o->tls_certificate && gnutls_certificate_set_x509_key_file(
                                       c, o->tls_certificate, o->tls_key, GNUTLS_X509_FMT_PEM) < 0)
        error = MUSTER_E_TLS_CERTIFICATE;
    if (error)
        gnutls_certificate_free_credentials(c);
    else
        *ret = c;
    return error;
}

/* What would be wrong with the files, before there is a connection. */
static int tls_check(const struct muster_options *o)
{
    gnutls_certificate_credentials_t c;
    int error = tls_load(o, &c);
    if (!error)
        gnutls_certificate_free_credentials(c);
    return error;
}

static bool is_ip(const char *host)
{
    uint8_t bytes[16];
    return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

/* Whom the certificate must be for. */
static const char *tls_name(const struct muster_server *m)
{
    return m->options.tls_server_name ? m->options.tls_server_name : m->host;
}

static int tls_set(struct tls *t, const char *name, int fd)
{
    t->expected[0] =
        (gnutls_typed_vdata_st){.type = GNUTLS_DT_DNS_HOSTNAME, .data = (unsigned char *)name};
    t->expected[1] = (gnutls_typed_vdata_st){.type = GNUTLS_DT_KEY_PURPOSE_OID,
                                             .data = (unsigned char *)GNUTLS_KP_TLS_WWW_SERVER};
    int error =
        gnutls_priority_set_direct(t->session, "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2", NULL);
    if (error == 0)
        error = gnutls_credentials_set(t->session, GNUTLS_CRD_CERTIFICATE, t->credentials);
    if (error == 0 && !is_ip(name)) /* an address may not be said there */
        error = gnutls_server_name_set(t->session, GNUTLS_NAME_DNS, name, strlen(name));
    gnutls_session_set_verify_cert2(t->session, t->expected, 2, 0);
    gnutls_transport_set_int(t->session, fd);
    return error;
}

static void tls_free(struct tls *t)
{
    if (t->session)
        gnutls_deinit(t->session);
    if (t->credentials)
        gnutls_certificate_free_credentials(t->credentials);
    free(t);
}

/* Begins TLS on a new connection. */
static void tls_begin(struct muster_server *m)
{
    struct tls *t = calloc(1, sizeof(*t));
    if (!t) {
        fail(m, MUSTER_E_TLS, muster_error_text(MUSTER_E_MEMORY));
        return;
    }
    m->tls = t;
    int error = tls_load(&m->options, &t->credentials);
    if (error)
        fail(m, MUSTER_E_TLS, muster_error_text(error));
    else if (gnutls_init(&t->session, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL) < 0 ||
             tls_set(t, tls_name(m), m->fd) < 0)
        fail(m, MUSTER_E_TLS, muster_error_text(MUSTER_E_TLS));
}

static void tls_end(struct muster_server *m)
{
    if (m->tls)
        tls_free(m->tls);
    m->tls = NULL;
}

static void tls_goodbye(struct tls *t)
{
    if (t)
        gnutls_bye(t->session, GNUTLS_SHUT_WR);
}

/* Muster's certificate did not pass: the first thing that is wrong with it, in words. */
static void tls_explain_certificate(struct muster_server *m)
{
    const struct muster_options *o = &m->options;
    unsigned status = gnutls_session_get_verify_cert_status(m->tls->session);
    char text[sizeof(m->why)];
    if (status & GNUTLS_CERT_SIGNER_NOT_FOUND)
        snprintf(text, sizeof(text), "Muster's certificate is not signed by an authority in %.150s",
                 o->tls_ca);
    else if (status & GNUTLS_CERT_EXPIRED)
        snprintf(text, sizeof(text), "Muster's certificate has expired");
    else if (status & GNUTLS_CERT_NOT_ACTIVATED)
        snprintf(text, sizeof(text),
                 "Muster's certificate is not valid yet; is this machine's clock right?");
    else if (status & GNUTLS_CERT_UNEXPECTED_OWNER)
        snprintf(text, sizeof(text), "Muster's certificate is not for %.150s", tls_name(m));
    else
        snprintf(text, sizeof(text), "Muster's certificate is not acceptable (%#x)", status);
    fail(m, MUSTER_E_TLS, text);
}

/* Notes why TLS failed. */
static void tls_explain(struct muster_server *m, int error)
{
    char text[sizeof(m->why)];
    gnutls_alert_description_t alert = gnutls_alert_get(m->tls->session);
    switch (error) {
    case GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR:
        tls_explain_certificate(m);
        return;
    case GNUTLS_E_FATAL_ALERT_RECEIVED:
        if (alert == GNUTLS_A_CERTIFICATE_REQUIRED && !m->options.tls_certificate)
            snprintf(text, sizeof(text),
                     "Muster wants a certificate, and tls_certificate is not "
                     "set");
        else
            snprintf(text, sizeof(text), "Muster refused: %s", gnutls_alert_get_name(alert));
        break;
    case GNUTLS_E_UNEXPECTED_PACKET_LENGTH:
    case GNUTLS_E_UNEXPECTED_PACKET:
    case GNUTLS_E_UNSUPPORTED_VERSION_PACKET:
    case GNUTLS_E_RECORD_OVERFLOW:
        snprintf(text, sizeof(text), "Muster does not speak TLS on this port");
        break;
    case GNUTLS_E_PREMATURE_TERMINATION:
    case GNUTLS_E_PULL_ERROR:
    case GNUTLS_E_PUSH_ERROR:
        snprintf(text, sizeof(text), "%s", muster_error_text(MUSTER_E_CLOSED));
        break;
    default:
        snprintf(text, sizeof(text), "%s", gnutls_strerror(error));
        break;
    }
    fail(m, MUSTER_E_TLS, text);
}

/* Goes on with the handshake; true when it is done. */
static bool tls_shake(struct muster_server *m)
{
    int error = gnutls_handshake(m->tls->session);
    if (error < 0 && gnutls_error_is_fatal(error)) {
        gnutls_alert_send_appropriate(m->tls->session, error);
        tls_explain(m, error);
    }
    return error == 0;
}

static size_t tls_read(struct muster_server *m, uint8_t *to, size_t room)
{
    ssize_t n = gnutls_record_recv(m->tls->session, to, room);
    if (n == 0 || n == GNUTLS_E_PREMATURE_TERMINATION || n == GNUTLS_E_PULL_ERROR)
        fail(m, MUSTER_E_CLOSED, muster_error_text(MUSTER_E_CLOSED));
    else if (n < 0 && gnutls_error_is_fatal((int)n))
        tls_explain(m, (int)n);
    return n > 0 ? (size_t)n : 0;
}

/* A record that the socket did not take whole is finished before anything else is sealed; GnuTLS
 * then says how much of our data it held. */
static size_t tls_write(struct tls *t, const uint8_t *data, size_t len)
{
    ssize_t n = t->unfinished ? gnutls_record_send(t->session, NULL, 0)
                              : gnutls_record_send(t->session, data, len);
    t->unfinished = n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED;
    return n > 0 ? (size_t)n : 0;
}

/* Something was read from the socket that nobody has asked for yet. */
static bool tls_has_input(const struct tls *t)
{
    return gnutls_record_check_pending(t->session) > 0;
}

static short tls_events(const struct tls *t)
{
    return t && gnutls_record_get_direction(t->session) == 1 ? POLLOUT : POLLIN;
}

#else

/* Without TLS muster_server_new refuses tls_ca, so no connection gets as far as the rest. */
struct tls;

static int tls_check(const struct muster_options *o)
{
    (void)o;
    return MUSTER_E_TLS_ABSENT;
}

static void tls_begin(struct muster_server *m)
{
    fail(m, MUSTER_E_TLS, muster_error_text(MUSTER_E_TLS_ABSENT));
}

static void tls_end(struct muster_server *m)
{
    m->tls = NULL;
}

static void tls_goodbye(struct tls *t)
{
    (void)t;
}

static bool tls_shake(struct muster_server *m)
{
    (void)m;
    return false;
}

static size_t tls_read(struct muster_server *m, uint8_t *to, size_t room)
{
    (void)m, (void)to, (void)room;
    return 0;
}

static size_t tls_write(struct tls *t, const uint8_t *data, size_t len)
{
    (void)t, (void)data, (void)len;
    return 0;
}

static bool tls_has_input(const struct tls *t)
{
    (void)t;
    return false;
}

static short tls_events(const struct tls *t)
{
    (void)t;
    return POLLIN;
}

#endif

/* Bytes read; 0 when there are none now or the connection is over, which has then been noted. */
static size_t wire_read(struct muster_server *m, uint8_t *to, size_t room)
{
    if (m->tls)
        return tls_read(m, to, room);
    ssize_t n = recv(m->fd, to, room, 0);
    if (n == 0)
        fail(m, MUSTER_E_CLOSED, muster_error_text(MUSTER_E_CLOSED));
    else if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
        fail(m, MUSTER_E_CLOSED, strerror(errno));
    return n > 0 ? (size_t)n : 0;
}

/* Bytes taken. A closed connection is noticed by reading, after what Muster said last. */
static size_t wire_write(struct muster_server *m, const uint8_t *data, size_t len)
{
    if (m->tls)
        return tls_write(m->tls, data, len);
    ssize_t n = send(m->fd, data, len, MSG_NOSIGNAL);
    return n > 0 ? (size_t)n : 0;
}

static void receive(struct muster_server *m, int64_t now)
{
    for (int round = 0; round < READ_ROUNDS && !m->failed; round++) {
        size_t n = wire_read(m, m->in + m->in_len, sizeof(m->in) - m->in_len);
        if (n == 0)
            return;
        m->in_len += n;
        m->heard_ms = now;
        m->pinged = false;
        split_frames(m, now);
    }
}

static void transmit(struct muster_server *m)
{
    while (m->out_len > 0) {
        size_t n = wire_write(m, m->out, m->out_len);
        if (n == 0)
            return;
        m->out_len -= n;
        memmove(m->out, m->out + n, m->out_len);
    }
}

/* Half-open connections must be found, and small frames must not wait for each other. Failing to
 * set any of these costs only that. */
static void tune(int fd)
{
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
#ifdef TCP_USER_TIMEOUT
    unsigned timeout_ms = SILENT_MS;
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof(timeout_ms));
#endif
}

static int open_socket(int family)
{
    int fd = socket(family, SOCK_STREAM, 0);
    if (fd < 0)
        return -1;
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0) {
        close(fd);
        return -1;
    }
    tune(fd);
    return fd;
}

/* The leader that was named, or the next of the list. */
static struct address choose_address(struct muster_server *m)
{
    if (m->has_named) {
        m->has_named = false;
        memcpy(m->host, m->named_host, sizeof(m->host));
        return m->named;
    }
    struct address a = m->addresses[m->next_address];
    m->next_address = (m->next_address + 1) % m->n_addresses;
    m->tried++;
    memcpy(m->host, m->hosts[a.host], sizeof(m->host));
    return a;
}

/* host:port as it is written. */
static void name_address(struct muster_server *m, const struct address *a)
{
    in_port_t port = a->name.ss_family == AF_INET
                         ? ((const struct sockaddr_in *)&a->name)->sin_port
                         : ((const struct sockaddr_in6 *)&a->name)->sin6_port;
    bool v6 = strchr(m->host, ':') != NULL;
    snprintf(m->address, sizeof(m->address), "%s%s%s:%d", v6 ? "[" : "", m->host, v6 ? "]" : "",
             ntohs(port));
}

/* Where another node could be asked meanwhile, one that is silent is not waited for as long. */
static int64_t patience(const struct muster_server *m, int64_t alone_ms, int64_t one_of_ms)
{
    return m->n_addresses > 1 || m->in_cell ? one_of_ms : alone_ms;
}

static void connect_start(struct muster_server *m, int64_t now)
{
    const struct address to = choose_address(m);
    const struct address *a = &to;
    name_address(m, a);
    m->fd = open_socket(a->name.ss_family);
    m->link = LINK_CONNECTING;
    m->until_ms = now + patience(m, CONNECT_MS, CONNECT_ONE_OF_MS);
    if (m->fd < 0 || (connect(m->fd, (const struct sockaddr *)&a->name, a->len) < 0 &&
                      errno != EINPROGRESS && errno != EINTR))
        fail(m, MUSTER_E_CONNECT, strerror(errno));
}

static void greet(struct muster_server *m, int64_t now)
{
    m->link = LINK_GREETING;
    m->until_ms = now + patience(m, HANDSHAKE_MS, GREETING_ONE_OF_MS);
    m->heard_ms = now;
    m->pinged = false;
    m->asked_ms = now;
    send_handshake(m);
}

static void connect_finish(struct muster_server *m, int64_t now)
{
    struct pollfd p = {.fd = m->fd, .events = POLLOUT};
    if (poll(&p, 1, 0) <= 0) {
        if (now >= m->until_ms)
            fail(m, MUSTER_E_CONNECT, strerror(ETIMEDOUT));
        return;
    }
    int error = 0;
    socklen_t len = sizeof(error);
    if (getsockopt(m->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        error = errno;
    if (error) {
        fail(m, MUSTER_E_CONNECT, strerror(error));
        return;
    }
    if (!m->options.tls_ca) {
        greet(m, now);
        return;
    }
    m->link = LINK_SECURING;
    m->until_ms = now + patience(m, CONNECT_MS, CONNECT_ONE_OF_MS);
    tls_begin(m);
}

static void secure(struct muster_server *m, int64_t now)
{
    if (tls_shake(m))
        greet(m, now);
    else if (now >= m->until_ms)
        fail(m, MUSTER_E_TLS, "Muster did not finish the TLS handshake in time");
}

static void heartbeat(struct muster_server *m, int64_t now)
{
    if (now < m->heartbeat_due_ms)
        return;
    send_heartbeat(m);
    m->asked_ms = now;
    m->heartbeats_open++;
    m->heartbeat_due_ms = now + m->options.heartbeat_ms;
}

static void watch_silence(struct muster_server *m, int64_t now)
{
    if (now - m->heard_ms >= patience(m, SILENT_MS, SILENT_ONE_OF_MS)) {
        fail(m, MUSTER_E_SILENT, muster_error_text(MUSTER_E_SILENT));
    } else if (now - m->heard_ms >= patience(m, PING_MS, PING_ONE_OF_MS) && !m->pinged) {
        send_empty(m, PING);
        m->pinged = true;
    }
}

static uint64_t draw(struct muster_server *m)
{
    m->random += 0x9E3779B97F4A7C15u;
    uint64_t z = m->random;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* Full jitter: anywhere between now and the doubled limit, so that a thousand servers that lost
 * Muster together do not return together. */
static int64_t backoff(struct muster_server *m)
{
    int64_t limit = BACKOFF_MAX_MS;
    if (m->failures < 6 && (BACKOFF_FIRST_MS << m->failures) < BACKOFF_MAX_MS)
        limit = BACKOFF_FIRST_MS << m->failures;
    return (int64_t)(draw(m) % (uint64_t)(limit + 1));
}

static void begin_round(struct muster_server *m)
{
    m->tried = 0;
    m->hops = 0;
    m->standby_spoke = false;
}

/* How long to wait: not at all while the list is not through, or a leader was named. A connection
 * that was greeted and did not last is no reason to hurry to the next address: two processes that
 * drive each other away would do nothing else. */
static int64_t plan_retry(struct muster_server *m, bool greeted, bool steady)
{
    if (greeted)
        begin_round(m);
    if (steady)
        m->failures = 0;
    else if (greeted && m->failures > FAILURES_GREETED)
        m->failures = FAILURES_GREETED;
    bool others = m->n_addresses > 1 && m->tried < m->n_addresses;
    if (m->has_named || (others && steady == greeted))
        return 0;
    if (m->standby_spoke && m->failures > FAILURES_STANDBY)
        m->failures = FAILURES_STANDBY;
    int64_t wait_ms = backoff(m);
    m->failures++;
    begin_round(m);
    return wait_ms;
}

/* Acts on a noted failure. Matches and all that is owed stay. */
static void lose(struct muster_server *m, int64_t now)
{
    bool greeted = m->link == LINK_REGISTERED;
    bool steady = greeted && now - m->registered_ms >= STEADY_MS;
    tls_end(m);
    if (m->fd >= 0)
        close(m->fd);
    m->fd = -1;
    m->in_len = 0;
    m->out_len = 0;
    m->link = LINK_WAITING;
    m->id = 0;
    int64_t wait_ms = plan_retry(m, greeted, steady);
    m->until_ms = now + wait_ms;

    enum muster_error why = m->failed;
    m->failed = MUSTER_OK;
    if (m->calls.disconnected)
        m->calls.disconnected(m->user, why, m->why, wait_ms);
}

void muster_server_poll(struct muster_server *m)
{
    int64_t now = now_ms(m);
    if (m->link == LINK_WAITING && now >= m->until_ms)
        connect_start(m, now);
    if (m->link == LINK_CONNECTING && !m->failed)
        connect_finish(m, now);
    if (m->link == LINK_SECURING && !m->failed)
        secure(m, now);
    if (m->link == LINK_GREETING || m->link == LINK_REGISTERED) {
        receive(m, now);
        if (m->link == LINK_GREETING && !m->failed && now >= m->until_ms)
            fail(m, MUSTER_E_SILENT, muster_error_text(MUSTER_E_SILENT));
    }
    if (m->link == LINK_REGISTERED && !m->failed) {
        expire_matches(m, now);
        heartbeat(m, now);
        watch_silence(m, now);
        pump(m, now);
    }
    if ((m->link == LINK_GREETING || m->link == LINK_REGISTERED) && !m->failed)
        transmit(m);
    if (m->failed)
        lose(m, now);
}

int muster_server_fd(const struct muster_server *m)
{
    return m->fd;
}

short muster_server_events(const struct muster_server *m)
{
    if (m->fd < 0)
        return 0;
    if (m->link == LINK_CONNECTING)
        return POLLOUT;
    if (m->link == LINK_SECURING)
        return tls_events(m->tls);
    return m->out_len > 0 ? POLLIN | POLLOUT : POLLIN;
}

static int64_t earliest(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t next_due(const struct muster_server *m)
{
    if (m->failed || (m->tls && tls_has_input(m->tls)))
        return INT64_MIN;
    if (m->link != LINK_REGISTERED)
        return m->until_ms;
    if (pump_has_work(m))
        return INT64_MIN;
    int64_t quiet_ms =
        m->pinged ? patience(m, SILENT_MS, SILENT_ONE_OF_MS) : patience(m, PING_MS, PING_ONE_OF_MS);
    int64_t due = earliest(m->heartbeat_due_ms, m->heard_ms + quiet_ms);
    for (size_t i = 0; i < m->n_matches; i++) {
        const struct match *match = &m->matches[i];
        if (match_can_expire(match))
            due = earliest(due, match->expires_ms);
        if (match_owes(match) && has_room(m))
            due = earliest(due, match->due_ms);
    }
    return due;
}

int muster_server_timeout_ms(const struct muster_server *m)
{
    int64_t due = next_due(m);
    int64_t now = now_ms(m);
    if (due <= now)
        return 0;
    return due - now < TIMEOUT_MAX_MS ? (int)(due - now) : TIMEOUT_MAX_MS;
}

void muster_server_disconnect(struct muster_server *m)
{
    if (m->link != LINK_WAITING)
        fail(m, MUSTER_E_DROPPED, muster_error_text(MUSTER_E_DROPPED));
}

const char *muster_server_address(const struct muster_server *m)
{
    return m->address;
}

int32_t muster_server_id(const struct muster_server *m)
{
    return m->id;
}

static float percent(float v)
{
    return isnan(v) || v < 0 ? 0 : v > 100 ? 100 : v;
}

void muster_server_set_load(struct muster_server *m, float cpu_percent, float memory_percent)
{
    m->cpu = percent(cpu_percent);
    m->memory = percent(memory_percent);
}

int32_t muster_server_match_count(const struct muster_server *m)
{
    int32_t n = 0;
    for (size_t i = 0; i < m->n_matches; i++)
        n += m->matches[i].state == MATCH_ASKED || m->matches[i].state == MATCH_HELD;
    return n;
}

void muster_server_set_match_count(struct muster_server *m, int32_t n)
{
    m->count_told = n < 0 ? -1 : n > COUNT_MAX ? COUNT_MAX : n;
}

void muster_server_drain(struct muster_server *m, bool on)
{
    m->drain_on = on;
    m->drain_owed = true;
    m->drain_sent = false;
}

bool muster_server_drain_acknowledged(const struct muster_server *m)
{
    return !m->drain_owed;
}

bool muster_server_clock_offset_ms(const struct muster_server *m, int64_t *ret)
{
    if (m->clock == CLOCK_UNKNOWN)
        return false;
    *ret = m->offset_us / 1000;
    return true;
}

int64_t muster_server_rtt_ms(const struct muster_server *m)
{
    return m->rtt_ms;
}

int muster_match_answer(struct muster_server *m, int32_t lobby, bool accept)
{
    struct match *match = match_find(m, lobby);
    if (!match && m->options.late_answers && m->link == LINK_REGISTERED)
        send_ack(m, ALLOCATE_MATCH_ACK, accept, lobby);
    if (!match || match->state != MATCH_ASKED)
        return MUSTER_E_UNKNOWN_MATCH;
    if (accept)
        match_accept(m, match);
    else
        match_refuse(m, match);
    return MUSTER_OK;
}

int muster_match_ready(struct muster_server *m, int32_t lobby)
{
    struct match *match = match_find(m, lobby);
    if (!match || match->state == MATCH_ENDING)
        return MUSTER_E_UNKNOWN_MATCH;
    if (match->state == MATCH_ASKED)
        match_accept(m, match);
    if (!match->ready_owed) {
        match->ready_owed = true;
        match->due_ms = INT64_MIN;
    }
    return MUSTER_OK;
}

int muster_match_validate(struct muster_server *m, int32_t lobby, int32_t account,
                          const char *token, uint64_t player)
{
    struct match *match = match_find(m, lobby);
    if (!match || match->state != MATCH_HELD)
        return MUSTER_E_UNKNOWN_MATCH;
    if (!text_allowed(token)) /* it would cost us the connection, and it comes from a player */
        return MUSTER_E_TEXT;
    if (m->n_validations == MUSTER_MAX_VALIDATIONS)
        return MUSTER_E_FULL;
    char *copy = strdup(token);
    if (!copy)
        return MUSTER_E_MEMORY;
    m->validations[m->n_validations++] =
        (struct validation){.lobby = lobby, .account = account, .player = player, .token = copy};
    return MUSTER_OK;
}

int muster_match_player_left(struct muster_server *m, int32_t lobby, int32_t account)
{
    struct match *match = match_find(m, lobby);
    if (!match || match->state != MATCH_HELD)
        return MUSTER_E_UNKNOWN_MATCH;
    if (m->n_left == MUSTER_MAX_LEFT) {
        /* Muster has been away for long. A forgotten departure costs nothing but a name on a list
         * until the match ends; the newest are the likelier to matter. */
        m->n_left--;
        memmove(m->left, m->left + 1, m->n_left * sizeof(m->left[0]));
    }
    m->left[m->n_left++] = (struct departure){.lobby = lobby, .account = account};
    return MUSTER_OK;
}

int muster_match_end(struct muster_server *m, int32_t lobby, int8_t winning_team,
                     int32_t duration_s)
{
    struct match *match = match_find(m, lobby);
    if (!match || match->state != MATCH_HELD)
        return MUSTER_E_UNKNOWN_MATCH;
    if (winning_team < 0 || duration_s < 0)
        return MUSTER_E_RANGE;
    match_close(m, match, winning_team, duration_s);
    return MUSTER_OK;
}

/* "host:port" or "[v6]:port" into its parts. */
static bool split_address(const char *text, char host[HOST_MAX], char port[PORT_MAX])
{
    const char *colon = strrchr(text, ':');
    if (!colon || colon == text || colon[1] == '\0')
        return false;
    size_t n = (size_t)(colon - text);
    if (text[0] == '[') {
        if (n < 3 || colon[-1] != ']')
            return false;
        text++;
        n -= 2;
    }
    if (n >= HOST_MAX || strlen(colon + 1) >= PORT_MAX)
        return false;
    memcpy(host, text, n);
    host[n] = '\0';
    memcpy(port, colon + 1, strlen(colon + 1) + 1);
    return true;
}

static void address_set(struct address *to, const struct addrinfo *from)
{
    memcpy(&to->name, from->ai_addr, from->ai_addrlen);
    to->len = from->ai_addrlen;
}

/* True when host is an IP address; never blocks. */
static bool find_numeric(const char *host, const char *port, struct address *ret)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    if (getaddrinfo(host, port, &hints, &found) != 0)
        return false;
    *ret = (struct address){0};
    address_set(ret, found);
    freeaddrinfo(found);
    return true;
}

/* Looks one up and adds what is found; nothing is no failure yet. */
static void look_up(struct muster_server *m, size_t host, const char *port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    if (getaddrinfo(m->hosts[host], port, &hints, &found) != 0)
        return;
    size_t n = 0;
    for (struct addrinfo *a = found; a && n < HOST_ADDRESSES; a = a->ai_next, n++) {
        struct address *to = &m->addresses[m->n_addresses++];
        address_set(to, a);
        to->host = host;
    }
    freeaddrinfo(found);
}

/* "host:port" and more of them, with commas between them. One name that cannot be looked up is left
 * out: it may be that of the node that is gone. */
static int resolve(struct muster_server *m, const char *server)
{
    char one[HOST_MAX + PORT_MAX + 3];
    char port[PORT_MAX];
    for (const char *at = server; at;) {
        size_t n = strcspn(at, ",");
        if (m->n_hosts == MUSTER_MAX_ADDRESSES || n >= sizeof(one))
            return MUSTER_E_OPTIONS;
        memcpy(one, at, n);
        one[n] = '\0';
        if (!split_address(one, m->hosts[m->n_hosts], port))
            return MUSTER_E_OPTIONS;
        if (port[strspn(port, "0123456789")])
            return MUSTER_E_RESOLVE;
        look_up(m, m->n_hosts++, port);
        at = at[n] ? at + n + 1 : NULL;
    }
    return m->n_addresses > 0 ? MUSTER_OK : MUSTER_E_RESOLVE;
}

static bool options_valid(const struct muster_options *o)
{
    if (!o->server || !o->ip || o->port < 1024 || o->port > 65535 || o->region < 0 ||
        o->max_matches < 1 || o->max_matches > MUSTER_MAX_MATCHES)
        return false;
    if (!o->tls_certificate != !o->tls_key || (o->tls_certificate && !o->tls_ca))
        return false;
    const char *token = o->token ? o->token : "";
    return text_allowed(token) && text_allowed(o->ip) &&
           strlen(token) + strlen(o->ip) <= MUSTER_MAX_HELLO;
}

/* A copy, and NULL where there is nothing or no memory, which *missing says. */
static const char *copy_text(const char *s, bool *missing)
{
    char *copy = s ? strdup(s) : NULL;
    *missing = *missing || (s && !copy);
    return copy;
}

/* Fills in the defaults and makes the strings ours. */
static int options_take(struct muster_options *o)
{
    bool missing = false;
    o->server = NULL; /* resolved already */
    o->token = copy_text(o->token ? o->token : "", &missing);
    o->ip = copy_text(o->ip, &missing);
    o->tls_ca = copy_text(o->tls_ca, &missing);
    o->tls_certificate = copy_text(o->tls_certificate, &missing);
    o->tls_key = copy_text(o->tls_key, &missing);
    o->tls_server_name = copy_text(o->tls_server_name, &missing);
    if (o->unconfirmed_ms == 0)
        o->unconfirmed_ms = UNCONFIRMED_MS;
    if (o->heartbeat_ms == 0)
        o->heartbeat_ms = HEARTBEAT_MS;
    if (!o->clock_ms)
        o->clock_ms = machine_ms;
    return missing ? MUSTER_E_MEMORY : MUSTER_OK;
}

static void options_free(struct muster_options *o)
{
    free((char *)o->token);
    free((char *)o->ip);
    free((char *)o->tls_ca);
    free((char *)o->tls_certificate);
    free((char *)o->tls_key);
    free((char *)o->tls_server_name);
}

/* Good enough to keep servers apart; nothing secret rests on it. */
static uint64_t draw_seed(const struct muster_server *m)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_nsec ^ (uint64_t)t.tv_sec << 30 ^ (uint64_t)getpid() << 20 ^
           (uint64_t)(uintptr_t)m;
}

int muster_server_new(const struct muster_options *options,
                      const struct muster_callbacks *callbacks, void *user,
                      struct muster_server **ret)
{
    *ret = NULL;
    if (!options_valid(options))
        return MUSTER_E_OPTIONS;
    struct muster_server *m = calloc(1, sizeof(*m));
    if (!m)
        return MUSTER_E_MEMORY;
    m->fd = -1;
    m->user = user;
    m->rtt_ms = -1;
    m->count_told = -1;
    if (callbacks)
        m->calls = *callbacks;
    int error = resolve(m, options->server);
    if (!error) {
        m->options = *options;
        error = options_take(&m->options);
    }
    if (!error && options->tls_ca)
        error = tls_check(&m->options);
    if (!error) {
        m->n_matches = 2 * (size_t)options->max_matches;
        m->matches = calloc(m->n_matches, sizeof(m->matches[0]));
        error = m->matches ? MUSTER_OK : MUSTER_E_MEMORY;
    }
    if (error) {
        m->n_matches = 0;
        muster_server_free(m);
        return error;
    }
    m->random = options->jitter_seed ? options->jitter_seed : draw_seed(m);
    m->until_ms = now_ms(m);
    *ret = m;
    return MUSTER_OK;
}

void muster_server_free(struct muster_server *m)
{
    if (!m)
        return;
    if (m->link == LINK_REGISTERED && !m->failed) {
        pump(m, now_ms(m));
        transmit(m);
        tls_goodbye(m->tls);
    }
    tls_end(m);
    if (m->fd >= 0)
        close(m->fd);
    for (size_t i = 0; i < m->n_matches; i++)
        free(m->matches[i].token);
    for (size_t i = 0; i < m->n_validations; i++)
        free(m->validations[i].token);
    free(m->matches);
    options_free(&m->options);
    free(m);
}
