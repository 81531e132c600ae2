#include "cli/yaml_words.h"

#include <stdio.h>
#include <string.h>
#include <yaml.h>

/* Goes through the events up to the end, an error or a second document. */
static bool parse_all(yaml_parser_t *parser, char ret[YAML_WORDS_MAX])
{
    int documents = 0;
    for (;;) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event)) {
            /* A byte that is not UTF-8 has an offset and no mark. */
            if (parser->error == YAML_READER_ERROR)
                snprintf(ret, YAML_WORDS_MAX, "byte %zu: %s", parser->problem_offset,
                         parser->problem);
            else
                snprintf(ret, YAML_WORDS_MAX, "line %zu, column %zu: %s",
                         parser->problem_mark.line + 1, parser->problem_mark.column + 1,
                         parser->problem ? parser->problem : "this is not YAML");
            return false;
        }
        yaml_event_type_t type = event.type;
        size_t line = event.start_mark.line + 1;
        yaml_event_delete(&event);
        if (type == YAML_STREAM_END_EVENT)
            return true;
        if (type == YAML_DOCUMENT_START_EVENT && ++documents == 2) {
            snprintf(ret, YAML_WORDS_MAX,
                     "line %zu: a second document begins here; the settings must be in one", line);
            return false;
        }
    }
}

bool yaml_is_one_document(const char *text, size_t len, char ret[YAML_WORDS_MAX])
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) {
        snprintf(ret, YAML_WORDS_MAX, "out of memory");
        return false;
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    bool good = parse_all(&parser, ret);
    yaml_parser_delete(&parser);
    return good;
}

static const char *last_step(const char *place)
{
    const char *comma = strrchr(place, ',');
    return comma ? comma + 2 : place;
}

static void drop_last_step(char *place)
{
    char *comma = strrchr(place, ',');
    *(comma ? comma : place) = '\0';
}

/* NULL when the complaint is of another kind. */
static const char *shape_words(const char *complaint)
{
    static const struct {
        const char *said;
        const char *words;
    } rows[] = {
        {"Expecting SEQUENCE", "must be a list"},
        {"Expecting MAPPING", "must be settings, each \"name: value\""},
        {"Expecting STRING", "must be one value, not a list or settings"},
        {"Expecting ENUM", "must be one word"},
        {"Insufficient entries", "the list is empty; leave the setting out for the default"},
        {"Mapping field already seen", "is there twice"},
        {"YAML alias unsupported", "\"*\" for a value named elsewhere is not supported"},
        {"Internal error", "names must be plain words"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strncmp(complaint, rows[i].said, strlen(rows[i].said)) == 0)
            return rows[i].words;
    }
    return NULL;
}

void yaml_words(char *place, const char *complaint, char ret[YAML_WORDS_MAX])
{
    char words[160], name[64];
    const char *shape = shape_words(complaint);
    const char *allowed =
        strcmp(last_step(place), "role") == 0 ? "server or chat" : "true or false";
    if (sscanf(complaint, "Invalid ENUM value: %63[^\n]", name) == 1)
        snprintf(words, sizeof(words), "must be %s, not '%s'", allowed, name);
    else if (strncmp(complaint, "Invalid ENUM value", 18) == 0)
        snprintf(words, sizeof(words), "must be %s", allowed);
    else if (sscanf(complaint, "Unexpected key: %63[^\n]", name) == 1)
        snprintf(words, sizeof(words), "there is no setting '%s'", name);
    else if (sscanf(complaint, "Missing required mapping field: %63s", name) == 1)
        snprintf(words, sizeof(words), "%s is missing", name);
    else if (sscanf(complaint, "Excessive entries (%15[0-9]", name) == 1)
        snprintf(words, sizeof(words), "there are more than %s", name);
    else
        snprintf(words, sizeof(words), "%.150s", shape ? shape : complaint);
    /* libcyaml is then one step too deep: at the last setting or entry it saw, or at an entry 0. */
    if (strncmp(complaint, "Missing", 7) == 0 || strncmp(complaint, "Excessive", 9) == 0 ||
        strcmp(last_step(place), "entry 0") == 0)
        drop_last_step(place);
    snprintf(ret, YAML_WORDS_MAX, "%.150s%s%s", place, place[0] ? ": " : "", words);
}
