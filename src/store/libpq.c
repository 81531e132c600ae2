#include "store/libpq.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "store/libpq_table.h"

#include <assert.h>
#include <endian.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void pg_close(struct pg *pg)
{
    if (!pg)
        return;
    if (pg->conn)
        libpq.PQfinish(pg->conn);
    free(pg);
}

bool pg_lost(const struct pg *pg)
{
    return pg->lost;
}

bool pg_warned(const struct pg *pg)
{
    return pg->warned;
}

const char *pg_state(const struct pg *pg)
{
    return pg->state;
}

void pg_set_patience(struct pg *pg, int64_t answer_ms)
{
    pg->answer_ms = answer_ms;
}

void pg_set_stop(struct pg *pg, const _Atomic bool *stop)
{
    pg->stop = stop;
}

/* ── failures ──────────────────────────────────────────────────────────────────────────────── */

static int lose(struct pg *pg, struct why *why)
{
    char reason[256];
    libpq_reason(libpq.PQerrorMessage(pg->conn), reason, sizeof(reason));
    pg->lost = true;
    pg->state[0] = '\0';
    why_set(why, "The connection to PostgreSQL at %s is lost: %s.", pg->where,
            reason[0] ? reason : "it was closed");
    return ERR_IO;
}

static int give_up(struct pg *pg, struct why *why)
{
    pg->lost = true;
    pg->state[0] = '\0';
    why_set(why, "PostgreSQL at %s does not answer: nothing for %lld ms.", pg->where,
            (long long)pg->answer_ms);
    return ERR_IO;
}

static int refused(struct pg *pg, const PGresult *r, struct why *why)
{
    const char *state = libpq.PQresultErrorField(r, PG_DIAG_SQLSTATE);
    const char *said = libpq.PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
    char reason[256];
    libpq_reason(said ? said : libpq.PQresultErrorMessage(r), reason, sizeof(reason));
    snprintf(pg->state, sizeof(pg->state), "%s", state ? state : "");
    why_set(why, "PostgreSQL at %s refuses: %s.", pg->where, reason);
    return ERR_IO;
}

/* ── parameters ────────────────────────────────────────────────────────────────────────────── */

static void add(struct pg_args *a, const void *at, size_t len)
{
    assert(a->n < PG_ARGS_MAX && len <= INT32_MAX);
    /* NULL would be SQL's NULL. */
    a->values[a->n] = len > 0 ? at : "";
    a->lengths[a->n] = (int)len;
    a->formats[a->n] = 1;
    a->n++;
}

void pg_int(struct pg_args *a, int64_t v)
{
    assert(a->n < PG_ARGS_MAX);
    a->numbers[a->n] = (int64_t)htobe64((uint64_t)v);
    add(a, &a->numbers[a->n], sizeof(v));
}

void pg_flag(struct pg_args *a, bool v)
{
    add(a, v ? "\1" : "\0", 1);
}

void pg_text(struct pg_args *a, const char *v)
{
    add(a, v, strlen(v));
}

void pg_bytes(struct pg_args *a, const void *at, size_t len)
{
    add(a, at, len);
}

/* ── calls ─────────────────────────────────────────────────────────────────────────────────── */

/* Hands over all that is to be sent. Reads meanwhile: the other side may wait for that. */
static int flush(struct pg *pg, struct why *why)
{
    int64_t until_ms = clock_monotonic_ms() + pg->answer_ms;
    int rest;
    while ((rest = libpq.PQflush(pg->conn)) == 1) {
        if (!libpq_ready(pg, POLLIN | POLLOUT, until_ms))
            return give_up(pg, why);
        if (!libpq.PQconsumeInput(pg->conn))
            return lose(pg, why);
    }
    return rest == 0 ? 0 : lose(pg, why);
}

static int next_result(struct pg *pg, int64_t until_ms, PGresult **ret, struct why *why)
{
    while (libpq.PQisBusy(pg->conn)) {
        if (!libpq_ready(pg, POLLIN, until_ms))
            return give_up(pg, why);
        if (!libpq.PQconsumeInput(pg->conn))
            return lose(pg, why);
    }
    *ret = libpq.PQgetResult(pg->conn);
    return 0;
}

