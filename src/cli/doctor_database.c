/* The database of a cell: whether it can be used, how long a commit takes, what it would lose, and
 * whether the cell there is ours. Nothing is made or changed there. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/doctor.h"
#include "cli/secret.h"
#include "store/cell_link.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CONNECT_MS = 5000,
    ANSWER_MS = 5000,
    COMMITS = 100,
    SLOW_P99_US = 20 * 1000, /* an answer waits for two of them */
    SLOW_P50_US = 50 * 1000,
    VERSION_MIN = 150000,
};

static const char unreached_advice[] =
    "Check that it runs, that it can be reached from here, and what cluster.store says.";

/* What of the server matters to us, in the order of the query. */
struct server {
    int64_t version;
    char version_text[32];
    char encoding[32];
    char fsync[16];
    char synchronous[256]; /* synchronous_standby_names */
    int64_t replicas;      /* that commits wait for, as far as we may see */
    bool sees_replicas;
    bool may_make;
};

static const char server_sql[] =
    "SELECT current_setting('server_version_num')::bigint, current_setting('server_version')::text,"
    " current_setting('server_encoding')::text, current_setting('fsync')::text,"
    " current_setting('synchronous_standby_names')::text,"
    " (SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')),"
    " pg_has_role(current_user, 'pg_read_all_stats', 'USAGE'),"
    " has_database_privilege(current_database(), 'CREATE')";

static bool ask_server(struct doctor *d, struct pg *pg, struct server *ret)
{
    struct pg_result *r = NULL;
    struct why why;
    if (pg_query(pg, server_sql, NULL, &r, &why) != 0) {
        doctor_say(d, "database", DOCTOR_PROBLEM, "%s", why.text);
        doctor_advise(d, "%s", unreached_advice);
        return false;
    }
    ret->version = pg_get_int(r, 0, 0);
    pg_get_text(r, 0, 1, ret->version_text, sizeof(ret->version_text));
    pg_get_text(r, 0, 2, ret->encoding, sizeof(ret->encoding));
    pg_get_text(r, 0, 3, ret->fsync, sizeof(ret->fsync));
    pg_get_text(r, 0, 4, ret->synchronous, sizeof(ret->synchronous));
    ret->replicas = pg_get_int(r, 0, 5);
    ret->sees_replicas = pg_get_int(r, 0, 6) != 0;
    ret->may_make = pg_get_int(r, 0, 7) != 0;
    pg_free(r);
    return true;
}

static void tell_server(struct doctor *d, const struct server *s)
{
    bool good = strcmp(s->encoding, "UTF8") == 0 || strcmp(s->encoding, "SQL_ASCII") == 0;
    if (s->version < VERSION_MIN) {
        doctor_say(d, "database", DOCTOR_PROBLEM,
                   "It is PostgreSQL %s, and 15 is the oldest that "
                   "Muster works with.",
                   s->version_text);
        doctor_advise(d, "Upgrade it.");
    } else if (!good) {
        doctor_say(d, "database", DOCTOR_PROBLEM, "It has the encoding %s, and Muster needs UTF8.",
                   s->encoding);
        doctor_advise(d, "Make one: CREATE DATABASE muster ENCODING 'UTF8' TEMPLATE template0");
    } else {
        doctor_say(d, "database", DOCTOR_OK, "PostgreSQL %s answers.", s->version_text);
    }
}

