#include "cli/top_view.h"

#include "cli/list.h"
#include "cli/when.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIDE_COLUMNS = 132, /* from here there is room for the columns of -o wide */
    SECTION_LINES = 2,  /* a blank one and the titles of a table */
    FINDINGS_MAX = 4,
    REFUSALS_MAX = 20,
    GIB = 1 << 30,
};

static const char *const sort_names[TOP_SORTS] = {
    [TOP_WORST] = "worst first",
    [TOP_LOAD] = "by load",
    [TOP_ROOMS] = "by rooms",
    [TOP_HEARD] = "longest silent first",
};

static int64_t number(const struct json *object, const char *path)
{
    return json_get_int(show_at(object, path));
}

static struct str text_at(const struct json *object, const char *path)
{
    return json_get_text(show_at(object, path));
}

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

/* ── the head ──────────────────────────────────────────────────────────────────────────────── */

static void put_title(struct buf *out, const struct term *term, const struct top_view *v, bool keys)
{
    char clock[WHEN_MAX];
    char lasted[WHEN_MAX];
    term_put_styled(out, term, STYLE_HEAD, STR("muster top"));
    if (v->region[0]) {
        term_put(out, "  only ");
        term_put_styled(out, term, STYLE_HEAD, str_of(v->region));
    }
    if (v->paused) {
        term_put(out, "  ");
        term_put_styled(out, term, STYLE_WARN, STR("paused"));
    }
    term_put(out, "  ");
    term_put_text(out, str_of(v->url));
    term_printf(out, "  %s UTC", when_clock(v->now_ms, clock));
    if (keys)
        term_put_styled(out, term, STYLE_DIM, STR("  h help, q quits"));
    if (v->status)
        term_printf(out, "  up %s", when_lasted(number(v->status, "uptime_s"), lasted));
    term_put(out, "\n");
}

/* "Muster is away for 12 s: ...", and how old the rest is. */
static void put_away(struct buf *out, const struct term *term, const struct top_view *v)
{
    char lasted[WHEN_MAX];
    term_begin(out, term, STYLE_BAD);
    term_printf(out, "Muster is away for %s; what is shown is ",
                when_lasted(v->away_ms / 1000, lasted));
    term_printf(out, "%s old", when_lasted(v->age_ms / 1000, lasted));
    term_end(out, term, STYLE_BAD);
    term_put(out, "\n");
    term_put_styled(out, term, STYLE_DIM, str_of(v->why));
    term_put(out, "\n");
}

static void put_paused_age(struct buf *out, const struct term *term, const struct top_view *v)
{
    char lasted[WHEN_MAX];
    term_begin(out, term, STYLE_WARN);
    term_printf(out, "What is shown is %s old; p goes on", when_lasted(v->age_ms / 1000, lasted));
    term_end(out, term, STYLE_WARN);
    term_put(out, "\n");
}

static enum style health_style(struct str status)
{
    return str_eq(status, STR("healthy"))    ? STYLE_GOOD
           : str_eq(status, STR("degraded")) ? STYLE_WARN
                                             : STYLE_BAD;
}

/* The sentence, and what is wrong with what to do about it. */
static void put_health(struct buf *out, const struct term *term, const struct json *health)
{
    const struct json *findings = json_member(health, "findings");
    term_put_styled(out, term, health_style(text_at(health, "status")),
                    text_at(health, "sentence"));
    term_put(out, "\n");
    for (size_t i = 0; i < json_length(findings) && i < FINDINGS_MAX; i++) {
        const struct json *f = json_item(findings, i);
        bool critical = str_eq(text_at(f, "severity"), STR("critical"));
        term_put(out, "  ");
        term_put_styled(out, term, critical ? STYLE_BAD : STYLE_WARN, text_at(f, "sentence"));
        if (text_at(f, "command").len > 0) {
            term_put(out, "  ");
            term_put_styled(out, term, STYLE_HEAD, text_at(f, "command"));
        }
        term_put(out, "\n");
    }
}

