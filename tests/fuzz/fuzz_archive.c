/* Whatever an archive holds, it is unpacked into its own folder or refused with a sentence, and
 * then nothing stays; beside that folder nothing ever appears. */
#include "base/err.h"
#include "fuzz/fuzz.h"
#include "store/archive.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int count(const char *folder)
{
    int n = 0;
    DIR *dir = opendir(folder);
    assert(dir);
    for (struct dirent *e; (e = readdir(dir));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(dir);
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct archive_limits limits = {
        .unpacked_bytes = 1 << 20, .files = 64, .ratio = 100};
    char folder[] = "/tmp/muster-fuzz-XXXXXX";
    char path[64];
    char why[ARCHIVE_WHY_MAX];
    assert(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/in", folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    close(fd);
    int err = archive_unpack(path, folder, "out", &limits, why);
    assert(err == 0 || why[0] != '\0');
    assert(count(folder) == (err == 0 ? 2 : 1));
    archive_remove(folder, "out");
    (void)unlink(path);
    assert(rmdir(folder) == 0);
    return 0;
}
