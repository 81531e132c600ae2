#include "store/cell.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "store/cell_link.h"
#include "store/tables.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    /* The version of what stands beside the readable tables. Raised when something is added:
     * whoever knows it brings an older cell up, and whoever does not refuses. */
    CELL_FORMAT = 1,
    CELL_NAME_LONGEST = 32,
    CONNECT_MS = 5000,
    ANSWER_MS = 60000, /* another node may be at it */
};

/* One row that changes all the time finds room beside itself, so that its table stays small. The
 * head does not change with a batch, it is only locked: while somebody reads the database for long
 * (pg_dump), each of its old versions would be there for every batch to walk past. The changes of a
 * batch are kept as they are: packing them would cost more than it saves. */
static const char create_sql[] =
    "CREATE TABLE cell (format integer NOT NULL, row_format integer NOT NULL,"
    " secret_print bytea NOT NULL);"
    "CREATE TABLE lease (epoch bigint NOT NULL, beat bigint NOT NULL, holder bigint NOT NULL,"
    " name text NOT NULL, http text NOT NULL, server text NOT NULL, manager text NOT NULL,"
    " client text NOT NULL, version text NOT NULL) WITH (fillfactor = 10);"
    "CREATE TABLE head (epoch bigint NOT NULL, writer bigint NOT NULL) WITH (fillfactor = 10);"
    "CREATE TABLE journal (seq bigint PRIMARY KEY, epoch bigint NOT NULL, core_ms bigint NOT NULL,"
    " wall_ms bigint NOT NULL, changes bytea NOT NULL);"
    "ALTER TABLE journal ALTER COLUMN changes SET STORAGE EXTERNAL;"
    "CREATE TABLE fold (seq bigint NOT NULL, core_ms bigint NOT NULL, wall_ms bigint NOT NULL)"
    " WITH (fillfactor = 10);"
    "CREATE TABLE node (id bigint PRIMARY KEY, name text NOT NULL, http text NOT NULL,"
    " server text NOT NULL, manager text NOT NULL, client text NOT NULL, version text NOT NULL,"
    " seq bigint NOT NULL, ready boolean NOT NULL, heard timestamptz NOT NULL)"
    " WITH (fillfactor = 50);"
    "INSERT INTO lease VALUES (0, 0, 0, '', '', '', '', '', '');"
    "INSERT INTO head VALUES (0, 0);"
    "INSERT INTO fold VALUES (0, 0, 0);";

bool cell_name_is_good(const char *name)
{
    size_t len = strlen(name);
    return len > 0 && len <= CELL_NAME_LONGEST &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == len;
}

/* The rows of one query, of which there must be one. */
static int ask(struct pg *pg, const char *sql, const struct pg_args *args, struct pg_result **ret,
               struct why *why)
{
    int err = pg_query(pg, sql, args, ret, why);
    if (err != 0 || pg_rows(*ret) == 1)
        return err;
    pg_free(*ret);
    *ret = NULL;
    why_set(why, "The cell is damaged: one of its tables that must have one row has not. Restore "
                 "the database from a backup.");
    return ERR_FORMAT;
}

/* A database that cannot hold every letter would refuse rows later. */
static int check_encoding(struct pg *pg, struct why *why)
{
    struct pg_result *r = NULL;
    char encoding[64];
    int err = ask(pg, "SELECT current_setting('server_encoding')::text", NULL, &r, why);
    if (err != 0)
        return err;
    pg_get_text(r, 0, 0, encoding, sizeof(encoding));
    pg_free(r);
    if (strcmp(encoding, "UTF8") == 0 || strcmp(encoding, "SQL_ASCII") == 0)
        return 0;
    why_set(why,
            "The database has the encoding %s, and Muster needs UTF8. Make one with: CREATE "
            "DATABASE muster ENCODING 'UTF8' TEMPLATE template0.",
            encoding);
    return ERR_FORMAT;
}

/* What is there before we do anything. */
struct found {
    bool schema;
    bool cell;
    int64_t tables;
};

static int look(struct pg *pg, const char *schema, struct found *ret, struct why *why)
{
    struct pg_args args = {0};
    struct pg_result *r = NULL;
    pg_text(&args, schema);
    int err = ask(pg,
                  "SELECT (SELECT count(*) FROM pg_namespace WHERE nspname = $1::text),"
                  " (SELECT count(*) FROM pg_tables WHERE schemaname = $1::text),"
                  " (SELECT count(*) FROM pg_tables WHERE schemaname = $1::text"
                  " AND tablename = 'cell')",
                  &args, &r, why);
    if (err != 0)
        return err;
    ret->schema = pg_get_int(r, 0, 0) > 0;
    ret->tables = pg_get_int(r, 0, 1);
    ret->cell = pg_get_int(r, 0, 2) > 0;
    pg_free(r);
    return 0;
}

static int make_row_tables(struct pg *pg, struct why *why)
{
    struct buf sql = {0};
    for (int kind = 0; kind < ROW_KINDS; kind++) {
        tables_create(&sql, (enum row_kind)kind);
        buf_append(&sql, ";", 1);
    }
    buf_append(&sql, "", 1);
    int err = pg_script(pg, (const char *)sql.data, why);
    buf_done(&sql);
    return err;
}

