/* `muster logs`: what a game server has printed, and with -f what it prints from now on. */
#include "cli/remote.h"

#include <string.h>

static bool follow;

const struct arg logs_options[] = {
    {.name = "--follow",
     .kind = ARG_FLAG,
     .into = &follow,
     .letter = 'f',
     .help = "go on with what it prints from now on, until it ends or ctrl-c"},
    {0},
};

/* A terminal is not commanded by what a game server prints; a file gets every byte. */
struct printer {
    struct remote *r;
    struct buf line; /* its beginning, on a terminal */
};

static void put_lines(struct printer *p, struct str piece)
{
    while (piece.len > 0) {
        const char *end = memchr(piece.at, '\n', piece.len);
        size_t n = end ? (size_t)(end - piece.at) : piece.len;
        buf_append(&p->line, piece.at, n);
        if (!end)
            return;
        term_put_text(&p->r->out, (struct str){(const char *)p->line.data, p->line.len});
        term_put(&p->r->out, "\n");
        buf_clear(&p->line);
        piece = (struct str){end + 1, piece.len - n - 1};
    }
}

static bool on_piece(void *user, struct str piece)
{
    struct printer *p = user;
    if (p->r->term.is_terminal)
        put_lines(p, piece);
    else
        buf_append(&p->r->out, piece.at, piece.len);
    return remote_flush(p->r);
}

static int print_logs(struct remote *r, const char *path)
{
    struct printer p = {.r = r};
    enum client_result result = client_read(r->client, path, on_piece, &p, &r->answer);
    if (p.line.len > 0)
        (void)on_piece(&p, STR("\n")); /* its last line had no end */
    buf_done(&p.line);
    if (result == CLIENT_DONE || result == CLIENT_STOPPED)
        return EXIT_DONE;
    remote_complain(r);
    return result == CLIENT_REFUSED ? EXIT_REFUSED : EXIT_UNREACHABLE;
}

int logs_run(int argc, char **argv)
{
    struct remote r;
    struct ask ask;
    struct buf path = {0};
    ask_init(&ask, "server_logs", "SERVER");
    int code = remote_open(&r, argc, argv, &ask, logs_options, NULL, true);
    if (code != EXIT_DONE)
        return code;
    if (follow)
        ask_set(&ask, "follow", "1");
    ask_put_path(&ask, &path);
    buf_append(&path, "", 1);
    code = print_logs(&r, (const char *)path.data);
    buf_done(&path);
    remote_close(&r);
    return code;
}
