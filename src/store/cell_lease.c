#include "store/cell_lease.h"

#include "base/err.h"

/* Two rows are changed together when the lease is taken: always the lease first and then the head,
 * as everybody who has both must do, or two could wait for each other. Each batch locks the head
 * and looks at it when it has the lock: one of the old leader's that came first is waited for and
 * stays, and its next finds another epoch. The channel has the schema's name (cell_link.h). A
 * node's row, which is written again in a second, waits for no disk. */
static const struct {
    const char *name;
    const char *sql;
} statements[] = {
    {"lease_read", "SELECT l.epoch, l.beat, l.holder, l.name, l.http, l.server, l.manager,"
                   " l.client, l.version, greatest((SELECT max(seq) FROM journal),"
                   " (SELECT max(seq) FROM fold)) FROM lease l, head h"},
    {"lease_take", "WITH taken AS (UPDATE lease SET epoch = epoch + 1, beat = beat + 1,"
                   " holder = $1::bigint, name = $2::text, http = $3::text, server = $4::text,"
                   " manager = $5::text, client = $6::text, version = $7::text"
                   " WHERE epoch = $8::bigint AND beat = $9::bigint RETURNING epoch),"
                   " moved AS (UPDATE head SET epoch = taken.epoch, writer = $1::bigint"
                   " FROM taken RETURNING head.epoch)"
                   " SELECT epoch, pg_notify(current_schema()::text, '') FROM moved"},
    {"lease_renew", "UPDATE lease SET beat = beat + 1"
                    " WHERE holder = $1::bigint AND epoch = $2::bigint"},
    {"lease_give_back", "WITH given AS (UPDATE lease SET beat = beat + 1, holder = 0, name = '',"
                        " http = '', server = '', manager = '', client = '', version = ''"
                        " WHERE holder = $1::bigint AND epoch = $2::bigint RETURNING epoch)"
                        " SELECT epoch, pg_notify(current_schema()::text, '') FROM given"},
    {"node_say", "WITH gone AS (DELETE FROM node WHERE id <> $1::bigint"
                 " AND heard < now() - interval '1 day')"
                 " INSERT INTO node SELECT $1::bigint, $2::text, $3::text, $4::text, $5::text,"
                 " $6::text, $7::text, $8::bigint, $9::boolean, now()"
                 " FROM set_config('synchronous_commit', 'off', true) quick"
                 " WHERE quick IS NOT NULL"
                 " ON CONFLICT (id) DO UPDATE SET name = excluded.name, http = excluded.http,"
                 " server = excluded.server, manager = excluded.manager, client = excluded.client,"
                 " version = excluded.version, seq = excluded.seq, ready = excluded.ready,"
                 " heard = excluded.heard"},
    {"node_leave", "DELETE FROM node WHERE id = $1::bigint"},
    {"nodes_read", "SELECT id, name, http, server, manager, client, version, seq, ready,"
                   " greatest(0, extract(epoch FROM now() - heard) * 1000)::bigint"
                   " FROM node ORDER BY name, id LIMIT $1::bigint"},
};

int cell_lease_prepare(struct pg *pg, struct why *why)
{
    int err = 0;
    for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]) && err == 0; i++)
        err = pg_prepare(pg, statements[i].name, statements[i].sql, why);
    return err;
}

static void add_node(struct pg_args *args, const struct cell_node *node)
{
    pg_int(args, node->id);
    pg_text(args, node->name);
    pg_text(args, node->http);
    pg_text(args, node->server);
    pg_text(args, node->manager);
    pg_text(args, node->client);
    pg_text(args, node->version);
}

/* Its id and its six texts, from a column on. */
static void get_node(const struct pg_result *r, int row, int column, struct cell_node *ret)
{
    ret->id = pg_get_int(r, row, column);
    pg_get_text(r, row, column + 1, ret->name, sizeof(ret->name));
    pg_get_text(r, row, column + 2, ret->http, sizeof(ret->http));
    pg_get_text(r, row, column + 3, ret->server, sizeof(ret->server));
    pg_get_text(r, row, column + 4, ret->manager, sizeof(ret->manager));
    pg_get_text(r, row, column + 5, ret->client, sizeof(ret->client));
    pg_get_text(r, row, column + 6, ret->version, sizeof(ret->version));
}