/* An end of a connection comes as a result too: PostgreSQL says why, or libpq does. What PostgreSQL
 * ends may have been committed before. */
static int judge(struct pg *pg, const PGresult *r, struct why *why)
{
    ExecStatusType status = libpq.PQresultStatus(r);
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_PIPELINE_SYNC)
        return 0;
    const char *severity = libpq.PQresultErrorField(r, PG_DIAG_SEVERITY_NONLOCALIZED);
    if (libpq.PQstatus(pg->conn) == CONNECTION_BAD || (severity && strcmp(severity, "ERROR") != 0))
        return lose(pg, why);
    return refused(pg, r, why);
}

int pg_receive(struct pg *pg, struct pg_result **ret, struct why *why)
{
    int64_t until_ms = clock_monotonic_ms() + pg->answer_ms;
    PGresult *last = NULL;
    int result = 0;
    pg->state[0] = '\0';
    for (bool over = false; !over && !pg->lost;) {
        PGresult *r = NULL;
        int err = next_result(pg, until_ms, &r, why);
        if (err != 0) {
            result = err;
            break;
        }
        /* In a pipeline nothing stands between a statement and its end. */
        over = r ? libpq.PQresultStatus(r) == PGRES_PIPELINE_SYNC : !pg->pipeline;
        if (r && result == 0)
            result = judge(pg, r, why);
        bool kept = r && !over && result == 0;
        if (kept) {
            libpq.PQclear(last);
            last = r;
        } else {
            libpq.PQclear(r);
        }
    }
    pg->warned = pg->warning;
    pg->warning = false;
    if (result == 0 && ret)
        *ret = (struct pg_result *)last;
    else
        libpq.PQclear(last);
    return result;
}

static int send_ended(struct pg *pg, int sent, struct why *why)
{
    if (sent && pg->pipeline)
        sent = libpq.PQpipelineSync(pg->conn);
    return sent ? flush(pg, why) : lose(pg, why);
}

int pg_send(struct pg *pg, const char *name, const struct pg_args *args, struct why *why)
{
    static const struct pg_args none;
    const struct pg_args *a = args ? args : &none;
    return send_ended(
        pg, libpq.PQsendQueryPrepared(pg->conn, name, a->n, a->values, a->lengths, a->formats, 1),
        why);
}

int pg_run(struct pg *pg, const char *name, const struct pg_args *args, struct pg_result **ret,
           struct why *why)
{
    int err = pg_send(pg, name, args, why);
    return err == 0 ? pg_receive(pg, ret, why) : err;
}

int pg_query(struct pg *pg, const char *sql, const struct pg_args *args, struct pg_result **ret,
             struct why *why)
{
    static const struct pg_args none;
    const struct pg_args *a = args ? args : &none;
    int sent =
        libpq.PQsendQueryParams(pg->conn, sql, a->n, NULL, a->values, a->lengths, a->formats, 1);
    int err = send_ended(pg, sent, why);
    return err == 0 ? pg_receive(pg, ret, why) : err;
}

int pg_script(struct pg *pg, const char *sql, struct why *why)
{
    int err = send_ended(pg, libpq.PQsendQuery(pg->conn, sql), why);
    return err == 0 ? pg_receive(pg, NULL, why) : err;
}

int pg_prepare(struct pg *pg, const char *name, const char *sql, struct why *why)
{
    int err = send_ended(pg, libpq.PQsendPrepare(pg->conn, name, sql, 0, NULL), why);
    return err == 0 ? pg_receive(pg, NULL, why) : err;
}

int pg_pipeline(struct pg *pg, struct why *why)
{
    pg->pipeline = libpq.PQenterPipelineMode(pg->conn) == 1;
    return pg->pipeline ? 0 : lose(pg, why);
}

/* ── results ───────────────────────────────────────────────────────────────────────────────── */

static const PGresult *inner(const struct pg_result *r)
{
    return (const PGresult *)r;
}

void pg_free(struct pg_result *r)
{
    if (r)
        libpq.PQclear((PGresult *)r);
}

