#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "store/libpq_table.h"

#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPTIONS_MAX = 64, /* libpq knows about forty */
    SILENCE_S = 10,   /* a peer that is silent is asked after so long, and again each so long */
    STOP_MS = 20,     /* how soon we see that nobody waits any more */

    /* The same of PostgreSQL: a node that vanished in the middle of a statement keeps its locks
     * until then. */
    THEIR_SILENCE_S = 5,
    THEIR_INTERVAL_S = 2,
    THEIR_COUNT = 3,
};

struct libpq libpq;

static const struct {
    const char *name;
    size_t at;
} wanted[] = {
#define X(name) {#name, offsetof(struct libpq, name)},
    LIBPQ_FUNCTIONS(X)
#undef X
};

static bool loaded;

static void load(void)
{
    void *library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return;
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        void *function = dlsym(library, wanted[i].name);
        memcpy((char *)&libpq + wanted[i].at, &function, sizeof(function));
        if (!function)
            return;
    }
    loaded = true;
}

const char *libpq_load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, load);
    return loaded ? NULL : "libpq.so.5 cannot be loaded; install the package libpq5.";
}

/* ── the URL ───────────────────────────────────────────────────────────────────────────────── */

static const char *option(const PQconninfoOption *options, const char *key)
{
    for (const PQconninfoOption *o = options; o->keyword; o++) {
        if (strcmp(o->keyword, key) == 0)
            return o->val;
    }
    return NULL;
}

/* A password with an @ or a / in it ends up in what follows, and then in messages. */
static bool spilt(const PQconninfoOption *options)
{
    static const char *const keys[] = {"host", "port", "dbname"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const char *v = option(options, keys[i]);
        if (v && strchr(v, '@'))
            return true;
    }
    return false;
}

/* libpq's own words show the whole URL, so they are not used, but for the one that names a
 * parameter. */
static void refuse_url(const char *said, struct why *why)
{
    const char *parameter = said ? strstr(said, "URI query parameter: \"") : NULL;
    const char *name = parameter ? strchr(parameter, '"') + 1 : NULL;
    if (name)
        why_set(why, "The database's URL has a parameter that PostgreSQL does not know: %.*s.",
                (int)strcspn(name, "\"\n"), name);
    else
        why_set(why, "The database's URL cannot be read. It looks like "
                     "postgres://user@host:5432/database.");
}

static PQconninfoOption *parse(const char *url, struct why *why)
{
    bool ours = strncmp(url, "postgres://", strlen("postgres://")) == 0 ||
                strncmp(url, "postgresql://", strlen("postgresql://")) == 0;
    char *said = NULL;
    PQconninfoOption *options = ours ? libpq.PQconninfoParse(url, &said) : NULL;
    if (!options)
        refuse_url(said, why);
    if (said)
        libpq.PQfreemem(said);
    if (!options || !spilt(options))
        return options;
    why_set(why, "The database's URL has an @ after its host. In a password write %%40 for @, %%3A "
                 "for : and %%2F for /.");
    libpq.PQconninfoFree(options);
    return NULL;
}

int pg_check_url(const char *url, struct why *why)
{
    const char *missing = libpq_load();
    if (missing) {
        why_set(why, "%s", missing);
        return ERR_BAD_ARGUMENT;
    }
    PQconninfoOption *options = parse(url, why);
    if (!options)
        return ERR_BAD_ARGUMENT;
    libpq.PQconninfoFree(options);
    return 0;
}

/* ── one host ──────────────────────────────────────────────────────────────────────────────── */

struct settings {
    int n;
    const char *keys[OPTIONS_MAX + 1];
    const char *values[OPTIONS_MAX + 1];
};

static void set(struct settings *s, const char *key, const char *value)
{
    int i = 0;
    while (i < s->n && strcmp(s->keys[i], key) != 0)
        i++;
    if (i == OPTIONS_MAX)
        return;
    s->keys[i] = key;
    s->values[i] = value;
    if (i == s->n)
        s->n++;
}

