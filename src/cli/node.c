#include "cli/node.h"

#include "api/standby.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "cli/advertise.h"
#include "cli/cli.h"
#include "cli/secret.h"
#include "net/listening.h"
#include "net/signals.h"
#include "store/cell.h"
#include "store/migrate.h"
#include "store/postgres.h"

#include <inttypes.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HOLD_OFF_LEASES = 2 }; /* after stepping down: the others go first */

struct node {
    const struct node_plan *plan;
    int lock_fd;
    struct service_sockets held;
    struct service_ports bound;
    char url[sizeof(((struct config_cluster *)0)->store)]; /* of cell, as the next */
    char name[CELL_NAME_MAX];
    struct cell_config cell;
    struct core_config core; /* as the follower has it */
    char digest[CONFIG_DIGEST_MAX];
    int64_t hold_off_ms;
};

static int refuse(const char *sentence)
{
    fprintf(stderr, "muster serve: %s\n", sentence);
    return EXIT_REFUSED;
}

/* ── before it is a node ───────────────────────────────────────────────────────────────────── */

/* What an embedded store keeps there would not be served, unless it was moved into a cell. */
static bool is_of_another_kind(const char *folder)
{
    struct why why;
    char journal[PATH_MAX];
    char state[PATH_MAX];
    (void)snprintf(journal, sizeof(journal), "%s/journal.db", folder);
    (void)snprintf(state, sizeof(state), "%s/state.db", folder);
    return (access(journal, F_OK) == 0 || access(state, F_OK) == 0) &&
           !migrate_is_moved(folder, &why);
}

/* A folder that was copied to another machine, or to another place, is another node. */
static int64_t identify(int64_t drawn, const char *folder)
{
    char host[256] = "";
    char path[PATH_MAX] = "";
    uint64_t id = 0;
    crypto_generichash_state state;
    (void)gethostname(host, sizeof(host) - 1);
    if (!realpath(folder, path))
        (void)snprintf(path, sizeof(path), "%s", folder);
    crypto_generichash_init(&state, NULL, 0, sizeof(id) * 2);
    crypto_generichash_update(&state, (const uint8_t *)&drawn, sizeof(drawn));
    crypto_generichash_update(&state, (const uint8_t *)host, strlen(host) + 1);
    crypto_generichash_update(&state, (const uint8_t *)path, strlen(path) + 1);
    uint8_t hash[sizeof(id) * 2];
    crypto_generichash_final(&state, hash, sizeof(hash));
    memcpy(&id, hash, sizeof(id));
    return (int64_t)(id >> 1) | 1; /* positive, and never 0, which is nobody */
}

static int open_folder(struct node *n)
{
    struct why why;
    char reason[SECRET_WHY_MAX];
    int64_t drawn = 0;
    const char *folder = n->plan->data;
    if (store_lock_folder(folder, &n->lock_fd, &why) != 0)
        return refuse(why.text);
    if (is_of_another_kind(folder)) {
        why_set(&why,
                "%s holds data of its own, which a node of a cell does not serve. Move it into the "
                "cell with 'muster migrate', or give this node another folder with --data.",
                folder);
        return refuse(why.text);
    }
    if (secret_load(folder, true, n->plan->secret, reason) != 0 ||
        secret_node_id(folder, &drawn, reason) != 0)
        return refuse(reason);
    secret_print(n->plan->secret, n->cell.secret_print);
    n->cell.self.id = identify(drawn, folder);
    return EXIT_DONE;
}

static int hold(const char *name, const char *ip, uint16_t port, int *ret_fd, char ret[ADDRESS_MAX])
{
    const char *reason = NULL;
    union address bound;
    int fd = listening_open(ip, port, &reason);
    if (fd < 0) {
        struct why why;
        why_set(&why, "Cannot listen for the %s port on %s:%u: %s", name, ip, port, reason);
        return refuse(why.text);
    }
    *ret_fd = fd;
    listening_address(fd, &bound);
    (void)address_print(&bound, ret);
    return EXIT_DONE;
}

static int open_ports(struct node *n)
{
    const struct config *c = n->plan->running->config;
    int code = hold("server", c->bind_ip, c->server_port, &n->held.server, n->bound.server);
    if (code == EXIT_DONE)
        code = hold("manager", c->bind_ip, c->manager_port, &n->held.manager, n->bound.manager);
    if (code == EXIT_DONE)
        code = hold("client", c->bind_ip, c->client_port, &n->held.client, n->bound.client);
    if (code == EXIT_DONE)
        code = hold("HTTP", config_http_bind(c), c->http_port, &n->held.http, n->bound.http);
    return code;
}

static void close_ports(struct node *n)
{
    const int all[] = {n->held.http, n->held.server, n->held.manager, n->held.client};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (all[i] > 0)
            (void)close(all[i]);
    }
}

static int join(struct node *n)
{
    struct why why;
    struct cell_node *self = &n->cell.self;
    const struct config *config = n->plan->running->config;
    (void)str_copy(n->url, sizeof(n->url), str_of(config->cluster.store));
    (void)str_copy(n->name, sizeof(n->name), str_of(config->cluster.cell));
    n->cell.url = n->url;
    n->cell.cell = n->name;
    n->cell.lease_ms = config->cluster.lease_ms;
    (void)str_copy(self->version, sizeof(self->version), str_of(MUSTER_VERSION));
    (void)str_copy(self->name, sizeof(self->name), str_of(config->cluster.node));
    if (!self->name[0])
        (void)gethostname(self->name, sizeof(self->name) - 1);
    if (!advertise_find(config, &n->bound, self, &why) || cell_prepare(&n->cell, &why) != 0)
        return refuse(why.text);
    return EXIT_DONE;
}

