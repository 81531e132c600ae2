#include "agent/process_parts.h"

#include <dirent.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { KEEP_S = 3600, KEEP_MAX = 512 };

/* Stands alone: it may outlast struct processes, though not the loop. */
struct sweep {
    uv_work_t work;
    bool aged; /* remove only what is old inside of path, not path itself */
    char path[PATH_MAX];
};

/* Nobody is left who could put links in our way; they are not followed all the same. */
static void remove_tree(const char *path)
{
    char *const roots[] = {(char *)path, NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_NOSTAT, NULL);
    if (!tree)
        return;
    for (FTSENT *e; (e = fts_read(tree));) {
        if (e->fts_info == FTS_DP || e->fts_info == FTS_DNR)
            rmdir(e->fts_accpath);
        else if (e->fts_info != FTS_D && e->fts_info != FTS_NS)
            unlink(e->fts_accpath);
    }
    fts_close(tree);
}

struct aged {
    time_t when;
    char name[32];
};

static int newest_first(const void *a, const void *b)
{
    time_t left = ((const struct aged *)a)->when;
    time_t right = ((const struct aged *)b)->when;
    return left < right ? 1 : left > right ? -1 : 0;
}

static struct aged *list_aged(const char *path, size_t *ret_n)
{
    struct buf list = {.data = NULL};
    DIR *folder = opendir(path);
    for (struct dirent *e; folder && (e = readdir(folder));) {
        struct stat st;
        struct aged one = {.when = 0};
        if (e->d_name[0] == '.' || strlen(e->d_name) >= sizeof(one.name) ||
            fstatat(dirfd(folder), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        one.when = st.st_ctime; /* when it was moved here */
        memcpy(one.name, e->d_name, strlen(e->d_name) + 1);
        buf_append(&list, &one, sizeof(one));
    }
    if (folder)
        closedir(folder);
    *ret_n = list.len / sizeof(struct aged);
    return (struct aged *)(void *)list.data;
}

static void remove_aged(const char *path)
{
    size_t n;
    struct aged *all = list_aged(path, &n);
    time_t oldest = time(NULL) - KEEP_S;
    if (n > 0)
        qsort(all, n, sizeof(*all), newest_first);
    for (size_t i = 0; i < n; i++) {
        char one[PATH_MAX + 40];
        if (i < KEEP_MAX && all[i].when >= oldest)
            continue;
        snprintf(one, sizeof(one), "%s/%s", path, all[i].name);
        remove_tree(one);
    }
    free(all);
}

static void on_work(uv_work_t *work)
{
    struct sweep *s = work->data;
    if (s->aged)
        remove_aged(s->path);
    else
        remove_tree(s->path);
}

static void on_worked(uv_work_t *work, int status)
{
    (void)status;
    free(work->data);
}

static void sweep(struct processes *ps, const char *path, bool aged)
{
    struct sweep *s = xcalloc(1, sizeof(*s));
    s->work.data = s;
    s->aged = aged;
    snprintf(s->path, sizeof(s->path), "%s", path);
    uv_queue_work(&ps->loop->uv, &s->work, on_work, on_worked);
}

void sweep_folder(struct processes *ps, const char *path)
{
    sweep(ps, path, false);
}

void sweep_ended(struct processes *ps)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%.*s/ended", PATH_MAX - 8, ps->sandbox.folder);
    sweep(ps, path, true);
}