static int make_schema(struct pg *pg, const char *schema, struct why *why)
{
    char sql[CELL_SCHEMA_SIZE + 32];
    snprintf(sql, sizeof(sql), "CREATE SCHEMA \"%s\"", schema);
    int err = pg_script(pg, sql, why);
    if (err == 0 || strcmp(pg_state(pg), "42501") != 0)
        return err;
    char said[sizeof(why->text)];
    snprintf(said, sizeof(said), "%s", why->text);
    why_set(why,
            "%.300s Let somebody who may do so run: CREATE SCHEMA %s AUTHORIZATION <this user>.",
            said, schema);
    return ERR_IO;
}

static int make_cell(struct pg *pg, const struct cell_config *c, const struct found *found,
                     struct why *why)
{
    char schema[CELL_SCHEMA_SIZE];
    cell_schema(c->cell, schema);
    if (found->tables > 0) {
        why_set(why, "The schema %s holds tables of another program. Choose another cell's name.",
                schema);
        return ERR_FORMAT;
    }
    int err = found->schema ? 0 : make_schema(pg, schema, why);
    if (err == 0)
        err = pg_script(pg, create_sql, why);
    if (err == 0)
        err = make_row_tables(pg, why);
    if (err != 0)
        return err;
    struct pg_args args = {0};
    pg_int(&args, CELL_FORMAT);
    pg_int(&args, ROW_FORMAT);
    pg_bytes(&args, c->secret_print, sizeof(c->secret_print));
    err = pg_query(pg, "INSERT INTO cell VALUES ($1::bigint, $2::bigint, $3::bytea)", &args, NULL,
                   why);
    if (err == 0)
        log_line(LOG_INFO, "cell made", "cell=%s format=%d row_format=%d", c->cell, CELL_FORMAT,
                 ROW_FORMAT);
    return err;
}

/* As the data folder's files (0024): kinds of rows are only ever added, so what is missing are
 * tables that would be empty. Nodes of the older version go on meanwhile. */
static int upgrade_cell(struct pg *pg, const char *cell, int64_t row_format, struct why *why)
{
    struct pg_args args = {0};
    pg_int(&args, ROW_FORMAT);
    int err = make_row_tables(pg, why);
    if (err == 0)
        err = pg_query(pg, "UPDATE cell SET row_format = $1::bigint", &args, NULL, why);
    if (err == 0)
        log_line(LOG_INFO, "cell upgraded", "cell=%s from=%" PRId64 " to=%d", cell, row_format,
                 ROW_FORMAT);
    return err;
}

static int check_cell(struct pg *pg, const struct cell_config *c, struct why *why)
{
    struct pg_result *r = NULL;
    int err = ask(pg, "SELECT format, row_format, secret_print FROM cell", NULL, &r, why);
    if (err != 0)
        return err;
    int64_t format = pg_get_int(r, 0, 0);
    int64_t row_format = pg_get_int(r, 0, 1);
    struct str print = pg_get_bytes(r, 0, 2);
    bool ours = print.len == sizeof(c->secret_print) &&
                memcmp(print.at, c->secret_print, sizeof(c->secret_print)) == 0;
    pg_free(r);
    if (format != CELL_FORMAT || row_format < 1 || row_format > ROW_FORMAT) {
        why_set(why,
                "The cell %s has format version %" PRId64 ".%" PRId64
                ", and this Muster understands version %d.%d. Start the Muster version that wrote "
                "it, or choose another cell.",
                c->cell, format, row_format, CELL_FORMAT, ROW_FORMAT);
        return ERR_FORMAT;
    }
    if (!ours) {
        why_set(why,
                "The cell %s was made with another secret, and all its nodes must have the same. "
                "Give this node the file \"secret\" of the others' data folder, or choose another "
                "cell.",
                c->cell);
        return ERR_FORMAT;
    }
    return row_format < ROW_FORMAT ? upgrade_cell(pg, c->cell, row_format, why) : 0;
}

/* All or nothing, one node after the other. */
static int prepare(struct pg *pg, const struct cell_config *c, struct why *why)
{
    char schema[CELL_SCHEMA_SIZE];
    struct found found = {0};
    struct pg_args args = {0};
    pg_text(&args, cell_schema(c->cell, schema));
    int err = pg_script(pg, "BEGIN", why);
    if (err == 0)
        err = pg_query(pg, "SELECT pg_advisory_xact_lock(hashtextextended($1::text, 0))", &args,
                       NULL, why);
    if (err == 0)
        err = look(pg, schema, &found, why);
    if (err == 0)
        err = found.cell ? check_cell(pg, c, why) : make_cell(pg, c, &found, why);
    return err == 0 ? pg_script(pg, "COMMIT", why) : err;
}

static int check_name(const struct cell_config *c, struct why *why)
{
    if (cell_name_is_good(c->cell))
        return 0;
    why_set(why, "A cell's name has 1 to %d characters of a-z, 0-9 and _: \"%.64s\" is none.",
            CELL_NAME_LONGEST, c->cell);
    return ERR_FORMAT;
}

int cell_prepare_on(struct pg *pg, const struct cell_config *c, struct why *why)
{
    int err = check_name(c, why);
    if (err == 0)
        err = check_encoding(pg, why);
    return err == 0 ? prepare(pg, c, why) : err;
}

int cell_prepare(const struct cell_config *c, struct why *why)
{
    struct pg *pg = NULL;
    int err = check_name(c, why);
    if (err == 0)
        err = cell_connect(c, "muster prepare", CONNECT_MS, ANSWER_MS, &pg, why);
    if (err == 0)
        err = cell_prepare_on(pg, c, why);
    pg_close(pg);
    return err;
}