/* ── roles ─────────────────────────────────────────────────────────────────────────────────── */

static void say_standby(const struct node *n)
{
    const struct service_ports *at = &n->bound;
    printf("standby http=%s server=%s manager=%s client=%s\n", at->http, at->server, at->manager,
           at->client);
    fflush(stdout);
    log_line(LOG_INFO, "standing by", "cell=%s node=%s hold_off_ms=%" PRId64, n->cell.cell,
             n->cell.self.name, n->hold_off_ms);
}

static struct service_config *describe(const struct node *n)
{
    struct service_config *wanted = n->plan->describe(n->plan->user);
    wanted->held = n->held;
    wanted->goes_on = true;
    wanted->node = n->cell.self.name;
    wanted->node_ca_file = n->plan->running->config->cluster.ca_file;
    return wanted;
}

/* The configuration may be read again while it follows; its core keeps the one it began with. */
static int start_standby(struct node *n, struct standby **ret)
{
    char why[SERVICE_WHY_MAX];
    const struct running *running = n->plan->running;
    n->core = running->config->core;
    (void)snprintf(n->digest, sizeof(n->digest), "%s", running->digest);
    struct standby_config config = {.service = describe(n),
                                    .cell = &n->cell,
                                    .core = &n->core,
                                    .hold_off_ms = n->hold_off_ms,
                                    .ca_file = running->config->cluster.ca_file};
    return standby_start(&config, ret, why) == 0 ? EXIT_DONE : refuse(why);
}

/* A leadership that was taken, with what it begins from. */
struct leadership {
    struct core *core;
    struct store_tip tip;
    struct cell_term term;
    int64_t since_ms; /* monotonic */
};

/* *ret_core is NULL when there is nothing to lead: the exit code says the rest. */
static int stand_by(struct node *n, struct leadership *ret)
{
    struct standby *standby = NULL;
    *ret = (struct leadership){0};
    int code = start_standby(n, &standby);
    if (code != EXIT_DONE)
        return code;
    say_standby(n);
    enum standby_end end = standby_run(standby);
    ret->since_ms = clock_monotonic_ms();
    if (end == STANDBY_LEADS)
        standby_take(standby, &ret->core, &ret->tip, &ret->term);
    else if (end == STANDBY_FAILED)
        code = refuse(standby_why(standby));
    standby_free(standby);
    return code;
}

/* Leads as long as it may. *ret_over: the process ends now. */
static int lead(struct node *n, const struct leadership *t, bool *ret_over)
{
    struct why why;
    struct store *store = NULL;
    enum service_end end = SERVICE_STOPPED;
    char quoted[LOG_QUOTE_MAX + 8];
    n->hold_off_ms = n->cell.lease_ms;
    if (store_open_postgres(&n->cell, &t->term, &t->tip, &store, &why) != 0) {
        log_line(LOG_ERROR, "cannot lead", "cell=%s epoch=%" PRId64 " why=%s", n->cell.cell,
                 t->term.epoch, log_quote(quoted, str_of(why.text)));
        core_free(t->core);
        return EXIT_DONE;
    }
    struct service_config *wanted = describe(n);
    wanted->core = &n->core;
    wanted->loaded = t->core;
    wanted->loaded_tip = t->tip;
    wanted->loaded_age_ms = t->term.heard_ms ? clock_boot_ms() - t->term.heard_ms : -1;
    struct node_term term = {.cell = n->cell.cell,
                             .node = n->cell.self.name,
                             .epoch = t->term.epoch,
                             .since_ms = t->since_ms,
                             .changed = strcmp(n->digest, n->plan->running->digest) != 0};
    int code = n->plan->lead(n->plan->user, store, &term, &end);
    n->hold_off_ms = end == SERVICE_STEPPED_DOWN ? HOLD_OFF_LEASES * n->cell.lease_ms : 0;
    *ret_over = code != EXIT_DONE || end == SERVICE_STOPPED;
    return code;
}

static int live(struct node *n)
{
    int code = EXIT_DONE;
    for (bool over = false; !over && code == EXIT_DONE;) {
        struct leadership taken;
        code = stand_by(n, &taken);
        over = taken.core == NULL;
        if (taken.core)
            code = lead(n, &taken, &over);
    }
    return code;
}

int node_run(const struct node_plan *plan)
{
    struct node *n = xcalloc(1, sizeof(*n));
    n->plan = plan;
    n->lock_fd = -1;
    int code = open_folder(n);
    if (code == EXIT_DONE)
        code = open_ports(n);
    if (code == EXIT_DONE)
        code = join(n);
    if (code == EXIT_DONE) {
        signals_hold();
        plan->prepare(plan->user);
        code = live(n);
    }
    close_ports(n);
    if (n->lock_fd >= 0)
        (void)close(n->lock_fd);
    free(n);
    return code;
}
