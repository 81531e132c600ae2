/* `muster logs`: what a game server has printed, and with -f what it prints from now on. Where
 * there are several nodes it goes on with the next leader: that is asked for more than was shown,
 * and what comes after the end of what was shown is new. */
#include "base/clock.h"
#include "cli/remote.h"
#include "cli/screen.h"

#include <stdio.h>
#include <string.h>

enum {
    TAIL_BYTES = 4096, /* of what was shown, to find the place again */
    LOOK_LINES = 10000,
    HELD_MAX = 16 * 1024 * 1024, /* of what may be known already */
    LOOK_MS = 2000,
    RETRY_FIRST_MS = 250,
    RETRY_MAX_MS = 1000,
    STATUS_UNAVAILABLE = 503,
};

static bool follow;

const struct arg logs_options[] = {
    {.name = "--follow",
     .kind = ARG_FLAG,
     .into = &follow,
     .letter = 'f',
     .help = "go on with what it prints from now on, until it ends or ctrl-c"},
    {.name = "--watch",
     .kind = ARG_FLAG,
     .into = &follow,
     .letter = 'w',
     .help = "the same as --follow"},
    {0},
};

/* A terminal is not commanded by what a game server prints; a file gets every byte. */
struct printer {
    struct remote *r;
    struct buf line; /* its beginning, where lines are printed one by one */
    bool json;       /* an object for each line */
    struct buf tail; /* the end of what came */
    struct buf held; /* what came while its end is looked for */
    bool looks;
    int64_t look_until_ms;
    bool news;   /* something came that was not shown before */
    bool closed; /* nobody reads any more */
};

static void put_line(struct printer *p)
{
    struct buf *out = &p->r->out;
    struct str line = {(const char *)p->line.data, p->line.len};
    if (p->json) {
        struct json_writer w = {.out = out};
        json_open_object(&w);
        json_key_text(&w, "line", line);
        json_close_object(&w);
    } else {
        term_put_text(out, line);
    }
    term_put(out, "\n");
    buf_clear(&p->line);
}

static void put_lines(struct printer *p, struct str piece)
{
    while (piece.len > 0) {
        const char *end = memchr(piece.at, '\n', piece.len);
        size_t n = end ? (size_t)(end - piece.at) : piece.len;
        buf_append(&p->line, piece.at, n);
        if (!end)
            return;
        put_line(p);
        piece = (struct str){end + 1, piece.len - n - 1};
    }
}

static void remember(struct printer *p, struct str piece)
{
    buf_append(&p->tail, piece.at, piece.len);
    if (p->tail.len > TAIL_BYTES)
        buf_consume(&p->tail, p->tail.len - TAIL_BYTES);
}

static void print(struct printer *p, struct str piece)
{
    p->news |= piece.len > 0;
    remember(p, piece);
    if (p->r->term.is_terminal || p->json)
        put_lines(p, piece);
    else
        buf_append(&p->r->out, piece.at, piece.len);
    p->closed |= !remote_flush(p->r);
}

/* Prints what was held from there on. */
static void stop_looking(struct printer *p, size_t from)
{
    struct buf held = p->held;
    p->held = (struct buf){0};
    p->looks = false;
    print(p, (struct str){(const char *)held.data + from, held.len - from});
    buf_done(&held);
}

/* More than is kept was printed meanwhile, or the log is another: rather twice than not at all. */
static void give_up_looking(void *user)
{
    struct printer *p = user;
    bool over = p->held.len > HELD_MAX || clock_monotonic_ms() >= p->look_until_ms;
    if (p->looks && p->held.len > 0 && over) {
        fprintf(stderr, "muster logs: the place is not found again; lines may be missing or come "
                        "twice\n");
        stop_looking(p, 0);
    }
}

static bool on_piece(void *user, struct str piece)
{
    struct printer *p = user;
    if (!p->looks) {
        print(p, piece);
        return !p->closed;
    }
    buf_append(&p->held, piece.at, piece.len);
    const uint8_t *known = memmem(p->held.data, p->held.len, p->tail.data, p->tail.len);
    if (known)
        stop_looking(p, (size_t)(known - p->held.data) + p->tail.len);
    else
        give_up_looking(p);
    return !p->closed;
}

static void look_again(struct printer *p, struct ask *ask)
{
    ask_set_number(ask, "lines", LOOK_LINES);
    buf_clear(&p->held);
    p->news = false;
    p->looks = p->tail.len > 0;
    p->look_until_ms = clock_monotonic_ms() + LOOK_MS;
}

static enum client_result read_once(struct printer *p, const struct ask *ask)
{
    struct buf path = {0};
    ask_put_path(ask, &path);
    buf_append(&path, "", 1);
    enum client_result result =
        client_read(p->r->client, (const char *)path.data, on_piece, p, &p->r->answer);
    buf_done(&path);
    return result;
}

/* A leader that goes ends its streams, as the end of a game server does: the next one knows which
 * it was. */
static bool may_go_on(const struct printer *p, enum client_result result, bool again)
{
    if (!follow || p->closed || result == CLIENT_STOPPED || !client_has_several(p->r->client))
        return false;
    if (result == CLIENT_DONE)
        return !again || p->news;
    return (p->tail.len > 0 || again) &&
           (result == CLIENT_UNREACHABLE || p->r->answer.status == STATUS_UNAVAILABLE);
}

static enum client_result read_on(struct printer *p, struct ask *ask)
{
    int64_t retry_ms = RETRY_FIRST_MS;
    enum client_result result = read_once(p, ask);
    for (bool again = false; may_go_on(p, result, again); again = true) {
        retry_ms = p->news ? RETRY_FIRST_MS : retry_ms;
        if (result != CLIENT_DONE && (p->news || !again))
            fprintf(stderr, "muster logs: the connection is lost; trying again\n");
        if (screen_wait(&p->r->stop_fd, 1, clock_monotonic_ms() + retry_ms) == 0)
            return CLIENT_STOPPED;
        retry_ms = retry_ms * 2 < RETRY_MAX_MS ? retry_ms * 2 : RETRY_MAX_MS;
        look_again(p, ask);
        result = read_once(p, ask);
    }
    return result;
}

static int print_logs(struct remote *r, struct ask *ask)
{
    struct printer p = {.r = r, .json = remote_output() == OUTPUT_JSON};
    client_on_wait(r->client, give_up_looking, &p);
    enum client_result result = read_on(&p, ask);
    if (p.line.len > 0)
        put_lines(&p, STR("\n")); /* its last line had no end */
    (void)remote_flush(r);
    client_on_wait(r->client, NULL, NULL);
    buf_done(&p.line);
    buf_done(&p.tail);
    buf_done(&p.held);
    if (result == CLIENT_DONE || result == CLIENT_STOPPED)
        return EXIT_DONE;
    remote_complain(r);
    return result == CLIENT_REFUSED ? EXIT_REFUSED : EXIT_UNREACHABLE;
}

int logs_run(int argc, char **argv)
{
    struct remote r;
    struct ask ask;
    ask_init(&ask, "server_logs", "SERVER");
    int code = remote_open(&r, argc, argv, &ask, logs_options, remote_output_options, true);
    if (code != EXIT_DONE)
        return code;
    if (follow)
        ask_set(&ask, "follow", "1");
    code = print_logs(&r, &ask);
    remote_close(&r);
    return code;
}
