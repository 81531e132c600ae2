/* Looking: lists page by page, and single objects. */
#include "api/call.h"
#include "api/resource.h"
#include "api/why.h"
#include "base/err.h"
#include "base/suggest.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { EXAMINED_MAX = 10 * 1000 }; /* objects looked at for one page */

/* ── names in arguments ────────────────────────────────────────────────────────────────────── */

/* A fleet by its name, or else by its number; 0 when there is none. */
static int64_t find_fleet(const struct core *core, struct str text)
{
    struct view_fleet fleet;
    int64_t id = 0;
    while ((id = core_next(core, ROW_fleet, id))) {
        if (view_fleet(core, id, &fleet) && str_eq(text, str_of(fleet.name)))
            return id;
    }
    char *end = NULL; /* arguments end with a NUL */
    id = strtoll(text.at, &end, 10);
    return *end == '\0' && id > 0 && view_fleet(core, id, &fleet) ? id : 0;
}

int call_find_region(const struct core *core, struct str name)
{
    const struct core_config *config = core_config(core);
    for (int code = 0; code < REGION_CODES; code++) {
        struct str own = str_of(config->regions[code].name);
        if (own.len > 0 && own.len == name.len && strncasecmp(own.at, name.at, own.len) == 0)
            return code;
    }
    return -1;
}

static int refuse_fleet(struct call *c, const char *argument, struct str text)
{
    const struct core *core = call_core(c);
    char shown[ARGUMENTS_SHOWN_MAX + 16];
    struct view_fleet fleet;
    struct suggestion meant = suggest_for(text.at);
    int64_t id = 0;
    while ((id = core_next(core, ROW_fleet, id))) {
        if (view_fleet(core, id, &fleet))
            suggest_offer(&meant, fleet.name);
    }
    arguments_show(shown, text);
    if (meant.best)
        return arguments_refuse(&c->arguments, argument, "There is no fleet %s. Did you mean '%s'?",
                                shown, meant.best);
    return arguments_refuse(&c->arguments, argument, "There is no fleet %s.", shown);
}

static int refuse_region(struct call *c, const char *argument, struct str text)
{
    const struct core_config *config = core_config(call_core(c));
    char shown[ARGUMENTS_SHOWN_MAX + 16];
    struct suggestion meant = suggest_for(text.at);
    for (int code = 0; code < REGION_CODES; code++) {
        if (config->regions[code].name[0])
            suggest_offer(&meant, config->regions[code].name);
    }
    arguments_show(shown, text);
    if (meant.best)
        return arguments_refuse(&c->arguments, argument,
                                "There is no region %s. Did you mean '%s'?", shown, meant.best);
    return arguments_refuse(&c->arguments, argument, "There is no region %s.", shown);
}

int call_fleet(struct call *c, const char *argument, int64_t *ret)
{
    const struct argument *v = call_argument(c, argument);
    *ret = v->given ? find_fleet(call_core(c), v->text) : 0;
    return v->given && *ret == 0 ? refuse_fleet(c, argument, v->text) : 0;
}

int call_region(struct call *c, const char *argument, int *ret)
{
    const struct argument *v = call_argument(c, argument);
    *ret = v->given ? call_find_region(call_core(c), v->text) : -1;
    return v->given && *ret < 0 ? refuse_region(c, argument, v->text) : 0;
}

int call_regions(struct call *c, const char *argument, uint64_t *ret)
{
    const struct core *core = call_core(c);
    const struct argument *v = call_argument(c, argument);
    *ret = 0;
    for (int code = 0; code < REGION_CODES && !v->given; code++) {
        if (core_config(core)->regions[code].name[0])
            *ret |= 1ull << code;
    }
    for (size_t i = 0; i < v->n_items; i++) {
        int code = call_find_region(core, v->items[i]);
        if (code < 0)
            return refuse_region(c, argument, v->items[i]);
        *ret |= 1ull << code;
    }
    return 0;
}

/* ── lists ─────────────────────────────────────────────────────────────────────────────────── */

/* What a list shows: 0, "" and -1 are no condition. */
struct filter {
    int64_t fleet;
    int region;
    int64_t server;
    struct str state;
    struct str chat_server;
    bool has_lobby;
    int64_t lobby;
};

/* Writes the object when it fits; false when it does not. */
typedef bool list_item(const struct core *core, int64_t id, const struct filter *f,
                       struct json_writer *w);

typedef int64_t list_step(const struct core *core, enum row_kind kind, int64_t from);

