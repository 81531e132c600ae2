#include "cli/config_doc.h"

#include "cli/config.h"

#include <string.h>

#define REQUIRED CYAML_FLAG_POINTER
#define OPTIONAL (CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL)
#define TEXT(structure_, name_, flags_)                                                            \
    CYAML_FIELD_STRING_PTR(#name_, flags_, struct structure_, name_, 0, CYAML_UNLIMITED)
#define TEXT_FIELD(structure, section, key, ...) TEXT(structure, key, OPTIONAL),

static const cyaml_schema_value_t text_value = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, const char *, 0, CYAML_UNLIMITED)};

static const cyaml_schema_field_t listen_fields[] = {CONFIG_LISTEN(TEXT_FIELD) CYAML_FIELD_END};
static const cyaml_schema_field_t http_fields[] = {CONFIG_HTTP(TEXT_FIELD) CYAML_FIELD_END};
static const cyaml_schema_field_t files_fields[] = {CONFIG_TLS(TEXT_FIELD, http) CYAML_FIELD_END};
static const cyaml_schema_field_t log_fields[] = {CONFIG_LOG(TEXT_FIELD) CYAML_FIELD_END};
static const cyaml_schema_field_t timeouts_fields[] = {CONFIG_TIMEOUTS(TEXT_FIELD) CYAML_FIELD_END};
static const cyaml_schema_field_t limits_fields[] = {CONFIG_LIMITS(TEXT_FIELD) CYAML_FIELD_END};

static const cyaml_schema_field_t region_fields[] = {
    TEXT(doc_region, code, REQUIRED), TEXT(doc_region, name, REQUIRED),
    TEXT(doc_region, latitude, OPTIONAL), TEXT(doc_region, longitude, OPTIONAL), CYAML_FIELD_END};
static const cyaml_schema_value_t region_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct doc_region, region_fields)};

static const cyaml_schema_field_t fleet_fields[] = {
    TEXT(doc_fleet, name, REQUIRED), TEXT(doc_fleet, ready_required, OPTIONAL), CYAML_FIELD_END};
static const cyaml_schema_value_t fleet_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct doc_fleet, fleet_fields)};

static const cyaml_schema_field_t token_fields[] = {
    TEXT(doc_token, token, OPTIONAL),
    TEXT(doc_token, hash, OPTIONAL),
    TEXT(doc_token, role, REQUIRED),
    TEXT(doc_token, fleet, OPTIONAL),
    CYAML_FIELD_SEQUENCE("regions", OPTIONAL, struct doc_token, regions, &text_value, 1,
                         CYAML_UNLIMITED),
    CYAML_FIELD_END};
static const cyaml_schema_value_t token_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct doc_token, token_fields)};

static const cyaml_schema_field_t key_fields[] = {TEXT(doc_key, name, REQUIRED),
                                                  TEXT(doc_key, algorithm, REQUIRED),
                                                  TEXT(doc_key, file, REQUIRED), CYAML_FIELD_END};
static const cyaml_schema_value_t key_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct doc_key, key_fields)};
static const cyaml_schema_field_t access_fields[] = {
    CONFIG_ACCESS(TEXT_FIELD) CYAML_FIELD_SEQUENCE("keys", OPTIONAL, struct doc_access, keys,
                                                   &key_value, 0, CONFIG_MAX_KEYS),
    CYAML_FIELD_END};

#define SECTION(structure, name, fields)                                                           \
    CYAML_FIELD_MAPPING(#name, CYAML_FLAG_OPTIONAL, struct structure, name, fields)

static const cyaml_schema_field_t tls_fields[] = {
    SECTION(doc_tls, http, files_fields), SECTION(doc_tls, server, files_fields),
    SECTION(doc_tls, manager, files_fields), CYAML_FIELD_END};

static const cyaml_schema_field_t doc_fields[] = {
    CYAML_FIELD_SEQUENCE("regions", OPTIONAL, struct doc, regions, &region_value, 1, REGION_CODES),
    CYAML_FIELD_SEQUENCE("fleets", OPTIONAL, struct doc, fleets, &fleet_value, 1, CORE_MAX_FLEETS),
    CYAML_FIELD_SEQUENCE("tokens", OPTIONAL, struct doc, tokens, &token_value, 0,
                         CORE_MAX_ENROLMENTS),
    SECTION(doc, timeouts, timeouts_fields),
    SECTION(doc, limits, limits_fields),
    SECTION(doc, listen, listen_fields),
    SECTION(doc, http, http_fields),
    SECTION(doc, tls, tls_fields),
    SECTION(doc, log, log_fields),
    SECTION(doc, access, access_fields),
    CYAML_FIELD_END};

const cyaml_schema_value_t config_doc_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct doc, doc_fields)};

static const cyaml_schema_value_t *find(const cyaml_schema_field_t *fields, const char *key,
                                        size_t len)
{
    for (; fields->key; fields++) {
        if (strlen(fields->key) == len && memcmp(fields->key, key, len) == 0)
            return &fields->value;
    }
    return NULL;
}

const cyaml_schema_field_t *config_doc_fields(const char *place)
{
    const cyaml_schema_value_t *at = &config_doc_schema;
    while (at && *place) {
        size_t len = strcspn(place, ",");
        if (at->type == CYAML_SEQUENCE)
            at = at->sequence.entry;
        else
            at = at->type == CYAML_MAPPING ? find(at->mapping.fields, place, len) : NULL;
        place += len;
        place += strspn(place, ", ");
    }
    return at && at->type == CYAML_MAPPING ? at->mapping.fields : NULL;
}
