/* `muster server`, `muster session`, `muster ticket`: one thing with all its fields. A server is
 * followed by the matches it holds. */
#include "base/clock.h"
#include "cli/list.h"

#include <assert.h>
#include <string.h>

static const struct inspection {
    const char *verb;
    const char *operation;
    const char *word;
} inspections[] = {
    {"server", "get_server", "SERVER"},
    {"session", "get_session", "SESSION"},
    {"ticket", "get_ticket", "TICKET"},
};

enum { INSPECTIONS = sizeof(inspections) / sizeof(inspections[0]) };

static const struct inspection *find(const char *verb)
{
    size_t i = 0;
    while (i < INSPECTIONS && strcmp(inspections[i].verb, verb) != 0)
        i++;
    assert(i < INSPECTIONS);
    return &inspections[i];
}

static bool is_going_on(const struct json *session)
{
    return !str_eq(json_get_text(json_member(session, "state")), STR("ended"));
}

static int draw_matches(struct remote *r, const char *server)
{
    struct ask ask;
    size_t n = 0;
    const struct list_choice going_on = {.keep = is_going_on};
    ask_init(&ask, "list_sessions", NULL);
    ask_set(&ask, "server", server);
    term_put(&r->out, "\n");
    size_t before = r->out.len;
    int code = list_draw(r, &ask, list_columns("sessions"), &going_on, &n);
    if (code == EXIT_DONE && n == 0) {
        r->out.len = before;
        term_put(&r->out, "It holds no match.\n");
    }
    return code;
}

struct drawing {
    const struct inspection *what;
    struct ask ask;
};

static int draw(struct remote *r, void *user)
{
    const struct drawing *d = user;
    int code = remote_ask(r, &d->ask);
    if (code != EXIT_DONE)
        return code;
    if (remote_output() == OUTPUT_JSON) {
        show_json(&r->out, r->answer.json);
        term_put(&r->out, "\n");
        return EXIT_DONE;
    }
    show_object(&r->out, &r->term, r->answer.json, clock_wall_ms());
    if (strcmp(d->what->verb, "server") == 0)
        return draw_matches(r, ask_text(&d->ask, "id"));
    return EXIT_DONE;
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
