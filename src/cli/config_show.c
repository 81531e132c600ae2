#include "cli/config_show.h"

#include "cli/setting.h"

#include <assert.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMMENT_COLUMN = 40 };

struct shown {
    struct buf *out;
    bool comments;
    size_t line_start; /* in out */
};

static void print(struct shown *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void print(struct shown *s, const char *format, ...)
{
    char text[SETTING_VALUE_MAX * 4 + 64];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    assert(n >= 0 && (size_t)n < sizeof(text)); /* every value and meaning is shorter */
    buf_append(s->out, text, (size_t)n);
}

/* Ends a line, with a comment where they are wanted. */
static void end_line(struct shown *s, const char *unit, const char *comment)
{
    size_t len = s->out->len - s->line_start;
    if (s->comments && comment[0]) {
        int gap = len < COMMENT_COLUMN ? (int)(COMMENT_COLUMN - len) : 1;
        print(s, "%*s# %s%s%s", gap, "", unit, unit[0] ? "; " : "", comment);
    }
    print(s, "\n");
    s->line_start = s->out->len;
}

/* In double quotes, as YAML and JSON have them. Bytes that are no UTF-8 cannot come here: libyaml
 * refuses them. */
static void print_text(struct shown *s, const char *text)
{
    print(s, "\"");
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            print(s, "\\%c", c);
        else if (c < 0x20 || c == 0x7F)
            print(s, "\\x%02x", c);
        else
            print(s, "%c", c);
    }
    print(s, "\"");
}

/* The fewest digits that give the same number again; a file may have 15 after the point. */
static void print_degrees(struct shown *s, const char *key, double degrees)
{
    char text[40];
    for (int precision = 0; precision <= 15; precision++) {
        snprintf(text, sizeof(text), "%.*f", precision, degrees);
        if (strtod(text, NULL) == degrees)
            break;
    }
    print(s, ", %s: %s", key, text);
}

static void show_regions(struct shown *s, const struct core_config *core)
{
    print(s, "regions:");
    end_line(s, "", "codes 0 to 63 without 17, which means any; degrees");
    for (int code = 0; code < REGION_CODES; code++) {
        const struct region_config *region = &core->regions[code];
        if (!region->name[0])
            continue;
        print(s, "  - {code: %d, name: ", code);
        print_text(s, region->name);
        if (region->located) {
            print_degrees(s, "latitude", region->latitude);
            print_degrees(s, "longitude", region->longitude);
        }
        print(s, "}");
        end_line(s, "", "");
    }
}

static void show_fleets(struct shown *s, const struct core_config *core)
{
    print(s, "fleets:");
    end_line(s, "", "ready_required: a match counts as allocated when its server has said READY");
    for (size_t i = 0; i < core->n_fleets; i++) {
        print(s, "  - {name: ");
        print_text(s, core->fleets[i].name);
        print(s, ", ready_required: %s}", core->fleets[i].ready_required ? "true" : "false");
        end_line(s, "", "");
    }
}

static void show_token(struct shown *s, const struct core_config *core, const struct enrolment *e)
{
    char hash[2 * CORE_HASH_SIZE + 1];
    const char *between = "";
    sodium_bin2hex(hash, sizeof(hash), e->hash, sizeof(e->hash));
    print(s, "  - {hash: \"%s\", role: %s, fleet: ", hash,
          e->role == ROLE_SERVER ? "server" : "chat");
    print_text(s, e->fleet);
    print(s, ", regions: [");
    for (int code = 0; code < REGION_CODES; code++) {
        if (!(e->regions >> code & 1))
            continue;
        print(s, "%s", between);
        print_text(s, core->regions[code].name);
        between = ", ";
    }
    print(s, "]}");
    end_line(s, "", "");
}

static void show_tokens(struct shown *s, const struct core_config *core)
{
    print(s, core->n_enrolments > 0 ? "tokens:" : "tokens: []");
    end_line(s, "", "hash: BLAKE2b-256 of the token");
    for (size_t i = 0; i < core->n_enrolments; i++)
        show_token(s, core, &core->enrolments[i]);
}

static void show_keys(struct shown *s, const struct config *config)
{
    print(s, config->n_keys > 0 ? "  keys:" : "  keys: []");
    end_line(s, "", "public keys (PEM files) of those who may sign access tokens");
    for (size_t i = 0; i < config->n_keys; i++) {
        print(s, "    - {name: ");
        print_text(s, config->keys[i].name);
        print(s, ", algorithm: %s, file: ", config->keys[i].algorithm);
        print_text(s, config->keys[i].file);
        print(s, "}");
        end_line(s, "", "");
    }
}

