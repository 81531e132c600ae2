/* Whatever a caller prints, one well-formed line comes out, and the JSON format is JSON. */
#include "base/json.h"
#include "base/log_entry.h"
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static void check_line(const struct log_entry *e)
{
    assert(e->len > 0 && e->len <= LOG_LINE_MAX && e->text[e->len - 1] == '\n');
    for (size_t i = 0; i + 1 < e->len; i++)
        assert((unsigned char)e->text[i] >= 0x20 && e->text[i] != 0x7F);
    assert(str_is_utf8((struct str){e->text, e->len}));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct log_entry e;
    char why[JSON_WHY_MAX];
    char *text = xcalloc(1, size + 1);
    memcpy(text, data, size);
    for (enum log_format f = LOG_LOGFMT; f <= LOG_JSON; f++) {
        log_entry_open(&e, f, 0, "info", text);
        log_text(&e, "text", (struct str){(const char *)data, size});
        log_pairs(&e, text, size % 2 == 1);
        log_int(&e, "last", -1);
        log_entry_close(&e);
        check_line(&e);
    }
    struct json *line = json_parse((struct str){e.text, e.len - 1}, why);
    assert(line || strstr(why, "duplicate") || strstr(why, "\\u0000"));
    json_free(line);
    free(text);
    return 0;
}
