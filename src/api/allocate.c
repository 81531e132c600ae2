/* Allocations over HTTP: the same envelope as on every bus. A player who asks for himself needs no
 * service in between; for others, a party or a better place in line one does.
 *
 *   POST ─EVENT_SEEK─▶ EFFECT_SOUGHT ─▶ 200 Success, 202 Queued, or the status of its error
 *                            └─ Queued, and ?wait= ─▶ call_wait ─▶ the result it has by then */
#include "api/browse.h"
#include "api/resource_allocation.h"
#include "api/seeking.h"
#include "api/why.h"
#include "base/err.h"

#include <string.h>

enum { WAIT_MAX_MS = (REST_WAIT_MAX_S + 20) * 1000 }; /* before the HTTP server gives up */

/* ── results ───────────────────────────────────────────────────────────────────────────────── */

/* The result, and beside it what every error of this API has. */
static void render_failure(struct call *c, int err, const struct envelope_result *r,
                           int64_t retry_ms)
{
    struct json_writer w = {.out = &c->body};
    c->body.len--; /* the brace at its end */
    buf_append(&c->body, ",\"error\":", strlen(",\"error\":"));
    json_open_object(&w);
    json_key_text(&w, "code", str_of(err_code(err)));
    json_key_text(&w, "message", r->error);
    call_retry(c, &w, retry_ms);
    json_close_object(&w);
    buf_append(&c->body, "}", 1);
}

static void render_result(struct call *c, int err, const struct envelope_result *r,
                          int64_t retry_ms)
{
    (void)call_writer(c); /* what was rendered before is gone */
    envelope_write(&c->body, r);
    c->status = r->status == ENVELOPE_QUEUED ? 202 : 200;
    if (r->status != ENVELOPE_FAILURE)
        return;
    c->status = err_status(err != 0 ? err : ERR_INTERNAL);
    render_failure(c, err != 0 ? err : ERR_INTERNAL, r, retry_ms);
}

/* A failure of a request that never became an allocation. */
static void refuse_as_result(struct call *c, struct str ticket_id, int err, const char *why)
{
    struct envelope_result r = {
        .ticket_id = ticket_id, .status = ENVELOPE_FAILURE, .error = str_of(why)};
    render_result(c, err, &r, 0);
    call_answer(c);
}

/* It was in line, and waited for long enough or is in it no more. */
static void show_result(struct call *c)
{
    struct core *core = pipeline_core(c->rest->doors->pipeline);
    struct view_allocation v;
    struct envelope_result r;
    if (view_allocation(core, c->object, &v) && view_result(core, c->object, &r) == 0)
        render_result(c, v.err, &r, 0);
    else
        call_refuse(c, ERR_NOT_FOUND, NULL, "The allocation was forgotten meanwhile.");
    call_read(c);
}

static void hear_sought(struct call *c, const struct effect *e)
{
    if (e->kind != EFFECT_SOUGHT)
        return;
    int64_t wait_ms = call_argument(c, "wait")->number * 1000;
    c->object = e->object;
    if (!e->result) {
        call_refuse(c, e->err, NULL, "%s.", err_sentence(e->err));
        call_answer(c);
    } else if (e->result->status == ENVELOPE_QUEUED && wait_ms > 0) {
        call_wait(c, e->object, wait_ms, show_result);
    } else {
        render_result(c, e->err, e->result, e->placed ? e->placed->retry_after_ms : 0);
        call_answer(c);
    }
}

/* ── asking ────────────────────────────────────────────────────────────────────────────────── */

static bool is_service(const struct call *c)
{
    return (c->who.scopes & ACCESS_ALLOCATE) != 0;
}

/* What a player may not say of himself; NULL = all of it is fine. */
static const char *find_presumption(const struct call *c, const struct envelope_request *r)
{
    if (is_service(c))
        return NULL;
    if (!str_eq(r->player_id, str_of(c->who.account)))
        return "You can ask for yourself only: playerId must be your account.";
    if (r->n_party_ids > 0 || r->move_party)
        return "You can ask for yourself only, not for a party.";
    return r->priority > 0 ? "You cannot give yourself priority." : NULL;
}

static void step_seek(struct call *c, const struct envelope_request *r)
{
    char why[SEEKING_WHY_MAX];
    const struct core_config *config = core_config(call_core(c));
    int64_t wait_ms = config->timeouts.place_ms + REST_STORE_MS;
    struct event e = {.kind = EVENT_SEEK};
    /* A service is no player: its address says nothing of him. */
    struct str from = is_service(c) ? STR("") : str_of(c->address);
    int err = seeking_fill(config, c->rest->geo, r, from, &e.seek, why);
    e.seek.bus = is_service(c) ? BUS_HTTP : BUS_OWN;
    if (err != 0)
        refuse_as_result(c, r->ticket_id, err, why);
    else
        call_step(c, &e, wait_ms < WAIT_MAX_MS ? wait_ms : WAIT_MAX_MS, hear_sought);
}

/* The one mistake that has a code of its own. */
static int error_of(const char *why)
{
    return strcmp(why, err_sentence(ERR_PLAYER_REQUIRED)) == 0 ? ERR_PLAYER_REQUIRED
                                                               : ERR_BAD_ARGUMENT;
}

