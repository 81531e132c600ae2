#include "api/feed.h"

#include "api/feed_text.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    PULL_DECODES =
        4096,         /* changes one pull may look at, so that a filter cannot hold up the loop */
    NOTES_KEPT = 512, /* a reader that takes longer misses some, and is told how many */
    SLOTS_MIN = 64,
};

/* One durable batch, as the journal has it. */
struct held {
    struct instant then;
    size_t len;
    uint8_t bytes[];
};

struct feed {
    struct pipeline *pipeline;
    conn_id conn;

    /* The batches first .. last, one after the other without a gap: batch n is in slot n mod
     * n_slots, which is a power of two. */
    struct held **slots;
    int64_t n_slots;
    int64_t first;
    int64_t last;
    size_t bytes;
    size_t bytes_max;

    struct list readers;
    int64_t n_readers;
    feed_kinds wanted; /* by any reader */
    bool news;         /* something came that a sleeping reader may want */
    bool stopped;
    int64_t gaps;

    struct feed_note *notes; /* made when somebody listens; note n is at n mod NOTES_KEPT */
    int64_t n_notes;         /* ever */

    /* The load is looked at once for all, and shown when what was seen is durable. */
    struct buf seen;  /* what waits for that */
    struct buf load;  /* what is shown */
    int64_t n_loads;  /* ever shown */
    int64_t load_seq; /* the last durable batch when it was shown */
    bool reading;
    int64_t read_ms; /* monotonic: the last look */

    int64_t now_ms; /* monotonic, of the last tick or turn */
};

struct feed_reader {
    struct feed *feed;
    struct link link;
    struct feed_ask ask;
    struct feed_place at;
    size_t offset;          /* of `at` in its batch */
    struct feed_place told; /* what the last id said */
    int64_t next_note;
    int64_t next_load;
    bool placed;  /* he has had the place he asked for, or was told that it is gone */
    size_t share; /* bytes he may still be given until the next tick */
    bool greeted;
    bool asleep; /* the last pull found nothing */
    bool comment_due;
    int64_t woken_ms;
    int64_t spoke_ms;
};

/* ── batches ───────────────────────────────────────────────────────────────────────────────── */

struct feed *feed_new(struct pipeline *pipeline, conn_id conn, size_t bytes_max)
{
    struct feed *f = xcalloc(1, sizeof(*f));
    f->pipeline = pipeline;
    f->conn = conn;
    f->bytes_max = bytes_max;
    f->first = 1;
    list_init(&f->readers);
    return f;
}

static struct held **slot(const struct feed *f, int64_t seq)
{
    return &f->slots[seq & (f->n_slots - 1)];
}

static void drop_oldest(struct feed *f)
{
    struct held *oldest = *slot(f, f->first++);
    f->bytes -= sizeof(*oldest) + oldest->len;
    free(oldest);
}

void feed_free(struct feed *f)
{
    if (!f)
        return;
    assert(list_empty(&f->readers));
    while (f->first <= f->last)
        drop_oldest(f);
    free(f->slots);
    free(f->notes);
    buf_done(&f->seen);
    buf_done(&f->load);
    free(f);
}

static void grow(struct feed *f)
{
    struct feed larger = {.n_slots = f->n_slots ? 2 * f->n_slots : SLOTS_MIN};
    larger.slots = xcalloc((size_t)larger.n_slots, sizeof(struct held *));
    for (int64_t seq = f->first; seq <= f->last; seq++)
        *slot(&larger, seq) = *slot(f, seq);
    free(f->slots);
    f->slots = larger.slots;
    f->n_slots = larger.n_slots;
}

/* The newest always stays, however large it is. */
static void keep(struct feed *f, const struct store_batch *batch)
{
    size_t size = sizeof(struct held) + batch->len;
    while (f->first <= f->last &&
           (f->bytes + size > f->bytes_max || f->last - f->first + 1 >= STORE_HISTORY_ROWS))
        drop_oldest(f);
    if (f->last - f->first + 1 >= f->n_slots)
        grow(f);
    struct held *held = xmalloc(size);
    held->then = (struct instant){batch->core_ms, batch->wall_ms};
    held->len = batch->len;
    if (batch->len > 0)
        memcpy(held->bytes, batch->changes, batch->len);
    *slot(f, ++f->last) = held;
    f->bytes += size;
}

