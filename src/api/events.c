/* GET /v1/events: the feed, read over HTTP. */
#include "api/call.h"
#include "api/feed.h"
#include "base/err.h"

static void wake(void *user)
{
    struct call *c = user;
    http_wake(c->http);
}

static bool pull(void *user, struct http_request *http, struct buf *out, size_t max)
{
    struct call *c = http_data(http);
    (void)user;
    return feed_pull(c->reader, out, max);
}

/* Tokens and the audit are for administrators; who did not ask for them by name does not get them.
 */
static int choose(struct call *c, feed_kinds *ret)
{
    char shown[ARGUMENTS_SHOWN_MAX + 16];
    struct str word = {0};
    const struct argument *kinds = call_argument(c, "kinds");
    if (!feed_kinds_parse(kinds->given ? kinds->text.at : NULL, ret, &word)) {
        call_refuse(c, ERR_BAD_ARGUMENT, "kinds", "kinds is a list of %s, not %s.",
                    FEED_KINDS_WORDS, arguments_show(shown, word));
        return ERR_BAD_ARGUMENT;
    }
    feed_kinds guarded = *ret & feed_kinds_of_administrators();
    if (guarded == 0 || (c->who.scopes & ACCESS_ADMIN))
        return 0;
    if (kinds->given) {
        call_refuse(c, ERR_FORBIDDEN, "kinds", "token and audit need the scope %s.",
                    access_scope_name(ACCESS_ADMIN));
        return ERR_FORBIDDEN;
    }
    *ret &= ~guarded;
    return 0;
}

static int open_reader(struct call *c, const struct feed_ask *ask)
{
    int err = feed_open(c->rest->feed, ask, &c->reader);
    if (err == ERR_BAD_ARGUMENT)
        call_refuse(c, err, "last_event_id", "Last-Event-ID is no id of an event.");
    else if (err != 0)
        call_refuse(c, err, NULL, "There are too many readers of events.");
    return err;
}

void handle_events(struct call *c)
{
    const struct argument *last = call_argument(c, "last_event_id");
    struct feed_ask ask = {
        .last_id = http_header(c->http, "Last-Event-ID"), .wake = wake, .user = c};
    if (!ask.last_id && last->given)
        ask.last_id = last->text.at;
    if (choose(c, &ask.kinds) == 0 && open_reader(c, &ask) == 0)
        call_stream(c, FEED_CONTENT_TYPE, pull);
    else
        call_answer(c);
}
