/* `muster undrain`, `end`, `terminate`, `stdin`, `host enable`, `kick`, `version enable`: what
 * changes servers, matches, hosts, seats and versions, and is done when it is answered. */
#include "cli/remote.h"
#include "cli/show.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Prints the answer as JSON when that is wanted. */
static bool print_json(struct remote *r)
{
    if (remote_output() != OUTPUT_JSON)
        return false;
    show_json(&r->out, r->answer.json);
    term_put(&r->out, "\n");
    (void)remote_flush(r);
    return true;
}

static void say_undrained(struct remote *r, const char *server)
{
    struct str status = json_get_text(json_member(r->answer.json, "status"));
    term_printf(&r->out, "server %s is ", server);
    term_put_styled(&r->out, &r->term, show_style(status), status);
    term_put(&r->out, "\n");
}

static void say_ended(struct remote *r, const char *session)
{
    const struct json *v = r->answer.json;
    term_printf(&r->out, "session %s is ", session);
    struct str state = json_get_text(json_member(v, "state"));
    term_put_styled(&r->out, &r->term, show_style(state), state);
    term_printf(&r->out, " (lobby %" PRId64 ")\n", json_get_int(json_member(v, "lobby")));
}

static void say_terminated(struct remote *r, const char *server)
{
    struct str status = json_get_text(json_member(r->answer.json, "status"));
    term_printf(&r->out, "server %s is told to end; it is ", server);
    term_put_styled(&r->out, &r->term, show_style(status), status);
    term_put(&r->out, " now\n");
}

static void say_written(struct remote *r, const char *server)
{
    term_printf(&r->out, "server %s has been given the line\n", server);
}

static void say_host(struct remote *r, const char *host)
{
    term_printf(&r->out, "host %s (", host);
    term_put_text(&r->out, json_get_text(json_member(r->answer.json, "name")));
    term_put(&r->out, ") may be given game servers\n");
}

static void say_kicked(struct remote *r, const char *seat)
{
    term_printf(&r->out, "seat %s is free, and its player is thrown out\n", seat);
}

static void say_version(struct remote *r, const char *version)
{
    bool enabled = json_get_bool(json_member(r->answer.json, "enabled"));
    struct str fleet = json_get_text(json_member(r->answer.json, "fleet"));
    term_printf(&r->out, "version %s of %.*s %s\n", version, (int)fleet.len, fleet.at,
                enabled ? "can be joined" : "cannot be joined any more");
}

/* word: what the number in the path is; NULL = it is about a version of a fleet. */
static int change(int argc, char **argv, const char *operation, const char *word,
                  void (*say)(struct remote *r, const char *id))
{
    struct remote r;
    struct ask ask;
    ask_init(&ask, operation, word);
    if (!word) {
        ask_add_word(&ask, "fleet", "FLEET");
        ask_add_word(&ask, "version", "VERSION");
    }
    if (ask_has(&ask, "line"))
        ask_add_word(&ask, "line", "LINE");
    int code = remote_open(&r, argc, argv, &ask, NULL, remote_output_options, false);
    if (code != EXIT_DONE)
        return code;
    code = remote_ask(&r, &ask);
    if (code == EXIT_DONE && !print_json(&r)) {
        say(&r, ask_text(&ask, word ? "id" : "version"));
        (void)remote_flush(&r);
    }
    remote_close(&r);
    return code;
}

int undrain_run(int argc, char **argv)
{
    return change(argc, argv, "undrain_server", "SERVER", say_undrained);
}

int end_run(int argc, char **argv)
{
    return change(argc, argv, "end_session", "SESSION", say_ended);
}

int terminate_run(int argc, char **argv)
{
    return change(argc, argv, "terminate_server", "SERVER", say_terminated);
}

int stdin_run(int argc, char **argv)
{
    return change(argc, argv, "server_stdin", "SERVER", say_written);
}

int host_enable_run(int argc, char **argv)
{
    return change(argc, argv, "enable_host", "HOST", say_host);
}

int kick_run(int argc, char **argv)
{
    return change(argc, argv, "kick_seat", "SEAT", say_kicked);
}

int version_enable_run(int argc, char **argv)
{
    return change(argc, argv, "enable_version", NULL, say_version);
}

int version_disable_run(int argc, char **argv)
{
    return change(argc, argv, "disable_version", NULL, say_version);
}