void feed_durable(struct feed *f, const struct store_batch *batch)
{
    assert(batch->seq == f->last + 1);
    keep(f, batch);
    f->news = true;
}

static int fill_one(void *user, const struct store_batch *batch)
{
    struct feed *f = user;
    if (f->first > f->last) {
        f->first = batch->seq;
        f->last = batch->seq - 1;
    }
    if (batch->seq != f->last + 1)
        return ERR_FORMAT;
    keep(f, batch);
    return 0;
}

int feed_fill(struct feed *f, struct store *store, size_t bytes_max)
{
    struct store_tip tip = {0};
    size_t most = bytes_max < f->bytes_max ? bytes_max : f->bytes_max;
    int err = store_tip(store, &tip);
    if (err == 0)
        err = store_history(store, (int64_t)most, fill_one, f);
    if (err == 0 && f->first <= f->last && f->last != tip.seq)
        err = ERR_FORMAT;
    if (err == 0 && f->first > f->last) { /* the newest batch alone is more than we hold */
        f->first = tip.seq + 1;
        f->last = tip.seq;
    }
    return err;
}

/* ── what comes and goes ───────────────────────────────────────────────────────────────────── */

static bool wants(const struct feed *f, int kind)
{
    return (f->wanted & FEED_BIT(kind)) != 0;
}

static void add_note(struct feed *f, const struct effect *e, int64_t wall_ms)
{
    if (!f->notes)
        f->notes = xcalloc(NOTES_KEPT, sizeof(*f->notes));
    feed_note_keep(&f->notes[f->n_notes++ % NOTES_KEPT], e, f->last, wall_ms);
    f->news = true;
}

/* What was seen is durable, or it was of changes that are lost. */
static void end_read(struct feed *f, int err)
{
    f->reading = false;
    if (err)
        return;
    struct buf before = f->load;
    f->load = f->seen;
    f->seen = before;
    f->load_seq = f->last;
    f->n_loads++;
    f->news = true;
}

void feed_release(struct feed *f, const struct effect *effects, size_t n, int64_t wall_ms)
{
    bool notes = wants(f, FEED_NOTE);
    if (!notes && !f->reading)
        return;
    for (size_t i = 0; i < n; i++) {
        const struct effect *e = &effects[i];
        if (e->kind == EFFECT_NOTE && notes)
            add_note(f, e, wall_ms);
        else if (e->kind == EFFECT_READ && e->conn == f->conn && f->reading)
            end_read(f, e->err);
    }
}

static void look(struct feed *f, int64_t monotonic_ms, int64_t wall_ms)
{
    if (!wants(f, FEED_LOAD) || f->reading || monotonic_ms - f->read_ms < FEED_LOAD_MS)
        return;
    struct event read = {.kind = EVENT_READ, .conn = f->conn};
    f->reading = true;
    f->read_ms = monotonic_ms;
    buf_clear(&f->seen);
    feed_text_load(&f->seen, pipeline_core(f->pipeline), wall_ms);
    pipeline_event(f->pipeline, &read, monotonic_ms, wall_ms);
}

static void wake(struct feed_reader *r)
{
    r->asleep = false;
    r->woken_ms = r->feed->now_ms;
    r->ask.wake(r->ask.user);
}

/* What is written for readers is written on the thread that places matches. However many read,
 * however fast, they have so much between two ticks, in equal shares; who wants more falls behind
 * and is told so. */
static size_t share_of(const struct feed *f)
{
    size_t share = FEED_TICK_BYTES / (size_t)(f->n_readers > 0 ? f->n_readers : 1);
    return share > FEED_SHARE_MIN ? share : FEED_SHARE_MIN;
}

void feed_tick(struct feed *f, int64_t monotonic_ms, int64_t wall_ms)
{
    f->now_ms = monotonic_ms;
    if (f->stopped)
        return;
    look(f, monotonic_ms, wall_ms);
    LIST_EACH(&f->readers, r, struct feed_reader, link)
    {
        f->news = f->news || r->share == 0;
        r->share = share_of(f);
        if (!r->asleep || monotonic_ms - r->spoke_ms < FEED_COMMENT_MS)
            continue;
        r->comment_due = true;
        wake(r);
    }
}

