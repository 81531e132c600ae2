/* What becomes of a message:
 *
 *   received ─┬─ another type ───────────────────────────────────────────▶ acknowledged
 *             ├─ no JSON, no ticketId ───▶ buried (the bus acknowledges)
 *             ├─ wrong ──────────────────▶ Failure ──┐
 *             └─ ours ─▶ EVENT_SEEK … EFFECT_RESULT ─┴─▶ published ──────▶ acknowledged
 *
 * A request is under way from its message to the acknowledgement. Core may be silent for long (a
 * room is being started), or for ever (its commit failed, and with it what core knew of it); the
 * two look alike from here, so a request is stepped again from time to time. A repeat costs core a
 * look. */
#include "api/bus.h"

#include "api/seeking.h"
#include "base/chain.h"
#include "base/list.h"
#include "base/log.h"
#include "core/view.h"
#include "wire/envelope.h"

#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum {
    MESSAGES_MAX = 8, /* of one request; another is acknowledged, these stand for it */
    BACKLOG_MAX = 16 * 1024 * 1024,
    SHOWN_BYTES = 200, /* of a message that cannot be read, in the log */
};

/* A request under way. What else comes under its name is a request of its own: core refuses it, and
 * that is no word on this one. */
struct asked {
    struct bus *bus;
    struct chain_link by_name;
    struct link in_silent; /* core has said nothing yet; who waits longest is first */
    int64_t again_ms;      /* monotonic: when it is stepped again */
    int64_t allocation;    /* below 0: it never became one; 0: core has said nothing yet */
    uint64_t hash;
    uint8_t arguments[OPERATE_DIGEST];
    bus_message messages[MESSAGES_MAX];
    uint8_t n_messages;
    uint8_t name_len;
    char name[ENVELOPE_NAME_MAX];
    size_t body_len;
    char body[];
};

/* What core is still to be told. */
struct told {
    int64_t allocation;
    int8_t state;
    enum seek_bus bus;
};

struct buses {
    struct doors *doors;
    struct metrics *metrics;
    struct bus *all[BUSES_MAX];
    size_t n;
    struct map by_name;       /* hash of bus and name -> chain of struct asked */
    struct map by_allocation; /* key of bus and allocation -> struct asked that has its result */
    size_t n_asked;
    struct list silent;
    int64_t last_refused; /* counts down: allocations of requests that never became one */
    struct buf told;      /* of struct told */
    struct buf body;      /* scratch */
    bool held;
};

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

struct buses *buses_new(struct doors *doors, struct metrics *metrics)
{
    struct buses *all = xcalloc(1, sizeof(*all));
    all->doors = doors;
    all->metrics = metrics;
    list_init(&all->silent);
    return all;
}

void buses_add(struct buses *all, struct bus *b)
{
    assert(all->n < BUSES_MAX);
    all->all[all->n++] = b;
    b->buses = all;
    if (all->held)
        b->ops->hold(b, true);
    b->ops->start(b);
}

const struct bus *buses_at(const struct buses *all, size_t i)
{
    return i < all->n ? all->all[i] : NULL;
}

/* One allocation may be asked for through several. */
static uint64_t key_of(const struct bus *b, int64_t allocation)
{
    _Static_assert(BUSES_ALL < 16, "more buses than bits for them");
    return (uint64_t)allocation << 4 | (uint64_t)b->ops->kind;
}

static void forget_asked(struct buses *all, struct asked *a)
{
    chain_remove(&all->by_name, a->hash, &a->by_name);
    uint64_t key = key_of(a->bus, a->allocation);
    if (a->allocation != 0 && map_get(&all->by_allocation, key) == a)
        (void)map_remove(&all->by_allocation, key);
    list_remove(&a->in_silent);
    all->n_asked--;
    free(a);
}

