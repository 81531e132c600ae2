#include "api/cluster.h"

#include "api/call.h"
#include "api/shape_rows.h"
#include "base/err.h"
#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ── shapes ────────────────────────────────────────────────────────────────────────────────── */

static const char *const state_words[] = {"leader", "standby", "away", NULL};
static const char *const store_words[] = {"embedded", "postgres", NULL};

#define NODE_TEXT(function_, member_)                                                              \
    static void function_(struct json_writer *w, const void *object,                               \
                          const struct core_config *config)                                        \
    {                                                                                              \
        (void)config;                                                                              \
        json_text(w, str_of(((const struct cell_node *)object)->member_));                         \
    }
NODE_TEXT(write_name, name)
NODE_TEXT(write_http, http)
NODE_TEXT(write_server, server)
NODE_TEXT(write_manager, manager)
NODE_TEXT(write_client, client)
NODE_TEXT(write_version, version)

const struct shape cell_leader_shape = {
    .name = "CellLeader",
    .help = "The node that leads, and where others reach it.",
    .rows =
        (const struct shape_row[]){
            ROW_WRITTEN(TEXT, "name", write_name, NULL),
            ROW_WRITTEN(TEXT, "http", write_http, NULL),
            ROW_WRITTEN(TEXT, "server", write_server, "the port for game servers"),
            ROW_WRITTEN(TEXT, "manager", write_manager, "the port for chat servers"),
            ROW_WRITTEN(TEXT, "client", write_client, "the port for players"),
            ROW_WRITTEN(TEXT, "version", write_version, "of Muster"),
            {0},
        },
};

const struct shape node_shape = {
    .name = "Node",
    .help = "A node of a cell, as it said itself when it was heard last.",
    .rows =
        (const struct shape_row[]){
            ROW(TEXT, "name", struct node_answer, name, NULL),
            ROW_WORD("state", state_words, struct node_answer, state,
                     "away: it was not heard for 5 s"),
            ROW(TEXT, "http", struct node_answer, http, "where others reach it"),
            ROW(TEXT, "version", struct node_answer, version, "of Muster"),
            ROW(INT64, "seq", struct node_answer, seq, "the newest batch it has"),
            ROW(INT64, "behind", struct node_answer, behind,
                "how many newer ones there are by now; a node speaks once a second"),
            ROW(BOOL, "ready", struct node_answer, ready, "it could lead at once"),
            ROW(INT64, "heard_ms", struct node_answer, heard_ms, "how long ago it was heard"),
            {0},
        },
};

static void write_leader(struct json_writer *w, const void *object,
                         const struct core_config *config)
{
    const struct cluster_answer *a = object;
    if (a->view && a->view->leader.id)
        shape_write(w, &cell_leader_shape, &a->view->leader, config);
    else
        json_none(w);
}

static void write_nodes(struct json_writer *w, const void *object, const struct core_config *config)
{
    const struct cluster_answer *a = object;
    json_open_array(w);
    for (size_t i = 0; i < a->n_nodes; i++)
        shape_write(w, &node_shape, &a->nodes[i], config);
    json_close_array(w);
}

const struct shape cluster_shape = {
    .name = "Cluster",
    .help = "The nodes that can stand in for each other.",
    .rows =
        (const struct shape_row[]){
            ROW_OR_NULL(TEXT, "cell", struct cluster_answer, cell,
                        "the name of the cell; null with the embedded store"),
            ROW_WORD("store", store_words, struct cluster_answer, store, NULL),
            ROW(INT64, "epoch", struct cluster_answer, epoch,
                "the number of this leadership; 0 with the embedded store"),
            {.name = "leader",
             .kind = SHAPE_OBJECT,
             .may_be_null = true,
             .shape = &cell_leader_shape,
             .write = write_leader,
             .help = "null when nobody leads, and with the embedded store"},
            ROW_ITEMS("nodes", node_shape, write_nodes, "none with the embedded store"),
            ROW(INT64, "lease_ms", struct cluster_answer, lease_ms,
                "how long a leader that is silent is waited for"),
            ROW(TEXT, "sentence", struct cluster_answer, sentence, "how it stands, in words"),
            {0},
        },
};

