#include "store/segment.h"

#include "base/buf.h"
#include "base/date.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char suffix[] = ".jsonl";

const char *segment_name(int64_t number, int64_t from_ms, char dst[SEGMENT_NAME_SIZE])
{
    char date[DATE_SIZE];
    char compact[DATE_SIZE];
    size_t n = 0;
    for (const char *p = date_print(from_ms, date); *p; p++) {
        if (*p != '-' && *p != ':')
            compact[n++] = *p;
    }
    compact[n] = '\0';
    (void)snprintf(dst, SEGMENT_NAME_SIZE, "%08" PRId64 "-%.16s%s", number, compact, suffix);
    return dst;
}

/* "20261116T031204Z" as it is written elsewhere. */
static bool parse_compact(struct str text, int64_t *ret_ms)
{
    char date[DATE_SIZE];
    if (text.len != 16)
        return false;
    const char *t = text.at;
    (void)snprintf(date, sizeof(date), "%.4s-%.2s-%.2sT%.2s:%.2s:%.2sZ", t, t + 4, t + 6, t + 9,
                   t + 11, t + 13);
    return t[8] == 'T' && t[15] == 'Z' && date_parse(str_of(date), ret_ms);
}

bool segment_name_parse(const char *name, int64_t *ret_number, int64_t *ret_from_ms)
{
    const char *dash = strchr(name, '-');
    size_t digits = dash ? (size_t)(dash - name) : 0;
    if (digits < 8 || digits > SEGMENT_DIGITS_MAX || strspn(name, "0123456789") != digits ||
        strlen(dash) != 17 + sizeof(suffix) - 1 || strcmp(dash + 17, suffix) != 0)
        return false;
    *ret_number = strtoll(name, NULL, 10);
    return parse_compact((struct str){dash + 1, 16}, ret_from_ms);
}

static int by_number(const void *a, const void *b)
{
    const struct segment *x = a;
    const struct segment *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

/* False when it is none of ours. */
static bool look_at(DIR *dir, const char *name, struct segment *ret)
{
    struct stat st;
    if (!segment_name_parse(name, &ret->number, &ret->from_ms) ||
        fstatat(dirfd(dir), name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
        return false;
    ret->size = st.st_size;
    ret->until_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
    return str_copy(ret->name, sizeof(ret->name), str_of(name));
}

size_t segments_list(const char *folder, struct segment **ret)
{
    size_t n = 0;
    size_t cap = 0;
    *ret = NULL;
    DIR *dir = opendir(folder);
    for (const struct dirent *e = NULL; dir && (e = readdir(dir));) {
        if (n == cap) {
            cap = cap ? cap * 2 : 64;
            *ret = xrealloc(*ret, cap * sizeof(**ret));
        }
        n += look_at(dir, e->d_name, &(*ret)[n]);
    }
    if (dir)
        closedir(dir);
    if (n > 0)
        qsort(*ret, n, sizeof(**ret), by_number);
    return n;
}

int64_t segment_weight(const struct segment *s)
{
    return s->size > SEGMENT_BLOCK ? s->size : SEGMENT_BLOCK;
}