/* A page may be short when few of many fit: the cursor leads on all the same. */
static void list(struct call *c, enum row_kind kind, list_step *step, list_item *item,
                 const struct filter *filter)
{
    const struct core *core = call_core(c);
    int64_t left = call_argument(c, "limit")->number;
    int64_t last = call_argument(c, "cursor")->number;
    int64_t next = step(core, kind, last);
    struct json_writer w = call_writer(c);
    json_open_object(&w);
    json_key(&w, "items");
    json_open_array(&w);
    for (int seen = 0; next != 0 && left > 0 && seen < EXAMINED_MAX; seen++) {
        last = next;
        left -= item(core, last, filter, &w);
        next = step(core, kind, last);
    }
    json_close_array(&w);
    json_key_id(&w, "next", next != 0 ? last : 0);
    json_close_object(&w);
    call_read(c);
}

/* Oldest first, unless the newest were asked for. */
static list_step *order_of(const struct call *c)
{
    return str_eq(call_argument(c, "order")->text, STR("newest")) ? core_previous : core_next;
}

static bool fits_word(struct str wanted, const char *word)
{
    return wanted.len == 0 || str_eq(wanted, str_of(word));
}

static void refuse_missing(struct call *c, const char *noun, int64_t id)
{
    call_refuse(c, ERR_NOT_FOUND, "id", "There is no %s %" PRId64 ".", noun, id);
    call_read(c);
}

/* A mistake in an argument is answered like anything else that was seen in core. */
static void refuse_argument(struct call *c)
{
    call_refuse_argument(c);
    call_read(c);
}

/* ── regions and fleets ────────────────────────────────────────────────────────────────────── */

void handle_list_regions(struct call *c)
{
    const struct core *core = call_core(c);
    struct view_region region;
    struct json_writer w = call_writer(c);
    json_open_object(&w);
    json_key(&w, "items");
    json_open_array(&w);
    for (int code = 0; code < REGION_CODES; code++) {
        if (view_region(core, (int8_t)code, &region))
            shape_write(&w, &region_shape, &region, core_config(core));
    }
    json_close_array(&w);
    json_key_id(&w, "next", 0);
    json_close_object(&w);
    call_read(c);
}

void handle_get_region(struct call *c)
{
    struct view_region region;
    struct str name = call_argument(c, "name")->text;
    int code = call_find_region(call_core(c), name);
    if (code >= 0 && view_region(call_core(c), (int8_t)code, &region)) {
        call_render(c, &region_shape, &region);
    } else {
        (void)refuse_region(c, "name", name);
        call_refuse(c, ERR_NOT_FOUND, "name", "%s", c->arguments.why);
    }
    call_read(c);
}

static bool fleet_item(const struct core *core, int64_t id, const struct filter *f,
                       struct json_writer *w)
{
    struct view_fleet v;
    (void)f;
    if (!view_fleet(core, id, &v))
        return false;
    shape_write(w, &fleet_shape, &v, core_config(core));
    return true;
}

void handle_list_fleets(struct call *c)
{
    list(c, ROW_fleet, core_next, fleet_item, NULL);
}

void handle_get_fleet(struct call *c)
{
    struct view_fleet fleet;
    int64_t id = 0;
    if (call_fleet(c, "fleet", &id) == 0 && view_fleet(call_core(c), id, &fleet))
        call_render(c, &fleet_shape, &fleet);
    else
        call_refuse(c, ERR_NOT_FOUND, "fleet", "%s", c->arguments.why);
    call_read(c);
}

/* ── servers ───────────────────────────────────────────────────────────────────────────────── */

static bool server_item(const struct core *core, int64_t id, const struct filter *f,
                        struct json_writer *w)
{
    struct view_server v;
    if (!view_server(core, id, &v) || (f->fleet && v.fleet_id != f->fleet) ||
        (f->region >= 0 && v.region != f->region) ||
        !fits_word(f->state, server_status_name(v.status)))
        return false;
    shape_write(w, &server_shape, &v, core_config(core));
    return true;
}

void handle_list_servers(struct call *c)
{
    struct filter f = {.state = call_argument(c, "status")->text};
    if (call_fleet(c, "fleet", &f.fleet) != 0 || call_region(c, "region", &f.region) != 0)
        refuse_argument(c);
    else
        list(c, ROW_server, order_of(c), server_item, &f);
}

void handle_get_server(struct call *c)
{
    struct view_server v;
    int64_t id = call_argument(c, "id")->number;
    if (!view_server(call_core(c), id, &v)) {
        refuse_missing(c, "server", id);
        return;
    }
    call_render(c, &server_shape, &v);
    call_read(c);
}

/* ── sessions ──────────────────────────────────────────────────────────────────────────────── */