/* Of a Muster that does not judge itself yet. */
static void put_judgement(struct buf *out, const struct term *term, const struct json *status)
{
    bool writable = str_eq(text_at(status, "store"), STR("writable"));
    int64_t sick = number(status, "hosts.silent") + number(status, "hosts.failing") +
                   number(status, "hosts.overloaded");
    int64_t failed = number(status, "allocations.failed");
    bool well = writable && sick == 0 && failed == 0;
    term_begin(out, term, well ? STYLE_GOOD : writable ? STYLE_WARN : STYLE_BAD);
    if (well)
        term_put(out, "Nothing in the status is wrong.");
    if (!writable)
        term_put(out, "The store cannot be written: nothing can be placed. ");
    if (sick > 0)
        term_printf(out, "%" PRId64 " host%s silent, failing or overloaded. ", sick,
                    sick == 1 ? " is" : "s are");
    if (failed > 0)
        term_printf(out, "%" PRId64 " allocation%s failed in the last minute.", failed,
                    plural(failed));
    term_end(out, term, STYLE_GOOD);
    term_put(out, "\n");
}

static void put_ms(struct buf *out, const char *name, const struct json *value)
{
    term_printf(out, ", %s ", name);
    if (value && json_kind(value) != JSON_KIND_NULL)
        term_printf(out, "%.1f ms", json_get_number(value));
    else
        term_put(out, "-");
}

static void put_label(struct buf *out, const struct term *term, const char *label)
{
    term_put_styled(out, term, STYLE_DIM, str_of(label));
}

/* A number that should be 0. */
static void put_failed(struct buf *out, const struct term *term, int64_t n, const char *word)
{
    term_begin(out, term, n ? STYLE_BAD : STYLE_PLAIN);
    term_printf(out, "%" PRId64 " %s", n, word);
    term_end(out, term, n ? STYLE_BAD : STYLE_PLAIN);
}

static void put_allocations(struct buf *out, const struct term *term, const struct json *status)
{
    const struct json *a = json_member(status, "allocations");
    put_label(out, term, "last 60 s  ");
    term_printf(out, "%.1f allocations/s, ", json_get_number(json_member(a, "per_s")));
    put_failed(out, term, number(a, "failed"), "failed");
    put_ms(out, "p50", json_member(a, "p50_ms"));
    put_ms(out, "p95", json_member(a, "p95_ms"));
    put_ms(out, "p99", json_member(a, "p99_ms"));
    term_put(out, "\n");
}

/* "99.2 % of 120 joins, 1 failed" */
static void put_joins(struct buf *out, const struct term *term, const struct json *status)
{
    int64_t done = number(status, "joins.done");
    int64_t failed = number(status, "joins.failed");
    put_label(out, term, "joins      ");
    if (done + failed == 0) {
        term_put(out, "none in the last 60 s\n");
        return;
    }
    /* Down, not to the nearest: 100 % means all of them. */
    int64_t permille = done * 1000 / (done + failed);
    term_printf(out, "%" PRId64 ".%" PRId64 " %% of %" PRId64 " succeeded, ", permille / 10,
                permille % 10, done + failed);
    put_failed(out, term, failed, "failed");
    term_put(out, "\n");
}

static void put_queue(struct buf *out, const struct term *term, const struct json *status)
{
    int64_t entries = number(status, "queues.entries");
    int64_t players = number(status, "queues.players");
    char lasted[WHEN_MAX];
    put_label(out, term, "in line    ");
    if (entries == 0) {
        term_put(out, "nobody\n");
        return;
    }
    term_printf(out, "%" PRId64 " request%s of %" PRId64 " player%s, the oldest for %s\n", entries,
                plural(entries), players, plural(players),
                when_lasted(number(status, "queues.oldest_ms") / 1000, lasted));
}

