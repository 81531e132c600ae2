/* Whatever a block holds, it is a plain file's head or refused; and a head that is written again
 * says the same. Once as it is, once with the sum that it should have, to get past that check. */
#include "fuzz/fuzz.h"
#include "wire/tar.h"

#include <stdio.h>
#include <string.h>

enum { SUM_AT = 148, SUM_LEN = 8 };

static void look(const uint8_t block[TAR_BLOCK])
{
    struct tar_entry entry;
    struct tar_entry again;
    uint8_t head[TAR_BLOCK];
    if (!tar_decode(block, &entry) || !entry.name[0])
        return;
    assert(entry.size >= 0 && memchr(entry.name, 0, sizeof(entry.name)));
    tar_encode(&entry, head);
    assert(tar_decode(head, &again) && strcmp(entry.name, again.name) == 0);
    assert(entry.size == again.size && entry.modified_s == again.modified_s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t block[TAR_BLOCK] = {0};
    unsigned sum = SUM_LEN * ' ';
    memcpy(block, data, size < sizeof(block) ? size : sizeof(block));
    look(block);
    memset(block + SUM_AT, 0, SUM_LEN);
    for (size_t i = 0; i < sizeof(block); i++)
        sum += block[i];
    (void)snprintf((char *)block + SUM_AT, SUM_LEN, "%06o", sum);
    look(block);
    return 0;
}
