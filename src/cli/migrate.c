/* `muster migrate`: all that a data folder keeps into PostgreSQL, and back. */
#include "store/migrate.h"

#include "base/clock.h"
#include "base/err.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/secret.h"
#include "store/libpq.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LEASE_MS = 2000 };

static struct {
    const char *from;
    const char *to;
    const char *cell;
    int64_t lease_ms;
} set = {.cell = "default", .lease_ms = LEASE_MS};

const struct arg migrate_options[] = {
    {.name = "--from",
     .kind = ARG_TEXT,
     .into = &set.from,
     .value = "PLACE",
     .help = "where everything is now: a data folder, or postgres://user@host/database"},
    {.name = "--to",
     .kind = ARG_TEXT,
     .into = &set.to,
     .value = "PLACE",
     .help = "where it is to be: the other of the two"},
    {.name = "--cell",
     .kind = ARG_TEXT,
     .into = &set.cell,
     .value = "NAME",
     .help = "name of the cell in the database (default)"},
    {.name = "--lease-ms",
     .kind = ARG_NUMBER,
     .into = &set.lease_ms,
     .min = 500,
     .max = 60000,
     .value = "N",
     .help = "the nodes' cluster.lease_ms: a leader that was killed is waited for so long (2000)"},
    {0},
};

static bool is_url(const char *place)
{
    return strncmp(place, "postgres://", 11) == 0 || strncmp(place, "postgresql://", 13) == 0;
}

static bool check(void)
{
    struct why why;
    if (!set.from || !set.to)
        return args_refuse("migrate", "needs --from and --to");
    if (is_url(set.from) == is_url(set.to))
        return args_refuse("migrate", "one of --from and --to is a data folder, and the other a "
                                      "database as postgres://user@host/database");
    if (!cell_name_is_good(set.cell))
        return args_refuse("migrate", "--cell takes 1 to 32 characters of a-z, 0-9 and _, not '%s'",
                           set.cell);
    const char *url = is_url(set.from) ? set.from : set.to;
    return pg_check_url(url, &why) == 0 || args_refuse("migrate", "%s", why.text);
}

static int refuse(const char *sentence)
{
    fprintf(stderr, "muster migrate: %s\n", sentence);
    return EXIT_REFUSED;
}

static void tell(const struct migrate_report *r, const char *folder, bool into_cell)
{
    printf("Moved %" PRId64 " rows at batch %" PRId64 " with %" PRId64
           " batches of history; read again, the digest is the same: %s\n",
           r->rows, r->batch, r->history, r->digest);
    if (into_cell)
        printf("The old databases are in %s/%s; remove them when you miss nothing.\n"
               "Now start it: %s serve --data %s --store URL --cell %s\n"
               "Other nodes need a copy of %s/secret in a data folder of their own.\n",
               folder, r->aside, cli_program, folder, set.cell, folder);
    else
        printf("The cell is now schema %s of the database; drop it when you miss nothing.\n"
               "Now start it: %s serve --data %s\n",
               r->aside, cli_program, folder);
    if (r->missing > 0)
        printf("%" PRId64 " archives of deployments are not in %s/deployments: copy them from "
               "another node's folder, or deploy again.\n",
               r->missing, folder);
}

/* With the folder's lock held. */
static int move(const char *folder, bool into_cell)
{
    uint8_t secret[CORE_SECRET_SIZE];
    char reason[SECRET_WHY_MAX];
    struct why why = {{0}};
    struct migrate_report report;
    struct cell_config c = {
        .url = into_cell ? set.to : set.from, .cell = set.cell, .lease_ms = set.lease_ms};
    if (secret_load(folder, false, secret, reason) != 0)
        return refuse(reason);
    secret_print(secret, c.secret_print);
    explicit_bzero(secret, sizeof(secret));
    int64_t now_ms = clock_wall_ms();
    int err = into_cell ? migrate_to_cell(folder, &c, now_ms, &report, &why)
                        : migrate_to_folder(&c, folder, now_ms, &report, &why);
    if (err != 0)
        return refuse(why.text);
    tell(&report, folder, into_cell);
    return EXIT_DONE;
}

int migrate_run(int argc, char **argv)
{
    if (!args_parse(argc, argv, migrate_options) || !check())
        return EXIT_USAGE;
    bool into_cell = is_url(set.to);
    const char *folder = into_cell ? set.from : set.to;
    struct why why;
    int lock = -1;
    if (into_cell && access(folder, F_OK) != 0) {
        why_set(&why, "There is no folder %s.", folder);
        return refuse(why.text);
    }
    if (store_lock_folder(folder, &lock, &why) != 0)
        return refuse(why.text);
    int code = move(folder, into_cell);
    close(lock);
    return code;
}
