/* `muster token …`: enrolment tokens for servers and chat servers, access tokens for this API. A
 * token is printed alone on its line, so that a script can take it. */
#include "api/access.h"
#include "base/suggest.h"
#include "cli/remote.h"
#include "cli/show.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct token_verb {
    const char *verb;
    const char *operation;
    const char *word;
} token_verbs[] = {
    {"token enrol", "enrol", NULL},
    {"token rotate", "rotate_token", "TOKEN"},
    {"token revoke", "revoke_token", "TOKEN"},
    {"token issue", "issue_access_token", NULL},
};

static const struct token_verb *find(const char *verb)
{
    const struct token_verb *v = token_verbs;
    while (strcmp(v->verb, verb) != 0)
        v++; /* run is called for these four only */
    return v;
}

static struct str text_of(const struct remote *r, const char *path)
{
    return json_get_text(show_at(r->answer.json, path));
}

/* The token itself on standard output, what it is for on standard error. */
static void print_token(struct remote *r)
{
    term_put_text(&r->out, text_of(r, "token"));
    term_put(&r->out, "\n");
    (void)remote_flush(r);
}

static void put_until(struct buf *out, const struct remote *r, const char *words, const char *path)
{
    struct str when = text_of(r, path);
    if (when.len == 0)
        return;
    term_put(out, words);
    term_put_text(out, when);
}

static void explain(struct remote *r)
{
    struct buf line = {0};
    bool enrolment = show_at(r->answer.json, "role") != NULL;
    if (enrolment) {
        term_put(&line, "token ");
        term_put_text(&line, text_of(r, "id"));
        term_put(&line, " for role ");
        term_put_text(&line, text_of(r, "role"));
        term_put(&line, ", fleet ");
        term_put_text(&line, text_of(r, "fleet"));
    } else {
        term_put(&line, "access token of account ");
        term_put_text(&line, text_of(r, "account"));
    }
    put_until(&line, r, ", until ", "expires_at");
    put_until(&line, r, "; the one before works until ", "previous_until");
    term_put(&line, ". It is shown only now.\n");
    (void)term_flush(&line, STDERR_FILENO);
    buf_done(&line);
}

/* What Muster does not know may be another service's, or misspelt. */
static void warn(struct remote *r)
{
    const struct json *scopes = show_at(r->answer.json, "scopes");
    struct buf line = {0};
    for (size_t i = 0; i < json_length(scopes); i++) {
        struct str word = json_get_text(json_item(scopes, i));
        struct suggestion meant = suggest_for(word.at);
        if (access_scope(word) != 0)
            continue;
        for (uint32_t bit = 1; bit <= ACCESS_ALL; bit <<= 1)
            suggest_offer(&meant, access_scope_name(bit));
        term_put(&line, "muster token issue: warning: ");
        term_put_text(&line, word);
        term_put(&line, " is no scope of Muster's");
        if (meant.best)
            term_printf(&line, " (did you mean %s?)", meant.best);
        term_put(&line, "; it allows nothing here\n");
    }
    (void)term_flush(&line, STDERR_FILENO);
    buf_done(&line);
}

static void print_revoked(struct remote *r)
{
    term_put(&r->out, "token ");
    term_put_text(&r->out, text_of(r, "id"));
    term_put(&r->out, " is revoked\n");
    (void)remote_flush(r);
}

static void print_answer(struct remote *r)
{
    if (remote_output() == OUTPUT_JSON) {
        show_json(&r->out, r->answer.json);
        term_put(&r->out, "\n");
        (void)remote_flush(r);
    } else if (text_of(r, "token").len > 0) {
        print_token(r);
        explain(r);
    } else {
        print_revoked(r);
    }
}

int token_run(int argc, char **argv)
{
    struct remote r;
    struct ask ask;
    const struct token_verb *v = find(argv[0]);
    ask_init(&ask, v->operation, v->word);
    int code = remote_open(&r, argc, argv, &ask, NULL, remote_output_options, false);
    if (code != EXIT_DONE)
        return code;
    code = remote_ask(&r, &ask);
    if (code == EXIT_DONE) {
        print_answer(&r);
        warn(&r);
    }
    remote_close(&r);
    return code;
}
