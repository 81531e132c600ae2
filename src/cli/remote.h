/* Verbs that ask a running Muster over HTTP: the options all of them have, the exit code of each
 * outcome, and showing something once or again and again. Embedded in the verb's run function.
 *
 * A verb collects what it shows in `out`; remote_show writes it. */
#pragma once

#include "cli/args.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/term.h"

struct remote {
    const char *verb;
    struct client *client;
    struct term term; /* standard output */
    int stop_fd;      /* readable when we are asked to stop; -1 where nobody waits */
    struct buf out;
    struct client_answer answer; /* of the last question */
    bool quiet;                  /* a failure is kept in answer.why and not printed */
    char host[24];               /* the number of the host that was named */
};

/* --url and the like; the last table of every such verb. */
extern const struct arg remote_options[];

/* -o; and -w as well; and both for a verb that goes on by itself, where -w changes nothing. */
extern const struct arg remote_output_options[];
extern const struct arg remote_list_options[];
extern const struct arg remote_live_options[];

enum output { OUTPUT_TABLE, OUTPUT_WIDE, OUTPUT_JSON };
enum output remote_output(void);

/* Reads argv with the tables of the question (a may be NULL), of the verb (own may be NULL) and the
 * shared ones, then opens a client. With `stoppable`, SIGINT and SIGTERM end waiting instead of the
 * process. A host that was named is looked up. Returns EXIT_DONE; otherwise a sentence has been
 * printed and the verb returns it. */
int remote_open(struct remote *r, int argc, char **argv, struct ask *a, const struct arg *own,
                const struct arg *shared, bool stoppable);
void remote_close(struct remote *r);

/* Asks; the answer's JSON is r->answer.json. Returns an exit code; unless EXIT_DONE a sentence has
 * been printed (see quiet). EXIT_STOPPED when we were asked to stop. */
enum { EXIT_STOPPED = -1 };
int remote_ask(struct remote *r, const struct ask *a);

/* The same on another client, which may take longer to answer. */
int remote_ask_by(struct remote *r, struct client *client, const struct ask *a, int timeout_s);

/* The same with a path and a body of one's own; body may be NULL. */
int remote_call(struct remote *r, enum http_method method, const char *path, const struct buf *body,
                int timeout_s);

/* Another client of the same Muster, with an access token that is made for this account and these
 * scopes; we must be an administrator. The caller closes it. Returns an exit code, as remote_ask.
 */
int remote_become(struct remote *r, const char *account, const char *scopes, struct client **ret);

/* Prints "muster VERB: " and the client's last sentence on standard error. */
void remote_complain(const struct remote *r);

/* Writes r->out; false when nobody reads it any more. */
bool remote_flush(struct remote *r);

/* Writes it already now when it has become large and nothing is drawn over: lists may be long. */
void remote_spill(struct remote *r);

/* Calls draw, which fills r->out and returns an exit code, and writes what it drew. With --watch
 * again every second: a terminal is drawn over, anything else gets one block after another. A
 * failure after the first time is shown and tried again. Returns the exit code. */
int remote_show(struct remote *r, int (*draw)(struct remote *r, void *user), void *user);