const struct shape leader_shape = {
    .name = "Leader",
    .help = "Whether this node leads. Addresses are the leader's, as others reach it.",
    .rows =
        (const struct shape_row[]){
            ROW(BOOL, "leader", struct leader_answer, leads, "true: this node leads"),
            ROW_OR_NULL(TEXT, "cell", struct leader_answer, cell, "null with the embedded store"),
            ROW(INT64, "epoch", struct leader_answer, epoch, NULL),
            ROW_OR_NULL(TEXT, "name", struct leader_answer, name,
                        "the leader's; null when there is none, and with the embedded store"),
            ROW_OR_NULL(TEXT, "http", struct leader_answer, http, NULL),
            ROW_OR_NULL(TEXT, "server", struct leader_answer, server, NULL),
            ROW_OR_NULL(TEXT, "manager", struct leader_answer, manager, NULL),
            ROW_OR_NULL(TEXT, "client", struct leader_answer, client, NULL),
            ROW(TEXT, "sentence", struct leader_answer, sentence, NULL),
            {0},
        },
};

/* ── how it stands ─────────────────────────────────────────────────────────────────────────── */

static void describe_node(const struct cell_view *view, const struct cell_seen_node *seen,
                          struct cluster_answer *a)
{
    bool leads = seen->node.id == view->leader.id;
    bool away = !leads && seen->heard_ms >= CLUSTER_AWAY_MS;
    /* Whoever leads has what there is, also what it has stored since it last spoke. */
    int64_t seq = leads && seen->seq < view->seq ? view->seq : seen->seq;
    a->nodes[a->n_nodes++] = (struct node_answer){
        .name = seen->node.name,
        .state = leads  ? "leader"
                 : away ? "away"
                        : "standby",
        .http = seen->node.http,
        .version = seen->node.version,
        .seq = seq,
        .behind = seq < view->seq ? view->seq - seq : 0,
        .ready = seen->ready && !away,
        .heard_ms = seen->heard_ms,
    };
    a->n_standbys += !leads && !away;
    a->n_ready += !leads && !away && seen->ready;
}

static void describe_cell(const struct cell_view *view, struct cluster_answer *a)
{
    bool one = a->n_standbys == 1;
    int n = 0;
    if (view->leader.id == 0) {
        (void)snprintf(a->text, sizeof(a->text), "Nobody leads cell %s now; %s.", view->cell,
                       a->n_ready > 0 ? "a standby that is ready takes over"
                                      : "no standby is ready to");
        return;
    }
    n = snprintf(a->text, sizeof(a->text), "%s leads cell %s in epoch %" PRId64 "; ",
                 view->leader.name, view->cell, view->epoch);
    if (a->n_standbys == 0)
        (void)snprintf(a->text + n, sizeof(a->text) - (size_t)n,
                       "there is no standby, so nobody takes over when it fails.");
    else if (one)
        (void)snprintf(a->text + n, sizeof(a->text) - (size_t)n, "its standby is %s.",
                       a->n_ready ? "ready to take over" : "not ready to take over");
    else
        (void)snprintf(a->text + n, sizeof(a->text) - (size_t)n,
                       "%zu of %zu standbys %s ready to take over.", a->n_ready, a->n_standbys,
                       a->n_ready == 1 ? "is" : "are");
}

void cluster_describe(const struct cell_view *view, struct cluster_answer *ret)
{
    *ret = (struct cluster_answer){.view = view, .store = "embedded", .cell = ""};
    ret->sentence = "The data is in this node's own folder, so no other node can lead.";
    if (!view)
        return;
    ret->store = "postgres";
    ret->cell = view->cell;
    ret->epoch = view->epoch;
    ret->lease_ms = view->lease_ms;
    ret->sentence = ret->text;
    for (size_t i = 0; i < view->n_nodes; i++)
        describe_node(view, &view->nodes[i], ret);
    describe_cell(view, ret);
}

