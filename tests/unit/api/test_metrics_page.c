/* docs/metrics.md lists every metric as src/api/metrics.def declares it. With MUSTER_UPDATE_DOCS=1
 * in the environment the list is written instead of compared. */
#include "base/buf.h"
#include "lib/unit.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char marker[] = "writes it anew.\n\n";

static const struct {
    const char *section; /* NULL = a metric */
    const char *name;
    const char *type;
    const char *labels;
    const char *help;
    const char *seed;
} rows[] = {
#define S(title) {title, NULL, NULL, NULL, NULL, NULL},
#define M(id, type, name, labels, help, seed) {NULL, name, #type, labels, help, seed},
#include "api/metrics.def"
#undef M
};

static void put(struct buf *out, const char *text)
{
    buf_append(out, text, strlen(text));
}

/* "fleet,region" becomes "`fleet` `region`". */
static void put_labels(struct buf *out, const char *labels)
{
    if (!labels[0])
        return;
    put(out, "`");
    for (const char *c = labels; *c; c++) {
        if (*c == ',')
            put(out, "` `");
        else
            buf_append(out, c, 1);
    }
    put(out, "`");
}

static void put_list(struct buf *out)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].section) {
            put(out, i > 0 ? "\n### " : "### ");
            put(out, rows[i].section);
            put(out, "\n\n| name | type | labels | what | answers |\n|---|---|---|---|---|\n");
            continue;
        }
        const char *const cells[] = {"| `", rows[i].name, "` | ", rows[i].type, " | "};
        for (size_t j = 0; j < sizeof(cells) / sizeof(cells[0]); j++)
            put(out, cells[j]);
        put_labels(out, rows[i].labels);
        put(out, " | ");
        put(out, rows[i].help);
        put(out, " | ");
        put(out, rows[i].seed);
        put(out, " |\n");
    }
}

/* Beside this file: the tests are built from an absolute path. */
static const char *page_path(void)
{
    static char path[4096];
    const char *end = strstr(__FILE__, "tests/unit/");
    assert_non_null(end);
    snprintf(path, sizeof(path), "%.*sdocs/metrics.md", (int)(end - __FILE__), __FILE__);
    return path;
}

static void read_page(struct buf *page)
{
    FILE *f = fopen(page_path(), "r");
    assert_non_null(f);
    size_t n;
    do {
        n = fread(buf_extend(page, 4096), 1, 4096, f);
        page->len -= 4096 - n;
    } while (n > 0);
    fclose(f);
    buf_append(page, "", 1);
}

static void the_page_lists_what_there_is(void **state)
{
    (void)state;
    struct buf page = {0}, list = {0};
    read_page(&page);
    put_list(&list);
    char *after = strstr((char *)page.data, marker);
    assert_non_null(after);
    after += strlen(marker);
    if (getenv("MUSTER_UPDATE_DOCS")) {
        FILE *f = fopen(page_path(), "w");
        assert_non_null(f);
        fwrite(page.data, 1, (size_t)(after - (char *)page.data), f);
        fwrite(list.data, 1, list.len, f);
        fclose(f);
    } else {
        buf_append(&list, "", 1);
        assert_string_equal(after, (char *)list.data);
    }
    buf_done(&page);
    buf_done(&list);
}

static void a_row_is_a_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].section)
            continue;
        assert_null(strpbrk(rows[i].help, "|\n"));
        assert_int_equal(rows[i].help[strlen(rows[i].help) - 1], '.');
        assert_true(strncmp(rows[i].name, "muster_", 7) == 0 ||
                    strncmp(rows[i].name, "process_", 8) == 0);
    }
}

/* Each item of the seeds' telemetry lists has its metric; the words are this table's own. */
static void every_item_of_the_seeds_is_answered(void **state)
{
    (void)state;
    static const char *const items[] = {
        "server-allocation-request: request volume per region",
        "server-allocation-request: average allocation time",
        "server-allocation-request: failure rate by region",
        "server-allocation-request: server selection distribution",
        "server-allocation-request: retry frequency",
        "server-allocation-response: P50, P95, P99",
        "server-allocation-response: success vs failure rate",
        "failure reasons",
        "server-allocation-response: time from allocation to MATCH_START",
        "server-heartbeat: server uptime distribution",
        "server-heartbeat: average CPU and memory per region",
        "server-heartbeat: heartbeat latency",
        "server-heartbeat: timeout frequency",
        "server-heartbeat: match capacity utilization",
    };
    for (size_t i = 0; i < sizeof(items) / sizeof(items[0]); i++) {
        bool found = false;
        for (size_t j = 0; j < sizeof(rows) / sizeof(rows[0]); j++)
            found |= rows[j].seed && strstr(rows[j].seed, items[i]);
        if (!found)
            fail_msg("no metric for %s", items[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_lists_what_there_is),
        cmocka_unit_test(a_row_is_a_row),
        cmocka_unit_test(every_item_of_the_seeds_is_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
