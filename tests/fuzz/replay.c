/* Runs a fuzz target over files and folders given as arguments, so that every corpus is part of the
 * ordinary tests. A missing or empty folder fails: a replay of nothing would prove nothing. */
#include "fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* In memory of exactly its size, so that a sanitizer sees a read past the end. */
static int replay_file(const char *path)
{
    struct stat st;
    FILE *f = fopen(path, "rb");
    if (!f || fstat(fileno(f), &st) != 0) {
        perror(path);
        if (f)
            (void)fclose(f);
        return -1;
    }
    size_t size = (size_t)st.st_size;
    uint8_t *data = malloc(size ? size : 1);
    int r = data && fread(data, 1, size, f) == size ? 0 : -1;
    if (r == 0)
        (void)LLVMFuzzerTestOneInput(data, size);
    else
        perror(path);
    free(data);
    (void)fclose(f);
    return r;
}

/* The number of files replayed, or -1. */
static int replay_folder(const char *path)
{
    DIR *dir = opendir(path);
    if (!dir) {
        perror(path);
        return -1;
    }
    int files = 0;
    for (struct dirent *e = readdir(dir); e && files >= 0; e = readdir(dir)) {
        char name[4096];
        if (e->d_name[0] == '.')
            continue;
        (void)snprintf(name, sizeof(name), "%s/%s", path, e->d_name);
        files = replay_file(name) == 0 ? files + 1 : -1;
    }
    (void)closedir(dir);
    return files;
}

int main(int argc, char **argv)
{
    int total = 0;
    for (int i = 1; i < argc; i++) {
        struct stat st;
        int is_folder = stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode);
        int files = is_folder ? replay_folder(argv[i]) : replay_file(argv[i]) + 1;
        if (files <= 0) {
            (void)fprintf(stderr, "%s: nothing to replay\n", argv[i]);
            return 1;
        }
        total += files;
    }
    printf("replayed %d inputs\n", total);
    return total > 0 ? 0 : 1;
}
