/* Agents: what core wants done on hosts becomes HTTP requests to the agents there, and what they
 * say to it becomes EVENT_HOST_HEARD. docs/agent-protocol.md is the contract.
 *
 * Owned by the service. Used on the loop's thread. */
#pragma once

#include "api/access.h"
#include "api/door.h"
#include "api/launch.h"
#include "api/metrics.h"
#include "core/effect.h"
#include "net/http_client.h"

struct agents;
struct login;
struct agent_call;

/* Requests to agents that are under way at once; a command more counts as one that nobody answered.
 */
enum { AGENTS_CALLS_MAX = 16 * 1024 };

/* What it works with must outlive it. */
struct agents *agents_new(struct doors *doors, const struct access *access, struct login *login,
                          struct metrics *metrics);

/* Ends every request under way. NULL is fine. */
void agents_free(struct agents *a);

/* How servers are started from now on. Borrowed until the next call. */
/* What a fleet's servers are started from, as the configuration says; "" when it does not. */
const char *agents_binary_of(const struct agents *a, const char *fleet);

void agents_configure(struct agents *a, const struct launch *launches, size_t n);

/* What we show to that host's agent when we call it; it is told in the answer to its heartbeat.
 * Each host has its own, and another one when another account takes its name over, so that no agent
 * can be commanded by somebody else's. It is derived from the data folder's secret, so that an
 * agent that was told before a restart still knows it, and it opens nothing here: it has expired
 * when it is made. Valid until the next call. */
const char *agents_token(struct agents *a, int64_t host);

/* Does what core wants done: pipeline_world's release. */
void agents_release(struct agents *a, const struct effect *effects, size_t n);

/* The end of a turn: what agents are asked leaves. Before the pipeline is flushed: whoever commits
 * may take the processor from us, for as long as it takes a host to begin with what it is asked to
 * prepare. */
void agents_go(struct agents *a);

/* Then, before that as well: core is told what the agents said. */
void agents_before_flush(struct agents *a);

/* A request on behalf of an operator. */
struct agent_request {
    const char *what; /* for the metrics: a static text */
    enum http_method method;
    int64_t host;
    const char *url;  /* of its agent */
    const char *path; /* what comes after it */
    struct str body;
    http_piece *each; /* not NULL: the answer has no end, see http_client_follow */
    http_done *done;
    void *user;
};

/* `done` is called once, from the loop, unless agent_call_drop or agents_free comes first. NULL
 * when too many are under way or it could not be begun. */
struct agent_call *agents_ask(struct agents *a, const struct agent_request *request);

/* Forgets it. NULL is fine. */
void agent_call_drop(struct agent_call *call);

/* What an agent's refusal says, or what went wrong on the way: a clause or a sentence, in dst. */
enum { AGENTS_WHY_MAX = 256 };
const char *agents_why(const struct http_reply *reply, char dst[AGENTS_WHY_MAX]);