static void set_default(struct settings *s, const PQconninfoOption *options, const char *key,
                        const char *value)
{
    if (!option(options, key))
        set(s, key, value);
}

/* The i-th of a list with commas; the only one is everybody's. NULL when there is none. */
static const char *nth(const char *list, int i, char *dst, size_t cap)
{
    if (!list)
        return NULL;
    const char *at = list;
    bool single = strchr(list, ',') == NULL;
    for (; i > 0 && !single; i--) {
        at = strchr(at, ',');
        if (!at)
            return NULL;
        at++;
    }
    snprintf(dst, cap, "%.*s", (int)strcspn(at, ","), at);
    return dst;
}

bool libpq_ready(const struct pg *pg, short events, int64_t until_ms)
{
    int64_t longest_ms = pg->stop ? STOP_MS : 60000;
    for (;;) {
        int64_t left_ms = until_ms - clock_monotonic_ms();
        struct pollfd fd = {.fd = libpq.PQsocket(pg->conn), .events = events};
        if (left_ms <= 0 || fd.fd < 0 || (pg->stop && *pg->stop))
            return false;
        int n = poll(&fd, 1, (int)(left_ms > longest_ms ? longest_ms : left_ms));
        if (n > 0)
            return true;
    }
}

void libpq_reason(const char *message, char *dst, size_t cap)
{
    static const char *const prefixes[] = {" failed: ", "FATAL:  ", "ERROR:  "};
    const char *end = message + strcspn(message, "\n");
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        const char *at = strstr(message, prefixes[i]);
        if (at && at < end)
            message = at + strlen(prefixes[i]);
    }
    while (end > message && (end[-1] == '.' || end[-1] == ' '))
        end--;
    snprintf(dst, cap, "%.*s", (int)(end - message), message);
}

static void on_notice(void *user, const PGresult *notice)
{
    struct pg *pg = user;
    const char *severity = libpq.PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
    if (severity && strcmp(severity, "WARNING") == 0)
        pg->warning = true;
}

/* True when the connection stands; otherwise `reason` says why not. Looking a name up is libc's,
 * and takes as long as that takes. */
static bool open_one(struct pg *pg, const struct settings *s, int64_t connect_ms, char *reason,
                     size_t cap)
{
    int64_t until_ms = clock_monotonic_ms() + connect_ms;
    pg->conn = libpq.PQconnectStartParams(s->keys, s->values, 0);
    PostgresPollingStatusType state = PGRES_POLLING_WRITING;
    if (pg->conn) /* at once: by default libpq writes what it hears to standard error */
        (void)libpq.PQsetNoticeReceiver(pg->conn, on_notice, pg);
    bool in_time = pg->conn && libpq.PQstatus(pg->conn) != CONNECTION_BAD;
    while (in_time && state != PGRES_POLLING_OK && state != PGRES_POLLING_FAILED) {
        in_time = libpq_ready(pg, state == PGRES_POLLING_READING ? POLLIN : POLLOUT, until_ms);
        if (in_time)
            state = libpq.PQconnectPoll(pg->conn);
    }
    if (state == PGRES_POLLING_OK) {
        (void)libpq.PQsetnonblocking(pg->conn, 1);
        return true;
    }
    if (pg->conn && (state == PGRES_POLLING_FAILED || libpq.PQstatus(pg->conn) == CONNECTION_BAD))
        libpq_reason(libpq.PQerrorMessage(pg->conn), reason, cap);
    else
        snprintf(reason, cap, "it does not answer");
    libpq.PQfinish(pg->conn);
    pg->conn = NULL;
    return false;
}

