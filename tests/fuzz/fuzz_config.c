/* A configuration is read or refused with a sentence that is one line of UTF-8; what was read and
 * is shown is read again to the same digest. */
#include "cli/config_show.h"
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static void check_sentences(const struct config_mistakes *mistakes)
{
    for (size_t i = 0; i < mistakes->n && i < CONFIG_MISTAKES_MAX; i++) {
        struct str sentence = str_of(mistakes->sentence[i]);
        assert(sentence.len > 0 && !memchr(sentence.at, '\n', sentence.len));
        assert(str_is_utf8(sentence));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct config *config = xcalloc(2, sizeof(*config));
    struct config_mistakes mistakes;
    char first[CONFIG_DIGEST_MAX], second[CONFIG_DIGEST_MAX];
    struct buf shown = {0};
    config_default(&config[0]);
    config_default(&config[1]);
    if (config_parse("f", (const char *)data, size, &config[0], &mistakes) == 0) {
        config_digest(&config[0], first);
        config_show(&config[0], true, &shown);
        int err = config_parse("shown", (const char *)shown.data, shown.len, &config[1], &mistakes);
        assert(err == 0);
        config_digest(&config[1], second);
        assert(strcmp(first, second) == 0);
    }
    check_sentences(&mistakes);
    buf_done(&shown);
    config_done(&config[0]);
    config_done(&config[1]);
    free(config);
    return 0;
}