void handle_allocate(struct call *c)
{
    char why[ENVELOPE_WHY_MAX];
    struct envelope_request r;
    enum envelope_verdict verdict = envelope_read(http_body(c->http), &r, why);
    const char *presumption = verdict == ENVELOPE_OURS ? find_presumption(c, &r) : NULL;
    if (verdict == ENVELOPE_WRONG) {
        refuse_as_result(c, r.ticket_id, error_of(why), why);
    } else if (verdict != ENVELOPE_OURS) {
        call_refuse(c, ERR_BAD_ARGUMENT, NULL, "The body is no request for an allocation: %s.",
                    verdict == ENVELOPE_FOREIGN ? "its type is another" : why);
        call_answer(c);
    } else if (presumption) {
        call_refuse(c, ERR_FORBIDDEN, NULL, "%s", presumption);
        call_answer(c);
    } else {
        step_seek(c, &r);
    }
    envelope_done(&r);
}

/* ── looking ───────────────────────────────────────────────────────────────────────────────── */

static bool allocation_item(const struct core *core, int64_t id, const struct wanted *wanted,
                            struct json_writer *w)
{
    struct view_allocation v;
    if (!view_allocation(core, id, &v) || (wanted->fleet && v.fleet_id != wanted->fleet) ||
        !browse_fits(wanted->state, v.state) || !browse_fits(wanted->account, v.player))
        return false;
    shape_write(w, &allocation_shape, &v, core_config(core));
    return true;
}

void handle_list_allocations(struct call *c)
{
    struct wanted wanted = {.state = call_argument(c, "state")->text,
                            .account = call_argument(c, "player")->text};
    if (call_fleet(c, "fleet", &wanted.fleet) != 0)
        browse_refuse_argument(c);
    else
        browse_list(c, ROW_allocation, browse_order(c), allocation_item, &wanted);
}

/* A player sees the names that he gave himself, then those that services gave for him. */
static bool find_own(struct call *c, struct str name, struct str player,
                     struct view_allocation *ret)
{
    struct str himself = str_of(c->who.account);
    int64_t id = view_allocation_named(call_core(c), himself, name);
    if (id == 0 && player.len == 0)
        id = view_allocation_named(call_core(c), STR(""), name);
    bool meant = player.len == 0 || str_eq(player, himself);
    return meant && id != 0 && view_allocation(call_core(c), id, ret) &&
           strcmp(ret->player, c->who.account) == 0;
}

/* The one that the path names; false, and the call ended, when there is none that the asker may
 * see. */
static bool find_named(struct call *c, struct view_allocation *ret)
{
    char shown[ARGUMENTS_SHOWN_MAX + 16];
    struct str name = call_argument(c, "ticketId")->text;
    struct str player = call_argument(c, "player")->text;
    int64_t id = view_allocation_named(call_core(c), player, name);
    bool all = (c->who.scopes & c->operation->scope) == c->operation->scope;
    bool found =
        all ? id != 0 && view_allocation(call_core(c), id, ret) : find_own(c, name, player, ret);
    if (found)
        return true;
    call_refuse(c, ERR_NOT_FOUND, "ticketId", "There is no allocation %s.",
                arguments_show(shown, name));
    call_read(c);
    return false;
}

static void show_allocation(struct call *c)
{
    struct core *core = pipeline_core(c->rest->doors->pipeline);
    struct allocation_answer answer = {.result = STR("")};
    struct envelope_result r;
    struct buf text = {0};
    if (!find_named(c, &answer.view))
        return;
    if (strcmp(answer.view.state, "open") != 0 && view_result(core, answer.view.id, &r) == 0) {
        envelope_write(&text, &r);
        answer.result = (struct str){(const char *)text.data, text.len};
    }
    call_render(c, &allocation_whole_shape, &answer);
    buf_done(&text);
    call_read(c);
}

void handle_get_allocation(struct call *c)
{
    struct view_allocation v;
    int64_t wait_s = call_argument(c, "wait")->number;
    if (!find_named(c, &v))
        return;
    if (wait_s > 0 && v.open)
        call_wait(c, v.id, wait_s * 1000, show_allocation);
    else
        show_allocation(c);
}

void handle_why_allocation(struct call *c)
{
    const struct core *core = call_core(c);
    struct allocation_why answer;
    struct view_room room;
    struct buf sentence = {0};
    if (!find_named(c, &answer.view))
        return;
    bool known = view_room(core, answer.view.room, &room);
    why_allocation_sentence(&answer.view, known ? &room : NULL, &sentence);
    buf_append(&sentence, "", 1);
    answer.sentence = (const char *)sentence.data;
    call_render(c, &allocation_why_shape, &answer);
    buf_done(&sentence);
    call_read(c);
}

/* ── giving up ─────────────────────────────────────────────────────────────────────────────── */

static void hear_unsought(struct call *c, const struct effect *e)
{
    if (e->kind != EFFECT_SOUGHT)
        return;
    if (e->result && (e->err == 0 || e->err == ERR_TICKET_CANCELLED)) {
        (void)call_writer(c);
        envelope_write(&c->body, e->result);
    } else {
        call_refuse(c, e->err, "ticketId", "%s.", err_sentence(e->err));
    }
    call_answer(c);
}

void handle_cancel_allocation(struct call *c)
{
    struct view_allocation v;
    struct event e = {.kind = EVENT_UNSEEK};
    if (!find_named(c, &v))
        return;
    e.unseek.name = call_argument(c, "ticketId")->text;
    e.unseek.owner = v.own ? str_of(v.player) : STR("");
    call_step(c, &e, REST_STORE_MS, hear_unsought);
}
