/* `muster console`: a link that opens the console in a browser, with a token made for that. The
 * link stands alone on standard output, what it is on standard error. */
#include "api/access.h"
#include "cli/console_link.h"
#include "cli/remote.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { EXPIRES_MIN_S = 60, EXPIRES_MAX_S = 366 * 24 * 3600 };

static struct {
    bool read_only;
    int64_t expires_s;
} set = {.expires_s = CONSOLE_LINK_S};

const struct arg console_options[] = {
    {.name = "--read-only",
     .kind = ARG_FLAG,
     .into = &set.read_only,
     .help = "for somebody who looks and may change nothing"},
    {.name = "--expires",
     .kind = ARG_SECONDS,
     .into = &set.expires_s,
     .min = EXPIRES_MIN_S,
     .max = EXPIRES_MAX_S,
     .value = "TIME",
     .help = "for how long the link logs in (12h)"},
    {0},
};

/* The audit shows the account, so it is the one of whoever asks for the link. */
static int find_account(struct remote *r, char ret[ACCESS_ACCOUNT_MAX + 1])
{
    int code = remote_call(r, HTTP_GET, "/v1/me", NULL, CLIENT_TIMEOUT_S);
    if (code == EXIT_DONE)
        (void)str_copy(ret, ACCESS_ACCOUNT_MAX + 1,
                       json_get_text(json_member(r->answer.json, "account")));
    return code;
}

static void explain(const struct remote *r)
{
    struct buf line = {0};
    term_put(&line, set.read_only
                        ? "Open it in a browser. Whoever has this link sees everything, until "
                        : "Open it in a browser. Whoever has this link is administrator, until ");
    term_put_text(&line, json_get_text(json_member(r->answer.json, "expires_at")));
    term_put(&line, ". It cannot be taken back before.\n");
    (void)term_flush(&line, STDERR_FILENO);
    buf_done(&line);
}

/* {"url":"…","account":"…","expires_at":"…"} */
static void put_json(struct remote *r, struct str link)
{
    struct json_writer w = {.out = &r->out};
    json_open_object(&w);
    json_key_text(&w, "url", link);
    json_key_text(&w, "account", json_get_text(json_member(r->answer.json, "account")));
    json_key_text(&w, "expires_at", json_get_text(json_member(r->answer.json, "expires_at")));
    json_close_object(&w);
}

static void print_link(struct remote *r)
{
    struct buf link = {0};
    console_link_put(&link, client_url(r->client),
                     json_get_text(json_member(r->answer.json, "token")));
    struct str text = {(const char *)link.data, link.len};
    if (remote_output() == OUTPUT_JSON)
        put_json(r, text);
    else
        term_put_text(&r->out, text);
    term_put(&r->out, "\n");
    (void)remote_flush(r);
    explain(r);
    buf_done(&link);
}

static int make_link(struct remote *r)
{
    char account[ACCESS_ACCOUNT_MAX + 1] = "";
    struct ask issue;
    int code = find_account(r, account);
    if (code != EXIT_DONE)
        return code;
    ask_init(&issue, "issue_access_token", NULL);
    ask_set(&issue, "account", account);
    ask_set(&issue, "scopes", set.read_only ? CONSOLE_SCOPES_READ : CONSOLE_SCOPES);
    ask_set_number(&issue, "expires_in_s", set.expires_s);
    code = remote_ask(r, &issue);
    if (code == EXIT_DONE)
        print_link(r);
    return code;
}

int console_run(int argc, char **argv)
{
    struct remote r;
    int code = remote_open(&r, argc, argv, NULL, console_options, remote_output_options, false);
    if (code != EXIT_DONE)
        return code;
    code = make_link(&r);
    remote_close(&r);
    return code;
}