/* What holds for each host: the URL's own words first. */
static void settle(struct settings *s, const PQconninfoOption *options, const struct pg_wish *wish,
                   char silence_s[16], char unsent_ms[16])
{
    for (const PQconninfoOption *o = options; o->keyword; o++) {
        if (o->val)
            set(s, o->keyword, o->val);
    }
    snprintf(silence_s, 16, "%d", SILENCE_S);
    snprintf(unsent_ms, 16, "%lld", (long long)wish->answer_ms);
    set_default(s, options, "application_name", wish->name);
    set_default(s, options, "target_session_attrs", "read-write");
    set_default(s, options, "keepalives_idle", silence_s);
    set_default(s, options, "keepalives_interval", silence_s);
    set_default(s, options, "keepalives_count", "3");
    set_default(s, options, "tcp_user_timeout", unsent_ms);
    set(s, "client_encoding", "UTF8");
}

/* libpq would go through several hosts itself, but with one deadline for all of them or whole
 * seconds for each. */
static bool open_any(struct pg *pg, const PQconninfoOption *options, const struct pg_wish *wish,
                     struct why *why)
{
    struct settings s = {0};
    char silence_s[16];
    char unsent_ms[16];
    settle(&s, options, wish, silence_s, unsent_ms);
    const char *hosts = option(options, "host");
    const char *addresses = option(options, "hostaddr");
    const char *list = addresses ? addresses : hosts;
    int n = 1;
    for (const char *at = list; at && (at = strchr(at, ',')); at++)
        n++;
    why_set(why, "PostgreSQL was not asked: nobody waits for the answer.");
    for (int i = 0; i < n && !(wish->stop && *wish->stop); i++) {
        char host[256];
        char address[64];
        char port[16];
        char reason[256];
        set(&s, "host", nth(hosts, i, host, sizeof(host)));
        set(&s, "hostaddr", nth(addresses, i, address, sizeof(address)));
        set(&s, "port", nth(option(options, "port"), i, port, sizeof(port)));
        snprintf(pg->where, sizeof(pg->where), "%s:%s",
                 hosts       ? host
                 : addresses ? address
                             : "-",
                 option(options, "port") ? port : "5432");
        if (open_one(pg, &s, wish->connect_ms, reason, sizeof(reason)))
            return true;
        why_set(why, "PostgreSQL at %s cannot be used: %s.", pg->where, reason);
    }
    return false;
}

/* PostgreSQL gives up before we do, so that there is an answer. A role may be set to answer before
 * what it wrote is safe, or to refuse whoever waited for a row that another changed; ours look at
 * the row again then. */
static int begin(struct pg *pg, const struct pg_wish *wish, struct why *why)
{
    char sql[768];
    int n = snprintf(sql, sizeof(sql),
                     "SET statement_timeout = %lld; SET tcp_keepalives_idle = %d;"
                     "SET tcp_keepalives_interval = %d; SET tcp_keepalives_count = %d;"
                     "SET default_transaction_isolation = 'read committed';"
                     "SELECT set_config('synchronous_commit', 'on', false)"
                     " WHERE current_setting('synchronous_commit') IN ('off', 'local');",
                     (long long)(wish->answer_ms - wish->answer_ms / 10), THEIR_SILENCE_S,
                     THEIR_INTERVAL_S, THEIR_COUNT);
    if (wish->schema)
        snprintf(sql + n, sizeof(sql) - (size_t)n, "SET search_path = \"%s\"", wish->schema);
    return pg_script(pg, sql, why);
}

int pg_connect(const struct pg_wish *wish, struct pg **ret, struct why *why)
{
    const char *missing = libpq_load();
    if (missing) {
        why_set(why, "%s", missing);
        return ERR_IO;
    }
    PQconninfoOption *options = parse(wish->url, why);
    if (!options)
        return ERR_IO;
    struct pg *pg = xcalloc(1, sizeof(*pg));
    pg->answer_ms = wish->answer_ms;
    pg->stop = wish->stop;
    int err = open_any(pg, options, wish, why) ? 0 : ERR_IO;
    libpq.PQconninfoFree(options);
    if (err == 0)
        err = begin(pg, wish, why);
    if (err == 0) {
        *ret = pg;
        return 0;
    }
    pg_close(pg);
    return err;
}
