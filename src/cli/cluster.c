/* `muster cluster status` and `muster cluster step-down`. */
#include "base/clock.h"
#include "cli/remote.h"
#include "cli/screen.h"
#include "cli/show.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum { LOOK_MS = 100, WAIT_MS = 30 * 1000 };

static struct {
    bool force;
} set;

const struct arg step_down_options[] = {
    {.name = "--force",
     .kind = ARG_FLAG,
     .into = &set.force,
     .help = "also when no standby is ready: nobody is served until one leads"},
    {0},
};

/* ── status ────────────────────────────────────────────────────────────────────────────────── */

static const struct show_column columns[] = {
    {"NODE", "name", SHOW_TEXT, false},
    {"STATE", "state", SHOW_STATE, false},
    {"READY", "ready", SHOW_TEXT, false},
    {"BEHIND", "behind", SHOW_NUMBER, false},
    {"HEARD MS AGO", "heard_ms", SHOW_NUMBER, false},
    {"HTTP", "http", SHOW_TEXT, false},
    {"BATCH", "seq", SHOW_NUMBER, true},
    {"VERSION", "version", SHOW_TEXT, true},
    {0},
};

static void put_cluster(struct remote *r, const struct json *cluster, bool wide)
{
    struct table t;
    const struct json *nodes = json_member(cluster, "nodes");
    term_put_text(&r->out, json_get_text(json_member(cluster, "sentence")));
    term_put(&r->out, "\n");
    if (json_length(nodes) == 0)
        return;
    table_init(&t);
    show_columns(&t, columns, wide);
    for (size_t i = 0; i < json_length(nodes); i++)
        show_row(&t, columns, wide, json_item(nodes, i), clock_wall_ms());
    term_put(&r->out, "\n");
    table_print(&t, &r->term, &r->out);
    table_done(&t);
}

static void put_json(struct remote *r)
{
    show_json(&r->out, r->answer.json);
    term_put(&r->out, "\n");
}

static int draw(struct remote *r, void *user)
{
    int code = remote_ask(r, user);
    if (code != EXIT_DONE)
        return code;
    if (remote_output() == OUTPUT_JSON)
        put_json(r);
    else
        put_cluster(r, r->answer.json, remote_output() == OUTPUT_WIDE);
    return EXIT_DONE;
}

int cluster_status_run(int argc, char **argv)
{
    struct remote r;
    struct ask ask;
    ask_init(&ask, "get_cluster", NULL);
    int code = remote_open(&r, argc, argv, &ask, NULL, remote_list_options, false);
    if (code != EXIT_DONE)
        return code;
    code = remote_show(&r, draw, &ask);
    remote_close(&r);
    return code;
}

/* ── step-down ─────────────────────────────────────────────────────────────────────────────── */

static int64_t epoch_of(const struct json *cluster)
{
    return json_get_int(json_member(cluster, "epoch"));
}

/* "node2 leads cell eu now, in epoch 8, after 0.7 s" */
static void say_leads(struct remote *r, int64_t began_ms)
{
    const struct json *cluster = r->answer.json;
    if (remote_output() == OUTPUT_JSON) {
        put_json(r);
        return;
    }
    term_put_text(&r->out, json_get_text(show_at(cluster, "leader.name")));
    term_put(&r->out, " leads cell ");
    term_put_text(&r->out, json_get_text(json_member(cluster, "cell")));
    term_printf(&r->out, " now, in epoch %" PRId64 ", after %.1f s\n", epoch_of(cluster),
                (double)(clock_monotonic_ms() - began_ms) / 1000);
}

static int give_up(const struct remote *r, const char *why)
{
    fprintf(stderr,
            "muster %s: it has stepped down, but %s; look with: %s cluster status --watch\n",
            r->verb, why, cli_program);
    return EXIT_REFUSED;
}

/* Nodes are away for a moment while they change places: that is no failure yet. */
static int await_leader(struct remote *r, int64_t old_epoch, int64_t began_ms)
{
    struct ask look;
    ask_init(&look, "get_cluster", NULL);
    r->quiet = true;
    for (int64_t next_ms = began_ms;; next_ms += LOOK_MS) {
        int code = remote_ask(r, &look);
        bool led = code == EXIT_DONE && json_get_text(show_at(r->answer.json, "leader.name")).len;
        if (led && epoch_of(r->answer.json) > old_epoch) {
            say_leads(r, began_ms);
            return EXIT_DONE;
        }
        if (clock_monotonic_ms() >= began_ms + WAIT_MS)
            return give_up(r, "nobody has taken over in 30 s");
        if (code == EXIT_STOPPED || screen_wait(&r->stop_fd, 1, next_ms + LOOK_MS) == 0)
            return give_up(r, "waiting for the next leader was interrupted");
    }
}

int step_down_run(int argc, char **argv)
{
    struct remote r;
    struct ask ask;
    int code = remote_open(&r, argc, argv, NULL, step_down_options, remote_output_options, true);
    if (code != EXIT_DONE)
        return code;
    ask_init(&ask, "step_down", NULL);
    if (set.force)
        ask_set(&ask, "force", "true");
    int64_t began_ms = clock_monotonic_ms();
    code = remote_ask(&r, &ask);
    if (code == EXIT_DONE)
        code = await_leader(&r, epoch_of(r.answer.json), began_ms);
    (void)remote_flush(&r);
    remote_close(&r);
    return code == EXIT_STOPPED ? EXIT_REFUSED : code;
}