void buses_free(struct buses *all)
{
    if (!all)
        return;
    struct chain_link *n;
    for (size_t at = 0; (n = map_next(&all->by_name, &at)); at = 0)
        forget_asked(all, container_of(n, struct asked, by_name)); /* it asks its bus which it is */
    for (size_t i = 0; i < all->n; i++)
        all->all[i]->ops->free(all->all[i]);
    map_done(&all->by_name);
    map_done(&all->by_allocation);
    buf_done(&all->told);
    buf_done(&all->body);
    free(all);
}

/* ── requests under way ────────────────────────────────────────────────────────────────────── */

static uint64_t hash_of(const struct bus *b, struct str name)
{
    return str_hash((uint64_t)b->ops->kind, name);
}

static struct asked *find_asked(const struct buses *all, const struct bus *b, struct str name,
                                const uint8_t arguments[OPERATE_DIGEST])
{
    struct chain_link *n = chain_first(&all->by_name, hash_of(b, name));
    for (; n; n = n->next) {
        struct asked *a = container_of(n, struct asked, by_name);
        if (a->bus == b && str_eq((struct str){a->name, a->name_len}, name) &&
            memcmp(a->arguments, arguments, OPERATE_DIGEST) == 0)
            return a;
    }
    return NULL;
}

static struct asked *add_asked(struct buses *all, struct bus *b, struct str name,
                               const uint8_t arguments[OPERATE_DIGEST], struct str body)
{
    struct asked *a = xmalloc(sizeof(*a) + body.len);
    *a = (struct asked){.bus = b, .hash = hash_of(b, name), .name_len = (uint8_t)name.len};
    memcpy(a->name, name.at, name.len);
    memcpy(a->arguments, arguments, OPERATE_DIGEST);
    memcpy(a->body, body.at, body.len);
    a->body_len = body.len;
    chain_add(&all->by_name, a->hash, &a->by_name);
    all->n_asked++;
    return a;
}

static void add_message(struct asked *a, bus_message m)
{
    if (a->n_messages < MESSAGES_MAX)
        a->messages[a->n_messages++] = m;
    else
        a->bus->ops->acknowledge(a->bus, m);
}

static void acknowledge_all(struct buses *all, struct asked *a)
{
    for (size_t i = 0; i < a->n_messages; i++)
        a->bus->ops->acknowledge(a->bus, a->messages[i]);
    forget_asked(all, a);
}

/* ── too much ──────────────────────────────────────────────────────────────────────────────── */

static void hold(struct buses *all, bool on)
{
    if (all->held == on)
        return;
    all->held = on;
    for (size_t i = 0; i < all->n; i++)
        all->all[i]->ops->hold(all->all[i], on);
}

static bool is_read_only(const struct buses *all)
{
    return pipeline_state(all->doors->pipeline) != PIPELINE_WRITABLE;
}

/* Between the two bounds it stays as it is. */
static void hold_or_go_on(struct buses *all)
{
    size_t backlog = pipeline_backlog(all->doors->pipeline);
    if (is_read_only(all) || all->doors->stopping || all->n_asked >= BUS_UNDER_WAY_MAX ||
        backlog > BACKLOG_MAX)
        hold(all, true);
    else if (all->n_asked <= BUS_UNDER_WAY_MAX / 2 && backlog <= BACKLOG_MAX / 2)
        hold(all, false);
}

/* ── results ───────────────────────────────────────────────────────────────────────────────── */

static void publish(struct buses *all, struct bus *b, const struct bus_result *draft,
                    const struct envelope_result *result)
{
    struct bus_result r = *draft;
    buf_clear(&all->body);
    envelope_write(&all->body, result);
    r.name = result->ticket_id;
    r.status = envelope_status_word(result->status);
    r.body = (struct str){(const char *)all->body.data, all->body.len};
    b->ops->publish(b, &r);
}