void feed_turn(struct feed *f, int64_t monotonic_ms)
{
    f->now_ms = monotonic_ms;
    if (!f->news || f->n_readers == 0)
        return;
    bool all = true;
    LIST_EACH(&f->readers, r, struct feed_reader, link)
    {
        if (r->asleep && monotonic_ms - r->woken_ms >= FEED_WAKE_MS)
            wake(r);
        else if (r->asleep)
            all = false;
    }
    f->news = !all;
}

void feed_stop(struct feed *f)
{
    f->stopped = true;
    LIST_EACH(&f->readers, r, struct feed_reader, link)
    {
        if (r->asleep)
            wake(r);
    }
}

/* ── readers ───────────────────────────────────────────────────────────────────────────────── */

int feed_open(struct feed *f, const struct feed_ask *ask, struct feed_reader **ret)
{
    struct feed_place at = {f->last + 1, 0};
    if (ask->last_id && ask->last_id[0] && !feed_place_parse(ask->last_id, &at))
        return ERR_BAD_ARGUMENT;
    if (f->n_readers >= FEED_READERS_MAX || f->stopped)
        return ERR_BUSY;
    struct feed_reader *r = xcalloc(1, sizeof(*r));
    r->feed = f;
    r->ask = *ask;
    r->ask.last_id = NULL; /* not ours */
    r->at = at;
    r->next_note = f->n_notes;
    r->next_load = f->n_loads;
    r->spoke_ms = f->now_ms;
    list_append(&f->readers, &r->link);
    f->n_readers++;
    r->share = share_of(f);
    f->wanted |= ask->kinds;
    *ret = r;
    return 0;
}

void feed_close(struct feed_reader *r)
{
    if (!r)
        return;
    struct feed *f = r->feed;
    list_remove(&r->link);
    free(r);
    f->n_readers--;
    f->wanted = 0;
    LIST_EACH(&f->readers, other, struct feed_reader, link)
    {
        f->wanted |= other->ask.kinds;
    }
}

/* ── pulling ───────────────────────────────────────────────────────────────────────────────── */

static bool is_at(struct feed_place a, struct feed_place b)
{
    return a.seq == b.seq && a.index == b.index;
}

static void go_to(struct feed_reader *r, int64_t seq)
{
    r->at = (struct feed_place){seq, 0};
    r->offset = 0;
}

static void say_gap(struct feed_reader *r, struct buf *out, int64_t to_seq, const char *why)
{
    struct feed_place from = r->at;
    go_to(r, to_seq);
    feed_text_gap(out, from, r->at, why);
    r->told = r->at;
    r->feed->gaps++;
}

static void say_id(struct feed_reader *r, struct buf *out)
{
    feed_text_id(out, r->at);
    r->told = r->at;
}

/* Whoever leaves before anything has happened must be able to come back to this place. */
static void greet(struct feed_reader *r, struct buf *out)
{
    static const char retry[] = "retry: 1000\n";
    buf_append(out, retry, sizeof(retry) - 1);
    say_id(r, out);
    r->greeted = true;
}

/* True when the place he stands at is not to be had; he has then been told, and stands elsewhere.
 */
static bool say_if_lost(struct feed_reader *r, struct buf *out)
{
    const struct feed *f = r->feed;
    bool ahead = r->at.seq > f->last + 1 || (r->at.seq == f->last + 1 && r->at.index > 0);
    bool lost = ahead || r->at.seq < f->first;
    if (ahead)
        say_gap(r, out, f->last + 1, "ahead");
    else if (lost && !r->placed)
        say_gap(r, out, f->first, "forgotten");
    else if (lost)
        say_gap(r, out, f->last + 1, "behind"); /* the oldest would be gone again at once */
    r->placed = true;
    return lost;
}

/* A resumed reader knows how many changes he has, not how many bytes they take. */
static void skip_to(struct cursor *c, int32_t index)
{
    struct change_name name;
    while (index > 0 && change_skip(c, &name))
        index--;
}

static bool is_wanted(const struct feed_reader *r, enum row_kind kind)
{
    return feed_shows(kind) && (r->ask.kinds & FEED_BIT(kind));
}