/* What is lost when its machine is. */
static void tell_safety(struct doctor *d, const struct server *s)
{
    if (strcmp(s->fsync, "on") != 0) {
        doctor_say(d, "database safety", DOCTOR_PROBLEM,
                   "fsync is off: a power cut loses matches that were answered, or all of it.");
        doctor_advise(d, "ALTER SYSTEM SET fsync = on, then restart it.");
    } else if (!s->synchronous[0]) {
        doctor_say(d, "database safety", DOCTOR_WARNING,
                   "Commits wait for no replica: when the database's machine is lost, so are the "
                   "last matches that were answered.");
        doctor_advise(d, "Give it a replica and set synchronous_standby_names.");
    } else if (s->sees_replicas && s->replicas == 0) {
        doctor_say(d, "database safety", DOCTOR_PROBLEM,
                   "Commits wait for a replica (synchronous_standby_names = %.100s), and none is "
                   "connected: they hang.",
                   s->synchronous);
        doctor_advise(d, "Start the replica, or take it out of synchronous_standby_names.");
    } else if (s->sees_replicas) {
        doctor_say(d, "database safety", DOCTOR_OK, "Commits wait for %" PRId64 " replica%s.",
                   s->replicas, s->replicas == 1 ? "" : "s");
    } else {
        doctor_say(d, "database safety", DOCTOR_OK,
                   "Commits wait for a replica (synchronous_standby_names = %.100s); who is "
                   "connected only pg_monitor may see.",
                   s->synchronous);
    }
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* A commit that leaves nothing but a message in the log of the database. */
static void check_commits(struct doctor *d, struct pg *pg)
{
    static const char sql[] = "SELECT pg_logical_emit_message(true, 'muster', 'doctor')";
    int64_t us[COMMITS];
    struct why why;
    for (int i = 0; i < COMMITS; i++) {
        int64_t began_us = clock_monotonic_us();
        if (pg_query(pg, sql, NULL, NULL, &why) != 0) {
            doctor_say(d, "database commits", DOCTOR_PROBLEM, "A commit failed. %s", why.text);
            doctor_advise(d,
                          "Look at its log; a commit that waits for a replica that is away hangs.");
            return;
        }
        us[i] = clock_monotonic_us() - began_us;
    }
    qsort(us, COMMITS, sizeof(us[0]), by_size);
    int64_t p50_us = us[COMMITS / 2];
    int64_t p99_us = us[COMMITS * 99 / 100];
    enum doctor_level level = p50_us > SLOW_P50_US   ? DOCTOR_PROBLEM
                              : p99_us > SLOW_P99_US ? DOCTOR_WARNING
                                                     : DOCTOR_OK;
    doctor_say(d, "database commits", level,
               "A commit takes %.2f ms (p50), %.2f ms (p99), n = %d. A batch of answers waits for "
               "one.",
               (double)p50_us / 1000, (double)p99_us / 1000, COMMITS);
    if (level != DOCTOR_OK)
        doctor_advise(d, "Look at the database's disk, at its replica's, and at the way to them.");
}

static bool read_secret(const char *data, uint8_t ret[CORE_SECRET_SIZE])
{
    char why[SECRET_WHY_MAX];
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%.4000s/secret", data);
    return access(path, R_OK) == 0 && secret_load(data, false, ret, why) == 0;
}

static void tell_secret(struct doctor *d, const char *cell, struct str theirs)
{
    uint8_t secret[CORE_SECRET_SIZE];
    uint8_t ours[CELL_PRINT];
    if (!read_secret(d->data, secret)) {
        doctor_say(d, "cell", DOCTOR_WARNING, "Cell %s is there, and %s has no secret.", cell,
                   d->data);
        doctor_advise(d, "Copy the file \"secret\" from the data folder of another of its nodes.");
        return;
    }
    secret_print(secret, ours);
    explicit_bzero(secret, sizeof(secret));
    if (theirs.len == sizeof(ours) && memcmp(theirs.at, ours, sizeof(ours)) == 0) {
        doctor_say(d, "cell", DOCTOR_OK, "Cell %s is there, with the secret of %s.", cell, d->data);
        return;
    }
    doctor_say(d, "cell", DOCTOR_PROBLEM, "Cell %s has another secret than %s.", cell, d->data);
    doctor_advise(d, "Copy the file \"secret\" from the data folder of another of its nodes, or "
                     "choose another cell.");
}

static void check_cell(struct doctor *d, struct pg *pg, const struct server *server)
{
    const char *cell = d->config->cluster.cell;
    struct pg_args args = {0};
    struct pg_result *r = NULL;
    struct why why;
    char schema[CELL_SCHEMA_SIZE];
    pg_text(&args, cell_schema(cell, schema));
    bool there = pg_query(pg,
                          "SELECT 1 FROM pg_tables WHERE schemaname = $1::text AND tablename = "
                          "'cell'",
                          &args, &r, &why) == 0 &&
                 pg_rows(r) > 0;
    pg_free(r);
    r = NULL;
    if (there && pg_query(pg, "SELECT secret_print FROM cell", NULL, &r, &why) == 0 &&
        pg_rows(r) > 0) {
        tell_secret(d, cell, pg_get_bytes(r, 0, 0));
    } else if (there) {
        doctor_say(d, "cell", DOCTOR_PROBLEM, "Cell %s cannot be read. %s", cell, why.text);
        doctor_advise(d, "Give this user the schema %s.", schema);
    } else if (server->may_make) {
        doctor_say(d, "cell", DOCTOR_OK, "Cell %s is not there yet; 'muster serve' makes it.",
                   cell);
    } else {
        doctor_say(d, "cell", DOCTOR_PROBLEM,
                   "Cell %s is not there, and this user may not make it.", cell);
        doctor_advise(d,
                      "Let somebody who may do so run: CREATE SCHEMA %s AUTHORIZATION <this user>",
                      schema);
    }
    pg_free(r);
}

void doctor_check_database(struct doctor *d)
{
    const struct config_cluster *c = &d->config->cluster;
    struct cell_config cell = {.url = c->store, .cell = c->cell};
    struct server server = {0};
    struct pg *pg = NULL;
    struct why why;
    if (!c->store[0])
        return;
    if (cell_connect(&cell, "muster doctor", CONNECT_MS, ANSWER_MS, &pg, &why) != 0) {
        doctor_say(d, "database", DOCTOR_PROBLEM, "%s", why.text);
        doctor_advise(d, "%s", unreached_advice);
        return;
    }
    if (ask_server(d, pg, &server)) {
        tell_server(d, &server);
        tell_safety(d, &server);
        check_commits(d, pg);
        if (!pg_lost(pg))
            check_cell(d, pg, &server);
    }
    pg_close(pg);
}
