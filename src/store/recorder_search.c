/* Looking: segments from the newest to the oldest, each from its end, a block at a time. What does
 * not have the needle is not looked at twice, so a search costs about what reading costs. */
#include "base/clock.h"
#include "base/date.h"
#include "store/recorder.h"
#include "store/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BLOCK = 256 * 1024,
    AT_BEGINS = 7, /* in a line: after {"at":" */
    AT_LEN = RECORDER_AT_SIZE - 1,
    SLACK_MS = 2000, /* a segment's name has seconds, and its lines were made before it was */
    PLACE_BITS = 32, /* of a place: bytes of the segment whose number is above them */
};
static const int64_t place_bytes_max = (INT64_C(1) << PLACE_BITS) - 1;

struct search {
    const struct recorder_query *query;
    char from[RECORDER_AT_SIZE]; /* times as text sort like times */
    char to[RECORDER_AT_SIZE];
    char last[RECORDER_AT_SIZE]; /* of the last line that was handed out or passed over */
    int64_t give_up_ms;
    int64_t unseen; /* bytes at the beginning of the segment that is looked at */
    bool began;     /* a block was looked at */
    bool enough;
};

static bool is_line(struct str line)
{
    return line.len > AT_BEGINS + AT_LEN + 2 && memcmp(line.at, "{\"at\":\"", AT_BEGINS) == 0 &&
           line.at[AT_BEGINS + AT_LEN] == '"' && line.at[line.len - 1] == '}';
}

static void look_at(struct search *s, struct str line)
{
    const struct str needle = s->query->needle;
    if (!is_line(line))
        return;
    const char *at = line.at + AT_BEGINS;
    if (memcmp(at, s->from, AT_LEN) < 0 || memcmp(at, s->to, AT_LEN) >= 0)
        return;
    memcpy(s->last, at, AT_LEN);
    if (needle.len == 0 || memmem(line.at, line.len, needle.at, needle.len))
        s->enough = !s->query->line(s->query->user, line);
}

/* The whole lines at the end of a piece of text; what is before the first end of a line is left,
 * and the line that was not taken with all before it. */
static size_t look_at_lines(struct search *s, const char *text, size_t len)
{
    while (len > 0 && !s->enough) {
        const char *end = memrchr(text, '\n', len);
        if (!end)
            return len;
        size_t begin = (size_t)(end - text) + 1;
        if (len > begin)
            look_at(s, (struct str){text + begin, len - begin});
        if (!s->enough)
            len = begin - 1;
    }
    return len;
}

static bool is_over(const struct search *s)
{
    bool stopped = s->query->stop && atomic_load(s->query->stop);
    return s->enough || stopped || (s->began && clock_monotonic_ms() >= s->give_up_ms);
}

/* pread that gives what it can; false when the file is shorter or cannot be read. */
static bool read_at(int fd, char *dst, size_t n, int64_t at)
{
    while (n > 0) {
        ssize_t k = pread(fd, dst, n, (off_t)at);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return false;
        dst += k;
        n -= (size_t)k;
        at += k;
    }
    return true;
}

/* True when all of it was seen. The text of one block, and after it the rest of the line that
 * reaches into the block behind it. */
static bool search_file(struct search *s, int fd, int64_t size, char *text)
{
    size_t rest = 0;
    while (size > 0) {
        if (is_over(s))
            return false;
        size_t n = size < BLOCK ? (size_t)size : BLOCK;
        memmove(text + n, text, rest);
        if (!read_at(fd, text, n, size - (int64_t)n))
            return true; /* it was dropped, or the disk cannot read it: there is no more of it */
        size -= (int64_t)n;
        rest = look_at_lines(s, text, n + rest);
        if (!s->enough && rest > RECORDER_LINE_MAX * 2)
            rest = 0; /* nobody wrote such a line */
        s->began = true;
        s->unseen = size + (int64_t)rest;
    }
    if (!s->enough && rest > 0)
        look_at(s, (struct str){text, rest});
    return !s->enough;
}

static int64_t place_of(const struct segment *segment, int64_t bytes)
{
    return segment->number << PLACE_BITS | bytes;
}

/* The bytes of a segment that are before the place to go on from. */
static int64_t bytes_before(const struct recorder_query *q, const struct segment *segment)
{
    int64_t size = segment->size < place_bytes_max ? segment->size : place_bytes_max;
    int64_t number = q->place >> PLACE_BITS;
    int64_t bytes = q->place & place_bytes_max;
    if (q->place == 0 || segment->number < number)
        return size;
    if (segment->number > number)
        return 0;
    return bytes < size ? bytes : size;
}

static bool search_segment(struct search *s, const char *folder, const struct segment *segment,
                           char *text)
{
    char path[PATH_MAX + SEGMENT_NAME_SIZE];
    s->unseen = bytes_before(s->query, segment);
    (void)snprintf(path, sizeof(path), "%s/%s", folder, segment->name);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return true; /* it was dropped meanwhile */
    bool whole = search_file(s, fd, s->unseen, text);
    close(fd);
    return whole;
}

/* Others of the same time as the last may not have been seen. */
static int64_t seen_since(const struct search *s)
{
    int64_t ms = 0;
    return date_parse((struct str){s->last, AT_LEN}, &ms) ? ms + 1 : s->query->to_ms;
}

static bool may_have(const struct recorder_query *q, const struct segment *s)
{
    return s->from_ms - SLACK_MS < q->to_ms && s->until_ms + SLACK_MS >= q->from_ms;
}

void recorder_search(const char *folder, const struct recorder_query *query,
                     struct recorder_reach *ret)
{
    struct search s = {.query = query};
    struct segment *all = NULL;
    size_t n = segments_list(folder, &all);
    char *text = xmalloc(BLOCK + RECORDER_LINE_MAX * 2);
    (void)recorder_at(query->from_ms, s.from);
    (void)recorder_at(query->to_ms, s.to);
    s.give_up_ms = clock_monotonic_ms() + query->patience_ms;
    *ret = (struct recorder_reach){.since_ms = n > 0 ? all[0].from_ms : 0};
    for (size_t i = n; i > 0 && !ret->cut; i--) {
        if (!may_have(query, &all[i - 1]))
            continue;
        ret->cut = !search_segment(&s, folder, &all[i - 1], text);
        ret->place = ret->cut ? place_of(&all[i - 1], s.unseen) : 0;
    }
    if (ret->since_ms && ret->since_ms < query->from_ms)
        ret->since_ms = query->from_ms;
    if (ret->cut)
        ret->since_ms = seen_since(&s);
    free(text);
    free(all);
}
