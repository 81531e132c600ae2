/* `muster ban issue|show|update|lift`: who may not play. Whoever has the data folder's token may
 * ban too, with a token made for that. */
#include "base/clock.h"
#include "cli/remote.h"
#include "cli/show.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define WHO "administrator"

enum { DATE_MAX = 24 };

static const struct ban_verb {
    const char *verb;
    const char *operation;
    const char *word;
} ban_verbs[] = {
    {"ban issue", "issue_ban", NULL},
    {"ban show", "get_played_ban", "BAN"},
    {"ban update", "update_played_ban", "BAN"},
    {"ban lift", "lift_played_ban", "BAN"},
};

static const struct ban_verb *find(const char *verb)
{
    const struct ban_verb *v = ban_verbs;
    while (strcmp(v->verb, verb) != 0)
        v++; /* run is called for these four only */
    return v;
}

/* The API takes a date; a person may say for how long. */
static void print_date(const char *text, char ret[DATE_MAX])
{
    int64_t seconds = 0;
    struct tm tm;
    if (!args_seconds(text, &seconds)) {
        snprintf(ret, DATE_MAX, "%.*s", DATE_MAX - 1, text);
        return;
    }
    time_t at = (time_t)(clock_wall_ms() / 1000 + seconds);
    gmtime_r(&at, &tm);
    if (strftime(ret, DATE_MAX, "%Y-%m-%d %H:%M:%S", &tm) == 0)
        ret[0] = '\0';
}

static void say(struct remote *r, const struct ask *ask, const char *verb)
{
    if (strcmp(verb, "ban show") == 0) {
        show_object(&r->out, &r->term, r->answer.json, clock_wall_ms());
        return;
    }
    term_put(&r->out, "ban ");
    if (strcmp(verb, "ban issue") == 0) {
        show_value(&r->out, json_member(r->answer.json, "id"), SHOW_NUMBER, 0);
        term_put(&r->out, ": ");
        term_put_text(&r->out, str_of(ask_text(ask, "account")));
        term_put(&r->out, " may not play until ");
        term_put_text(&r->out, str_of(ask_text(ask, "expires")));
        term_put(&r->out, " UTC\n");
        return;
    }
    term_put_text(&r->out, str_of(ask_text(ask, "id")));
    term_put(&r->out, strcmp(verb, "ban lift") == 0 ? " is lifted\n" : " is changed\n");
}

static int ask_and_say(struct remote *r, const struct ask *ask)
{
    struct client *banner = NULL;
    int code = EXIT_DONE;
    if (client_is_local_admin(r->client))
        code = remote_become(r, WHO, "game_ban", &banner);
    if (code == EXIT_DONE)
        code = remote_ask_by(r, banner ? banner : r->client, ask, CLIENT_TIMEOUT_S);
    client_close(banner);
    if (code != EXIT_DONE)
        return code;
    if (remote_output() == OUTPUT_JSON) {
        show_json(&r->out, r->answer.json);
        term_put(&r->out, "\n");
    } else {
        say(r, ask, r->verb);
    }
    (void)remote_flush(r);
    return EXIT_DONE;
}

int ban_run(int argc, char **argv)
{
    struct remote r;
    struct ask ask;
    char date[DATE_MAX];
    const struct ban_verb *v = find(argv[0]);
    ask_init(&ask, v->operation, v->word);
    if (!v->word)
        ask_add_word(&ask, "account", "ACCOUNT");
    int code = remote_open(&r, argc, argv, &ask, NULL, remote_output_options, false);
    if (code != EXIT_DONE)
        return code;
    if (ask_has(&ask, "expires") && ask_text(&ask, "expires")) {
        print_date(ask_text(&ask, "expires"), date);
        ask_set(&ask, "expires", date);
    }
    code = ask_and_say(&r, &ask);
    remote_close(&r);
    return code;
}