/* "tls.http" is "http" below "tls". Returns how deep its keys stand. */
static int show_section(struct shown *s, const char *section, const char *before)
{
    const char *dot = strchr(section, '.');
    size_t outer = dot ? (size_t)(dot - section) : strlen(section);
    if (strncmp(section, before, outer) != 0) {
        print(s, "%.*s:", (int)outer, section);
        end_line(s, "", "");
    }
    if (dot) {
        print(s, "  %s:", dot + 1);
        end_line(s, "", "");
    }
    return dot ? 4 : 2;
}

static void show_settings(struct shown *s, const struct config *config)
{
    const char *section = "";
    int indent = 0;
    for (size_t i = 0; i < n_settings; i++) {
        const struct setting *row = &settings[i];
        char value[SETTING_VALUE_MAX];
        if (strcmp(section, row->section) != 0)
            indent = show_section(s, row->section, section);
        section = row->section;
        print(s, "%*s%s: ", indent, "", row->key);
        setting_print(row, config, value);
        if (row->kind == SETTING_NUMBER || row->kind == SETTING_WORD)
            print(s, "%s", value);
        else
            print_text(s, value);
        end_line(s, row->unit, row->meaning);
        if (strcmp(section, "access") == 0)
            show_keys(s, config);
    }
}

void config_show(const struct config *config, bool comments, struct buf *out)
{
    struct shown s = {.out = out, .comments = comments, .line_start = out->len};
    show_regions(&s, &config->core);
    show_fleets(&s, &config->core);
    show_tokens(&s, &config->core);
    show_settings(&s, config);
}

void config_digest(const struct config *config, char ret[CONFIG_DIGEST_MAX])
{
    struct buf text = {0};
    uint8_t hash[crypto_generichash_BYTES];
    config_show(config, false, &text);
    crypto_generichash(hash, sizeof(hash), text.data, text.len, NULL, 0);
    buf_done(&text);
    sodium_bin2hex(ret, CONFIG_DIGEST_MAX, hash, (CONFIG_DIGEST_MAX - 1) / 2);
}

static void show_list_rows(struct shown *s)
{
    static const struct {
        const char *key, *value, *meaning;
    } rows[] = {
        {"regions", "the seventeen of the protocol",
         "`{code, name, latitude, longitude}`: code 0 to 63 without 17 (which means any); name 1 "
         "to 15 of `A-Z a-z 0-9 . _ -`; degrees, both or neither. Replaces the default list"},
        {"fleets", "`default`",
         "`{name, ready_required}`: with `ready_required: true` a match counts as allocated when "
         "its server has said READY, not at its ACK. Replaces the default list"},
        {"tokens", "none",
         "`{token or hash, role, fleet, regions}`: role `server` or `chat`; fleet `default` when "
         "absent; region names, all when absent"},
        {"access.keys", "none",
         "`{name, algorithm, file}`: public keys (PEM files) of those who may sign access tokens; "
         "algorithm `RS256` or `ES256`"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        print(s, "| `%s` | %s | a list | yes | %s |\n", rows[i].key, rows[i].value,
              rows[i].meaning);
}

static void show_key_row(struct shown *s, const struct setting *row, const struct config *config)
{
    static const char *const kinds[] = {[SETTING_NAME] = "1 to 64 of `A-Z a-z 0-9 . _ -`",
                                        [SETTING_IP] = "an IP address",
                                        [SETTING_FILE] = "a path"};
    char value[SETTING_VALUE_MAX];
    setting_print(row, config, value);
    print(s, "| `%s.%s` | %s | ", row->section, row->key, value[0] ? value : "`\"\"`");
    if (row->kind == SETTING_NUMBER)
        print(s, "%" PRId64 " to %" PRId64 "%s%s", row->min, row->max, row->unit[0] ? " " : "",
              row->unit);
    else if (row->kind != SETTING_WORD)
        print(s, "%s", kinds[row->kind]);
    for (size_t i = 0; row->kind == SETTING_WORD && row->words[i]; i++)
        print(s, "%s`%s`", i > 0 ? ", " : "", row->words[i]);
    print(s, " | %s | %s |\n", row->reloads ? "yes" : "no", row->meaning);
}

void config_show_keys(struct buf *out)
{
    struct shown s = {.out = out};
    struct config *config = xcalloc(1, sizeof(*config));
    config_default(config);
    print(&s, "| key | default | values | reload | meaning |\n|---|---|---|---|---|\n");
    show_list_rows(&s);
    for (size_t i = 0; i < n_settings; i++)
        show_key_row(&s, &settings[i], config);
    free(config);
}
