/* P8: how large the program is, how soon it starts, what it holds when nothing happens. */
#include "cli/bench_child.h"
#include "cli/cli.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SETTLE_MS = 300 };

const struct arg bench_footprint_options[] = {
    BENCH_ARG_RUNS, BENCH_ARG_LOG_LEVEL, BENCH_ARG_DATA_ROOT, BENCH_ARG_JSON, {0},
};

/* What strip(1) leaves: the file without the sections that are not loaded. */
static int64_t stripped_size(const uint8_t *file, size_t size)
{
    const Elf64_Ehdr *head = (const void *)file;
    if (size < sizeof(*head) || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
        head->e_shoff + (size_t)head->e_shnum * sizeof(Elf64_Shdr) > size)
        return -1;
    const Elf64_Shdr *sections = (const void *)(file + head->e_shoff);
    int64_t left = (int64_t)size;
    for (int i = 0; i < head->e_shnum; i++) {
        bool loaded = sections[i].sh_flags & SHF_ALLOC;
        if (!loaded && sections[i].sh_type != SHT_NOBITS && i != head->e_shstrndx)
            left -= (int64_t)sections[i].sh_size;
    }
    return left;
}

static bool measure_size(struct bench *b, double *ret_mb)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0)
        return bench_fail(b, "the program cannot be read: %s", strerror(errno));
    void *file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    int64_t size = file == MAP_FAILED ? -1 : stripped_size(file, (size_t)st.st_size);
    if (file != MAP_FAILED)
        munmap(file, (size_t)st.st_size);
    *ret_mb = (double)size / 1e6;
    return size > 0 || bench_fail(b, "the program is no ELF file");
}

struct found {
    struct figure first_ms, again_ms, mib;
    double mb;
};

/* Once in a new folder, which has to be made durable, once in the same. */
static bool measure_start(struct bench *b, struct found *f)
{
    char data[BENCH_PATH_MAX];
    struct served s = {0};
    struct served_plan how = {.data = bench_path(b, "footprint", data)};
    if (!served_start(&s, b, &how))
        return false;
    figure_add(&f->first_ms, s.ready_ms);
    served_end(&s, SIGTERM);
    if (!served_start(&s, b, &how))
        return false;
    figure_add(&f->again_ms, s.ready_ms);
    (void)poll(NULL, 0, SETTLE_MS);
    figure_add(&f->mib, (double)process_resident_kib(s.pid) / 1024);
    served_end(&s, SIGTERM);
    bench_remove(b, "footprint");
    return true;
}

static void tell(struct bench *b, const struct found *f)
{
    bench_number(b, "stripped_mb", f->mb, 2);
    bench_figure(b, "first_start_ms", &f->first_ms, 1);
    bench_figure(b, "start_ms", &f->again_ms, 1);
    bench_figure(b, "idle_mib", &f->mib, 1);
    struct figure size = {.values = {f->mb}, .n = 1};
    struct bench_row *row = bench_row(b, "P8", "stripped program", &size, "MB", 2);
    row->wanted = "< 5 MB";
    row->reach = 5 / f->mb;
    row->n = 1;
    row = bench_row(b, "P8", "start until the ready line", &f->again_ms, "ms", 1);
    row->wanted = "< 50 ms";
    row->reach = 50 / figure_median(&f->again_ms);
    row->n = f->again_ms.n;
    snprintf(row->yardstick, sizeof(row->yardstick), "in a new folder %.0f ms",
             figure_median(&f->first_ms));
    row = bench_row(b, "P8", "resident memory when idle", &f->mib, "MiB", 1);
    row->wanted = "< 25 MB";
    row->reach = 25e6 / (figure_median(&f->mib) * 1024 * 1024);
    row->n = f->mib.n;
}

bool bench_footprint(struct bench *b)
{
    static struct found f; /* large */
    f = (struct found){0};
    if (!measure_size(b, &f.mb))
        return false;
    for (int i = 0; i < bench_options.runs; i++) {
        bench_run_begins(i);
        if (!measure_start(b, &f))
            return false;
    }
    tell(b, &f);
    return true;
}

int bench_footprint_run(int argc, char **argv)
{
    return bench_main(argc, argv, bench_footprint_options, bench_footprint);
}