/* The sentence depends on the request alone, so a repeat gives the same bytes. */
static void refuse(struct buses *all, struct asked *a, const char *why)
{
    a->bus->wrong++;
    if (a->allocation == 0) {
        a->allocation = --all->last_refused;
        (void)map_put(&all->by_allocation, key_of(a->bus, a->allocation), a);
    }
    list_remove(&a->in_silent);
    publish(all, a->bus, &(struct bus_result){.allocation = a->allocation},
            &(struct envelope_result){.ticket_id = {a->name, a->name_len},
                                      .status = ENVELOPE_FAILURE,
                                      .error = str_of(why)});
}

static struct bus *bus_of(const struct buses *all, int8_t kind)
{
    for (size_t i = 0; i < all->n; i++) {
        if ((int8_t)all->all[i]->ops->kind == kind)
            return all->all[i];
    }
    return NULL;
}

static bool is_connected(const struct bus *b)
{
    struct bus_figures f = {0};
    b->ops->figures(b, &f);
    return f.connected;
}

/* The bus has the result now and will get rid of it, so core need not be asked again. Returns what
 * the bus shall call it by: a refusal is never an allocation's. */
static int64_t answered(struct buses *all, struct bus *b, const struct effect *e)
{
    struct asked *a = find_asked(all, b, e->result->ticket_id, e->arguments);
    if (!a)
        return e->object;
    if (a->allocation == 0) {
        a->allocation = e->object != 0 ? e->object : --all->last_refused;
        (void)map_put(&all->by_allocation, key_of(b, a->allocation), a);
    }
    list_remove(&a->in_silent);
    return e->object == 0 && a->allocation < 0 ? a->allocation : e->object;
}

static void release_result(struct buses *all, const struct effect *e)
{
    struct bus *b = bus_of(all, e->verb);
    if (!b || (e->on && !is_connected(b)))
        return; /* it stays owed, or nobody misses it */
    int64_t allocation = answered(all, b, e);
    publish(all, b,
            &(struct bus_result){.allocation = allocation, .state = e->event, .news = e->on},
            e->result);
}

void buses_release(struct buses *all, const struct effect *effects, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (effects[i].kind == EFFECT_RESULT)
            release_result(all, &effects[i]);
    }
}

void bus_published(struct bus *b, int64_t allocation, int8_t state)
{
    struct buses *all = b->buses;
    struct asked *a = map_get(&all->by_allocation, key_of(b, allocation));
    if (a)
        acknowledge_all(all, a);
    if (allocation > 0)
        buf_append(&all->told, &(struct told){allocation, state, b->ops->kind},
                   sizeof(struct told));
}

/* ── requests ──────────────────────────────────────────────────────────────────────────────── */

static int fill(const struct buses *all, const struct envelope_request *r, struct seek *ret,
                char why[SEEKING_WHY_MAX])
{
    const struct core_config *config = core_config(pipeline_core(all->doors->pipeline));
    return seeking_fill(config, NULL, r, STR(""), ret, why);
}

static void step(struct buses *all, struct asked *a, struct event *e)
{
    e->seek.bus = a->bus->ops->kind;
    if (a->allocation == 0) {
        list_remove(&a->in_silent);
        a->again_ms = all->doors->monotonic_ms + BUS_AGAIN_MS;
        list_append(&all->silent, &a->in_silent);
    }
    if (!is_read_only(all)) /* else core would refuse it, and nobody asks for that */
        doors_event(all->doors, e);
}

static void bury(struct bus *b, bus_message m, struct str body, const char *why)
{
    char text[LOG_QUOTE_MAX + 8];
    char quoted[LOG_QUOTE_MAX + 8];
    struct str start = {body.at, body.len < SHOWN_BYTES ? body.len : SHOWN_BYTES};
    b->unreadable++;
    log_line(LOG_WARN, "a message cannot be read", "bus=%s why=%s bytes=%zu begins=%s",
             b->ops->name, log_quote(quoted, str_of(why)), body.len, log_quote(text, start));
    b->ops->bury(b, m, body, why);
}

