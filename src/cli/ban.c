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

/* What draw is given; the client of who may ban is made when it is first needed. */
struct asking {
    struct ask ask;
    struct client *banner;
};

static int draw(struct remote *r, void *user)
{
    struct asking *a = user;
    int code = EXIT_DONE;
    if (!a->banner && client_is_local_admin(r->client))
        code = remote_become(r, WHO, "game_ban", &a->banner);
    if (code == EXIT_DONE)
        code = remote_ask_by(r, a->banner ? a->banner : r->client, &a->ask, CLIENT_TIMEOUT_S);
    if (code != EXIT_DONE)
        return code;
    if (remote_output() == OUTPUT_JSON) {
        show_json(&r->out, r->answer.json);
        term_put(&r->out, "\n");
    } else {
        say(r, &a->ask, r->verb);
    }
    return EXIT_DONE;
}

int ban_run(int argc, char **argv)
{
    struct remote r;
    struct asking a = {0};
    char date[DATE_MAX];
    const struct ban_verb *v = find(argv[0]);
    ask_init(&a.ask, v->operation, v->word);
    if (!v->word)
        ask_add_word(&a.ask, "account", "ACCOUNT");
    bool looks = strcmp(argv[0], "ban show") == 0;
    int code = remote_open(&r, argc, argv, &a.ask, NULL,
                           looks ? remote_list_options : remote_output_options, false);
    if (code != EXIT_DONE)
        return code;
    if (ask_has(&a.ask, "expires") && ask_text(&a.ask, "expires")) {
        print_date(ask_text(&a.ask, "expires"), date);
        ask_set(&a.ask, "expires", date);
    }
    code = remote_show(&r, draw, &a);
    client_close(a.banner);
    remote_close(&r);
    return code;
}
