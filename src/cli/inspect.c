/* `muster server`, `session`, `ticket`, `host`, `room show`: one thing with all its fields, and
 * what belongs to it: a server's matches and its last lines, a room's players, a host's rooms. */
#include "base/clock.h"
#include "cli/list.h"

#include <assert.h>
#include <string.h>

static const struct inspection {
    const char *verb;
    const char *operation;
    const char *word;

    /* What follows the fields; NULL = nothing. r->answer is its answer; may ask again. */
    int (*more)(struct remote *r, const char *id);
} inspections[];

static const struct inspection *find(const char *verb)
{
    const struct inspection *i = inspections;
    while (i->verb && strcmp(i->verb, verb) != 0)
        i++;
    assert(i->verb);
    return i;
}

/* ── what belongs to it ────────────────────────────────────────────────────────────────────── */

static bool is_going_on(const struct json *session)
{
    return !str_eq(json_get_text(json_member(session, "state")), STR("ended"));
}

/* A list of what is going on; `none` when there is nothing. */
static int draw_list(struct remote *r, const char *operation, const char *field, const char *id,
                     const char *columns, const char *none)
{
    struct ask ask;
    size_t n = 0;
    const struct list_choice going_on = {.keep = is_going_on};
    ask_init(&ask, operation, NULL);
    ask_set(&ask, field, id);
    term_put(&r->out, "\n");
    size_t before = r->out.len;
    int code = list_draw(r, &ask, list_columns(columns), &going_on, &n);
    if (code == EXIT_DONE && n == 0) {
        r->out.len = before;
        term_put(&r->out, none);
    }
    return code;
}

/* The last lines of its output, as lines. */
static void put_tail(struct remote *r)
{
    struct str tail = json_get_text(show_at(r->answer.json, "exit.tail"));
    if (tail.len == 0)
        return;
    term_put(&r->out, "\n");
    term_put_styled(&r->out, &r->term, STYLE_HEAD, STR("The last lines of its output"));
    term_put(&r->out, "\n");
    while (tail.len > 0) {
        const char *end = memchr(tail.at, '\n', tail.len);
        size_t n = end ? (size_t)(end - tail.at) : tail.len;
        term_put_text(&r->out, (struct str){tail.at, n});
        term_put(&r->out, "\n");
        tail = (struct str){tail.at + n, tail.len - n};
        if (tail.len > 0)
            tail = (struct str){tail.at + 1, tail.len - 1};
    }
}

static int draw_server(struct remote *r, const char *id)
{
    struct str provider = json_get_text(json_member(r->answer.json, "provider"));
    if (str_eq(provider, STR("chat")))
        return draw_list(r, "list_sessions", "server", id, "sessions", "It holds no match.\n");
    put_tail(r);
    return EXIT_DONE;
}

static int draw_host(struct remote *r, const char *id)
{
    return draw_list(r, "list_rooms", "host", id, "rooms", "No room is there.\n");
}

/* Who sits in it came with the answer. */
static int draw_room(struct remote *r, const char *id)
{
    struct table t;
    bool wide = remote_output() == OUTPUT_WIDE;
    const struct show_column *columns = list_columns("seats");
    const struct json *seats = json_member(r->answer.json, "seats");
    (void)id;
    put_tail(r);
    term_put(&r->out, "\n");
    if (json_length(seats) == 0) {
        term_put(&r->out, "Nobody is in it.\n");
        return EXIT_DONE;
    }
    table_init(&t);
    show_columns(&t, columns, wide);
    for (size_t i = 0; i < json_length(seats); i++)
        show_row(&t, columns, wide, json_item(seats, i), clock_wall_ms());
    table_print(&t, &r->term, &r->out);
    table_done(&t);
    return EXIT_DONE;
}

static const struct inspection inspections[] = {
    {"server", "get_server", "SERVER", draw_server}, {"session", "get_session", "SESSION", NULL},
    {"ticket", "get_ticket", "TICKET", NULL},        {"host", "get_host", "HOST", draw_host},
    {"room show", "get_room", "ROOM", draw_room},    {0},
};

/* ── the verb ──────────────────────────────────────────────────────────────────────────────── */

struct drawing {
    const struct inspection *what;
    struct ask ask;
};

/* What is most often asked of it, in words: a host tells whether it may be taken away. */
static void put_sentence(struct remote *r)
{
    struct str sentence = json_get_text(show_at(r->answer.json, "removal.sentence"));
    if (sentence.len == 0)
        return;
    term_put(&r->out, "May it be taken away now? ");
    term_put_text(&r->out, sentence);
    term_put(&r->out, "\n\n");
}

static int draw(struct remote *r, void *user)
{
    static const char *const apart[] = {"exit.tail", "seats", "removal.now", "removal.sentence",
                                        NULL};
    const struct drawing *d = user;
    int code = remote_ask(r, &d->ask);
    if (code != EXIT_DONE)
        return code;
    if (remote_output() == OUTPUT_JSON) {
        show_json(&r->out, r->answer.json);
        term_put(&r->out, "\n");
        return EXIT_DONE;
    }
    put_sentence(r);
    show_object_without(&r->out, &r->term, r->answer.json, apart, clock_wall_ms());
    return d->what->more ? d->what->more(r, ask_text(&d->ask, "id")) : EXIT_DONE;
}

int inspect_run(int argc, char **argv)
{
    struct remote r;
    struct drawing d = {.what = find(argv[0])};
    ask_init(&d.ask, d.what->operation, d.what->word);
    int code = remote_open(&r, argc, argv, &d.ask, NULL, remote_list_options, false);
    if (code != EXIT_DONE)
        return code;
    code = remote_show(&r, draw, &d);
    remote_close(&r);
    return code;
}