int cell_lease_read(struct pg *pg, struct cell_lease_seen *ret, struct why *why)
{
    struct pg_result *r = NULL;
    int err = pg_run(pg, "lease_read", NULL, &r, why);
    if (err != 0)
        return err;
    if (pg_rows(r) != 1) {
        pg_free(r);
        why_set(why, "The cell is damaged: its tables \"lease\" and \"head\" must have one row "
                     "each. Restore the database from a backup.");
        return ERR_FORMAT;
    }
    *ret = (struct cell_lease_seen){
        .row = {.epoch = pg_get_int(r, 0, 0), .beat = pg_get_int(r, 0, 1)},
        .head_seq = pg_get_int(r, 0, 9),
    };
    get_node(r, 0, 2, &ret->leader);
    ret->row.holder = ret->leader.id;
    pg_free(r);
    return 0;
}

int cell_lease_take(struct pg *pg, const struct cell_node *self, const struct lease_row *seen,
                    int64_t *ret_epoch, struct why *why)
{
    struct pg_args args = {0};
    struct pg_result *r = NULL;
    add_node(&args, self);
    pg_int(&args, seen->epoch);
    pg_int(&args, seen->beat);
    int err = pg_run(pg, "lease_take", &args, &r, why);
    if (err != 0)
        return err;
    *ret_epoch = pg_rows(r) > 0 ? pg_get_int(r, 0, 0) : 0;
    pg_free(r);
    return 0;
}

static void add_term(struct pg_args *args, int64_t node, int64_t epoch)
{
    pg_int(args, node);
    pg_int(args, epoch);
}

int cell_lease_renew(struct pg *pg, int64_t node, int64_t epoch, bool *ret_ours, struct why *why)
{
    struct pg_args args = {0};
    struct pg_result *r = NULL;
    add_term(&args, node, epoch);
    int err = pg_run(pg, "lease_renew", &args, &r, why);
    if (err != 0)
        return err;
    *ret_ours = pg_affected(r) > 0;
    pg_free(r);
    return 0;
}

int cell_lease_give_back(struct pg *pg, int64_t node, int64_t epoch, struct why *why)
{
    struct pg_args args = {0};
    add_term(&args, node, epoch);
    return pg_run(pg, "lease_give_back", &args, NULL, why);
}

int cell_node_say(struct pg *pg, const struct cell_node *self, int64_t seq, bool ready,
                  struct why *why)
{
    struct pg_args args = {0};
    add_node(&args, self);
    pg_int(&args, seq);
    pg_flag(&args, ready);
    return pg_run(pg, "node_say", &args, NULL, why);
}

int cell_node_leave(struct pg *pg, int64_t node, struct why *why)
{
    struct pg_args args = {0};
    pg_int(&args, node);
    return pg_run(pg, "node_leave", &args, NULL, why);
}

int cell_nodes_read(struct pg *pg, struct cell_seen_node *ret, size_t max, size_t *ret_n,
                    struct why *why)
{
    struct pg_args args = {0};
    struct pg_result *r = NULL;
    pg_int(&args, (int64_t)max);
    int err = pg_run(pg, "nodes_read", &args, &r, why);
    if (err != 0)
        return err;
    int n = pg_rows(r);
    for (int i = 0; i < n; i++) {
        ret[i] = (struct cell_seen_node){
            .seq = pg_get_int(r, i, 7),
            .ready = pg_get_int(r, i, 8) != 0,
            .heard_ms = pg_get_int(r, i, 9),
        };
        get_node(r, i, 0, &ret[i].node);
    }
    *ret_n = (size_t)n;
    pg_free(r);
    return 0;
}
