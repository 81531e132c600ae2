/* `muster openapi`: the HTTP API described, without a running Muster. */
#include "api/openapi.h"

#include "cli/args.h"
#include "cli/cli.h"
#include "cli/term.h"

#include <unistd.h>

const struct arg openapi_options[] = {
    {.name = "--markdown", .kind = ARG_FLAG, .help = "as docs/http-api.md instead of OpenAPI 3.1"},
    {0},
};

int openapi_run(int argc, char **argv)
{
    bool markdown = false;
    struct buf out = {0};
    const struct arg table[] = {
        {.name = "--markdown", .kind = ARG_FLAG, .into = &markdown},
        {0},
    };
    if (!args_parse(argc, argv, table))
        return EXIT_USAGE;
    if (markdown)
        openapi_write_markdown(&out);
    else
        openapi_write(&out);
    if (!markdown)
        buf_append(&out, "\n", 1);
    (void)term_flush(&out, STDOUT_FILENO);
    buf_done(&out);
    return EXIT_DONE;
}
