/* `muster why`: how a request came to its answer. First a sentence, then who was asked and who was
 * passed over. An allocation has a name instead of a number, and a sentence alone. */
#include "base/clock.h"
#include "cli/list.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct {
    const char *ticket;
    const char *chat_server;
    const char *player;
    int64_t lobby;
} set;

const struct arg why_options[] = {
    {.name = "TICKET", .kind = ARG_WORD, .into = &set.ticket},
    {.name = "--lobby",
     .kind = ARG_NUMBER,
     .into = &set.lobby,
     .min = 1,
     .max = INT32_MAX,
     .value = "N",
     .help = "the newest request for this lobby, instead of a TICKET"},
    {.name = "--chat-server",
     .kind = ARG_TEXT,
     .into = &set.chat_server,
     .value = "NAME",
     .help = "with --lobby: of this chat server only"},
    {.name = "--player",
     .kind = ARG_TEXT,
     .into = &set.player,
     .value = "NAME",
     .help = "TICKET is a name that this player gave himself"},
    {0},
};

static const struct show_column try_columns[] = {
    {"SERVER", "server", SHOW_NUMBER, false},
    {"OUTCOME", "outcome", SHOW_STATE, false},
    {"SCORE", "score", SHOW_NUMBER, false},
    {"LOAD", "load", SHOW_NUMBER, false},
    {"MAX", "max_sessions", SHOW_NUMBER, false},
    {"CPU", "cpu_percent", SHOW_PERCENT, false},
    {"MEMORY", "memory_percent", SHOW_PERCENT, false},
    {0},
};

/* Of a request for a seat. */
static const struct show_column host_try_columns[] = {
    {"HOST", "host", SHOW_NUMBER, false},
    {"OUTCOME", "outcome", SHOW_STATE, false},
    {"ROOM", "room", SHOW_NUMBER, false},
    {"LOAD", "load_percent", SHOW_PERCENT, false},
    {0},
};

static void put_tries(struct remote *r, const struct show_column *columns, const struct json *tries)
{
    struct table t;
    table_init(&t);
    show_columns(&t, columns, false);
    for (size_t i = 0; i < json_length(tries); i++)
        show_row(&t, columns, false, json_item(tries, i), clock_wall_ms());
    if (table_rows(&t) > 0) {
        term_put(&r->out, "\n");
        table_print(&t, &r->term, &r->out);
    }
    table_done(&t);
}

/* "passed over: 2 full, 1 draining" */
static void put_passed_over(struct remote *r, const struct json *counts)
{
    void *at = NULL;
    const char *reason;
    const struct json *n;
    const char *before = "\npassed over: ";
    while (json_next(counts, &at, &reason, &n)) {
        if (json_get_int(n) == 0)
            continue;
        term_printf(&r->out, "%s%" PRId64 " ", before, json_get_int(n));
        term_put_text(&r->out, str_of(reason));
        before = ", ";
    }
    term_put(&r->out, *before == ',' ? "\n" : "\npassed over: nobody\n");
}

static int draw(struct remote *r, void *user)
{
    int code = remote_ask(r, user);
    if (code != EXIT_DONE)
        return code;
    if (remote_output() == OUTPUT_JSON) {
        show_json(&r->out, r->answer.json);
        term_put(&r->out, "\n");
        return EXIT_DONE;
    }
    term_put_text(&r->out, json_get_text(json_member(r->answer.json, "sentence")));
    term_put(&r->out, "\n");
    if (json_member(r->answer.json, "ticket_id"))
        return EXIT_DONE;
    put_tries(r, try_columns, json_member(r->answer.json, "tries"));
    put_tries(r, host_try_columns, json_member(r->answer.json, "hosts"));
    if (str_eq(json_get_text(show_at(r->answer.json, "ticket.kind")), STR("match")))
        put_passed_over(r, json_member(r->answer.json, "passed_over"));
    return EXIT_DONE;
}

/* The newest ticket of the lobby into `ret`; "" when there is none. A page may be empty although
 * more follow. */
static int find_ticket(struct remote *r, char ret[24])
{
    struct ask ask;
    char cursor[24] = "";
    ret[0] = '\0';
    ask_init(&ask, "list_tickets", NULL);
    ask_set_number(&ask, "lobby", set.lobby);
    ask_set(&ask, "chat_server", set.chat_server);
    ask_set(&ask, "order", "newest");
    ask_set_number(&ask, "limit", 1);
    do {
        ask_set(&ask, "cursor", *cursor ? cursor : NULL);
        int code = remote_ask(r, &ask);
        if (code != EXIT_DONE)
            return code;
        const struct json *newest = json_item(json_member(r->answer.json, "items"), 0);
        (void)str_copy(ret, 24, json_get_text(json_member(newest, "id")));
        (void)str_copy(cursor, sizeof(cursor), json_get_text(json_member(r->answer.json, "next")));
    } while (!*ret && *cursor);
    return EXIT_DONE;
}

/* Which ticket is meant, into `ret`. */
static int resolve(struct remote *r, char ret[24])
{
    if (set.ticket) {
        snprintf(ret, 24, "%.23s", set.ticket);
        return EXIT_DONE;
    }
    int code = find_ticket(r, ret);
    if (code == EXIT_DONE && !*ret) {
        fprintf(stderr, "muster why: nobody has asked for lobby %" PRId64 "%s%s lately\n",
                set.lobby, set.chat_server ? " as chat server " : "",
                set.chat_server ? set.chat_server : "");
        return EXIT_REFUSED;
    }
    return code;
}

static bool is_number(const char *text)
{
    return *text && strspn(text, "0123456789") == strlen(text);
}

/* An allocation, by what its sender calls it. */
static int show_allocation(struct remote *r)
{
    struct ask ask;
    ask_init(&ask, "why_allocation", "TICKET");
    ask_set(&ask, "ticketId", set.ticket);
    ask_set(&ask, "player", set.player);
    return remote_show(r, draw, &ask);
}

int why_run(int argc, char **argv)
{
    struct remote r;
    struct ask ask;
    char ticket[24];
    int code = remote_open(&r, argc, argv, NULL, why_options, remote_list_options, false);
    if (code != EXIT_DONE)
        return code;
    if (!set.ticket == !set.lobby) {
        (void)args_refuse(argv[0], "needs a TICKET or --lobby N, and not both");
        remote_close(&r);
        return EXIT_USAGE;
    }
    if (set.ticket && (set.player || !is_number(set.ticket))) {
        code = show_allocation(&r);
        remote_close(&r);
        return code;
    }
    code = resolve(&r, ticket);
    ask_init(&ask, "why_ticket", "TICKET");
    ask_set(&ask, "id", ticket);
    if (code == EXIT_DONE && !ask_check(&ask, argv[0]))
        code = EXIT_USAGE;
    if (code == EXIT_DONE)
        code = remote_show(&r, draw, &ask);
    remote_close(&r);
    return code;
}