static void put_playing(struct buf *out, const struct term *term, const struct json *status)
{
    int64_t players = number(status, "rooms.taken");
    int64_t rooms = number(status, "rooms.open");
    int64_t matches = number(status, "sessions");
    put_label(out, term, "playing    ");
    term_printf(out,
                "%" PRId64 " player%s in %" PRId64 " room%s, %" PRId64 " coming; %" PRId64
                " match%s; %" PRId64 " of %" PRId64 " slots used\n",
                players, plural(players), rooms, plural(rooms), number(status, "rooms.reserved"),
                matches, matches == 1 ? "" : "es", number(status, "slots.used"),
                number(status, "slots.total"));
}

static void put_store(struct buf *out, const struct term *term, const struct json *status)
{
    const struct json *storage = json_member(status, "storage");
    struct str store = text_at(status, "store");
    put_label(out, term, "store      ");
    term_put_styled(out, term, show_style(store), store);
    put_ms(out, "commit p50", json_member(storage, "commit_p50_ms"));
    put_ms(out, "p99", json_member(storage, "commit_p99_ms"));
    term_printf(out, ", %" PRId64 " waiting, %.1f GiB free\n", number(storage, "batches_waiting"),
                json_get_number(json_member(storage, "disk_free_bytes")) / GIB);
}

static void put_head(struct buf *out, const struct term *term, const struct top_view *v, bool keys)
{
    put_title(out, term, v, keys);
    if (v->why)
        put_away(out, term, v);
    if (v->paused)
        put_paused_age(out, term, v);
    if (v->health && !v->why)
        put_health(out, term, v->health);
    else if (v->status && !v->why)
        put_judgement(out, term, v->status);
    if (!v->status)
        return;
    term_put(out, "\n");
    put_allocations(out, term, v->status);
    put_joins(out, term, v->status);
    put_queue(out, term, v->status);
    put_playing(out, term, v->status);
    put_store(out, term, v->status);
}

/* ── tables ────────────────────────────────────────────────────────────────────────────────── */

static bool is_in_region(const struct top_view *v, const struct json *item, const char *key)
{
    return !v->region[0] || str_eq(text_at(item, key), str_of(v->region));
}

static int64_t servers_of(const struct json *region)
{
    const struct json *s = json_member(region, "servers");
    return number(s, "available") + number(s, "full") + number(s, "draining") +
           number(s, "offline");
}

static bool has_hosts(const struct top_view *v, struct str region)
{
    for (size_t i = 0; i < v->n_hosts; i++) {
        if (str_eq(text_at(v->hosts[i], "region"), region))
            return true;
    }
    return false;
}

static bool is_used(const struct top_view *v, const struct json *region)
{
    return servers_of(region) > 0 || has_hosts(v, text_at(region, "name"));
}

static const struct show_column host_columns[] = {
    {"HOST", "id", SHOW_NUMBER, false},
    {"NAME", "name", SHOW_TEXT, false},
    {"REGION", "region", SHOW_TEXT, false},
    {"LOAD", "load_percent", SHOW_PERCENT, false},
    {"CPU", "cpu_percent", SHOW_PERCENT, false},
    {"MEMORY", "memory_percent", SHOW_PERCENT, false},
    {"ROOMS", "rooms", SHOW_NUMBER, false},
    {"SLOTS", "slots", SHOW_NUMBER, false},
    {"HEARD", "heard_at", SHOW_AGO, false},
    {"PASSED OVER", "passed_over", SHOW_STATE, false},
    {"ADDRESS", "address", SHOW_TEXT, true},
    {"STRANGERS", "strangers", SHOW_NUMBER, true},
    {0},
};

static const struct show_column refusal_columns[] = {
    {"WHEN", "at", SHOW_AGO, false},
    {"REGION", "region", SHOW_TEXT, false},
    {"TICKET", "ticket", SHOW_NUMBER, false},
    {"LOBBY", "lobby", SHOW_NUMBER, true},
    {"CHAT SERVER", "chat_server", SHOW_TEXT, true},
    {"REFUSED BECAUSE", "message", SHOW_TEXT, false},
    {0},
};

