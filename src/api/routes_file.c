#include "api/routes_file.h"

#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MODE = 0644, SIZE_MIN = 4096, SHRINK_AT = 8 };

void route_line_set(struct route_line *line, const char *token, const char *address, uint16_t port)
{
    bool six = strchr(address, ':') != NULL;
    (void)snprintf(line->token, sizeof(line->token), "%s", token);
    (void)snprintf(line->endpoint, sizeof(line->endpoint), "%s%s%s:%u", six ? "[" : "", address,
                   six ? "]" : "", port);
}

static int by_endpoint(const void *a, const void *b)
{
    const struct route_line *x = a, *y = b;
    int order = strcmp(x->endpoint, y->endpoint);
    return order != 0 ? order : strcmp(x->token, y->token);
}

static int by_token(const void *a, const void *b)
{
    return strcmp(((const struct route_line *)a)->token, ((const struct route_line *)b)->token);
}

void routes_sort(struct route_line *lines, size_t n)
{
    if (n > 0)
        qsort(lines, n, sizeof(*lines), by_endpoint);
}

/* ── the text ──────────────────────────────────────────────────────────────────────────────── */

static void put(struct buf *out, const char *text)
{
    buf_append(out, text, strlen(text));
}

/* Text in JSON's quotes is text in YAML's. */
static void put_text(struct buf *out, const char *text)
{
    json_text(&(struct json_writer){.out = out}, str_of(text));
}

void routes_render(struct buf *out, bool filters, const struct route_line *lines, size_t n)
{
    put(out, "version: v1alpha1\n");
    if (filters)
        put(out, "filters:\n"
                 "- name: quilkin.filters.capture.v1alpha1.Capture\n"
                 "  config: {suffix: {size: 16, remove: true}}\n"
                 "- name: quilkin.filters.token_router.v1alpha1.TokenRouter\n");
    if (n == 0) {
        put(out, "clusters: [{endpoints: []}]\n");
        return;
    }
    put(out, "clusters:\n- endpoints:\n");
    for (size_t i = 0; i < n; i++) {
        bool first = i == 0 || strcmp(lines[i - 1].endpoint, lines[i].endpoint) != 0;
        bool last = i + 1 == n || strcmp(lines[i + 1].endpoint, lines[i].endpoint) != 0;
        if (first) {
            put(out, "  - address: ");
            put_text(out, lines[i].endpoint);
            put(out, "\n    metadata: {quilkin.dev: {tokens: [");
        }
        put_text(out, lines[i].token);
        put(out, last ? "]}}\n" : ", ");
    }
}

/* ── what may stay ─────────────────────────────────────────────────────────────────────────── */

static bool is_elsewhere(const struct route_line *before, size_t n, const struct route_line *line)
{
    const struct route_line *was =
        n > 0 ? bsearch(line, before, n, sizeof(*before), by_token) : NULL;
    return was && strcmp(was->endpoint, line->endpoint) != 0;
}

size_t routes_stay(const struct route_line *before, size_t n_before, const struct route_line *next,
                   size_t n_next, struct route_line *ret)
{
    struct route_line *sorted = xcalloc(n_before + 1, sizeof(*sorted));
    size_t n = 0;
    if (n_before > 0) {
        memcpy(sorted, before, n_before * sizeof(*sorted));
        qsort(sorted, n_before, sizeof(*sorted), by_token);
    }
    for (size_t i = 0; i < n_next; i++) {
        if (!is_elsewhere(sorted, n_before, &next[i]))
            ret[n++] = next[i];
    }
    free(sorted);
    return n;
}

/* ── the file ──────────────────────────────────────────────────────────────────────────────── */

/* 0, or an errno. A write that came short is taken up where it ended. */
static int write_all(int fd, const struct buf *text)
{
    for (size_t at = 0; at < text->len;) {
        ssize_t n = pwrite(fd, text->data + at, text->len - at, (off_t)at);
        if (n < 0 && errno != EINTR)
            return errno;
        if (n > 0)
            at += (size_t)n;
    }
    return 0;
}

/* How long the file is: it doubles, so that it hardly ever grows while somebody reads it. */
static size_t size_for(size_t len)
{
    size_t size = SIZE_MIN;
    while (size < len)
        size *= 2;
    return size;
}

/* The text and empty lines behind it, up to that size. */
static void pad(struct buf *ret, const struct buf *text, size_t size)
{
    buf_append(ret, text->data, text->len);
    while (ret->len < size)
        buf_append(ret, "\n", 1);
}

static int make_file(const char *path, const struct buf *text)
{
    struct buf whole = {0};
    size_t size = strlen(path) + sizeof(".new");
    char *made = xcalloc(1, size);
    (void)snprintf(made, size, "%s.new", path);
    int fd = open(made, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, MODE);
    pad(&whole, text, size_for(text->len));
    int err = fd < 0 ? errno : write_all(fd, &whole);
    buf_done(&whole);
    if (fd >= 0)
        close(fd);
    if (err == 0 && rename(made, path) != 0)
        err = errno;
    if (err != 0)
        (void)unlink(made);
    free(made);
    return err;
}

static int write_over(int fd, const struct buf *text)
{
    struct stat was;
    struct buf whole = {0};
    if (fstat(fd, &was) != 0)
        return errno;
    size_t size = was.st_size > 0 ? (size_t)was.st_size : 0;
    size_t wanted = size_for(text->len);
    pad(&whole, text, size > wanted ? size : wanted);
    int err = write_all(fd, &whole);
    buf_done(&whole);
    if (err == 0 && size / SHRINK_AT > wanted && ftruncate(fd, (off_t)wanted) != 0)
        err = errno;
    return err;
}

int routes_put(const char *path, const struct buf *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return make_file(path, text);
    if (fd < 0)
        return errno;
    int err = write_over(fd, text);
    close(fd);
    return err;
}
