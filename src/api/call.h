/* A call: one HTTP request on its way through the API. Handlers of operations work with it; owned
 * by rest.c, freed when its HTTP request is over.
 *
 * A handler that looks at core renders its answer at once and ends with call_read: the answer
 * leaves when what was seen is durable. One that changes something ends with call_operate; when
 * that is durable, `resume` renders what came of it and ends with call_read. One that needs no core
 * ends with call_answer. One that speaks for a player or an agent steps its own event with
 * call_step and hears core's answer. Nothing of the call may be touched after these. */
#pragma once

#include "api/access.h"
#include "api/arguments.h"
#include "api/backup.h"
#include "api/rest.h"
#include "base/chain.h"
#include "base/json.h"
#include "base/list.h"
#include "core/view.h"

struct agent_call;

/*   NEW ──call_read──▶ STORING ──EFFECT_READ──▶ OVER      from any state: the client is gone
 *    │                    ▲
 *    ├─call_operate─▶ STORING ──EFFECT_OPERATED──▶ RESUMING ──▶ call_read
 *    ├─call_wait────▶ PATIENT ──ticket or time is over──▶ RESUMING ──▶ call_read
 *    ├─call_step────▶ ASKING ──core's answers──▶ hear ──▶ call_answer
 *    ├─http_stream──▶ STREAMING
 *    └─call_answer──▶ OVER
 */
enum call_state {
    CALL_NEW,
    CALL_STORING,
    CALL_PATIENT,
    CALL_ASKING,
    CALL_RESUMING,
    CALL_STREAMING,
    CALL_OVER
};

enum { CALL_HEAD_MAX = 4 };

typedef void call_hear(struct call *c, const struct effect *e);

struct call {
    conn_id id;
    enum call_state state;
    struct rest *rest;
    struct http_request *http;
    const struct operation *operation;
    struct access_grant who;
    struct str bearer;         /* the access token itself; lives as long as the request */
    char address[ADDRESS_MAX]; /* of the client, see forwarded.h */
    int64_t began_us;          /* monotonic */

    int status;
    int64_t retry_s;          /* of a 429 or 503: see call_retry */
    const char *content_type; /* of a good answer; NULL = JSON */
    struct buf body;
    char allow[32];                            /* for the head of a 405 */
    struct http_field head[CALL_HEAD_MAX + 1]; /* more lines of the head, see call_head */
    size_t n_head;
    const char *noun; /* "server": what `target` of an operation is, for sentences */

    void (*resume)(struct call *c);
    int64_t object;        /* EFFECT_OPERATED: what was made or changed */
    int64_t asked_wall_ms; /* … when it was first asked for */
    struct str token;      /* … and the token that came of it, in the arguments' arena */

    call_hear *hear;      /* ASKING */
    conn_id first_number; /* … under these, too, core may answer it */
    size_t n_numbers;
    void *work; /* … what the handler knows of it, in the arguments' arena */

    struct agent_call *agent;     /* ASKING an agent, see call_await */
    struct list login;            /* … or the login service, see login.h */
    void (*late)(struct call *c); /* … what to do when it is due; NULL: give up */
    bool over;                    /* STREAMING: nothing follows what is in body */

    int64_t due_ms;      /* monotonic: STORING, PATIENT, ASKING */
    struct link in_list; /* of storing, patient, asking or resuming */
    int64_t ticket;      /* PATIENT: what it waits for */
    struct chain_link by_ticket;

    struct lookup *lookup;      /* ASKING the history, see lookup.h */
    struct feed_reader *reader; /* STREAMING */
    struct upload *upload;      /* of a deployment, see deploy.c; NULL = none */
    int file;                   /* STREAMING one; -1 = none */
    struct backup_job *backup;  /* … or a backup; NULL = none */

    struct arguments arguments; /* the last: large, and its arena is used again */
};

/* It was found out which operation is called: its arguments may come. */
void call_is(struct call *c, const struct operation *operation);

/* By name, which must be the row's. */
const struct argument *call_argument(const struct call *c, const char *name);

const struct core *call_core(const struct call *c);

/* A writer into the answer, which is empty then. */
struct json_writer call_writer(struct call *c);

/* Renders an object of that shape as the whole answer. */
void call_render(struct call *c, const struct shape *shape, const void *object);

