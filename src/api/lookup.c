#include "api/lookup.h"

#include "api/call.h"
#include "api/history.h"
#include "api/moment.h"
#include "api/past.h"
#include "api/shape_rows.h"
#include "api/tally.h"
#include "base/err.h"
#include "net/loop.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    SETTLE_MS = 500,                   /* the thread's time to write what was said before */
    AWAIT_MS = 30 * 1000,              /* with those before it in line */
    ITEMS_BYTES_MAX = 2 * 1024 * 1024, /* of one answer */
    SAME_MS_MAX = 1000,                /* items of one millisecond above the limit */
};
static const int64_t for_ever_ms = INT64_C(253402300799999);

struct lookup {
    uv_work_t work;
    struct lookups *all;
    struct link in_waiting;
    struct call *call; /* NULL: nobody waits for it any more */
    bool reading;
    atomic_bool stop;

    /* what is asked */
    struct recorder *recorder;
    char *folder;
    void (*answer)(struct lookup *l);
    int64_t from_ms;
    int64_t to_ms;
    int64_t place;
    int64_t limit;
    char account[65];
    struct buf needle;

    /* what was found */
    struct json_writer w;
    struct buf items;
    int64_t n;
    int64_t last_ms;
    struct tally tally;
    struct recorder_reach reach;
    struct buf body;
};

static void lookup_free(struct lookup *l)
{
    tally_done(&l->tally);
    buf_done(&l->needle);
    buf_done(&l->items);
    buf_done(&l->body);
    free(l->folder);
    free(l);
}

/* ── on another thread ─────────────────────────────────────────────────────────────────────── */

static bool is_full(const struct lookup *l)
{
    return l->n >= l->limit || l->items.len >= ITEMS_BYTES_MAX;
}

/* A journey ends between two times, so that one can ask for what was before it by time. Where too
 * many have the same time only its place tells where the next one begins. */
static bool is_journey_full(const struct lookup *l, int64_t at_ms)
{
    return is_full(l) && (at_ms != l->last_ms || l->n >= l->limit + SAME_MS_MAX);
}

static void add_item(struct lookup *l, const struct shape *shape, const struct past_line *line)
{
    shape_write(&l->w, shape, line, NULL);
    l->last_ms = line->at_ms;
    l->n++;
}

static bool journey_line(void *user, struct str text)
{
    struct lookup *l = user;
    struct past_line line;
    bool room = true;
    if (!past_read(text, &line))
        return true;
    if (line.step[0] && past_concerns(&line, str_of(l->account))) {
        room = !is_journey_full(l, line.at_ms);
        past_say_step(&line);
        if (room)
            add_item(l, &journey_entry_shape, &line);
    }
    past_done(&line);
    return room;
}

static bool change_line(void *user, struct str text)
{
    struct lookup *l = user;
    struct past_line line;
    bool room = true;
    if (!past_read(text, &line))
        return true;
    if (line.change[0]) {
        room = !is_full(l);
        past_say_change(&line);
        if (room)
            add_item(l, &change_shape, &line);
    }
    past_done(&line);
    return room;
}

static bool refusal_line(void *user, struct str text)
{
    struct lookup *l = user;
    struct past_line line;
    if (!past_read(text, &line))
        return true;
    if (strcmp(line.step, "refused") == 0)
        tally_add(&l->tally, &line);
    past_done(&line);
    return true;
}

static void search(struct lookup *l, bool (*line)(void *user, struct str text))
{
    struct recorder_query q = {
        .from_ms = l->from_ms,
        .to_ms = l->to_ms,
        .place = l->place,
        .needle = {(const char *)l->needle.data, l->needle.len},
        .patience_ms = LOOKUP_PATIENCE_MS,
        .stop = &l->stop,
        .line = line,
        .user = l,
    };
    recorder_settle(l->recorder, SETTLE_MS);
    recorder_search(l->folder, &q, &l->reach);
}