static struct asked *ask(struct buses *all, struct bus *b, bus_message m, struct str name,
                         const uint8_t arguments[OPERATE_DIGEST], struct str body)
{
    struct asked *a = find_asked(all, b, name, arguments);
    if (!a)
        a = add_asked(all, b, name, arguments, body);
    add_message(a, m);
    return a;
}

/* Whatever is refused with one sentence has one result. */
static void take_wrong(struct buses *all, struct bus *b, bus_message m, struct str body,
                       struct str name, const char *why)
{
    uint8_t arguments[OPERATE_DIGEST];
    (void)crypto_generichash(arguments, sizeof(arguments), (const uint8_t *)why, strlen(why), NULL,
                             0);
    refuse(all, ask(all, b, m, name, arguments, body), why);
}

static void take(struct buses *all, struct bus *b, bus_message m, struct str body,
                 const struct envelope_request *r)
{
    char why[SEEKING_WHY_MAX];
    struct event e = {.kind = EVENT_SEEK};
    if (fill(all, r, &e.seek, why) != 0)
        take_wrong(all, b, m, body, r->ticket_id, why);
    else
        step(all, ask(all, b, m, r->ticket_id, e.seek.arguments, body), &e);
}

void bus_received(struct bus *b, bus_message m, struct str body, bool again)
{
    (void)again;
    struct buses *all = b->buses;
    struct envelope_request r;
    char why[ENVELOPE_WHY_MAX];
    if (all->doors->stopping)
        return; /* nobody acknowledges it, so it comes again */
    if (body.len > BUS_BODY_MAX) {
        bury(b, m, body, "it is too long");
        return;
    }
    doors_read_clocks(all->doors);
    switch (envelope_read(body, &r, why)) {
    case ENVELOPE_OURS:
        take(all, b, m, body, &r);
        break;
    case ENVELOPE_WRONG:
        take_wrong(all, b, m, body, r.ticket_id, why);
        break;
    case ENVELOPE_FOREIGN:
        b->foreign++;
        b->ops->acknowledge(b, m);
        break;
    case ENVELOPE_UNREADABLE:
        bury(b, m, body, why);
        break;
    }
    envelope_done(&r);
    hold_or_go_on(all);
}

/* ── the end of a turn ─────────────────────────────────────────────────────────────────────── */

static void tell_core(struct buses *all)
{
    const struct told *told = (const struct told *)(const void *)all->told.data;
    for (size_t i = 0; i < all->told.len / sizeof(*told); i++)
        doors_event(all->doors, &(struct event){.kind = EVENT_PUBLISHED,
                                                .published = {.allocation = told[i].allocation,
                                                              .state = told[i].state,
                                                              .bus = told[i].bus}});
    buf_clear(&all->told);
}

/* A region that it names may be configured no more. */
static void ask_again(struct buses *all, struct asked *a)
{
    struct envelope_request r;
    struct event e = {.kind = EVENT_SEEK};
    char why[ENVELOPE_WHY_MAX];
    char wrong[SEEKING_WHY_MAX];
    if (envelope_read((struct str){a->body, a->body_len}, &r, why) != ENVELOPE_OURS)
        refuse(all, a, why);
    else if (fill(all, &r, &e.seek, wrong) != 0)
        refuse(all, a, wrong);
    else
        step(all, a, &e);
    envelope_done(&r);
}

void buses_before_flush(struct buses *all)
{
    if (all->n == 0)
        return;
    tell_core(all);
    LIST_EACH(&all->silent, a, struct asked, in_silent)
    {
        if (a->again_ms > all->doors->monotonic_ms || is_read_only(all))
            break;
        ask_again(all, a);
    }
    hold_or_go_on(all);
}

bool buses_are_ready(const struct buses *all, const char **ret_why)
{
    for (size_t i = 0; all && i < all->n; i++) {
        if (is_connected(all->all[i]))
            continue;
        *ret_why = all->all[i]->ops->kind == BUS_NATS ? "NATS is away" : "Google Pub/Sub is away";
        return false;
    }
    return true;
}
