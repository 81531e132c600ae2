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
     .max = BENCH_CLIENTS_MAX,
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

static char constant_request[] = "GET /healthz HTTP/1.1\r\nHost: bench\r\n\r\n";

/* The two take turns, so that a slow moment of the machine meets both. */
static bool measure(struct bench *b, const struct served *s, const char *token,
                    struct bench_found *constant, struct bench_found *object, struct figure *ratio)
{
    char head[BENCH_TOKEN_MAX + 128];
    for (int i = 0; i < bench_options.runs; i++) {
        if (!bench_clients_run(b, s, (int)wish.connections, put_text, constant_request, constant))
            return false;
        snprintf(head, sizeof(head),
                 "GET /v1/servers/1 HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\n\r\n",
                 token);
        if (!bench_clients_run(b, s, (int)wish.connections, put_text, head, object))
            return false;
        figure_add(ratio, object->rate.values[i] / constant->rate.values[i]);
    }
    return true;
}

static void tell(struct bench *b, const struct bench_found *constant,
                 const struct bench_found *object, const struct figure *ratio)
{
    bench_figure(b, "objects_per_s", &object->rate, 0);
    bench_figure(b, "constants_per_s", &constant->rate, 0);
    bench_figure(b, "ratio", ratio, 3);
    bench_figure(b, "p50_us", &object->p50, 1);
    bench_figure(b, "p99_us", &object->p99, 1);
    bench_figure(b, "cpu_us_per_object", &object->cpu, 2);
    bench_figure(b, "cpu_us_per_constant", &constant->cpu, 2);
    bench_number(b, "connections", (double)wish.connections, 0);
    bench_number(b, "n", object->n, 0);
    struct bench_row *row =
        bench_row(b, "", "GET /v1/servers/{id} over HTTP, 64 clients with one request each",
                  &object->rate, "/s", 0);
    row->wanted = "";
    row->n = object->n;
    snprintf(row->yardstick, sizeof(row->yardstick),
             "GET /healthz, a constant: %.0f /s; ratio %.2f", figure_median(&constant->rate),
             figure_median(ratio));
    snprintf(row->cpu, sizeof(row->cpu), "%.1f µs", figure_median(&object->cpu));
}

bool bench_http(struct bench *b)
{
    char data[BENCH_PATH_MAX], token[BENCH_TOKEN_MAX];
    static struct bench_found constant, object; /* large */
    struct figure ratio = {0};
    struct served s = {0};
    struct load *load = NULL;
    constant = object = (struct bench_found){0};
    bench_path(b, "http", data);
    bool ok = served_start(&s, b, &(struct served_plan){.data = data});
    struct load_plan plan = {
        .pid = s.pid, .server = s.server, .manager = s.manager, .connections = 1, .servers = 1};
    ok = ok && load_open(&load, b, &plan) && bench_read_token(b, data, token) &&
         measure(b, &s, token, &constant, &object, &ratio);
    load_close(load);
    served_end(&s, SIGKILL);
    bench_remove(b, "http");
    if (ok)
        tell(b, &constant, &object, &ratio);
    return ok;
}

int bench_http_run(int argc, char **argv)
{
    return bench_main(argc, argv, bench_http_options, bench_http);
}