static void write_items(struct json_writer *w, const void *object, const struct core_config *config)
{
    (void)config;
    const struct lookup *l = object;
    json_raw(w, (struct str){(const char *)l->items.data, l->items.len});
}

static void write_account(struct json_writer *w, const void *object,
                          const struct core_config *config)
{
    (void)config;
    json_text(w, str_of(((const struct lookup *)object)->account));
}

static void write_reasons(struct json_writer *w, const void *object,
                          const struct core_config *config)
{
    (void)config;
    tally_write_reasons(w, &((const struct lookup *)object)->tally);
}

static void write_repeated(struct json_writer *w, const void *object,
                           const struct core_config *config)
{
    (void)config;
    tally_write_repeated(w, &((const struct lookup *)object)->tally);
}

#define REACH_ROWS                                                                                 \
    ROW_OR_NULL(TIME, "complete_since", struct lookup, reach.since_ms,                             \
                "what was kept from then on is in the answer; null: nothing is kept"),             \
        ROW(BOOL, "more", struct lookup, reach.cut,                                                \
            "there may be more in the asked time, before complete_since")

const struct shape journey_shape = {
    .name = "Journey",
    .help = "What happened to a player, newest first.",
    .rows =
        (const struct shape_row[]){
            ROW_WRITTEN(TEXT, "account", write_account, NULL),
            ROW_ITEMS("entries", journey_entry_shape, write_items, NULL),
            REACH_ROWS,
            ROW_OR_NULL(ID, "next", struct lookup, reach.place,
                        "the cursor of what was before; null at the end"),
            {0},
        },
};

const struct shape refusals_shape = {
    .name = "Refusals",
    .help = "Who was refused, and why.",
    .rows =
        (const struct shape_row[]){
            ROW(TIME, "since", struct lookup, from_ms, NULL),
            ROW(INT64, "total", struct lookup, tally.total, NULL),
            ROW_ITEMS("by_reason", refused_reason_shape, write_reasons, "the commonest first"),
            ROW_ITEMS("repeated", refused_repeated_shape, write_repeated,
                      "at most 50, who was refused most often first"),
            REACH_ROWS,
            {0},
        },
};

static void find_journey(struct lookup *l)
{
    struct json_writer w = {.out = &l->body};
    search(l, journey_line);
    json_close_array(&l->w);
    shape_write(&w, &journey_shape, l, NULL);
}

static void find_refusals(struct lookup *l)
{
    struct json_writer w = {.out = &l->body};
    search(l, refusal_line);
    tally_finish(&l->tally);
    shape_write(&w, &refusals_shape, l, NULL);
}

/* As every list; its cursor is a place in the files. */
static void find_changes(struct lookup *l)
{
    struct json_writer w = {.out = &l->body};
    search(l, change_line);
    json_close_array(&l->w);
    json_open_object(&w);
    json_key(&w, "items");
    json_raw(&w, (struct str){(const char *)l->items.data, l->items.len});
    json_key_id(&w, "next", l->reach.place);
    json_close_object(&w);
}

static void read_files(uv_work_t *work)
{
    struct lookup *l = work->data;
    l->w = (struct json_writer){.out = &l->items};
    json_open_array(&l->w);
    l->answer(l);
}

/* ── on the loop ───────────────────────────────────────────────────────────────────────────── */

static void begin_next(struct lookups *all);

static void were_read(uv_work_t *work, int status)
{
    struct lookup *l = work->data;
    struct lookups *all = l->all;
    struct call *c = l->call;
    (void)status;
    all->reading--;
    if (c) {
        struct json_writer w = call_writer(c);
        json_raw(&w, (struct str){(const char *)l->body.data, l->body.len});
        c->lookup = NULL;
        call_answer(c);
    }
    lookup_free(l);
    begin_next(all);
}

static void begin_next(struct lookups *all)
{
    while (all->reading < LOOKUPS_AT_ONCE && !list_empty(&all->waiting)) {
        struct lookup *l = container_of(list_first(&all->waiting), struct lookup, in_waiting);
        list_remove(&l->in_waiting);
        all->n_waiting--;
        all->reading++;
        l->reading = true;
        (void)uv_queue_work(&l->call->rest->doors->loop->uv, &l->work, read_files, were_read);
    }
}