/* Goes over one change, or to the next batch. The reader stands in a batch that is held. */
static void say_change(struct feed_reader *r, struct buf *out)
{
    struct feed *f = r->feed;
    const struct held *held = *slot(f, r->at.seq);
    struct cursor c = cursor_of(held->bytes + r->offset, held->len - r->offset);
    if (r->offset == 0)
        skip_to(&c, r->at.index);
    struct cursor here = c;
    struct change_name name;
    bool found = change_skip(&c, &name);
    if (cursor_failed(&c)) {
        log_line(LOG_ERROR, "journal row damaged", "seq=%" PRId64, r->at.seq);
        say_gap(r, out, r->at.seq + 1, "damaged");
        return;
    }
    if (!found) {
        go_to(r, r->at.seq + 1);
        return;
    }
    r->at.index++;
    r->offset = (size_t)(c.at - held->bytes);
    if (!is_wanted(r, name.kind))
        return;
    struct change change;
    /* change_skip has refused what cannot be decoded. */
    if (!change_decode(&here, &change) || !feed_shows_change(pipeline_core(f->pipeline), &change))
        return;
    feed_text_change(out, pipeline_core(f->pipeline), &change, r->at, held->then);
    r->told = r->at;
}

/* True when a note was due before the change the reader stands at. */
static bool say_note(struct feed_reader *r, struct buf *out)
{
    const struct feed *f = r->feed;
    if (!(r->ask.kinds & FEED_BIT(FEED_NOTE)) || r->next_note == f->n_notes)
        return false;
    int64_t oldest = f->n_notes > NOTES_KEPT ? f->n_notes - NOTES_KEPT : 0;
    if (r->next_note < oldest) {
        feed_text_missed(out, oldest - r->next_note);
        r->next_note = oldest;
        return true;
    }
    const struct feed_note *note = &f->notes[r->next_note % NOTES_KEPT];
    if (note->seq >= r->at.seq)
        return false;
    feed_kinds needs = feed_note_needs(note);
    if ((r->ask.kinds & needs) == needs)
        feed_text_note(out, note);
    r->next_note++;
    return true;
}

static bool say_load(struct feed_reader *r, struct buf *out)
{
    const struct feed *f = r->feed;
    if (!(r->ask.kinds & FEED_BIT(FEED_LOAD)) || r->next_load == f->n_loads ||
        f->load_seq >= r->at.seq)
        return false;
    buf_append(out, f->load.data, f->load.len);
    r->next_load = f->n_loads;
    return true;
}

/* Says what there is, up to about max bytes. False when there is more to look at. */
static bool say_all(struct feed_reader *r, struct buf *out, size_t max)
{
    const struct feed *f = r->feed;
    size_t start = out->len;
    for (int looked = 0; looked < PULL_DECODES && out->len - start < max;) {
        if (say_if_lost(r, out) || say_note(r, out) || say_load(r, out))
            continue;
        if (r->at.seq > f->last)
            return true;
        say_change(r, out);
        looked++;
    }
    return false;
}

bool feed_pull(struct feed_reader *r, struct buf *out, size_t max)
{
    size_t start = out->len;
    if (r->feed->stopped)
        return false;
    if (!r->greeted)
        greet(r, out);
    bool all = say_all(r, out, max < r->share ? max : r->share);
    bool moved = !is_at(r->told, r->at);
    if (out->len == start && moved && ((!all && r->share > 0) || r->comment_due))
        say_id(r, out);
    else if (out->len == start && r->comment_due)
        buf_append(out, ":\n\n", 3);
    size_t said = out->len - start;
    r->share -= said < r->share ? said : r->share;
    r->comment_due = false;
    r->asleep = said == 0;
    if (!r->asleep)
        r->spoke_ms = r->feed->now_ms;
    return true;
}

void feed_figures(const struct feed *f, struct feed_figures *ret)
{
    *ret = (struct feed_figures){
        .readers = f->n_readers,
        .batches = f->last - f->first + 1,
        .bytes = (int64_t)f->bytes,
        .first_seq = f->first,
        .last_seq = f->last,
        .gaps = f->gaps,
    };
}
