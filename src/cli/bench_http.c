/* Requests over HTTP: one object read with its token and scope, durably, beside the same server
 * answering a constant. Clients keep their connections and have one request each under way. */
#include "base/buf.h"
#include "cli/bench_child.h"
#include "cli/bench_clients.h"
#include "cli/bench_load.h"
#include "cli/cli.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static struct {
    int64_t connections;
} wish = {.connections = 64};

const struct arg bench_http_options[] = {
    {.name = "--connections",
     .kind = ARG_NUMBER,
     .into = &wish.connections,
     .min = 1,
     .max = 100, /* Muster takes 128 from one address */
     .value = "N",
     .help = "clients, each with one request under way (64)"},
    BENCH_ARG_RUNS,
    BENCH_ARG_SECONDS,
    BENCH_ARG_DATA_ROOT,
    BENCH_ARG_JSON,
    {0},
};

static void put_text(void *user, struct buf *out)
{
    const char *request = user;
    buf_append(out, request, strlen(request));
}

/* The two take turns, so that a slow moment of the machine meets both. */
static bool measure(struct bench *b, const struct served *s, const char *token,
                    struct bench_pair *ret)
{
    char head[BENCH_TOKEN_MAX + 128];
    int clients = (int)wish.connections;
    snprintf(head, sizeof(head),
             "GET /v1/servers/1 HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\n\r\n",
             token);
    for (int i = 0; i < bench_options.runs; i++) {
        bench_run_begins(i);
        if (!bench_clients_run(b, s, clients, bench_next_constant, NULL, &ret->constant) ||
            !bench_clients_run(b, s, clients, put_text, head, &ret->asked))
            return false;
        figure_add(&ret->ratio, ret->asked.rate.values[i] / ret->constant.rate.values[i]);
    }
    return true;
}

static void tell(struct bench *b, const struct bench_pair *p)
{
    bench_figure(b, "objects_per_s", &p->asked.rate, 0);
    bench_figure(b, "cpu_us_per_object", &p->asked.cpu, 2);
    (void)bench_pair_tell(b, p, "",
                          "GET /v1/servers/{id} over HTTP, 64 clients with one request each",
                          (int)wish.connections);
}

bool bench_http(struct bench *b)
{
    char data[BENCH_PATH_MAX], token[BENCH_TOKEN_MAX];
    static struct bench_pair found; /* large */
    struct served s = {0};
    struct load *load = NULL;
    found = (struct bench_pair){0};
    bench_path(b, "http", data);
    bool ok = served_start(&s, b, &(struct served_plan){.data = data});
    struct load_plan plan = {
        .pid = s.pid, .server = s.server, .manager = s.manager, .connections = 1, .servers = 1};
    ok = ok && load_open(&load, b, &plan) && bench_read_token(b, data, token) &&
         measure(b, &s, token, &found);
    load_close(load);
    served_end(&s, SIGKILL);
    bench_remove(b, "http");
    if (ok)
        tell(b, &found);
    return ok;
}

int bench_http_run(int argc, char **argv)
{
    return bench_main(argc, argv, bench_http_options, bench_http);
}