static bool session_item(const struct core *core, int64_t id, const struct filter *f,
                         struct json_writer *w)
{
    struct view_session v;
    if (!view_session(core, id, &v) || (f->fleet && v.fleet_id != f->fleet) ||
        (f->server && v.server != f->server) || (f->has_lobby && v.lobby != f->lobby) ||
        !fits_word(f->state, v.state))
        return false;
    shape_write(w, &session_shape, &v, core_config(core));
    return true;
}

void handle_list_sessions(struct call *c)
{
    const struct argument *lobby = call_argument(c, "lobby");
    struct filter f = {
        .server = call_argument(c, "server")->number,
        .state = call_argument(c, "state")->text,
        .has_lobby = lobby->given,
        .lobby = lobby->number,
    };
    if (call_fleet(c, "fleet", &f.fleet) != 0)
        refuse_argument(c);
    else
        list(c, ROW_session, order_of(c), session_item, &f);
}

void handle_get_session(struct call *c)
{
    struct view_session v;
    int64_t id = call_argument(c, "id")->number;
    if (!view_session(call_core(c), id, &v)) {
        refuse_missing(c, "session", id);
        return;
    }
    call_render(c, &session_shape, &v);
    call_read(c);
}

/* ── tickets ───────────────────────────────────────────────────────────────────────────────── */

static bool ticket_item(const struct core *core, int64_t id, const struct filter *f,
                        struct json_writer *w)
{
    struct view_ticket v;
    if (!view_ticket(core, id, &v) || (f->fleet && v.fleet_id != f->fleet) ||
        (f->has_lobby && v.lobby != f->lobby) || !fits_word(f->state, v.state) ||
        !fits_word(f->chat_server, v.chat_server))
        return false;
    shape_write(w, &ticket_shape, &v, core_config(core));
    return true;
}

void handle_list_tickets(struct call *c)
{
    const struct argument *lobby = call_argument(c, "lobby");
    struct filter f = {
        .state = call_argument(c, "state")->text,
        .chat_server = call_argument(c, "chat_server")->text,
        .has_lobby = lobby->given,
        .lobby = lobby->number,
    };
    if (call_fleet(c, "fleet", &f.fleet) != 0)
        refuse_argument(c);
    else
        list(c, ROW_ticket, order_of(c), ticket_item, &f);
}

static void show_ticket(struct call *c)
{
    struct view_ticket v;
    int64_t id = call_argument(c, "id")->number;
    if (!view_ticket(call_core(c), id, &v)) {
        refuse_missing(c, "ticket", id);
        return;
    }
    call_render(c, &ticket_shape, &v);
    call_read(c);
}

void handle_get_ticket(struct call *c)
{
    struct view_ticket v;
    int64_t id = call_argument(c, "id")->number;
    int64_t wait_s = call_argument(c, "wait")->number;
    if (wait_s > 0 && view_ticket(call_core(c), id, &v) && v.open)
        call_wait(c, id, wait_s * 1000, show_ticket);
    else
        show_ticket(c);
}

void handle_why(struct call *c)
{
    struct why_answer answer;
    struct view_server server;
    struct buf sentence = {0};
    const struct core *core = call_core(c);
    int64_t id = call_argument(c, "id")->number;
    if (!view_ticket(core, id, &answer.ticket)) {
        refuse_missing(c, "ticket", id);
        return;
    }
    bool there = view_server(core, answer.ticket.server, &server);
    why_sentence(&answer.ticket, there ? &server : NULL, core_config(core), &sentence);
    buf_append(&sentence, "", 1);
    answer.sentence = (const char *)sentence.data;
    call_render(c, &why_shape, &answer);
    buf_done(&sentence);
    call_read(c);
}

/* ── enrolment tokens and the audit ────────────────────────────────────────────────────────── */

static bool token_item(const struct core *core, int64_t id, const struct filter *f,
                       struct json_writer *w)
{
    struct token_answer v = {0};
    (void)f;
    if (!view_token(core, id, &v.view))
        return false;
    shape_write(w, &token_shape, &v, core_config(core));
    return true;
}

void handle_list_tokens(struct call *c)
{
    list(c, ROW_enrolment, core_next, token_item, NULL);
}

void handle_get_token(struct call *c)
{
    struct token_answer v = {0};
    int64_t id = call_argument(c, "id")->number;
    if (!view_token(call_core(c), id, &v.view)) {
        refuse_missing(c, "token", id);
        return;
    }
    call_render(c, &token_shape, &v);
    call_read(c);
}

static bool audit_item(const struct core *core, int64_t id, const struct filter *f,
                       struct json_writer *w)
{
    struct view_audit v;
    (void)f;
    if (!view_audit(core, id, &v))
        return false;
    shape_write(w, &audit_shape, &v, core_config(core));
    return true;
}

void handle_list_audit(struct call *c)
{
    list(c, ROW_audit, core_previous, audit_item, NULL);
}
