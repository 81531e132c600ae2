#include "cli/config_entry.h"

#include "cli/setting.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *entry_at(struct entry *e, const char *key)
{
    snprintf(e->place, sizeof(e->place), "%s, entry %" PRIu32 "%s%s", e->list, e->number,
             key[0] ? ", " : "", key);
    return e->place;
}

bool entry_name(struct entry *e, const char *key, const char *text, char *ret, size_t cap)
{
    if (setting_is_name(text, cap - 1))
        return str_copy(ret, cap, str_of(text));
    ENTRY_REFUSE(e, key, "must be 1 to %zu of A-Z a-z 0-9 . _ -, not '%.40s'", cap - 1, text);
    return false;
}

bool entry_bool(struct entry *e, const char *key, const char *text)
{
    if (strcmp(text, "true") == 0 || strcmp(text, "yes") == 0)
        return true;
    if (strcmp(text, "false") != 0 && strcmp(text, "no") != 0)
        ENTRY_REFUSE(e, key, "must be true or false, not '%.40s'", text);
    return false;
}

bool entry_number(struct entry *e, const char *key, const char *text, int64_t min, int64_t max,
                  int64_t *ret)
{
    if (setting_read_number(text, min, max, ret))
        return true;
    ENTRY_REFUSE(e, key, "must be a whole number from %" PRId64 " to %" PRId64 ", not '%.40s'", min,
                 max, text);
    return false;
}

int config_find_region(const struct core_config *core, const char *name)
{
    for (int code = 0; code < REGION_CODES; code++) {
        if (core->regions[code].name[0] && strcmp(core->regions[code].name, name) == 0)
            return code;
    }
    return -1;
}

uint64_t entry_regions(struct entry *e, const char *const *names, uint32_t n)
{
    uint64_t regions = 0;
    for (uint32_t i = 0; i < n; i++) {
        char key[40];
        int code = config_find_region(&e->r->config->core, names[i]);
        snprintf(key, sizeof(key), "regions, entry %" PRIu32, i + 1);
        if (code < 0)
            ENTRY_REFUSE(e, key, "there is no region '%.40s'", names[i]);
        else
            regions |= UINT64_C(1) << code;
    }
    return regions;
}