int pg_rows(const struct pg_result *r)
{
    return libpq.PQntuples(inner(r));
}

int64_t pg_affected(const struct pg_result *r)
{
    return strtoll(libpq.PQcmdTuples((PGresult *)r), NULL, 10);
}

bool pg_null(const struct pg_result *r, int row, int column)
{
    return libpq.PQgetisnull(inner(r), row, column) == 1;
}

int64_t pg_get_int(const struct pg_result *r, int row, int column)
{
    const char *at = libpq.PQgetvalue(inner(r), row, column);
    uint64_t v8;
    uint32_t v4;
    uint16_t v2;
    switch (libpq.PQgetlength(inner(r), row, column)) {
    case 8:
        memcpy(&v8, at, sizeof(v8));
        return (int64_t)be64toh(v8);
    case 4:
        memcpy(&v4, at, sizeof(v4));
        return (int32_t)be32toh(v4);
    case 2:
        memcpy(&v2, at, sizeof(v2));
        return (int16_t)be16toh(v2);
    case 1:
        return at[0] != 0;
    default:
        return 0;
    }
}

struct str pg_get_bytes(const struct pg_result *r, int row, int column)
{
    return (struct str){libpq.PQgetvalue(inner(r), row, column),
                        (size_t)libpq.PQgetlength(inner(r), row, column)};
}

void pg_get_text(const struct pg_result *r, int row, int column, char *dst, size_t cap)
{
    struct str text = pg_get_bytes(r, row, column);
    snprintf(dst, cap, "%.*s", (int)text.len, text.at);
}

/* ── waiting ────────────────────────────────────────────────────────────────────────────────── */

static bool take_notices(struct pg *pg)
{
    bool any = false;
    for (PGnotify *n; (n = libpq.PQnotifies(pg->conn)); any = true)
        libpq.PQfreemem(n);
    return any;
}

static bool hear(struct pg *pg)
{
    if (!libpq.PQconsumeInput(pg->conn) || libpq.PQstatus(pg->conn) == CONNECTION_BAD)
        pg->lost = true;
    return !pg->lost;
}

/* What has come may be what is waited for: PG_NEWS_NONE asks to look, and to wait again. */
static enum pg_news wait_for_input(struct pg *pg, int64_t left_ms, int wake_fd)
{
    struct pollfd fds[2] = {{.fd = libpq.PQsocket(pg->conn), .events = POLLIN},
                            {.fd = wake_fd, .events = POLLIN}};
    int n = poll(fds, 2, left_ms > 60000 ? 60000 : (int)left_ms);
    if (n > 0 && fds[0].revents)
        return hear(pg) ? PG_NEWS_NONE : PG_NEWS_LOST;
    return n > 0 && fds[1].revents ? PG_NEWS_WOKEN : PG_NEWS_NONE;
}

enum pg_news pg_wait(struct pg *pg, int64_t wait_ms, int wake_fd)
{
    int64_t until_ms = clock_monotonic_ms() + wait_ms;
    enum pg_news news = pg->lost ? PG_NEWS_LOST : PG_NEWS_NONE;
    while (news == PG_NEWS_NONE) {
        int64_t left_ms = until_ms - clock_monotonic_ms();
        if (take_notices(pg))
            return PG_NEWS_NOTICE;
        if (left_ms <= 0)
            break;
        news = wait_for_input(pg, left_ms, wake_fd);
    }
    return news;
}

enum pg_news pg_wait_answer(struct pg *pg, int64_t wait_ms, int wake_fd)
{
    int64_t until_ms = clock_monotonic_ms() + wait_ms;
    enum pg_news news = pg->lost ? PG_NEWS_LOST : PG_NEWS_NONE;
    while (news == PG_NEWS_NONE) {
        int64_t left_ms = until_ms - clock_monotonic_ms();
        if (!libpq.PQisBusy(pg->conn))
            return PG_NEWS_ANSWER;
        if (left_ms <= 0)
            break;
        news = wait_for_input(pg, left_ms, wake_fd);
    }
    return news;
}