enum section { REGIONS, HOSTS, REFUSALS, SECTIONS };

/* Items of each section, worst or newest first. */
struct items {
    const struct json **of[SECTIONS];
    size_t n[SECTIONS];
};

static void add_items(struct items *items, enum section s, const struct json *list, size_t max,
                      const struct top_view *v)
{
    items->of[s] = xcalloc(json_length(list) + 1, sizeof(*items->of[s]));
    for (size_t i = 0; i < json_length(list) && items->n[s] < max; i++) {
        const struct json *item = json_item(list, i);
        bool wanted = s == REGIONS
                          ? is_in_region(v, item, "name") && (v->all_regions || is_used(v, item))
                          : is_in_region(v, item, "region");
        if (wanted)
            items->of[s][items->n[s]++] = item;
    }
}

static void collect(struct items *items, const struct top_view *v)
{
    add_items(items, REGIONS, json_member(v->status, "regions"), SIZE_MAX, v);
    add_items(items, REFUSALS, json_member(v->status, "refusals"), REFUSALS_MAX, v);
    items->of[HOSTS] = xcalloc(v->n_hosts + 1, sizeof(*items->of[HOSTS]));
    for (size_t i = 0; i < v->n_hosts; i++) {
        if (is_in_region(v, v->hosts[i], "region"))
            items->of[HOSTS][items->n[HOSTS]++] = v->hosts[i];
    }
    top_view_sort(items->of[HOSTS], items->n[HOSTS], v->sort);
}

static void put_section(struct buf *out, const struct term *term, const struct top_view *v,
                        const struct items *items, enum section s, size_t lines)
{
    const struct show_column *columns = s == REGIONS ? list_columns("regions")
                                        : s == HOSTS ? host_columns
                                                     : refusal_columns;
    bool wide = term->columns >= WIDE_COLUMNS;
    size_t rows = items->n[s] <= lines ? items->n[s] : lines - 1;
    struct table t;
    if (lines == 0)
        return;
    table_init(&t);
    show_columns(&t, columns, wide);
    for (size_t i = 0; i < rows; i++)
        show_row(&t, columns, wide, items->of[s][i], v->now_ms);
    term_put(out, "\n");
    table_print(&t, term, out);
    table_done(&t);
    if (rows < items->n[s]) {
        term_begin(out, term, STYLE_DIM);
        term_printf(out, "... %zu more%s%s", items->n[s] - rows, s == HOSTS ? ", " : "",
                    s == HOSTS ? sort_names[v->sort] : "");
        term_end(out, term, STYLE_DIM);
        term_put(out, "\n");
    }
}

void top_view_share(size_t rows, const size_t *wanted, size_t *ret, size_t n)
{
    size_t least = 2; /* a row, and how many more there are */
    for (size_t i = 0; i < n; i++) {
        size_t first = wanted[i] < least ? wanted[i] : least;
        bool fits = first > 0 && rows >= first + SECTION_LINES;
        ret[i] = fits ? first : 0;
        rows -= fits ? first + SECTION_LINES : 0;
    }
    for (bool more = true; more && rows > 0;) {
        more = false;
        for (size_t i = 0; i < n && rows > 0; i++) {
            if (ret[i] == 0 || ret[i] >= wanted[i])
                continue;
            ret[i]++;
            rows--;
            more = true;
        }
    }
}

static void put_tables(struct buf *out, const struct term *term, const struct top_view *v,
                       size_t rows)
{
    struct items items = {0};
    size_t lines[SECTIONS];
    collect(&items, v);
    top_view_share(rows, items.n, lines, SECTIONS);
    for (int s = 0; s < SECTIONS; s++)
        put_section(out, term, v, &items, (enum section)s, lines[s]);
    if (items.n[REGIONS] + items.n[HOSTS] == 0 && rows > 1)
        term_put(out, "\nNo game server and no host has registered yet.\n");
    for (int s = 0; s < SECTIONS; s++)
        free(items.of[s]);
}