/* Renders a refusal instead of an answer: a sentence, and the argument that is wrong or NULL. */
void call_refuse(struct call *c, int err, const char *argument, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The refusal in c->arguments. */
void call_refuse_argument(struct call *c);

/* Who asks for a place and is refused before core hears of it is refused all the same: the history
 * is told. Both of the above do that; it is for those who render a refusal themselves. */
void call_remember_refusal(const struct call *c, int err, const char *argument);

/* In the object of an error whose status is set: when it is worth asking again, in the body and,
 * the same number of seconds, in the head. Only of 429 and 503; ms 0 = soon. */
void call_retry(struct call *c, struct json_writer *w, int64_t ms);

/* A line for the head of the answer; the value is copied. name is a constant. At most
 * CALL_HEAD_MAX. What is set first stays, so one of a handler stands for what the status would
 * bring. */
void call_head(struct call *c, const char *name, struct str value);

/* The ends of a handler. */
void call_answer(struct call *c);
void call_read(struct call *c);
void call_operate(struct call *c, struct operate *o, void (*resume)(struct call *c));
void call_wait(struct call *c, int64_t ticket, int64_t wait_ms, void (*resume)(struct call *c));

/* Steps an event. `hear` is called with each answer of core to it (EFFECT_PLACED, EFFECT_HOST_BEAT,
 * EFFECT_AGENT, EFFECT_SOUGHT), which is durable then; it may end the call with call_answer, and
 * must not step anything. wait_ms from now on the call is given up. May be called again while
 * ASKING. The event's conn is the call's id unless it is one of call_numbers. */
void call_step(struct call *c, struct event *e, int64_t wait_ms, call_hear *hear);

/* Waits for somebody else. For an agent: whoever asked it has put the request into c->agent, which
 * is forgotten with the call, and clears that when it is done. For the login service: what it was
 * asked is in c->login. `late` NULL: the call is given up then. It may go on with call_step. */
void call_await(struct call *c, int64_t wait_ms, void (*late)(struct call *c));

/* n numbers in a row that are this call's, for events that are answered one by one. Once per call.
 */
conn_id call_numbers(struct call *c, size_t n);

/* With JSON that stays as it is until rest_done. */
void call_answer_shared(struct call *c, struct str body);

/* With another type than JSON, or as a stream that pull feeds. */
void call_answer_as(struct call *c, const char *content_type);
void call_stream(struct call *c, const char *content_type, http_pull *pull);

/* Arguments that name something of core's: a fleet by name or number, regions by their names. 0 and
 * "no condition" (0, -1, all) when they are not given; ERR_BAD_ARGUMENT, as arguments_refuse, when
 * there is no such thing. */
int call_fleet(struct call *c, const char *argument, int64_t *ret);
int call_region(struct call *c, const char *argument, int *ret);
int call_regions(struct call *c, const char *argument, uint64_t *ret);

/* A region by its name, in any case; -1 when there is none. */
int call_find_region(const struct core *core, struct str name);

/* ── for rest.c ────────────────────────────────────────────────────────────────────────────── */

/* Registered under a number of its own, so that core can answer it. */
struct call *call_new(struct rest *r, struct http_request *http);

/* Its HTTP request is over. */
void call_free(struct call *c);

/* Those that wait to be used again, when no other is left. */
void calls_done(struct rest *r);

/* What core answered. */
void call_was_read(struct call *c, int err);
void call_was_operated(struct call *c, const struct effect *e);

void call_was_answered(struct call *c, const struct effect *e);

/* It has waited long enough for its ticket, or its ticket is over. */
void call_wake(struct call *c);

/* The store has not answered in time. */
void call_give_up(struct call *c);

/* … nor has core, or an agent. */
void call_is_late(struct call *c);

/* ── the handlers, by file ─────────────────────────────────────────────────────────────────── */

/* health.c */
void handle_health(struct call *c);
void handle_ready(struct call *c);
void handle_metrics(struct call *c);
void handle_openapi(struct call *c);
void handle_status(struct call *c);

/* cluster.c */
void handle_cluster(struct call *c);
void handle_leader(struct call *c);
void handle_step_down(struct call *c);

/* insight.c */
void handle_trends(struct call *c);
void handle_checkup(struct call *c);

/* browse.c */
void handle_list_regions(struct call *c);
void handle_get_region(struct call *c);
void handle_list_fleets(struct call *c);
void handle_get_fleet(struct call *c);
void handle_list_servers(struct call *c);
void handle_get_server(struct call *c);
void handle_list_sessions(struct call *c);
void handle_get_session(struct call *c);
void handle_list_tickets(struct call *c);
void handle_get_ticket(struct call *c);
void handle_why(struct call *c);
void handle_list_tokens(struct call *c);
void handle_get_token(struct call *c);
void handle_list_audit(struct call *c);
void handle_me(struct call *c);

/* change.c */
void handle_drain(struct call *c);
void handle_undrain(struct call *c);
void handle_end_session(struct call *c);
void handle_enrol(struct call *c);
void handle_revoke(struct call *c);
void handle_rotate(struct call *c);
void handle_issue(struct call *c);

/* host.c */
void handle_agent_heartbeat(struct call *c);
void handle_agent_events(struct call *c);

/* deploy.c */
void handle_deploy(struct call *c);
void handle_get_archive(struct call *c);
void deploy_drop(struct upload *u);    /* the client is gone; NULL is fine */
void deploy_sweep(const char *folder); /* removes what a crash has left; NULL is fine */

/* backup.c */
void handle_backup(struct call *c);

/* browse_room.c */
void handle_list_hosts(struct call *c);
void handle_get_host(struct call *c);
void handle_list_rooms(struct call *c);
void handle_get_room(struct call *c);
void handle_list_seats(struct call *c);
void handle_list_versions(struct call *c);
void handle_list_deployments(struct call *c);
void handle_get_deployment(struct call *c);
void handle_list_bans(struct call *c);

/* change_room.c */
void handle_enable_host(struct call *c);
void handle_disable_host(struct call *c);
void handle_kick(struct call *c);
void handle_enable_version(struct call *c);
void handle_disable_version(struct call *c);
void handle_switch(struct call *c);
void handle_terminate(struct call *c);

/* allocate.c */
void handle_allocate(struct call *c);
void handle_list_allocations(struct call *c);
void handle_get_allocation(struct call *c);
void handle_why_allocation(struct call *c);
void handle_cancel_allocation(struct call *c);

/* lobbies.c */
void handle_create_lobby(struct call *c);
void handle_list_lobbies(struct call *c);
void handle_get_lobby(struct call *c);
void handle_abort_lobby(struct call *c);

/* browse_queue.c */
void handle_list_queues(struct call *c);
void handle_dequeue(struct call *c);
void handle_get_party(struct call *c);
void handle_list_routes(struct call *c);

/* pubsub_push.c */
void handle_pubsub_push(struct call *c);

/* output.c */
#define OUTPUT_CONTENT_TYPE "text/plain; charset=utf-8"
void handle_logs(struct call *c);
void handle_stdin(struct call *c);

/* events.c */
void handle_events(struct call *c);
