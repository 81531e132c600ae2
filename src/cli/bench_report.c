/* What `make bench` leaves behind: a table for people, and a chart of how far each goal is reached.
 */
#include "base/full.h"
#include "cli/bench.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static const char introduction[] = "# Benchmark results\n"
                                   "\n"
                                   "Written by `make bench`; running it again writes it anew. "
                                   "[docs/performance.md](../docs/performance.md)\n"
                                   "says what is measured and how to read it.\n"
                                   "\n"
                                   "Each value is the median of its runs, and the spread is the "
                                   "least and the most of them. Yardsticks\n"
                                   "were measured in the same run, between the same minutes: "
                                   "compare with those, not with another\n"
                                   "machine's rates. Load and server share the machine's cores. "
                                   "Processor time is that of the Muster\n"
                                   "process with all its threads, kernel included.\n"
                                   "\n";

/* The value of a line like "model name : X". */
static void cpu_name(char *dst, size_t cap)
{
    snprintf(dst, cap, "unknown processor");
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[256];
    while (f && fgets(line, sizeof(line), f)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon)
            continue;
        colon[strcspn(colon, "\n")] = '\0';
        snprintf(dst, cap, "%s", colon + 2);
        break;
    }
    if (f)
        (void)fclose(f);
}

static void write_machine(FILE *out, const struct bench *b, const char *commit)
{
    char cpu[160], date[32];
    struct utsname system;
    struct sysinfo info = {0};
    time_t now = time(NULL);
    struct tm tm;
    uname(&system);
    (void)sysinfo(&info);
    cpu_name(cpu, sizeof(cpu));
    strftime(date, sizeof(date), "%Y-%m-%d %H:%M UTC", gmtime_r(&now, &tm));
    fprintf(out, "| | |\n|---|---|\n| date | %s |\n| commit | %s |\n", date, commit);
    fprintf(out, "| machine | %s, %ld cores, %.0f GiB, Linux %s |\n", cpu,
            sysconf(_SC_NPROCESSORS_ONLN),
            (double)info.totalram * info.mem_unit / (1024.0 * 1024 * 1024), system.release);
    fprintf(out, "| file system | %s |\n", b->file_system);
    fprintf(out, "| compiler | %s |\n\n", __VERSION__);
}

static const char *verdict(const struct bench_row *row)
{
    if (row->reach <= 0)
        return "";
    return row->reach >= 1 ? "yes" : "**no**";
}

static void write_rows(FILE *out, const struct bench *b)
{
    fprintf(out,
            "| goal | what | median | spread | runs | n | wanted | reached | yardstick | processor "
            "time |\n|---|---|---:|---:|---:|---:|---|---|---|---|\n");
    for (int i = 0; i < b->n_rows; i++) {
        const struct bench_row *row = &b->rows[i];
        char n[BENCH_PRINT_MAX];
        fprintf(out, "| %s | %s | %s | %s | %d | %s | %s | %s | %s | %s |\n", row->goal, row->what,
                row->value, row->spread, row->runs, bench_print(n, row->n, 0), row->wanted,
                verdict(row), row->yardstick, row->cpu);
    }
    fprintf(out, "\n![How far each goal is reached](results.svg)\n");
}

/* ── the chart ─────────────────────────────────────────────────────────────────────────────── */

enum {
    WIDTH = 860,
    LEFT = 430,  /* where bars begin */
    SCALE = 250, /* from the least to the most */
    ROW = 26,
    TOP = 46,
};

/* Goals are reached by factors, so the scale is one of factors: a quarter to sixteen. */
static const double scale_least = 0.25;
static const double scale_most = 16;

static double place(double reach)
{
    double held = reach < scale_least ? scale_least : reach > scale_most ? scale_most : reach;
    return LEFT + SCALE * log2(held / scale_least) / log2(scale_most / scale_least);
}

/* In XML. */
static void write_escaped(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            fputs("&lt;", out);
        else if (*text == '&')
            fputs("&amp;", out);
        else
            fputc(*text, out);
    }
}

static void write_bar(FILE *out, const struct bench_row *row, int y)
{
    const char *colour = row->reach >= 1 ? "#2a9d8f" : "#e07a3f";
    fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", LEFT - 10, y + 14);
    write_escaped(out, row->goal);
    fputs("  ", out);
    write_escaped(out, row->what);
    fprintf(out,
            "</text><rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"14\" rx=\"2\" fill=\"%s\"/>",
            LEFT, y + 3, place(row->reach) - LEFT, colour);
    fprintf(out, "<text x=\"%.1f\" y=\"%d\" class=\"value\">", place(row->reach) + 6, y + 14);
    write_escaped(out, row->value);
    fprintf(out, "</text>\n");
}

static int count_goals(const struct bench *b)
{
    int n = 0;
    for (int i = 0; i < b->n_rows; i++)
        n += b->rows[i].reach > 0;
    return n;
}

static void write_chart(FILE *out, const struct bench *b)
{
    int height = TOP + ROW * count_goals(b) + 16;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d "
            "%d\" font-family=\"sans-serif\" font-size=\"11\" fill=\"#333\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
            "<style>.value{fill:#666}</style>\n"
            "<text x=\"%.1f\" y=\"20\" text-anchor=\"middle\" font-weight=\"bold\">goal</text>\n",
            WIDTH, height, WIDTH, height, place(1));
    int lines = (int)lround(log2(scale_most / scale_least));
    for (int i = 0; i <= lines; i++) {
        double x = ldexp(scale_least, i);
        fprintf(out,
                "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"%s\"/>"
                "<text x=\"%.1f\" y=\"36\" text-anchor=\"middle\" class=\"value\">%g×</text>\n",
                place(x), place(x), TOP - 4, height - 10, x == 1 ? "#333" : "#ddd", place(x), x);
    }
    int y = TOP;
    for (int i = 0; i < b->n_rows; i++) {
        if (b->rows[i].reach <= 0)
            continue;
        write_bar(out, &b->rows[i], y);
        y += ROW;
    }
    fprintf(out, "</svg>\n");
}

/* ── files ─────────────────────────────────────────────────────────────────────────────────── */

static bool finish(struct bench *b, FILE *f, const char *path)
{
    bool written = f && !ferror(f);
    if (f && fclose(f) != 0)
        written = false;
    return written || bench_fail(b, "%s cannot be written: %s", path, full_reason(errno));
}

bool bench_report(struct bench *b, const char *folder, const char *commit)
{
    char path[BENCH_PATH_MAX];
    if (mkdir(folder, 0755) != 0 && errno != EEXIST)
        return bench_fail(b, "%s cannot be made: %s", folder, strerror(errno));
    snprintf(path, sizeof(path), "%s/RESULTS.md", folder);
    FILE *table = fopen(path, "w");
    if (table) {
        fputs(introduction, table);
        write_machine(table, b, commit);
        write_rows(table, b);
    }
    if (!finish(b, table, path))
        return false;
    snprintf(path, sizeof(path), "%s/results.svg", folder);
    FILE *chart = fopen(path, "w");
    if (chart)
        write_chart(chart, b);
    return finish(b, chart, path);
}
