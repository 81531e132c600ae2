/* `muster player`: where somebody sits, and his bans. */
#include "cli/list.h"

#include <string.h>

static const char *account;

const struct arg player_options[] = {
    {.name = "ACCOUNT", .kind = ARG_WORD, .into = &account},
    {0},
};

/* One list of what is his, with its name. */
static int draw_part(struct remote *r, const char *operation, const char *columns,
                     const char *title, const char *none)
{
    struct ask ask;
    size_t n = 0;
    const struct list_choice all = {.limit = 0};
    bool json = remote_output() == OUTPUT_JSON;
    ask_init(&ask, operation, NULL);
    ask_set(&ask, "account", account);
    size_t before = r->out.len;
    if (!json) {
        term_put_styled(&r->out, &r->term, STYLE_HEAD, str_of(title));
        term_put(&r->out, "\n");
    }
    int code = list_draw(r, &ask, list_columns(columns), &all, &n);
    if (code == EXIT_DONE && n == 0 && !json) {
        r->out.len = before;
        term_put(&r->out, none);
    }
    return code;
}

static int draw(struct remote *r, void *user)
{
    (void)user;
    bool json = remote_output() == OUTPUT_JSON;
    term_put(&r->out, json ? "{\"seats\":" : "");
    int code = draw_part(r, "list_seats", "players", "Seats", "He sits in no room.\n");
    term_put(&r->out, json ? ",\"bans\":" : "\n");
    if (code == EXIT_DONE)
        code = draw_part(r, "list_bans", "ban list", "Bans", "He was never banned.\n");
    term_put(&r->out, json ? "}\n" : "");
    if (code != EXIT_DONE)
        buf_clear(&r->out); /* half of it would look like all */
    return code;
}

int player_run(int argc, char **argv)
{
    struct remote r;
    int code = remote_open(&r, argc, argv, NULL, player_options, remote_list_options, false);
    if (code != EXIT_DONE)
        return code;
    if (!account) {
        (void)args_refuse(argv[0], "needs an ACCOUNT");
        remote_close(&r);
        return EXIT_USAGE;
    }
    code = remote_show(&r, draw, NULL);
    remote_close(&r);
    return code;
}