bool cluster_source(const struct cell_view *view, int64_t self, size_t i, char ret[CLUSTER_URL])
{
    const struct cell_node *leader = &view->leader;
    bool has_leader = leader->id != 0 && leader->id != self;
    const char *found = has_leader && i == 0 ? leader->http : NULL;
    size_t at = has_leader ? 1 : 0;
    for (size_t k = 0; k < view->n_nodes && !found; k++) {
        const struct cell_seen_node *n = &view->nodes[k];
        if (n->node.id == self || n->node.id == leader->id || n->heard_ms >= CLUSTER_AWAY_MS)
            continue;
        if (at++ == i)
            found = n->node.http;
    }
    if (found)
        (void)snprintf(ret, CLUSTER_URL, "%s", found);
    return found != NULL;
}

/* NULL = there is no cell. Both live as long as the call. */
static const struct cell_view *look(struct call *c)
{
    const struct cluster_standby *standby = c->rest->standby;
    struct cell_view *view = arena_alloc(&c->arguments.arena, sizeof(*view));
    *view = (struct cell_view){0};
    if (!standby)
        return store_cluster(c->rest->store, view) ? view : NULL;
    standby->look(standby->user, view);
    return view;
}

static struct cluster_answer *describe(struct call *c)
{
    struct cluster_answer *answer = arena_alloc(&c->arguments.arena, sizeof(*answer));
    cluster_describe(look(c), answer);
    return answer;
}

/* ── operations ────────────────────────────────────────────────────────────────────────────── */

void handle_cluster(struct call *c)
{
    call_render(c, &cluster_shape, describe(c));
    call_answer(c);
}

/* What a load balancer asks; it reads the status alone. */
void handle_leader(struct call *c)
{
    const struct cluster_answer *cluster = describe(c);
    static const struct cell_node nobody;
    const struct cell_node *leader = cluster->view ? &cluster->view->leader : &nobody;
    struct leader_answer answer = {
        .leads = c->rest->standby == NULL,
        .cell = cluster->cell,
        .epoch = cluster->epoch,
        .name = leader->name,
        .http = leader->http,
        .server = leader->server,
        .manager = leader->manager,
        .client = leader->client,
        .sentence = cluster->sentence,
    };
    call_render(c, &leader_shape, &answer);
    if (!answer.leads) {
        c->status = err_status(ERR_NO_LEADER);
        c->retry_s = 1;
    }
    call_answer(c);
}

/* It is in the audit, durably. What was under way when this node stops leading is answered first,
 * and so is this. */
static void step_down(struct call *c)
{
    struct rest *r = c->rest;
    call_render(c, &cluster_shape, describe(c));
    call_answer(c);
    r->step_down(r->step_down_user);
}

void handle_step_down(struct call *c)
{
    bool force = call_argument(c, "force")->number != 0;
    const struct cluster_answer *cluster = describe(c);
    if (!c->rest->step_down || !cluster->view) {
        call_refuse(c, ERR_NO_STANDBY, NULL, "%s", cluster->sentence);
        call_answer(c);
        return;
    }
    if (cluster->n_ready == 0 && !force) {
        call_refuse(c, ERR_NO_STANDBY, "force",
                    "No standby of cell %s is ready to lead. With force=true this node steps down "
                    "all the same, and nobody is served until one leads.",
                    cluster->cell);
        call_answer(c);
        return;
    }
    struct operate o = {.verb = OPERATE_STEP_DOWN, .detail = force ? STR("by force") : STR("")};
    call_operate(c, &o, step_down);
}

/* ── elsewhere ─────────────────────────────────────────────────────────────────────────────── */

void cluster_send_on(struct call *c)
{
    const struct cell_view *view = look(c);
    const struct cell_node *leader = &view->leader;
    if (leader->id == 0) {
        call_refuse(c, ERR_NO_LEADER, NULL, "No node leads cell %s now. Ask again.", view->cell);
        call_answer(c);
        return;
    }
    struct buf location = {0};
    size_t len = strlen(leader->http);
    buf_append(&location, leader->http, len > 0 && leader->http[len - 1] == '/' ? len - 1 : len);
    http_put_target(c->http, &location);
    call_refuse(c, ERR_NOT_THE_LEADER, NULL,
                "This node is a standby; the leader of cell %s is at %s", view->cell, leader->http);
    call_head(c, "Location", (struct str){(const char *)location.data, location.len});
    buf_done(&location);
    call_answer(c);
}
