#include "api/resource_insight.h"

#include "api/shape_rows.h"

/* ── trends ────────────────────────────────────────────────────────────────────────────────── */

const char *const trend_window_words[] = {"ten_minutes", "day", NULL};

/* Microseconds as milliseconds; null when there is none. */
static void write_us(struct json_writer *w, int64_t us)
{
    if (us > 0)
        json_number(w, (double)us / 1000, 3);
    else
        json_none(w);
}

#define WRITE_MS(function_, member_)                                                               \
    static void function_(struct json_writer *w, const void *object,                               \
                          const struct core_config *config)                                        \
    {                                                                                              \
        (void)config;                                                                              \
        write_us(w, ((const struct trend_point *)object)->member_);                                \
    }
WRITE_MS(write_p50, p50_us)
WRITE_MS(write_p95, p95_us)
WRITE_MS(write_p99, p99_us)
WRITE_MS(write_commit, commit_p99_us)

const struct shape trend_point_shape = {
    .name = "TrendPoint",
    .help = "A second, or a minute. Where Muster did not run there is none.",
    .rows =
        (const struct shape_row[]){
            ROW(TIME, "at", struct trend_point, wall_ms, "when it began"),
            ROW(INT64, "allocations", struct trend_point, allocations,
                "matches that got a server, and players who got a place"),
            ROW(INT64, "refused", struct trend_point, refused, "those who did not"),
            ROW_WRITTEN_OR_NULL(DOUBLE, "p50_ms", write_p50,
                                "half of the allocations were done within this, those left out "
                                "who had to wait in line; null when there was none"),
            ROW_WRITTEN_OR_NULL(DOUBLE, "p95_ms", write_p95, NULL),
            ROW_WRITTEN_OR_NULL(DOUBLE, "p99_ms", write_p99, NULL),
            ROW(INT64, "joins", struct trend_point, joins,
                "players who got a seat in a room they asked for"),
            ROW(INT64, "joins_failed", struct trend_point, joins_failed, "those who did not"),
            ROW(INT32, "queue", struct trend_point, gauges.queue,
                "allocations in line; this and the next: the most in that time"),
            ROW(INT64, "oldest_wait_ms", struct trend_point, gauges.oldest_wait_ms,
                "how long the oldest of them waited"),
            ROW(INT32, "players", struct trend_point, gauges.players,
                "who sat somewhere, or had a seat reserved"),
            ROW(INT32, "sessions", struct trend_point, gauges.sessions, "open matches"),
            ROW(INT32, "rooms", struct trend_point, gauges.rooms, "open rooms"),
            ROW(INT32, "servers", struct trend_point, gauges.servers,
                "game servers that were not offline"),
            ROW_WRITTEN_OR_NULL(DOUBLE, "commit_p99_ms", write_commit,
                                "of the store's commits; null when there was none"),
            {0},
        },
};

static void write_points(struct json_writer *w, const void *object,
                         const struct core_config *config)
{
    const struct trends_answer *v = object;
    json_open_array(w);
    for (size_t i = v->first; i < trends_count(v->trends, v->window); i++)
        shape_write(w, &trend_point_shape, trends_at(v->trends, v->window, i), config);
    json_close_array(w);
}

const struct shape trends_shape = {
    .name = "Trends",
    .help = "How things went lately. Kept in memory: a start begins anew.",
    .rows =
        (const struct shape_row[]){
            ROW(INT64, "step_ms", struct trends_answer, step_ms, "how long a point lasts"),
            ROW_ITEMS("points", trend_point_shape, write_points, "oldest first"),
            {0},
        },
};

/* ── a checkup ─────────────────────────────────────────────────────────────────────────────── */

static const char *const status_words[] = {"healthy", "degraded", "broken", NULL};
static const char *const severity_words[] = {"hint", "warning", "critical", NULL};

static void write_severity(struct json_writer *w, const void *object,
                           const struct core_config *config)
{
    (void)config;
    json_text(w, str_of(severity_words[((const struct checkup_finding *)object)->severity]));
}

#define WRITE_TEXT(function_, member_)                                                             \
    static void function_(struct json_writer *w, const void *object,                               \
                          const struct core_config *config)                                        \
    {                                                                                              \
        (void)config;                                                                              \
        json_text(w, str_of(((const struct checkup_finding *)object)->member_));                   \
    }
WRITE_TEXT(write_sentence, sentence)
WRITE_TEXT(write_command, command)
WRITE_TEXT(write_page, page)

const struct shape finding_shape = {
    .name = "Finding",
    .help = "Something that needs a hand.",
    .rows =
        (const struct shape_row[]){
            ROW(TEXT, "code", struct checkup_finding, code, "a stable word for machines"),
            {.name = "severity",
             .kind = SHAPE_WORD,
             .words = severity_words,
             .write = write_severity,
             .help = "critical: players cannot be served because of it, now or very soon; hint: "
                     "what nobody has set up yet"},
            ROW_WRITTEN(TEXT, "sentence", write_sentence, "what is wrong"),
            ROW(TEXT, "advice", struct checkup_finding, advice, "what to do"),
            ROW_WRITTEN(TEXT, "command", write_command, "one that shows more, or mends it"),
            ROW_WRITTEN(TEXT, "page", write_page, "of the console"),
            {0},
        },
};

static void write_list(struct json_writer *w, const struct checkup_finding *list, size_t n,
                       const struct core_config *config)
{
    json_open_array(w);
    for (size_t i = 0; i < n; i++)
        shape_write(w, &finding_shape, &list[i], config);
    json_close_array(w);
}

static void write_findings(struct json_writer *w, const void *object,
                           const struct core_config *config)
{
    const struct checkup *found = ((const struct checkup_answer *)object)->found;
    write_list(w, found->findings, found->n_findings, config);
}

static void write_hints(struct json_writer *w, const void *object, const struct core_config *config)
{
    const struct checkup *found = ((const struct checkup_answer *)object)->found;
    write_list(w, found->hints, found->n_hints, config);
}

const struct shape checkup_shape = {
    .name = "Checkup",
    .help = "What is wrong.",
    .rows =
        (const struct shape_row[]){
            ROW_WORD("status", status_words, struct checkup_answer, status,
                     "broken: some finding is critical; degraded: some is a warning"),
            ROW(TEXT, "sentence", struct checkup_answer, sentence, "all of it in short"),
            ROW_ITEMS("findings", finding_shape, write_findings, "the worst first"),
            ROW_ITEMS("hints", finding_shape, write_hints,
                      "what to do first where nothing has come yet; nothing is wrong with it"),
            ROW(TIME, "at", struct checkup_answer, wall_ms, "when it was looked at"),
            {0},
        },
};
