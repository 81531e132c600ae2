#include "cli/yaml_words.h"

#include "base/suggest.h"
#include "cli/config_doc.h"

#include <stdio.h>
#include <stdlib.h>
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

/* The node of one step below `node`: a key, of which the last counts, or "entry n"; NULL when there
 * is none. *ret_line is where it is written: a value's key may stand on a line before it. */
static const yaml_node_t *step(yaml_document_t *document, const yaml_node_t *node, const char *name,
                               size_t len, size_t *ret_line)
{
    const yaml_node_t *found = NULL;
    if (node->type == YAML_SEQUENCE_NODE && strncmp(name, "entry ", 6) == 0) {
        long n = strtol(name + 6, NULL, 10);
        const yaml_node_item_t *items = node->data.sequence.items.start;
        if (n < 1 || n > node->data.sequence.items.top - items)
            return NULL;
        found = yaml_document_get_node(document, items[n - 1]);
        *ret_line = found->start_mark.line + 1;
        return found;
    }
    if (node->type != YAML_MAPPING_NODE)
        return NULL;
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = yaml_document_get_node(document, pair->key);
        if (key->type != YAML_SCALAR_NODE || key->data.scalar.length != len ||
            memcmp(key->data.scalar.value, name, len) != 0)
            continue;
        found = yaml_document_get_node(document, pair->value);
        *ret_line = key->start_mark.line + 1;
    }
    return found;
}

static size_t line_in(yaml_document_t *document, const char *place)
{
    const yaml_node_t *node = yaml_document_get_root_node(document);
    size_t line = node ? node->start_mark.line + 1 : 0;
    while (node && *place) {
        size_t len = strcspn(place, ",");
        node = step(document, node, place, len, &line);
        place += len;
        place += strspn(place, ", ");
    }
    return line;
}

size_t yaml_line(const char *text, size_t len, const char *place)
{
    yaml_parser_t parser;
    yaml_document_t document;
    if (!yaml_parser_initialize(&parser))
        return 0;
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    size_t line = 0;
    if (yaml_parser_load(&parser, &document)) {
        line = line_in(&document, place);
        yaml_document_delete(&document);
    }
    yaml_parser_delete(&parser);
    return line;
}

/* One step of libcyaml's backtrace goes in front of the place: "tokens, entry 2, role". */
static void add_place(struct yaml_complaint *c, const char *name)
{
    char inner[sizeof(c->place)];
    memcpy(inner, c->place, sizeof(inner));
    snprintf(c->place, sizeof(c->place), "%s%s%.*s", name, inner[0] ? ", " : "",
             (int)(sizeof(inner) - 80), inner);
}

void yaml_listen(struct yaml_complaint *c, const char *format, va_list args)
{
    char text[400], word[64], entry[80];
    vsnprintf(text, sizeof(text), format, args);
    text[strcspn(text, "\n")] = '\0';

    if (sscanf(text, " in mapping field '%63[^']' (line:", word) == 1) {
        add_place(c, word);
    } else if (sscanf(text, " in sequence entry '%63[0-9]' (line:", word) == 1) {
        snprintf(entry, sizeof(entry), "entry %s", word);
        add_place(c, entry);
    } else if (strncmp(text, "  in mapping (line:", 19) != 0 && !c->said[0] &&
               !strstr(text, "Backtrace")) {
        const char *said = strncmp(text, "Load: ", 6) == 0 ? text + 6 : text;
        snprintf(c->said, sizeof(c->said), "%.199s", said);
    }
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

/* The key that was meant, or all that there are. */
static void unknown_key(const char *place, const char *name, char ret[YAML_WORDS_MAX])
{
    const cyaml_schema_field_t *fields = config_doc_fields(place);
    struct suggestion meant = suggest_for(name);
    size_t n = (size_t)snprintf(ret, YAML_WORDS_MAX, "there is no setting '%s'", name);
    for (const cyaml_schema_field_t *f = fields; f && f->key; f++)
        suggest_offer(&meant, f->key);
    if (meant.best) {
        snprintf(ret + n, YAML_WORDS_MAX - n, "; did you mean '%s'?", meant.best);
        return;
    }
    for (const cyaml_schema_field_t *f = fields; f && f->key && n < YAML_WORDS_MAX; f++)
        n += (size_t)snprintf(ret + n, YAML_WORDS_MAX - n, "%s%s",
                              f == fields ? "; known are " : ", ", f->key);
}

void yaml_words(struct yaml_complaint *c, const char *fallback, char ret[YAML_WORDS_MAX])
{
    char name[64];
    const char *said = c->said[0] ? c->said : fallback;
    const char *shape = shape_words(said);
    /* libcyaml is then one step too deep: at the last setting or entry it saw, or at an entry 0. */
    if (strncmp(said, "Missing", 7) == 0 || strncmp(said, "Excessive", 9) == 0 ||
        strcmp(last_step(c->place), "entry 0") == 0)
        drop_last_step(c->place);
    memcpy(c->written, c->place, sizeof(c->written));
    if (sscanf(said, "Unexpected key: %63[^\n]", name) == 1) {
        unknown_key(c->place, name, ret);
        snprintf(c->written, sizeof(c->written), "%.*s%s%s", YAML_PLACE_MAX - 80, c->place,
                 c->place[0] ? ", " : "", name);
    } else if (sscanf(said, "Missing required mapping field: %63s", name) == 1) {
        snprintf(ret, YAML_WORDS_MAX, "%s is missing", name);
    } else if (sscanf(said, "Excessive entries (%15[0-9]", name) == 1) {
        snprintf(ret, YAML_WORDS_MAX, "there are more than %s", name);
    } else {
        snprintf(ret, YAML_WORDS_MAX, "%.150s", shape ? shape : said);
    }
}