/* ── what is chosen ────────────────────────────────────────────────────────────────────────── */

static void put_help(struct buf *out, const struct top_view *v)
{
    term_put(out, "\n"
                  "  q  quit\n"
                  "  p  pause, and go on\n"
                  "  r  the next region alone; after the last all of them\n"
                  "  a  all regions, also those without servers\n");
    term_printf(out, "  s  sort hosts: %s now\n", sort_names[v->sort]);
    term_put(out, "  h  this help, and back\n\n"
                  "What is wrong stands on top, with the command that says more.\n");
}

struct str top_view_next_region(const struct top_view *v)
{
    const struct json *regions = json_member(v->status, "regions");
    bool found = !v->region[0];
    for (size_t i = 0; i < json_length(regions); i++) {
        const struct json *region = json_item(regions, i);
        struct str name = text_at(region, "name");
        if (found && is_used(v, region))
            return name;
        found = found || str_eq(name, str_of(v->region));
    }
    return STR("");
}

/* Silent, failing and overloaded hosts first; those that somebody took out on purpose last. */
static int trouble(const struct json *host)
{
    struct str passed_over = text_at(host, "passed_over");
    if (passed_over.len == 0)
        return 1;
    return str_eq(passed_over, STR("disabled")) || str_eq(passed_over, STR("leaving")) ? 0 : 2;
}

static int compare_numbers(double a, double b)
{
    return (a < b) - (a > b);
}

static int compare_worst(const void *a, const void *b)
{
    const struct json *x = *(const struct json *const *)a;
    const struct json *y = *(const struct json *const *)b;
    int order = trouble(y) - trouble(x);
    return order ? order
                 : compare_numbers(json_get_number(json_member(x, "load_percent")),
                                   json_get_number(json_member(y, "load_percent")));
}

static int compare_load(const void *a, const void *b)
{
    const struct json *x = *(const struct json *const *)a;
    const struct json *y = *(const struct json *const *)b;
    return compare_numbers(json_get_number(json_member(x, "load_percent")),
                           json_get_number(json_member(y, "load_percent")));
}

static int compare_rooms(const void *a, const void *b)
{
    const struct json *x = *(const struct json *const *)a;
    const struct json *y = *(const struct json *const *)b;
    return compare_numbers((double)number(x, "rooms"), (double)number(y, "rooms"));
}

/* Times of the API sort as texts. */
static int compare_heard(const void *a, const void *b)
{
    struct str x = text_at(*(const struct json *const *)a, "heard_at");
    struct str y = text_at(*(const struct json *const *)b, "heard_at");
    size_t n = x.len < y.len ? x.len : y.len;
    return n > 0 ? memcmp(x.at, y.at, n) : 0;
}

void top_view_sort(const struct json **hosts, size_t n, enum top_sort sort)
{
    static int (*const by[TOP_SORTS])(const void *, const void *) = {
        [TOP_WORST] = compare_worst,
        [TOP_LOAD] = compare_load,
        [TOP_ROOMS] = compare_rooms,
        [TOP_HEARD] = compare_heard,
    };
    qsort(hosts, n, sizeof(hosts[0]), by[sort]);
}

static size_t count_lines(const struct buf *out, size_t from)
{
    size_t n = 0;
    for (size_t i = from; i < out->len; i++)
        n += out->data[i] == '\n' ? 1 : 0;
    return n;
}

void top_view_put(struct buf *out, const struct term *term, const struct top_view *v, size_t rows)
{
    size_t from = out->len;
    put_head(out, term, v, rows > 0);
    size_t used = count_lines(out, from);
    if (v->help)
        put_help(out, v);
    else if (v->status)
        put_tables(out, term, v, rows == 0 ? SIZE_MAX / 2 : rows > used ? rows - used : 0);
}
