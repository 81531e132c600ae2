#include "base/machine.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

enum { TIMES = 8, IDLE = 3, IOWAIT = 4 }; /* of the line "cpu  user nice system idle iowait …" */

static bool read_times(struct machine *ret)
{
    FILE *f = fopen("/proc/stat", "re");
    if (!f)
        return false;
    char line[256];
    bool found = fgets(line, sizeof(line), f) && strncmp(line, "cpu ", 4) == 0;
    fclose(f);
    *ret = (struct machine){0};
    char *at = line + 4;
    for (int i = 0; found && i < TIMES; i++) {
        uint64_t v = strtoull(at, &at, 10);
        ret->all += v;
        if (i != IDLE && i != IOWAIT)
            ret->busy += v;
    }
    return found;
}

float machine_cpu_percent(struct machine *last)
{
    struct machine before = *last;
    struct machine now;
    if (!read_times(&now))
        return 0;
    *last = now;
    if (before.all == 0 || now.all <= before.all || now.busy < before.busy)
        return 0;
    return 100.0f * (float)(now.busy - before.busy) / (float)(now.all - before.all);
}

float machine_memory_percent(void)
{
    static const char total_is[] = "MemTotal:";
    static const char available_is[] = "MemAvailable:";
    FILE *f = fopen("/proc/meminfo", "re");
    if (!f)
        return 0;
    char line[128];
    uint64_t total = 0;
    uint64_t available = 0;
    while (fgets(line, sizeof(line), f)) {
        if (strncmp(line, total_is, sizeof(total_is) - 1) == 0)
            total = strtoull(line + sizeof(total_is) - 1, NULL, 10);
        if (strncmp(line, available_is, sizeof(available_is) - 1) == 0)
            available = strtoull(line + sizeof(available_is) - 1, NULL, 10);
    }
    fclose(f);
    return total > available ? 100.0f * (float)(total - available) / (float)total : 0;
}

float machine_disk_percent(const char *path)
{
    struct statvfs disk;
    if (statvfs(path, &disk) != 0 || disk.f_blocks == 0 || disk.f_bavail > disk.f_blocks)
        return 0;
    return 100.0f * (float)(disk.f_blocks - disk.f_bavail) / (float)disk.f_blocks;
}

double machine_load(void)
{
    double load = 0;
    return getloadavg(&load, 1) == 1 ? load : 0;
}
