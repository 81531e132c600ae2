/* Libpq: a connection to PostgreSQL whose every call ends by a deadline, and whose every failure is
 * one sentence without the password. libpq is loaded at the first connection; nobody but libpq.c
 * knows its header. A connection belongs to whoever made it, and is used by one thread at a time.
 *
 * After a call that says ERR_IO ask pg_lost(): true means that nobody knows what became of the
 * call, and that the connection is of no use any more; false means that PostgreSQL refused and
 * changed nothing. */
#pragma once

#include "store/store.h"

struct pg;
struct pg_result;

/* What a wait ended with. */
enum pg_news {
    PG_NEWS_NONE, /* its time was over */
    PG_NEWS_NOTICE,
    PG_NEWS_ANSWER,
    PG_NEWS_WOKEN,
    PG_NEWS_LOST,
};

struct pg_wish {
    const char *url;    /* postgres://…; several hosts are tried in their order */
    const char *schema; /* where names are looked up; NULL = as the database has it */
    const char *name;   /* what the connection is for, in pg_stat_activity */
    int64_t connect_ms; /* for each host */
    int64_t answer_ms;  /* for each call */

    /* Connecting and calls end early, as if there were no answer, when this becomes true. NULL =
     * nobody is in a hurry. */
    const _Atomic bool *stop;
};

/* Connects, to a server that takes writes unless the URL says otherwise. ERR_IO with a sentence,
 * which says the package when libpq is missing. */
int pg_connect(const struct pg_wish *wish, struct pg **ret, struct why *why);

/* NULL is fine. Does not wait for what is under way. */
void pg_close(struct pg *pg);

/* Whether the URL can be one, without connecting. ERR_BAD_ARGUMENT with a sentence. */
int pg_check_url(const char *url, struct why *why);

/* The connection cannot be used any more. */
bool pg_lost(const struct pg *pg);

/* The SQLSTATE of what was refused last, five characters; "" when it was not PostgreSQL's refusal.
 */
const char *pg_state(const struct pg *pg);

/* PostgreSQL warned about what was received last, or between that and the one before: of a commit,
 * that a standby may not have it. */
bool pg_warned(const struct pg *pg);

/* From now on calls have so long, instead of the wish's answer_ms. */
void pg_set_patience(struct pg *pg, int64_t answer_ms);

/* … and end early when this becomes true, instead of the wish's stop; NULL = they never do. */
void pg_set_stop(struct pg *pg, const _Atomic bool *stop);

/* ── parameters: all binary, so SQL must say their types ($1::bigint) where they do not follow ──
 */

enum { PG_ARGS_MAX = 48 };

/* Embedded: a zeroed struct has none. Texts and bytes are borrowed until the call ends. */
struct pg_args {
    int n;
    const char *values[PG_ARGS_MAX];
    int lengths[PG_ARGS_MAX];
    int formats[PG_ARGS_MAX];
    int64_t numbers[PG_ARGS_MAX]; /* in network order */
};

void pg_int(struct pg_args *a, int64_t v); /* bigint */
void pg_flag(struct pg_args *a, bool v);   /* boolean */
void pg_text(struct pg_args *a, const char *v);
void pg_bytes(struct pg_args *a, const void *at, size_t len); /* bytea, or an array made by hand */

/* ── calls ─────────────────────────────────────────────────────────────────────────────────────
 * Each returns 0 or ERR_IO with a sentence. *ret (NULL = not wanted) is the caller's to free. */

/* Statements without parameters, one after the other, in one transaction unless they say BEGIN. */
int pg_script(struct pg *pg, const char *sql, struct why *why);

/* One statement, once. */
int pg_query(struct pg *pg, const char *sql, const struct pg_args *args, struct pg_result **ret,
             struct why *why);

/* One statement that is planned for the connection's whole life, and then run by its name. */
int pg_prepare(struct pg *pg, const char *name, const char *sql, struct why *why);
int pg_run(struct pg *pg, const char *name, const struct pg_args *args, struct pg_result **ret,
           struct why *why);

/* The two halves of pg_run: results come in the order of the sends. More than one may be under way
 * after pg_pipeline; each is a transaction of its own then, and nothing but pg_send and pg_receive
 * may be called. */
int pg_pipeline(struct pg *pg, struct why *why);
int pg_send(struct pg *pg, const char *name, const struct pg_args *args, struct why *why);
int pg_receive(struct pg *pg, struct pg_result **ret, struct why *why);

/* Waits until there is something for pg_receive, at most wait_ms; ends early as pg_wait does. */
enum pg_news pg_wait_answer(struct pg *pg, int64_t wait_ms, int wake_fd);

/* ── results ───────────────────────────────────────────────────────────────────────────────── */

void pg_free(struct pg_result *r); /* NULL is fine */
int pg_rows(const struct pg_result *r);
int64_t pg_affected(const struct pg_result *r); /* rows that were inserted, updated or deleted */
bool pg_null(const struct pg_result *r, int row, int column);

/* Of a smallint, integer, bigint or boolean; 0 for anything else. */
int64_t pg_get_int(const struct pg_result *r, int row, int column);

/* Of a bytea or text; borrowed from the result, and there is a NUL after it. */
struct str pg_get_bytes(const struct pg_result *r, int row, int column);
void pg_get_text(const struct pg_result *r, int row, int column, char *dst, size_t cap);

/* ── notifications (after LISTEN) ──────────────────────────────────────────────────────────── */

/* Waits for a notification, at most wait_ms; those that have come are taken together. Ends early
 * when wake_fd (-1 = none) is readable, which stays the caller's to read. */
enum pg_news pg_wait(struct pg *pg, int64_t wait_ms, int wake_fd);