void lookup_drop(struct lookup *l)
{
    if (!l)
        return;
    l->call = NULL;
    if (l->reading) {
        atomic_store(&l->stop, true);
        return;
    }
    list_remove(&l->in_waiting);
    l->all->n_waiting--;
    lookup_free(l);
}

/* NULL when it was refused. */
static struct lookup *lookup_new(struct call *c, void (*answer)(struct lookup *l))
{
    struct lookups *all = &c->rest->lookups;
    if (!all->history) {
        call_refuse(c, ERR_HISTORY_OFF, NULL,
                    "No history is kept here: history.max_mb or history.days is 0.");
        call_answer(c);
        return NULL;
    }
    if (all->n_waiting >= LOOKUPS_WAITING) {
        call_refuse(c, ERR_BUSY, NULL, "Too many look into the history already.");
        call_answer(c);
        return NULL;
    }
    struct lookup *l = xcalloc(1, sizeof(*l));
    l->work.data = l;
    l->all = all;
    l->call = c;
    l->answer = answer;
    l->recorder = history_recorder(all->history);
    l->folder = xstrdup(history_folder(all->history));
    l->to_ms = for_ever_ms;
    return l;
}

static void lookup_begin(struct lookup *l)
{
    struct call *c = l->call;
    history_turn(l->all->history); /* what was said a moment ago is part of it */
    c->lookup = l;
    list_append(&l->all->waiting, &l->in_waiting);
    l->all->n_waiting++;
    call_await(c, AWAIT_MS, NULL);
    begin_next(l->all);
}

/* A time that may be given; false: it was refused. */
static bool take_moment(struct call *c, const char *name, int64_t *ret_ms)
{
    char shown[ARGUMENTS_SHOWN_MAX + 16];
    const struct argument *v = call_argument(c, name);
    if (!v->given || moment_parse(v->text, c->rest->doors->wall_ms, ret_ms))
        return true;
    call_refuse(c, ERR_BAD_ARGUMENT, name, "%s is " MOMENT_FORM ", not %s.", name,
                arguments_show(shown, v->text));
    call_answer(c);
    return false;
}

void handle_journey(struct call *c)
{
    int64_t from_ms = 0;
    int64_t to_ms = for_ever_ms;
    if (!take_moment(c, "from", &from_ms) || !take_moment(c, "to", &to_ms))
        return;
    struct lookup *l = lookup_new(c, find_journey);
    if (!l)
        return;
    struct str account = call_argument(c, "account")->text;
    (void)str_copy(l->account, sizeof(l->account), account);
    json_text(&(struct json_writer){.out = &l->needle}, account); /* as it stands in a line */
    l->from_ms = from_ms;
    l->to_ms = to_ms;
    l->place = call_argument(c, "cursor")->number;
    l->limit = call_argument(c, "limit")->number;
    lookup_begin(l);
}

void handle_refusals(struct call *c)
{
    int64_t from_ms = c->rest->doors->wall_ms - 3600 * 1000;
    if (!take_moment(c, "since", &from_ms))
        return;
    struct lookup *l = lookup_new(c, find_refusals);
    if (!l)
        return;
    buf_append(&l->needle, "\"step\":\"refused\"", 16);
    l->from_ms = from_ms;
    lookup_begin(l);
}

void handle_changes(struct call *c)
{
    int64_t from_ms = c->rest->doors->wall_ms - 86400 * 1000;
    if (!take_moment(c, "since", &from_ms))
        return;
    struct lookup *l = lookup_new(c, find_changes);
    if (!l)
        return;
    buf_append(&l->needle, "\"change\":\"", 10);
    l->from_ms = from_ms;
    l->place = call_argument(c, "cursor")->number;
    l->limit = call_argument(c, "limit")->number;
    lookup_begin(l);
}
